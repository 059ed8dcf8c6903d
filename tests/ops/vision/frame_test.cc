// frame_to_tensor: numbers worked out by hand, a plain formula over random frames, and refusals.
#include "ops/vision/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ops/op.h"

namespace sinter {
namespace {

FrameRule rule(const char* format, int64_t width, int64_t height, int64_t to_width, int64_t to_height,
               int64_t channels = 3) {
  FrameRule r;
  r.format = find_layout(format)->format;
  r.width = width, r.height = height, r.to_width = to_width, r.to_height = to_height;
  r.order = channels == 1 ? ChannelOrder::kGray : ChannelOrder::kRgb;
  r.factor.assign(static_cast<size_t>(channels), 1), r.offset.assign(static_cast<size_t>(channels), 0);
  r.border = r.offset;
  return r;
}

Tensor picture(const FrameRule& r, const Tensor& frame) {
  Graph g;
  Value* x = g.add_value("x", {frame.dtype(), Shape(frame.shape().begin(), frame.shape().end())});
  Value* y = g.add_value("y", {});
  Node* n = g.add_node(find_op("sinter", "frame_to_tensor"), "n", {x}, {y});
  set_frame_rule(n->attributes, r);
  g.inputs = {x}, g.outputs = {y};
  infer(g);
  return evaluate(g, {frame})[0];
}
std::vector<double> pixels(const FrameRule& r, const std::vector<uint8_t>& bytes) {
  const int64_t rows = frame_rows(layout_of(r.format), r.height);
  Tensor frame(DType::kU8, {rows, static_cast<int64_t>(bytes.size()) / rows});
  std::copy(bytes.begin(), bytes.end(), frame.as<uint8_t>());
  return picture(r, frame).reals();
}
using Numbers = std::vector<double>;

TEST(Frame, OrdersOfChannels) {
  const std::vector<uint8_t> three = {1, 2, 3, 4, 5, 6, 0, 0};  // two bytes behind the row
  EXPECT_EQ(pixels(rule("rgb", 2, 1, 2, 1), three), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels(rule("bgr", 2, 1, 2, 1), three), (Numbers{3, 2, 1, 6, 5, 4}));
  const std::vector<uint8_t> four = {1, 2, 3, 99, 4, 5, 6, 99};
  EXPECT_EQ(pixels(rule("rgba", 2, 1, 2, 1), four), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels(rule("bgra", 2, 1, 2, 1), four), (Numbers{3, 2, 1, 6, 5, 4}));
  FrameRule wants_bgr = rule("rgb", 2, 1, 2, 1);
  wants_bgr.order = ChannelOrder::kBgr;
  EXPECT_EQ(pixels(wants_bgr, three), (Numbers{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(pixels(rule("gray", 2, 1, 2, 1), {7, 9}), (Numbers{7, 7, 7, 9, 9, 9}));
  EXPECT_EQ(pixels(rule("gray", 2, 1, 2, 1, 1), {7, 9}), (Numbers{7, 9}));
  EXPECT_NEAR(pixels(rule("bgr", 1, 1, 1, 1, 1), {10, 20, 30})[0], .114 * 10 + .587 * 20 + .299 * 30, 1e-4);
}

TEST(Frame, FitsAndScales) {
  // 4 x 2 pixels of gray.
  const std::vector<uint8_t> bytes = {0, 40, 80, 120, 10, 50, 90, 130};
  EXPECT_EQ(pixels(rule("gray", 4, 2, 2, 1, 1), bytes), (Numbers{25, 105}));
  FrameRule box = rule("gray", 4, 2, 2, 2, 1);
  box.fit = FrameFit::kLetterbox;
  box.border = {-1};
  // Half the size is 2 x 1: the border's odd row is below.
  EXPECT_EQ(pixels(box, bytes), (Numbers{25, 105, -1, -1}));
  FrameRule cut = rule("gray", 4, 2, 2, 2, 1);
  cut.fit = FrameFit::kCrop;
  EXPECT_EQ(pixels(cut, bytes), (Numbers{40, 80, 50, 90}));
  FrameRule scaled = rule("gray", 4, 2, 1, 1, 1);
  scaled.factor = {0.5f}, scaled.offset = {-3};
  EXPECT_EQ(pixels(scaled, bytes), (Numbers{65 * .5 - 3}));
  // Half-pixel centres, edges repeated.
  EXPECT_EQ(pixels(rule("gray", 2, 1, 4, 1, 1), {0, 100}), (Numbers{0, 25, 75, 100}));
  FrameRule bytes_out = rule("gray", 2, 1, 1, 1, 1);
  bytes_out.dtype = DType::kU8;
  EXPECT_EQ(pixels(bytes_out, {2, 3}), (Numbers{3}));  // halves upwards
  bytes_out.even = true, bytes_out.zero = 1;           // to even, then the zero point
  EXPECT_EQ(pixels(bytes_out, {2, 3}), (Numbers{3}));
  EXPECT_EQ(pixels(bytes_out, {255, 255}), (Numbers{255}));
  bytes_out.even = false, bytes_out.zero = 0;
  bytes_out.offset = {-300};
  EXPECT_EQ(pixels(bytes_out, {1, 2}), (Numbers{0}));
  bytes_out.dtype = DType::kI8, bytes_out.offset = {-128};
  EXPECT_EQ(pixels(bytes_out, {255, 255}), (Numbers{127}));
}

TEST(Frame, LumaAndChroma) {
  const auto rgb_of = [](uint8_t y, uint8_t u, uint8_t v, bool bt709, bool full) {
    FrameRule r = rule("nv12", 2, 2, 1, 1);
    r.bt709 = bt709, r.full = full;
    return pixels(r, {y, y, y, y, u, v});
  };
  const auto expect = [](const Numbers& got, const Numbers& want) {
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(got[c], want[c], 1) << c;
  };
  expect(rgb_of(16, 128, 128, false, false), {0, 0, 0});
  expect(rgb_of(235, 128, 128, false, false), {255, 255, 255});
  expect(rgb_of(81, 90, 240, false, false), {255, 0, 0});  // colour bars of BT.601
  expect(rgb_of(145, 54, 34, false, false), {0, 255, 0});
  expect(rgb_of(41, 240, 110, false, false), {0, 0, 255});
  expect(rgb_of(63, 102, 240, true, false), {255, 0, 0});  // and of BT.709
  expect(rgb_of(32, 240, 118, true, false), {0, 0, 255});
  expect(rgb_of(76, 85, 255, false, true), {254, 0, 0});
  expect(rgb_of(0, 0, 255, false, false), {184, 0, 0});  // what is no colour saturates
  EXPECT_EQ(rgb_of(90, 128, 128, false, true), (Numbers{90, 90, 90}));

  // The same two by two pixels in all four layouts.
  const Numbers want = pixels(rule("nv12", 2, 2, 2, 2), {50, 100, 150, 200, 90, 160});
  EXPECT_EQ(pixels(rule("nv21", 2, 2, 2, 2), {50, 100, 150, 200, 160, 90}), want);
  EXPECT_EQ(pixels(rule("yuyv", 2, 2, 2, 2), {50, 90, 100, 160, 150, 90, 200, 160}), want);
  EXPECT_EQ(pixels(rule("uyvy", 2, 2, 2, 2), {90, 50, 160, 100, 90, 150, 160, 200}), want);
}

// Straight from the definition, in one dimension after the other.
Tensor resized(const Tensor& x, int64_t height, int64_t width) {
  const auto along = [](const Tensor& t, size_t axis, int64_t to) {
    const Tensor last = axis == 0 ? t.transposed({1, 0, 2}) : t;
    const int64_t rows = last.dim(0), from = last.dim(1), channels = last.dim(2);
    Tensor out(DType::kF64, {rows, to, channels});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < to; ++i)
        for (int64_t c = 0; c < channels; ++c) {
          const double at = (double(i) + .5) * double(from) / double(to) - .5;
          const auto sample = [&](int64_t k) {
            return last.real((r * from + std::clamp<int64_t>(k, 0, from - 1)) * channels + c);
          };
          const double floor = std::floor(at);
          out.set_real((r * to + i) * channels + c,
                       sample(int64_t(floor)) * (floor + 1 - at) + sample(int64_t(floor) + 1) * (at - floor));
        }
    return axis == 0 ? out.transposed({1, 0, 2}) : out;
  };
  return along(along(x, 1, width), 0, height);
}

TEST(Frame, RandomFramesByTheFormula) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 40; ++turn) {
    const auto size = [&] { return static_cast<int64_t>(random() % 12 + 1); };
    FrameRule r = rule("rgb", size(), size(), size(), size());
    r.fit = static_cast<FrameFit>(turn % 3);
    Tensor frame(DType::kU8, {r.height, r.width * 3});
    for (int64_t i = 0; i < frame.size(); ++i) frame.set_integer(i, random() % 256);
    const Tensor got = picture(r, frame);
    const double fy = double(r.to_height) / double(r.height), fx = double(r.to_width) / double(r.width),
                 f = r.fit == FrameFit::kCrop ? std::max(fy, fx) : std::min(fy, fx);
    int64_t height = r.to_height, width = r.to_width;
    if (r.fit != FrameFit::kStretch) {
      height = std::max<int64_t>(1, int64_t(std::floor(double(r.height) * f + .5)));
      width = std::max<int64_t>(1, int64_t(std::floor(double(r.width) * f + .5)));
    }
    const Tensor inner = resized(frame.reshaped({r.height, r.width, 3}), height, width);
    const bool boxed = r.fit == FrameFit::kLetterbox;
    const int64_t top = boxed ? (r.to_height - height) / 2 : -((height - r.to_height) / 2),
                  left = boxed ? (r.to_width - width) / 2 : -((width - r.to_width) / 2);
    int64_t at = 0;
    for (int64_t y = 0; y < r.to_height; ++y)
      for (int64_t x = 0; x < r.to_width; ++x)
        for (int64_t c = 0; c < 3; ++c, ++at) {
          const bool inside = y >= top && y < top + height && x >= left && x < left + width;
          const double want = inside ? inner.real(((y - top) * width + x - left) * 3 + c) : 0;
          ASSERT_NEAR(got.real(at), want, 1e-4) << turn << ": " << y << " " << x << " " << c;
        }
  }
}

TEST(Frame, Refusals) {
  const auto why = [](const FrameRule& r, std::vector<int64_t> shape, DType t = DType::kU8) -> std::string {
    try {
      picture(r, Tensor(t, std::move(shape)));
    } catch (const Refusal& e) {
      return e.problems.at(0);
    }
    return "";
  };
  const FrameRule rgb = rule("rgb", 4, 2, 4, 2);
  EXPECT_EQ(why(rgb, {2, 12}), "");
  EXPECT_NE(why(rgb, {2, 11}).find("rows of 11 bytes"), std::string::npos);
  EXPECT_NE(why(rgb, {3, 12}).find("rows of the frame"), std::string::npos);
  EXPECT_NE(why(rgb, {2, 12}, DType::kF32).find("rows of bytes"), std::string::npos);
  EXPECT_NE(why(rule("nv12", 3, 2, 4, 2), {3, 12}).find("odd"), std::string::npos);
  EXPECT_NE(why(rule("rgb", 0, 2, 4, 2), {2, 12}).find("a frame of 0x2"), std::string::npos);
  FrameRule short_list = rgb;
  short_list.factor = {1};
  EXPECT_NE(why(short_list, {2, 12}).find("for each channel"), std::string::npos);
}

}  // namespace
}  // namespace sinter
