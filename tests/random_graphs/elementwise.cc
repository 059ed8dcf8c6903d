// Elementwise operators: one, chains of them, with broadcasting, and activations written out as exporters do.
#include <array>

#include "random_graphs/productions.h"

namespace sinter::random_graphs {
namespace {

struct Unary {
  const char* op;
  AttributeList (*attributes)(Builder&);
};

AttributeList none(Builder&) { return {}; }
AttributeList alpha(Builder& b) { return {{"alpha", static_cast<float>(b.uniform(0.05, 1.5))}}; }
AttributeList approximate(Builder& b) {
  return {{"approximate", std::string(b.chance(50) ? "none" : "tanh")}};
}

constexpr Unary kUnary[] = {{"Relu", none},
                            {"Sigmoid", none},
                            {"Tanh", none},
                            {"Exp", none},
                            {"Neg", none},
                            {"Abs", none},
                            {"Erf", none},
                            {"Softplus", none},
                            {"Softsign", none},
                            {"HardSwish", none},
                            {"HardSigmoid", none},
                            {"Mish", none},
                            {"Gelu", approximate},
                            {"LeakyRelu", alpha},
                            {"Elu", alpha},
                            {"Celu", alpha},
                            {"ThresholdedRelu", alpha},
                            {"Selu", none},
                            {"Sin", none},
                            {"Cos", none},
                            {"Atan", none},
                            {"Floor", none},
                            {"Ceil", none},
                            {"Round", none},
                            {"Sign", none},
                            {"Reciprocal", none},
                            {"Sqrt", none},
                            {"Log", none},
                            {"Identity", none}};

std::string unary_of(Builder& b, const std::string& x) {
  const Unary& u = kUnary[b.below(std::size(kUnary))];
  return b.node(u.op, {x}, u.attributes(b));
}

bool add_unary(Builder& b) {
  const Item* x = b.any_float();
  if (!x) return false;
  unary_of(b, x->name);
  return true;
}

// A constant that broadcasts against `x` without making it larger: scalar, vector, some extents 1.
std::string operand_for(Builder& b, const Item& x) {
  std::vector<int64_t> shape = x.shape;
  if (b.chance(30)) return b.scalar(x.dtype, b.uniform(-1.5, 1.5));
  for (int64_t& d : shape)
    if (d < 0 || b.chance(40)) d = 1;
  while (!shape.empty() && shape[0] == 1 && b.chance(60)) shape.erase(shape.begin());
  return b.weight(x.dtype, shape, -1.5, 1.5);
}

bool broadcasts(const Item& a, const Item& b) {
  for (size_t k = 1; k <= std::min(a.rank(), b.rank()); ++k) {
    const std::string &x = a.dims[a.rank() - k], &y = b.dims[b.rank() - k];
    if (x != y && x != "1" && y != "1") return false;
  }
  return true;
}

const Item* partner_of(Builder& b, const Item& x) {
  return b.any([&](const Item& i) { return i.dtype == x.dtype && broadcasts(i, x); });
}

bool add_binary(Builder& b) {
  const Item* x = b.any(
      [](const Item& i) { return is_float(i.dtype) || i.dtype == DType::kI32 || i.dtype == DType::kI64; });
  if (!x) return false;
  std::string a = x->name;
  const Item* y = b.chance(60) ? partner_of(b, *x) : nullptr;
  std::string other = y ? y->name : operand_for(b, *x);
  if (b.chance(50)) std::swap(a, other);
  const std::string op = b.one_of<std::string>({"Add", "Add", "Sub", "Mul", "Mul", "Max", "Min", "Div"});
  const std::string out = b.node(op, {a, other});
  if (is_float(x->dtype) && b.chance(50)) unary_of(b, out);
  return true;
}

bool add_variadic(Builder& b) {
  const Item* x = b.any_float();
  const Item* y = x ? partner_of(b, *x) : nullptr;
  if (!y) return false;
  b.node(b.one_of<std::string>({"Sum", "Mean", "Max", "Min"}), {x->name, y->name, operand_for(b, *x)});
  return true;
}

bool add_clip(Builder& b) {
  const Item* x = b.any([](const Item& i) { return is_float(i.dtype) || i.dtype == DType::kI32; });
  if (!x) return false;
  const std::string lo = b.chance(80) ? b.scalar(x->dtype, -1) : "",
                    hi = b.chance(70) ? b.scalar(x->dtype, 2) : "";
  b.node("Clip", {x->name, lo, hi});
  return true;
}

bool add_power(Builder& b) {
  const Item* x = b.any_float();
  if (!x) return false;
  if (b.chance(60))
    b.node("Pow", {x->name, b.scalar(x->dtype, b.one_of({2.0, 3.0, 1.0}))});
  else
    b.node("Pow", {b.node("Abs", {x->name}), b.scalar(x->dtype, b.one_of({0.5, 1.5, 2.0}))});
  return true;
}

bool add_prelu(Builder& b) {
  const Item* x = b.any_float();
  if (!x) return false;
  std::vector<int64_t> slope(x->rank() > 1 ? x->rank() - 1 : x->rank(), 1);
  if (x->rank() > 1 && x->shape[1] > 0 && b.chance(70)) slope[0] = x->shape[1];
  b.node("PRelu", {x->name, b.weight(x->dtype, slope, 0, 0.5)});
  return true;
}

// Activations as exporters write them out: SiLU, GELU (both forms), hard swish, Mish, softplus.
bool add_written_out(Builder& b) {
  const Item* item = b.any_float();
  if (!item) return false;
  const std::string x = item->name;
  const auto c = [&](double v) { return b.scalar(item->dtype, v); };
  switch (b.below(6)) {
    case 0: b.node("Mul", {x, b.node("Sigmoid", {x})}); break;
    case 1: {
      const std::string erf = b.node("Erf", {b.node("Div", {x, c(1.4142135623730951)})});
      const std::string sum = b.node("Add", {erf, c(1)});
      b.node("Mul", {b.node("Mul", {x, sum}), c(0.5)});
      break;
    }
    case 2: {
      const std::string cube = b.node("Mul", {b.node("Pow", {x, c(3)}), c(0.044715)});
      const std::string inner = b.node("Mul", {b.node("Add", {x, cube}), c(0.7978845608028654)});
      b.node("Mul", {b.node("Mul", {c(0.5), x}), b.node("Add", {b.node("Tanh", {inner}), c(1)})});
      break;
    }
    case 3: {
      const std::string gate = b.node("Clip", {b.node("Add", {x, c(3)}), c(0), c(6)});
      b.node("Mul", {x, b.node("Div", {gate, c(6)})});
      break;
    }
    case 4: b.node("Mul", {x, b.node("Tanh", {b.node("Softplus", {x})})}); break;
    default: b.node("Mul", {x, b.node("HardSigmoid", {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}})});
  }
  return true;
}

bool add_comparison(Builder& b) {
  const Item* x = b.any([](const Item& i) { return is_float(i.dtype) || is_integer(i.dtype); });
  if (!x) return false;
  const Item* y = b.chance(50) ? partner_of(b, *x) : nullptr;
  const std::string other = y ? y->name : operand_for(b, *x);
  const std::string mask = b.node(
      b.one_of<std::string>({"Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"}), {x->name, other});
  if (b.chance(60)) b.node("Where", {mask, x->name, other});
  return true;
}

bool add_logic(Builder& b) {
  const Item* x = b.any([](const Item& i) { return i.dtype == DType::kBool; });
  if (!x) return false;
  const Item* y = partner_of(b, *x);
  if (y && b.chance(60))
    b.node(b.one_of<std::string>({"And", "Or", "Xor", "Equal"}), {x->name, y->name});
  else
    b.node("Not", {x->name});
  return true;
}

bool add_cast(Builder& b) {
  const Item* x = b.any([](const Item& i) { return is_number(i.dtype); });
  if (!x) return false;
  const DType to =
      b.one_of({DType::kF32, DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kI64, DType::kBool});
  b.node("Cast", {x->name}, {{"to", int64_t{onnx_of(to)}}});
  return true;
}

bool add_integer_arithmetic(Builder& b) {
  const Item* x = b.any([](const Item& i) { return i.dtype == DType::kI32 || i.dtype == DType::kI64; });
  if (!x) return false;
  switch (b.below(4)) {
    case 0: b.node("Mod", {x->name, b.scalar(x->dtype, b.one_of({3.0, 5.0, -4.0}))}); break;
    case 1: b.node("Div", {x->name, b.scalar(x->dtype, b.one_of({2.0, 3.0, -2.0}))}); break;
    case 2: b.node("BitwiseXor", {x->name, b.scalar(x->dtype, 5)}); break;
    default: b.node("Mul", {x->name, x->name});
  }
  return true;
}

}  // namespace

const std::vector<Production>& elementwise_productions() {
  static const std::vector<Production> table = {{"unary", 10, add_unary},
                                                {"binary", 12, add_binary},
                                                {"variadic", 2, add_variadic},
                                                {"clip", 3, add_clip},
                                                {"power", 2, add_power},
                                                {"prelu", 2, add_prelu},
                                                {"written_out", 5, add_written_out},
                                                {"comparison", 3, add_comparison},
                                                {"logic", 3, add_logic},
                                                {"cast", 3, add_cast},
                                                {"integers", 4, add_integer_arithmetic}};
  return table;
}

}  // namespace sinter::random_graphs
