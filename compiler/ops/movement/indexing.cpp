// Operators about positions: OneHot, NonZero, Compress, Unique, ReverseSequence, Trilu.
//
// NonZero, Compress and Unique have as many results as the data say: a count symbol bounded by the input;
// their eval makes the outputs itself.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

bool is_plain_number(DType t) { return is_float(t) || is_integer(t) || t == DType::kBool; }

int64_t axis_of(const Evaluation& e, int64_t fallback, int64_t rank) {
  const int64_t axis = e.attributes().integer("axis", fallback);
  return axis < 0 ? axis + rank : axis;
}

// OneHot: a new axis of `depth`, values[1] where it equals the index, values[0] elsewhere. Indices in
// [-depth, depth - 1]; others give no hot element (opset 11).
void infer_one_hot(Inference& x) {
  x.require(is_plain_number(x.dtype(0)) && is_plain_number(x.dtype(1)),
            "its indices and depth must be numbers");
  x.require(x.rank(1) == 0 || (x.rank(1) == 1 && x.shape(1)[0].is(1)), "its depth must be one element");
  x.require(x.rank(2) == 1, "its values must be [off, on]");
  x.require_equal(x.shape(2)[0], 2, "number of values");
  Dim depth(0);
  if (x.in[1].data)
    depth = x.in[1].data->integer(0);
  else if (const auto known = x.elements(1))
    depth = (*known)[0];
  else
    depth = x.operand_extent("depth");
  x.require(depth.hi() >= 0, fmt::format("its depth is {}", depth.text()));
  const int64_t axis = x.axis("axis", -1, x.rank(0) + 1);
  Shape out = x.shape(0);
  out.insert(out.begin() + axis, depth);
  x.set(0, x.dtype(2), std::move(out));
}
void eval_one_hot(Evaluation& e) {
  Tensor& out = e.out[0];
  const auto axis = static_cast<size_t>(axis_of(e, -1, out.rank()));
  const int64_t depth = out.shape()[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < out.shape().size(); ++d) inner *= out.shape()[d];
  fill_with(out, e.in[2], 0);
  with_size(size_of(out.dtype()), [&](auto t) {
    using T = decltype(t);
    for (int64_t k = 0; k < e.in[0].size(); ++k) {
      const int64_t index = e.in[0].integer(k), at = index < 0 ? index + depth : index;
      if (at >= 0 && at < depth)
        out.as<T>()[(k / inner * depth + at) * inner + k % inner] = e.in[2].as<T>()[1];
    }
  });
}

bool is_zero(const Tensor& t, int64_t i) {
  return with_type(t.dtype(), [&](auto v) {
    using T = decltype(v);
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
      return to_float(t.as<T>()[i]) == 0;
    else
      return t.as<T>()[i] == T{};
  });
}

// NonZero: int64 [rank, count], the indices of the elements that are not 0, in row-major order.
void infer_non_zero(Inference& x) {
  x.require(is_plain_number(x.dtype(0)), fmt::format("not for {}", name_of(x.dtype(0))));
  x.set(0, DType::kI64, {Dim(x.rank(0)), data_count(x, 1, product(x.shape(0)))});
}
void eval_non_zero(Evaluation& e) {
  const Tensor& in = e.in[0];
  std::vector<int64_t> hits;
  for (int64_t i = 0; i < in.size(); ++i)
    if (!is_zero(in, i)) hits.push_back(i);
  const auto count = static_cast<int64_t>(hits.size());
  e.out[0] = Tensor(DType::kI64, {in.rank(), count});
  const std::vector<int64_t> strides = row_major_strides(in.shape());
  for (int64_t d = 0; d < in.rank(); ++d)
    for (int64_t k = 0; k < count; ++k)
      e.out[0].as<int64_t>()[d * count + k] =
          hits[static_cast<size_t>(k)] / strides[static_cast<size_t>(d)] % in.dim(d);
}

// Compress: the rows of an axis (or of the flattened tensor) whose condition is true. A condition may be
// shorter than the axis; what it doesn't name goes. ONNX wants a condition of one axis; Paddle's
// masked_select has as many as its tensor, and ONNX Runtime reads them flattened.
void infer_compress(Inference& x) {
  x.require(x.dtype(1) == DType::kBool, "its condition must be bool");
  const Dim length = product(x.shape(1));
  const bool flat = !x.attributes().has("axis");
  const int64_t axis = flat ? 0 : x.axis("axis", 0, x.rank(0));
  const Dim extent = flat ? product(x.shape(0)) : x.shape(0)[static_cast<size_t>(axis)];
  require_le(x, length, extent, "length of the condition");
  Dim count(0);
  if (const auto known = x.integers(1))
    count = Dim(std::count_if(known->begin(), known->end(), [](int64_t v) { return v != 0; }));
  else
    count = data_count(x, static_cast<size_t>(axis), min(length, extent));
  Shape out = flat ? Shape{count} : x.shape(0);
  out[static_cast<size_t>(axis)] = count;
  x.set(0, x.dtype(0), std::move(out));
  if (is_static(x.out[0].type.shape)) propagate_moved(x, {0});
}
void eval_compress(Evaluation& e) {
  const Tensor& in = e.in[0];
  const bool flat = !e.attributes().has("axis");
  const auto axis = static_cast<size_t>(flat ? 0 : axis_of(e, 0, in.rank()));
  std::vector<int64_t> shape = flat ? std::vector<int64_t>{in.size()} : in.shape();
  const std::vector<int64_t> strides = row_major_strides(shape);
  std::vector<std::vector<int64_t>> maps(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    for (int64_t i = 0; i < shape[d]; ++i) {
      if (d == axis && (i >= e.in[1].size() || !e.in[1].as<bool>()[i])) continue;
      maps[d].push_back(i * strides[d]);
    }
  shape[axis] = static_cast<int64_t>(maps[axis].size());
  e.out[0] = Tensor(in.dtype(), shape);
  copy_mapped(in, maps, e.out[0]);
}

// Unique: the distinct elements (or slices along `axis`), sorted or in order of first appearance; the first
// position of each, for every element its place among them, and how often each occurs.
void infer_unique(Inference& x) {
  x.require(is_plain_number(x.dtype(0)), fmt::format("not for {}", name_of(x.dtype(0))));
  const bool flat = !x.attributes().has("axis");
  const auto axis = static_cast<size_t>(flat ? 0 : x.axis("axis", 0, x.rank(0)));
  const Dim extent = flat ? product(x.shape(0)) : x.shape(0)[axis];
  const Dim count = x.count("count", extent);
  Shape out = flat ? Shape{count} : x.shape(0);
  out[axis] = count;
  x.set(0, x.dtype(0), std::move(out));
  x.set(1, DType::kI64, {count});
  x.set(2, DType::kI64, {extent});
  x.set(3, DType::kI64, {count});
}

// -1, 0 or 1 as rows a and b of `width` elements compare; NaN is greatest and equals itself.
int compare_rows(const Tensor& t, int64_t a, int64_t b, int64_t width) {
  return with_type(t.dtype(), [&](auto v) {
    using T = decltype(v);
    for (int64_t k = 0; k < width; ++k) {
      const T p = t.as<T>()[a * width + k], q = t.as<T>()[b * width + k];
      if constexpr (std::is_integral_v<T>) {
        if (p != q) return p < q ? -1 : 1;
      } else {
        double r = 0, s = 0;
        if constexpr (std::is_floating_point_v<T>)
          r = static_cast<double>(p), s = static_cast<double>(q);
        else
          r = static_cast<double>(to_float(p)), s = static_cast<double>(to_float(q));
        if (std::isnan(r) || std::isnan(s)) {
          if (std::isnan(r) != std::isnan(s)) return std::isnan(s) ? -1 : 1;
        } else if (r != s) {
          return r < s ? -1 : 1;
        }
      }
    }
    return 0;
  });
}

struct Distinct {
  std::vector<int64_t> first, place, times;  // place: for each row its distinct one
};
Distinct distinct_rows(const Tensor& rows, int64_t n, int64_t width, bool sorted) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare_rows(rows, a, b, width) < 0; });
  Distinct out;
  out.place.resize(static_cast<size_t>(n));
  for (size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || compare_rows(rows, order[k - 1], order[k], width) != 0) {
      out.first.push_back(order[k]);
      out.times.push_back(0);
    }
    out.place[static_cast<size_t>(order[k])] = static_cast<int64_t>(out.first.size()) - 1;
    ++out.times.back();
  }
  if (sorted) return out;
  std::vector<size_t> by_first(out.first.size());
  std::iota(by_first.begin(), by_first.end(), size_t{0});
  std::sort(by_first.begin(), by_first.end(),
            [&](size_t a, size_t b) { return out.first[a] < out.first[b]; });
  Distinct reordered = out;
  std::vector<int64_t> now(by_first.size());
  for (size_t k = 0; k < by_first.size(); ++k) {
    reordered.first[k] = out.first[by_first[k]];
    reordered.times[k] = out.times[by_first[k]];
    now[by_first[k]] = static_cast<int64_t>(k);
  }
  for (int64_t& p : reordered.place) p = now[static_cast<size_t>(p)];
  return reordered;
}

void eval_unique(Evaluation& e) {
  const bool flat = !e.attributes().has("axis");
  const Tensor in = flat ? e.in[0].reshaped({e.in[0].size()}) : e.in[0];
  const auto axis = static_cast<size_t>(flat ? 0 : axis_of(e, 0, in.rank()));
  const int64_t n = in.shape()[axis];
  std::vector<int64_t> perm{static_cast<int64_t>(axis)};
  for (size_t d = 0; d < in.shape().size(); ++d)
    if (d != axis) perm.push_back(static_cast<int64_t>(d));
  const Tensor rows = in.transposed(perm);
  const Distinct found =
      distinct_rows(rows, n, n == 0 ? 0 : in.size() / n, e.attributes().integer("sorted", 1) != 0);
  std::vector<int64_t> shape = in.shape();
  shape[axis] = static_cast<int64_t>(found.first.size());
  const std::vector<int64_t> strides = row_major_strides(in.shape());
  std::vector<std::vector<int64_t>> maps(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    for (int64_t i = 0; i < shape[d]; ++i)
      maps[d].push_back((d == axis ? found.first[static_cast<size_t>(i)] : i) * strides[d]);
  e.out[0] = Tensor(in.dtype(), shape);
  copy_mapped(in, maps, e.out[0]);
  size_t k = 1;
  for (const std::vector<int64_t>* list : {&found.first, &found.place, &found.times})
    if (k < e.out.size()) e.out[k++] = Tensor::of(*list);
}

// ReverseSequence: for each batch the first sequence_lens[b] steps along time_axis in reverse order.
void infer_reverse_sequence(Inference& x) {
  const int64_t batch = x.attributes().integer("batch_axis", 1),
                time = x.attributes().integer("time_axis", 0);
  x.require(x.rank(0) >= 2, "two axes are needed");
  x.require((batch == 0 && time == 1) || (batch == 1 && time == 0),
            fmt::format("batch_axis {} and time_axis {}", batch, time));
  require_index_type(x, 1, "sequence_lens");
  x.require(x.rank(1) == 1, "its sequence_lens must have one axis");
  x.require_equal(x.shape(1)[0], x.shape(0)[static_cast<size_t>(batch)], "number of sequence_lens");
  x.same(0, 0);
}
void eval_reverse_sequence(Evaluation& e) {
  const Tensor& in = e.in[0];
  const std::vector<int64_t> strides = row_major_strides(in.shape());
  const auto batch = static_cast<size_t>(e.attributes().integer("batch_axis", 1)), time = 1 - batch;
  std::vector<int64_t> extents = in.shape(), reversed = strides;
  extents[batch] = 1;
  reversed[time] = -strides[time];
  for (int64_t b = 0; b < in.shape()[batch]; ++b) {
    const int64_t length = e.in[1].integer(b), steps = in.shape()[time], at = b * strides[batch];
    if (length < 0 || length > steps)
      e.fail(fmt::format("a sequence of length {} in {} steps", length, steps));
    extents[time] = length;
    copy_strided(in, at + (length - 1) * strides[time], reversed, e.out[0], at, strides, extents);
    extents[time] = steps - length;
    const int64_t rest = at + length * strides[time];
    copy_strided(in, rest, strides, e.out[0], rest, strides, extents);
  }
}

// Trilu: the triangle on and above (upper) or below the k-th diagonal of each matrix, the rest 0.
void infer_trilu(Inference& x) {
  x.require(x.rank(0) >= 2, fmt::format("matrices are needed, not {}", text(x.shape(0))));
  if (x.has(1)) {
    x.require(x.dtype(1) == DType::kI64, "its k must be int64");
    x.require(product(x.shape(1)).is(1), "its k must be one element");
  }
  x.same(0, 0);
  propagate_moved(x, {0});
}
void eval_trilu(Evaluation& e) {
  const Tensor& in = e.in[0];
  const int64_t rows = in.dim(in.rank() - 2), columns = in.dim(in.rank() - 1);
  const int64_t far = rows + columns;
  const int64_t k = e.has(1) ? std::clamp(e.in[1].integer(0), -far, far) : 0;
  const bool upper = e.attributes().integer("upper", 1) != 0;
  with_size(size_of(in.dtype()), [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < in.size(); ++i) {
      const int64_t beyond = i % columns - i / columns % rows - k;
      if (upper ? beyond >= 0 : beyond <= 0) e.out[0].as<T>()[i] = in.as<T>()[i];
    }
  });
}

}  // namespace

const std::vector<Op>& ops_indexing() {
  static const std::vector<Op> table = {
      {.name = "OneHot", .min_inputs = 3, .max_inputs = 3, .infer = infer_one_hot, .eval = eval_one_hot},
      {.name = "NonZero", .infer = infer_non_zero, .eval = eval_non_zero},
      {.name = "Compress", .min_inputs = 2, .max_inputs = 2, .infer = infer_compress, .eval = eval_compress},
      {.name = "Unique", .max_outputs = 4, .infer = infer_unique, .eval = eval_unique},
      {.name = "ReverseSequence",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_reverse_sequence,
       .eval = eval_reverse_sequence},
      {.name = "Trilu", .max_inputs = 2, .infer = infer_trilu, .eval = eval_trilu},
  };
  return table;
}

}  // namespace sinter
