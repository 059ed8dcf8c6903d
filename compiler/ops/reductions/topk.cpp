// TopK: the k greatest or least elements along an axis and their indices, always sorted (which `sorted` = 0
// allows). k is input 1: a constant, a Dim known by data propagation, or a count that only the run decides.
//
// The selection itself is runtime/sinter/topk.h, which generated code calls as well.
#include "sinter/topk.h"

#include "ops/movement/movement.h"
#include "ops/op.h"

namespace sinter {
namespace {

void infer(Inference& x) {
  const DType t = x.dtype(0);
  x.require(is_float(t) ||
                (is_integer(t) && t != DType::kI4 && t != DType::kU4 && t != DType::kI2 && t != DType::kU2),
            fmt::format("not defined for {}", name_of(t)));
  x.require(x.dtype(1) == DType::kI64, "k is not int64");
  x.require(x.rank(1) <= 1, "k is not one number");
  x.require_equal(product(x.shape(1)), 1, "elements of k");
  const size_t axis = static_cast<size_t>(x.axis("axis", -1, x.rank(0)));
  Shape s = x.shape(0);
  const auto known = x.elements(1);
  if (known && known->size() == 1) {
    const Dim k = (*known)[0];
    if (k.hi() < 0) x.fail(fmt::format("k is {}", k.text()));
    require_le(x, 0, k, "k is not negative");
    if (k.lo() > s[axis].hi())
      x.fail(fmt::format("k is {}, but axis {} has {}", k.text(), axis, s[axis].text()));
    require_le(x, k, s[axis], "k is at most the axis");
    s[axis] = k;
  } else {
    s[axis] = x.count("k", s[axis]);
  }
  x.set(0, t, s);
  x.set(1, DType::kI64, std::move(s));
}

void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  const int64_t given = e.attributes().integer("axis", -1), axis = given < 0 ? given + in.rank() : given;
  const bool largest = e.attributes().integer("largest", 1) != 0;
  const int64_t k = e.in[1].integer(0), n = in.dim(axis);
  std::vector<int64_t> shape = in.shape();
  shape[static_cast<size_t>(axis)] = k;
  Tensor values(in.dtype(), shape), indices(DType::kI64, shape);
  int64_t inner = 1, outer = 1;
  for (int64_t d = 0; d < axis; ++d) outer *= in.dim(d);
  for (int64_t d = axis + 1; d < in.rank(); ++d) inner *= in.dim(d);
  with_type(in.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t line = 0; line < outer * inner; ++line) {
      const int64_t from = line / inner * inner * n + line % inner;
      const int64_t to = line / inner * inner * k + line % inner;
      topk(in.as<T>() + from, n, inner, k, largest, values.as<T>() + to, indices.as<int64_t>() + to, inner);
    }
  });
  if (e.node.has_output(0)) e.out[0] = values;
  if (e.node.has_output(1)) e.out[1] = indices;
}

}  // namespace

const std::vector<Op>& ops_topk() {
  static const std::vector<Op> table = {
      {.name = "TopK", .min_inputs = 2, .max_inputs = 2, .max_outputs = 2, .infer = infer, .eval = eval},
  };
  return table;
}

}  // namespace sinter
