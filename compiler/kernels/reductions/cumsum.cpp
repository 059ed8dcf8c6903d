// CumSum and CumProd: one pass along the axis with the running values of up to 64 neighbouring lines, so that
// memory is walked in order whatever the axis is. Floats accumulate in double, integers wrap.
#include "emit/expr_text.h"
#include "emit/layer.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  const std::string_view op = n.op->name;
  return (op == "CumSum" || op == "CumProd") && n.op->domain[0] == 0;
}

// Declares outer, extent and inner: the elements before, along and behind the axis that operand 1 names.
void find_axis(LayerWriter& w) {
  const Shape& s = w.node.inputs[0]->type.shape;
  w.include("sinter/status.h");
  w.can_fail();
  w.out.line("std::int64_t axis = {}[0];", w.input(1));
  w.out.line("if (axis < 0) axis += {};", s.size());
  w.out.line("if (axis < 0 || axis >= {}) return sinter::kIndexError;", s.size());
  std::string all;
  for (const Dim& d : s) all += (all.empty() ? "" : ", ") + w.dim(d);
  w.out.line("const std::int64_t extents[] = {{{}}};", all);
  w.out.line("std::int64_t outer = 1, inner = 1;");
  w.out.line("const std::int64_t extent = extents[axis];");
  w.out.line("for (int d = 0; d < {}; ++d) {{", s.size());
  w.out.line("if (d < axis) outer *= extents[d];");
  w.out.line("if (d > axis) inner *= extents[d];");
  w.out.line("}}");
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& s = n.inputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const bool known = n.inputs[1]->data.has_value();
  int64_t axis = known ? n.inputs[1]->data->integer(0) : 0;
  if (axis < 0) axis += static_cast<int64_t>(s.size());
  const auto a = static_cast<size_t>(axis);
  const bool exclusive = n.attributes.integer("exclusive", 0) != 0;
  const bool reverse = n.attributes.integer("reverse", 0) != 0;
  const bool product_op = std::string_view(n.op->name) == "CumProd";
  w.summary(fmt::format("{} of {} along {}{}{}", n.op->name, text(s),
                        known ? fmt::format("axis {}", axis) : "an axis that the run tells",
                        exclusive ? ", exclusive" : "", reverse ? ", reverse" : ""));
  w.flops(product(s));
  w.include("sinter/scalar.h");
  w.include("sinter/dims.h");
  const std::string x = w.input(0);
  PlainOutput out(w, t);
  if (!known) find_axis(w);
  const std::string extent = known ? w.dim(s[a]) : "extent",
                    inner = known ? w.dim(product(s, a + 1)) : "inner";
  const bool flat = known && product(s, a + 1).is(1);
  const bool real = is_float(t);
  const std::string type = real ? "double" : "std::uint64_t", one = product_op ? "1" : "0";
  w.out.put(loop_text("o", known ? w.dim(product(s, 0, a)) : "outer"));
  if (flat) {
    w.out.line("{} sum = {};", type, one);
  } else {
    w.out.line("for (std::int64_t c = 0; c < {}; c += 64) {{", inner);
    w.out.line("const std::int64_t width = sinter::min_of(std::int64_t{{64}}, {} - c);", inner);
    w.out.line("{} sum[64];", type);
    w.out.line("for (std::int64_t j = 0; j < width; ++j) sum[j] = {};", one);
  }
  w.out.put(loop_text("k", extent));
  const std::string step = reverse ? fmt::format("({} - 1 - k)", extent) : "k";
  w.out.line("const std::int64_t at = {};", flat
                                                ? fmt::format("o * {} + {}", extent, step)
                                                : fmt::format("(o * {} + {}) * {} + c", extent, step, inner));
  if (!flat) w.out.put(loop_text("j", "width"));
  const std::string sum = flat ? "sum" : "sum[j]", place = flat ? "[at]" : "[at + j]";
  w.out.line("const {} v = static_cast<{}>({});", type, type, load_text(t, x + place));
  const std::string cast =
      !real ? fmt::format("static_cast<{}>({})", cpp_name(t), sum)
            : store_text(t, t == DType::kF64 ? sum : fmt::format("static_cast<float>({})", sum));
  if (exclusive) w.out.line("{}{} = {};", out.pointer(), place, cast);
  w.out.line("{} {}= v;", sum, product_op ? "*" : "+");
  if (!exclusive) w.out.line("{}{} = {};", out.pointer(), place, cast);
  if (!flat) w.out.line("}}");
  w.out.line("}}");
  if (!flat) w.out.line("}}");
  w.out.line("}}");
  if (!n.epilogue) w.may_overwrite(0);
  out.finish();
  if (!known) w.out.line("return 0;");
}

}  // namespace

const std::vector<Kernel>& kernels_cumsum() {
  static const std::vector<Kernel> table = {
      {"cumsum", "running sums and products, 64 lines at a time", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
