#include "driver/image.h"

#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "driver/errors.h"
#include "ir/error.h"

namespace sinter {
namespace {

struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<float> pixels;  // [height][width][channels], 0..255
  float at(int64_t y, int64_t x, int64_t c) const {
    return pixels[static_cast<size_t>((y * width + x) * channels + c)];
  }
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
  Picture p{h, w, channels, {}};
  p.pixels.assign(data.get(), data.get() + static_cast<size_t>(w) * static_cast<size_t>(h) *
                                               static_cast<size_t>(channels));
  return p;
}

// Bilinear, half-pixel centres, edges repeated.
Picture resized(const Picture& p, int64_t height, int64_t width) {
  if (p.height == height && p.width == width) return p;
  Picture out{height, width, p.channels, {}};
  out.pixels.resize(static_cast<size_t>(height * width * p.channels));
  auto source = [](int64_t i, int64_t to, int64_t from) {
    const double x =
        (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    return std::clamp(x, 0.0, static_cast<double>(from - 1));
  };
  size_t at = 0;
  for (int64_t y = 0; y < height; ++y) {
    const double sy = source(y, height, p.height);
    const int64_t y0 = static_cast<int64_t>(sy), y1 = std::min(y0 + 1, p.height - 1);
    const float fy = static_cast<float>(sy - static_cast<double>(y0));
    for (int64_t x = 0; x < width; ++x) {
      const double sx = source(x, width, p.width);
      const int64_t x0 = static_cast<int64_t>(sx), x1 = std::min(x0 + 1, p.width - 1);
      const float fx = static_cast<float>(sx - static_cast<double>(x0));
      for (int64_t c = 0; c < p.channels; ++c) {
        const float top = p.at(y0, x0, c) * (1 - fx) + p.at(y0, x1, c) * fx;
        const float bottom = p.at(y1, x0, c) * (1 - fx) + p.at(y1, x1, c) * fx;
        out.pixels[at++] = top * (1 - fy) + bottom * fy;
      }
    }
  }
  return out;
}

// `inner` placed in the middle of a picture of that size, cut or bordered with black.
Picture centred(const Picture& inner, int64_t height, int64_t width) {
  Picture out{height, width, inner.channels, {}};
  out.pixels.resize(static_cast<size_t>(height * width * inner.channels), 0.0f);
  const int64_t dy = (inner.height - height) / 2, dx = (inner.width - width) / 2;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const int64_t sy = y + dy, sx = x + dx;
      if (sy < 0 || sx < 0 || sy >= inner.height || sx >= inner.width) continue;
      for (int64_t c = 0; c < inner.channels; ++c)
        out.pixels[static_cast<size_t>((y * width + x) * inner.channels + c)] = inner.at(sy, sx, c);
    }
  return out;
}

Picture fitted(const Picture& p, int64_t height, int64_t width, ImageOptions::Fit fit) {
  if (fit == ImageOptions::Fit::kStretch) return resized(p, height, width);
  const double fy = static_cast<double>(height) / static_cast<double>(p.height);
  const double fx = static_cast<double>(width) / static_cast<double>(p.width);
  const double f = fit == ImageOptions::Fit::kCrop ? std::max(fy, fx) : std::min(fy, fx);
  auto scaled = [f](int64_t n) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::lround(static_cast<double>(n) * f)));
  };
  return centred(resized(p, scaled(p.height), scaled(p.width)), height, width);
}

// Which axes of the input are channels, rows, columns; -1: none.
struct Axes {
  int channel = -1, row = -1, column = -1;
};
Axes axes_of(const DeclaredInput& in) {
  auto is_channels = [&](size_t i) {
    return in.extents[i].lo == in.extents[i].hi && (in.extents[i].lo == 1 || in.extents[i].lo == 3);
  };
  const size_t rank = in.extents.size();
  if (rank == 2) return {-1, 0, 1};
  if (rank == 3 || rank == 4) {
    const int first = static_cast<int>(rank) - 3;
    if (is_channels(rank - 3)) return {first, first + 1, first + 2};
    if (is_channels(rank - 1)) return {first + 2, first, first + 1};
  }
  throw UsageError(
      fmt::format("the input {} takes no picture: its shape is neither [N,C,H,W] nor [N,H,W,C] with 1 or "
                  "3 channels",
                  sinter::quoted(in.name)));
}

// The picture's own extent where the input leaves it open.
int64_t choose(const DeclaredInput::Extent& e, int64_t own) {
  if (e.lo == e.hi) return e.lo;
  const int64_t hi = e.hi < 0 ? INT64_MAX : e.hi;
  const int64_t near = std::max<int64_t>((own + e.step / 2) / e.step, 1) * e.step;
  return std::clamp(near, (e.lo + e.step - 1) / e.step * e.step, hi / e.step * e.step);
}

double number(const std::string& text, const std::string& whole) {
  const size_t slash = text.find('/');
  try {
    size_t used = 0;
    const std::string top = text.substr(0, slash);
    double v = std::stod(top, &used);
    if (used != top.size()) throw std::invalid_argument(text);
    if (slash != std::string::npos) {
      const std::string bottom = text.substr(slash + 1);
      v /= std::stod(bottom, &used);
      if (used != bottom.size()) throw std::invalid_argument(text);
    }
    if (!std::isfinite(v)) throw std::invalid_argument(text);
    return v;
  } catch (const std::logic_error&) {
    throw UsageError(fmt::format("--image {}: {} is no number", sinter::quoted(whole), sinter::quoted(text)));
  }
}

std::vector<double> numbers(const std::string& text, const std::string& whole) {
  std::vector<double> v;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) v.push_back(number(one, whole));
  if (v.size() != 1 && v.size() != 3)
    throw UsageError(fmt::format("--image {}: one number or three", sinter::quoted(whole)));
  return v;
}

void set_pixel(Tensor& t, int64_t at, double v) {
  switch (t.dtype()) {
    case DType::kU8: t.set_integer(at, static_cast<int64_t>(std::lround(std::clamp(v, 0.0, 255.0)))); break;
    case DType::kI8:
      t.set_integer(at, static_cast<int64_t>(std::lround(std::clamp(v, -128.0, 127.0))));
      break;
    default: t.set_real(at, v);
  }
}

}  // namespace

ImageOptions parse_image_options(const std::string& text, const std::vector<std::string>& names) {
  ImageOptions o;
  std::string rest = text;
  for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1))
    if (std::find(names.begin(), names.end(), text.substr(0, at)) != names.end()) {
      o.input = text.substr(0, at);
      rest = text.substr(at + 1);
    }
  const std::string whole = sinter::quoted(text);
  std::istringstream in(rest);
  for (std::string word; in >> word;) {
    const size_t equal = word.find('=');
    const std::string key = word.substr(0, equal),
                      value = equal == std::string::npos ? "" : word.substr(equal + 1);
    if (key == "fit" && value == "stretch")
      o.fit = ImageOptions::Fit::kStretch;
    else if (key == "fit" && value == "crop")
      o.fit = ImageOptions::Fit::kCrop;
    else if (key == "fit" && value == "letterbox")
      o.fit = ImageOptions::Fit::kLetterbox;
    else if (key == "order" && (value == "rgb" || value == "bgr" || value == "gray")) {
      o.order = value == "rgb"   ? ImageOptions::Order::kRgb
                : value == "bgr" ? ImageOptions::Order::kBgr
                                 : ImageOptions::Order::kGray;
      o.order_given = true;
    } else if (key == "scale")
      o.scale = number(value, text);
    else if (key == "mean")
      o.mean = numbers(value, text);
    else if (key == "std") {
      o.std = numbers(value, text);
      if (std::count(o.std.begin(), o.std.end(), 0.0))
        throw UsageError(fmt::format("--image {}: std=0", whole));
    } else
      throw UsageError(
          fmt::format("--image {}: {} is neither an input nor fit=stretch|crop|letterbox, "
                      "order=rgb|bgr|gray, scale=, mean= or std=",
                      whole, sinter::quoted(word)));
  }
  return o;
}

ImageOptions options_of_input(const std::vector<ImageOptions>& given, const std::string& input) {
  ImageOptions o;
  for (const ImageOptions& g : given)
    if (g.input.empty() || g.input == input) o = g;
  return o;
}

bool is_image_file(const std::string& path) {
  std::string end = std::filesystem::path(path).extension().string();
  for (char& c : end) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

Tensor image_tensor(const std::string& path, const DeclaredInput& in, const ImageOptions& o) {
  const Axes axes = axes_of(in);
  const int64_t channels = axes.channel < 0 ? 1 : in.extents[static_cast<size_t>(axes.channel)].lo;
  if (o.order_given && (o.order == ImageOptions::Order::kGray) != (channels == 1))
    throw UsageError(
        fmt::format("--image: the input {} has {} channel(s)", sinter::quoted(in.name), channels));
  if (!is_float(in.dtype) && in.dtype != DType::kU8 && in.dtype != DType::kI8)
    throw UsageError(
        fmt::format("the input {} of {} takes no picture", sinter::quoted(in.name), name_of(in.dtype)));
  const Picture raw = load(path, static_cast<int>(channels));
  const int64_t height = choose(in.extents[static_cast<size_t>(axes.row)], raw.height);
  const int64_t width = choose(in.extents[static_cast<size_t>(axes.column)], raw.width);
  if (height < 1 || width < 1 || height > 1 << 16 || width > 1 << 16)
    throw UsageError(fmt::format("the input {} is {} x {}", sinter::quoted(in.name), height, width));
  const Picture p = fitted(raw, height, width, o.fit);
  std::vector<int64_t> shape(in.extents.size(), 1);
  if (axes.channel >= 0) shape[static_cast<size_t>(axes.channel)] = channels;
  shape[static_cast<size_t>(axes.row)] = height;
  shape[static_cast<size_t>(axes.column)] = width;
  Tensor t(in.dtype, shape);
  const std::vector<int64_t> strides = row_major_strides(shape);
  auto stride = [&](int axis) { return axis < 0 ? 0 : strides[static_cast<size_t>(axis)]; };
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t from = o.order == ImageOptions::Order::kBgr ? channels - 1 - c : c;
        const double mean = o.mean[o.mean.size() == 1 ? 0 : static_cast<size_t>(c % 3)];
        const double deviation = o.std[o.std.size() == 1 ? 0 : static_cast<size_t>(c % 3)];
        const double v = (static_cast<double>(p.at(y, x, from)) * o.scale - mean) / deviation;
        set_pixel(t, y * stride(axes.row) + x * stride(axes.column) + c * stride(axes.channel), v);
      }
  return t;
}

}  // namespace sinter
