// Concat puts tensors behind each other along one axis; Split takes one apart again.
#include <numeric>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

int64_t axis_of(const Evaluation& e, int64_t rank, int64_t fallback) {
  const int64_t axis = e.attributes().integer("axis", fallback);
  return axis < 0 ? axis + rank : axis;
}

// Concat: all inputs have one type, one rank and equal extents but along `axis`.
void infer_concat(Inference& x) {
  x.require(x.attributes().has("axis"), "its axis is missing");
  const auto axis = static_cast<size_t>(x.axis("axis", 0, x.rank(0)));
  Shape out = x.shape(0);
  std::vector<size_t> all{0};
  for (size_t i = 1; i < own_inputs(x); ++i) {
    x.require(x.has(i), fmt::format("input {} is missing", i));
    x.require(x.dtype(i) == x.dtype(0),
              fmt::format("inputs of types {} and {}", name_of(x.dtype(0)), name_of(x.dtype(i))));
    const Shape& s = x.shape(i);
    x.require(s.size() == out.size(), fmt::format("inputs of shapes {} and {}", text(x.shape(0)), text(s)));
    for (size_t d = 0; d < s.size(); ++d)
      out[d] = d == axis ? out[d] + s[d] : x.require_equal(out[d], s[d], fmt::format("axis {}", d));
    all.push_back(i);
  }
  x.set(0, x.dtype(0), std::move(out));
  propagate_moved(x, all);
}
void eval_concat(Evaluation& e) {
  Tensor& out = e.out[0];
  const auto axis = static_cast<size_t>(axis_of(e, out.rank(), 0));
  const std::vector<int64_t> strides = row_major_strides(out.shape());
  int64_t at = 0;
  for (const Tensor& t : e.in) {
    copy_strided(t, 0, row_major_strides(t.shape()), out, at * strides[axis], strides, t.shape());
    at += t.shape()[axis];
  }
}

// Split: extents along `axis` (0) from the second input, else num_outputs (all outputs) of ceil(extent / n)
// each, the last one smaller where that doesn't divide (opset 18).
void infer_split(Inference& x) {
  const int64_t n = static_cast<int64_t>(x.out.size());
  const auto axis = static_cast<size_t>(x.axis("axis", 0, x.rank(0)));
  const Dim& extent = x.shape(0)[axis];
  std::vector<Dim> parts;
  if (x.has(1)) {
    x.require(!x.attributes().has("num_outputs"), "it has both a split input and num_outputs");
    const int64_t given = operand_length(x, 1, "split");
    x.require(given == n, fmt::format("{} split sizes for {} outputs", given, n));
    if (auto known = x.elements(1)) parts = std::move(*known);
    for (int64_t i = static_cast<int64_t>(parts.size()); i < n; ++i)
      parts.push_back(x.count(fmt::format("part{}", i), extent));
    for (const Dim& p : parts) x.require(p.hi() >= 0, fmt::format("the split size {}", p.text()));
    x.require_equal(std::accumulate(parts.begin(), parts.end(), Dim(0)), extent, "sum of the split sizes");
  } else {
    const int64_t wanted = x.attributes().integer("num_outputs", n);
    x.require(wanted == n, fmt::format("num_outputs is {}, but it has {} outputs", wanted, n));
    const Dim each = ceildiv(extent, n);
    parts.assign(static_cast<size_t>(n), each);
    parts.back() = extent - each * (n - 1);
    x.require(parts.back().hi() >= 0, fmt::format("{} elements do not fill {} parts", extent.text(), n));
    if (parts.back().lo() < 0) require_le(x, 0, parts.back(), "the last part");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape s = x.shape(0);
    s[axis] = parts[i];
    x.set(i, x.dtype(0), std::move(s));
  }
  propagate_moved(x, {0});
}
void eval_split(Evaluation& e) {
  const Tensor& in = e.in[0];
  const auto axis = static_cast<size_t>(axis_of(e, in.rank(), 0));
  const std::vector<int64_t> strides = row_major_strides(in.shape());
  const int64_t n = static_cast<int64_t>(e.out.size()), each = (in.shape()[axis] + n - 1) / n;
  int64_t at = 0;
  for (size_t i = 0; i < e.out.size(); ++i) {  // an output that nobody wants still takes its part
    if (e.out[i]) copy_strided(in, at * strides[axis], strides, e.out[i]);
    at += e.has(1) ? e.in[1].integer(static_cast<int64_t>(i)) : each;
  }
}

}  // namespace

const std::vector<Op>& ops_concat() {
  static const std::vector<Op> table = {
      {.name = "Concat", .max_inputs = -1, .infer = infer_concat, .eval = eval_concat},
      {.name = "Split", .max_inputs = 2, .max_outputs = -1, .infer = infer_split, .eval = eval_split},
  };
  return table;
}

}  // namespace sinter
