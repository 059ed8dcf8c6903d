// Camera's frames as generated code against the interpreter: all formats, sizes that leave tails, strides,
// fits and weights of zero; alone, and as rows that a convolution reads.
#include "ops/vision/frame.h"

#include <gtest/gtest.h>

#include "emit/sheet.h"
#include "plan/strips.h"

namespace sinter {
namespace {

void fill_bytes(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_integer(i, random() % 256);
}

FrameRule rule(const PixelLayout& l, int64_t width, int64_t height, int64_t to_width, int64_t to_height,
               FrameFit fit, ChannelOrder order) {
  FrameRule r;
  r.format = l.format;
  r.width = width, r.height = height, r.to_width = to_width, r.to_height = to_height;
  r.fit = fit, r.order = order;
  for (int64_t c = 0; c < r.channels(); ++c) {
    r.factor.push_back(0.01f * static_cast<float>(c + 1)), r.offset.push_back(-0.5f * static_cast<float>(c));
    r.border.push_back(0.25f + static_cast<float>(c));
  }
  return r;
}

Node* add(Sheet& s, const FrameRule& r, int64_t more_bytes = 0) {
  const PixelLayout& l = layout_of(r.format);
  Attributes a;
  set_frame_rule(a, r);
  const AttributeList list(a.all().begin(), a.all().end());
  return s.add(
      "frame_to_tensor",
      {values(DType::kU8, {frame_rows(l, r.height), least_stride(l, r.width) + more_bytes}, fill_bytes)},
      list);
}

// Every format at sizes that leave tails, have equal weights, or weights that are no multiples of 1/256.
constexpr int64_t kSizes[][4] = {{16, 12, 8, 6},  {16, 12, 16, 12}, {6, 10, 13, 7}, {2, 2, 5, 5},
                                 {30, 18, 10, 6}, {24, 6, 9, 9},    {24, 12, 16, 8}};

// `step`: of the sizes; more than 1: only some of them, each format at others.
GeneratedBatch grid(size_t step) {
  GeneratedBatch batch;
  const FrameFit fits[] = {FrameFit::kStretch, FrameFit::kCrop, FrameFit::kLetterbox};
  Sheet s;
  size_t number = 0;
  for (const PixelLayout& l : pixel_layouts()) {
    for (size_t i = number % step; i < std::size(kSizes); i += step, ++number) {
      const auto& [w, h, tw, th] = kSizes[i];
      const ChannelOrder order = i % 3 == 0   ? ChannelOrder::kRgb
                                 : i % 3 == 1 ? ChannelOrder::kBgr
                                              : ChannelOrder::kGray;
      add(s, rule(l, w, h, tw, th, fits[number % 3], order), i % 4 == 1 ? 7 : 0);
    }
    if (!l.yuv) add(s, rule(l, 1, 1, 3, 2, FrameFit::kStretch, ChannelOrder::kRgb));
    // Quarters, whose halves are no matter of rounding.
    FrameRule r = rule(l, 8, 6, 4, 4, FrameFit::kLetterbox, ChannelOrder::kRgb);
    r.dtype = number % 2 ? DType::kU8 : DType::kI8;
    r.factor.assign(3, 1);
    r.offset.assign(3, r.dtype == DType::kI8 ? -128.0f : 1.0f);
    r.even = number % 4 == 0, r.zero = r.even ? 3 : 0;
    add(s, r);
    ++number;
    if (step == 1 && l.format != PixelFormat::kGray && l.format != PixelFormat::kUyvy) continue;
    if (step > 1 && l.format != PixelFormat::kUyvy) continue;
    s.into(batch, l.name, {{}}, {1e-4, 2e-6});
  }
  return batch;
}

TEST(FrameKernel, AllFormats) {
  GeneratedBatch all = grid(1), some = grid(3);
  const auto good = [](GeneratedBatch& batch, const char* name, const BuildOptions& options) {
    const auto results = batch.run(target(name), options);
    if (results[0].skipped.empty()) expect_good(results, name);
  };
  good(all, "cortex-a76", {});
  good(some, "avx2", {});
  good(some, "scalar", {});
  good(some, "host", {.sanitize = true});
  good(some, "host", {.clang = true});
  good(some, "host", {.threads = 3});
}

}  // namespace
}  // namespace sinter
