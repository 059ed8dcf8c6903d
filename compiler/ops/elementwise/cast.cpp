// Cast, CastLike: conversion element by element. BitCast: the same bytes read as another type.
//
// Floats to integers truncate and saturate, NaN becomes 0 (ONNX leaves it open); integers wrap; anything to
// bool is `!= 0`; integers of 4 and 2 bits keep the low bits of what an int32 holds; float8 saturates unless
// `saturate` is 0. Strings are refused, and so is float8e8m0 by another rounding than up.
#include <cstring>

#include "ops/elementwise/elementwise.h"

namespace sinter {
namespace {

ExprPtr convert(const Node& n, const ExprPtr& x, DType to) {
  const DType from = x->dtype;
  if (from == to) return x;
  if (!is_number(from)) refuse_node(n, fmt::format("from {} is not supported", name_of(from)));
  if (!is_number(to)) refuse_node(n, fmt::format("to {} is not supported", name_of(to)));
  const bool saturate = n.attributes.integer("saturate", 1) != 0;
  if (to == DType::kF8E8M0 && (!saturate || n.attributes.text("round_mode", "up") != "up"))
    refuse_node(n, "to float8e8m0 only rounding up and saturating");
  return saturate ? saturating_cast(x, to) : Expr::cast(x, to);
}

DType target(const Node& n) {
  const int64_t to = n.attributes.integer("to", 0);
  const DType t = to < 0 || to > 1000 ? DType::kUndefined : dtype_of_onnx(static_cast<int>(to));
  if (t == DType::kUndefined) refuse_node(n, fmt::format("there is no element type {}", to));
  return t;
}
ExprPtr cast(const Node& n, const Args& a) { return convert(n, a[0], target(n)); }

// Of the second input only the type counts, not its shape.
ExprPtr cast_like(const Node& n, const Args& a) { return convert(n, a[0], a[1]->dtype); }
void infer_cast_like(Inference& x) {
  const ExprPtr e = convert(x.node, Expr::input(0, x.dtype(0)), x.dtype(1));
  x.set(0, e->dtype, Shape(x.shape(0)));
}

void infer_bit_cast(Inference& x) {
  const DType from = x.dtype(0), to = target(x.node);
  const unsigned known = kNumbers | kBool;
  x.require(belongs(from, known) && belongs(to, known),
            fmt::format("from {} to {} is not supported", name_of(from), name_of(to)));
  x.require(size_of(from) == size_of(to),
            fmt::format("from {} to {} changes the width", name_of(from), name_of(to)));
  x.require(to != DType::kBool || from == DType::kBool, "to bool is not supported");
  x.set(0, to, Shape(x.shape(0)));
}
void eval_bit_cast(Evaluation& e) {
  std::memcpy(e.out[0].mutable_data(), e.in[0].data(), static_cast<size_t>(e.in[0].bytes()));
}

}  // namespace

ExprPtr saturating_cast(const ExprPtr& x, DType to) {
  if (!is_small_float(to) || x->dtype == to) return Expr::cast(x, to);
  const double largest = to == DType::kF8E4M3FN                             ? 448
                         : to == DType::kF8E4M3FNUZ                         ? 240
                         : to == DType::kF8E5M2 || to == DType::kF8E5M2FNUZ ? 57344
                                                                            : 0;
  if (largest == 0) return Expr::cast(x, to);  // saturates by itself
  const ExprPtr wide = Expr::cast(x, DType::kF32);
  return Expr::cast(Expr::call("clamp", {wide, Expr::constant(-largest, DType::kF32),
                                         Expr::constant(largest, DType::kF32)}),
                    to);
}

const std::vector<Op>& ops_cast() {
  static const std::vector<Op> table = {
      {.name = "Cast", .expr = cast, .note = "not from or to string; to float8e8m0 only rounding up"},
      {.name = "CastLike",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_cast_like,
       .expr = cast_like,
       .note = "not from or to string; to float8e8m0 only rounding up"},
      {.name = "BitCast",
       .infer = infer_bit_cast,
       .eval = eval_bit_cast,
       .is_view = true,
       .note = "between types of 8 to 64 bits"},
  };
  return table;
}

}  // namespace sinter
