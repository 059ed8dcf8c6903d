// Kernels of operators whose axes or amounts are operands that only the run knows: Slice, Pad, Squeeze,
// Unsqueeze, the reductions.
//
// They find the output's extents when they run. An extent that is a symbol of the node's own is reported; one
// that is known (the model declares it) is compared, and the layer returns kDimError where it differs. The
// work is done by runtime/sinter/dynamic.h.
#include <algorithm>

#include "ir/error.h"
#include "kernels/movement/copies.h"
#include "kernels/nest.h"
#include "ops/movement/movement.h"

namespace sinter {
namespace {

bool is_op(const Node& n, std::initializer_list<std::string_view> names) {
  return n.op->domain[0] == '\0' && std::find(names.begin(), names.end(), n.op->name) != names.end();
}
bool unknown(const Node& n, size_t i) {
  return n.input(i) && !contents(n.input(i)) && !product(n.inputs[i]->type.shape).is(0);
}

// Declares `extent`, the input's extents.
void input_extents(LayerWriter& w, const Shape& s) {
  std::string all;
  for (const Dim& d : s) all += (all.empty() ? "" : ", ") + w.dim(d);
  w.out.line("const std::int64_t extent[] = {{{}}};", all.empty() ? "1" : all);
}

// ---- reductions

bool accepts_reduce(const Node& n, const Context&) {
  return n.op->domain[0] == '\0' && std::string_view(n.op->name).starts_with("Reduce") &&
         n.op->max_inputs == 2 && n.anchor_inputs >= 2 && unknown(n, 1);
}
void emit_reduce(LayerWriter& w) {
  const Node& n = w.node;
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const bool keep = n.attributes.integer("keepdims", 1) != 0;
  const auto rank = static_cast<int64_t>(in.size());
  w.include("sinter/dynamic.h");
  w.can_fail();
  w.summary(fmt::format("{} of {} over axes that the run tells", n.op->name, text(n.inputs[0]->type)));
  w.flops(product(in));
  const std::string x = w.input(0), axes = w.input(1);
  input_extents(w, in);
  w.out.line("bool reduced[{}];", rank);
  w.out.line("if (const int status = sinter::mark_axes({}, {}, {}, reduced); status != 0) return status;",
             axes, w.dim(n.inputs[1]->type.shape[0]), rank);
  if (keep) {
    for (size_t a = 0; a < out.size(); ++a)
      settle_extent(w, out[a], fmt::format("(reduced[{0}] ? 1 : extent[{0}])", a));
  } else {
    w.out.line("std::int64_t kept[{}] = {{}};", rank);
    w.out.line("for (int a = 0, k = 0; a < {}; ++a)", rank);
    w.out.line("  if (!reduced[a]) kept[k++] = extent[a];");
    for (size_t a = 0; a < out.size(); ++a) settle_extent(w, out[a], fmt::format("kept[{}]", a));
  }
  PlainOutput y(w, t);
  w.out.line("sinter::reduce_axes<sinter::Reduction::k{}>({}, {}, extent, reduced, {});",
             std::string_view(n.op->name).substr(6), x, y.pointer(), rank);
  y.finish();
  w.out.line("return 0;");
}

// ---- movements

bool accepts_move(const Node& n, const Context&) {
  if (n.epilogue || n.inputs.empty() || !n.inputs[0] || !is_movable(n.inputs[0]->type.dtype)) return false;
  if (is_op(n, {"Squeeze", "Unsqueeze"})) return unknown(n, 1);
  return (is_op(n, {"Slice", "Pad"}) && unknown(n, 3)) || (is_op(n, {"Pad"}) && unknown(n, 1));
}
std::string pointer_or_null(LayerWriter& w, size_t i) {
  return w.node.input(i)
             ? w.input(i)
             : fmt::format("static_cast<const {}*>(nullptr)", cpp_name(w.node.inputs[1]->type.dtype));
}
void emit_view(LayerWriter& w) {
  const Node& n = w.node;
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  const bool insert = is_op(n, {"Unsqueeze"});
  const int64_t rank = static_cast<int64_t>(insert ? out.size() : in.size());
  const std::string x = w.input(0), axes = w.input(1);
  input_extents(w, in);
  w.out.line("bool named[{}];", std::max<int64_t>(rank, 1));
  w.out.line("if (const int status = sinter::mark_axes({}, {}, {}, named); status != 0) return status;", axes,
             w.dim(n.inputs[1]->type.shape[0]), rank);
  w.out.line("std::int64_t found[{}] = {{}};", std::max<size_t>(out.size(), 1));
  if (insert) {
    w.out.line("for (int a = 0, k = 0; a < {}; ++a) found[a] = named[a] ? 1 : extent[k++];", rank);
  } else {
    w.out.line("for (int a = 0, k = 0; a < {}; ++a) {{", rank);
    w.out.line("if (named[a] && extent[a] != 1) return sinter::kDimError;");
    w.out.line("if (!named[a]) found[k++] = extent[a];");
    w.out.line("}}");
  }
  for (size_t a = 0; a < out.size(); ++a) settle_extent(w, out[a], fmt::format("found[{}]", a));
  w.out.line("const std::int64_t size = {};", w.dim(product(in)));
  w.out.line("for (std::int64_t i = 0; i < size; ++i) {}[i] = {}[i];", w.output(0), x);
}
std::string pad_rule(const Node& n) {
  const std::string mode = n.attributes.text("mode", "constant");
  return std::string("sinter::AxisRule::k") + (mode == "edge"      ? "Edge"
                                               : mode == "reflect" ? "Reflect"
                                               : mode == "wrap"    ? "Wrap"
                                                                   : "Constant");
}
void emit_move(LayerWriter& w) {
  const Node& n = w.node;
  w.include("sinter/dynamic.h");
  w.can_fail();
  w.summary(fmt::format("{} of {} along axes that the run tells", n.op->name, text(n.inputs[0]->type)));
  if (is_op(n, {"Squeeze", "Unsqueeze"})) {
    emit_view(w);
    w.out.line("return 0;");
    return;
  }
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  const std::string x = w.input(0), first = w.input(1);
  w.out.line("sinter::MovedAxis axes[{}];", std::max<size_t>(in.size(), 1));
  for (size_t a = 0; a < in.size(); ++a)
    w.out.line("axes[{0}].extent = axes[{0}].out = axes[{0}].rows = {1};", a, w.dim(in[a]));
  const std::string count = w.dim(n.inputs[1]->type.shape[0]);
  if (is_op(n, {"Slice"}))
    w.out.line("const int status = sinter::slice_axes(axes, {}, {}, {}, {}, {}, {});", in.size(), first,
               w.input(2), pointer_or_null(w, 3), pointer_or_null(w, 4), count);
  else
    w.out.line("const int status = sinter::pad_axes(axes, {}, {}, {}, {} / 2, {});", in.size(), first,
               pointer_or_null(w, 3), count, pad_rule(n));
  w.out.line("if (status != 0) return status;");
  for (size_t a = 0; a < out.size(); ++a) settle_extent(w, out[a], fmt::format("axes[{}].out", a));
  const DType t = n.inputs[0]->type.dtype;
  const std::string fill = is_op(n, {"Pad"}) && n.input(2) ? w.input(2) + "[0]" : zero_literal(t);
  w.out.line("sinter::move_axes<{}>({}, {}, axes, {}, {});", cpp_name(t), x, w.output(0), in.size(), fill);
  w.out.line("return 0;");
}

}  // namespace

const std::vector<Kernel>& kernels_dynamic() {
  static const std::vector<Kernel> table = {
      {"reduce_dynamic", "reductions over axes that are run-time operands", accepts_reduce, emit_reduce},
      {"move_dynamic", "Slice, Pad, Squeeze, Unsqueeze along axes that are run-time operands", accepts_move,
       emit_move},
  };
  return table;
}

}  // namespace sinter
