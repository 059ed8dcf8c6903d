// Copies: the text of data movement, what all kernels that only move elements are written with.
//
// A copy runs over an iteration space that both tensors walk by strides. It is written as the shortest nest
// that means the same: contiguous runs as sinter::copy, repeated elements as sinter::fill, a pair of axes
// that trade places as sinter::transpose, the rest as plain loops.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "emit/loops.h"

namespace sinter {

// Whether elements of the type can be moved by generated code (not strings, not complex numbers).
bool is_movable(DType);
bool is_word(DType);           // moved as vectors of floats are, by the shuffles of sinter/copy.h
bool is_movable(const Node&);  // all its tensors

// The symbol, where `d` is nothing but a count that this node itself finds in its data; else null.
const Symbol* own_count(const Node&, const Dim& d);
// Writes that extent d of the output is `found`: reported where it is a count of this node's own, else
// compared (kDimError). The layer can fail then.
void settle_extent(LayerWriter&, const Dim& d, const std::string& found);

// Extents as text inside one function body. Symbols that the body defines itself (counts it has just found)
// are named by their id and are not parameters.
class Extents {
 public:
  explicit Extents(LayerWriter& w) : w_(w) {}
  void define(const Dim& symbol);  // the body has declared a variable of that id
  std::string text(const Dim&) const;
  // "i0 * 12 + i1", "0" where nothing is left.
  std::string address(const Dim& offset, const std::vector<std::string>& index,
                      const std::vector<Dim>& strides) const;
  LayerWriter& writer() const { return w_; }

 private:
  LayerWriter& w_;
  std::set<const Symbol*> local_;
};

// "x + 12 * i", "x".
std::string behind(const std::string& pointer, const std::string& address);

// for every index of `space`: to[..] = from[..]. `in_parts`: a large one is cut into parts (open_parts).
void emit_copy(const Extents& e, const Shape& space, const Strided& to, const Strided& from,
               bool in_parts = false);
// The first `count` elements of `to` become `element`; many are cut into parts.
void emit_fill(const Extents& e, const std::string& to, const Dim& count, const std::string& element);
// A dense tensor's Strided.
Strided dense(const std::string& pointer, const TensorType& type);
// A Value's, whose pixels may have gaps between them.
Strided pitched(const LayerWriter&, const std::string& pointer, const Value& v);

// `count` runs of `length` elements, the first from from[from] to to[to], each a step behind the one before.
struct Runs {
  int64_t to, from, length, count, to_step, from_step;
};
// Finds the rules that copies with constant places follow.
class RunFinder {
 public:
  // The next copy, in their order.
  void add(int64_t to, int64_t from, int64_t length);
  // Nothing where there are more than are worth a line of code each.
  std::vector<Runs> rules() const;

 private:
  static constexpr size_t kMost = 8;
  std::vector<Runs> runs_;  // the last one still grows: it is a single run
};
// `to` and `from` are pointers' text.
void emit_runs(LayerWriter&, const std::vector<Runs>&, const std::string& to, const std::string& from);

// Element i as C++ text of its type, exact but for NaN: "1.5f", "sinter::half{15360}".
std::string element_literal(const Tensor&, int64_t i);
std::string zero_literal(DType);  // "float{}"

}  // namespace sinter
