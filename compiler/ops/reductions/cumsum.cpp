// CumSum and CumProd: running sums and products along one axis, also exclusive of the element itself and in
// reverse. Floats accumulate in double and round each result; integers wrap.
#include <string_view>
#include <type_traits>

#include "ops/movement/movement.h"
#include "ops/op.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  const DType t = x.dtype(0);
  x.require(is_float(t) || t == DType::kI32 || t == DType::kI64 || t == DType::kU32 || t == DType::kU64,
            fmt::format("not defined for {}", name_of(t)));
  x.require(x.dtype(1) == DType::kI32 || x.dtype(1) == DType::kI64, "axis is not int32 or int64");
  x.require(product(x.shape(1)).is(1), "axis is not one number");
  x.require(x.rank(0) > 0, "not defined for a scalar");
  if (const auto axis = x.integers(1)) x.check_axis((*axis)[0], x.rank(0));
  x.same(0, 0);
}

// One line of n elements, `stride` apart, in the order of the walk.
template <class T>
void scan(const T* x, T* y, int64_t n, int64_t stride, bool product, bool exclusive) {
  constexpr bool small = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
  constexpr bool real = small || std::is_floating_point_v<T>;
  std::conditional_t<real, double, uint64_t> acc = product ? 1 : 0;
  const auto store = [&](int64_t at) {
    if constexpr (std::is_same_v<T, half>)
      y[at] = to_half(static_cast<float>(acc));
    else if constexpr (std::is_same_v<T, bfloat16>)
      y[at] = to_bfloat16(static_cast<float>(acc));
    else
      y[at] = static_cast<T>(acc);
  };
  for (int64_t k = 0; k < n; ++k) {
    if (exclusive) store(k * stride);
    decltype(acc) v;
    if constexpr (small)
      v = static_cast<double>(to_float(x[k * stride]));
    else
      v = static_cast<decltype(acc)>(x[k * stride]);
    acc = product ? acc * v : acc + v;
    if (!exclusive) store(k * stride);
  }
}

void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  const int64_t given = e.in[1].integer(0), axis = given < 0 ? given + in.rank() : given;
  const bool exclusive = e.attributes().integer("exclusive", 0) != 0;
  const bool reverse = e.attributes().integer("reverse", 0) != 0;
  const bool product = e.node.op->name == std::string_view("CumProd");
  if (in.size() == 0) return;
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < in.rank(); ++d) inner *= in.dim(d);
  const int64_t n = in.dim(axis);
  with_type(in.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t line = 0; line < in.size() / n; ++line) {
      const int64_t begin = line / inner * inner * n + line % inner;
      const int64_t from = reverse ? begin + (n - 1) * inner : begin;
      scan(in.as<T>() + from, e.out[0].as<T>() + from, n, reverse ? -inner : inner, product, exclusive);
    }
  });
}

}  // namespace

const std::vector<Op>& ops_cumsum() {
  static const std::vector<Op> table = {
      {.name = "CumSum", .min_inputs = 2, .max_inputs = 2, .infer = infer, .eval = eval},
      {.name = "CumProd", .min_inputs = 2, .max_inputs = 2, .infer = infer, .eval = eval},
  };
  return table;
}

}  // namespace sinter
