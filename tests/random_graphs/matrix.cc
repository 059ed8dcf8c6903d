// Transformers, classifiers and recurrent nets: contractions, norms, attention, reductions.
#include <cmath>

#include "random_graphs/productions.h"

namespace sinter::random_graphs {
namespace {

int64_t last(const Item& i) { return i.shape.back(); }

// [..., K] with a static K.
const Item* any_rows(Builder& b, size_t rank = 2) {
  return b.any(
      [&](const Item& i) { return is_float(i.dtype) && i.rank() >= rank && last(i) > 0 && last(i) <= 96; });
}

std::string matrix(Builder& b, DType t, int64_t k, int64_t n) {
  const double range = 1.6 / std::sqrt(static_cast<double>(k));
  return b.weight(t, {k, n}, -range, range);
}

bool add_matmul(Builder& b) {
  const Item* x = any_rows(b);
  if (!x) return false;
  const int64_t n = b.one_of<int64_t>({1, 3, 8, 16, 17, 32});
  const DType t = x->dtype;
  std::string y = b.node("MatMul", {x->name, matrix(b, t, last(*x), n)});
  if (b.chance(60)) y = b.node("Add", {y, b.weight(t, {n})});
  if (b.chance(50)) b.node(b.one_of<std::string>({"Relu", "Gelu", "Sigmoid", "Tanh"}), {y});
  return true;
}

bool add_gemm(Builder& b) {
  const Item* x = b.any([](const Item& i) {
    return is_float(i.dtype) && i.rank() == 2 && i.shape[0] > 0 && i.shape[1] > 0 && i.shape[0] <= 64 &&
           i.shape[1] <= 96;
  });
  if (!x)
    x = b.any([](const Item& i) {
      return is_float(i.dtype) && i.rank() == 2 && i.shape[1] > 0 && i.shape[1] <= 96;
    });
  if (!x) return false;
  const bool turned = x->is_static() && b.chance(25), weight_turned = b.chance(50);
  const int64_t k = turned ? x->shape[0] : x->shape[1], n = b.one_of<int64_t>({1, 4, 10, 16});
  std::vector<std::string> in = {x->name,
                                 weight_turned ? matrix(b, x->dtype, n, k) : matrix(b, x->dtype, k, n)};
  if (b.chance(70)) in.push_back(b.chance(80) ? b.weight(x->dtype, {n}) : b.weight(x->dtype, {1, 1}));
  AttributeList a = {{"transA", int64_t{turned}}, {"transB", int64_t{weight_turned}}};
  if (b.chance(30)) a.push_back({"alpha", 0.5f}), a.push_back({"beta", 1.5f});
  const std::string y = b.node("Gemm", in, a);
  if (b.chance(40)) b.node("Relu", {y});
  return true;
}

// Two computed operands: x times a transposed value of the same leading extents.
bool add_product(Builder& b) {
  const Item* x = any_rows(b, 2);
  if (!x) return false;
  const Item* y = b.any([&](const Item& i) {
    return i.dtype == x->dtype && i.rank() == x->rank() && i.dims.back() == x->dims.back() &&
           std::equal(i.dims.begin(), i.dims.end() - 2, x->dims.begin());
  });
  if (!y) return false;
  std::vector<int64_t> perm(x->rank());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(last(*x))));
  const std::string p = b.node("MatMul", {x->name, b.node("Transpose", {y->name}, {{"perm", perm}})});
  b.node("Mul", {p, b.scalar(x->dtype, scale)});
  return true;
}

// Attention written out over [N, S, D]: projections, heads, mask or none, output.
bool add_attention(Builder& b) {
  const Item* x = b.any([](const Item& i) {
    return is_float(i.dtype) && i.rank() == 3 && last(i) > 0 && last(i) % 2 == 0 && last(i) <= 64;
  });
  if (!x) return false;
  const DType t = x->dtype;
  const int64_t d = last(*x), heads = b.one_of<int64_t>({1, 2}), each = d / heads;
  const auto head = [&](std::vector<int64_t> perm) {
    std::string y = b.node("MatMul", {x->name, matrix(b, t, d, d)});
    if (b.chance(70)) y = b.node("Add", {y, b.weight(t, {d})});
    y = b.node("Reshape", {y, b.integers({0, -1, heads, each})});
    return b.node("Transpose", {y}, {{"perm", std::move(perm)}});
  };
  const std::string q = head({0, 2, 1, 3}), k = head({0, 2, 3, 1}), v = head({0, 2, 1, 3});
  std::string scores = b.node("MatMul", {q, k});
  scores = b.chance(50) ? b.node("Div", {scores, b.scalar(t, std::sqrt(static_cast<double>(each)))})
                        : b.node("Mul", {scores, b.scalar(t, 1 / std::sqrt(static_cast<double>(each)))});
  if (x->shape[1] > 0 && b.chance(40))
    scores = b.node("Add", {scores, b.weight(t, {1, 1, x->shape[1], x->shape[1]}, -2, 2)});
  std::string y = b.node("MatMul", {b.node("Softmax", {scores}, {{"axis", int64_t{-1}}}), v});
  y = b.node("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  y = b.node("Reshape", {y, b.integers({0, -1, d})});
  y = b.node("MatMul", {y, matrix(b, t, d, d)});
  if (b.chance(70)) b.node("Add", {y, x->name});
  return true;
}

bool add_layernorm(Builder& b) {
  const Item* x = any_rows(b);
  if (!x || last(*x) < 2) return false;
  const int64_t d = last(*x);
  const DType t = x->dtype;
  const std::string gamma = b.weight(t, {d}, 0.5, 1.5), beta = b.weight(t, {d});
  if (b.chance(40)) {
    b.node("LayerNormalization", {x->name, gamma, beta}, {{"axis", int64_t{-1}}, {"epsilon", 1e-3f}});
    return true;
  }
  const std::string axes = b.integers({-1});
  const std::string mean = b.node("ReduceMean", {x->name, axes});
  const std::string centred = b.node("Sub", {x->name, mean});
  const std::string square =
      b.chance(50) ? b.node("Mul", {centred, centred}) : b.node("Pow", {centred, b.scalar(t, 2)});
  const std::string variance = b.node("ReduceMean", {square, axes});
  const std::string deviation = b.node("Sqrt", {b.node("Add", {variance, b.scalar(t, 1e-3)})});
  b.node("Add", {b.node("Mul", {b.node("Div", {centred, deviation}), gamma}), beta});
  return true;
}

bool add_softmax(Builder& b) {
  const Item* x = b.any([](const Item& i) { return is_float(i.dtype) && i.rank() > 0; });
  if (!x) return false;
  const int64_t r = static_cast<int64_t>(x->rank());
  b.node(b.chance(70) ? "Softmax" : "LogSoftmax", {x->name}, {{"axis", b.between(-r, r - 1)}});
  return true;
}

std::vector<int64_t> some_axes(Builder& b, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i)
    if (b.chance(50))
      axes.push_back(b.chance(50) ? static_cast<int64_t>(i)
                                  : static_cast<int64_t>(i) - static_cast<int64_t>(rank));
  if (axes.empty()) axes.push_back(-1);
  return axes;
}

bool add_reduction(Builder& b) {
  const Item* x =
      b.any([](const Item& i) { return (is_float(i.dtype) || i.dtype == DType::kI32) && i.rank() > 0; });
  if (!x) return false;
  const bool real = is_float(x->dtype);
  const std::string op =
      real ? b.one_of<std::string>({"ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin",
                                    "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"})
           : b.one_of<std::string>({"ReduceSum", "ReduceMax", "ReduceMin"});
  const std::string y = b.node(op, {x->name, b.integers(some_axes(b, x->rank()))},
                               {{"keepdims", static_cast<int64_t>(b.chance(70))}});
  if (real && b.chance(30)) b.node("Sigmoid", {y});
  return true;
}

bool add_arg(Builder& b) {
  const Item* x =
      b.any([](const Item& i) { return (is_float(i.dtype) || i.dtype == DType::kI32) && i.rank() > 0; });
  if (!x) return false;
  const int64_t r = static_cast<int64_t>(x->rank());
  b.node(b.chance(50) ? "ArgMax" : "ArgMin", {x->name},
         {{"axis", b.between(-r, r - 1)},
          {"keepdims", static_cast<int64_t>(b.below(2))},
          {"select_last_index", static_cast<int64_t>(b.below(2))}});
  return true;
}

bool add_topk(Builder& b) {
  const Item* x = b.any([](const Item& i) {
    return (is_float(i.dtype) || i.dtype == DType::kI32) && i.rank() > 0 && i.shape.back() > 2;
  });
  if (!x) return false;
  b.node("TopK", {x->name, b.integers({b.between(1, std::min<int64_t>(4, last(*x)))})},
         {{"largest", static_cast<int64_t>(b.below(2))}}, 2);
  return true;
}

bool add_cumsum(Builder& b) {
  const Item* x =
      b.any([](const Item& i) { return (is_float(i.dtype) || i.dtype == DType::kI32) && i.rank() > 0; });
  if (!x) return false;
  const int64_t r = static_cast<int64_t>(x->rank());
  b.node("CumSum", {x->name, b.integers({b.between(0, r - 1)})},
         {{"exclusive", static_cast<int64_t>(b.below(2))}, {"reverse", static_cast<int64_t>(b.below(2))}});
  return true;
}

bool add_einsum(Builder& b) {
  const Item* x =
      b.any([](const Item& i) { return is_float(i.dtype) && i.rank() == 3 && last(i) > 0 && last(i) <= 64; });
  if (!x) return false;
  switch (b.below(3)) {
    case 0:
      b.node("Einsum", {x->name, matrix(b, x->dtype, last(*x), 5)},
             {{"equation", std::string("abc,cd->abd")}});
      break;
    case 1: b.node("Einsum", {x->name}, {{"equation", std::string("abc->cab")}}); break;
    default: b.node("Einsum", {x->name, x->name}, {{"equation", std::string("abc,abc->ab")}});
  }
  return true;
}

// [S, N, D] through a recurrent layer.
bool add_recurrent(Builder& b) {
  const Item* x = b.any([](const Item& i) {
    return (i.dtype == DType::kF32 || i.dtype == DType::kF64) && i.rank() == 3 && last(i) > 0 &&
           last(i) <= 32;
  });
  if (!x) return false;
  const std::string op = b.one_of<std::string>({"LSTM", "GRU", "RNN"});
  const std::string direction = b.one_of<std::string>({"forward", "reverse", "bidirectional"});
  const int64_t gates = op == "LSTM"  ? 4
                        : op == "GRU" ? 3
                                      : 1,
                h = b.one_of<int64_t>({1, 4, 5, 8}), ways = direction == "bidirectional" ? 2 : 1;
  std::vector<std::string> in = {x->name, b.weight(x->dtype, {ways, gates * h, last(*x)}, -0.4, 0.4),
                                 b.weight(x->dtype, {ways, gates * h, h}, -0.4, 0.4)};
  if (b.chance(70)) in.push_back(b.weight(x->dtype, {ways, 2 * gates * h}, -0.3, 0.3));
  AttributeList a = {{"hidden_size", h}, {"direction", direction}};
  if (op == "GRU") a.push_back({"linear_before_reset", static_cast<int64_t>(b.below(2))});
  const std::string y = b.node(op, in, a, op == "LSTM" ? 3 : 2);
  if (b.chance(60)) {
    const std::string turned = b.node("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    b.node("Reshape", {turned, b.integers({0, 0, -1})});
  }
  return true;
}

}  // namespace

const std::vector<Production>& matrix_productions() {
  static const std::vector<Production> table = {
      {"matmul", 12, add_matmul},      {"gemm", 6, add_gemm},
      {"product", 4, add_product},     {"attention", 5, add_attention},
      {"layernorm", 6, add_layernorm}, {"softmax", 4, add_softmax},
      {"reduction", 6, add_reduction}, {"arg", 2, add_arg},
      {"topk", 2, add_topk},           {"cumsum", 2, add_cumsum},
      {"einsum", 2, add_einsum},       {"recurrent", 3, add_recurrent}};
  return table;
}

}  // namespace sinter::random_graphs
