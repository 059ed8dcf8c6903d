// Max pools of bytes with the channels last: sixteen channels at a time, whatever the instruction set. The
// taps that fall inside the input are cut out per row and per pixel, as in pool.cpp.
#include "emit/layer.h"
#include "kernels/nest.h"
#include "kernels/windows/rows.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  if (n.op->domain[0] != 0 || std::string_view(n.op->name) != "MaxPool" || n.epilogue) return false;
  const DType t = n.inputs[0]->type.dtype;
  return (t == DType::kI8 || t == DType::kU8) && is_channels_last(n.attributes) && n.has_output(0) &&
         !n.has_output(1);
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Window window = window_of(n);
  const Shape& ys = n.outputs[0]->type.shape;
  const Dim channels = ys.back();
  const std::string type(cpp_name(n.inputs[0]->type.dtype));
  int64_t taps = 1;
  for (const int64_t k : window.kernel) taps *= k;
  w.include("sinter/bytes.h");
  w.flops(product(ys) * Dim(taps));
  w.summary(fmt::format("MaxPool of bytes, {} taps", taps));
  const std::string x = w.input(0), y = w.output(0), count = w.dim(channels);
  Rows rows{w, window, ys[0], w.pixel_stride(*n.inputs[0]), w.pixel_stride()};
  const bool parted = !rows.take_strip() && !rows.outermost().is(1);
  if (parted) rows.turns = w.open_parts(w.dim(rows.outermost()));
  rows.open();
  w.out.line(
      "[[maybe_unused]] const auto pixel = [&](std::int64_t ox, std::int64_t first, std::int64_t end) {{");
  w.out.line("for (std::int64_t c = 0; c < {}; c += sinter::kBytes) {{", count);
  w.out.line(
      "const auto lanes = static_cast<std::size_t>(sinter::min_of(std::int64_t{{sinter::kBytes}}, {} - c));",
      count);
  w.out.line("auto most = sinter::lowest_bytes<{}>();", type);
  rows.open_taps(w.out);
  w.out.line("for (std::int64_t kw = first; kw < end; ++kw)");
  w.out.line("most = sinter::max_bytes(most, sinter::load_bytes({} + {} + c, lanes));", x,
             rows.input_offset(fmt::format("{} + kw * {}", rows.position("ox"), rows.dilation())));
  rows.close_taps(w.out);
  w.out.line("sinter::store_bytes({} + {} + c, most, lanes);", y, rows.output_offset("ox"));
  w.out.line("}}");
  w.out.put("};");
  const std::string begin = w.dim(rows.interior_begin()), end = w.dim(rows.interior_end()),
                    width = w.dim(rows.out_width());
  const std::string edge = fmt::format("pixel(ox, {}, {});", rows.first_tap("ox"), rows.last_tap("ox"));
  w.out.line("std::int64_t ox = 0;");
  if (begin != "0") w.out.line("for (; ox < {}; ++ox) {}", begin, edge);
  if (begin != end) w.out.line("for (; ox < {}; ++ox) pixel(ox, 0, {});", end, rows.kernel());
  if (end != width) w.out.line("for (; ox < {}; ++ox) {}", width, edge);
  rows.close();
  if (parted) w.close_parts();
}

}  // namespace

const std::vector<Kernel>& kernels_pool_bytes() {
  static const std::vector<Kernel> table = {
      {"pool_bytes",
       "max pools of bytes on channels-last tensors, sixteen channels at a time",
       accepts,
       emit,
       {.writes_apart = true, .rows = true, .reads_apart = true}}};
  return table;
}

}  // namespace sinter
