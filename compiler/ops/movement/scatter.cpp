// ScatterElements and ScatterND: a copy of data with elements or blocks replaced, or reduced with `reduction`
// (add, mul, max, min; opsets 16 and 18), at the places that an index tensor names.
//
// TensorScatter writes rows of updates into a cache.
//
// Updates are applied in row-major order of the indices; with reduction none the last one of a place stays.
#include <algorithm>
#include <cstring>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

std::optional<Reduction> reduction_of(const Attributes& attributes) {
  const std::string name = attributes.text("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return std::nullopt;
}

template <class T>
T reduced(Reduction r, T a, T b) {
  if constexpr (std::is_same_v<T, half>) {
    return to_half(reduced(r, to_float(a), to_float(b)));
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return to_bfloat16(reduced(r, to_float(a), to_float(b)));
  } else {
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
    switch (r) {
      case Reduction::kNone: return b;
      case Reduction::kAdd: return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
      case Reduction::kMul: return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
      case Reduction::kMax: return std::max(a, b);
      case Reduction::kMin: return std::min(a, b);
    }
    return b;
  }
}

// to[at + k] = to[at + k] (reduced with) updates[from + k] for k < n.
void update(Reduction r, Tensor& to, int64_t at, const Tensor& updates, int64_t from, int64_t n) {
  if (r == Reduction::kNone) {
    const auto each = static_cast<int64_t>(size_of(to.dtype()));
    std::memcpy(to.mutable_data() + at * each, updates.data() + from * each, static_cast<size_t>(n * each));
    return;
  }
  with_type(to.dtype(), [&](auto t) {
    using T = decltype(t);
    T* a = to.as<T>() + at;
    const T* b = updates.as<T>() + from;
    for (int64_t k = 0; k < n; ++k) a[k] = reduced<T>(r, a[k], b[k]);
  });
}

int64_t checked_index(const Evaluation& e, int64_t index, int64_t extent) {
  if (index < -extent || index >= extent)
    e.fail(fmt::format("index {} out of range for an axis of {}", index, extent));
  return index < 0 ? index + extent : index;
}

void infer_common(Inference& x) {
  require_index_type(x, 1, "indices");
  x.require(x.dtype(2) == x.dtype(0),
            fmt::format("updates of type {} for {}", name_of(x.dtype(2)), name_of(x.dtype(0))));
  const auto r = reduction_of(x.attributes());
  x.require(r.has_value(), "its reduction is " + sinter::quoted(x.attributes().text("reduction", "")));
  const bool number = is_float(x.dtype(0)) || is_integer(x.dtype(0)) || x.dtype(0) == DType::kBool;
  x.require(*r == Reduction::kNone || number, fmt::format("no reduction of {}", name_of(x.dtype(0))));
  x.require(x.rank(0) >= 1, "data need an axis");
  x.same(0, 0);
}
void propagate(Inference& x) {
  if (reduction_of(x.attributes()) == Reduction::kNone) propagate_moved(x, {0, 2});
}

// ScatterElements: out[indices[i][j]][j] = updates[i][j] for axis 0.
void infer_scatter_elements(Inference& x) {
  infer_common(x);
  const auto axis = static_cast<size_t>(x.axis("axis", 0, x.rank(0)));
  x.require(x.rank(1) == x.rank(0) && x.rank(2) == x.rank(0),
            fmt::format("indices of shape {} and updates of shape {} for {}", text(x.shape(1)),
                        text(x.shape(2)), text(x.shape(0))));
  for (size_t d = 0; d < x.shape(0).size(); ++d) {
    x.require_equal(x.shape(1)[d], x.shape(2)[d], fmt::format("axis {} of indices and updates", d));
    if (d != axis) require_le(x, x.shape(1)[d], x.shape(0)[d], fmt::format("axis {} of the indices", d));
  }
  propagate(x);
}
void eval_scatter_elements(Evaluation& e) {
  const Tensor &data = e.in[0], &indices = e.in[1];
  const Reduction r = *reduction_of(e.attributes());
  const int64_t given = e.attributes().integer("axis", 0);
  const auto axis = static_cast<size_t>(given < 0 ? given + data.rank() : given);
  const std::vector<int64_t> strides = row_major_strides(data.shape());
  std::memcpy(e.out[0].mutable_data(), data.data(), static_cast<size_t>(data.bytes()));
  for_each_index(indices.shape(), [&](const std::vector<int64_t>& index, int64_t k) {
    int64_t at = checked_index(e, indices.integer(k), data.shape()[axis]) * strides[axis];
    for (size_t d = 0; d < index.size(); ++d)
      if (d != axis) at += index[d] * strides[d];
    update(r, e.out[0], at, e.in[2], k, 1);
  });
}

// ScatterND: the last axis of the indices holds coordinates; updates are the blocks behind them.
void infer_scatter_nd(Inference& x) {
  infer_common(x);
  x.require(x.rank(1) >= 1, "its indices need an axis");
  const Dim& last = x.shape(1).back();
  if (!last.is_static()) x.fail("the number of its coordinates is only known at run time");
  const int64_t n = last.value();
  x.require(n >= 1 && n <= x.rank(0), fmt::format("{} coordinates for {} axes", n, x.rank(0)));
  Shape wanted(x.shape(1).begin(), x.shape(1).end() - 1);
  wanted.insert(wanted.end(), x.shape(0).begin() + n, x.shape(0).end());
  x.require(x.shape(2).size() == wanted.size(),
            fmt::format("updates of shape {}, but {} is needed", text(x.shape(2)), text(wanted)));
  for (size_t d = 0; d < wanted.size(); ++d)
    x.require_equal(x.shape(2)[d], wanted[d], fmt::format("axis {} of the updates", d));
  propagate(x);
}
void eval_scatter_nd(Evaluation& e) {
  const Tensor &data = e.in[0], &indices = e.in[1];
  const Reduction r = *reduction_of(e.attributes());
  const std::vector<int64_t> strides = row_major_strides(data.shape());
  std::memcpy(e.out[0].mutable_data(), data.data(), static_cast<size_t>(data.bytes()));
  const int64_t n = indices.shape().back(), places = indices.size() / n;
  int64_t block = 1;
  for (int64_t d = n; d < data.rank(); ++d) block *= data.dim(d);
  for (int64_t p = 0; p < places; ++p) {
    int64_t at = 0;
    for (int64_t c = 0; c < n; ++c)
      at += checked_index(e, indices.integer(p * n + c), data.dim(c)) * strides[static_cast<size_t>(c)];
    update(r, e.out[0], at, e.in[2], p * block, block);
  }
}

// TensorScatter: update's rows along `axis` (-2) written into a cache from write_indices[batch] (0) on; batch
// is axis 0. Mode "circular" starts over at the end of the axis, "linear" may not reach it (opset 24).
void infer_tensor_scatter(Inference& x) {
  const std::string mode = x.attributes().text("mode", "linear");
  x.require(mode == "linear" || mode == "circular", "its mode is " + sinter::quoted(mode));
  x.require(x.dtype(1) == x.dtype(0),
            fmt::format("updates of type {} for {}", name_of(x.dtype(1)), name_of(x.dtype(0))));
  x.require(x.rank(1) == x.rank(0),
            fmt::format("updates of shape {} for {}", text(x.shape(1)), text(x.shape(0))));
  const auto axis = static_cast<size_t>(x.axis("axis", -2, x.rank(0)));
  x.require(axis != 0, "its axis is the batch");
  for (size_t d = 0; d < x.shape(0).size(); ++d) {
    if (d == axis)
      require_le(x, x.shape(1)[d], x.shape(0)[d], "rows of the updates");
    else
      x.require_equal(x.shape(1)[d], x.shape(0)[d], fmt::format("axis {} of the updates", d));
  }
  if (x.has(2)) {
    require_index_type(x, 2, "write_indices");
    x.require(x.rank(2) == 1, "its write_indices must have one axis");
    x.require_equal(x.shape(2)[0], x.shape(0)[0], "number of write_indices");
  }
  x.same(0, 0);
}
void eval_tensor_scatter(Evaluation& e) {
  const Tensor &cache = e.in[0], &updates = e.in[1];
  const int64_t given = e.attributes().integer("axis", -2), axis = given < 0 ? given + cache.rank() : given;
  const bool circular = e.attributes().text("mode", "linear") == "circular";
  std::memcpy(e.out[0].mutable_data(), cache.data(), static_cast<size_t>(cache.bytes()));
  const int64_t rows = cache.dim(axis), written = updates.dim(axis);
  int64_t outer = 1, block = 1;
  for (int64_t d = 0; d < axis; ++d) outer *= cache.dim(d);
  for (int64_t d = axis + 1; d < cache.rank(); ++d) block *= cache.dim(d);
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t first = e.has(2) ? e.in[2].integer(o / (outer / cache.dim(0))) : 0;
    if (first < 0 || (circular ? first >= rows && written > 0 : first > rows - written))
      e.fail(fmt::format("{} rows written from row {} of {} on", written, first, rows));
    for (int64_t r = 0; r < written; ++r)
      update(Reduction::kNone, e.out[0], (o * rows + (first + r) % rows) * block, updates,
             (o * written + r) * block, block);
  }
}

}  // namespace

const std::vector<Op>& ops_scatter() {
  static const std::vector<Op> table = {
      {.name = "ScatterElements",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_scatter_elements,
       .eval = eval_scatter_elements},
      {.name = "ScatterND",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_scatter_nd,
       .eval = eval_scatter_nd},
      {.name = "TensorScatter",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_tensor_scatter,
       .eval = eval_tensor_scatter},
  };
  return table;
}

}  // namespace sinter
