// Kernels of the operators whose output is a permutation, a part or a repetition of their inputs by fixed
// strides: Transpose, Slice, Expand, Split, Concat, Tile, DepthToSpace, Dropout …
#include <algorithm>

#include "ir/error.h"
#include "kernels/movement/copies.h"
#include "ops/movement/movement.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool is_op(const Node& n, std::initializer_list<std::string_view> names) {
  return n.op->domain[0] == '\0' && std::find(names.begin(), names.end(), n.op->name) != names.end();
}
std::string from_to(const Node& n) {
  std::string to;
  for (const Value* v : n.outputs)
    if (v) to += (to.empty() ? "" : " and ") + text(v->type.shape);
  return fmt::format("{} {} -> {}", n.op->name, text(n.inputs[0]->type), to);
}

// ---- affine reads of one tensor

bool accepts_strided(const Node& n, const Context&) {
  if (!is_movable(n) || n.inputs.empty() || !n.inputs[0] || (n.op->is_view && !n.epilogue)) return false;
  const Value& in = *n.inputs[0];
  bool any = false;
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    const Value* out = n.outputs[i];
    if (!out) continue;
    any = true;
    if (!n.epilogue && out->type.dtype != in.type.dtype) return false;
    if (n.epilogue && n.outputs.size() > 1) return false;
    const Shape& shape = out->type.shape;
    for (const Dim& d : shape)
      if (own_count(n, d)) return false;
    if (!strided_read(n, in.type.shape, shape, i)) return false;
  }
  return any;
}
// --- rows: a picture's channels from planes to last, or back; whole rows at a time

bool puts_last(const Node& n) { return n.attributes.integers("perm") == std::vector<int64_t>{0, 2, 3, 1}; }

bool accepts_rows(const Node& n, const Context& c) {
  if (n.op->domain[0] != 0 || std::string_view(n.op->name) != "Transpose" || n.epilogue) return false;
  if (!puts_last(n) && n.attributes.integers("perm") != std::vector<int64_t>{0, 3, 1, 2}) return false;
  const Shape& last = (puts_last(n) ? n.outputs[0] : n.inputs[0])->type.shape;
  constexpr int64_t kShort = 4;  // fewer channels: the loops of copy_strided
  const DType from = n.inputs[0]->type.dtype, to = n.outputs[0]->type.dtype;
  if (from != to ? n.freedom.halves != Halves::kStored : from != DType::kF32 && from != DType::kF16)
    return false;
  return is_static(last) && last[0].is(1) && last[3].value() > kShort && !c.of(n).in_place;
}

void emit_rows(LayerWriter& w) {
  const Node& n = w.node;
  w.summary(from_to(n));
  w.include("sinter/copy.h");
  const bool last = puts_last(n);
  const Shape& s = (last ? n.outputs[0] : n.inputs[0])->type.shape;
  const int64_t height = s[1].value(), width = s[2].value(), channels = s[3].value();
  const std::string x = w.input(0), y = w.output(0);
  auto strip = w.strip();
  const bool whole = !strip;
  if (whole) {  // parts are rows of the picture
    const LayerWriter::Turns turns = w.open_parts(std::to_string(height), kOneByOne);
    if (turns.first != "0") strip = LayerWriter::Strip{turns.first, turns.end, "", ""};
  }
  const std::string first = strip ? strip->first : "0";
  const std::string count =
      strip ? fmt::format("({} - {}) * {}", strip->end, first, width) : std::to_string(height * width);
  const std::string plane = strip ? fmt::format(" + {} * {}", first, width) : "";
  auto dense = [&](const std::string& base) {
    return strip && base.empty() ? fmt::format(" + {} * {}", first, width * channels)
           : strip               ? fmt::format(" + ({} - {}) * {}", first, base, width * channels)
                                 : "";
  };
  if (last)
    w.out.line("sinter::transpose({}{}, {}, {}{}, {}, {}, {});", y, dense(strip ? strip->y_base : ""),
               channels, x, plane, height * width, count, channels);
  else
    w.out.line("sinter::transpose({}{}, {}, {}{}, {}, {}, {});", y, plane, height * width, x,
               dense(strip ? strip->x_base : ""), channels, channels, count);
  if (whole) w.close_parts();
}

void emit_strided(LayerWriter& w) {
  const Node& n = w.node;
  w.summary(from_to(n));
  const Value& in = *n.inputs[0];
  const Extents e(w);
  const std::string x = w.input(0);
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (!n.outputs[i]) continue;
    const Shape& shape = n.outputs[i]->type.shape;
    const StridedRead read = *strided_read(n, in.type.shape, shape, i);
    const Strided from{x, in.type.dtype, read.offset, read.strides, {}};
    if (!n.epilogue) {
      emit_copy(e, shape, dense(w.output(i), n.outputs[i]->type), from, true);
      continue;
    }
    // The moved element takes the place of the anchor's result.
    std::vector<Strided> operands{from};
    std::map<int, int> number;
    const ExprPtr value = rewrite_leaves(n.epilogue, [&](const Expr& leaf) -> ExprPtr {
      if (leaf.kind == Expr::Kind::kAccumulator) return Expr::input(0, leaf.dtype);
      if (leaf.kind != Expr::Kind::kOperand) return nullptr;
      const auto [at, fresh] = number.try_emplace(leaf.operand, static_cast<int>(operands.size()));
      const auto k = static_cast<size_t>(leaf.operand);
      if (fresh) operands.push_back(broadcast(w, w.input(k), *n.inputs[k], shape));
      return Expr::input(at->second, leaf.dtype);
    });
    emit_loops(w, shape, value, dense(w.output(i), n.outputs[i]->type), operands);
  }
}

// ---- Identity and its like

bool accepts_same(const Node& n, const Context&) {
  const bool copies = std::string_view(n.op->domain) == "sinter" && std::string_view(n.op->name) == "copy";
  return (copies || is_op(n, {"Identity", "Dropout"})) && !n.epilogue && is_movable(n);
}
void emit_same(LayerWriter& w) {
  const Node& n = w.node;
  w.include("sinter/copy.h");
  const Extents e(w);
  w.summary(n.op->name);
  if (n.has_output(0)) {
    const std::string x = w.input(0);
    const TensorType& type = n.outputs[0]->type;
    if (w.decision.pixel_stride || w.reads_gaps())
      emit_copy(e, type.shape, pitched(w, w.output(0), *n.outputs[0]), pitched(w, x, *n.inputs[0]), true);
    else
      w.out.line("sinter::copy({}, {}, {});", w.output(0), x, e.text(product(type.shape)));
  }
  if (n.has_output(1))
    w.out.line("sinter::fill({}, {}, true);", w.output(1), e.text(product(n.outputs[1]->type.shape)));
}

// ---- Concat

bool accepts_concat(const Node& n, const Context&) {
  return is_op(n, {"Concat"}) && !n.epilogue && is_movable(n);
}
// Whether each input has one element at a time: columns that become the rows of a matrix.
bool joins_columns(const LayerWriter& w, size_t axis) {
  const Node& n = w.node;
  constexpr size_t kMost = 8;
  const Shape& out = n.outputs[0]->type.shape;
  return product(out, axis + 1).is(1) && n.inputs.size() <= kMost && !w.decision.pixel_stride &&
         !w.reads_gaps() && std::all_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) {
           return v->type.shape[axis].is(1);
         });
}
void emit_columns(LayerWriter& w, const Dim& rows) {
  const Node& n = w.node;
  std::vector<std::string> inputs;
  for (size_t k = 0; k < n.inputs.size(); ++k) inputs.push_back(w.input(k));
  const std::string y = w.output(0);
  const LayerWriter::Turns turns = w.open_parts(w.dim(rows), kOneByOne);
  const DType type = n.outputs[0]->type.dtype;
  if (is_word(type) && inputs.size() >= 2 && inputs.size() <= 4) {
    const bool parted = turns.first != "0";
    std::string from;
    for (const std::string& x : inputs) from += (from.empty() ? "" : ", ") + behind(x, turns.first);
    w.include("sinter/copy.h");
    w.out.line("const {}* const columns[] = {{{}}};", cpp_name(type), from);
    w.out.line("sinter::interleave<{}>({}, columns, {});", inputs.size(),
               parted ? fmt::format("{} + {} * {}", y, turns.first, inputs.size()) : y,
               parted ? turns.end + " - " + turns.first : turns.end);
    return w.close_parts();
  }
  w.out.line("for (std::int64_t i = {}; i < {}; ++i) {{", turns.first, turns.end);
  for (size_t k = 0; k < inputs.size(); ++k)
    w.out.line("{}[i * {} + {}] = {}[i];", y, inputs.size(), k, inputs[k]);
  w.out.line("}}");
  w.close_parts();
}
void emit_concat(LayerWriter& w) {
  const Node& n = w.node;
  const TensorType& type = n.outputs[0]->type;
  const auto axis = static_cast<size_t>(whole_axis(n.attributes.integer("axis", 0), type.shape.size()));
  w.summary(fmt::format("Concat of {} along axis {} -> {}", n.inputs.size(), axis, text(type.shape)));
  if (joins_columns(w, axis)) return emit_columns(w, product(type.shape, 0, axis));
  const Extents e(w);
  Strided to = dense(w.output(0), type);
  const std::vector<Dim> strides = to.strides;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const Shape& shape = n.inputs[i]->type.shape;
    // Extents that only a check proves equal: the output's strides count, the input's own axis extent.
    emit_copy(e, shape, to, pitched(w, w.input(i), *n.inputs[i]), true);
    to.offset = to.offset + shape[axis] * strides[axis];
  }
}

// ---- Tile

bool accepts_tile(const Node& n, const Context&) {
  return is_op(n, {"Tile"}) && !n.epilogue && is_movable(n) && contents(n.input(1));
}
void emit_tile(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& in = n.inputs[0]->type.shape;
  const std::vector<Dim> repeats = *contents(n.input(1));
  w.summary(from_to(n));
  // The output as [repeat 0][extent 0][repeat 1][extent 1] …; repeats have stride 0 in the input.
  const std::vector<Dim> own = dim_strides(in);
  Shape space;
  std::vector<Dim> from;
  for (size_t d = 0; d < in.size(); ++d) {
    space.insert(space.end(), {repeats[d], in[d]});
    from.insert(from.end(), {Dim(0), own[d]});
  }
  const DType type = n.inputs[0]->type.dtype;
  const std::string x = w.input(0);
  emit_copy(Extents(w), space, {w.output(0), type, Dim(0), dim_strides(space), {}},
            {x, type, Dim(0), from, {}});
}

// ---- DepthToSpace, SpaceToDepth

bool accepts_blocks(const Node& n, const Context&) {
  return is_op(n, {"DepthToSpace", "SpaceToDepth"}) && !n.epilogue && is_movable(n);
}

// Strides of `shape` in the order of `axes`: letters name axes, as in einsum.
std::vector<Dim> strides_by_letter(const std::string& layout, const std::map<char, Dim>& extents,
                                   const std::string& wanted) {
  Shape shape;
  for (char c : layout) shape.push_back(extents.at(c));
  const std::vector<Dim> own = dim_strides(shape);
  std::vector<Dim> strides;
  for (char c : wanted) strides.push_back(own[layout.find(c)]);
  return strides;
}

void emit_blocks(LayerWriter& w) {
  const Node& n = w.node;
  const bool to_space = is_op(n, {"DepthToSpace"}), last = is_channels_last(n.attributes);
  const bool crd = n.attributes.text("mode", "DCR") == "CRD";
  const Shape& small = n.inputs[0]->type.shape;
  const Shape& deep = to_space ? small : n.outputs[0]->type.shape;
  const Shape& wide = to_space ? n.outputs[0]->type.shape : small;
  const Dim block(n.attributes.integer("blocksize", 1));
  const Shape grid = spatial_of(n.attributes, deep);
  const bool wide_last = last && n.attributes.integer("wide_planes", 0) == 0;
  const std::map<char, Dim> extents = {{'n', deep[0]}, {'c', wide[wide_last ? 3 : 1]},
                                       {'h', grid[0]}, {'w', grid[1]},
                                       {'y', block},   {'x', block}};
  // Channels of the deep tensor: (y x c), or (c y x) for CRD; rows of the wide one: (h y), columns (w x).
  const std::string channels = crd ? "cyx" : "yxc";
  const std::string in_depth = last ? "nhw" + channels : "n" + channels + "hw";
  const std::string in_space = wide_last ? "nhywxc" : "nchywx";
  const std::string &from = to_space ? in_depth : in_space, &to = to_space ? in_space : in_depth;
  Shape space;
  for (char c : to) space.push_back(extents.at(c));
  w.summary(from_to(n));
  const DType type = n.inputs[0]->type.dtype;
  const std::string x = w.input(0);
  emit_copy(Extents(w), space, {w.output(0), type, Dim(0), dim_strides(space), {}},
            {x, type, Dim(0), strides_by_letter(from, extents, to), {}});
}

// ---- Slice by positions that are data

bool accepts_slice(const Node& n, const Context&) {
  if (!is_op(n, {"Slice"}) || n.epilogue || !is_movable(n)) return false;
  const auto axes = n.input(3) ? contents(n.input(3)) : std::vector<Dim>{};
  return n.inputs[1]->type.shape[0].is_static() && axes && is_static(*axes);
}
void emit_slice(LayerWriter& w) {
  const Node& n = w.node;
  const TensorType &in = n.inputs[0]->type, &out = n.outputs[0]->type;
  w.summary(from_to(n) + ", bounds from data");
  w.include("sinter/index.h");
  w.include("sinter/status.h");
  Extents e(w);
  const std::string x = w.input(0), y = w.output(0);
  Strided from = dense(x, in);
  bool checked = false;
  const auto axes = n.input(3) ? contents(n.input(3)) : std::nullopt;
  const auto element = [&](size_t i, size_t k) {
    const auto known = contents(n.input(i));
    return known ? e.text((*known)[k]) : fmt::format("{}[{}]", w.input(i), k);
  };
  // Positions and steps become symbols of the function's own.
  Symbols own;
  const auto local = [&](const std::string& name) {
    Dim d(own.fresh(name, {-Interval::kUnbounded, Interval::kUnbounded}, ""));
    e.define(d);
    return d;
  };
  for (size_t k = 0; k < static_cast<size_t>(n.inputs[1]->type.shape[0].value()); ++k) {
    const auto d =
        static_cast<size_t>(whole_axis(axes ? (*axes)[k].value() : static_cast<int64_t>(k), in.shape.size()));
    const std::string extent = e.text(in.shape[d]), step = n.input(4) ? element(4, k) : "1";
    w.out.line("const sinter::SliceAxis axis{0} = sinter::slice_axis({1}, {2}, {3}, {4});", d, extent,
               element(1, k), element(2, k), step);
    const Dim first = local(fmt::format("first{}", d));
    w.out.line("const std::int64_t {} = axis{}.first;", e.text(first), d);
    const Dim& count = out.shape[d];
    if (own_count(n, count)) {
      const std::string report = w.count(count);
      e.define(count);
      w.out.line("const std::int64_t {} = axis{}.count;", e.text(count), d);
      w.out.line("*{} = {};", report, e.text(count));
    } else {
      checked = true;
      w.out.line("if (axis{}.count != {}) return sinter::kDimError;", d, e.text(count));
    }
    const Dim one = from.strides[d];
    from.offset = from.offset + first * one;
    if (step == "1") continue;
    const Dim stride = local(fmt::format("step{}", d));
    // A step beyond the axis is not taken: at most one element is left.
    w.out.line("const std::int64_t {} = {} > 1 ? {} : 0;", e.text(stride), e.text(count), step);
    from.strides[d] = stride * one;
  }
  emit_copy(e, out.shape, dense(y, out), from, true);
  if (!checked) return;
  w.can_fail();
  w.out.line("return sinter::kOk;");
}

// ---- Split by sizes that are data

bool accepts_split(const Node& n, const Context&) {
  return is_op(n, {"Split"}) && n.input(1) && !n.epilogue && is_movable(n);
}
void emit_split(LayerWriter& w) {
  const Node& n = w.node;
  const TensorType& in = n.inputs[0]->type;
  const auto axis = static_cast<size_t>(whole_axis(n.attributes.integer("axis", 0), in.shape.size()));
  w.summary(fmt::format("Split {} along axis {}, sizes from data", text(in), axis));
  w.include("sinter/status.h");
  w.can_fail();
  Extents e(w);
  const std::string x = w.input(0), sizes = w.input(1), extent = e.text(in.shape[axis]);
  Symbols own;
  Strided from = dense(x, in);
  const Dim step = from.strides[axis];
  std::string end = "0";
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    const Dim first(own.fresh(fmt::format("first{}", i), {0, Interval::kUnbounded}, ""));
    e.define(first);
    const std::string size = fmt::format("size{}", i);
    w.out.line("const std::int64_t {} = {}, {} = {}[{}];", e.text(first), end, size, sizes, i);
    end = fmt::format("{} + {}", e.text(first), size);
    w.out.line("if ({0} < 0 || {0} > {1} - {2}) return sinter::kDimError;", size, extent, e.text(first));
    if (!n.outputs[i]) continue;
    const TensorType& out = n.outputs[i]->type;
    const Dim& count = out.shape[axis];
    if (count.hi() < in.shape[axis].hi())
      w.out.line("if ({} > {}) return sinter::kCapacityError;", size, count.hi());
    settle_extent(w, count, size);
    if (own_count(n, count)) {
      e.define(count);
      w.out.line("const std::int64_t {} = {};", e.text(count), size);
    }
    from.offset = first * step;
    emit_copy(e, out.shape, dense(w.output(i), out), from);
  }
  w.out.line("return {} == {} ? sinter::kOk : sinter::kDimError;", end, extent);
}

}  // namespace

const std::vector<Kernel>& kernels_copy() {
  static const std::vector<Kernel> table = {
      {"copy_rows",
       "Transpose of a picture's channels from planes to last or back, by rows",
       accepts_rows,
       emit_rows,
       {.rows = true}},
      {"copy_strided", "Transpose, Slice, Expand, Split, Gather of one index: one copy by strides",
       accepts_strided, emit_strided},
      {"copy", "Identity, Dropout", accepts_same, emit_same, {.writes_apart = true, .reads_apart = true}},
      {"copy_concat", "Concat: one copy an input", accepts_concat, emit_concat, {.reads_apart = true}},
      {"copy_tile", "Tile: a copy that repeats", accepts_tile, emit_tile},
      {"copy_blocks", "DepthToSpace, SpaceToDepth: one copy over six axes", accepts_blocks, emit_blocks},
      {"copy_slice", "Slice by bounds from data", accepts_slice, emit_slice},
      {"copy_split", "Split by sizes from data", accepts_split, emit_split},
  };
  return table;
}

}  // namespace sinter
