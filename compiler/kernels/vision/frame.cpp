// A camera's frame as a picture: a row at a time, blended of two rows of the frame by tables that are made
// here (runtime/sinter/frame.h has the words).
//
// In a strip the rows are those that the layer behind it is about to read, so that no whole picture of floats
// is in memory.
#include "ops/vision/frame.h"

#include <algorithm>
#include <cmath>

#include "emit/expr_text.h"
#include "emit/layer.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return n.op == find_op("sinter", "frame_to_tensor") && !n.epilogue;
}

std::string list_of(const std::vector<float>& v) {
  std::string s;
  for (const float x : v) s += (s.empty() ? "" : ", ") + float_literal(x);
  return s;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        rule_(frame_rule(w.node.attributes)),
        layout_(layout_of(rule_.format)),
        geometry_(frame_geometry(rule_.fit, rule_.height, rule_.width, rule_.to_height, rule_.to_width)),
        stride_(w.node.inputs[0]->type.shape[1].value()) {}

  void emit() {
    w_.include("sinter/frame.h");
    if (rule_.dtype == DType::kF16) w_.include("sinter/convert.h");
    w_.summary(fmt::format("frame {}x{} {} to {}", rule_.width, rule_.height, layout_.name,
                           text(w_.node.outputs[0]->type.shape)));
    w_.flops(product(w_.node.outputs[0]->type.shape) * Dim(8));
    x_ = w_.input(0);
    make_tables();
    y_ = w_.output(0);
    constants();
    std::string first = "0", end = std::to_string(rule_.to_height), base;
    if (const auto strip = w_.strip()) {
      first = strip->first, end = strip->end, base = strip->y_base;
      open(first, end, base);
      w_.out.line("}}");
      return;
    }
    const LayerWriter::Turns turns = w_.open_parts(end);
    open(turns.first, turns.end, base);
    w_.out.line("}}");
    w_.close_parts();
  }

 private:
  int64_t pixel_bytes() const { return layout_.yuv ? 3 : layout_.bytes; }
  // The picture's columns that show the frame.
  int64_t first_column() const { return std::max<int64_t>(-geometry_.left, 0); }
  int64_t columns() const {
    return std::min(geometry_.width - geometry_.left, rule_.to_width) - first_column();
  }

  void make_tables() {
    std::vector<int32_t> rows, at;
    std::vector<float> below, right;
    for (int64_t y = 0; y < rule_.to_height; ++y) {
      const int64_t row = y + geometry_.top;
      const bool inside = row >= 0 && row < geometry_.height;
      const FrameTap tap = inside ? frame_tap(row, geometry_.height, rule_.height) : FrameTap{-1, 0};
      rows.push_back(static_cast<int32_t>(tap.first));
      below.push_back(static_cast<float>(tap.weight));
    }
    const int64_t row_bytes = rule_.width * pixel_bytes();
    for (int64_t i = 0; i < columns(); ++i) {
      const FrameTap tap = frame_tap(first_column() + i + geometry_.left, geometry_.width, rule_.width);
      at.push_back(static_cast<int32_t>(tap.first * pixel_bytes()));
      right.push_back(static_cast<float>(tap.weight));
      if (at.back() + kWord <= row_bytes) wide_ = i + 1;
    }
    across_ = std::any_of(right.begin(), right.end(), [](float v) { return v != 0; });
    choose_words(below, right);
    const std::string height = fmt::format("[{}]", rule_.to_height), width = fmt::format("[{}]", columns());
    rows_ = w_.weights("rows", "std::int32_t", rows.data(), rows.size() * 4,
                       height + ": the upper row of the frame, or -1");
    below_ =
        w_.weights("below", "float", below.data(), below.size() * 4, height + ": what the next one weighs");
    at_ = w_.weights("at", "std::int32_t", at.data(), at.size() * 4, width + ": bytes before the left pixel");
    if (words_ == Words::kHalves)
      right_ = "nullptr";
    else if (words_ == Words::kParts)
      pack_parts(right, width);
    else
      right_ =
          w_.weights("right", "float", right.data(), right.size() * 4, width + ": what the next one weighs");
  }

  // NEON has words for weights that are all a half, as of a picture of half the size, or multiples of 1/256.
  void choose_words(const std::vector<float>& below, const std::vector<float>& right) {
    if (!w_.target.aarch64 || !across_ || rule_.channels() != 3 || pixel_bytes() == 1) return;
    const auto all = [&](auto holds) {
      bool ok = std::all_of(right.begin(), right.end(), holds);
      for (size_t y = 0; y < below.size(); ++y)
        if (const int64_t row = static_cast<int64_t>(y) + geometry_.top; row >= 0 && row < geometry_.height)
          ok = ok && holds(below[y]);
      return ok;
    };
    if (all([](float v) { return v == 0.5f; }))
      words_ = Words::kHalves;
    else if (all([](float v) { return v * 256 == std::floor(v * 256); }))
      words_ = Words::kParts;
  }

  void pack_parts(const std::vector<float>& right, const std::string& width) {
    std::vector<uint32_t> words;
    for (const float v : right) {
      const auto part = static_cast<uint32_t>(v * 256);
      words.push_back(part | (256 - part) << 16);
    }
    right_ = "nullptr";
    parts_ = w_.weights("parts", "std::uint32_t", words.data(), words.size() * 4,
                        width + ": what the next one weighs, and the rest above it, of 256");
  }

  void constants() {
    std::vector<float> factor = rule_.factor, offset = rule_.offset;
    factor.resize(4), offset.resize(4);
    w_.out.line("const FrameColumns columns{{{}, {}, {}, {}}};", at_, right_, columns(), wide_);
    w_.out.line("const FrameScale scale{{{{{}}}, {{{}}}}};", list_of(factor), list_of(offset));
    if (has_border()) w_.out.line("const float border[] = {{{}}};", list_of(rule_.border));
    if (makes_luma()) {
      std::vector<float> luma(kGrayWeights.begin(), kGrayWeights.end());
      if (layout_.swapped && !layout_.yuv) std::swap(luma[0], luma[2]);
      w_.out.line("const float luma[] = {{{}}};", list_of(luma));
    }
    if (layout_.yuv) {
      const YuvCoefficients c = yuv_coefficients(rule_.bt709, rule_.full);
      w_.out.line("const YuvMatrix matrix{{{}, {}, {}, {}, {}, {}}};", c.black, c.luma, c.red_of_v,
                  c.green_of_u, c.green_of_v, c.blue_of_u);
    }
  }
  bool makes_luma() const { return rule_.channels() == 1 && pixel_bytes() > 1; }
  bool has_border() const {
    return columns() < rule_.to_width || geometry_.top < 0 ||
           geometry_.height - geometry_.top < rule_.to_height;
  }

  // The loop over the picture's rows, open.
  void open(const std::string& first, const std::string& end, const std::string& base) {
    const int64_t channels = rule_.channels(), row = rule_.to_width * channels;
    const DType t = rule_.dtype;
    if (layout_.yuv) rgb_ = w_.scratch_of_part("rgb", "std::uint8_t", 2 * rule_.width * 3);
    const std::string floats = t == DType::kF32 ? "" : w_.floats_of_part("floats", row);
    if (layout_.yuv) w_.out.line("std::int64_t held[2] = {{-1, -1}};");
    w_.out.line("for (std::int64_t row = {}; row < {}; ++row) {{", first, end);
    const std::string place =
        fmt::format("{} + {} * {}", y_, base.empty() ? "row" : fmt::format("(row - {})", base), row);
    w_.out.line("float* const to = {};", floats.empty() ? place : floats);
    if (has_border()) {
      w_.out.line("if ({}[row] < 0) {{", rows_);
      w_.out.line("fill_pixels<{}>(to, {}, border);", channels, rule_.to_width);
      w_.out.line("}} else {{");
    }
    row_of_frame(channels);
    if (has_border()) w_.out.line("}}");
    if (t == DType::kF16)
      w_.out.line("convert(to, {}, {});", row, place);
    else if (!floats.empty())
      w_.out.line("round_pixels<{}>(to, {}, {}, {});", rule_.even, row, rule_.zero, place);
  }

  void row_of_frame(int64_t channels) {
    w_.out.line("const float down = {}[row];", below_);
    if (layout_.yuv) {
      convert();
    } else {
      w_.out.line("const std::uint8_t* const a = {} + {}[row] * std::int64_t{{{}}};", x_, rows_, stride_);
      w_.out.line("const std::uint8_t* const b = down == 0.0f ? a : a + {};", stride_);
    }
    const int64_t left = first_column(), behind = left + columns();
    if (left > 0) w_.out.line("fill_pixels<{}>(to, {}, border);", channels, left);
    const std::string to = left > 0 ? fmt::format("to + {}", left * channels) : "to";
    if (makes_luma()) {
      w_.out.line("luma_frame_row<{}>(a, b, down, columns, luma, scale, {});", pixel_bytes(), to);
    } else if (pixel_bytes() == 1) {
      w_.out.line("gray_frame_row<{}>(a, b, down, columns, scale, {});", channels, to);
    } else {
      const bool blue_first = layout_.swapped && !layout_.yuv;
      const bool swap = blue_first != (rule_.order == ChannelOrder::kBgr);
      if (words_ == Words::kHalves)
        w_.out.line("frame_row_of_halves<{}, {}>(a, b, columns, scale, {});", pixel_bytes(), swap, to);
      else if (words_ == Words::kParts)
        w_.out.line(
            "frame_row_of_parts<{}, {}>(a, b, static_cast<int>(down * 256.0f), {}, columns, scale, {});",
            pixel_bytes(), swap, parts_, to);
      else
        w_.out.line("frame_row<{}, {}, {}>(a, b, down, columns, scale, {});", pixel_bytes(), swap, across_,
                    to);
    }
    if (behind < rule_.to_width)
      w_.out.line("fill_pixels<{}>(to + {}, {}, border);", channels, behind * channels,
                  rule_.to_width - behind);
  }

  // The two rows as RGB bytes, each where its number is even or odd; those that are there already stay.
  void convert() {
    const int64_t bytes = rule_.width * 3;
    w_.out.line("const std::int64_t upper = {}[row], last = upper + (down != 0.0f);", rows_);
    w_.out.line("for (std::int64_t r = upper; r <= last; ++r) {{");
    w_.out.line("if (held[r & 1] == r) continue;");
    w_.out.line("held[r & 1] = r;");
    const std::string into = fmt::format("{} + (r & 1) * {}", rgb_, bytes);
    if (layout_.planes)
      w_.out.line("rgb_of_planes<{}>({} + r * {}, {} + ({} + r / 2) * {}, {}, matrix, {});", layout_.swapped,
                  x_, stride_, x_, rule_.height, stride_, rule_.width, into);
    else
      w_.out.line("rgb_of_pairs<{}>({} + r * {}, {}, matrix, {});", layout_.swapped, x_, stride_, rule_.width,
                  into);
    w_.out.line("}}");
    w_.out.line("const std::uint8_t* const a = {} + (upper & 1) * {};", rgb_, bytes);
    w_.out.line("const std::uint8_t* const b = {} + (last & 1) * {};", rgb_, bytes);
  }

  static constexpr int64_t kWord = 8;  // bytes that frame_row reads from a pixel on
  LayerWriter& w_;
  const FrameRule rule_;
  const PixelLayout& layout_;
  const FrameGeometry geometry_;
  const int64_t stride_;
  int64_t wide_ = 0;
  bool across_ = false;
  enum class Words { kFloats, kHalves, kParts } words_ = Words::kFloats;
  std::string x_, y_, rows_, below_, at_, right_, parts_, rgb_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_frame() {
  static const std::vector<Kernel> table = {{"frame",
                                             "a camera's frame as a picture, resized and scaled row by row",
                                             accepts,
                                             emit,
                                             {.rows = true}}};
  return table;
}

}  // namespace sinter
