#include "emit/epilogue.h"

#include <cmath>

#include "ir/error.h"
#include "targets/target.h"

namespace sinter {

Epilogue::Epilogue(LayerWriter& w, const Shape& out_shape)
    : w_(w), plain_(w.node.outputs[0]->type.dtype), shape_(out_shape) {
  const Node& n = w.node;
  if (!n.epilogue) return;
  SINTER_CHECK(n.outputs[0]->type.shape == out_shape, "an epilogue must not enlarge its anchor's result");
  Numbered numbered = number_operands(w, n.epilogue, out_shape);
  expr_ = std::move(numbered.value);
  operands_ = std::move(numbered.operands);
  // An axis of extent 1 takes the stride of the one before it: alone it has none, and of several axes that
  // are walked as one it may be the last.
  for (Strided& s : operands_)
    for (size_t a = 1; a + 1 < shape_.size(); ++a)
      if (shape_[a].is(1)) s.strides[a] = s.strides[a - 1];
  for (const size_t i : numbered.inputs) values_.push_back(n.inputs[i]);
  bytes_ = byte_steps(expr_, [&](int k) { return most(k); });
  w.include("sinter/math.h");
  if (has_lane_text(*expr_) && has_integer_lanes(*expr_)) w.include("sinter/lanes.h");
}

double Epilogue::most(int operand) const {
  const Value* v = values_[static_cast<size_t>(operand)];
  if (!v->data || v->type.dtype != DType::kF32) return INFINITY;
  double most = 0;
  for (int64_t i = 0; i < v->data->size(); ++i) {
    const double x = std::abs(static_cast<double>(v->data->as<float>()[i]));
    if (!(x <= most)) most = std::isnan(x) ? INFINITY : x;
  }
  return most;
}

double Epilogue::most_steps(double sums) const {
  return magnitude(*bytes_->value, sums, [&](int k) { return most(k); });
}

DType Epilogue::dtype() const { return expr_ ? expr_->dtype : plain_; }
bool Epilogue::has_vector() const {
  const DType element = w_.element.dtype;
  return expr_ ? has_vector_text(*expr_, element) && expr_->dtype == element : plain_ == element;
}

bool Epilogue::has_lanes() const { return expr_ && has_lane_text(*expr_); }

bool Epilogue::can_merge(size_t first, size_t last) const {
  size_t begin = first;
  while (begin < last && shape_[begin].is(1)) ++begin;
  for (const Strided& s : operands_) {
    for (size_t a = first; a <= last; ++a)
      if (!s.one_or_full[a].is(0)) return false;
    for (size_t a = begin; a < last; ++a)
      if (!(s.strides[a] == s.strides[a + 1] * shape_[a + 1])) return false;
  }
  return true;
}

std::string Epilogue::address(size_t k, const std::vector<std::string>& index) const {
  const Strided& s = operands_[k];
  std::string at;
  for (size_t a = 0; a + 1 < index.size(); ++a) {
    if (s.strides[a].is(0) || index[a] == "0") continue;
    std::string stride = w_.dim(s.strides[a]);
    if (!s.one_or_full[a].is(0)) stride = fmt::format("({} == 1 ? 0 : {})", w_.dim(s.one_or_full[a]), stride);
    at += fmt::format(" + ({}) * {}", index[a], stride);
  }
  if (!index.empty() && !s.strides.back().is(0)) {
    std::string last = index.back();
    if (!s.one_or_full.back().is(0))
      last = fmt::format("({} == 1 ? 0 : {})", w_.dim(s.one_or_full.back()), last);
    at += " + " + last;
  }
  return at;
}

// Constants and what all rows share stay in the caches.
bool Epilogue::is_asked_for(size_t k) const {
  const Strided& s = operands_[k];
  return w_.target.speed.asks_ahead && s.dtype == w_.element.dtype && !values_[k]->data &&
         s.strides.size() > 1 && !s.strides.back().is(0) && s.one_or_full.back().is(0) &&
         !s.strides[s.strides.size() - 2].is(0);
}

bool Epilogue::asks_ahead() const {
  for (size_t k = 0; k < operands_.size(); ++k)
    if (is_asked_for(k)) return true;
  return false;
}

void Epilogue::ask_ahead(const std::vector<std::string>& index, Printer& out) const {
  for (size_t k = 0; k < operands_.size(); ++k)
    if (is_asked_for(k))
      out.line("ask_for<kVectors * kLanes>({}{});", operands_[k].pointer, address(k, index));
}

void Epilogue::ask_for_rows(const char* rows, const std::vector<std::string>& index, Printer& out) const {
  if (!asks_ahead()) return;
  out.line("SINTER_UNROLL");
  out.line("for (int t = 0; t < {}; ++t) {{", rows);
  ask_ahead(index, out);
  out.line("}}");
}

std::string Epilogue::vector(const std::string& acc, const std::vector<std::string>& index,
                             const std::string& lanes, Printer& out) const {
  return expr_ ? lanes_of(expr_, acc, index, lanes, out) : acc;
}

std::string Epilogue::steps(const std::string& acc, const std::vector<std::string>& index,
                            const std::string& lanes, Printer& out) const {
  return lanes_of(bytes_->value, acc, index, lanes, out);
}

std::string Epilogue::lanes_of(const ExprPtr& e, const std::string& acc,
                               const std::vector<std::string>& index, const std::string& lanes,
                               Printer& out) const {
  auto operand = [&](int k) {
    const Strided& s = operands_[static_cast<size_t>(k)];
    const std::string p = s.pointer + address(static_cast<size_t>(k), index);
    // A last axis that is 1 or full is only decided when the code runs.
    if (!s.strides.empty() && !s.strides.back().is(0) && s.one_or_full.back().is(0))
      return lanes.empty() ? fmt::format("load({})", p) : fmt::format("load_lanes({}, {})", p, lanes);
    SINTER_CHECK(s.strides.empty() || s.one_or_full.back().is(0),
                 "the last axis of an epilogue's operand must be known");
    if (s.dtype == DType::kI32) return fmt::format("splat_int<i32v>(*({}))", p);
    return is_integer(s.dtype) ? fmt::format("splat(static_cast<float>(*({})))", p)
                               : fmt::format("splat(*({}))", p);
  };
  return expr_text(e, TextMode::kVector, operand, acc, out, "e");
}

std::string Epilogue::scalar(const std::string& acc, const std::vector<std::string>& index, Printer& out,
                             TextMode mode) const {
  if (!expr_) return acc;
  if (mode == TextMode::kScalar || adds_to_sums()) w_.include("sinter/scalar.h");
  auto operand = [&](int k) {
    const Strided& s = operands_[static_cast<size_t>(k)];
    const std::string e = fmt::format("*({}{})", s.pointer, address(static_cast<size_t>(k), index));
    return mode == TextMode::kScalar || s.dtype == DType::kF16 ? load_text(s.dtype, e) : e;
  };
  return expr_text(expr_, mode, operand, acc, out, "e");
}

std::string Epilogue::summary() const { return expr_ ? ", then " + text(*expr_) : ""; }

}  // namespace sinter
