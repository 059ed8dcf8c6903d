#include "emit/expr_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "ir/error.h"

namespace sinter {

std::string float_literal(double v) {
  const float f = static_cast<float>(v);
  if (std::isnan(f)) return "std::numeric_limits<float>::quiet_NaN()";
  if (std::isinf(f))
    return f > 0 ? "std::numeric_limits<float>::infinity()" : "-std::numeric_limits<float>::infinity()";
  std::string s = fmt::format("{}", f);  // shortest text that reads back as the same float
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + "f";
}

std::string literal(const Expr& e) {
  switch (e.dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: return float_literal(e.real);
    case DType::kF64: {
      if (!std::isfinite(e.real)) return fmt::format("static_cast<double>({})", float_literal(e.real));
      std::string s = fmt::format("{}", e.real);
      if (s.find_first_of(".e") == std::string::npos) s += ".0";
      return s;
    }
    case DType::kBool: return e.integer ? "true" : "false";
    case DType::kI64:
      return e.integer == INT64_MIN ? "INT64_MIN" : fmt::format("std::int64_t{{{}}}", e.integer);
    case DType::kU64: return fmt::format("std::uint64_t{{{}u}}", static_cast<uint64_t>(e.integer));
    default: return fmt::format("static_cast<{}>({})", cpp_name(e.dtype), e.integer);
  }
}

std::string compute_type(DType t) { return is_stored_float(t) ? "float" : std::string(cpp_name(t)); }
std::string load_text(DType t, const std::string& lvalue) {
  return is_stored_float(t) ? "sinter::to_float(" + lvalue + ")" : lvalue;
}
std::string store_text(DType t, const std::string& value) {
  if (t == DType::kF16) return "sinter::to_half(" + value + ")";
  if (t == DType::kBF16) return "sinter::to_bfloat16(" + value + ")";
  if (is_small_float(t)) return fmt::format("sinter::to_small<{}>({})", cpp_name(t), value);
  return value;
}

// Words whose arguments after the first are plain floats, the same for all lanes.
static bool has_float_parameters(std::string_view f) {
  return f == "clamp" || f == "leaky_relu" || f == "elu" || f == "selu" || f == "celu" || f == "hard_sigmoid";
}

namespace {

using Range = std::pair<int64_t, int64_t>;

std::optional<Range> range_of(DType t) {
  switch (t) {
    case DType::kI8: return Range{-128, 127};
    case DType::kU8: return Range{0, 255};
    case DType::kI16: return Range{-32768, 32767};
    case DType::kU16: return Range{0, 65535};
    case DType::kI32: return Range{-(1 << 24), 1 << 24};  // what a float holds exactly
    default: return std::nullopt;
  }
}
bool within(const Range& r, DType t) {
  const auto all = range_of(t);
  return all && r.first >= all->first && r.second <= all->second;
}

// The values of an integer expression that can be computed in lanes of floats without ever wrapping.
std::optional<Range> lane_range(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::kAccumulator: return std::nullopt;
    case Expr::Kind::kOperand: return e.dtype == DType::kI32 ? std::nullopt : range_of(e.dtype);
    case Expr::Kind::kConstant:
      if (!is_integer(e.dtype) || !within({e.integer, e.integer}, e.dtype)) return std::nullopt;
      return Range{e.integer, e.integer};
    case Expr::Kind::kCast: {
      const Expr& x = *e.args[0];
      if (x.dtype == DType::kF32)
        return e.dtype != DType::kI32 && has_vector_text(x) ? range_of(e.dtype) : std::nullopt;
      const auto r = lane_range(x);
      return r && within(*r, e.dtype) ? r : std::nullopt;
    }
    case Expr::Kind::kCall: break;
  }
  const std::string_view f = e.fn->name;
  if (f != "add" && f != "sub") return std::nullopt;
  const auto a = lane_range(*e.args[0]), b = lane_range(*e.args[1]);
  if (!a || !b) return std::nullopt;
  const Range r = f == "add" ? Range{a->first + b->first, a->second + b->second}
                             : Range{a->first - b->second, a->second - b->first};
  return within(r, e.dtype) ? std::optional(r) : std::nullopt;
}

// Sums of 32 bits to which integers are added, or of which they are taken: in lanes of integers, which wrap.
bool is_sums(const Expr& e) {
  if (e.dtype != DType::kI32) return false;
  if (e.kind == Expr::Kind::kAccumulator) return true;
  if (e.kind != Expr::Kind::kCall) return false;
  const std::string_view f = e.fn->name;
  if (f != "add" && f != "sub") return false;
  const Expr &a = *e.args[0], &b = *e.args[1];
  const auto operand = [](const Expr& x) { return x.kind == Expr::Kind::kOperand && x.dtype == DType::kI32; };
  return (is_sums(a) && (is_sums(b) || operand(b))) || (operand(a) && is_sums(b));
}

}  // namespace

bool has_lane_text(const Expr& e) {
  if (e.dtype == DType::kF32) return has_vector_text(e);
  return e.dtype != DType::kI32 && lane_range(e).has_value();
}

bool has_integer_lanes(const Expr& e) {
  if (is_integer(e.dtype) && e.kind != Expr::Kind::kAccumulator) return true;
  for (const ExprPtr& a : e.args)
    if (has_integer_lanes(*a)) return true;
  return false;
}

bool adds_to_sums(const Expr& e) {
  if (e.kind == Expr::Kind::kCall && is_sums(e)) return true;
  return std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return adds_to_sums(*a); });
}

namespace {
bool is_comparison(const Expr& e) {
  if (e.kind != Expr::Kind::kCall) return false;
  const std::string_view f = e.fn->name;
  return f == "lt" || f == "le" || f == "gt" || f == "ge" || f == "eq";
}
}  // namespace

bool has_vector_text(const Expr& e, DType element) {
  const auto all = [&](const ExprPtr& a) { return has_vector_text(*a, element); };
  switch (e.kind) {
    case Expr::Kind::kAccumulator:
    case Expr::Kind::kOperand:
    case Expr::Kind::kConstant: return e.dtype == element;
    case Expr::Kind::kCast: {
      if (e.dtype != DType::kF32 || element != DType::kF32) return false;
      const Expr& x = *e.args[0];
      return is_sums(x) || lane_range(x);
    }
    case Expr::Kind::kCall: break;
  }
  const std::string_view f = e.fn->name;
  if (f == "select")
    return is_comparison(*e.args[0]) && e.dtype == element &&
           std::all_of(e.args[0]->args.begin(), e.args[0]->args.end(), all) && all(e.args[1]) &&
           all(e.args[2]);
  if (is_comparison(e) || !e.fn->vector || e.dtype != element) return false;
  if (has_float_parameters(f) && f != "clamp" && f != "leaky_relu")
    for (size_t i = 1; i < e.args.size(); ++i)
      if (e.args[i]->kind != Expr::Kind::kConstant) return false;
  return std::all_of(e.args.begin(), e.args.end(), all);
}

std::optional<BoundedInteger> bounded_integer(const Expr& cast) {
  if (cast.kind != Expr::Kind::kCast || cast.args[0]->kind != Expr::Kind::kCall) return std::nullopt;
  const Expr& clamp = *cast.args[0];
  const auto all = range_of(cast.dtype);
  if (!all || std::string_view(clamp.fn->name) != "clamp") return std::nullopt;
  const Expr& inner = *clamp.args[0];
  if (inner.kind != Expr::Kind::kCast || inner.dtype != DType::kF32 || inner.args[0]->dtype != cast.dtype)
    return std::nullopt;
  for (const size_t i : {1, 2}) {
    const Expr& bound = *clamp.args[i];
    if (bound.kind != Expr::Kind::kConstant || bound.real != std::nearbyint(bound.real) ||
        bound.real < static_cast<double>(all->first) || bound.real > static_cast<double>(all->second))
      return std::nullopt;
  }
  return BoundedInteger{inner.args[0], static_cast<int>(clamp.args[1]->real),
                        static_cast<int>(clamp.args[2]->real)};
}

namespace {

// A bound of |e| where it is finite and no NaN whatever the operands hold: what integers become by steps that
// keep far from the largest float.
std::optional<double> magnitude(const Expr& e) {
  if (e.kind == Expr::Kind::kConstant) {
    const double v = std::abs(is_integer(e.dtype) ? static_cast<double>(e.integer) : e.real);
    return v < 1e30 ? std::optional(v) : std::nullopt;
  }
  if (is_integer(e.dtype)) return 0x1p63;
  if (e.kind == Expr::Kind::kCast && e.dtype == DType::kF32) return magnitude(*e.args[0]);
  if (e.kind != Expr::Kind::kCall || e.dtype != DType::kF32) return std::nullopt;
  const std::string_view f = e.fn->name;
  if (f != "mul" && f != "add" && f != "sub") return std::nullopt;
  const auto a = magnitude(*e.args[0]), b = magnitude(*e.args[1]);
  if (!a || !b) return std::nullopt;
  const double bound = f == "mul" ? *a * *b : *a + *b;
  return bound < 1e30 ? std::optional(bound) : std::nullopt;
}

struct Steps {
  float scale, inverse, zero, low, high;
};

// Whether the mended quotient of runtime/sinter/lanes.h rounds as the division does. Both grow with x and are
// off by less than an ULP, so that only the floats next to where the rounded value changes can tell.
bool same_as_division(const Steps& q, int first, int last) {
  const auto check = [&](float x) {
    const float quotient = x * q.inverse;
    const float mended = std::fma(std::fma(-quotient, q.scale, x), q.inverse, quotient);
    return std::nearbyint(mended) == std::nearbyint(x / q.scale);
  };
  for (int n = first; n <= last; ++n) {
    float x = static_cast<float>((n + 0.5) * static_cast<double>(q.scale));
    for (int i = 0; i < 8; ++i) x = std::nextafter(x, -INFINITY);
    for (int i = 0; i < 17; ++i, x = std::nextafter(x, INFINITY))
      if (!check(x)) return false;
  }
  return std::nearbyint(q.low / q.scale) == static_cast<float>(first) &&
         std::nearbyint(q.high / q.scale) == static_cast<float>(last);
}

// For a cast to 8 bits of a call of `quantize` with constants.
std::optional<Steps> quantize_steps(const Expr& cast) {
  const Expr& x = *cast.args[0];
  if (cast.dtype != DType::kI8 && cast.dtype != DType::kU8) return std::nullopt;
  if (x.kind != Expr::Kind::kCall || std::string_view(x.fn->name) != "quantize") return std::nullopt;
  for (const size_t i : {1, 2})
    if (x.args[i]->kind != Expr::Kind::kConstant) return std::nullopt;
  Steps q{};
  q.scale = static_cast<float>(x.args[1]->real);
  q.zero = static_cast<float>(x.args[2]->real);
  if (!(q.scale > 1e-30f && q.scale < 1e30f) || q.zero != std::nearbyint(q.zero) || std::abs(q.zero) > 255)
    return std::nullopt;
  const Range all = *range_of(cast.dtype);
  const int first = static_cast<int>(all.first) - static_cast<int>(q.zero),
            last = static_cast<int>(all.second) - static_cast<int>(q.zero);
  q.inverse = 1 / q.scale;
  q.low = static_cast<float>((first - 0.25) * static_cast<double>(q.scale));
  q.high = static_cast<float>((last + 0.25) * static_cast<double>(q.scale));
  return same_as_division(q, first, last) ? std::optional(q) : std::nullopt;
}

struct Writer {
  TextMode mode;
  const std::function<std::string(int)>& operand;
  const std::string& accumulator;
  Printer& out;
  const std::string& prefix;
  std::map<const Expr*, int> uses;
  std::map<const Expr*, std::string> named;

  void count(const Expr& e) {
    if (++uses[&e] > 1) return;
    for (const ExprPtr& a : e.args) count(*a);
  }

  std::string word(const Expr& e) const {
    std::string name = e.fn->name;
    if (mode == TextMode::kScalar) return "sinter::" + name;
    if (name == "min") return "min_nan";
    if (name == "max") return "max_nan";
    return name;
  }

  std::string plain(const Expr& e) {
    switch (e.kind) {
      case Expr::Kind::kAccumulator: return accumulator;
      case Expr::Kind::kOperand:
        return mode == TextMode::kLane && is_integer(e.dtype)
                   ? "static_cast<float>(" + operand(e.operand) + ")"
                   : operand(e.operand);
      case Expr::Kind::kConstant: {
        if (mode == TextMode::kScalar) return literal(e);
        const std::string v =
            is_integer(e.dtype) ? float_literal(static_cast<double>(e.integer)) : literal(e);
        return mode == TextMode::kVector ? "splat(" + v + ")" : v;
      }
      case Expr::Kind::kCast: {
        if (mode != TextMode::kScalar) return lane_cast(e);
        const std::string v = text(*e.args[0]);
        if (is_small_float(e.dtype))
          return fmt::format("sinter::to_float({})",
                             store_text(e.dtype, "sinter::cast_to<float>(" + v + ")"));
        if (is_packed(e.dtype))
          return fmt::format("sinter::low_bits<{}, {}>({})", cpp_name(e.dtype), bits_of(e.dtype), v);
        const std::string cast = fmt::format("sinter::cast_to<{}>({})", cpp_name(e.dtype), v);
        return e.dtype == DType::kF16 || e.dtype == DType::kBF16 ? "sinter::to_float(" + cast + ")" : cast;
      }
      case Expr::Kind::kCall: break;
    }
    if (mode != TextMode::kScalar) {
      std::string special = lane_call(e);
      if (!special.empty()) return special;
    }
    std::string s = word(e) + "(";
    for (size_t i = 0; i < e.args.size(); ++i) s += (i ? ", " : "") + text(*e.args[i]);
    return s + ")";
  }

  std::string lane_cast(const Expr& e) {
    const Expr& x = *e.args[0];
    if (const auto q = quantize_steps(e))
      return fmt::format("{}<{}>({}, {{{}, {}, {}, {}, {}}})",
                         magnitude(*x.args[0]) ? "quantized_number" : "quantized", cpp_name(e.dtype),
                         text(*x.args[0]), float_literal(q->scale), float_literal(q->inverse),
                         float_literal(q->zero), float_literal(q->low), float_literal(q->high));
    if (is_sums(x)) return "to_float(" + sums(x) + ")";
    std::string v = text(x);
    if (bounded_integer(e)) return v;
    return x.dtype == DType::kF32 ? fmt::format("saturated<{}>({})", cpp_name(e.dtype), v) : v;
  }

  std::string sums(const Expr& e) {
    if (e.kind == Expr::Kind::kAccumulator) return accumulator;
    if (e.kind == Expr::Kind::kOperand) return operand(e.operand);
    const char* const scalar = mode == TextMode::kVector ? "" : "sinter::";
    return fmt::format("{}{}({}, {})", scalar, e.fn->name, sums(*e.args[0]), sums(*e.args[1]));
  }

  // Calls that the words spell differently: parameters that are plain floats, or tensors where the word has
  // none.
  std::string lane_call(const Expr& e) {
    const std::string_view f = e.fn->name;
    if (f == "reciprocal")
      return fmt::format("div({}, {})", mode == TextMode::kVector ? "splat(1.0f)" : "1.0f", text(*e.args[0]));
    if (!has_float_parameters(f)) return "";
    bool constant = true;
    for (size_t i = 1; i < e.args.size(); ++i)
      constant = constant && e.args[i]->kind == Expr::Kind::kConstant;
    if (constant) {
      std::string s = fmt::format("{}({}", f, text(*e.args[0]));
      for (size_t i = 1; i < e.args.size(); ++i) s += ", " + literal(*e.args[i]);
      return s + ")";
    }
    const std::string x = text(*e.args[0]);
    if (f == "clamp")
      return fmt::format("min_nan(max_nan({}, {}), {})", x, text(*e.args[1]), text(*e.args[2]));
    const std::string zero = mode == TextMode::kVector ? "splat(0.0f)" : "0.0f";
    return fmt::format("add(max({0}, {1}), mul(min({0}, {1}), {2}))", x, zero, text(*e.args[1]));
  }

  std::string text(const Expr& e) {
    if (auto it = named.find(&e); it != named.end()) return it->second;
    const bool leaf = e.kind == Expr::Kind::kAccumulator || e.kind == Expr::Kind::kConstant;
    if (uses[&e] < 2 || leaf) return plain(e);
    const std::string value = plain(e);
    const std::string name = fmt::format("{}{}", prefix, named.size());
    out.line("const auto {} = {};", name, value);
    return named[&e] = name;
  }
};

}  // namespace

std::string expr_text(const ExprPtr& e, TextMode mode, const std::function<std::string(int)>& operand,
                      const std::string& accumulator, Printer& out, const std::string& prefix) {
  Writer w{mode, operand, accumulator, out, prefix, {}, {}};
  w.count(*e);
  return w.text(*e);
}

}  // namespace sinter
