// The layer of an If, Loop or Scan: its parameters.
//
// It reads the node's inputs and writes its outputs like any layer, takes the arena of its bodies (branches
// of an If overlap) as scratch "a", the weights as a whole as "w", and the extents that its bodies ask for.
// The values that a Loop or Scan carries alternate between two buffers: the output itself and a scratch one,
// or two scratch ones where their shape changes.
//
// Iterations of a Loop or Scan that carries nothing and ends after a known number of them don't depend on one
// another: threads share them, each with an arena of its own. Where there are fewer of them than threads, and
// in all other bodies, threads share the layers as they do outside.
#include <algorithm>
#include <set>

#include "ir/error.h"
#include "ops/control/bodies.h"
#include "plan/plan.h"

namespace sinter {
namespace {

using Kind = Parameter::Kind;

// Symbols that text inside uses and that nothing inside finds.
class Needed {
 public:
  void use(const Dim& d) {
    std::vector<SymbolPtr> symbols;
    d.collect_symbols(symbols);
    for (const SymbolPtr& s : symbols) use(s);
  }
  void use(const SymbolPtr& s) {
    if (!found_.count(s.get()) && seen_.insert(s.get()).second) list_.push_back(s);
  }
  void find(const Symbol* s) { found_.insert(s); }
  void body(const Graph& g, const Plan& plan) {
    for (const Layer& l : plan.layers)
      for (const Parameter& p : l.parameters)
        if (p.kind == Kind::kCount) find(p.symbol.get());
    for (const Layer& l : plan.layers)
      for (const Parameter& p : l.parameters)
        if (p.kind == Kind::kSymbol) use(p.symbol);
    for (const auto& [v, place] : plan.places) use(place.shift);
    for (const Value* v : g.outputs)
      for (const Dim& d : v->type.shape) use(d);
    for (const Check& c : g.checks) use(c.a), use(c.b);
  }
  std::vector<SymbolPtr> list() const {
    std::vector<SymbolPtr> out = list_;
    std::erase_if(out, [&](const SymbolPtr& s) { return found_.count(s.get()) != 0; });
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a->index < b->index; });
    return out;
  }

 private:
  std::set<const Symbol*> found_, seen_;
  std::vector<SymbolPtr> list_;
};

// Whether some layer has such a parameter.
bool uses(const Plan& plan, Kind kind) {
  return std::any_of(plan.layers.begin(), plan.layers.end(), [kind](const Layer& l) {
    return std::any_of(l.parameters.begin(), l.parameters.end(),
                       [kind](const Parameter& p) { return p.kind == kind; });
  });
}
bool uses_weights(const Plan& plan) { return uses(plan, Kind::kWeights); }
bool uses_pool(const Plan& plan) { return uses(plan, Kind::kPool); }

class ControlLayer {
 public:
  ControlLayer(const Node& n, const std::vector<Plan>& bodies, WeightStore& store, int threads)
      : n_(n), bodies_(bodies), store_(store), threads_(threads) {}

  Layer make(const std::string& function) {
    layer_.node = &n_;
    layer_.function = function;
    layer_.kernel = "control";
    layer_.can_fail = true;
    layer_.includes = {"sinter/copy.h", "sinter/dims.h"};
    for (size_t i = 0; i < n_.inputs.size(); ++i)
      if (n_.inputs[i]) input(*n_.inputs[i]);
    for (const Value* v : n_.outputs) {
      SINTER_CHECK(v, "an output of a control node is absent");
      pointer(Kind::kOutput, *v, "");
    }
    extents();
    if (!is_if()) buffers();
    describe();
    arena();
    return std::move(layer_);
  }

 private:
  bool is_if() const { return n_.op->name == std::string_view("If"); }

  Parameter& add(Kind kind, const std::string& type, const std::string& name, const std::string& comment) {
    layer_.parameters.push_back(
        {.kind = kind, .type = type, .name = names_.unique(name), .comment = comment, .symbol = nullptr});
    return layer_.parameters.back();
  }
  void pointer(Kind kind, const Value& v, const char* constant) {
    Parameter& p = add(kind, fmt::format("{}{}*", constant, cpp_name(v.type.dtype)), identifier(v.name),
                       shape_comment(v.type.shape));
    p.value = &v;
    if (v.type.dtype == DType::kF16 || v.type.dtype == DType::kBF16)
      layer_.includes.push_back("sinter/half.h");
  }
  void input(const Value& v) {
    const auto same = [&](const Parameter& p) { return p.value == &v; };
    if (std::any_of(layer_.parameters.begin(), layer_.parameters.end(), same)) return;
    pointer(Kind::kInput, v, "const ");
    if (!v.data) return;
    Parameter& p = layer_.parameters.back();
    p.kind = Kind::kWeights;
    p.bytes = v.data->bytes();
    p.blob = store_.add(v.data->data(), static_cast<size_t>(p.bytes));
  }

  // Symbols that the bodies define themselves: extents of carried values, the iteration.
  void extents() {
    Needed needed;
    for (const auto& b : n_.bodies)
      for (const Value* v : b->inputs) own(needed, *v);
    for (size_t k = 0; k < bodies_.size(); ++k)
      if (n_.bodies[k]->unreachable.empty()) needed.body(*n_.bodies[k], bodies_[k]);
    std::set<const Symbol*> counts;
    for (const Value* v : n_.outputs)
      for (const Dim& d : v->type.shape) {
        std::vector<SymbolPtr> symbols;
        d.collect_symbols(symbols);
        for (const SymbolPtr& s : symbols) {
          if (s->from_data && s->origin.ends_with(" of " + label(n_))) {
            if (!counts.insert(s.get()).second) continue;
            Parameter& p = add(Kind::kCount, "std::int64_t*", "count_" + variable(*s), s->origin);
            p.symbol = s;
            needed.find(s.get());
          } else {
            needed.use(s);
          }
        }
      }
    for (const Value* v : n_.inputs)
      if (v && !is_if())
        for (const Dim& d : v->type.shape) needed.use(d);
    for (const SymbolPtr& s : needed.list()) {
      names_.reserve(variable(*s));
      layer_.parameters.push_back({.kind = Kind::kSymbol,
                                   .type = "std::int64_t",
                                   .name = variable(*s),
                                   .comment = s->origin,
                                   .symbol = s});
    }
  }
  void own(Needed& needed, const Value& v) const {
    if (is_if()) return;
    const auto mine = [&](const Dim& d) {
      std::vector<SymbolPtr> symbols;
      d.collect_symbols(symbols);
      for (const SymbolPtr& s : symbols)
        if (s->from_data && s->origin.find(" in " + label(n_)) != std::string::npos) needed.find(s.get());
    };
    for (const Dim& d : v.type.shape) mine(d);
    for (const Dim& d : v.elements) mine(d);
  }

  void scratch(const std::string& name, const Value& v) {
    const std::string type(cpp_name(v.type.dtype));
    Parameter& p = add(Kind::kScratch, type + "*", name, "scratch: the next " + shape_comment(v.type.shape));
    p.bytes = std::max<int64_t>(bound_bytes(v), 1);
    p.value = &v;
  }
  void buffers() {
    const LoopForm f = loop_form(n_);
    for (size_t k = 0; k < f.states; ++k) {
      const Value& next = *n_.bodies[0]->outputs[f.body_output(k)];
      const bool steady = next.type.shape == n_.outputs[k]->type.shape;
      if (!steady) scratch(identifier(n_.bodies[0]->inputs[f.first + k]->name) + "_even", next);
      scratch(identifier(n_.bodies[0]->inputs[f.first + k]->name) + "_odd", next);
    }
  }

  void arena() {
    int64_t bytes = 0;
    bool weights = false;
    for (const Plan& plan : bodies_) {
      bytes = std::max(bytes, plan.arena_bytes);
      weights = weights || uses_weights(plan);
    }
    names_ = Names();  // these have the names that calls use; the others are renamed when written
    const bool shared = has_free_iterations();
    layer_.shares = shared ? threads_ : 1;
    if (bytes > 0) {
      Parameter& a = add(Kind::kScratch, "unsigned char*", shared ? "arenas" : "a",
                         "scratch: the arena of what is inside");
      a.bytes = shared ? apart(bytes) * threads_ : bytes;
      a.more_parts = shared ? apart(bytes) * (threads_ - 1) : 0;
    }
    if (weights) add(Kind::kWeights, "const unsigned char*", "w", "all weights");
    if (shared || std::any_of(bodies_.begin(), bodies_.end(), uses_pool))
      add(Kind::kPool, "const sinter_pool*", "pool", "the threads, or null");
    if (shared) layer_.includes.push_back("sinter/parts.h");
  }

  // Whether threads can share the iterations, and it is worth while.
  bool has_free_iterations() const {
    if (threads_ == 1 || is_if()) return false;
    const LoopForm form = loop_form(n_);
    const bool counted = form.scan || (n_.inputs[0] && (!n_.inputs[1] || is_true(*n_.inputs[1])) &&
                                       is_true(*n_.bodies[0]->outputs[0]));
    const auto reports = [](const Parameter& p) { return p.kind == Kind::kCount; };
    if (form.states > 0 || form.results == 0 || !counted || calls_custom(bodies_[0]) ||
        std::any_of(layer_.parameters.begin(), layer_.parameters.end(), reports))
      return false;
    const Shape& rows = n_.outputs[0]->type.shape;
    return worth_parts(layer_.flops * static_cast<double>(rows[0].hi()),
                       static_cast<double>(product(rows).hi()), kInRuns);
  }
  // A user's function may be for one thread only.
  static bool calls_custom(const Plan& plan) {
    return std::any_of(plan.layers.begin(), plan.layers.end(),
                       [](const Layer& l) { return l.algorithm == Algorithm::kForeign; }) ||
           std::any_of(plan.bodies.begin(), plan.bodies.end(), [](const std::vector<Plan>& inside) {
             return std::any_of(inside.begin(), inside.end(), calls_custom);
           });
  }

  void describe() {
    std::string counts;
    double flops = 0;
    for (const Plan& plan : bodies_) {
      double sum = 0;
      for (const Layer& l : plan.layers) sum += l.flops;
      flops = is_if() ? std::max(flops, sum) : sum;
      counts += (counts.empty() ? "" : " or ") + std::to_string(plan.layers.size());
    }
    layer_.flops = flops;
    layer_.summary = fmt::format("{} of {} layers", n_.op->name, counts);
  }

  const Node& n_;
  const std::vector<Plan>& bodies_;
  WeightStore& store_;
  const int threads_;
  Names names_;
  Layer layer_;
};

}  // namespace

Layer control_layer(const Node& n, const std::vector<Plan>& bodies, WeightStore& store,
                    const std::string& function, int threads) {
  for (const char* axes : {"scan_input_axes", "scan_output_axes"})
    for (const int64_t axis : n.attributes.integers(axes))
      if (axis != 0)
        refuse_node(n, "code is generated for scans along axis 0 only: pass simplify_control is needed");
  return ControlLayer(n, bodies, store, threads).make(function);
}

}  // namespace sinter
