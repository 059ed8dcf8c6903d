// Expr as C++: of whole vectors of floats, or of one element of any type.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "emit/printer.h"
#include "ir/expr.h"

namespace sinter {

enum class TextMode {
  kVector,  // f32v words of simd_*.h and math.h
  kLane,    // the same words on a single float: the tail of a vector loop
  kScalar,  // sinter::add(…) of scalar.h, any element type
};

// Whether kVector text exists for the tree: all of it of the type `element`, all functions with lanes.
bool has_vector_text(const Expr&, DType element = DType::kF32);

// The same, or an integer type of 8 or 16 bits computed in lanes of floats, which hold such values exactly
// (runtime/sinter/lanes.h): kVector text is an f32v all the same, kLane text a float.
bool has_lane_text(const Expr&);
// Whether integers are added to a product's or a reduction's sums of 32 bits: kVector text takes such
// operands and the sums as an i32v.
bool adds_to_sums(const Expr&);
// Whether the text needs runtime/sinter/lanes.h: integers other than sums take part.
bool has_integer_lanes(const Expr&);

// Integers of a small type within two of its values: cast(clamp(float32(integers), low, high)) to their own
// type, which no cast changes. No value for any other expression.
struct BoundedInteger {
  ExprPtr integers;
  int low, high;
};
std::optional<BoundedInteger> bounded_integer(const Expr&);

// The C++ expression for `e`. Leaves come from `operand(k)` (an element or vector of node input k, already of
// compute type) and `accumulator`. Subtrees that occur more than once are put into constants first, by lines
// of `out`, with names that begin with `prefix`. 16-bit floats are computed in float: the result of such a
// tree is a float that the caller rounds when it stores. kVector and kLane: `operand(k)` of an integer type
// is an f32v of its values in vectors (an i32v where it is added to sums), the element itself else.
std::string expr_text(const ExprPtr& e, TextMode mode, const std::function<std::string(int)>& operand,
                      const std::string& accumulator, Printer& out, const std::string& prefix = "t");

// The C++ type in which elements of dtype are computed ("float" for half and bfloat16), how one is read from
// `lvalue` and what is stored there for `value`.
std::string compute_type(DType);
std::string load_text(DType, const std::string& lvalue);
std::string store_text(DType, const std::string& value);

std::string float_literal(double v);        // "1.5f", "-INFINITY" spelled portably
std::string literal(const Expr& constant);  // of its dtype's compute type

}  // namespace sinter
