// What a Resize node means, resolved: for its eval, and for the code generator.
#pragma once
#include <vector>

#include "ir/graph.h"
#include "sinter/resize_coords.h"

namespace sinter {

enum class ResizeMode { kNearest, kLinear, kCubic };

struct ResizeRule {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeTransform transform = ResizeTransform::kHalfPixel;
  ResizeNearest nearest = ResizeNearest::kRoundPreferFloor;
  float cubic_coefficient = -0.75f;
  float extrapolation_value = 0;
  bool exclude_outside = false, antialias = false;
};
ResizeRule resize_rule(const Attributes&);  // refuses unknown modes, without the node's name

// The axes that scales, sizes and roi speak of, in their order.
std::vector<int64_t> resize_axes(const Attributes&, int64_t rank);

// Whether the node's run decides scales, sizes within an aspect ratio, or the part that it resizes.
bool resized_by_run(const Node&);
// Whether axis `a` of the data is known to stay what it is, element for element.
bool resize_keeps(const Node&, size_t a);

// Whether element i of axis `a` of the result is known to be element i / times of the data's, i.e. each is
// repeated that often.
bool resize_repeats(const Node&, size_t a, int64_t times);

// The geometry of every axis of the data (scale 1 where not resized), once all extents are known. `scales`,
// `sizes`, `roi`: null where absent or empty.
std::vector<ResizeAxis> resize_geometry(const Attributes&, const std::vector<int64_t>& in,
                                        const std::vector<int64_t>& out, const Tensor* scales,
                                        const Tensor* sizes, const Tensor* roi);

// floor(in * scale), the product rounded to float as ONNX Runtime does: of an unknown extent as a fraction of
// it where one gives the same extents up to its bound.
Dim resized_extent(const Dim& in, float scale);

}  // namespace sinter
