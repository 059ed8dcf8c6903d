// Ranges of values: where the elements of a tensor lie, followed through the graph by interval arithmetic.
//
// They bound what the data decide and no shape does: the boxes of a detector are clipped to its picture, so
// the sizes that are computed of them are at most the picture's and some. The arithmetic is that of real
// numbers; a run rounds, and its inputs may be NaN. So nothing may rely on a range without a check in the
// generated code (`reveal` has one).
#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace sinter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Maybe = std::optional<Range>;

// Nothing where the interval says nothing.
Maybe known(double lo, double hi) {
  if (std::isnan(lo) || std::isnan(hi) || lo > hi || (lo == -kInfinity && hi == kInfinity)) return {};
  return Range{lo, hi};
}
Range or_all(const Maybe& r) { return r ? *r : Range{-kInfinity, kInfinity}; }
Maybe hull(const Maybe& a, const Maybe& b) {
  if (!a || !b) return {};
  return known(std::min(a->lo, b->lo), std::max(a->hi, b->hi));
}

Maybe of_tensor(const Tensor& t) {
  if (t.size() == 0 || t.size() > 4096 || !(is_float(t.dtype()) || is_integer(t.dtype()))) return {};
  double lo = kInfinity, hi = -kInfinity;
  for (int64_t i = 0; i < t.size(); ++i) {
    const double v = t.real(i);
    if (std::isnan(v)) continue;
    lo = std::min(lo, v), hi = std::max(hi, v);
  }
  return known(lo, hi);
}

// All that is known of a tensor's elements, however it is known.
Maybe range_of(const Fact& f) {
  if (!f.present) return {};
  if (f.data) return of_tensor(*f.data);
  if (f.range || f.elements.empty()) return f.range;
  double lo = kInfinity, hi = -kInfinity;
  for (const Dim& d : f.elements) {
    const Interval b = d.bounds();
    lo = std::min(lo, b.lo == -Interval::kUnbounded ? -kInfinity : static_cast<double>(b.lo));
    hi = std::max(hi, b.hi == Interval::kUnbounded ? kInfinity : static_cast<double>(b.hi));
  }
  return known(lo, hi);
}

// The hull of f at the corners of two intervals; 0 * infinity is 0 there, since the infinity stands for
// finite numbers without a bound.
template <class F>
Maybe corners(const Range& a, const Range& b, F f) {
  double lo = kInfinity, hi = -kInfinity;
  for (const double p : {a.lo, a.hi})
    for (const double q : {b.lo, b.hi}) {
      const double v = f(p, q);
      if (std::isnan(v)) return {};
      lo = std::min(lo, v), hi = std::max(hi, v);
    }
  return known(lo, hi);
}
double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

bool is_growing(std::string_view f) {
  for (const char* name : {"floor", "ceil", "round", "trunc", "sqrt", "exp", "log", "tanh", "erf", "relu",
                           "sigmoid", "softplus", "atan", "sign"})
    if (f == name) return true;
  return false;
}

Maybe of_call(const ScalarFn& fn, const std::vector<Maybe>& args) {
  const std::string_view f = fn.name;
  if (fn.to_bool) return Range{0, 1};
  if (f == "select") return hull(args[1], args[2]);
  const Range a = or_all(args[0]), b = args.size() > 1 ? or_all(args[1]) : Range{};
  if (f == "min") return known(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
  if (f == "max") return known(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
  if (f == "clamp") {
    const Range c = or_all(args[2]);
    return known(std::min(std::max(a.lo, b.lo), c.lo), std::min(std::max(a.hi, b.hi), c.hi));
  }
  if (is_growing(f)) {
    const double lo = fn.real(&a.lo), hi = fn.real(&a.hi);
    return known(std::isnan(lo) ? (f == "sqrt" ? 0 : -kInfinity) : lo, hi);
  }
  if (f == "abs") {
    const double far = std::max(std::abs(a.lo), std::abs(a.hi));
    return known(a.lo <= 0 && a.hi >= 0 ? 0 : std::min(std::abs(a.lo), std::abs(a.hi)), far);
  }
  if (!args[0] || (args.size() > 1 && !args[1])) return {};
  if (f == "neg") return known(-a.hi, -a.lo);
  if (f == "add") return known(a.lo + b.lo, a.hi + b.hi);
  if (f == "sub") return known(a.lo - b.hi, a.hi - b.lo);
  if (f == "mul") return corners(a, b, times);
  const bool divisible = b.lo > 0 || b.hi < 0;
  if (f == "div" && divisible) return corners(a, b, [](double p, double q) { return p / q; });
  if (f == "reciprocal" && (a.lo > 0 || a.hi < 0)) return known(1 / a.hi, 1 / a.lo);
  return {};
}

// Integer quotients are cut towards 0, casts to integers as well; what leaves 64 bits is nobody's range.
Maybe as_type(const Maybe& r, DType t) {
  if (!r || is_float(t)) return r;
  if (t == DType::kBool) return Range{0, 1};
  if (r->lo < -0x1p31 || r->hi > 0x1p31) return {};
  const bool narrow = size_of(t) < 4 || t == DType::kU32 || t == DType::kU64;
  if (narrow && (r->lo < 0 || r->hi > 127)) return {};
  return known(std::trunc(r->lo), std::trunc(r->hi));
}

Maybe of_expr(const Expr& e, const std::vector<Fact>& in) {
  switch (e.kind) {
    case Expr::Kind::kAccumulator: return {};
    case Expr::Kind::kOperand: return range_of(in[static_cast<size_t>(e.operand)]);
    case Expr::Kind::kConstant: {
      const double v = is_float(e.dtype) ? e.real : static_cast<double>(e.integer);
      return known(v, v);
    }
    case Expr::Kind::kCast: return as_type(of_expr(*e.args[0], in), e.dtype);
    case Expr::Kind::kCall: break;
  }
  std::vector<Maybe> args;
  for (const ExprPtr& a : e.args) args.push_back(of_expr(*a, in));
  return as_type(of_call(*e.fn, args), e.dtype);
}

// Operators whose outputs hold elements of the inputs listed here, and nothing else. `all`: of every input.
struct Movement {
  std::string_view op;
  std::vector<size_t> from;
  bool all = false;
};
const std::vector<Movement>& movements() {
  static const std::vector<Movement> table = {
      {"Compress", {0}},
      {"Concat", {}, true},
      {"DepthToSpace", {0}},
      {"Expand", {0}},
      {"Flatten", {0}},
      {"Gather", {0}},
      {"GatherElements", {0}},
      {"GatherND", {0}},
      {"Identity", {0}},
      {"MaxPool", {0}},
      {"ReduceMax", {0}},
      {"ReduceMean", {0}},
      {"ReduceMin", {0}},
      {"Reshape", {0}},
      {"ReverseSequence", {0}},
      {"ScatterElements", {0, 2}},
      {"ScatterND", {0, 2}},
      {"Slice", {0}},
      {"SpaceToDepth", {0}},
      {"Split", {0}},
      {"Squeeze", {0}},
      {"Tile", {0}},
      {"TopK", {0}},
      {"Transpose", {0}},
      {"Unique", {0}},
      {"Unsqueeze", {0}},
      {"reveal", {0}},
  };
  return table;
}

std::vector<size_t> moved_inputs(const Movement& m, const Inference& x) {
  std::vector<size_t> from = m.from;
  if (m.all)
    for (size_t i = 0; i < x.in.size(); ++i) from.push_back(i);
  return from;
}

// A scatter that combines makes other numbers.
bool combines(const Inference& x) {
  return x.attributes().has("reduction") && x.attributes().text("reduction", "none") != "none";
}

Maybe of_movement(const Movement& m, const Inference& x) {
  if (combines(x)) return {};
  Maybe r;
  for (const size_t i : moved_inputs(m, x)) {
    if (!x.has(i)) return {};
    if (m.all && product(x.shape(i)).is(0)) continue;
    const Maybe next = range_of(x.in[i]);
    if (!next) return {};
    r = r ? hull(r, next) : next;
  }
  return r;
}

// Where all that may be moved is one and the same integer, so is all that arrives, wherever it is taken from:
// a Slice of zeros at an index that only the run knows.
void settle_alike(const Movement& m, const Inference& x, Fact& out) {
  if (!out.present || !is_integer(out.type.dtype) || !out.elements.empty() || combines(x)) return;
  if (!is_static(out.type.shape)) return;
  const int64_t size = product(out.type.shape).value();
  if (size < 1 || size > Fact::kMaxElements) return;
  std::optional<int64_t> number;
  for (const size_t i : moved_inputs(m, x)) {
    const auto known = x.integers(i);
    if (!known) return;
    for (const int64_t v : *known)
      if (v != number.value_or(v)) return;
    if (!known->empty()) number = known->front();
  }
  if (number) out.elements.assign(static_cast<size_t>(size), Dim(*number));
}

}  // namespace

void propagate_ranges(Inference& x) {
  if (x.node.epilogue || !x.node.bodies.empty() || x.out.empty() || !x.out[0].present) return;
  const std::string_view op = x.node.op->name, domain = x.node.op->domain;
  Fact& out = x.out[0];
  out.range.reset();
  if (!domain.empty() && domain != "sinter") return;
  if (x.node.op->expr) {
    std::vector<ExprPtr> args;
    for (size_t i = 0; i < x.in.size(); ++i)
      args.push_back(x.has(i) ? Expr::input(static_cast<int>(i), x.dtype(i)) : nullptr);
    out.range = of_expr(*x.node.op->expr(x.node, args), x.in);
    return;
  }
  for (const Movement& m : movements()) {
    if (m.op != op) continue;
    out.range = of_movement(m, x);
    settle_alike(m, x, out);
    if (op == "Split")
      for (Fact& f : x.out) {
        f.range = out.range;
        settle_alike(m, x, f);
      }
    return;
  }
  if (op == "Softmax") out.range = Range{0, 1};
}

}  // namespace sinter
