// Gather, GatherElements, GatherND: the indices are data, so each is checked where it is used. Where Gather's
// are constants that follow a rule, as those of sliding windows do, runs of blocks are copied.
#include "ir/error.h"
#include "kernels/movement/copies.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts_op(const Node& n, std::string_view name) {
  return n.op->domain[0] == '\0' && n.op->name == name && !n.epilogue && is_movable(n);
}
size_t axis_of(const Node& n) {
  const int64_t axis = n.attributes.integer("axis", 0),
                rank = static_cast<int64_t>(n.inputs[0]->type.shape.size());
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}
// `known`: the indices are not read.
void begin(LayerWriter& w, bool known = false) {
  w.include("sinter/copy.h");
  if (!known) {
    w.include("sinter/index.h");
    w.include("sinter/status.h");
    w.can_fail();
  }
  const Node& n = w.node;
  w.summary(fmt::format("{} of {} at {} -> {}", n.op->name, text(n.inputs[0]->type), text(n.inputs[1]->type),
                        text(n.outputs[0]->type.shape)));
}
// `name` = the checked index that `element` holds.
void look_up(LayerWriter& w, const std::string& name, const std::string& element, const std::string& extent) {
  w.out.line("const std::int64_t {} = sinter::index_of({}, {});", name, element, extent);
  w.out.line("if ({} < 0) return sinter::kIndexError;", name);
}
void open(LayerWriter& w, const std::string& i, const std::string& extent) {
  w.out.line("for (std::int64_t {0} = 0; {0} < {1}; ++{0}) {{", i, extent);
}
void move(LayerWriter& w, const Dim& block, const std::string& block_text, const std::string& to,
          const std::string& from) {
  if (block.is(1))
    w.out.line("{}[{}] = {}[{}];", w.output(0), to, w.input(0), from);
  else
    w.out.line("sinter::copy({}, {}, {});", behind(w.output(0), to), behind(w.input(0), from), block_text);
}

// What constant indices copy of one outer part; nothing where they aren't constant, one is outside, or they
// follow no rule.
std::vector<Runs> runs_of(const Node& n) {
  const Dim &extent = n.inputs[0]->type.shape[axis_of(n)],
            block = product(n.inputs[0]->type.shape, axis_of(n) + 1);
  const Value& indices = *n.inputs[1];
  if (!indices.data || !extent.is_static() || !block.is_static()) return {};
  RunFinder runs;
  for (int64_t p = 0; p < indices.data->size(); ++p) {
    const int64_t given = indices.data->integer(p);
    if (given < -extent.value() || given >= extent.value()) return {};
    runs.add(p * block.value(), (given < 0 ? given + extent.value() : given) * block.value(), block.value());
  }
  return runs.rules();
}

// Gather: outer x picks x block.
void emit_gather(LayerWriter& w) {
  const std::vector<Runs> rules = runs_of(w.node);
  begin(w, !rules.empty());
  const Shape& data = w.node.inputs[0]->type.shape;
  const size_t axis = axis_of(w.node);
  const Dim outer = product(data, 0, axis), block = product(data, axis + 1);
  const Dim picks = product(w.node.inputs[1]->type.shape);
  const Extents e(w);
  const bool nested = !outer.is(1);
  const std::string x = w.input(0);
  if (!rules.empty()) {
    const std::string y = w.output(0);
    if (nested) open(w, "o", e.text(outer));
    const std::vector<std::string> o{nested ? "o" : "0"};
    emit_runs(w, rules, behind(y, e.address(Dim(0), o, {picks * block})),
              behind(x, e.address(Dim(0), o, {data[axis] * block})));
    if (nested) w.out.line("}}");
    return;
  }
  const std::string indices = w.input(1), extent = e.text(data[axis]);
  w.output(0);
  if (nested) open(w, "o", e.text(outer));
  open(w, "i", e.text(picks));
  look_up(w, "index", indices + "[i]", extent);
  const std::vector<std::string> to{nested ? "o" : "0", "i"}, from{nested ? "o" : "0", "index"};
  move(w, block, e.text(block), e.address(Dim(0), to, {picks * block, block}),
       e.address(Dim(0), from, {data[axis] * block, block}));
  w.out.line("}}");
  if (nested) w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

// GatherElements: the loops run over the indices; one axis of the data is replaced by what they say.
void emit_elements(LayerWriter& w) {
  begin(w);
  const Shape &data = w.node.inputs[0]->type.shape, &space = w.node.inputs[1]->type.shape;
  const size_t axis = axis_of(w.node);
  const Extents e(w);
  const std::string x = w.input(0), indices = w.input(1), y = w.output(0);
  const std::vector<Dim> to = dim_strides(space), from = dim_strides(data);
  std::vector<std::string> i, j;
  for (size_t d = 0; d < space.size(); ++d) {
    i.push_back(space[d].is(1) ? "0" : fmt::format("i{}", d));
    j.push_back(d == axis ? "index" : i.back());
    if (i.back() != "0") open(w, i.back(), e.text(space[d]));
  }
  const std::string at = e.address(Dim(0), i, to);
  look_up(w, "index", fmt::format("{}[{}]", indices, at), e.text(data[axis]));
  w.out.line("{}[{}] = {}[{}];", y, at, x, e.address(Dim(0), j, from));
  for (const std::string& name : i)
    if (name != "0") w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

// GatherND: batches x places; n coordinates each.
void emit_nd(LayerWriter& w) {
  begin(w);
  const Shape &data = w.node.inputs[0]->type.shape, &indices = w.node.inputs[1]->type.shape;
  const auto batch = static_cast<size_t>(w.node.attributes.integer("batch_dims", 0));
  const auto n = static_cast<size_t>(indices.back().value());
  const Dim batches = product(data, 0, batch), places = product(indices, batch, indices.size() - 1);
  const Dim block = product(data, batch + n), row = product(data, batch);
  const Extents e(w);
  w.input(0);
  const std::string picks = w.input(1);
  w.output(0);
  const std::vector<Dim> strides = dim_strides(data);
  const bool nested = !batches.is(1);
  if (nested) open(w, "b", e.text(batches));
  open(w, "p", e.text(places));
  const std::vector<std::string> place{nested ? "b" : "0", "p"};
  const Dim coordinates(static_cast<int64_t>(n));
  std::vector<std::string> from{nested ? "b" : "0"};
  std::vector<Dim> from_strides{row};
  for (size_t c = 0; c < n; ++c) {
    const std::string at =
        e.address(Dim(static_cast<int64_t>(c)), place, {places * coordinates, coordinates});
    from.push_back(fmt::format("c{}", c));
    from_strides.push_back(strides[batch + c]);
    look_up(w, from.back(), fmt::format("{}[{}]", picks, at), e.text(data[batch + c]));
  }
  move(w, block, e.text(block), e.address(Dim(0), place, {places * block, block}),
       e.address(Dim(0), from, from_strides));
  w.out.line("}}");
  if (nested) w.out.line("}}");
  w.out.line("return sinter::kOk;");
}

}  // namespace

const std::vector<Kernel>& kernels_gather() {
  static const std::vector<Kernel> table = {
      {"gather", "Gather: blocks picked along one axis",
       [](const Node& n, const Context&) { return accepts_op(n, "Gather"); }, emit_gather},
      {"gather_elements", "GatherElements",
       [](const Node& n, const Context&) { return accepts_op(n, "GatherElements"); }, emit_elements},
      {"gather_nd", "GatherND", [](const Node& n, const Context&) { return accepts_op(n, "GatherND"); },
       emit_nd},
  };
  return table;
}

}  // namespace sinter
