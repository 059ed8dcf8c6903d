// ArgMax and ArgMin along one axis. An element is only taken over another if it compares greater (less; or as
// great, with select_last_index), so NaN is only the result where it comes first.
//
// Floats whose axis is an outer one are searched a vector of lines at a time; everything else line by line.
#include <algorithm>

#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  const std::string_view op = n.op->name;
  const DType t = n.inputs[0]->type.dtype;
  return n.op->domain[0] == 0 && !n.epilogue && (op == "ArgMax" || op == "ArgMin") &&
         (is_float(t) || is_integer(t));
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& shape = n.inputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const int64_t given = n.attributes.integer("axis", 0);
  const size_t axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(shape.size()) : given);
  const bool greatest = std::string_view(n.op->name) == "ArgMax",
             last = n.attributes.integer("select_last_index", 0) != 0;
  const Dim inner = product(shape, axis + 1);
  const std::string count = w.dim(shape[axis]), stride = w.dim(inner);
  w.summary(fmt::format("{} along axis {} of {}", n.op->name, axis, text(n.inputs[0]->type)));
  w.flops(product(shape));
  const std::string x = w.input(0), y = w.output(0);
  w.out.put(loop_text("o", w.dim(product(shape, 0, axis))));
  const std::string block = times("o", times(count, stride));
  if (t == DType::kF32 && !inner.is(1) && w.target.lanes > 1 && shape[axis].hi() < INT32_MAX) {
    open_columns(w);
    w.out.line("const float* const from = {};", plus(plus(x, block), "c"));
    w.out.line("f32v best[kVectors];");
    w.out.line("i32v at[kVectors];");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w.out.line("best[v] = load_lanes(from + v * kLanes, lanes);");
    w.out.line("at[v] = splat_int(0);");
    w.out.line("}}");
    w.out.line("for (std::int32_t k = 1; k < {}; ++k) {{", count);
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w.out.line("const f32v e = load_lanes(from + {} + v * kLanes, lanes);", times("k", stride));
    w.out.line("const m32v better = {}(e, best[v]);", greatest ? (last ? "ge" : "gt") : (last ? "le" : "lt"));
    w.out.line("best[v] = select(better, e, best[v]);");
    w.out.line("at[v] = select(better, splat_int(k), at[v]);");
    w.out.line("}}");
    w.out.line("}}");
    w.out.line("std::int32_t found[kVectors * kLanes];");
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int v = 0; v < kVectors; ++v) store(found + v * kLanes, at[v]);");
    w.out.line("const int wanted = kVectors == 1 ? lanes : kVectors * kLanes;");
    w.out.line("for (int i = 0; i < wanted; ++i) {}[{} + i] = found[i];", y, plus(times("o", stride), "c"));
    close_columns(w, inner, std::max(1, std::min(4, 32 / w.target.lanes)));
  } else {
    w.include("sinter/half.h");
    w.out.put(loop_text("c", stride));
    w.out.line("const {}* const from = {};", cpp_name(t), plus(plus(x, block), "c"));
    const std::string type = compute_type(t);
    w.out.line("{} best = {};", type, load_text(t, "from[0]"));
    w.out.line("std::int64_t at = 0;");
    w.out.line("for (std::int64_t k = 1; k < {}; ++k) {{", count);
    w.out.line("const {} e = {};", type, load_text(t, fmt::format("from[{}]", times("k", stride))));
    w.out.line("if (e {} best) {{", greatest ? (last ? ">=" : ">") : (last ? "<=" : "<"));
    w.out.line("best = e;");
    w.out.line("at = k;");
    w.out.line("}}");
    w.out.line("}}");
    w.out.line("{}[{}] = at;", y, plus(times("o", stride), "c"));
    w.out.line("}}");
  }
  w.out.line("}}");
}

}  // namespace

const std::vector<Kernel>& kernels_argreduce() {
  static const std::vector<Kernel> table = {
      {"argreduce", "ArgMax and ArgMin along any axis", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
