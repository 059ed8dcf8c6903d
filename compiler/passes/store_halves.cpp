// store_halves: with --fp16 where the target has no arithmetic of halves, the constant factor of a product is
// rounded to halves; the layer computes floats.
//
// The tensor stays float32, of numbers that are halves: packing sees that and stores 16 bits each, which a
// panel at a time become floats before they are multiplied (kernels/products/panel_weights.h). So these
// weights take half the flash. Tensors between layers stay floats: a core without the arithmetic would
// convert each on its way in and out, and gain nothing but room.
//
// A factor stays as it is where halves lose too much of it: numbers beyond their range, or all so small that
// they have few digits there; and where, on samples of the inputs, the layer's results would be further off
// than the limit. The attribute `no_halves` says so.
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "passes/half_errors.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

constexpr double kDigits = 0x1p-11;  // what rounding to a half costs a normal number

bool has_factor(const Node& n) {
  if (!is_op(&n, "Conv") && !is_op(&n, "ConvTranspose") && !is_op(&n, "MatMul") && !is_op(&n, "Gemm"))
    return false;
  return n.inputs.size() > 1 && n.inputs[1] && n.inputs[1]->data && n.inputs[1]->type.dtype == DType::kF32;
}

Tensor rounded(const Tensor& t) { return t.converted(DType::kF16).converted(DType::kF32); }

class Rounding {
 public:
  Rounding(Graph& g, const PassOptions& options) : g_(g), options_(options) {}

  bool run() {
    for (const auto& n : g_.nodes)
      if (has_factor(*n) && options_.keep_f32.count(n->name) == 0) choose(n.get());
    if (!g_.parent && !options_.samples.empty()) measure();
    for (const auto& [n, t] : factors_) {
      if (n->freedom.half_error > options_.half_error) {
        n->attributes.set("no_halves", std::string("its own error is above the limit"));
        continue;
      }
      Value*& v = constants_[n->inputs[1]];
      if (!v) v = g_.add_constant(n->inputs[1]->name, t);
      g_.set_input(n, 1, v);
    }
    g_.erase_unused();
    return !constants_.empty();
  }

 private:
  void choose(Node* n) {
    const Tensor t = rounded(*n->inputs[1]->data);
    const double off = relative_error(t, *n->inputs[1]->data);
    if (off > 0 && off <= kDigits) factors_.emplace_back(n, t);
  }

  void measure() {
    std::unordered_map<const Node*, const Tensor*> coarse;
    for (const auto& [n, t] : factors_) coarse[n] = &t;
    HalfReport unread, &report = options_.half_report ? *options_.half_report : unread;
    try {
      const auto errors = factor_errors(g_, options_.samples, coarse);
      for (const auto& [n, t] : factors_)
        if (const auto e = errors.find(n); e != errors.end()) n->freedom.half_error = e->second;
    } catch (const Refusal& r) {  // what can't be evaluated can't be measured
      if (!options_.half_report) throw;
      report.unmeasured = r.what();
    }
  }

  Graph& g_;
  const PassOptions& options_;
  std::vector<std::pair<Node*, Tensor>> factors_;  // what would be instead of the second operand
  std::unordered_map<const Value*, Value*> constants_;
};

}  // namespace

bool store_halves(Graph& g, const PassOptions& options) {
  return options.half_weights && !options.exact && Rounding(g, options).run();
}

}  // namespace sinter
