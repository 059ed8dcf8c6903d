// Comparisons, logic, bits and Where: one row {name, expression} each.
#include "ops/elementwise/elementwise.h"

namespace sinter {
namespace {

ExprPtr bit_shift(const Node& n, const Args& a) {
  allow_one_type(n, a, kIntegers);
  const std::string to = n.attributes.text("direction", "");
  if (to != "LEFT" && to != "RIGHT")
    refuse_node(n, fmt::format("direction is {}, not LEFT or RIGHT", sinter::quoted(to)));
  return Expr::call(to == "LEFT" ? "shift_left" : "shift_right", a);
}
ExprPtr where(const Node& n, const Args& a) {
  allow(n, a[0], kBool);
  allow_one_type(n, {a[1], a[2]}, kNumbers | kBool);
  return Expr::call("select", a);
}

}  // namespace

const std::vector<Op>& ops_elementwise_logic() {
  static const std::vector<Op> table = {
      SINTER_SAME("And", "logical_and", 2, kBool),
      SINTER_SAME("Or", "logical_or", 2, kBool),
      SINTER_SAME("Xor", "logical_xor", 2, kBool),
      SINTER_SAME("Equal", "eq", 2, kNumbers | kBool),
      SINTER_SAME("Less", "lt", 2, kNumbers),
      SINTER_SAME("LessOrEqual", "le", 2, kNumbers),
      SINTER_SAME("Greater", "gt", 2, kNumbers),
      SINTER_SAME("GreaterOrEqual", "ge", 2, kNumbers),
      SINTER_SAME("BitwiseAnd", "bit_and", 2, kIntegers),
      SINTER_SAME("BitwiseOr", "bit_or", 2, kIntegers),
      SINTER_SAME("BitwiseXor", "bit_xor", 2, kIntegers),
      {.name = "BitShift", .min_inputs = 2, .max_inputs = 2, .expr = bit_shift},
      {.name = "Where", .min_inputs = 3, .max_inputs = 3, .expr = where},
  };
  return table;
}

}  // namespace sinter
