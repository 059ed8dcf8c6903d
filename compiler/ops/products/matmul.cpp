// MatMul (ONNX MatMul-13): numpy's matmul, batch axes broadcast, one-dimensional operands get an axis of 1
// that the result loses; with the attribute `integer`, which lowering sets: integer factors (contraction.h),
// int32 sums that wrap. Gemm (ONNX Gemm-13): alpha * A' * B' + beta * C, C broadcast to the product's shape.
#include <cmath>

#include "ops/op.h"
#include "ops/products/contraction.h"

namespace sinter {
namespace {

void check_types(Inference& x) {
  const DType t = x.dtype(0);
  x.require(is_float(t) || t == DType::kI32 || t == DType::kI64 || t == DType::kU32 || t == DType::kU64,
            fmt::format("not for {}", name_of(t)));
  for (size_t i = 1; i < x.in.size(); ++i)
    if (x.has(i))
      x.require(x.dtype(i) == t, fmt::format("inputs of types {} and {}", name_of(t), name_of(x.dtype(i))));
}

void infer_matmul(Inference& x) {
  const bool integer = sums_integers(x.node);
  if (integer)
    x.require(is_integer_pair(x.dtype(0), x.dtype(1)),
              fmt::format("no integer product of {} and {}", name_of(x.dtype(0)), name_of(x.dtype(1))));
  else
    check_types(x);
  Shape a = x.shape(0), b = x.shape(1);
  x.require(!a.empty() && !b.empty(), "an operand is a scalar");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.emplace_back(1);
  x.require_equal(a.back(), b[b.size() - 2],
                  fmt::format("inner extents of {} and {}", text(x.shape(0)), text(x.shape(1))));
  const Shape batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
  Shape out = x.broadcast({&batch_a, &batch_b});
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  x.set(0, integer ? DType::kI32 : x.dtype(0), out);
}

template <class T>
void matmul(const Tensor& a, const Tensor& b, Tensor& y) {
  std::vector<int64_t> sa = a.shape(), sb = b.shape(), batch = y.shape();
  if (sa.size() == 1)
    sa.insert(sa.begin(), 1);
  else
    batch.pop_back();
  if (sb.size() == 1)
    sb.push_back(1);
  else
    batch.pop_back();
  const int64_t m = sa[sa.size() - 2], k = sa.back(), n = sb.back();
  if (y.size() == 0) return;
  // One weight matrix for all: the batch is more rows.
  if (sb.size() == 2)
    return multiply(false, false, y.size() / n, n, k, a.as<T>(), k, b.as<T>(), n, y.as<T>(), n);
  int64_t count = 1;
  for (int64_t d : batch) count *= d;
  for (int64_t i = 0; i < count; ++i) {
    auto matrix_of = [&](const std::vector<int64_t>& s) {
      int64_t at = 0, scale = 1, rest = i;
      for (size_t d = batch.size(), own = s.size() - 2; d-- > 0 && own-- > 0;) {
        if (s[own] != 1) at += rest % batch[d] * scale;
        scale *= s[own];
        rest /= batch[d];
      }
      return at;
    };
    multiply(false, false, m, n, k, a.as<T>() + matrix_of(sa) * m * k, k, b.as<T>() + matrix_of(sb) * k * n,
             n, y.as<T>() + i * m * n, n);
  }
}

template <class F>
void with_contraction_type(DType t, F f) {
  switch (t) {
    case DType::kF32: return f(float{});
    case DType::kF64: return f(double{});
    case DType::kI32: return f(int32_t{});
    case DType::kI64: return f(int64_t{});
    case DType::kU32: return f(uint32_t{});
    case DType::kU64: return f(uint64_t{});
    default: bug(__FILE__, __LINE__, "a contraction of this dtype");
  }
}

void eval_matmul(Evaluation& e) {
  const bool integer = sums_integers(e.node);
  const DType dtype = e.in[0].dtype();
  const DType work = integer ? DType::kF64 : contraction_dtype(dtype);  // exact: |sums| < 2^53
  Tensor y(work, e.out[0].shape());
  with_contraction_type(work, [&](auto t) {
    matmul<decltype(t)>(integer ? less_zero(e.node, e.in[0]) : converted_if(e.in[0], work),
                        converted_if(e.in[1], work), y);
  });
  e.out[0] = integer ? wrapped(y) : converted_if(y, dtype);
}

void infer_gemm(Inference& x) {
  check_types(x);
  const Attributes& a = x.attributes();
  x.require(x.rank(0) == 2 && x.rank(1) == 2,
            fmt::format("{} and {} are not both matrices", text(x.shape(0)), text(x.shape(1))));
  const bool ta = a.integer("transA", 0) != 0, tb = a.integer("transB", 0) != 0;
  for (const char* name : {"alpha", "beta"}) {
    const float v = a.real(name, 1);
    x.require(is_float(x.dtype(0)) || (v == std::floor(v) && std::fabs(v) < 2147483648.0f),
              fmt::format("{} is {} for integers", name, v));
  }
  x.require_equal(x.shape(0)[ta ? 0 : 1], x.shape(1)[tb ? 1 : 0],
                  fmt::format("inner extents of {} and {}", text(x.shape(0)), text(x.shape(1))));
  const Shape y{x.shape(0)[ta ? 1 : 0], x.shape(1)[tb ? 0 : 1]};
  if (x.has(2)) {
    const Shape& c = x.shape(2);
    x.require(c.size() <= 2, fmt::format("C {} has more than two axes", text(c)));
    for (size_t i = 0; i < c.size(); ++i) {
      const Dim& to = y[i + 2 - c.size()];
      if (c[i].is(1) || c[i] == to) continue;
      const Dim difference = c[i] - to;
      x.require(!((difference.lo() > 0 || difference.hi() < 0) && c[i].lo() > 1),
                fmt::format("C {} does not broadcast to {}", text(c), text(y)));
      if (c[i].lo() > 1)
        x.require_equal(c[i], to, "extent of C");
      else  // 1 or the whole extent; broadcast() leaves the check, and it must not widen the product
        x.require(!to.is(1), fmt::format("C {} does not broadcast to {}", text(c), text(y))),
            x.checks.push_back({c[i], to, true, fmt::format("{}: extent of C", label(x.node))});
    }
  }
  x.set(0, x.dtype(0), y);
}

template <class T>
void gemm(const Evaluation& e, const Tensor& a, const Tensor& b, const Tensor& c, Tensor& y) {
  const bool ta = e.attributes().integer("transA", 0) != 0, tb = e.attributes().integer("transB", 0) != 0;
  const int64_t m = y.dim(0), n = y.dim(1), k = a.dim(ta ? 0 : 1);
  multiply(ta, tb, m, n, k, a.as<T>(), a.dim(1), b.as<T>(), b.dim(1), y.as<T>(), n);
  // Integers wrap: their factors and sums are unsigned.
  using Sum = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  auto factor = [&](const char* name) {
    const float v = e.attributes().real(name, 1);
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(v);
    else
      return static_cast<uint64_t>(static_cast<int64_t>(v));
  };
  const Sum alpha = factor("alpha"), beta = factor("beta");
  const int64_t row = c && c.rank() == 2 && c.dim(0) != 1 ? c.dim(1) : 0;
  const int64_t column = c && c.rank() >= 1 && c.dim(c.rank() - 1) != 1 ? 1 : 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      Sum v = alpha * static_cast<Sum>(y.as<T>()[i * n + j]);
      if (c) v += beta * static_cast<Sum>(c.as<T>()[i * row + j * column]);
      y.as<T>()[i * n + j] = static_cast<T>(v);
    }
}

void eval_gemm(Evaluation& e) {
  const DType dtype = e.in[0].dtype(), work = contraction_dtype(dtype);
  Tensor y(work, e.out[0].shape());
  const Tensor c = e.has(2) ? converted_if(e.in[2], work) : Tensor();
  with_contraction_type(work, [&](auto t) {
    gemm<decltype(t)>(e, converted_if(e.in[0], work), converted_if(e.in[1], work), c, y);
  });
  e.out[0] = converted_if(y, dtype);
}

}  // namespace

const std::vector<Op>& ops_matmul() {
  static const std::vector<Op> table = {
      {.name = "MatMul", .min_inputs = 2, .max_inputs = 2, .infer = infer_matmul, .eval = eval_matmul},
      {.name = "Gemm", .min_inputs = 2, .max_inputs = 3, .infer = infer_gemm, .eval = eval_gemm},
  };
  return table;
}

}  // namespace sinter
