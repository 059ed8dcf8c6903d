// simplify_expr: activations that exporters spell out as arithmetic become the one scalar function that they
// are, and arithmetic on constants is done now.
//
// A rewrite may round less often than the model's chain of nodes, never to something else: constants such as
// 1/6, sqrt(2) and sqrt(2/pi) are recognised to f32's precision. With `exact` only those rewrites run that
// give the same bits. Trees are walked bottom up; products and sums with constants are brought into one order
// (constant last), so that a pattern needs one spelling.
#include <cmath>
#include <map>

#include "passes/passes.h"

namespace sinter {
namespace {

using Kind = Expr::Kind;

bool equal(const Expr& a, const Expr& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.dtype != b.dtype || a.fn != b.fn || a.args.size() != b.args.size()) return false;
  if (a.kind == Kind::kOperand) return a.operand == b.operand;
  if (a.kind == Kind::kConstant)
    return is_float(a.dtype) ? a.real == b.real && std::signbit(a.real) == std::signbit(b.real)
                             : a.integer == b.integer;
  for (size_t i = 0; i < a.args.size(); ++i)
    if (!equal(*a.args[i], *b.args[i])) return false;
  return true;
}
bool equal(const ExprPtr& a, const ExprPtr& b) { return equal(*a, *b); }

bool is(const ExprPtr& e, const char* fn) {
  return e->kind == Kind::kCall && std::string_view(e->fn->name) == fn;
}
bool is_constant(const ExprPtr& e) { return e->kind == Kind::kConstant; }
bool is_number(const ExprPtr& e, double v) {
  return is_constant(e) && (is_float(e->dtype) ? e->real == v : static_cast<double>(e->integer) == v);
}
// Equal to v up to the rounding of the element type, and of a constant computed in it.
bool is_about(const ExprPtr& e, double v) {
  if (!is_constant(e) || !is_float(e->dtype)) return false;
  const double tolerance = e->dtype == DType::kF64 ? 1e-12 : e->dtype == DType::kF32 ? 1e-6 : 4e-3;
  return std::fabs(e->real - v) <= tolerance * std::fabs(v);
}

bool power_of_two(double v) {
  int exponent = 0;
  return std::isnormal(v) && std::fabs(std::frexp(v, &exponent)) == 0.5;
}

// What x is multiplied by, if e is x times or divided by a constant.
struct Scaled {
  ExprPtr x;
  double factor;
};
std::optional<Scaled> scaled(const ExprPtr& e) {
  if (is(e, "mul") && is_constant(e->args[1])) return Scaled{e->args[0], e->args[1]->real};
  if (is(e, "div") && is_constant(e->args[1])) return Scaled{e->args[0], 1 / e->args[1]->real};
  return std::nullopt;
}

bool near(double a, double b, DType t) {
  const double tolerance = t == DType::kF64 ? 1e-12 : t == DType::kF32 ? 1e-6 : 4e-3;
  return std::fabs(a - b) <= tolerance * std::fabs(b);
}

// The factors of a product, constants multiplied up.
struct Product {
  std::vector<ExprPtr> factors;
  double constant = 1;
};
void collect(const ExprPtr& e, Product& p, int depth = 0) {
  if (is(e, "mul") && depth < 4) {
    collect(e->args[0], p, depth + 1);
    collect(e->args[1], p, depth + 1);
  } else if (is(e, "div") && is_constant(e->args[1])) {
    p.constant /= e->args[1]->real;
    collect(e->args[0], p, depth + 1);
  } else if (is_constant(e)) {
    p.constant *= e->real;
  } else {
    p.factors.push_back(e);
  }
}

// x + c with the constant on whichever side; null where e isn't that.
ExprPtr plus(const ExprPtr& e, double c) {
  if (!is(e, "add")) return nullptr;
  if (is_about(e->args[1], c)) return e->args[0];
  return is_about(e->args[0], c) ? e->args[1] : nullptr;
}

// sqrt(2/pi) * (x + 0.044715 x^3), also as sqrt(2/pi) * x * (1 + 0.044715 x^2).
bool is_gelu_tanh_argument(const ExprPtr& e, const ExprPtr& x) {
  Product p;
  collect(e, p);
  if (!near(p.constant, std::sqrt(2 / M_PI), e->dtype)) return false;
  const auto is_power = [&](const ExprPtr& y, int n) {  // 0.044715 * x^n
    Product q;
    collect(y, q);
    int power = 0;
    for (const ExprPtr& f : q.factors) {
      if (equal(f, x))
        ++power;
      else if (is(f, "pow") && equal(f->args[0], x) && is_constant(f->args[1]))
        power += f->args[1]->real == 2 ? 2 : f->args[1]->real == 3 ? 3 : 100;
      else
        return false;
    }
    return power == n && near(q.constant, 0.044715, e->dtype);
  };
  if (p.factors.size() == 1 && is(p.factors[0], "add")) {
    const auto& s = p.factors[0]->args;
    return (equal(s[0], x) && is_power(s[1], 3)) || (equal(s[1], x) && is_power(s[0], 3));
  }
  if (p.factors.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ExprPtr rest = equal(p.factors[i], x) ? plus(p.factors[1 - i], 1) : nullptr;
    if (rest && is_power(rest, 2)) return true;
  }
  return false;
}

// 0.5 * x * (1 + erf(x / sqrt(2))), or its approximation by tanh, in any order of factors.
ExprPtr gelu(const ExprPtr& e) {
  if (!is_float(e->dtype)) return nullptr;
  Product p;
  collect(e, p);
  if (p.factors.size() != 2 || !near(p.constant, 0.5, e->dtype)) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const ExprPtr& x = p.factors[i];
    const ExprPtr inner = plus(p.factors[1 - i], 1);
    if (!inner) continue;
    if (is(inner, "erf"))
      if (const auto s = scaled(inner->args[0]);
          s && equal(s->x, x) && near(s->factor, std::sqrt(0.5), e->dtype))
        return Expr::call("gelu", {x});
    if (is(inner, "tanh") && is_gelu_tanh_argument(inner->args[0], x)) return Expr::call("gelu_tanh", {x});
  }
  return nullptr;
}

// clamp(x / 6 + 1/2, 0, 1) or clamp(x + 3, 0, 6): the scale that makes it the former; nothing otherwise.
std::optional<double> hard_gate(const ExprPtr& e, const ExprPtr& x) {
  if (is(e, "hard_sigmoid") && equal(e->args[0], x) && is_about(e->args[1], 1.0 / 6) &&
      is_about(e->args[2], 0.5))
    return 1;
  if (!is(e, "clamp") || !is_number(e->args[1], 0)) return std::nullopt;
  const ExprPtr three = plus(e->args[0], 3), half = plus(e->args[0], 0.5);
  if (is_number(e->args[2], 6) && three && equal(three, x)) return 6;
  if (!is_number(e->args[2], 1) || !half) return std::nullopt;
  const auto s = scaled(half);
  return s && equal(s->x, x) && near(s->factor, 1.0 / 6, e->dtype) ? std::optional<double>(1) : std::nullopt;
}

ExprPtr hard_swish(const ExprPtr& e) {
  if (!is_float(e->dtype)) return nullptr;
  Product p;
  collect(e, p);
  if (p.factors.size() != 2) return nullptr;
  for (size_t i = 0; i < 2; ++i)
    if (const auto gate = hard_gate(p.factors[1 - i], p.factors[i]);
        gate && near(p.constant * *gate, 1, e->dtype))
      return Expr::call("hard_swish", {p.factors[i]});
  return nullptr;
}

ExprPtr gated(const ExprPtr& e) {  // x * sigmoid(x), x * tanh(softplus(x))
  if (!is(e, "mul")) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const ExprPtr &x = e->args[i], &y = e->args[1 - i];
    if (is(y, "sigmoid") && equal(y->args[0], x)) return Expr::call("silu", {x});
    if (is(y, "tanh") && is(y->args[0], "softplus") && equal(y->args[0]->args[0], x))
      return Expr::call("mish", {x});
  }
  return nullptr;
}

ExprPtr hard_sigmoid(const ExprPtr& e) {  // clamp(x + 3, 0, 6) / 6
  const auto s = scaled(e);
  if (!s || !is_float(e->dtype) || !near(s->factor, 1.0 / 6, e->dtype) || !is(s->x, "clamp")) return nullptr;
  const ExprPtr x = plus(s->x->args[0], 3);
  if (!x || !is_number(s->x->args[1], 0) || !is_number(s->x->args[2], 6)) return nullptr;
  return Expr::call("hard_sigmoid", {x, Expr::constant(1.0 / 6, e->dtype), Expr::constant(0.5, e->dtype)});
}

bool ordered(const ExprPtr& lo, const ExprPtr& hi) {
  if (!is_constant(lo) || !is_constant(hi)) return false;
  return is_float(lo->dtype)      ? lo->real <= hi->real
         : is_unsigned(lo->dtype) ? static_cast<uint64_t>(lo->integer) <= static_cast<uint64_t>(hi->integer)
                                  : lo->integer <= hi->integer;
}

// Same bits: constants last, bounds merged, neutral elements dropped.
ExprPtr tidy(const ExprPtr& e) {
  if (e->kind != Kind::kCall) return nullptr;
  const auto& a = e->args;
  const bool commutes = is(e, "add") || is(e, "mul") || is(e, "min") || is(e, "max");
  if (commutes && is_constant(a[0]) && !is_constant(a[1])) return Expr::call(e->fn->name, {a[1], a[0]});
  if (is(e, "max") && is_number(a[1], 0) && !(is_float(e->dtype) && std::signbit(a[1]->real)) &&
      !is_unsigned(e->dtype))
    return Expr::call("relu", {a[0]});
  if (is(e, "min") && is(a[0], "max") && ordered(a[0]->args[1], a[1]))
    return Expr::call("clamp", {a[0]->args[0], a[0]->args[1], a[1]});
  if (is(e, "min") && is(a[0], "relu") && is_constant(a[1]) && ordered(Expr::constant(0, a[1]->dtype), a[1]))
    return Expr::call("clamp", {a[0]->args[0], Expr::constant(0, a[1]->dtype), a[1]});
  if (is(e, "max") && is(a[0], "min") && ordered(a[1], a[0]->args[1]))
    return Expr::call("clamp", {a[0]->args[0], a[1], a[0]->args[1]});
  if (is(e, "clamp") && is_float(e->dtype) && is_number(a[1], 0) && is_number(a[2], INFINITY))
    return Expr::call("relu", {a[0]});
  if (is(e, "add") && is(a[1], "neg")) return Expr::call("sub", {a[0], a[1]->args[0]});
  if (is(e, "sub") && is(a[1], "neg")) return Expr::call("add", {a[0], a[1]->args[0]});
  if (is(e, "sub") && is_number(a[1], 0) && !(is_float(e->dtype) && std::signbit(a[1]->real))) return a[0];
  if (is(e, "mul") && is_number(a[1], 1)) return a[0];
  if (is(e, "div") && is_number(a[1], 1)) return a[0];
  if (is(e, "div") && is_float(e->dtype) && is_number(a[0], 1)) return Expr::call("reciprocal", {a[1]});
  if (is(e, "div") && is_constant(a[1]) && is_float(e->dtype) && power_of_two(a[1]->real) &&
      std::isnormal(static_cast<float>(1 / a[1]->real)) && e->dtype != DType::kF16)
    return Expr::call("mul", {a[0], Expr::constant(1 / a[1]->real, e->dtype)});
  if (is(e, "pow") && is_float(e->dtype) && a[0]->dtype == e->dtype && is_number(a[1], 1)) return a[0];
  return nullptr;
}

// x to the power of a half: a root, but for -infinity, which gives infinity, and -0.0, which gives 0.0.
ExprPtr power_of_half(const ExprPtr& x) {
  const auto number = [&](double v) { return Expr::constant(v, x->dtype); };
  return Expr::call("select", {Expr::call("eq", {x, number(-INFINITY)}), number(INFINITY),
                               Expr::call("sqrt", {Expr::call("add", {x, number(0)})})});
}

// One rounding fewer, or the same function by its name.
ExprPtr recognised(const ExprPtr& e) {
  if (e->kind != Kind::kCall || !is_float(e->dtype)) return nullptr;
  const auto& a = e->args;
  if (is(e, "mul") || is(e, "div")) {
    if (ExprPtr r = gated(e)) return r;
    if (ExprPtr r = gelu(e)) return r;
    if (ExprPtr r = hard_swish(e)) return r;
    if (ExprPtr r = hard_sigmoid(e)) return r;
  }
  if (is(e, "mul") && is_constant(a[1]) && is(a[0], "mul") && is_constant(a[0]->args[1])) {
    const double product = a[1]->real * a[0]->args[1]->real;
    if (std::isnormal(static_cast<float>(product)))
      return Expr::call("mul", {a[0]->args[0], Expr::constant(product, e->dtype)});
  }
  if (is(e, "pow") && a[0]->dtype == e->dtype && is_number(a[1], 2)) return Expr::call("mul", {a[0], a[0]});
  if (is(e, "pow") && a[0]->dtype == e->dtype && is_number(a[1], 0.5)) return power_of_half(a[0]);
  return nullptr;
}

// A call on constants only.
ExprPtr computed(const ExprPtr& e) {
  if (e->args.empty()) return nullptr;
  for (const ExprPtr& a : e->args)
    if (!is_constant(a)) return nullptr;
  const Tensor t = evaluate(*e, {}, nullptr);
  return is_float(e->dtype) ? Expr::constant(t.real(0), e->dtype)
                            : Expr::constant_integer(t.integer(0), e->dtype);
}

// Integers that are dequantised and quantised again by the same scale and zero point, as behind an activation
// that stands between two pairs of QuantizeLinear and DequantizeLinear: the same integers, bounded where the
// activation bounds them. Same bits: (q - zero) * scale / scale is off by less than 1e-4 of a step.
ExprPtr requantized(const ExprPtr& e) {
  if (e->kind != Kind::kCast || bits_of(e->dtype) > 16 || !is_integer(e->dtype) ||
      !is(e->args[0], "quantize"))
    return nullptr;
  const ExprPtr &scale = e->args[0]->args[1], &zero = e->args[0]->args[2];
  if (!is_constant(scale) || !is_constant(zero) || !(scale->real > 1e-30 && scale->real < 1e30))
    return nullptr;
  ExprPtr x = e->args[0]->args[0];
  std::vector<ExprPtr> bounds;
  if (is(x, "relu")) bounds = {Expr::constant(0, DType::kF32), Expr::constant(1e37, DType::kF32)};
  if (is(x, "clamp") && is_constant(x->args[1]) && is_constant(x->args[2])) bounds = {x->args[1], x->args[2]};
  if (!bounds.empty()) x = x->args[0];
  if (!is(x, "mul") || !equal(x->args[1], scale)) return nullptr;
  x = x->args[0];
  if (is(x, "sub") && equal(x->args[1], zero))
    x = x->args[0];
  else if (!is_number(zero, 0))
    return nullptr;
  if (x->kind != Kind::kCast || x->dtype != DType::kF32 || x->args[0]->dtype != e->dtype) return nullptr;
  if (bounds.empty()) return x->args[0];
  for (ExprPtr& b : bounds) {
    const ExprPtr q = computed(Expr::call("quantize", {b, scale, zero}));
    b = computed(Expr::cast(computed(Expr::cast(q, e->dtype)), DType::kF32));
  }
  return Expr::cast(Expr::call("clamp", {x, bounds[0], bounds[1]}), e->dtype);
}

ExprPtr simplify(const ExprPtr& e, bool exact, std::map<const Expr*, ExprPtr>& done) {
  if (e->args.empty()) return e;
  if (auto it = done.find(e.get()); it != done.end()) return it->second;
  std::vector<ExprPtr> args;
  bool same = true;
  for (const ExprPtr& a : e->args) {
    args.push_back(simplify(a, exact, done));
    same &= args.back() == a;
  }
  ExprPtr r = same                     ? e
              : e->kind == Kind::kCast ? Expr::cast(args[0], e->dtype)
                                       : Expr::call(e->fn->name, args);
  for (int i = 0; i < 16; ++i) {
    ExprPtr better = computed(r);
    if (!better) better = requantized(r);
    if (!better) better = tidy(r);
    if (!better && !exact) better = recognised(r);
    if (!better || better->dtype != r->dtype) break;
    r = better;
  }
  return done[e.get()] = r;
}

}  // namespace

ExprPtr simplified(const ExprPtr& e, bool exact) {
  std::map<const Expr*, ExprPtr> done;
  return simplify(e, exact, done);
}

bool simplify_expr(Graph& g, const PassOptions& options) {
  bool changed = false;
  for (const auto& n : g.nodes) {
    if (!n->epilogue) continue;
    const ExprPtr e = simplified(n->epilogue, options.exact);
    changed |= e != n->epilogue;
    n->epilogue = e;
  }
  return changed;
}

}  // namespace sinter
