// half_errors: the graph is evaluated in floats, node by node. Each node that may compute halves is evaluated
// once more with its operands rounded to halves, and its result rounded: that is what storing costs. What the
// sums cost is added from the model of docs/decisions/0020-half-arithmetic.md, 2^-12 sqrt(k) of k products in
// a block of halves; kernels that rearrange sums measure their own (kernels/winograd_choice.h).
#include "passes/half_errors.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ir/budget.h"
#include "ops/op.h"

namespace sinter {
namespace {

constexpr double kMost = 32752;  // half of what a half holds: samples are not all that will come
constexpr int64_t kBlock = 128;  // products that a block sums as halves (kernels/tiles.h)
constexpr double kOfProduct = 0x1p-12;

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
  if (n.op->domain[0] != 0 || n.inputs.size() < 2 || !n.inputs[1] || !n.inputs[1]->data) return 0;
  const Tensor& w = *n.inputs[1]->data;
  const std::string_view op = n.op->name;
  if (op == "Conv") return w.size() / std::max<int64_t>(1, w.dim(0));
  if (op == "ConvTranspose") return w.size() / std::max<int64_t>(1, w.dim(1));
  if (op == "MatMul" || op == "Gemm")
    return w.rank() == 2 ? w.dim(n.attributes.integer("transB", 0) != 0) : 0;
  return 0;
}

// Of one node, whose floats made `out` of `in`.
double error_of(const Node& n, const Tensors& in, const Tensors& out) {
  Tensors halves;
  for (const Tensor& t : in) {
    if (is_float_tensor(t) && !(largest(t) <= kMost)) return HUGE_VAL;
    halves.push_back(rounded(t));
  }
  double worst = 0;
  const Tensors coarse = evaluate(n, std::move(halves));
  for (size_t j = 0; j < out.size(); ++j) {
    if (!is_float_tensor(out[j])) continue;
    const double most = largest(out[j]);
    if (!(most <= kMost)) return HUGE_VAL;
    const Tensor got = rounded(coarse[j]);
    double off = 0;
    for (int64_t i = 0; i < got.size(); ++i)
      off = std::max(off, std::abs(static_cast<double>(got.as<float>()[i] - out[j].as<float>()[i])));
    if (most > 0) worst = std::max(worst, off / most);
  }
  return worst + kOfProduct * std::sqrt(static_cast<double>(std::min(depth_of(n), kBlock)));
}

// The values that are alive while the nodes are evaluated in their order.
class Run {
 public:
  explicit Run(const Graph& g) : g_(g) {
    for (const auto& n : g.nodes)
      for (const Value* v : n->inputs) last_[v] = n.get();
  }
  void set(const Value* v, Tensor t) { values_[v] = std::move(t); }
  Tensors inputs_of(const Node& n) const {
    Tensors in;
    for (const Value* v : n.inputs) in.push_back(!v ? Tensor() : v->data ? *v->data : values_.at(v));
    return in;
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

}  // namespace

std::unordered_map<const Node*, double> half_errors(const Graph& g, const std::vector<Tensors>& samples,
                                                    const std::function<bool(const Node&)>& wanted) {
  std::unordered_map<const Node*, double> errors;
  constexpr double kEnough = 1e15;  // whoever asks for halves waits for a run of the model
  Budget budget;
  budget.add_tensor(kEnough);
  const Budget::Use use(budget);
  for (const Tensors& sample : samples) {
    Run run(g);
    for (size_t i = 0; i < g.inputs.size() && i < sample.size(); ++i) run.set(g.inputs[i], sample[i]);
    for (const auto& n : g.nodes) {
      const Tensors in = run.inputs_of(*n), out = evaluate(*n, in);
      if (wanted(*n)) errors[n.get()] = std::max(errors[n.get()], error_of(*n, in, out));
      for (size_t j = 0; j < out.size(); ++j)
        if (n->outputs[j]) run.set(n->outputs[j], out[j]);
      run.forget_behind(*n);
    }
  }
  return errors;
}

}  // namespace sinter
