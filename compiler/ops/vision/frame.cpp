// frame_to_tensor: a camera's frame, rows of bytes [rows, stride], as the picture [1, height, width,
// channels] that a model takes. Made of the words of --pre (driver/frame_words.h).
//
// Bytes of luma and chroma become RGB bytes first, each pixel with the chroma of its pair or square. The
// frame's pixels are then resized bilinearly (half-pixel centres, edges repeated), cut or bordered, and each
// channel becomes byte * factor + offset. Integers are rounded, halves upwards, and saturate.
#include "ops/vision/frame.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace sinter {

const std::vector<PixelLayout>& pixel_layouts() {
  static const std::vector<PixelLayout> table = {
      {PixelFormat::kRgb, "rgb", 3, false, false, false, "red, green, blue"},
      {PixelFormat::kBgr, "bgr", 3, false, false, true, "blue, green, red"},
      {PixelFormat::kRgba, "rgba", 4, false, false, false, "red, green, blue, alpha"},
      {PixelFormat::kBgra, "bgra", 4, false, false, true, "blue, green, red, alpha"},
      {PixelFormat::kGray, "gray", 1, false, false, false, "gray"},
      {PixelFormat::kNv12, "nv12", 1, true, true, false,
       "rows of luma, behind them rows of u, v for each square of four pixels"},
      {PixelFormat::kNv21, "nv21", 1, true, true, true,
       "rows of luma, behind them rows of v, u for each square of four pixels"},
      {PixelFormat::kYuyv, "yuyv", 2, true, false, false, "luma, u, luma, v for each pair of pixels"},
      {PixelFormat::kUyvy, "uyvy", 2, true, false, true, "u, luma, v, luma for each pair of pixels"},
  };
  return table;
}

const PixelLayout& layout_of(PixelFormat f) { return pixel_layouts()[static_cast<size_t>(f)]; }

const PixelLayout* find_layout(const std::string& name) {
  for (const PixelLayout& l : pixel_layouts())
    if (l.name == name) return &l;
  return nullptr;
}

int64_t frame_rows(const PixelLayout& l, int64_t height) { return l.planes ? height / 2 * 3 : height; }
int64_t least_stride(const PixelLayout& l, int64_t width) { return width * l.bytes; }

FrameGeometry frame_geometry(FrameFit fit, int64_t height, int64_t width, int64_t to_height,
                             int64_t to_width) {
  if (fit == FrameFit::kStretch) return {to_height, to_width, 0, 0};
  const double fy = static_cast<double>(to_height) / static_cast<double>(height),
               fx = static_cast<double>(to_width) / static_cast<double>(width);
  const double f = fit == FrameFit::kCrop ? std::max(fy, fx) : std::min(fy, fx);
  const auto scaled = [f](int64_t n) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::lround(static_cast<double>(n) * f)));
  };
  FrameGeometry g{scaled(height), scaled(width), 0, 0};
  g.top = (g.height - to_height) / 2, g.left = (g.width - to_width) / 2;
  return g;
}

FrameTap frame_tap(int64_t i, int64_t to, int64_t from) {
  const double x =
      std::clamp((static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5,
                 0.0, static_cast<double>(from - 1));
  const auto first = static_cast<int64_t>(x);
  return {first, x - static_cast<double>(first)};
}

// Of BT.601 or BT.709: the weights of red and blue in luma; luma and chroma in bytes of 16..235 and 16..240,
// or 0..255.
YuvCoefficients yuv_coefficients(bool bt709, bool full) {
  const double red = bt709 ? 0.2126 : 0.299, blue = bt709 ? 0.0722 : 0.114, green = 1 - red - blue;
  const double luma = full ? 1 : 255.0 / 219, chroma = full ? 1 : 255.0 / 224;
  const auto units = [](double v) { return static_cast<int32_t>(std::lround(v * 8192)); };
  return {full ? 0 : 16,
          units(luma),
          units(2 * (1 - red) * chroma),
          units(-2 * (1 - blue) * blue / green * chroma),
          units(-2 * (1 - red) * red / green * chroma),
          units(2 * (1 - blue) * chroma)};
}

FrameRule frame_rule(const Attributes& a) {
  FrameRule r;
  const PixelLayout* layout = find_layout(a.text("format", ""));
  if (!layout) refuse("its format is {}", sinter::quoted(a.text("format", "")));
  r.format = layout->format;
  r.height = a.integer("height", 0), r.width = a.integer("width", 0);
  r.to_height = a.integer("to_height", 0), r.to_width = a.integer("to_width", 0);
  r.fit = static_cast<FrameFit>(a.integer("fit", 0));
  r.order = static_cast<ChannelOrder>(a.integer("order", 0));
  r.factor = a.reals("factor"), r.offset = a.reals("offset"), r.border = a.reals("border");
  r.bt709 = a.integer("bt709", 0) != 0, r.full = a.integer("full", 0) != 0;
  r.zero = a.integer("zero", 0), r.even = a.integer("even", 0) != 0;
  r.dtype = dtype_of_onnx(static_cast<int>(a.integer("dtype", onnx_of(DType::kF32))));
  return r;
}

void set_frame_rule(Attributes& a, const FrameRule& r) {
  a.set("format", std::string(layout_of(r.format).name));
  a.set("height", r.height), a.set("width", r.width);
  a.set("to_height", r.to_height), a.set("to_width", r.to_width);
  a.set("fit", static_cast<int64_t>(r.fit)), a.set("order", static_cast<int64_t>(r.order));
  a.set("factor", r.factor), a.set("offset", r.offset), a.set("border", r.border);
  if (r.bt709) a.set("bt709", int64_t{1});
  if (r.full) a.set("full", int64_t{1});
  if (r.zero != 0) a.set("zero", r.zero);
  if (r.even) a.set("even", int64_t{1});
  a.set("dtype", static_cast<int64_t>(onnx_of(r.dtype)));
}

namespace {

void infer_frame(Inference& x) {
  const FrameRule r = frame_rule(x.attributes());
  constexpr int64_t kMost = 1 << 16;
  const auto is_size = [](int64_t n) { return n >= 1 && n <= kMost; };
  x.require(is_size(r.height) && is_size(r.width), fmt::format("a frame of {}x{}", r.width, r.height));
  x.require(is_size(r.to_height) && is_size(r.to_width),
            fmt::format("a picture of {}x{}", r.to_width, r.to_height));
  const PixelLayout& l = layout_of(r.format);
  x.require(!l.yuv || (r.width % 2 == 0 && (!l.planes || r.height % 2 == 0)),
            fmt::format("{} of an odd size", l.name));
  x.require(x.dtype(0) == DType::kU8 && x.rank(0) == 2, "its frame isn't rows of bytes");
  x.require_equal(x.shape(0)[0], frame_rows(l, r.height), "rows of the frame");
  x.require(x.shape(0)[1].is_static() && x.shape(0)[1].value() >= least_stride(l, r.width),
            fmt::format("rows of {} bytes for {} pixels of {}", x.shape(0)[1].text(), r.width, l.name));
  for (const std::vector<float>* v : {&r.factor, &r.offset, &r.border})
    x.require(static_cast<int64_t>(v->size()) == r.channels(), "not a number for each channel");
  x.require(
      r.dtype == DType::kF32 || r.dtype == DType::kF16 || r.dtype == DType::kU8 || r.dtype == DType::kI8,
      fmt::format("a picture of {}", name_of(r.dtype)));
  x.set(0, r.dtype, {1, r.to_height, r.to_width, r.channels()});
}

using Rgb = std::array<double, 3>;

// The red, green and blue of the frame's pixels, 0..255.
class Frame {
 public:
  Frame(const Tensor& t, const FrameRule& r)
      : bytes_(t.as<uint8_t>()),
        stride_(t.dim(1)),
        rule_(r),
        layout_(layout_of(r.format)),
        yuv_(yuv_coefficients(r.bt709, r.full)) {}

  Rgb at(int64_t y, int64_t x) const {
    const uint8_t* row = bytes_ + y * stride_;
    const uint8_t* p = row + x * layout_.bytes;
    const auto byte = [](const uint8_t* b) { return static_cast<double>(*b); };
    switch (rule_.format) {
      case PixelFormat::kGray: return {byte(p), byte(p), byte(p)};
      case PixelFormat::kRgb:
      case PixelFormat::kRgba: return {byte(p), byte(p + 1), byte(p + 2)};
      case PixelFormat::kBgr:
      case PixelFormat::kBgra: return {byte(p + 2), byte(p + 1), byte(p)};
      case PixelFormat::kNv12: return rgb(*p, chroma(y, x)[0], chroma(y, x)[1]);
      case PixelFormat::kNv21: return rgb(*p, chroma(y, x)[1], chroma(y, x)[0]);
      case PixelFormat::kYuyv: return rgb(*p, row[x / 2 * 4 + 1], row[x / 2 * 4 + 3]);
      case PixelFormat::kUyvy: return rgb(p[1], row[x / 2 * 4], row[x / 2 * 4 + 2]);
    }
    return {};
  }

 private:
  const uint8_t* chroma(int64_t y, int64_t x) const {
    return bytes_ + (rule_.height + y / 2) * stride_ + x / 2 * 2;
  }
  Rgb rgb(int y, int u, int v) const {
    const auto whole = [](int units) {
      return std::clamp(std::floor(static_cast<double>(units) / 8192 + 0.5), 0.0, 255.0);
    };
    const int luma = (y - yuv_.black) * yuv_.luma;
    return {whole(luma + yuv_.red_of_v * (v - 128)),
            whole(luma + yuv_.green_of_u * (u - 128) + yuv_.green_of_v * (v - 128)),
            whole(luma + yuv_.blue_of_u * (u - 128))};
  }

  const uint8_t* bytes_;
  const int64_t stride_;
  const FrameRule& rule_;
  const PixelLayout& layout_;
  const YuvCoefficients yuv_;
};

double rounded(const FrameRule& r, double v) {
  if (is_float(r.dtype)) return v;
  const double least = r.dtype == DType::kI8 ? -128 : 0;
  const double whole = r.even ? std::nearbyint(v) : std::floor(v + 0.5);
  return std::clamp(whole + static_cast<double>(r.zero), least, least + 255);
}

void eval_frame(Evaluation& e) {
  const FrameRule r = frame_rule(e.attributes());
  const Frame frame(e.in[0], r);
  const FrameGeometry g = frame_geometry(r.fit, r.height, r.width, r.to_height, r.to_width);
  Tensor& out = e.out[0];
  int64_t at = 0;
  for (int64_t y = 0; y < r.to_height; ++y)
    for (int64_t x = 0; x < r.to_width; ++x) {
      const int64_t row = y + g.top, column = x + g.left;
      const bool inside = row >= 0 && row < g.height && column >= 0 && column < g.width;
      Rgb rgb{};
      if (inside) {
        const FrameTap down = frame_tap(row, g.height, r.height),
                       across = frame_tap(column, g.width, r.width);
        const int64_t below = std::min(down.first + 1, r.height - 1),
                      right = std::min(across.first + 1, r.width - 1);
        const Rgb corners[] = {frame.at(down.first, across.first), frame.at(down.first, right),
                               frame.at(below, across.first), frame.at(below, right)};
        for (size_t c = 0; c < 3; ++c) {
          const double top = corners[0][c] * (1 - across.weight) + corners[1][c] * across.weight,
                       bottom = corners[2][c] * (1 - across.weight) + corners[3][c] * across.weight;
          rgb[c] = top * (1 - down.weight) + bottom * down.weight;
        }
      }
      if (r.order == ChannelOrder::kBgr) std::swap(rgb[0], rgb[2]);
      if (r.order == ChannelOrder::kGray && r.format != PixelFormat::kGray)
        rgb[0] = rgb[0] * kGrayWeights[0] + rgb[1] * kGrayWeights[1] + rgb[2] * kGrayWeights[2];
      for (size_t c = 0; c < static_cast<size_t>(r.channels()); ++c) {
        const double v = inside ? rgb[c] * static_cast<double>(r.factor[c]) + static_cast<double>(r.offset[c])
                                : static_cast<double>(r.border[c]);
        out.set_real(at++, rounded(r, v));
      }
    }
}

}  // namespace

const std::vector<Op>& ops_frame() {
  static const std::vector<Op> table = {
      {.name = "frame_to_tensor",
       .domain = "sinter",
       .infer = infer_frame,
       .eval = eval_frame,
       .note = "a camera's frame as the picture that a model takes; made of --pre"},
  };
  return table;
}

}  // namespace sinter
