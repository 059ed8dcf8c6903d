// fold_crop: a constant Slice of spatial axes behind a ConvTranspose goes into its padding, so that what
// would be cut off is never computed. Exporters of frameworks whose transposed convolutions pad otherwise
// than ONNX's write such pairs.
//
// Padding of a ConvTranspose is what is dropped of its result. It stays below the kernel's extent: then every
// result is one of a convolution with padding that isn't negative.
#include "ops/windows/window.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

// Elements dropped at the begin and end of each axis; null where some are not known, or steps are not 1.
struct Crop {
  std::vector<int64_t> begin, end;
};
std::optional<Crop> crop_of(const Node& slice) {
  const Shape &in = slice.inputs[0]->type.shape, &out = slice.outputs[0]->type.shape;
  const size_t rank = in.size();
  const auto starts = integers_of(slice.input(1)), axes = integers_of(slice.input(3)),
             steps = integers_of(slice.input(4));
  if (!starts || (slice.input(3) && !axes) || (slice.input(4) && !steps)) return std::nullopt;
  Crop crop{std::vector<int64_t>(rank, 0), {}};
  for (size_t i = 0; i < starts->size(); ++i) {
    if (steps && (*steps)[i] != 1) return std::nullopt;
    const int64_t axis = axes ? (*axes)[i] : static_cast<int64_t>(i);
    const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
    const Dim start = (*starts)[i] < 0 ? in[a] + Dim((*starts)[i]) : Dim((*starts)[i]);
    if (!start.is_static()) return std::nullopt;
    crop.begin[a] = start.value();
  }
  for (size_t a = 0; a < rank; ++a) {
    const Dim rest = in[a] - out[a] - Dim(crop.begin[a]);
    if (!rest.is_static()) return std::nullopt;
    crop.end.push_back(rest.value());
  }
  return crop;
}

bool fold_into_maker(Graph& g, const Order& order, Node* slice) {
  if (!is_op(slice, "Slice")) return false;
  Node* conv = slice->inputs[0]->producer;
  if (!is_op(conv, "ConvTranspose") || only_user(g, order, conv) != slice) return false;
  const std::optional<Crop> crop = crop_of(*slice);
  if (!crop || crop->begin[0] + crop->end[0] + crop->begin[1] + crop->end[1] != 0) return false;
  const Window w = window_of(*conv);
  if (!w.has_static_pads()) return false;
  const auto more = conv->attributes.integers("output_padding", std::vector<int64_t>(w.rank(), 0));
  std::vector<int64_t> pads(2 * w.rank());
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t first = crop->begin[i + 2], last = crop->end[i + 2],
                  reach = (w.kernel[i] - 1) * w.dilations[i];
    // An output_shape beyond what the sums reach adds elements at the end.
    const Dim sums = (w.in[i] - 1) * Dim(w.strides[i]) + Dim(more[i]) + w.extent(i),
              beyond = w.out[i] - (sums - w.pads_begin[i] - w.pads_end[i]);
    if (!beyond.is_static() || first < 0 || last < 0) return false;
    pads[i] = w.pads_begin[i].value() + first;
    pads[i + w.rank()] = w.pads_end[i].value() + last - beyond.value();
    for (const int64_t p : {pads[i], pads[i + w.rank()]})
      if (p < 0 || p > reach) return false;
  }
  const TensorType type = slice->outputs[0]->type;
  conv->attributes.set("pads", pads);
  for (const char* other : {"auto_pad", "output_shape"}) conv->attributes.erase(other);
  add_sources(*conv, *slice);
  take_output(conv, 0, slice, 0);
  infer_as(g, *conv, type);
  return true;
}

}  // namespace

bool fold_crop(Graph& g, const PassOptions&) {
  bool changed = false;
  const Order order(g);
  for (Node* n : snapshot(g)) changed |= fold_into_maker(g, order, n);
  g.erase_unused();
  return changed;
}

}  // namespace sinter
