#include "ir/dim.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/error.h"

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

enum class AtomKind { kSymbol, kFloorDiv, kMin, kMax };

struct Dim::Atom {
  AtomKind kind;
  SymbolPtr symbol;
  Dim a, b;
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
  for (const auto& [ka, ta] : terms_of(a))
    for (const auto& [kb, tb] : terms_of(b)) {
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
    const Interval q = floordiv(r.bounds(), b.bounds());
    if (q.lo == q.hi) return w + Dim(q.lo);
    return w + atom(AtomKind::kFloorDiv, r, b, "floordiv", q);
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
      if (a->kind != AtomKind::kFloorDiv) return a;
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

Dim product(const Shape& shape, size_t first, size_t last) {
  Dim p(1);
  for (size_t i = first; i < std::min(last, shape.size()); ++i) p = p * shape[i];
  return p;
}
bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static(); });
}
std::vector<int64_t> static_dims(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Dim& d : shape) out.push_back(d.value());
  return out;
}
std::string text(const Shape& shape) {
  std::string s = "[";
  for (const Dim& d : shape) s += (s.size() == 1 ? "" : ",") + d.text();
  return s + "]";
}

SymbolPtr Symbols::fresh(std::string name, Interval range, std::string origin, bool from_data, int64_t step,
                         bool learnable) {
  std::string clean;
  for (char c : name.substr(0, 40))
    clean += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  if (clean.empty() || (clean[0] >= '0' && clean[0] <= '9') || clean[0] == '_') clean = "d" + clean;
  auto taken = [&](const std::string& id) {
    return std::any_of(all_.begin(), all_.end(), [&](const SymbolPtr& s) { return s->id == id; });
  };
  std::string id = clean;
  for (int k = 1; taken(id); ++k) id = fmt::format("{}_{}", clean, k);
  auto s = std::make_shared<Symbol>();
  s->name = std::move(name);
  s->id = id;
  s->range = range;
  s->step = step;
  s->origin = std::move(origin);
  s->index = static_cast<int>(all_.size());
  s->from_data = from_data;
  s->learnable = learnable;
  s->boundable = was_asked(s->name);
  all_.push_back(s);
  return s;
}
SymbolPtr Symbols::find(const std::string& name) const {
  for (const SymbolPtr& s : all_)
    if (s->name == name) return s;
  return nullptr;
}

}  // namespace sinter
