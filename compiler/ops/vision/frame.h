// What a frame_to_tensor node means, resolved: for its eval, for the code generator, and for whoever has to
// undo it.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter {

// How the bytes of a camera's picture lie in memory.
enum class PixelFormat { kRgb, kBgr, kRgba, kBgra, kGray, kNv12, kNv21, kYuyv, kUyvy };
struct PixelLayout {
  PixelFormat format;
  const char* name;
  int64_t bytes;       // of a pixel in a row; of nv12, in a row of luma
  bool yuv, planes;    // luma and chroma; in two planes
  bool swapped;        // blue before red, or v before u (nv21), or chroma before luma (uyvy)
  const char* layout;  // for people
};
const std::vector<PixelLayout>& pixel_layouts();
const PixelLayout& layout_of(PixelFormat);
const PixelLayout* find_layout(const std::string& name);  // null where unknown

// Rows of bytes that a frame of so many rows has, and the least bytes of a row.
int64_t frame_rows(const PixelLayout&, int64_t height);
int64_t least_stride(const PixelLayout&, int64_t width);

enum class FrameFit { kStretch, kCrop, kLetterbox };
enum class ChannelOrder { kRgb, kBgr, kGray };

// The frame resized to height x width, and which row and column of that is the picture's first; negative: a
// border of so many.
struct FrameGeometry {
  int64_t height, width, top, left;
};
FrameGeometry frame_geometry(FrameFit, int64_t height, int64_t width, int64_t to_height, int64_t to_width);

// Where an output position along an axis lies in the frame: between pixel `first` and the next, which weighs
// `weight`.
struct FrameTap {
  int64_t first;
  double weight;
};
// Half-pixel centres, edges repeated: position i of `to` in `from` pixels.
FrameTap frame_tap(int64_t i, int64_t to, int64_t from);

// The coefficients of an RGB byte in units of 2^-13.
struct YuvCoefficients {
  int32_t black, luma, red_of_v, green_of_u, green_of_v, blue_of_u;
};
YuvCoefficients yuv_coefficients(bool bt709, bool full);

// The weights of red, green and blue in gray.
inline constexpr std::array<double, 3> kGrayWeights = {0.299, 0.587, 0.114};

struct FrameRule {
  PixelFormat format = PixelFormat::kRgb;
  int64_t height = 0, width = 0;  // of the frame
  FrameFit fit = FrameFit::kStretch;
  ChannelOrder order = ChannelOrder::kRgb;
  int64_t to_height = 0, to_width = 0;        // of the picture
  std::vector<float> factor, offset, border;  // of each channel; border: values of the picture
  bool bt709 = false, full = false;
  DType dtype = DType::kF32;
  // Of integers: what is added once they are rounded, and whether halves are rounded to even, not upwards.
  int64_t zero = 0;
  bool even = false;
  int64_t channels() const { return order == ChannelOrder::kGray ? 1 : 3; }
};
FrameRule frame_rule(const Attributes&);
void set_frame_rule(Attributes&, const FrameRule&);

}  // namespace sinter
