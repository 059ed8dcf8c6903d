// OneHot, NonZero, Compress, Unique, ReverseSequence, Trilu: positions that come from data, and counts.
#include "kernels/movement/copies.h"
#include "ops/movement/movement.h"

namespace sinter {
namespace {

bool accepts_op(const Node& n, std::string_view name) {
  return n.op->domain[0] == '\0' && n.op->name == name && !n.epilogue && is_movable(n);
}
size_t axis_of(const Node& n, int64_t fallback, size_t rank) {
  const int64_t axis = n.attributes.integer("axis", fallback);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
void open(LayerWriter& w, const std::string& i, const std::string& extent) {
  w.out.line("for (std::int64_t {0} = 0; {0} < {1}; ++{0}) {{", i, extent);
}
void describe(LayerWriter& w) {
  const Node& n = w.node;
  w.summary(fmt::format("{} {} -> {}", n.op->name, text(n.inputs[0]->type), text(n.outputs[0]->type.shape)));
}

// ---- OneHot

void emit_one_hot(LayerWriter& w) {
  describe(w);
  w.include("sinter/copy.h");
  w.include("sinter/index.h");
  w.include("sinter/scalar.h");
  const Node& n = w.node;
  const Shape& out = n.outputs[0]->type.shape;
  const size_t axis = axis_of(n, -1, out.size());
  const Dim outer = product(out, 0, axis), inner = product(out, axis + 1);
  const Extents e(w);
  const bool by_run = !contents(n.inputs[1]);  // the model declares the depth, or the node reports it
  if (by_run) {
    w.include("sinter/status.h");
    w.can_fail();
    w.out.line("const std::int64_t given = sinter::cast_to<std::int64_t>({}[0]);", w.input(1));
    if (own_count(n, out[axis]))
      w.out.line("*{} = given;", w.count(out[axis]));
    else
      w.out.line("if (given != {}) return sinter::kDimError;", e.text(out[axis]));
  }
  const std::string x = w.input(0), values = w.input(2), y = w.output(0), depth = e.text(out[axis]);
  const bool nested = !inner.is(1);
  w.out.line("sinter::fill({}, {}, {}[0]);", y, e.text(product(out)), values);
  open(w, "o", e.text(outer));
  if (nested) open(w, "i", e.text(inner));
  const std::vector<std::string> from{"o", nested ? "i" : "0"};
  w.out.line("const std::int64_t hot = sinter::index_of(sinter::cast_to<std::int64_t>({}[{}]), {});", x,
             e.address(Dim(0), from, {inner, Dim(1)}), depth);
  w.out.line("if (hot >= 0) {}[{}] = {}[1];", y,
             e.address(Dim(0), {"o", "hot", nested ? "i" : "0"}, {out[axis] * inner, inner, Dim(1)}), values);
  if (nested) w.out.line("}}");
  w.out.line("}}");
  if (by_run) w.out.line("return 0;");
}

// Where the user allows fewer rows than there could be.
void guard_count(LayerWriter& w, const std::string& report, const Dim& count, const Dim& most) {
  if (count.hi() >= most.hi()) return;
  w.include("sinter/status.h");
  w.can_fail();
  w.out.line("if (*{} > {}) return sinter::kCapacityError;", report, count.hi());
}

// ---- NonZero

bool accepts_non_zero(const Node& n, const Context&) {
  return accepts_op(n, "NonZero") && own_count(n, n.outputs[0]->type.shape[1]);
}
void emit_non_zero(LayerWriter& w) {
  describe(w);
  w.include("sinter/counted.h");
  const Node& n = w.node;
  const Shape& in = n.inputs[0]->type.shape;
  const Extents e(w);
  const std::string x = w.input(0), y = w.output(0), count = w.count(n.outputs[0]->type.shape[1]);
  std::string dims;
  for (const Dim& d : in) dims += (dims.empty() ? "" : ", ") + e.text(d);
  w.out.line("*{} = sinter::count_non_zero({}, {});", count, x, e.text(product(in)));
  const Dim& rows = n.outputs[0]->type.shape[1];
  guard_count(w, count, rows, product(in));
  if (!in.empty()) {  // a scalar has no positions
    w.out.line("const std::int64_t dims[] = {{{}}};", dims);
    w.out.line("sinter::non_zero({}, dims, {}, *{}, {});", x, in.size(), count, y);
  }
  if (rows.hi() < product(in).hi()) w.out.line("return sinter::kOk;");
}

// ---- Compress

void emit_compress(LayerWriter& w) {
  describe(w);
  w.include("sinter/copy.h");
  const Node& n = w.node;
  const bool flat = !n.attributes.has("axis");
  const Shape& in = n.inputs[0]->type.shape;
  const size_t axis = flat ? 0 : axis_of(n, 0, in.size());
  const Dim outer = flat ? Dim(1) : product(in, 0, axis), inner = flat ? Dim(1) : product(in, axis + 1);
  const Dim extent = flat ? product(in) : in[axis];
  const Dim& count = n.outputs[0]->type.shape[axis];
  const Extents e(w);
  const std::string x = w.input(0), keep = w.input(1), y = w.output(0);
  const std::string length = e.text(product(n.inputs[1]->type.shape));
  const bool nested = !outer.is(1);
  std::string report;
  if (own_count(n, count)) {
    report = w.count(count);
    w.out.line("*{} = 0;", report);
    open(w, "i", length);
    w.out.line("*{} += {}[i] ? 1 : 0;", report, keep);
    w.out.line("}}");
    guard_count(w, report, count, extent);
  }
  w.out.line("std::int64_t k = 0;  // rows written");
  if (nested) open(w, "o", e.text(outer));
  open(w, "i", length);
  w.out.line("if (!{}[i]) continue;", keep);
  const std::string from = e.address(Dim(0), {nested ? "o" : "0", "i"}, {extent * inner, inner});
  const std::string to = e.address(Dim(0), {"k"}, {inner});
  if (inner.is(1))
    w.out.line("{}[{}] = {}[{}];", y, to, x, from);
  else
    w.out.line("sinter::copy({}, {}, {});", behind(y, to), behind(x, from), e.text(inner));
  w.out.line("++k;");
  w.out.line("}}");
  if (nested) w.out.line("}}");
  if (!report.empty() && count.hi() < extent.hi()) w.out.line("return sinter::kOk;");
}

// ---- Unique

bool accepts_unique(const Node& n, const Context&) {
  if (!accepts_op(n, "Unique")) return false;
  for (size_t i : {size_t{1}, size_t{3}})
    if (n.has_output(i) && own_count(n, n.outputs[i]->type.shape[0])) return true;
  const bool flat = !n.attributes.has("axis");
  if (!n.has_output(0)) return false;
  const Shape& out = n.outputs[0]->type.shape;
  return own_count(n, out[flat ? 0 : axis_of(n, 0, out.size())]) != nullptr;
}
void emit_unique(LayerWriter& w) {
  w.summary(fmt::format("Unique {}", text(w.node.inputs[0]->type)));
  w.include("sinter/copy.h");
  w.include("sinter/counted.h");
  const Node& n = w.node;
  const bool flat = !n.attributes.has("axis");
  const Shape& in = n.inputs[0]->type.shape;
  const size_t axis = flat ? 0 : axis_of(n, 0, in.size());
  const Dim outer = flat ? Dim(1) : product(in, 0, axis), inner = flat ? Dim(1) : product(in, axis + 1);
  const Dim rows = flat ? product(in) : in[axis];
  const Dim count = n.has_output(0)   ? n.outputs[0]->type.shape[axis]
                    : n.has_output(1) ? n.outputs[1]->type.shape[0]
                                      : n.outputs[3]->type.shape[0];
  const Extents e(w);
  const std::string x = w.input(0), report = w.count(count);
  // Results that nobody wants still need a place.
  const auto list = [&](size_t i, const std::string& name) {
    return n.has_output(i) ? w.output(i) : w.scratch(name, "std::int64_t", rows.hi());
  };
  const std::string order = w.scratch("order", "std::int64_t", rows.hi());
  const std::string first = list(1, "first"), place = list(2, "place"), times = list(3, "times");
  w.out.line("const sinter::RowView<{}> view{{{}, {}, {}, {}}};", cpp_name(n.inputs[0]->type.dtype), x,
             e.text(outer), e.text(rows), e.text(inner));
  w.out.line("const std::int64_t count = sinter::unique(view, {}, {}, {}, {}, {});",
             n.attributes.integer("sorted", 1) != 0, order, first, place, times);
  w.out.line("*{} = count;", report);
  if (!n.has_output(0)) return;
  const std::string y = w.output(0);
  const bool nested = !outer.is(1);
  if (nested) open(w, "o", e.text(outer));
  open(w, "k", "count");
  // The count is not a Dim of this function yet: its factor is text.
  const std::string to = nested ? "(o * count + k)" : "k";
  const std::string from = e.address(Dim(0), {nested ? "o" : "0", first + "[k]"}, {rows * inner, inner});
  if (inner.is(1))
    w.out.line("{}[{}] = {}[{}];", y, to, x, from);
  else
    w.out.line("sinter::copy({} + {} * {}, {}, {});", y, to, e.text(inner), behind(x, from), e.text(inner));
  w.out.line("}}");
  if (nested) w.out.line("}}");
}

// ---- ReverseSequence

void emit_reverse_sequence(LayerWriter& w) {
  describe(w);
  w.include("sinter/copy.h");
  w.include("sinter/status.h");
  w.can_fail();
  const Node& n = w.node;
  const Shape& in = n.inputs[0]->type.shape;
  const auto batch = static_cast<size_t>(n.attributes.integer("batch_axis", 1)), time = 1 - batch;
  const Dim inner = product(in, 2);
  const Extents e(w);
  const std::string x = w.input(0), lengths = w.input(1), y = w.output(0), steps = e.text(in[time]);
  const std::vector<Dim> strides = dim_strides(in);
  const std::vector<Dim> walk{strides[batch], strides[time]};
  open(w, "b", e.text(in[batch]));
  w.out.line("const std::int64_t length = {}[b];", lengths);
  w.out.line("if (length < 0 || length > {}) return sinter::kIndexError;", steps);
  open(w, "t", steps);
  w.out.line("const std::int64_t source = t < length ? length - 1 - t : t;");
  const std::string to = e.address(Dim(0), {"b", "t"}, walk), from = e.address(Dim(0), {"b", "source"}, walk);
  if (inner.is(1))
    w.out.line("{}[{}] = {}[{}];", y, to, x, from);
  else
    w.out.line("sinter::copy({}, {}, {});", behind(y, to), behind(x, from), e.text(inner));
  w.out.line("}}");
  w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

// ---- Trilu

void emit_trilu(LayerWriter& w) {
  describe(w);
  w.include("sinter/copy.h");
  w.include("sinter/dims.h");
  const Node& n = w.node;
  const Shape& in = n.inputs[0]->type.shape;
  const Dim matrices = product(in, 0, in.size() - 2), rows = in[in.size() - 2], columns = in.back();
  const bool upper = n.attributes.integer("upper", 1) != 0;
  const Extents e(w);
  const std::string x = w.input(0), y = w.output(0), width = e.text(columns),
                    zero = zero_literal(n.inputs[0]->type.dtype);
  std::string k = "0";
  if (n.input(1)) {
    const auto known = contents(n.input(1));
    const std::string given = known ? e.text((*known)[0]) : w.input(1) + "[0]";
    // Clamped, so that no sum with it overflows.
    const std::string bound = e.text(rows + columns);
    if (known && (*known)[0].is_static() && (*known)[0].value() > -1000 && (*known)[0].value() < 1000) {
      k = given;
    } else {
      w.out.line("const std::int64_t k = sinter::max_of(-({1}), sinter::min_of({0}, {1}));",
                 known && (*known)[0].is(INT64_MIN) ? "INT64_MIN" : given, bound);
      k = "k";
    }
  }
  const bool nested = !matrices.is(1);
  if (nested) open(w, "m", e.text(matrices));
  open(w, "r", e.text(rows));
  // Columns below the diagonal's end (lower), or before its begin (upper).
  w.out.line("const std::int64_t edge = sinter::max_of(0, sinter::min_of(r + {}{}, {}));", k,
             upper ? "" : " + 1", width);
  const std::string row = e.address(Dim(0), {nested ? "m" : "0", "r"}, {rows * columns, columns});
  const std::string to = behind(y, row), from = behind(x, row);
  if (upper) {
    w.out.line("sinter::fill({}, edge, {});", to, zero);
    w.out.line("sinter::copy({} + edge, {} + edge, {} - edge);", to, from, width);
  } else {
    w.out.line("sinter::copy({}, {}, edge);", to, from);
    w.out.line("sinter::fill({} + edge, {} - edge, {});", to, width, zero);
  }
  w.out.line("}}");
  if (nested) w.out.line("}}");
}

}  // namespace

const std::vector<Kernel>& kernels_indexing() {
  static const std::vector<Kernel> table = {
      {"one_hot", "OneHot", [](const Node& n, const Context&) { return accepts_op(n, "OneHot"); },
       emit_one_hot},
      {"non_zero", "NonZero: counted, then written", accepts_non_zero, emit_non_zero},
      {"compress", "Compress", [](const Node& n, const Context&) { return accepts_op(n, "Compress"); },
       emit_compress},
      {"unique", "Unique: by sorting row numbers", accepts_unique, emit_unique, {.work = Work::kLoops}},
      {"reverse_sequence", "ReverseSequence",
       [](const Node& n, const Context&) { return accepts_op(n, "ReverseSequence"); }, emit_reverse_sequence},
      {"trilu", "Trilu", [](const Node& n, const Context&) { return accepts_op(n, "Trilu"); }, emit_trilu},
  };
  return table;
}

}  // namespace sinter
