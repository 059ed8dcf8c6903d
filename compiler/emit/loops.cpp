#include "emit/loops.h"

#include <algorithm>

#include "ir/error.h"
#include "targets/target.h"

namespace sinter {

std::vector<Dim> pitched_strides(const LayerWriter& w, const Value& v) {
  Shape shape = v.type.shape;
  if (!shape.empty()) shape.back() = w.pixel_stride(v);
  return dim_strides(shape);
}

std::vector<Dim> dim_strides(const Shape& shape) {
  std::vector<Dim> s(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;) s[i - 1] = s[i] * shape[i];
  return s;
}

Strided broadcast(const LayerWriter& w, const std::string& pointer, const Value& v, const Shape& space) {
  const TensorType& type = v.type;
  const std::vector<Dim> own = pitched_strides(w, v);
  Strided s{pointer, type.dtype, Dim(0), std::vector<Dim>(space.size(), Dim(0)),
            std::vector<Dim>(space.size(), Dim(0))};
  const size_t skip = space.size() - type.shape.size();
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const Dim& d = type.shape[i];
    if (d.is(1)) continue;
    s.strides[skip + i] = own[i];
    // 1-or-full is decided by the actual extent where neither could be proved.
    if (!(d == space[skip + i]) && d.lo() <= 1) s.one_or_full[skip + i] = d;
  }
  return s;
}

// Headers of the element types that the expression passes through.
static void include_storage_of(LayerWriter& w, const Expr& e) {
  w.include_storage(e.dtype);
  for (const ExprPtr& a : e.args) include_storage_of(w, *a);
}

Numbered number_operands(LayerWriter& w, const ExprPtr& value, const Shape& space) {
  const Node& n = w.node;
  Numbered out;
  std::vector<int> number(n.inputs.size(), -1);
  include_storage_of(w, *value);
  out.value = rewrite_leaves(value, [&](const Expr& leaf) -> ExprPtr {
    if (leaf.kind != Expr::Kind::kOperand) return nullptr;
    const size_t k = static_cast<size_t>(leaf.operand);
    const Value* v = n.inputs[k];
    if (v->data && v->data->size() == 1 && !is_small_float(v->type.dtype))
      return is_float(v->type.dtype) ? Expr::constant(v->data->real(0), v->type.dtype)
                                     : Expr::constant_integer(v->data->integer(0), v->type.dtype);
    if (number[k] < 0) {
      number[k] = static_cast<int>(out.operands.size());
      out.operands.push_back(broadcast(w, w.input(k), *v, space));
      out.inputs.push_back(k);
    }
    return Expr::input(number[k], leaf.dtype);
  });
  return out;
}

namespace {

struct Axis {
  Dim extent;
  std::vector<Dim> strides;  // of out, then of the operands
  std::vector<Dim> one_or_full;
};

bool plain(const Axis& a) {
  return std::all_of(a.one_or_full.begin(), a.one_or_full.end(), [](const Dim& d) { return d.is(0); });
}

// Outer axis a and inner axis b walk like one of extent a*b for every tensor.
bool mergeable(const Axis& a, const Axis& b) {
  if (!plain(a) || !plain(b)) return false;
  for (size_t t = 0; t < a.strides.size(); ++t)
    if (!(a.strides[t] == b.strides[t] * b.extent)) return false;
  return true;
}

std::vector<Axis> collapse(const Shape& space, const std::vector<const Strided*>& tensors) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < space.size(); ++d) {
    if (space[d].is(1)) continue;
    Axis a{space[d], {}, {}};
    for (const Strided* t : tensors) {
      a.strides.push_back(t->strides[d]);
      a.one_or_full.push_back(d < t->one_or_full.size() ? t->one_or_full[d] : Dim(0));
    }
    if (!axes.empty() && mergeable(axes.back(), a)) {
      axes.back().extent = axes.back().extent * a.extent;
      axes.back().strides = a.strides;
    } else {
      axes.push_back(std::move(a));
    }
  }
  if (axes.empty())
    axes.push_back(
        {Dim(1), std::vector<Dim>(tensors.size(), Dim(0)), std::vector<Dim>(tensors.size(), Dim(0))});
  return axes;
}

class Nest {
 public:
  Nest(LayerWriter& w, const Shape& space, const ExprPtr& value, const Strided& out,
       const std::vector<Strided>& operands)
      : w_(w), value_(value), out_(out), operands_(operands) {
    tensors_.push_back(&out_);
    for (const Strided& s : operands_) tensors_.push_back(&s);
    axes_ = collapse(space, tensors_);
  }

  void emit() {
    const size_t depth = axes_.size();
    const Axis& inner = axes_.back();
    // Parts are turns of one of the loops; of the innermost one, vectors.
    const size_t cut = axis_of_parts();
    const bool vectors = cut + 1 == depth;
    const Dim lanes(w_.target.lanes);
    turns_ = w_.open_parts(!vectors         ? w_.dim(axes_[cut].extent)
                           : w_.threads > 1 ? w_.dim(ceildiv(inner.extent, lanes))
                                            : "1");
    const bool parted = turns_.first != "0";
    for (size_t a = 0; a + 1 < depth; ++a)
      w_.out.line("for (std::int64_t i{0} = {1}; i{0} < {2}; ++i{0}) {{", a,
                  parted && a == cut ? turns_.first : "0",
                  parted && a == cut ? turns_.end : w_.dim(axes_[a].extent));
    begin_ = parted && vectors ? fmt::format("{} * {}", turns_.first, w_.target.lanes) : "0";
    end_ = w_.dim(inner.extent);
    if (parted && vectors) {
      w_.include("sinter/dims.h");
      w_.out.line("const std::int64_t behind = sinter::min_of({} * {}, std::int64_t{{{}}});", turns_.end,
                  w_.target.lanes, end_);
      end_ = "behind";
    }
    rows();
    bool unit = plain(inner);
    for (size_t t = 0; t < tensors_.size(); ++t)
      unit = unit && (inner.strides[t].is(1) || (inner.strides[t].is(0) && t > 0));
    const bool small = inner.extent.hi() < 4;
    if (unit && is_conversion())
      conversion();
    else if (unit && !small && w_.element.halves != Halves::kNone && out_.dtype == DType::kF16 &&
             has_vector_text(*value_, DType::kF16))
      halves_loop();
    else if (unit && !small && has_lane_text(*value_) && value_->dtype == out_.dtype && w_.target.lanes > 1 &&
             !is_copy())
      vector_loop();
    else
      scalar_loop();
    for (size_t a = 0; a + 1 < depth; ++a) w_.out.line("}}");
    w_.close_parts();
  }

 private:
  // The outermost loop, unless its turns are few and threads would get unlike shares: three channels.
  size_t axis_of_parts() const {
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (!axes_[a].extent.is_static()) return a;
      const int64_t each = a + 1 < axes_.size() ? 1 : w_.target.lanes,
                    turns = (axes_[a].extent.value() + each - 1) / each,
                    shares = (turns + w_.threads - 1) / w_.threads * w_.threads;
      if (10 * (shares - turns) <= turns) return a;
    }
    return 0;
  }
  std::string stride_text(size_t axis, size_t t) {
    const Axis& a = axes_[axis];
    const std::string s = w_.dim(a.strides[t]);
    return a.one_or_full[t].is(0) ? s : fmt::format("({} == 1 ? 0 : {})", w_.dim(a.one_or_full[t]), s);
  }

  // One pointer per tensor at the start of the innermost axis.
  void rows() {
    names_.clear();
    for (size_t t = 0; t < tensors_.size(); ++t) {
      std::string at = tensors_[t]->offset.is(0) ? "" : w_.dim(tensors_[t]->offset);
      for (size_t a = 0; a + 1 < axes_.size(); ++a) {
        if (axes_[a].strides[t].is(0)) continue;
        const std::string s = stride_text(a, t);
        at += (at.empty() ? "" : " + ") + (s == "1" ? fmt::format("i{}", a) : fmt::format("i{} * {}", a, s));
      }
      std::string name = tensors_[t]->pointer;
      if (!at.empty()) {
        name = t == 0 ? "to" : fmt::format("from{}", t - 1);
        w_.out.line("{}{}* {} = {} + {};", t == 0 ? "" : "const ", cpp_name(tensors_[t]->dtype), name,
                    tensors_[t]->pointer, at);
      }
      names_.push_back(name);
    }
  }

  std::string element(size_t t, const std::string& index) {
    const Axis& inner = axes_.back();
    if (inner.strides[t].is(0)) return names_[t] + "[0]";
    const std::string s = stride_text(axes_.size() - 1, t);
    return fmt::format("{}[{}{}]", names_[t], index, s == "1" ? "" : " * " + s);
  }

  void vector_loop() {
    const Axis& inner = axes_.back();
    w_.include("sinter/math.h");
    if (has_integer_lanes(*value_)) w_.include("sinter/lanes.h");
    const bool whole = inner.extent.is_static() && inner.extent.value() % w_.target.lanes == 0;
    // Rounding to integers is a long chain of words, which cores in order would wait for.
    const bool waits = has_integer_lanes(*value_) && w_.target.speed.in_order;
    if (!whole) w_.out.line("std::int64_t i = {};", begin_);
    if (waits) w_.out.line("SINTER_UNROLL_FOUR");
    if (whole) {
      w_.out.line("for (std::int64_t i = {}; i < {}; i += kLanes) {{", begin_, end_);
    } else {
      w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", end_);
    }
    body(TextMode::kVector);
    w_.out.line("}}");
    if (whole) return;
    w_.out.line("for (; i < {}; ++i) {{", end_);
    body(TextMode::kLane);
    w_.out.line("}}");
  }

  // Halves have no lanes of their own: the last few of a row are a vector of fewer.
  void halves_loop() {
    w_.include("sinter/math.h");
    w_.out.line("std::int64_t i = {};", begin_);
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", end_);
    body(TextMode::kVector);
    w_.out.line("}}");
    if (begin_ == "0" && axes_.back().extent.is_static() &&
        axes_.back().extent.value() % w_.target.lanes == 0)
      return;
    w_.out.line("if (i < {}) {{", end_);
    w_.out.line("const int lanes = static_cast<int>({} - i);", end_);
    body(TextMode::kVector, "lanes");
    w_.out.line("}}");
  }

  // Floats that are made halves or the other way.
  bool is_conversion() const {
    if (value_->kind != Expr::Kind::kCast || value_->args[0]->kind != Expr::Kind::kOperand) return false;
    const DType from = value_->args[0]->dtype, to = value_->dtype;
    return axes_.back().strides[1].is(1) && to == out_.dtype &&
           ((from == DType::kF16 && to == DType::kF32) || (from == DType::kF32 && to == DType::kF16));
  }
  void conversion() {
    w_.include("sinter/convert.h");
    const std::string plus = begin_ == "0" ? "" : " + " + begin_;
    w_.out.line("convert({}{}, {}{}, {}{});", names_[1], plus, end_, begin_ == "0" ? "" : " - " + begin_,
                names_[0], plus);
  }

  void body(TextMode mode, const std::string& lanes = "") {
    const Axis& inner = axes_.back();
    auto operand = [&](int k) -> std::string {
      const size_t t = static_cast<size_t>(k) + 1;
      if (mode == TextMode::kLane) return element(t, "i");
      if (inner.strides[t].is(0) && is_integer(tensors_[t]->dtype))
        return fmt::format("splat(static_cast<float>({}[0]))", names_[t]);
      return inner.strides[t].is(0) ? fmt::format("splat({}[0])", names_[t])
             : lanes.empty()        ? fmt::format("load({} + i)", names_[t])
                                    : fmt::format("load_lanes({} + i, {})", names_[t], lanes);
    };
    const std::string v = expr_text(value_, mode, operand, "", w_.out);
    if (mode == TextMode::kVector && !lanes.empty())
      w_.out.line("store_lanes({} + i, {}, {});", names_[0], v, lanes);
    else if (mode == TextMode::kVector)
      w_.out.line("store({} + i, {});", names_[0], v);
    else
      w_.out.line("{} = {};", element(0, "i"),
                  is_integer(out_.dtype) ? fmt::format("static_cast<{}>({})", cpp_name(out_.dtype), v) : v);
  }

  // Elements that are moved as they are.
  bool is_copy() const { return value_->kind == Expr::Kind::kOperand && is_integer(out_.dtype); }

  void scalar_loop() {
    w_.include("sinter/scalar.h");
    w_.out.line("for (std::int64_t i = {}; i < {}; ++i) {{", begin_, end_);
    auto operand = [&](int k) {
      const size_t t = static_cast<size_t>(k) + 1;
      return load_text(tensors_[t]->dtype, element(t, "i"));
    };
    const bool copy = value_->kind == Expr::Kind::kOperand && tensors_[1]->dtype == out_.dtype;
    if (copy) {
      w_.out.line("{} = {};", element(0, "i"), element(1, "i"));
    } else {
      const std::string v = expr_text(value_, TextMode::kScalar, operand, "", w_.out);
      w_.out.line("{} = {};", element(0, "i"), store_text(out_.dtype, v));
    }
    w_.out.line("}}");
  }

  LayerWriter& w_;
  const ExprPtr& value_;
  Strided out_;
  std::vector<Strided> operands_;
  std::vector<const Strided*> tensors_;
  std::vector<Axis> axes_;
  std::vector<std::string> names_;
  LayerWriter::Turns turns_;
  std::string begin_, end_;  // of the innermost loop
};

}  // namespace

void emit_loops(LayerWriter& w, const Shape& space, const ExprPtr& value, const Strided& out,
                const std::vector<Strided>& operands) {
  Nest(w, space, value, out, operands).emit();
}

}  // namespace sinter
