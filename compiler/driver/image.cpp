#include "driver/image.h"

#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

#include "driver/errors.h"
#include "ir/error.h"
#include "ops/op.h"

namespace sinter {
namespace {

// A picture's bytes, its channels side by side, as a frame of rgb or gray.
struct Picture {
  FrameWords words;
  Tensor bytes;
};

Picture load(const std::string& path, int channels) {
  std::ifstream f(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(f), {});
  if (!f) throw UsageError(path + " can't be read");
  int w = 0, h = 0, had = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> data(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()), static_cast<int>(bytes.size()),
                            &w, &h, &had, channels),
      stbi_image_free);
  if (!data) throw UsageError(path + " is no picture: " + stbi_failure_reason());
  Picture p;
  p.words.format = channels == 1 ? PixelFormat::kGray : PixelFormat::kRgb;
  p.words.width = w, p.words.height = h, p.words.stride = int64_t{w} * channels;
  p.bytes = Tensor(DType::kU8, {p.words.height, p.words.stride});
  std::copy_n(data.get(), p.bytes.bytes(), reinterpret_cast<stbi_uc*>(p.bytes.mutable_data()));
  return p;
}

// [1, height, width, channels] of a frame.
Tensor seen(const Tensor& frame, const FrameRule& rule) {
  if (rule.height > 1 << 16 || rule.width > 1 << 16)
    throw UsageError(fmt::format("a picture of {}x{} is too large", rule.width, rule.height));
  Graph g;
  Value* x = g.add_value("frame", {DType::kU8, Shape(frame.shape().begin(), frame.shape().end())});
  Value* y = g.add_value("picture", {});
  Node* n = g.add_node(find_op("sinter", "frame_to_tensor"), "picture", {x}, {y});
  set_frame_rule(n->attributes, rule);
  g.inputs = {x}, g.outputs = {y};
  infer(g);
  return evaluate(g, {frame})[0];
}

// The picture's own extent where the input leaves it open.
int64_t choose(const DeclaredInput::Extent& e, int64_t own) {
  if (e.lo == e.hi) return e.lo;
  const int64_t hi = e.hi < 0 ? INT64_MAX : e.hi;
  const int64_t near = std::max<int64_t>((own + e.step / 2) / e.step, 1) * e.step;
  return std::clamp(near, (e.lo + e.step - 1) / e.step * e.step, hi / e.step * e.step);
}

// A byte of RGB pixels as luma and chroma, by the coefficients of the way back.
struct Yuv {
  double y, u, v;
};
Yuv yuv_of(const uint8_t* rgb, const YuvCoefficients& c) {
  // Gray has no chroma: what the three coefficients of luma are follows from green's.
  const double unit = 8192, luma = c.luma / unit, u = c.blue_of_u / unit, v = c.red_of_v / unit;
  const double gu = c.green_of_u / unit, gv = c.green_of_v / unit;
  const double r = rgb[0], g = rgb[1], b = rgb[2];
  // r = l + v V, b = l + u U, g = l + gu U + gv V
  const double l = (g - gu / u * b - gv / v * r) / (1 - gu / u - gv / v);
  return {l / luma + c.black, (b - l) / u + 128, (r - l) / v + 128};
}

uint8_t byte_of(double v) { return static_cast<uint8_t>(std::lround(std::clamp(v, 0.0, 255.0))); }

// RGB pixels [height][width][3] in rows of the frame.
class Packer {
 public:
  Packer(const FrameWords& w, const uint8_t* rgb)
      : words_(w),
        layout_(layout_of(*w.format)),
        rgb_(rgb),
        coefficients_(yuv_coefficients(w.bt709, w.full)),
        frame_(DType::kU8, {w.rows(), w.stride}) {}

  Tensor frame() {
    for (int64_t y = 0; y < words_.height; ++y)
      for (int64_t x = 0; x < words_.width; ++x) put(y, x);
    return std::move(frame_);
  }

 private:
  const uint8_t* pixel(int64_t y, int64_t x) const { return rgb_ + (y * words_.width + x) * 3; }
  uint8_t* row(int64_t y) { return frame_.as<uint8_t>() + y * words_.stride; }

  void put(int64_t y, int64_t x) {
    const uint8_t* from = pixel(y, x);
    uint8_t* to = row(y) + x * layout_.bytes;
    if (layout_.yuv) {
      to[!layout_.planes && layout_.swapped] = byte_of(yuv_of(from, coefficients_).y);
      if (x % 2 == 0 && (!layout_.planes || y % 2 == 0)) put_chroma(y, x);
    } else if (layout_.bytes == 1) {
      double gray = 0;
      for (size_t c = 0; c < 3; ++c) gray += kGrayWeights[c] * from[c];
      *to = byte_of(gray);
    } else {
      for (int c = 0; c < 3; ++c) to[c] = from[layout_.swapped ? 2 - c : c];
      if (layout_.bytes == 4) to[3] = 255;
    }
  }

  // The mean of the pixels that share it.
  void put_chroma(int64_t y, int64_t x) {
    double u = 0, v = 0;
    const int64_t rows = layout_.planes ? 2 : 1;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < 2; ++k) {
        const Yuv one = yuv_of(pixel(y + i, x + k), coefficients_);
        u += one.u / static_cast<double>(2 * rows), v += one.v / static_cast<double>(2 * rows);
      }
    if (layout_.planes) {
      uint8_t* to = row(words_.height + y / 2) + x;
      to[layout_.swapped] = byte_of(u), to[!layout_.swapped] = byte_of(v);
    } else {
      uint8_t* to = row(y) + 2 * x;
      to[!layout_.swapped] = byte_of(u), to[2 + !layout_.swapped] = byte_of(v);
    }
  }

  const FrameWords& words_;
  const PixelLayout& layout_;
  const uint8_t* rgb_;
  const YuvCoefficients coefficients_;
  Tensor frame_;
};

}  // namespace

FrameWords words_of_input(const std::vector<FrameWords>& given, const std::string& input) {
  FrameWords w;
  for (const FrameWords& g : given)
    if (g.input.empty() || g.input == input) w = g;
  return w;
}

bool is_image_file(const std::string& path) {
  std::string end = std::filesystem::path(path).extension().string();
  for (char& c : end) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

std::optional<PictureAxes> picture_axes(const DeclaredInput& in) {
  auto is_channels = [&](size_t i) {
    return in.extents[i].lo == in.extents[i].hi && (in.extents[i].lo == 1 || in.extents[i].lo == 3);
  };
  const size_t rank = in.extents.size();
  if (rank == 2) return PictureAxes{-1, 0, 1};
  if (rank == 3 || rank == 4) {
    const int first = static_cast<int>(rank) - 3;
    if (is_channels(rank - 3)) return PictureAxes{first, first + 1, first + 2};
    if (is_channels(rank - 1)) return PictureAxes{first + 2, first, first + 1};
  }
  return std::nullopt;
}

bool is_pixel_type(DType t) { return is_float(t) || t == DType::kU8 || t == DType::kI8; }

std::vector<int64_t> picture_shape(const DeclaredInput& in, int64_t height, int64_t width) {
  const std::optional<PictureAxes> axes = picture_axes(in);
  if (!axes)
    throw UsageError(
        fmt::format("the input {} takes no picture: its shape is neither [N,C,H,W] nor [N,H,W,C] with 1 or "
                    "3 channels",
                    sinter::quoted(in.name)));
  if (!is_pixel_type(in.dtype))
    throw UsageError(
        fmt::format("the input {} of {} takes no picture", sinter::quoted(in.name), name_of(in.dtype)));
  std::vector<int64_t> shape(in.extents.size(), 1);
  const auto set = [&](int axis, int64_t own) {
    shape[static_cast<size_t>(axis)] = choose(in.extents[static_cast<size_t>(axis)], own);
  };
  if (axes->channel >= 0) set(axes->channel, 1);
  set(axes->row, height);
  set(axes->column, width);
  const int64_t h = shape[static_cast<size_t>(axes->row)], w = shape[static_cast<size_t>(axes->column)];
  if (h < 1 || w < 1 || h > 1 << 16 || w > 1 << 16)
    throw UsageError(fmt::format("the input {} is {} x {}", sinter::quoted(in.name), h, w));
  return shape;
}

Tensor image_tensor(const std::string& path, const DeclaredInput& in, const FrameWords& given) {
  const std::optional<PictureAxes> axes = picture_axes(in);
  const int64_t channels = axes && axes->channel >= 0 ? in.extents[static_cast<size_t>(axes->channel)].lo : 1;
  if (axes) check_channels("--image", given, channels, in.name);
  Picture p = load(path, given.format ? 3 : static_cast<int>(channels));
  FrameWords words = given;
  if (!given.format) {
    words.format = p.words.format;
    words.width = p.words.width, words.height = p.words.height;
  } else {
    if (words.width == 0) {
      words.width = p.words.width, words.height = p.words.height;
      words.stride = least_stride(layout_of(*words.format), words.width);
    }
    p.bytes = image_frame(path, words);
  }
  const std::vector<int64_t> shape = picture_shape(in, words.height, words.width);
  const DType made = is_float(in.dtype) ? DType::kF32 : in.dtype;
  Tensor t = seen(p.bytes, frame_rule(words, channels, shape[static_cast<size_t>(axes->row)],
                                      shape[static_cast<size_t>(axes->column)], made));
  if (axes->channel >= 0 && axes->channel < axes->row) t = t.transposed({0, 3, 1, 2});
  return t.reshaped(shape).converted(in.dtype);
}

Tensor image_frame(const std::string& path, const FrameWords& words) {
  const Picture p = load(path, 3);
  const PixelLayout& l = layout_of(*words.format);
  if (l.yuv && (words.width % 2 != 0 || (l.planes && words.height % 2 != 0)))
    throw UsageError(fmt::format("{} is a picture of {}x{}: {} needs an even size; give one", path,
                                 words.width, words.height, l.name));
  const Tensor rgb = seen(p.bytes, frame_rule(p.words, 3, words.height, words.width, DType::kU8));
  return Packer(words, rgb.as<uint8_t>()).frame();
}

}  // namespace sinter
