#include "ir/dim.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "ir/budget.h"
#include "ir/error.h"
#include "sinter/dims.h"

namespace sinter {
namespace {

constexpr int64_t kInf = Interval::kUnbounded;

int64_t checked(bool overflow, int64_t value) {
  if (overflow) refuse("a dimension overflows 64 bits");
  return value;
}
int64_t add(int64_t a, int64_t b) {
  int64_t r = 0;
  const bool o = __builtin_add_overflow(a, b, &r);
  return checked(o, r);
}
int64_t mul(int64_t a, int64_t b) {
  int64_t r = 0;
  const bool o = __builtin_mul_overflow(a, b, &r);
  return checked(o, r);
}
int64_t floordiv_int(int64_t a, int64_t b) {
  if (b == 0) refuse("a dimension is divided by zero");
  if (b == -1) return checked(a == INT64_MIN, a == INT64_MIN ? 0 : -a);
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

// Saturating arithmetic on interval ends: +-kInf absorbs.
int64_t sat_add(int64_t a, int64_t b) {
  if (a == kInf || b == kInf) return kInf;
  if (a == -kInf || b == -kInf) return -kInf;
  int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return a > 0 ? kInf : -kInf;
  return r;
}
int64_t sat_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t r = 0;
  const bool negative = (a < 0) != (b < 0);
  if (a == kInf || a == -kInf || b == kInf || b == -kInf || __builtin_mul_overflow(a, b, &r))
    return negative ? -kInf : kInf;
  return r;
}
Interval add(Interval a, Interval b) {
  return {a.lo == -kInf || b.lo == -kInf ? -kInf : sat_add(a.lo, b.lo),
          a.hi == kInf || b.hi == kInf ? kInf : sat_add(a.hi, b.hi)};
}
Interval mul(Interval a, Interval b) {
  const int64_t p[] = {sat_mul(a.lo, b.lo), sat_mul(a.lo, b.hi), sat_mul(a.hi, b.lo), sat_mul(a.hi, b.hi)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}
Interval floordiv(Interval a, Interval b) {
  if (b.lo <= 0) return {-kInf, kInf};  // a divisor that may vanish tells nothing
  auto div = [](int64_t x, int64_t y) {
    if (x == kInf || x == -kInf) return y == kInf ? (x > 0 ? int64_t{0} : int64_t{-1}) : x;
    return y == kInf ? (x >= 0 ? int64_t{0} : int64_t{-1}) : floordiv_int(x, y);
  };
  const int64_t p[] = {div(a.lo, b.lo), div(a.lo, b.hi), div(a.hi, b.lo), div(a.hi, b.hi)};
  return {a.lo == -kInf ? -kInf : *std::min_element(p, p + 4),
          a.hi == kInf ? kInf : *std::max_element(p, p + 4)};
}

}  // namespace

enum class AtomKind { kSymbol, kFloorDiv, kMin, kMax, kScaled };

struct Dim::Atom {
  AtomKind kind;
  SymbolPtr symbol;
  Dim a, b;
  float scale = 1;  // kScaled, of a
  std::string key;
  Interval range;
};

namespace {
using AtomPtr = std::shared_ptr<const Dim::Atom>;
struct Monomial {
  std::vector<AtomPtr> atoms;  // sorted by key; a repeated atom is a power
  std::string key() const {
    std::string k;
    for (const AtomPtr& a : atoms) k += (k.empty() ? "" : "*") + a->key;
    return k;
  }
};
struct Term {
  int64_t coefficient;
  Monomial monomial;
};
using Terms = std::map<std::string, Term>;  // by monomial key; "" is the constant
}  // namespace

struct Dim::Poly {
  Terms terms;
  std::string key;
  Interval range;
};

namespace {

Terms terms_of(const Dim& d) {
  if (!d.is_static()) return d.poly()->terms;
  Terms t;
  if (d.value() != 0) t[""] = {d.value(), {}};
  return t;
}

std::string text_of(const Terms& terms) {
  std::string positive, constant;
  for (const auto& [key, t] : terms) {
    if (key.empty()) {
      constant = fmt::format("{}{}", t.coefficient < 0 ? "-" : "+",
                             t.coefficient < 0 ? -t.coefficient : t.coefficient);
      continue;
    }
    const int64_t c = t.coefficient;
    if (c == 1)
      positive += (positive.empty() ? "" : "+") + key;
    else if (c == -1)
      positive += "-" + key;
    else
      positive += fmt::format("{}{}*{}", c > 0 && !positive.empty() ? "+" : "", c, key);
  }
  return positive + constant;
}

Dim make(Terms terms) {
  for (auto it = terms.begin(); it != terms.end();)
    it = it->second.coefficient == 0 ? terms.erase(it) : std::next(it);
  if (terms.empty()) return Dim(0);
  if (terms.size() == 1 && terms.begin()->first.empty()) return Dim(terms.begin()->second.coefficient);
  if (terms.size() > 256) refuse("a dimension's expression grows beyond 256 terms");
  spend_inference(100 * static_cast<double>(terms.size() + 1));
  auto p = std::make_shared<Dim::Poly>();
  p->range = {0, 0};
  for (const auto& [key, t] : terms) {
    Interval r{1, 1};
    for (const AtomPtr& a : t.monomial.atoms) r = mul(r, a->range);
    p->range = add(p->range, mul(r, {t.coefficient, t.coefficient}));
  }
  p->key = text_of(terms);
  if (p->key.size() > 4000) refuse("a dimension's expression grows beyond 4,000 characters");
  p->terms = std::move(terms);
  return Dim(std::shared_ptr<const Dim::Poly>(std::move(p)));
}

Dim from_atom(AtomPtr a) {
  if (a->range.lo == a->range.hi) return Dim(a->range.lo);
  Terms t;
  const std::string key = a->key;
  t[key] = {1, Monomial{{std::move(a)}}};
  return make(std::move(t));
}

Dim atom(AtomKind kind, const Dim& a, const Dim& b, const char* name, Interval range) {
  auto n = std::make_shared<Dim::Atom>();
  n->kind = kind;
  n->a = a;
  n->b = b;
  n->key = fmt::format("{}({},{})", name, a.text(), b.text());
  n->range = range;
  return from_atom(std::move(n));
}

}  // namespace

Dim::Dim(std::shared_ptr<const Poly> poly) : poly_(std::move(poly)) {}
Dim::Dim(SymbolPtr symbol) {
  auto a = std::make_shared<Atom>();
  a->kind = AtomKind::kSymbol;
  a->key = symbol->id;
  a->range = symbol->range;
  a->symbol = std::move(symbol);
  *this = from_atom(std::move(a));
}

int64_t Dim::value() const {
  SINTER_CHECK(is_static(), "Dim::value of a symbolic dimension");
  return constant_;
}
Interval Dim::bounds() const { return poly_ ? poly_->range : Interval{constant_, constant_}; }
std::string Dim::text() const { return poly_ ? poly_->key : std::to_string(constant_); }

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_static() || b.is_static()) return a.is_static() && b.is_static() && a.constant_ == b.constant_;
  return a.poly_ == b.poly_ || a.poly_->key == b.poly_->key;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(add(a.constant_, b.constant_));
  Terms t = terms_of(a);
  for (const auto& [key, term] : terms_of(b)) {
    auto [it, fresh] = t.try_emplace(key, term);
    if (!fresh) it->second.coefficient = add(it->second.coefficient, term.coefficient);
  }
  return make(std::move(t));
}
Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(mul(a.constant_, b.constant_));
  Terms t;
  const Terms first = terms_of(a), second = terms_of(b);
  for (const auto& [ka, ta] : first)
    for (const auto& [kb, tb] : second) {
      spend_inference(100 * static_cast<double>(1 + ta.monomial.atoms.size() + tb.monomial.atoms.size()));
      Term p{mul(ta.coefficient, tb.coefficient), ta.monomial};
      p.monomial.atoms.insert(p.monomial.atoms.end(), tb.monomial.atoms.begin(), tb.monomial.atoms.end());
      std::sort(p.monomial.atoms.begin(), p.monomial.atoms.end(),
                [](const AtomPtr& x, const AtomPtr& y) { return x->key < y->key; });
      auto [it, fresh] = t.try_emplace(p.monomial.key(), p);
      if (!fresh) it->second.coefficient = add(it->second.coefficient, p.coefficient);
    }
  return make(std::move(t));
}
Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) {
    int64_t r = 0;
    const bool o = __builtin_sub_overflow(a.constant_, b.constant_, &r);
    return Dim(checked(o, r));
  }
  return a + b * Dim(-1);
}

namespace {

// floordiv(floordiv(y, n) + p, b) is floordiv(y + n*p, n*b), and floordiv(p - floordiv(y, n), b) is
// floordiv(n*p - y + n-1, n*b): one floor where `a` has just one term that is a floor. Null where it hasn't,
// or where the numbers grow large.
std::optional<Dim> floordiv_of_floor(const Dim& a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const Term* floor = nullptr;
  for (const auto& [key, t] : a.poly()->terms) {
    if (t.coefficient > kMost || t.coefficient < -kMost) return std::nullopt;
    const bool plain = t.monomial.atoms.size() == 1 && t.monomial.atoms[0]->kind == AtomKind::kFloorDiv;
    if (!plain || !t.monomial.atoms[0]->b.is_static()) continue;
    if (floor) return std::nullopt;
    floor = &t;
  }
  if (!floor || (floor->coefficient != 1 && floor->coefficient != -1)) return std::nullopt;
  const AtomPtr inner = floor->monomial.atoms[0];
  const int64_t n = inner->b.value();
  if (n < 1 || n > kMost || b > kMost) return std::nullopt;
  const Dim rest = (a - Dim(floor->coefficient) * from_atom(inner)) * Dim(n);
  const Dim y = floor->coefficient == 1 ? inner->a : Dim(n - 1) - inner->a;
  return floordiv(y + rest, Dim(n * b));
}

// floordiv(f*g + c, d*g) is floordiv(f + floordiv(c, g), d): the factor that all terms and the divisor share
// goes.
Dim floordiv_reduced(const Dim& a, int64_t b) {
  int64_t g = b;
  for (const auto& [key, t] : a.poly()->terms)
    if (!key.empty()) g = std::gcd(g, t.coefficient);
  if (g > 1) {
    Terms terms = a.poly()->terms;
    for (auto& [key, t] : terms) t.coefficient = floordiv_int(t.coefficient, g);
    return floordiv(make(std::move(terms)), Dim(b / g));
  }
  if (const auto one = floordiv_of_floor(a, b)) return *one;
  const Interval q = floordiv(a.bounds(), {b, b});
  return q.lo == q.hi ? Dim(q.lo) : atom(AtomKind::kFloorDiv, a, Dim(b), "floordiv", q);
}

}  // namespace

Dim floordiv(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(floordiv_int(a.constant_, b.constant_));
  if (b.is(1)) return a;
  if (b.is(0)) refuse("a dimension is divided by zero");
  if (a == b && b.lo() > 0) return Dim(1);
  if (b.is_static() && b.constant_ > 0) {  // whole multiples leave the floor; constants too
    Terms whole, rest;
    for (const auto& [key, t] : terms_of(a)) {
      const int64_t q = floordiv_int(t.coefficient, b.constant_), r = t.coefficient - q * b.constant_;
      if (q != 0 && (r == 0 || key.empty())) whole[key] = {q, t.monomial};
      if (r != 0) rest[key] = {r == 0 || key.empty() ? r : t.coefficient, t.monomial};
    }
    const Dim w = make(std::move(whole)), r = make(std::move(rest));
    if (r.is_static()) return w + Dim(floordiv_int(r.constant_, b.constant_));
    return w + floordiv_reduced(r, b.constant_);
  }
  const Interval q = floordiv(a.bounds(), b.bounds());
  return atom(AtomKind::kFloorDiv, a, b, "floordiv", q);
}
Dim ceildiv(const Dim& a, const Dim& b) {
  if (b.is_static()) return floordiv(a + b - Dim(1), b);
  return Dim(0) - floordiv(Dim(0) - a, b);
}
Dim mod(const Dim& a, const Dim& b) { return a - floordiv(a, b) * b; }

namespace {
bool le_by_bounds(const Dim& a, const Dim& b) { return (b - a).lo() >= 0; }
}  // namespace

Dim min(const Dim& a, const Dim& b) {
  if (a == b || le_by_bounds(a, b)) return a;
  if (le_by_bounds(b, a)) return b;
  const bool swap = b.text() < a.text();
  const Interval x = a.bounds(), y = b.bounds();
  return atom(AtomKind::kMin, swap ? b : a, swap ? a : b, "min",
              {std::min(x.lo, y.lo), std::min(x.hi, y.hi)});
}
Dim max(const Dim& a, const Dim& b) {
  if (a == b || le_by_bounds(a, b)) return b;
  if (le_by_bounds(b, a)) return a;
  const bool swap = b.text() < a.text();
  const Interval x = a.bounds(), y = b.bounds();
  return atom(AtomKind::kMax, swap ? b : a, swap ? a : b, "max",
              {std::max(x.lo, y.lo), std::max(x.hi, y.hi)});
}

Dim scaled_extent(const Dim& a, float scale) {
  SINTER_CHECK(scale > 0, "a dimension is scaled by what isn't positive");
  if (scale == 1) return a;
  const auto end = [scale](int64_t n) {
    if (n == kInf || n == -kInf) return n;
    return static_cast<float>(n) * scale >= 0x1p62f ? kInf : sinter::scaled_extent(n, scale);
  };
  const Interval x = a.bounds(), range{end(x.lo), end(x.hi)};
  if (range.lo == kInf) refuse("a dimension overflows 64 bits");
  if (range.lo == range.hi) return Dim(range.lo);
  auto n = std::make_shared<Dim::Atom>();
  n->kind = AtomKind::kScaled;
  n->a = a;
  n->scale = scale;
  n->key = fmt::format("scaled({},{})", a.text(), scale);
  n->range = range;
  return from_atom(std::move(n));
}

// ---- proofs of e >= 0 beyond intervals: by cases of min and max, and by bounds of floordiv

namespace {

using Replacements = std::map<std::string, Dim>;  // of atoms, by key

Dim replaced(const Dim& d, const Replacements& with) {
  if (d.is_static()) return d;
  Dim sum(0);
  for (const auto& [key, t] : d.poly()->terms) {
    Dim p(t.coefficient);
    for (const AtomPtr& a : t.monomial.atoms) {
      if (const auto it = with.find(a->key); it != with.end()) {
        p = p * it->second;
        continue;
      }
      const Dim x = replaced(a->a, with), y = replaced(a->b, with);
      switch (a->kind) {
        case AtomKind::kSymbol: p = p * from_atom(a); break;
        case AtomKind::kFloorDiv: p = p * floordiv(x, y); break;
        case AtomKind::kMin: p = p * min(x, y); break;
        case AtomKind::kMax: p = p * max(x, y); break;
        case AtomKind::kScaled: p = p * scaled_extent(x, a->scale); break;
      }
    }
    sum = sum + p;
  }
  return sum;
}

// Some min or max in `d`, innermost first; null where there is none.
AtomPtr choice_in(const Dim& d) {
  if (d.is_static()) return nullptr;
  for (const auto& [key, t] : d.poly()->terms)
    for (const AtomPtr& a : t.monomial.atoms) {
      if (a->kind == AtomKind::kSymbol) continue;
      for (const Dim* part : {&a->a, &a->b})
        if (AtomPtr inner = choice_in(*part)) return inner;
      if (a->kind == AtomKind::kMin || a->kind == AtomKind::kMax) return a;
    }
  return nullptr;
}

// Given d >= 0, where d is c * s + k: s with the range that this leaves it; nullopt where no s is left.
std::optional<Replacements> assume(const Dim& d) {
  if (d.is_static()) return d.value() >= 0 ? std::optional(Replacements{}) : std::nullopt;
  int64_t c = 0, k = 0;
  SymbolPtr symbol;
  for (const auto& [key, t] : d.poly()->terms) {
    if (key.empty()) {
      k = t.coefficient;
    } else if (symbol || t.monomial.atoms.size() != 1 || !t.monomial.atoms[0]->symbol) {
      return Replacements{};  // says nothing of one symbol alone
    } else {
      symbol = t.monomial.atoms[0]->symbol;
      c = t.coefficient;
    }
  }
  auto narrowed = std::make_shared<Symbol>(*symbol);
  Interval& r = narrowed->range;
  if (c > 0)
    r.lo = std::max(r.lo, -floordiv_int(k, c));
  else
    r.hi = std::min(r.hi, floordiv_int(k, -c));
  if (r.lo > r.hi) return std::nullopt;
  return Replacements{{symbol->id, Dim(SymbolPtr(narrowed))}};
}

// e > -slack / scale for the integer e, its floors replaced by what they are at least or at most.
bool at_least_zero_relaxed(Dim e) {
  int64_t scale = 1;
  for (int step = 0; step < 4; ++step) {
    if (e.lo() >= 1 - scale) return true;
    if (e.is_static()) return false;
    std::optional<Term> floor;
    for (const auto& [key, t] : e.poly()->terms)
      if (t.monomial.atoms.size() == 1 && t.monomial.atoms[0]->kind == AtomKind::kFloorDiv &&
          t.monomial.atoms[0]->b.is_static() && t.monomial.atoms[0]->b.value() > 0)
        floor = t;
    if (!floor) return false;
    const AtomPtr a = floor->monomial.atoms[0];
    const Dim c(floor->coefficient);
    const Dim least = floor->coefficient > 0 ? a->a - a->b + 1 : a->a;
    e = (e - c * from_atom(a)) * a->b + c * least;
    scale = mul(scale, a->b.value());
  }
  return false;
}

bool at_least_zero(const Dim& e, int cases) {
  if (e.lo() >= 0) return true;
  const AtomPtr choice = choice_in(e);
  if (!choice) return at_least_zero_relaxed(e);
  if (cases == 0) return false;
  for (const bool first : {true, false}) {
    const Dim &taken = first ? choice->a : choice->b, &other = first ? choice->b : choice->a;
    auto with = assume(choice->kind == AtomKind::kMax ? taken - other : other - taken);
    if (!with) continue;
    const Dim value = replaced(taken, *with);
    (*with)[choice->key] = value;
    if (!at_least_zero(replaced(e, *with), cases - 1)) return false;
  }
  return true;
}

}  // namespace

bool provably_le(const Dim& a, const Dim& b) {
  if (le_by_bounds(a, b)) return true;
  try {
    return at_least_zero(b - a, 4);
  } catch (const Refusal&) {  // beyond 64 bits: not proved
    return false;
  }
}

Dim exact_div(const Dim& a, const Dim& b) {
  if (b.is_static() || a == b) return a == b && !b.is(0) ? Dim(1) : floordiv(a, b);
  if (a.is(0)) return Dim(0);
  const Terms tb = terms_of(b);
  if (tb.size() == 1) {  // a single product: cancel it in every term
    const Term& d = tb.begin()->second;
    Terms out;
    for (const auto& [key, t] : terms_of(a)) {
      Term q = t;
      if (q.coefficient % d.coefficient != 0) return floordiv(a, b);
      q.coefficient /= d.coefficient;
      for (const AtomPtr& f : d.monomial.atoms) {
        auto it = std::find_if(q.monomial.atoms.begin(), q.monomial.atoms.end(),
                               [&](const AtomPtr& x) { return x->key == f->key; });
        if (it == q.monomial.atoms.end()) return floordiv(a, b);
        q.monomial.atoms.erase(it);
      }
      out[q.monomial.key()] = q;
    }
    return make(std::move(out));
  }
  // Polynomial long division by the leading (last) term; exact or not at all.
  Dim rest = a, quotient(0);
  const Term lead_b = tb.rbegin()->second;
  for (int step = 0; step < 64 && !rest.is(0); ++step) {
    const Terms tr = terms_of(rest);
    std::optional<Term> q;
    for (auto it = tr.rbegin(); it != tr.rend() && !q; ++it) {
      Term t = it->second;
      bool divides = t.coefficient % lead_b.coefficient == 0;
      for (const AtomPtr& f : lead_b.monomial.atoms) {
        auto x = std::find_if(t.monomial.atoms.begin(), t.monomial.atoms.end(),
                              [&](const AtomPtr& y) { return y->key == f->key; });
        if (x == t.monomial.atoms.end()) {
          divides = false;
          break;
        }
        t.monomial.atoms.erase(x);
      }
      if (!divides) continue;
      t.coefficient /= lead_b.coefficient;
      q = t;
    }
    if (!q) break;
    Terms one;
    one[q->monomial.key()] = *q;
    const Dim term = make(std::move(one));
    quotient = quotient + term;
    rest = rest - term * b;
  }
  return rest.is(0) ? quotient : floordiv(a, b);
}

std::string Dim::cpp(const std::function<std::string(const Symbol&)>& name) const {
  if (is_static()) return std::to_string(constant_);
  auto atom_text = [&](const Atom& a) -> std::string {
    switch (a.kind) {
      case AtomKind::kSymbol: return name(*a.symbol);
      case AtomKind::kFloorDiv: return fmt::format("sinter::floor_div({}, {})", a.a.cpp(name), a.b.cpp(name));
      case AtomKind::kMin: return fmt::format("sinter::min_of({}, {})", a.a.cpp(name), a.b.cpp(name));
      case AtomKind::kMax: return fmt::format("sinter::max_of({}, {})", a.a.cpp(name), a.b.cpp(name));
      case AtomKind::kScaled: {
        const std::string scale = fmt::format("{}", a.scale);
        const bool whole = scale.find_first_of(".e") == std::string::npos;
        return fmt::format("sinter::scaled_extent({}, {}{})", a.a.cpp(name), scale, whole ? ".0f" : "f");
      }
    }
    return "";
  };
  std::string out, constant;
  for (const auto& [key, t] : poly_->terms) {
    const int64_t c = t.coefficient;
    if (key.empty()) {
      constant = fmt::format(" {} {}", c < 0 ? "-" : "+", c < 0 ? -c : c);
      continue;
    }
    std::string factor = c == 1 || c == -1 ? "" : std::to_string(c < 0 ? -c : c);
    for (const AtomPtr& a : t.monomial.atoms) factor += (factor.empty() ? "" : " * ") + atom_text(*a);
    if (out.empty())
      out = (c < 0 ? "-" : "") + factor;
    else
      out += (c < 0 ? " - " : " + ") + factor;
  }
  const bool one = poly_->terms.size() == 1 && poly_->terms.begin()->second.coefficient == 1 &&
                   poly_->terms.begin()->second.monomial.atoms.size() == 1;
  return one ? out : "(" + out + constant + ")";
}

int64_t Dim::evaluate(const std::function<int64_t(const Symbol&)>& value) const {
  if (is_static()) return constant_;
  int64_t sum = 0;
  for (const auto& [key, t] : poly_->terms) {
    int64_t p = t.coefficient;
    for (const AtomPtr& a : t.monomial.atoms) {
      int64_t v = 0;
      switch (a->kind) {
        case AtomKind::kSymbol: v = value(*a->symbol); break;
        case AtomKind::kFloorDiv: v = floordiv_int(a->a.evaluate(value), a->b.evaluate(value)); break;
        case AtomKind::kMin: v = std::min(a->a.evaluate(value), a->b.evaluate(value)); break;
        case AtomKind::kMax: v = std::max(a->a.evaluate(value), a->b.evaluate(value)); break;
        case AtomKind::kScaled: v = sinter::scaled_extent(a->a.evaluate(value), a->scale); break;
      }
      p = mul(p, v);
    }
    sum = add(sum, p);
  }
  return sum;
}

Dim Dim::substitute(const std::function<Dim(const SymbolPtr&)>& f) const {
  if (is_static()) return *this;
  Dim sum(0);
  for (const auto& [key, t] : poly_->terms) {
    Dim p(t.coefficient);
    for (const AtomPtr& a : t.monomial.atoms) {
      switch (a->kind) {
        case AtomKind::kSymbol: p = p * f(a->symbol); break;
        case AtomKind::kFloorDiv: p = p * floordiv(a->a.substitute(f), a->b.substitute(f)); break;
        case AtomKind::kMin: p = p * min(a->a.substitute(f), a->b.substitute(f)); break;
        case AtomKind::kMax: p = p * max(a->a.substitute(f), a->b.substitute(f)); break;
        case AtomKind::kScaled: p = p * scaled_extent(a->a.substitute(f), a->scale); break;
      }
    }
    sum = sum + p;
  }
  return sum;
}

void Dim::collect_symbols(std::vector<SymbolPtr>& out) const {
  if (is_static()) return;
  for (const auto& [key, t] : poly_->terms)
    for (const AtomPtr& a : t.monomial.atoms) {
      if (a->kind != AtomKind::kSymbol) {
        a->a.collect_symbols(out);
        a->b.collect_symbols(out);
      } else if (std::find(out.begin(), out.end(), a->symbol) == out.end()) {
        out.push_back(a->symbol);
      }
    }
  std::sort(out.begin(), out.end(),
            [](const SymbolPtr& x, const SymbolPtr& y) { return x->index < y->index; });
}

}  // namespace sinter
