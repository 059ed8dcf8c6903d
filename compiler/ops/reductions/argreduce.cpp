// ArgMax and ArgMin: the index of the greatest or least element along one axis.
//
// Of equal elements the first, or the last with select_last_index. An element is only taken over another if
// it compares greater (less, at least as great …), so that NaN is never taken except as the first one.
#include <string_view>

#include "ops/op.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  const DType t = x.dtype(0);
  x.require(is_float(t) ||
                (is_integer(t) && t != DType::kI4 && t != DType::kU4 && t != DType::kI2 && t != DType::kU2),
            fmt::format("not defined for {}", name_of(t)));
  const int64_t axis = x.axis("axis", 0, x.rank(0));
  Shape s = x.shape(0);
  const auto at = s.begin() + axis;
  x.require(!at->is(0), "the axis is empty");
  if (x.attributes().integer("keepdims", 1) != 0)
    *at = 1;
  else
    s.erase(at);
  x.set(0, DType::kI64, std::move(s));
}

template <class T>
auto comparable(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return to_float(v);
  else
    return v;
}

template <class T>
void search(const Tensor& in, Tensor& out, int64_t axis, bool greatest, bool last) {
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < in.rank(); ++d) inner *= in.dim(d);
  const int64_t n = in.dim(axis);
  for (int64_t i = 0; i < out.size(); ++i) {
    const T* line = in.as<T>() + i / inner * inner * n + i % inner;
    int64_t best = 0;
    for (int64_t k = 1; k < n; ++k) {
      const auto a = comparable(line[k * inner]), b = comparable(line[best * inner]);
      if (greatest ? a > b : a < b) best = k;
      if (last && a == b) best = k;
    }
    out.as<int64_t>()[i] = best;
  }
}

void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  const int64_t given = e.attributes().integer("axis", 0), axis = given < 0 ? given + in.rank() : given;
  const bool last = e.attributes().integer("select_last_index", 0) != 0;
  const bool greatest = e.node.op->name == std::string_view("ArgMax");
  with_type(in.dtype(), [&](auto tag) { search<decltype(tag)>(in, e.out[0], axis, greatest, last); });
}

}  // namespace

const std::vector<Op>& ops_argreduce() {
  static const std::vector<Op> table = {
      {.name = "ArgMax", .infer = infer, .eval = eval},
      {.name = "ArgMin", .infer = infer, .eval = eval},
  };
  return table;
}

}  // namespace sinter
