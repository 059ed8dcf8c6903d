#include "kernels/nest.h"

#include <functional>

namespace sinter {

std::string loop_text(const std::string& v, const std::string& end) {
  return fmt::format("for (std::int64_t {0} = 0; {0} < {1}; ++{0}) {{", v, end);
}

std::string loop_text(const std::string& v, const LayerWriter::Turns& turns) {
  return fmt::format("for (std::int64_t {0} = {1}; {0} < {2}; ++{0}) {{", v, turns.first, turns.end);
}

namespace {
bool is_sum(const std::string& s) {
  return s.find(" + ") != std::string::npos || s.find(" - ") != std::string::npos;
}
}  // namespace

std::string times(const std::string& a, const std::string& b) {
  if (a == "0" || b == "0") return "0";
  if (a == "1") return b;
  if (b == "1") return a;
  auto wrapped = [](const std::string& s) { return is_sum(s) ? "(" + s + ")" : s; };
  return wrapped(a) + " * " + wrapped(b);
}
std::string plus(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  if (b == "0") return a;
  return a + " + " + b;
}

std::string offset_text(LayerWriter& w, const Shape& shape, const std::vector<std::string>& index) {
  std::string at = "0";
  for (size_t a = 0; a < shape.size(); ++a) at = plus(times(at, w.dim(shape[a])), index[a]);
  return at;
}

void open_columns(LayerWriter& w, const std::string& name) {
  w.include("sinter/mac.h");
  w.out.line("const auto {} = [&](auto vectors, std::int64_t c, int lanes) __attribute__((always_inline)) {{",
             name);
  w.out.line("constexpr int kVectors = vectors.value;");
}

Dim column_turns(const LayerWriter& w, const Dim& n, int vectors) {
  return ceildiv(n, Dim(int64_t{vectors} * w.target.lanes));
}

namespace {
// The groups of `vectors` whose numbers are the turns; the last one may be broken.
void column_parts(LayerWriter& w, const Dim& n, int vectors, const std::string& name,
                  const LayerWriter::Turns& turns) {
  const std::string end = w.dim(n);
  const int64_t width = int64_t{vectors} * w.target.lanes;
  w.include("sinter/dims.h");
  w.out.line("std::int64_t c = {} * {};", turns.first, width);
  w.out.line("const std::int64_t behind = sinter::min_of({} * {}, std::int64_t{{{}}});", turns.end, width,
             end);
  if (vectors > 1)
    w.out.line("for (; c + {0} <= behind; c += {0}) {1}(Int<{2}>(), c, kLanes);", width, name, vectors);
  w.out.line("for (; c + kLanes <= behind; c += kLanes) {}(Int<1>(), c, kLanes);", name);
  if (w.target.lanes > 1) w.out.line("if (c < behind) {}(Int<1>(), c, static_cast<int>(behind - c));", name);
}
}  // namespace

void close_columns(LayerWriter& w, const Dim& n, int vectors, const std::string& name,
                   const LayerWriter::Turns& turns) {
  w.out.put("};");
  if (turns.first != "0") return column_parts(w, n, vectors, name, turns);
  const int lanes = w.target.lanes;
  const std::string end = w.dim(n);
  if (n.is_static()) {
    const int64_t count = n.value(), wide = count / (int64_t{vectors} * lanes) * vectors * lanes,
                  whole = count / lanes * lanes;
    if (vectors > 1 && wide > 0)
      w.out.line("for (std::int64_t c = 0; c < {}; c += {} * kLanes) {}(Int<{}>(), c, kLanes);", wide,
                 vectors, name, vectors);
    const int64_t from = vectors > 1 ? wide : 0;
    if (whole - from == lanes)
      w.out.line("{}(Int<1>(), {}, kLanes);", name, from);
    else if (whole > from)
      w.out.line("for (std::int64_t c = {}; c < {}; c += kLanes) {}(Int<1>(), c, kLanes);", from, whole,
                 name);
    if (whole < count) w.out.line("{}(Int<1>(), {}, {});", name, whole, count - whole);
    return;
  }
  w.out.line("std::int64_t c = 0;");
  if (vectors > 1)
    w.out.line("for (; c + {0} * kLanes <= {1}; c += {0} * kLanes) {2}(Int<{0}>(), c, kLanes);", vectors, end,
               name);
  w.out.line("for (; c + kLanes <= {0}; c += kLanes) {1}(Int<1>(), c, kLanes);", end, name);
  if (lanes > 1) w.out.line("if (c < {0}) {1}(Int<1>(), c, static_cast<int>({0} - c));", end, name);
}

std::vector<AxisGroup> collapse(const Shape& shape, const std::vector<bool>& mask,
                                const std::function<bool(size_t, size_t)>& may_merge) {
  const std::vector<Dim> strides = dim_strides(shape);
  std::vector<AxisGroup> groups;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].is(1)) continue;
    if (!groups.empty() && groups.back().marked == mask[d] && may_merge(groups.back().axes.front(), d)) {
      AxisGroup& g = groups.back();
      g.extent = g.extent * shape[d];
      g.axes.push_back(d);
      g.stride = strides[d];
    } else {
      groups.push_back({shape[d], mask[d], {d}, strides[d]});
    }
  }
  return groups;
}

PlainOutput::PlainOutput(LayerWriter& w, DType anchor_type) : w_(w), dtype_(anchor_type) {
  if (!w.node.epilogue) {
    pointer_ = w.output(0);
    return;
  }
  const Dim count = product(w.node.outputs[0]->type.shape);
  if (count.hi() == Interval::kUnbounded || count.hi() > (int64_t{1} << 40))
    refuse("the result's size {} has no upper bound", count.text());
  pointer_ = w.scratch("result", std::string(cpp_name(anchor_type)), count.hi());
}

void PlainOutput::finish() {
  if (!w_.node.epilogue) return;
  const Node& n = w_.node;
  const Shape& shape = n.outputs[0]->type.shape;
  const Strided result{pointer_, dtype_, Dim(0), dim_strides(shape), {}};
  std::vector<Strided> operands{result};
  std::vector<int> number(n.inputs.size(), -1);
  const ExprPtr e = rewrite_leaves(n.epilogue, [&](const Expr& leaf) -> ExprPtr {
    if (leaf.kind == Expr::Kind::kAccumulator) return Expr::input(0, leaf.dtype);
    if (leaf.kind != Expr::Kind::kOperand) return nullptr;
    const size_t k = static_cast<size_t>(leaf.operand);
    if (number[k] < 0) {
      number[k] = static_cast<int>(operands.size());
      operands.push_back(broadcast(w_, w_.input(k), *n.inputs[k], shape));
    }
    return Expr::input(number[k], leaf.dtype);
  });
  const Strided out{w_.output(0), n.outputs[0]->type.dtype, Dim(0), dim_strides(shape), {}};
  emit_loops(w_, shape, e, out, operands);
}

bool vector_epilogue(const Node& n) {
  if (n.outputs[0]->type.dtype != element_type(n)) return false;
  if (!n.epilogue) return true;
  if (!has_vector_text(*n.epilogue, element_type(n))) return false;
  // Operands whose last extent is 1 or full only at run time have no vector text.
  const Shape& out = n.outputs[0]->type.shape;
  for (size_t i = n.anchor_inputs; i < n.inputs.size(); ++i) {
    const Shape& s = n.inputs[i]->type.shape;
    if (!s.empty() && !s.back().is(1) && !(s.back() == out.back()) && s.back().lo() <= 1) return false;
  }
  return true;
}

}  // namespace sinter
