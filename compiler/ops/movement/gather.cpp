// Gather, GatherElements, GatherND: elements or blocks picked by an index tensor.
//
// Indices are int32 or int64; negative ones count from the end of the indexed axis. An index outside is an
// error of the run, not of inference.
#include "ops/movement/movement.h"

namespace sinter {
namespace {

int64_t checked_index(const Evaluation& e, int64_t index, int64_t extent) {
  if (index < -extent || index >= extent)
    e.fail(fmt::format("index {} out of range for an axis of {}", index, extent));
  return index < 0 ? index + extent : index;
}
int64_t axis_of(const Evaluation& e) {
  const int64_t axis = e.attributes().integer("axis", 0);
  return axis < 0 ? axis + e.in[0].rank() : axis;
}

// Gather: data[…, indices, …]: the axis is replaced by the shape of the indices.
void infer_gather(Inference& x) {
  require_index_type(x, 1, "indices");
  const int64_t axis = x.axis("axis", 0, x.rank(0));
  Shape out = x.shape(0);
  out.erase(out.begin() + axis);
  out.insert(out.begin() + axis, x.shape(1).begin(), x.shape(1).end());
  x.set(0, x.dtype(0), std::move(out));
  propagate_moved(x, {0});
}
void eval_gather(Evaluation& e) {
  const Tensor& data = e.in[0];
  const auto axis = static_cast<size_t>(axis_of(e));
  std::vector<int64_t> picked = e.in[1].integers();
  const int64_t extent = data.shape()[axis];
  for (int64_t& i : picked) i = checked_index(e, i, extent);
  int64_t outer = 1, block = 1;
  for (size_t d = 0; d < axis; ++d) outer *= data.shape()[d];
  for (size_t d = axis + 1; d < data.shape().size(); ++d) block *= data.shape()[d];
  std::vector<std::vector<int64_t>> maps(block == 1 ? 2 : 3);
  for (int64_t o = 0; o < outer; ++o) maps[0].push_back(o * extent * block);
  for (int64_t i : picked) maps[1].push_back(i * block);
  Tensor flat = e.out[0].reshaped({outer, static_cast<int64_t>(picked.size()), block});
  if (block == 1)
    flat = flat.reshaped({outer, static_cast<int64_t>(picked.size())});
  else
    for (int64_t b = 0; b < block; ++b) maps[2].push_back(b);
  copy_mapped(data, maps, flat);
}

// GatherElements: out[i][j] = data[indices[i][j]][j] for axis 0; the shape of the indices.
void infer_gather_elements(Inference& x) {
  require_index_type(x, 1, "indices");
  const auto axis = static_cast<size_t>(x.axis("axis", 0, x.rank(0)));
  x.require(x.rank(1) == x.rank(0),
            fmt::format("indices of shape {} for {}", text(x.shape(1)), text(x.shape(0))));
  for (size_t d = 0; d < x.shape(0).size(); ++d)
    if (d != axis) require_le(x, x.shape(1)[d], x.shape(0)[d], fmt::format("axis {} of the indices", d));
  x.set(0, x.dtype(0), x.shape(1));
  propagate_moved(x, {0});
}
void eval_gather_elements(Evaluation& e) {
  const Tensor &data = e.in[0], &indices = e.in[1];
  const auto axis = static_cast<size_t>(axis_of(e));
  const std::vector<int64_t> strides = row_major_strides(data.shape());
  with_size(size_of(data.dtype()), [&](auto t) {
    using T = decltype(t);
    for_each_index(indices.shape(), [&](const std::vector<int64_t>& index, int64_t k) {
      int64_t at = checked_index(e, indices.integer(k), data.shape()[axis]) * strides[axis];
      for (size_t d = 0; d < index.size(); ++d)
        if (d != axis) at += index[d] * strides[d];
      e.out[0].as<T>()[k] = data.as<T>()[at];
    });
  });
}

// GatherND: the last axis of the indices holds coordinates of the axes behind batch_dims; what the
// coordinates leave of data is copied as a block.
void infer_gather_nd(Inference& x) {
  require_index_type(x, 1, "indices");
  x.require(x.rank(0) >= 1 && x.rank(1) >= 1, "data and indices need an axis");
  const int64_t batch = x.attributes().integer("batch_dims", 0);
  x.require(batch >= 0 && batch < std::min(x.rank(0), x.rank(1)), fmt::format("batch_dims is {}", batch));
  const Dim& last = x.shape(1).back();
  if (!last.is_static()) x.fail("the number of its coordinates is only known at run time");
  const int64_t n = last.value();
  x.require(n >= 1 && n <= x.rank(0) - batch,
            fmt::format("{} coordinates for {} axes behind {} batch axes", n, x.rank(0), batch));
  for (int64_t d = 0; d < batch; ++d)
    x.require_equal(x.shape(0)[static_cast<size_t>(d)], x.shape(1)[static_cast<size_t>(d)],
                    fmt::format("batch axis {}", d));
  Shape out(x.shape(1).begin(), x.shape(1).end() - 1);
  out.insert(out.end(), x.shape(0).begin() + batch + n, x.shape(0).end());
  x.set(0, x.dtype(0), std::move(out));
  propagate_moved(x, {0});
}
void eval_gather_nd(Evaluation& e) {
  const Tensor &data = e.in[0], &indices = e.in[1];
  const int64_t batch = e.attributes().integer("batch_dims", 0), n = indices.shape().back();
  const std::vector<int64_t> strides = row_major_strides(data.shape());
  int64_t batches = 1, block = 1, picks = n == 0 ? 0 : indices.size() / n;
  for (int64_t d = 0; d < batch; ++d) batches *= data.dim(d);
  for (int64_t d = batch + n; d < data.rank(); ++d) block *= data.dim(d);
  const int64_t a_batch = batches == 0 ? 0 : data.size() / batches;
  std::vector<std::vector<int64_t>> maps(2);
  for (int64_t p = 0; p < picks; ++p) {
    int64_t at = p / (picks / batches) * a_batch;
    for (int64_t c = 0; c < n; ++c)
      at += checked_index(e, indices.integer(p * n + c), data.dim(batch + c)) *
            strides[static_cast<size_t>(batch + c)];
    maps[0].push_back(at);
  }
  for (int64_t b = 0; b < block; ++b) maps[1].push_back(b);
  Tensor flat = e.out[0].reshaped({picks, block});
  copy_mapped(data, maps, flat);
}

}  // namespace

const std::vector<Op>& ops_gather() {
  static const std::vector<Op> table = {
      {.name = "Gather", .min_inputs = 2, .max_inputs = 2, .infer = infer_gather, .eval = eval_gather},
      {.name = "GatherElements",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_gather_elements,
       .eval = eval_gather_elements},
      {.name = "GatherND",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_gather_nd,
       .eval = eval_gather_nd},
  };
  return table;
}

}  // namespace sinter
