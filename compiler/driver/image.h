// Pictures as inputs: what --image says becomes a tensor.
#pragma once
#include <string>
#include <vector>

#include "driver/options.h"

namespace sinter {

struct ImageOptions {
  std::string input;  // empty: all
  enum class Fit { kStretch, kCrop, kLetterbox } fit = Fit::kStretch;
  enum class Order { kRgb, kBgr, kGray } order = Order::kRgb;
  bool order_given = false;
  double scale = 1;
  std::vector<double> mean{0}, std{1};  // one for all channels, or one each
};

// "NAME: fit=crop order=bgr scale=1/255 mean=0.5,0.5,0.5 std=0.25"; NAME: may be left out.
ImageOptions parse_image_options(const std::string& text, const std::vector<std::string>& names);

// What is said of an input: the last options that name it or all.
ImageOptions options_of_input(const std::vector<ImageOptions>& given, const std::string& input);

bool is_image_file(const std::string& path);  // by its ending: .png .jpg .jpeg

// The picture as the input wants it: [N=1,C,H,W], [1,H,W,C], the same without N, or [H,W] (C is 1 or 3; found
// out from the extents). A pixel becomes (byte * scale - mean) / std. Where H or W is free within bounds, the
// picture's own size is taken, else it is resized bilinearly with half-pixel centres: stretched, or
// (crop) scaled to cover and cut, or (letterbox) scaled to fit and bordered with black.
Tensor image_tensor(const std::string& path, const DeclaredInput& input, const ImageOptions& options);

}  // namespace sinter
