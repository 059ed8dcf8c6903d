// The trip count of a Loop that counts to an extent: `i = 0; while (i < x.shape[0]) { ...; i = i + 1; }`, as
// TensorFlow's and TorchScript's loops are exported, with a condition and no trip count of use.
//
// The condition is taken apart into comparisons d > 0 or d != 0 that must all hold, where d is a Dim of the
// iteration's number: a carried value that each iteration adds a number to is first + step * iteration, one
// that it passes on is what it was. Where d falls by q an iteration from p on, the Loop ends after
// 1 + ceil(p / q) iterations, once it has begun; where its initial condition is the same comparison, that
// covers the beginning too, and the count is exact. Values that only the run knows leave an upper bound, by
// their ranges. Floats are followed where they hold whole numbers (exporters cast both sides to compare
// them).
#include "ops/control/extent_loop.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "ir/error.h"
#include "ops/control/bodies.h"

namespace sinter {
namespace {

constexpr size_t kMostValues = 128;  // that one condition is made of
constexpr int64_t kInf = Interval::kUnbounded;

// A comparison of which the Loop goes on while it holds.
struct Test {
  enum class Kind { kPositive, kNonZero, kZero } kind;
  Dim d;
};
// What is known of a value: its elements where it holds whole numbers, what makes it true where it is a bool.
struct Meaning {
  std::vector<Dim> numbers;
  std::vector<Test> tests;  // all hold where the value is true
  bool whole = false;       // and it is true where they all hold
};
const Meaning kUnknown;

Meaning truth(bool holds) {
  return {{}, holds ? std::vector<Test>{} : std::vector<Test>{{Test::Kind::kPositive, Dim(0)}}, true};
}
Meaning test(Test::Kind kind, const Dim& d) { return {{}, {{kind, d}}, true}; }

Meaning negated(const Meaning& m) {
  if (!m.whole || m.tests.size() != 1) return m.whole && m.tests.empty() ? truth(false) : kUnknown;
  const Test& t = m.tests[0];
  if (t.kind == Test::Kind::kPositive) return test(Test::Kind::kPositive, Dim(1) - t.d);
  return test(t.kind == Test::Kind::kZero ? Test::Kind::kNonZero : Test::Kind::kZero, t.d);
}

Dim with(const Dim& d, const SymbolPtr& s, const Dim& value) {
  return d.substitute([&](const SymbolPtr& x) { return x->id == s->id ? value : Dim(x); });
}
bool has(const Dim& d, const SymbolPtr& s) {
  std::vector<SymbolPtr> all;
  d.collect_symbols(all);
  return std::any_of(all.begin(), all.end(), [&](const SymbolPtr& x) { return x->id == s->id; });
}
// Not an identifier, so never another symbol's.
SymbolPtr mark(const std::string& id, Interval range) {
  auto s = std::make_shared<Symbol>();
  s->id = "#" + id;
  s->range = range;
  s->from_data = true;
  return s;
}

class ExtentCounter {
 public:
  explicit ExtentCounter(const Inference& x)
      : x_(x), form_(loop_form(x.node)), body_(*x.node.bodies[0]), turn_(mark("turn", {0, kInf})) {}

  Trips trips() {
    if (!body_.unreachable.empty()) return {};
    const Meaning next = meaning(body_.outputs[0], 0), first = begins();
    if (first.whole && first.tests.size() == 1 && never(first.tests[0])) return {Dim(0), 0};
    const bool begun = first.whole && std::all_of(first.tests.begin(), first.tests.end(), always);
    Trips all;
    bool exact = next.whole && !next.tests.empty();
    std::optional<Dim> least;
    for (const Test& t : next.tests) {
      const Test* same = !begun && first.whole && first.tests.size() == 1 && next.tests.size() == 1
                             ? &first.tests[0]
                             : nullptr;
      const Trips one = trips_of(t, begun, same);
      all.at_most = std::min(all.at_most, one.at_most);
      exact = exact && one.exact;
      if (exact) least = least ? min(*least, *one.exact) : *one.exact;
    }
    if (exact && least && known_outside(x_, *least)) all.exact = *least;
    return all;
  }

 private:
  static bool always(const Test& t) {
    switch (t.kind) {
      case Test::Kind::kPositive: return t.d.lo() > 0;
      case Test::Kind::kNonZero: return t.d.lo() > 0 || t.d.hi() < 0;
      case Test::Kind::kZero: return t.d.is(0);
    }
    return false;
  }
  static bool never(const Test& t) { return t.kind == Test::Kind::kPositive && t.d.hi() <= 0; }

  // What must hold before the first iteration.
  Meaning begins() {
    if (!x_.node.inputs[1]) return truth(true);
    return meaning(x_.node.inputs[1], 0);
  }

  // `begun`: the initial condition holds; `first`: else the one comparison that it is, where it is one.
  Trips trips_of(const Test& t, bool begun, const Test* first) const {
    Dim p = with(t.d, turn_, Dim(0)), q = p - with(t.d, turn_, Dim(1));
    if (!(t.d == p - q * Dim(turn_)) || has(q, turn_)) return {};
    Dim start = p + q;  // what the comparison would be of before the first iteration
    if (t.kind == Test::Kind::kNonZero && q.is(-1)) p = Dim(0) - p, q = Dim(1), start = Dim(0) - start;
    const bool unequal = t.kind == Test::Kind::kNonZero && q.is(1);
    if (!unequal && (t.kind != Test::Kind::kPositive || q.lo() < 1)) return {};
    const bool same = first && first->kind == t.kind && (first->d == start || first->d == Dim(0) - start);
    const auto fits = [&](const Dim& count) {  // no number on the way leaves what its type holds
      return most_ == kInf || count.hi() == kInf || (count * q + max(p, Dim(0))).hi() <= most_;
    };
    if (unequal) {
      if (same && start.lo() >= 0 && fits(start)) return {start, start.hi()};
      if (p.lo() < 0 || !fits(p + 1)) return {};
      return {begun ? std::optional(p + 1) : std::nullopt, (p + 1).hi()};
    }
    const Dim count = Dim(1) + max(Dim(0), ceildiv(p, q));
    if (!fits(count)) return {};
    if (begun) return {count, count.hi()};
    if (same && first->d == start) {
      const Dim from_none = max(Dim(0), ceildiv(start, q));
      return {from_none, from_none.hi()};
    }
    return {std::nullopt, count.hi()};
  }

  // ---- what a value means, as iteration `turn_` finds it

  bool inside(const Value* v) const {
    if (v->producer)
      return std::any_of(body_.nodes.begin(), body_.nodes.end(),
                         [&](const auto& n) { return n.get() == v->producer; });
    return std::find(body_.inputs.begin(), body_.inputs.end(), v) != body_.inputs.end();
  }

  const Meaning& meaning(const Value* v, int depth) {
    if (const auto found = known_.find(v); found != known_.end()) return found->second;
    if (depth > 64 || known_.size() > kMostValues || !open_.insert(v).second) return kUnknown;
    Meaning m;
    try {
      m = made(v, depth + 1);
    } catch (const Refusal&) {  // beyond 64 bits: no count, whatever it is
    }
    open_.erase(v);
    return known_.insert_or_assign(v, std::move(m)).first->second;
  }

  Meaning made(const Value* v, int depth) {
    if (v->data) return constant(*v->data);
    const bool here = inside(v);
    if (!here && !v->elements.empty()) {
      if (v->type.dtype != DType::kBool) return {v->elements, {}, false};
      if (v->elements.size() == 1 && v->elements[0].is_static()) return truth(!v->elements[0].is(0));
    }
    if (v->producer) {
      Meaning m = by_node(v, *v->producer, depth);
      if (!m.numbers.empty() || !m.tests.empty() || m.whole) return m;
      return here ? m : of_range(*v);
    }
    if (!here) return of_range(*v);
    const auto at = std::find(body_.inputs.begin(), body_.inputs.end(), v) - body_.inputs.begin();
    const auto i = static_cast<size_t>(at);
    if (i == 0) return {{Dim(turn_)}, {}, false};
    if (i == 1) return truth(true);
    if (i < form_.first + form_.states) return carried(v, i - form_.first, depth);
    return meaning(x_.node.inputs[i], depth);
  }

  static Meaning constant(const Tensor& t) {
    if (t.size() < 1 || t.size() > 16) return kUnknown;
    if (t.dtype() == DType::kBool) return t.size() == 1 ? truth(t.integer(0) != 0) : kUnknown;
    Meaning m;
    for (int64_t i = 0; i < t.size(); ++i) {
      if (is_integer(t.dtype())) {
        m.numbers.emplace_back(t.integer(i));
        continue;
      }
      if (!is_float(t.dtype())) return kUnknown;
      const double v = t.real(i);
      if (v != std::nearbyint(v) || std::abs(v) > 1e9) return kUnknown;
      m.numbers.emplace_back(static_cast<int64_t>(v));
    }
    return m;
  }
  // A number of the caller's or of a layer around the Loop, of which its range is known.
  Meaning of_range(const Value& v) {
    if (!v.range || !is_integer(v.type.dtype) || !product(v.type.shape).is(1)) return kUnknown;
    const double lo = std::ceil(v.range->lo), hi = std::floor(v.range->hi);
    if (!(std::abs(lo) < 1e15 && std::abs(hi) < 1e15 && lo <= hi)) return kUnknown;
    return {{Dim(mark(v.name, {static_cast<int64_t>(lo), static_cast<int64_t>(hi)}))}, {}, false};
  }

  // Carried value k: what it was, or a number more in each iteration.
  Meaning carried(const Value* v, size_t k, int depth) {
    const Value* next = body_.outputs[form_.body_output(k)];
    Meaning first = meaning(x_.node.inputs[form_.first + k], depth);
    if (next == v) return first;
    if (first.numbers.size() != 1) return passed_on(next, v) ? first : kUnknown;
    const SymbolPtr self = mark("carried" + std::to_string(k), {-kInf, kInf});
    // What is made of it is known for this question only, and may be what another one asks for.
    std::map<const Value*, Meaning> before = known_;
    std::set<const Value*> open = std::exchange(open_, {});
    known_.insert_or_assign(v, Meaning{{Dim(self)}, {}, false});
    const Meaning made = meaning(next, depth);
    known_ = std::move(before);
    open_ = std::move(open);
    if (made.numbers.size() != 1) return kUnknown;
    const Dim& after = made.numbers[0];
    if (!has(after, self)) {  // made of the iteration's number alone, so of the last one's here
      const Dim here = with(after, turn_, Dim(turn_) - 1);
      return with(here, turn_, Dim(0)) == first.numbers[0] ? Meaning{{here}, {}, false} : kUnknown;
    }
    const Dim step = after - Dim(self);
    if (has(step, self) || has(step, turn_)) return kUnknown;
    return {{first.numbers[0] + step * Dim(turn_)}, {}, false};
  }
  static bool passed_on(const Value* made, const Value* in) {
    while (made->producer && made->producer->op == find_op("", "Identity")) made = made->producer->inputs[0];
    return made == in;
  }

  // What the types of numbers hold without rounding or wrapping.
  bool admit(DType t) {
    switch (t) {
      case DType::kI64: return true;
      case DType::kF64: most_ = std::min(most_, int64_t{1} << 53); return true;
      case DType::kI32: most_ = std::min<int64_t>(most_, INT32_MAX); return true;
      case DType::kF32: most_ = std::min(most_, int64_t{1} << 24); return true;
      case DType::kF16: most_ = std::min(most_, int64_t{1} << 11); return true;
      default: return false;
    }
  }

  Meaning by_node(const Value* v, const Node& n, int depth) {
    if (n.op->impure || !n.bodies.empty() || n.outputs[0] != v) return kUnknown;
    const std::string_view op = n.op->name;
    if (n.op->domain[0] == 0 && (op == "Shape" || op == "Size")) return extents(n, op == "Size");
    if (n.op->domain[0] == 0 && op == "Gather") return gathered(n, depth);
    if (n.epilogue && n.anchor_inputs > 0) return kUnknown;
    if (n.op->is_view) return meaning(n.inputs[0], depth);
    if (!n.epilogue && !n.op->expr) return kUnknown;
    std::vector<ExprPtr> args;
    std::vector<Meaning> operands;
    size_t elements = 1;
    for (const Value* in : n.inputs) {
      if (!in) return kUnknown;
      DType t = in->type.dtype;
      args.push_back(t == DType::kUndefined ? nullptr : Expr::input(static_cast<int>(args.size()), t));
      if (!args.back()) return kUnknown;
      operands.push_back(meaning(in, depth));
      elements = std::max(elements, operands.back().numbers.size());
    }
    const ExprPtr e = n.epilogue ? n.epilogue : n.op->expr(n, args);
    if (elements == 1) return of_expr(*e, operands);
    if (operands.size() != 1 || e->kind != Expr::Kind::kCast || !admit(e->dtype)) return kUnknown;
    return operands[0];  // a cast of a list of extents
  }

  // The extents of what stays the same in all iterations.
  Meaning extents(const Node& n, bool all) {
    const Value* of = n.inputs[0];
    if (inside(of)) {
      if (of->producer) return kUnknown;
      const auto at =
          static_cast<size_t>(std::find(body_.inputs.begin(), body_.inputs.end(), of) - body_.inputs.begin());
      if (at < form_.first) return kUnknown;
      const size_t k = at - form_.first;
      if (k < form_.states && !passed_on(body_.outputs[form_.body_output(k)], of)) return kUnknown;
      of = x_.node.inputs[at];
    }
    const Shape& s = of->type.shape;
    if (all) return {{product(s)}, {}, false};
    const auto rank = static_cast<int64_t>(s.size());
    const auto end = [&](const char* name, int64_t fallback) {
      const int64_t i = n.attributes.integer(name, fallback);
      return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
    };
    const int64_t from = end("start", 0), to = std::max(from, end("end", rank));
    return {{s.begin() + from, s.begin() + to}, {}, false};
  }

  Meaning gathered(const Node& n, int depth) {
    const Meaning from = meaning(n.inputs[0], depth), at = meaning(n.inputs[1], depth);
    if (n.inputs[0]->type.shape.size() > 1) return kUnknown;
    Meaning m;
    for (const Dim& i : at.numbers) {
      const auto size = static_cast<int64_t>(from.numbers.size());
      if (!i.is_static() || i.value() < -size || i.value() >= size) return kUnknown;
      m.numbers.push_back(from.numbers[static_cast<size_t>(i.value() < 0 ? i.value() + size : i.value())]);
    }
    return m;
  }

  Meaning of_expr(const Expr& e, const std::vector<Meaning>& operands) {
    switch (e.kind) {
      case Expr::Kind::kAccumulator: return kUnknown;
      case Expr::Kind::kOperand: return operands[static_cast<size_t>(e.operand)];
      case Expr::Kind::kConstant:
        if (e.dtype == DType::kBool) return truth(e.integer != 0);
        if (is_integer(e.dtype)) return {{Dim(e.integer)}, {}, false};
        if (e.real != std::nearbyint(e.real) || std::abs(e.real) > 1e9) return kUnknown;
        return {{Dim(static_cast<int64_t>(e.real))}, {}, false};
      case Expr::Kind::kCast: {
        Meaning m = of_expr(*e.args[0], operands);
        if (e.dtype == DType::kBool)
          return m.numbers.size() == 1 ? test(Test::Kind::kNonZero, m.numbers[0]) : m;
        return m.numbers.size() == 1 && admit(e.dtype) ? m : kUnknown;
      }
      case Expr::Kind::kCall: break;
    }
    std::vector<Meaning> a;
    for (const ExprPtr& arg : e.args) a.push_back(of_expr(*arg, operands));
    const std::string_view f = e.fn->name;
    if (f == "logical_not") return negated(a[0]);
    if (f == "logical_and") {
      Meaning both = a[0];
      both.tests.insert(both.tests.end(), a[1].tests.begin(), a[1].tests.end());
      both.whole = a[0].whole && a[1].whole;
      return both;
    }
    for (const Meaning& m : a)
      if (m.numbers.size() != 1) return kUnknown;
    const Dim& p = a[0].numbers[0];
    if (a.size() == 1) return f == "neg" && admit(e.dtype) ? Meaning{{Dim(0) - p}, {}, false} : kUnknown;
    const Dim& q = a[1].numbers[0];
    if (f == "lt") return test(Test::Kind::kPositive, q - p);
    if (f == "gt") return test(Test::Kind::kPositive, p - q);
    if (f == "le") return test(Test::Kind::kPositive, q - p + 1);
    if (f == "ge") return test(Test::Kind::kPositive, p - q + 1);
    if (f == "eq") return test(Test::Kind::kZero, p - q);
    if (!admit(e.dtype)) return kUnknown;
    if (f == "add") return {{p + q}, {}, false};
    if (f == "sub") return {{p - q}, {}, false};
    if (f == "mul") return {{p * q}, {}, false};
    if (f == "min") return {{min(p, q)}, {}, false};
    if (f == "max") return {{max(p, q)}, {}, false};
    if (f == "div" && is_integer(e.dtype) && q.lo() > 0 && p.lo() >= 0) return {{floordiv(p, q)}, {}, false};
    return kUnknown;
  }

  const Inference& x_;
  const LoopForm form_;
  const Graph& body_;
  const SymbolPtr turn_;
  int64_t most_ = kInf;
  std::map<const Value*, Meaning> known_;
  std::set<const Value*> open_;  // those being asked for
};

}  // namespace

Trips extent_trips(const Inference& x) {
  try {
    return ExtentCounter(x).trips();
  } catch (const Refusal&) {
    return {};
  }
}

}  // namespace sinter
