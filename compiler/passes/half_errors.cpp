// half_errors: the graph is evaluated in floats, node by node. Each node that may compute halves is evaluated
// once more with its operands rounded to halves, and its result rounded: that is what storing costs. What the
// sums cost is added from the model of docs/decisions/0020-half-arithmetic.md, 2^-12 sqrt(k) of k products in
// a block of halves; kernels that rearrange sums measure their own (kernels/convolutions/winograd_choice.h).
//
// evaluate_in_halves does the same from layer to layer, so that errors reach the outputs as they will; there
// the sums' part is noise.
#include "passes/half_errors.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string_view>

#include "ir/budget.h"
#include "ops/op.h"
#include "ops/sequences/recurrent.h"
#include "passes/half_recurrence.h"

namespace sinter {
namespace {

constexpr double kMost = 32752;  // half of what a half holds: samples are not all that will come
constexpr int64_t kBlock = 128;  // products that a block sums as halves (kernels/products/tiles.h)
constexpr double kOfProduct = 0x1p-12;
constexpr double kOfNoise = 0.8;  // of that model, of the mean square: as measured of real sums
constexpr double kEnough = 1e15;  // steps of evaluation: whoever asks for halves waits for runs of the model

using Tensors = std::vector<Tensor>;

bool is_float_tensor(const Tensor& t) { return t && t.dtype() == DType::kF32; }

double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.size(); ++i) {
    const double x = std::abs(static_cast<double>(t.as<float>()[i]));
    most = std::isnan(x) ? HUGE_VAL : std::max(most, x);
  }
  return most;
}

Tensor rounded(const Tensor& t) {
  return is_float_tensor(t) ? t.converted(DType::kF16).converted(DType::kF32) : t;
}

// Products that a sum of the node has.
int64_t depth_of(const Node& n) {
  if (n.op->domain[0] != 0 || n.inputs.size() < 2 || !n.inputs[1]) return 0;
  if (is_recurrent(n)) return n.inputs[1]->type.shape[2].value() + n.inputs[2]->type.shape[2].value();
  const std::string_view op = n.op->name;
  if (op == "MatMul" || op == "Gemm") {  // whose first factor is not transposed where it may be of halves
    const Shape& a = n.inputs[0]->type.shape;
    return !a.empty() && a.back().is_static() ? a.back().value() : kBlock;
  }
  if (!n.inputs[1]->data) return 0;
  const Tensor& w = *n.inputs[1]->data;
  if (op == "Conv") return w.size() / std::max<int64_t>(1, w.dim(0));
  if (op == "ConvTranspose") return w.size() / std::max<int64_t>(1, w.dim(1));
  return 0;
}

double sums_error(const Node& n) {
  return kOfProduct * std::sqrt(static_cast<double>(std::min(depth_of(n), kBlock)));
}

// A share of the mean square. Winograd's sums are off by more than others where a kernel takes them.
double noise_of(const Node& n) {
  constexpr double kOfWinograd = 2.5;
  const bool rearranged = n.op == find_op("", "Conv") && n.attributes.integer("group", 1) == 1 &&
                          n.attributes.integers("strides", {1, 1}) == std::vector<int64_t>{1, 1} &&
                          n.inputs[1]->data && n.inputs[1]->data->rank() == 4 &&
                          n.inputs[1]->data->dim(2) == 3 && n.inputs[1]->data->dim(3) == 3;
  return kOfNoise * sums_error(n) * (rearranged ? kOfWinograd : 1);
}

// What the node makes of operands that are rounded to halves, before its results are.
Tensors made_of_halves(const Node& n, Tensors in, std::mt19937& random) {
  for (size_t i = 0; i < in.size(); ++i)
    if (!stays_float(n, i)) in[i] = rounded(in[i]);
  if (is_recurrent(n)) return recurrence_in_halves(n, in, noise_of(n), random);
  return evaluate(n, std::move(in));
}

// Of one node, whose floats made `out` of `in`.
double error_of(const Node& n, const Tensors& in, const Tensors& out) {
  for (size_t i = 0; i < in.size(); ++i)
    if (is_float_tensor(in[i]) && !stays_float(n, i) && !(largest(in[i]) <= kMost)) return HUGE_VAL;
  double worst = 0;
  std::mt19937 random(1);
  const Tensors coarse = made_of_halves(n, in, random);
  for (size_t j = 0; j < out.size(); ++j) {
    if (!is_float_tensor(out[j])) continue;
    if (!(largest(out[j]) <= kMost)) return HUGE_VAL;
    worst = std::max(worst, relative_error(rounded(coarse[j]), out[j]));
  }
  return is_recurrent(n) ? worst : worst + sums_error(n);
}

// What the node's layer of halves makes of `in`.
Tensors in_halves(const Node& n, Tensors in, std::mt19937& random) {
  Tensors out = made_of_halves(n, std::move(in), random);
  const double noise = is_recurrent(n) ? 0 : noise_of(n);
  for (Tensor& t : out) {
    if (!is_float_tensor(t)) continue;
    if (noise > 0) add_noise(t, noise, random);
    t = rounded(t);
  }
  return out;
}

// The values that are alive while the nodes are evaluated in their order.
class Run {
 public:
  explicit Run(const Graph& g) : g_(g) {
    for (const auto& n : g.nodes)
      for (const Value* v : n->inputs) last_[v] = n.get();
    for (const Value* v : g.outputs) last_[v] = nullptr;
  }
  void set(const Value* v, Tensor t) { values_[v] = std::move(t); }
  Tensors inputs_of(const Node& n) const {
    Tensors in;
    for (const Value* v : n.inputs) in.push_back(!v ? Tensor() : v->data ? *v->data : values_.at(v));
    return in;
  }
  Tensors outputs() const {
    Tensors out;
    for (const Value* v : g_.outputs) out.push_back(v->data ? *v->data : values_.at(v));
    return out;
  }
  void forget_behind(const Node& n) {
    for (const Value* v : n.inputs)
      if (v && last_[v] == &n) values_.erase(v);
  }

 private:
  const Graph& g_;
  std::unordered_map<const Value*, Tensor> values_;
  std::unordered_map<const Value*, const Node*> last_;
};

// Evaluates the graph for one sample; each(node, its inputs) gives the node's outputs. The graph's.
template <class Each>
Tensors walk(const Graph& g, const Tensors& sample, Each each) {
  Budget budget;
  budget.add_tensor(kEnough);
  const Budget::Use use(budget);
  Run run(g);
  for (size_t i = 0; i < g.inputs.size() && i < sample.size(); ++i) run.set(g.inputs[i], sample[i]);
  for (const auto& n : g.nodes) {
    Tensors out = each(*n, run.inputs_of(*n));
    for (size_t j = 0; j < out.size(); ++j)
      if (n->outputs[j]) run.set(n->outputs[j], std::move(out[j]));
    run.forget_behind(*n);
  }
  return run.outputs();
}

}  // namespace

double relative_error(const Tensor& got, const Tensor& want) {
  if (!got || !want || !is_float(got.dtype()) || got.dtype() != want.dtype() || got.shape() != want.shape())
    return -1;
  const Tensor x = got.converted(DType::kF32), y = want.converted(DType::kF32);
  const float *a = x.as<float>(), *b = y.as<float>();
  double most = 0, off = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    off = std::isfinite(d) ? std::max(off, d) : HUGE_VAL;
  }
  for (int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(b[i])) most = std::max(most, std::abs(static_cast<double>(b[i])));
  return most > 0 ? off / most : 0;
}

HalfErrors half_errors(const Graph& g, const std::vector<Tensors>& samples) {
  HalfErrors errors;
  for (const Tensors& sample : samples)
    errors.outputs.push_back(walk(g, sample, [&](const Node& n, Tensors in) {
      Tensors out = evaluate(n, in);
      if (has_half_form(n)) errors.layers[&n] = std::max(errors.layers[&n], error_of(n, in, out));
      return out;
    }));
  return errors;
}

std::unordered_map<const Node*, double> factor_errors(
    const Graph& g, const std::vector<Tensors>& samples,
    const std::unordered_map<const Node*, const Tensor*>& factors) {
  std::unordered_map<const Node*, double> errors;
  for (const Tensors& sample : samples)
    walk(g, sample, [&](const Node& n, Tensors in) {
      Tensors out = evaluate(n, in);
      if (const auto f = factors.find(&n); f != factors.end()) {
        in[1] = *f->second;
        double& worst = errors[&n];
        worst = std::max(worst, relative_error(evaluate(n, std::move(in))[0], out[0]));
      }
      return out;
    });
  return errors;
}

std::vector<Tensor> evaluate_in_halves(const Graph& g, const Tensors& sample,
                                       const std::unordered_map<const Node*, Halves>& layers) {
  std::mt19937 random(1);
  return walk(g, sample, [&](const Node& n, Tensors in) {
    return layers.count(&n) != 0 ? in_halves(n, std::move(in), random) : evaluate(n, std::move(in));
  });
}

}  // namespace sinter
