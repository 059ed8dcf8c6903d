// Dim: one extent of a shape, an integer or an expression over named unknowns, in a canonical form.
//
// A Dim is a polynomial with int64 coefficients over atoms; an atom is a Symbol, a floordiv, min or max of
// two Dims (ceildiv and mod are made of floordiv), or a Dim scaled by a float. Terms and atoms are kept
// sorted and nested floordivs become one, so that Dims which are built differently but mean the same
// polynomial are equal:
// `==` is "proved equal", `!=` is only "not proved". Every Dim knows the
// interval in which its value must lie; min and max simplify by it when they are built. Arithmetic that
// leaves 64 bits is a Refusal ("dimension overflows"), never a wrapped number. The static case is a plain
// integer and costs no allocation.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sinter {

struct Interval {
  static constexpr int64_t kUnbounded = INT64_MAX;  // as hi: no bound known; as lo, -kUnbounded
  int64_t lo = 0, hi = kUnbounded;
  bool bounded() const { return hi != kUnbounded && lo != -kUnbounded; }
  bool operator==(const Interval&) const = default;
};

// An unknown: a dynamic extent of an input, or a count that is known once a layer has run.
struct Symbol {
  std::string name;        // "batch_size", as the model or the user spells it
  std::string id;          // the name made a C++ identifier, unique within a model; what Dim's text shows
  Interval range;          // inclusive
  int64_t step = 1;        // the value is a multiple of this (--dim "H=64..640:32")
  std::string origin;      // for messages: `input "x" axis 0`
  int index = 0;           // order of creation; a valid order of evaluation
  bool from_data = false;  // set by a layer at run time, not by the caller's dims
  // An operand's contents decide it (the shape of an Expand, the axes of a Squeeze): what the model declares
  // of its outputs may tell the value before the run does.
  bool learnable = false;
  bool boundable = false;  // --dim "name<=MAX" lowers the range's upper end
};
using SymbolPtr = std::shared_ptr<const Symbol>;

class Dim {
 public:
  Dim(int64_t value = 0) : constant_(value) {}  // NOLINT: implicit on purpose
  explicit Dim(SymbolPtr symbol);

  bool is_static() const { return !poly_; }
  int64_t value() const;  // static only
  Interval bounds() const;
  int64_t lo() const { return bounds().lo; }
  int64_t hi() const { return bounds().hi; }
  bool is(int64_t v) const { return is_static() && constant_ == v; }

  std::string text() const;  // "2*N+1", "min(N,1000)"; for people and as key
  // As a C++ expression of type std::int64_t; `name` gives the variable of a symbol. Calls sinter::floor_div,
  // min_of, max_of and scaled_extent of runtime/sinter/dims.h.
  std::string cpp(const std::function<std::string(const Symbol&)>& name) const;
  // With every symbol given a value. Division by zero refuses.
  int64_t evaluate(const std::function<int64_t(const Symbol&)>& value) const;
  // With symbols replaced by Dims (identity where `f` returns a Dim of the same symbol).
  Dim substitute(const std::function<Dim(const SymbolPtr&)>& f) const;
  void collect_symbols(std::vector<SymbolPtr>& out) const;  // each once, by index

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floordiv(const Dim& a,
                      const Dim& b);  // rounds to minus infinity; terms divisible by b leave the floor
  friend Dim ceildiv(const Dim& a, const Dim& b);  // = -floordiv(-a, b)
  friend Dim mod(const Dim& a, const Dim& b);      // a - floordiv(a,b)*b
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  // The product of a >= 0 and a positive scale, rounded to float and then down: what Resize makes of an
  // extent.
  friend Dim scaled_extent(const Dim& a, float scale);
  // a / b where the division is known to be exact: cancels equal factors; floordiv where it can't.
  friend Dim exact_div(const Dim& a, const Dim& b);

  // Internals, for dim.cpp.
  struct Atom;
  struct Poly;
  explicit Dim(std::shared_ptr<const Poly> poly);
  const Poly* poly() const { return poly_.get(); }

 private:
  int64_t constant_ = 0;              // where poly_ is null
  std::shared_ptr<const Poly> poly_;  // never constant
};

using Shape = std::vector<Dim>;

bool provably_le(const Dim& a, const Dim& b);  // a <= b for all values of the symbols (by intervals of b - a)
Dim product(const Shape& shape, size_t first = 0, size_t last = SIZE_MAX);
bool is_static(const Shape& shape);
std::vector<int64_t> static_dims(const Shape& shape);  // all static, else a bug
std::string text(const Shape& shape);                  // "[N,3,224,224]"

// The symbols of one model, in order of creation; shared by a graph and its bodies.
class Symbols {
 public:
  // A new symbol; an id that is taken gets a number behind it.
  SymbolPtr fresh(std::string name, Interval range, std::string origin, bool from_data = false,
                  int64_t step = 1, bool learnable = false);
  SymbolPtr find(const std::string& name) const;  // the first of that name; null where there is none
  const std::vector<SymbolPtr>& all() const { return all_; }
  // Forgets all symbols but the first `count`: whoever uses the others must be inferred again.
  void truncate(size_t count) { all_.resize(std::min(count, all_.size())); }
  // Bounds that the user gives for what only the run decides, extents VALUE@AXIS or VALUE itself; asking
  // marks them as used, and the symbol that is made of that name as one that can be bounded.
  void set_limit(const std::string& name, int64_t most) { limits_[name] = most; }
  int64_t limit(const std::string& name) {
    asked_.insert(name);
    const auto it = limits_.find(name);
    return it == limits_.end() ? Interval::kUnbounded : it->second;
  }
  bool was_asked(const std::string& name) const { return asked_.count(name) != 0; }
  // --max-trips: the most iterations of a Loop that only the run ends.
  int64_t max_trips = Interval::kUnbounded;

 private:
  std::vector<SymbolPtr> all_;
  std::map<std::string, int64_t> limits_;
  std::set<std::string> asked_;
};

}  // namespace sinter
