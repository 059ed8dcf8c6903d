#include "emit/byte_steps.h"

#include <cmath>

#include "emit/expr_text.h"

namespace sinter {
namespace {

bool is(const Expr& e, std::string_view fn) { return e.kind == Expr::Kind::kCall && fn == e.fn->name; }
bool is_byte(DType t) { return t == DType::kI8 || t == DType::kU8; }
int lowest(DType t) { return t == DType::kI8 ? -128 : 0; }
int highest(DType t) { return t == DType::kI8 ? 127 : 255; }

// `e` with what makes bytes in it replaced by operands 0, 1 …; null where it depends on anything else.
struct Leaves {
  std::vector<ExprPtr> bytes = {};

  ExprPtr leaf(const ExprPtr& e) {
    size_t k = 0;
    while (k < bytes.size() && text(*bytes[k]) != text(*e)) ++k;
    if (k == bytes.size()) bytes.push_back(e);
    return Expr::input(static_cast<int>(k), e->dtype);
  }
  ExprPtr of(const ExprPtr& e) {
    if (e->kind == Expr::Kind::kConstant) return e;
    if (is_byte(e->dtype)) return leaf(e);
    if (e->args.empty()) return nullptr;
    std::vector<ExprPtr> args;
    for (const ExprPtr& a : e->args) {
      args.push_back(of(a));
      if (!args.back()) return nullptr;
    }
    return e->kind == Expr::Kind::kCast ? Expr::cast(args[0], e->dtype)
                                        : Expr::call(e->fn->name, std::move(args));
  }
};

// All 256 bytes along axis `k` of two.
Tensor all_bytes(DType t, size_t k) {
  Tensor b(t, k == 0 ? std::vector<int64_t>{256, 1} : std::vector<int64_t>{1, 256});
  for (int i = 0; i < 256; ++i) b.set_integer(i, lowest(t) + i);
  return b;
}

}  // namespace

double magnitude(const Expr& e, double sums, const std::function<double(int)>& most) {
  const auto of = [&](size_t i) { return magnitude(*e.args[i], sums, most); };
  switch (e.kind) {
    case Expr::Kind::kAccumulator: return is_integer(e.dtype) ? sums : INFINITY;
    case Expr::Kind::kOperand: return is_byte(e.dtype) ? 255 : most(e.operand);
    case Expr::Kind::kConstant:
      return std::abs(is_integer(e.dtype) ? static_cast<double>(e.integer) : e.real);
    case Expr::Kind::kCast: return is_byte(e.dtype) ? std::min(of(0), 255.0) : of(0);
    case Expr::Kind::kCall: break;
  }
  if (is(e, "add") || is(e, "sub")) return of(0) + of(1);
  if (is(e, "mul")) return of(0) * of(1);
  if (is(e, "relu")) return of(0);
  if (is(e, "clamp")) return std::min(of(0), std::max(of(1), of(2)));
  // x / scale is below 1e38 for a scale above 1e-30 and moderate x: no NaN.
  if (is(e, "quantize") && e.args[1]->kind == Expr::Kind::kConstant && e.args[1]->real > 1e-20)
    return of(0) / e.args[1]->real + of(2);
  return INFINITY;
}

bool divides_by_inverse(const ExprPtr& x, float scale) {
  Leaves leaves;
  const ExprPtr e = leaves.of(x);
  if (!e || leaves.bytes.empty() || leaves.bytes.size() > 2) return false;
  std::vector<Tensor> values;
  for (size_t k = 0; k < leaves.bytes.size(); ++k) values.push_back(all_bytes(leaves.bytes[k]->dtype, k));
  const Tensor all = evaluate(*e, values, nullptr);
  const float inverse = 1 / scale;
  for (int64_t i = 0; i < all.size(); ++i) {
    const float v = all.as<float>()[i];
    if (std::nearbyint(v * inverse) != std::nearbyint(v / scale)) return false;
  }
  return true;
}

std::optional<ByteSteps> byte_steps(const ExprPtr& e, const std::function<double(int)>& most) {
  if (!is_byte(e->dtype)) return std::nullopt;
  if (const auto within = bounded_integer(*e)) {
    auto s = byte_steps(within->integers, most);
    if (!s || std::max(s->low, within->low) > std::min(s->high, within->high)) return std::nullopt;
    s->low = std::max(s->low, within->low);
    s->high = std::min(s->high, within->high);
    return s;
  }
  if (e->kind != Expr::Kind::kCast || !is(*e->args[0], "quantize")) return std::nullopt;
  const Expr& q = *e->args[0];
  if (q.args[1]->kind != Expr::Kind::kConstant || q.args[2]->kind != Expr::Kind::kConstant)
    return std::nullopt;
  const auto scale = static_cast<float>(q.args[1]->real);
  const double zero = q.args[2]->real;
  if (!(scale > 1e-30f && scale < 1e30f) || zero != std::nearbyint(zero) || std::abs(zero) > 255)
    return std::nullopt;
  if (!(magnitude(*q.args[0], 1L << 31, most) < 1e30)) return std::nullopt;  // never NaN
  if (!has_vector_text(*q.args[0])) return std::nullopt;
  ByteSteps s{q.args[0], static_cast<int>(zero), lowest(e->dtype), highest(e->dtype)};
  if (scale != 1 && !divides_by_inverse(s.value, scale)) return std::nullopt;
  const auto bound = [&](const ExprPtr& b) {  // the byte that b becomes
    return static_cast<int>(
        std::min(std::max(std::nearbyint(static_cast<float>(b->real) / scale) + zero, -128.0), 255.0));
  };
  for (bool more = true; more;) {
    more = false;
    if (is(*s.value, "relu")) {
      s.low = std::max(s.low, s.zero);
      more = true;
    } else if (is(*s.value, "clamp") && s.value->args[1]->kind == Expr::Kind::kConstant &&
               s.value->args[2]->kind == Expr::Kind::kConstant &&
               s.value->args[1]->real <= s.value->args[2]->real) {
      const int low = std::max(s.low, bound(s.value->args[1])),
                high = std::min(s.high, bound(s.value->args[2]));
      if (low > high) break;
      s.low = low;
      s.high = high;
      more = true;
    }
    if (more) s.value = ExprPtr(s.value->args[0]);
  }
  if (s.low > s.high) return std::nullopt;
  if (scale != 1) s.value = Expr::call("mul", {s.value, Expr::constant(1 / scale, DType::kF32)});
  return s;
}

}  // namespace sinter
