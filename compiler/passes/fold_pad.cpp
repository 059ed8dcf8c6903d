// fold_pad: a constant Pad of spatial axes goes into the padding of the Conv or pool behind it, where that is
// exactly the same.
//
// Conv pads with zeros, so a Pad with 0 just adds up. An AveragePool counts explicit zeros as elements: the
// same as its own padding with count_include_pad. A MaxPool ignores its padding: the same as padding with
// -infinity, and as padding with 0 behind an operator whose results are never negative, as long as every
// window reaches past the padding. ceil_mode lets a last window begin in the padding: left alone.
#include <algorithm>
#include <cmath>

#include "ops/products/contraction.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

struct Padding {
  std::vector<int64_t> begin, end;  // per spatial axis
  double value = 0;
};

std::optional<Padding> padding_of(const Node* n) {
  if (!is_op(n, "Pad") || n->attributes.text("mode", "constant") != "constant") return std::nullopt;
  const size_t rank = n->inputs[0]->type.shape.size();
  const auto pads = integers_of(n->input(1));
  if (!pads || rank < 3) return std::nullopt;
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  if (n->input(3)) {
    const auto given = integers_of(n->input(3));
    if (!given) return std::nullopt;
    axes = *given;
  }
  std::vector<int64_t> begin(rank, 0), end(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i]);
    begin[axis] = (*pads)[i];
    end[axis] = (*pads)[i + axes.size()];
  }
  if (begin[0] != 0 || end[0] != 0 || begin[1] != 0 || end[1] != 0) return std::nullopt;
  Padding p{{begin.begin() + 2, begin.end()}, {end.begin() + 2, end.end()}, 0};
  for (size_t i = 0; i < p.begin.size(); ++i)
    if (p.begin[i] < 0 || p.end[i] < 0) return std::nullopt;
  if (n->input(2)) {
    const auto v = uniform_of(n->input(2));
    if (!v) return std::nullopt;
    p.value = *v;
  }
  return p;
}

bool never_negative(const Value* v) {
  const Node* n = v->producer;
  if (is_op(n, "Relu") || is_op(n, "Sigmoid") || is_op(n, "Abs")) return true;
  if (!is_op(n, "Clip")) return false;
  const auto low = uniform_of(n->input(1));
  return low && *low >= 0;
}

bool pool_allows(const Node& n, const Padding& p, const std::vector<int64_t>& pads) {
  const std::vector<int64_t> kernel = n.attributes.integers("kernel_shape");
  const std::vector<int64_t> dilations =
      n.attributes.integers("dilations", std::vector<int64_t>(kernel.size(), 1));
  if (n.attributes.integer("ceil_mode", 0) != 0 || kernel.size() != p.begin.size()) return false;
  for (size_t i = 0; i < kernel.size(); ++i)
    if (dilations[i] != 1 || std::max(p.begin[i] + pads[i], p.end[i] + pads[i + kernel.size()]) >= kernel[i])
      return false;
  if (is_op(&n, "MaxPool")) {
    if (n.has_output(1)) return false;
    return p.value == -INFINITY || (p.value == 0 && never_negative(n.inputs[0]->producer->inputs[0]));
  }
  const bool counts = n.attributes.integer("count_include_pad", 0) != 0;
  const bool unpadded = std::all_of(pads.begin(), pads.end(), [](int64_t v) { return v == 0; });
  return p.value == 0 && (counts || unpadded);
}

bool fold_into(Graph& g, Node* n) {
  const bool conv = is_op(n, "Conv"), average = is_op(n, "AveragePool"), max = is_op(n, "MaxPool");
  if (!(conv || average || max) || !n->has_output(0)) return false;
  Node* pad = n->inputs[0]->producer;
  const auto p = padding_of(pad);
  const std::string automatic = n->attributes.text("auto_pad", "NOTSET");
  if (!p || (automatic != "NOTSET" && automatic != "VALID" && !automatic.empty())) return false;
  const size_t spatial = p->begin.size();
  std::vector<int64_t> pads = n->attributes.integers("pads", std::vector<int64_t>(2 * spatial, 0));
  if (automatic == "VALID") pads.assign(2 * spatial, 0);
  if (conv ? p->value != static_cast<double>(x_zero_of(*n)) : !pool_allows(*n, *p, pads)) return false;
  for (size_t i = 0; i < spatial; ++i) {
    pads[i] += p->begin[i];
    pads[i + spatial] += p->end[i];
  }
  const TensorType type = n->outputs[0]->type;
  n->attributes.set("pads", pads);
  n->attributes.erase("auto_pad");
  if (average) n->attributes.set("count_include_pad", int64_t{1});
  g.set_input(n, 0, pad->inputs[0]);
  std::vector<std::string> sources = pad->sources;
  std::swap(sources, n->sources);
  for (std::string& s : sources)
    if (std::find(n->sources.begin(), n->sources.end(), s) == n->sources.end()) n->sources.push_back(s);
  infer_as(g, *n, type);
  return true;
}

}  // namespace

bool fold_pad(Graph& g, const PassOptions&) {
  bool changed = false;
  for (Node* n : snapshot(g)) changed |= fold_into(g, n);
  g.erase_unused();
  return changed;
}

}  // namespace sinter
