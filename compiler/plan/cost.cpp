#include "plan/cost.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ops/op.h"

namespace sinter {
namespace {

// Vector operations that a function's word takes (runtime/sinter/math.h); those that are not here take one.
double operations(const ScalarFn& f) {
  struct Row {
    std::string_view name;
    double operations;
  };
  static constexpr Row kRows[] = {
      {"div", 4},   {"reciprocal", 4}, {"sqrt", 5},     {"round", 2},      {"quantize", 8},
      {"exp", 16},  {"log", 22},       {"sin", 24},     {"cos", 24},       {"tanh", 24},
      {"erf", 26},  {"pow", 50},       {"sigmoid", 22}, {"softplus", 40},  {"softsign", 6},
      {"elu", 20},  {"selu", 22},      {"celu", 24},    {"silu", 24},      {"mish", 60},
      {"gelu", 30}, {"gelu_tanh", 28}, {"clamp", 2},    {"hard_swish", 4}, {"hard_sigmoid", 3}};
  for (const Row& r : kRows)
    if (r.name == f.name) return r.operations;
  constexpr double kScalar = 20;  // four lanes, one after the other
  return f.vector ? 1 : kScalar;
}

double operations(const Expr& e) {
  double sum = e.kind == Expr::Kind::kCall ? operations(*e.fn) : e.kind == Expr::Kind::kCast ? 1 : 0;
  if (e.kind == Expr::Kind::kOperand) sum += 1;  // is loaded
  for (const ExprPtr& a : e.args) sum += operations(*a);
  return sum;
}

double elements(const Value* v) { return v ? static_cast<double>(product(v->type.shape).hi()) : 0; }

int64_t weight_bytes(const Layer& l) {
  int64_t bytes = 0;
  for (const Parameter& p : l.parameters)
    if (p.kind == Parameter::Kind::kWeights) bytes += p.bytes;
  return bytes;
}

class Model {
 public:
  // `cold`: the net has more weights than the second-level cache.
  Model(const Plan& plan, size_t layer, const Target& t, bool cold)
      : cold_(cold),
        plan_(plan),
        i_(layer),
        l_(plan.layers[layer]),
        n_(*l_.node),
        target_(n_.freedom.halves == Halves::kComputed && t.features.halves ? in_halves(t) : t),
        m_(target_.speed) {}

  LayerCost cost() {
    count_bytes();
    c_.calls = kCall;
    if (!plan_.bodies[i_].empty()) {
      add_bodies();
    } else {
      c_.arithmetic = arithmetic() + epilogue();
      c_.weights = streamed_weights();
      c_.tensors =
          static_cast<double>(c_.tensor_bytes) / (c_.tensor_bytes <= m_.l2 ? m_.l2_bytes : m_.memory_bytes);
    }
    const double stream = c_.weights + c_.tensors;
    c_.cycles = c_.calls + (has_own_model() ? own_model() : beside_stream(c_.arithmetic, stream));
    return c_;
  }

 private:
  static constexpr double kCall = 150;  // of a function, and its loops' beginnings and ends

  bool has_own_model() const {
    return l_.algorithm == Algorithm::kWinograd || l_.algorithm == Algorithm::kStrassen;
  }
  // It counts what a core out of order hides; in order, transforms and sums wait for each other.
  double own_model() const { return l_.chosen_at * (m_.in_order ? 1.5 : 1); }

  void count_bytes() {
    const Decision& d = plan_.decision(i_);
    c_.weight_bytes = weight_bytes(l_);
    for (const Parameter& p : l_.parameters) {
      const bool in = p.kind == Parameter::Kind::kInput, out = p.kind == Parameter::Kind::kOutput;
      if (!in && !out) continue;
      if (d.row_tile && (in ? d.row_tile->reads_rows : d.row_tile->writes_rows))
        continue;  // stays in the cache
      c_.tensor_bytes += bound_bytes(*p.value);
    }
  }

  double lanes() const { return target_.lanes; }
  bool of_bytes() const {
    const Value* w = n_.input(1);
    return w && size_of(w->type.dtype) == 1 && is_integer(w->type.dtype);
  }

  double arithmetic() const {
    const double adds = l_.flops / 2;
    switch (l_.work) {
      case Work::kProducts: return adds / products_a_cycle();
      case Work::kTaps: return adds / (of_bytes() ? 2 * lanes() : lanes()) * tap();
      case Work::kVectors: return vectors();
      case Work::kLoops: return l_.flops * kCyclesOfLoop;
    }
    return 0;
  }
  static constexpr double kCyclesOfLoop = 1.5;
  // Both factors of a multiply-add are loaded, out of order beside it.
  double tap() const {
    return m_.in_order ? 1 / m_.fma + 2 / m_.ops : 1.05 * std::max(1 / m_.fma, 2 / m_.ops);
  }

  double products_a_cycle() const {
    if (!of_bytes()) return lanes() * m_.fma * m_.tile_share;
    // A dot product sums four; without one, three instructions multiply and add sixteen (mac_bytes.h).
    const double times = target_.features.byte_matrices ? 8 : target_.features.dot_products ? 4 : 4.0 / 3;
    return lanes() * m_.fma * times * m_.tile_share * 0.85;
  }

  // Every element of the operands and of the result passes once; the expression is what flops doesn't know.
  double vectors() const {
    double most = elements(n_.outputs[0]);
    for (size_t k = 0; k < n_.inputs.size(); ++k)
      if (const Value* v = n_.inputs[k]; v && !v->data) most = std::max(most, elements(v));
    return (m_.in_order ? 2 : 1.5) * (most * 2 + l_.flops) / filled_lanes() / m_.ops;
  }

  // Where rows are shorter than a vector and are not one with their neighbours, elements go one by one.
  double filled_lanes() const {
    const bool one_by_one = l_.work == Work::kVectors && !n_.op->expr && has_short_rows(n_.outputs[0]) &&
                            has_short_rows(n_.inputs.empty() ? nullptr : n_.inputs[0]);
    return one_by_one ? 1 : lanes();
  }
  bool has_short_rows(const Value* v) const {
    return v && !v->type.shape.empty() && v->type.shape.back().hi() < target_.lanes;
  }

  double epilogue() const {
    double each = l_.work == Work::kVectors ? 0 : 2;  // a result is stored, its bias loaded
    if (n_.epilogue) each += operations(*n_.epilogue);
    return each * elements(n_.outputs[0]) / filled_lanes() / m_.ops;
  }

  // Each weight that is read again for another step of a sequence comes from the cache that it is in.
  double streamed_weights() const {
    if (c_.weight_bytes == 0) return 0;
    const double bytes = static_cast<double>(c_.weight_bytes);
    if (cold_ && !plan_.decision(i_).weights.near) return bytes / m_.memory_bytes;
    return stream_cycles(m_, bytes, 1, plan_.decision(i_).weights.near);
  }

  void add_bodies() {
    const bool branches = std::string_view(n_.op->name) == "If";
    double inside = 0;
    for (const Plan& body : plan_.bodies[i_]) {
      double sum = 0;
      for (const LayerCost& c : layer_costs(body, target_)) sum += c.cycles;
      inside = branches ? std::max(inside, sum) : inside + sum;
    }
    c_.arithmetic = inside * trips();
  }
  double trips() const {
    const std::string_view op = n_.op->name;
    if (op == "Loop") {
      const Value* most = n_.input(0);
      return most && most->data && most->data->size() == 1 ? static_cast<double>(most->data->integer(0)) : 1;
    }
    if (op == "Scan")
      for (size_t k = n_.inputs.size(); k-- > 0;)
        if (const Value* v = n_.inputs[k]; v && !v->type.shape.empty())
          return static_cast<double>(v->type.shape[0].hi());
    return 1;
  }

  const bool cold_;
  const Plan& plan_;
  const size_t i_;
  const Layer& l_;
  const Node& n_;
  const Target& target_;
  const CoreSpeed& m_;
  LayerCost c_;
};

}  // namespace

const char* text(Bound b) {
  switch (b) {
    case Bound::kArithmetic: return "arithmetic";
    case Bound::kWeights: return "weights";
    case Bound::kTensors: return "tensors";
    case Bound::kCalls: return "calls";
  }
  return "";
}

Bound LayerCost::bound() const {
  const double most = std::max({arithmetic, weights, tensors, calls});
  return most == arithmetic ? Bound::kArithmetic
         : most == weights  ? Bound::kWeights
         : most == tensors  ? Bound::kTensors
                            : Bound::kCalls;
}

std::vector<LayerCost> layer_costs(const Plan& plan, const Target& target) {
  int64_t bytes = 0;
  for (const Layer& l : plan.layers) bytes += weight_bytes(l);
  std::vector<LayerCost> costs;
  for (size_t i = 0; i < plan.layers.size(); ++i)
    costs.push_back(Model(plan, i, target, bytes > target.speed.l2).cost());
  return costs;
}

}  // namespace sinter
