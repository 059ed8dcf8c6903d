// Col2Im: every pixel gathers the columns whose window covers it, so that it is written once.
#include "emit/expr_text.h"
#include "emit/layer.h"
#include "kernels/nest.h"
#include "ops/movement/movement.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "Col2Im" && n.op->domain[0] == 0 && contents(n.inputs[2]);
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& image = n.outputs[0]->type.shape;
  const size_t axes = image.size() - 2;
  const DType t = n.inputs[0]->type.dtype;
  const std::vector<Dim> block = *contents(n.inputs[2]);
  const std::vector<int64_t> ones(axes, 1),
      strides = n.attributes.integers("strides", ones), dilations = n.attributes.integers("dilations", ones),
      pads = n.attributes.integers("pads", std::vector<int64_t>(2 * axes));
  w.include("sinter/scalar.h");
  w.summary(fmt::format("Col2Im of {} to {}", text(n.inputs[0]->type.shape), text(image)));
  const std::string x = w.input(0);
  PlainOutput out(w, t);
  const std::string type = compute_type(t);
  Dim taps(1), positions(1);
  std::vector<Dim> counts;
  for (size_t d = 0; d < axes; ++d) {
    taps = taps * block[d];
    counts.push_back(
        floordiv(image[d + 2] + pads[d] + pads[d + axes] - Dim(dilations[d]) * (block[d] - 1) - 1,
                 strides[d]) +
        1);
    positions = positions * counts.back();
  }
  w.flops(product(image) * taps);
  w.out.put(loop_text("n", w.dim(image[0] * image[1])));
  std::string pixel = "n", tap = "", at = "";
  for (size_t d = 0; d < axes; ++d) {
    w.out.put(loop_text(fmt::format("i{}", d), w.dim(image[d + 2])));
    pixel = fmt::format("({} * {} + i{})", pixel, w.dim(image[d + 2]), d);
  }
  w.out.line("{} sum = static_cast<{}>(0);", type, type);
  for (size_t d = 0; d < axes; ++d) {
    w.out.put(loop_text(fmt::format("k{}", d), w.dim(block[d])));
    // The window that has this pixel under its tap k begins here; it may not exist.
    w.out.line("const std::int64_t b{0} = i{0} + {1} - k{0} * {2};", d, pads[d], dilations[d]);
    w.out.line("if (b{0} < 0 || b{0} % {1} != 0 || b{0} / {1} >= {2}) continue;", d, strides[d],
               w.dim(counts[d]));
    tap = d == 0 ? "k0" : fmt::format("({} * {} + k{})", tap, w.dim(block[d]), d);
    const std::string p = strides[d] == 1 ? fmt::format("b{}", d) : fmt::format("b{} / {}", d, strides[d]);
    at = d == 0 ? p : fmt::format("({}) * {} + {}", at, w.dim(counts[d]), p);
  }
  w.out.line(
      "sum = sinter::add(sum, {});",
      load_text(t, fmt::format("{}[(n * {} + {}) * {} + {}]", x, w.dim(taps), tap, w.dim(positions), at)));
  for (size_t d = 0; d < axes; ++d) w.out.line("}}");
  w.out.line("{}[{}] = {};", out.pointer(), pixel, store_text(t, "sum"));
  for (size_t d = 0; d <= axes; ++d) w.out.line("}}");
  out.finish();
}

}  // namespace

const std::vector<Kernel>& kernels_col2im() {
  static const std::vector<Kernel> table = {
      {"col2im", "pixels gathered from the columns of their windows", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
