// Pad and CenterCropPad: the part of the input that stays, and what is around it.
//
// Constant padding is written as a person would: for each padded axis the rows in front are filled, the rows
// that stay are done one by one, the rows behind are filled; axes without pads belong to the rows inside.
// The other modes look up for every row outside the input which row of the input it repeats.
#include <algorithm>

#include "ir/error.h"
#include "kernels/movement/copies.h"
#include "ops/movement/movement.h"

namespace sinter {
namespace {

// Row i of the output's axis is row first + i - before of the input, for before <= i < before + count.
struct PadAxis {
  Dim first, before, count, after;
  bool cropped = false;  // not all rows of the input stay
  Dim extent() const { return before + count + after; }
  bool whole() const { return !cropped && before.is(0) && after.is(0); }
};

std::vector<PadAxis> unpadded(const Shape& in) {
  std::vector<PadAxis> axes;
  for (const Dim& d : in) axes.push_back({Dim(0), Dim(0), d, Dim(0)});
  return axes;
}

std::vector<PadAxis> pads_of(const Node& n) {
  const Shape& in = n.inputs[0]->type.shape;
  std::vector<PadAxis> axes = unpadded(in);
  const std::vector<Dim> pads = *contents(n.input(1));
  const auto given = contents(n.input(3));
  for (size_t k = 0; k < pads.size() / 2; ++k) {
    int64_t axis = given ? (*given)[k].value() : static_cast<int64_t>(k);
    if (axis < 0) axis += static_cast<int64_t>(in.size());
    const Dim &front = pads[k], &behind = pads[k + pads.size() / 2];
    PadAxis& a = axes[static_cast<size_t>(axis)];
    a.first = max(Dim(0) - front, 0);
    a.before = max(front, 0);
    a.after = max(behind, 0);
    a.count = in[static_cast<size_t>(axis)] + min(front, 0) + min(behind, 0);
    a.cropped = front.lo() < 0 || behind.lo() < 0;
    // Cropped rows may be more than there are; what is left to fill is then the output.
    if (a.count.lo() < 0) {
      a.count = max(a.count, 0);
      const Dim out = n.outputs[0]->type.shape[static_cast<size_t>(axis)];
      a.before = min(a.before, out);
      a.after = out - a.before - a.count;
    }
  }
  return axes;
}

std::vector<PadAxis> center_of(const Node& n) {
  const Shape &in = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  std::vector<PadAxis> axes = unpadded(in);
  for (size_t d = 0; d < in.size(); ++d) {
    if (in[d] == out[d]) continue;
    PadAxis& a = axes[d];
    a.first = floordiv(max(in[d] - out[d], 0), 2);
    a.before = floordiv(max(out[d] - in[d], 0), 2);
    a.count = min(in[d], out[d]);
    a.cropped = true;
    a.after = out[d] - a.before - a.count;
  }
  return axes;
}

struct PadLevel {
  PadAxis axis;
  Dim from, to;  // elements of one row
};

class PadNest {
 public:
  PadNest(LayerWriter& w, std::vector<PadAxis> axes) : w_(w), e_(w), axes_(std::move(axes)) {
    w.include("sinter/copy.h");
    type_ = w.node.inputs[0]->type.dtype;
  }

  void constant(const std::string& value) {
    value_ = value;
    begin();
    level(0);
  }

  void mapped(const std::string& word) {
    begin();
    mapped_level(0, word);
  }

 private:
  void begin() {
    x_ = w_.input(0);
    y_ = w_.output(0);
    name_extents();
    merge();
  }
  // What takes more than a word to say becomes a variable.
  void name_extents() {
    for (size_t d = 0; d < axes_.size(); ++d) {
      PadAxis& a = axes_[d];
      if (a.whole()) continue;
      const bool rest = is_long(a.after);  // what the rows before it leave
      const Dim extent = rest ? named(a.extent(), fmt::format("extent{}", d)) : Dim(0);
      a.first = named(a.first, fmt::format("first{}", d));
      a.before = named(a.before, fmt::format("before{}", d));
      a.count = named(a.count, fmt::format("count{}", d));
      if (rest) a.after = extent - a.before - a.count;
    }
  }
  bool is_long(const Dim& d) const { return e_.text(d).find(' ') != std::string::npos; }
  Dim named(const Dim& d, const std::string& name) {
    if (!is_long(d)) return d;
    const std::string text = e_.text(d);
    Dim own(own_.fresh(name, {d.lo(), d.hi()}, ""));
    e_.define(own);
    w_.out.line("const std::int64_t {} = {};", e_.text(own), text);
    return own;
  }

  // Axes without pads behind the last padded one make its rows longer; elsewhere neighbours without pads
  // join.
  void merge() {
    Dim from(1), to(1);
    const Shape& in = w_.node.inputs[0]->type.shape;
    for (size_t d = axes_.size(); d-- > 0;) {
      const PadAxis& a = axes_[d];
      if (a.whole() && !levels_.empty() && levels_.front().axis.whole())
        levels_.front().axis.count = levels_.front().axis.count * a.count;
      else if (!a.whole() || !levels_.empty())
        levels_.insert(levels_.begin(), {a, from, to});
      from = from * in[d];
      to = to * a.extent();
    }
    if (levels_.empty()) levels_.push_back({{Dim(0), Dim(0), Dim(1), Dim(0)}, from, to});
  }

  std::string address(bool to, size_t depth, const Dim& extra) const {
    std::vector<Dim> strides;
    Dim offset = extra;
    for (size_t d = 0; d < depth; ++d) {
      const PadLevel& l = levels_[d];
      strides.push_back(to ? l.to : l.from);
      offset = offset + (to ? l.axis.before * l.to : l.axis.first * l.from);
    }
    return behind(to ? y_ : x_, e_.address(offset, index_, strides));
  }

  void fill(size_t depth, const Dim& start, const Dim& rows) {
    if (rows.is(0)) return;
    const Dim& row = levels_[depth].to;
    w_.out.line("sinter::fill({}, {}, {});", address(true, depth, start * row), e_.text(rows * row), value_);
  }

  void level(size_t depth) {
    const PadAxis& a = levels_[depth].axis;
    fill(depth, Dim(0), a.before);
    if (!a.count.is(0)) {
      if (depth + 1 == levels_.size()) {
        const PadLevel& l = levels_[depth];
        w_.out.line("sinter::copy({}, {}, {});", address(true, depth, a.before * l.to),
                    address(false, depth, a.first * l.from), e_.text(a.count * l.to));
      } else {
        w_.out.line("for (std::int64_t i{0} = 0; i{0} < {1}; ++i{0}) {{", depth, e_.text(a.count));
        index_.push_back(fmt::format("i{}", depth));
        level(depth + 1);
        index_.pop_back();
        w_.out.line("}}");
      }
    }
    fill(depth, a.before + a.count, a.after);
  }

  // Outer axes: the row of the input is looked up; the innermost in three parts.
  void mapped_level(size_t depth, const std::string& word) {
    const PadLevel& l = levels_[depth];
    const PadAxis& a = l.axis;
    const bool last = depth + 1 == levels_.size();
    const std::string i = fmt::format("i{}", depth), row = fmt::format("row{}", depth);
    if (!last) {
      w_.out.line("for (std::int64_t {0} = 0; {0} < {1}; ++{0}) {{", i, e_.text(a.extent()));
      look_up(a, word, i, row, e_.text(a.before));
      index_.push_back(i);
      rows_.push_back(a.whole() ? i : row);
      mapped_level(depth + 1, word);
      index_.pop_back();
      rows_.pop_back();
      w_.out.line("}}");
      return;
    }
    single(depth, word, Dim(0), a.before);
    w_.out.line("sinter::copy({}, {}, {});", mapped_address(true, depth, a.before * l.to),
                mapped_address(false, depth, a.first * l.from), e_.text(a.count * l.to));
    single(depth, word, a.before + a.count, a.after);
  }
  void look_up(const PadAxis& a, const std::string& word, const std::string& i, const std::string& row,
               const std::string& before) {
    if (a.whole()) return;
    const std::string first = a.first.is(0) ? "" : e_.text(a.first) + " + ";
    const std::string own = before == "0" ? i : i + " - " + before;
    w_.out.line("const std::int64_t {} = {}sinter::{}({}, {});", row, first, word, own, e_.text(a.count));
  }
  // Rows [start, start + rows) of the innermost axis, each a run of `to` elements.
  void single(size_t depth, const std::string& word, const Dim& start, const Dim& rows) {
    if (rows.is(0)) return;
    const PadLevel& l = levels_[depth];
    const std::string i = fmt::format("i{}", depth), row = fmt::format("row{}", depth);
    w_.out.line("for (std::int64_t {0} = {1}; {0} < {2}; ++{0}) {{", i, e_.text(start),
                e_.text(start + rows));
    look_up(l.axis, word, i, row, e_.text(l.axis.before));
    index_.push_back(i);
    rows_.push_back(row);
    const std::string to = mapped_address(true, depth + 1, Dim(0)),
                      from = mapped_address(false, depth + 1, Dim(0));
    if (l.to.is(1))
      w_.out.line("*({}) = *({});", to, from);
    else
      w_.out.line("sinter::copy({}, {}, {});", to, from, e_.text(l.to));
    index_.pop_back();
    rows_.pop_back();
    w_.out.line("}}");
  }
  std::string mapped_address(bool to, size_t depth, const Dim& extra) const {
    std::vector<Dim> strides;
    for (size_t d = 0; d < depth; ++d) strides.push_back(to ? levels_[d].to : levels_[d].from);
    return behind(to ? y_ : x_, e_.address(extra, to ? index_ : rows_, strides));
  }

  LayerWriter& w_;
  Extents e_;
  Symbols own_;
  std::vector<PadAxis> axes_;
  std::vector<PadLevel> levels_;
  std::vector<std::string> index_, rows_;
  std::string x_, y_, value_;
  DType type_;
};

bool accepts(const Node& n, const Context&) {
  if (n.op->domain[0] != '\0' || n.epilogue || !is_movable(n)) return false;
  const std::string_view op = n.op->name;
  if (op == "CenterCropPad") return true;
  if (op != "Pad" || !contents(n.input(1))) return false;
  return !n.input(3) || contents(n.input(3));
}

std::string describe(const Node& n) {
  return fmt::format("{} {} -> {}", n.op->name, text(n.inputs[0]->type), text(n.outputs[0]->type.shape));
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  w.summary(describe(n));
  const DType type = n.inputs[0]->type.dtype;
  if (std::string_view(n.op->name) == "CenterCropPad")
    return PadNest(w, center_of(n)).constant(zero_literal(type));
  const std::string mode = n.attributes.text("mode", "constant");
  PadNest nest(w, pads_of(n));
  if (mode != "constant") return nest.mapped(mode + "_row");
  const Value* value = n.input(2);
  const bool known = value && value->data && value->data->size() == 1;
  nest.constant(!value ? zero_literal(type) : known ? element_literal(*value->data, 0) : w.input(2) + "[0]");
}

}  // namespace

const std::vector<Kernel>& kernels_pad() {
  static const std::vector<Kernel> table = {{"pad", "Pad in all modes, CenterCropPad", accepts, emit}};
  return table;
}

}  // namespace sinter
