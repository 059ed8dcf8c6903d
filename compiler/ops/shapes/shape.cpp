// Shape and Size read a tensor's extents; Reshape, Flatten, Squeeze, Unsqueeze give its bytes another shape;
// Expand repeats axes of extent 1.
//
// Views (is_view) keep the row-major order of elements, so contents of small tensors pass through as they
// are.
#include <algorithm>

#include "ops/movement/movement.h"

namespace sinter {
namespace {

// Shape: int64[end - start], the extents of axes start to end; both count from the end where negative and are
// clamped (opset 15).
void infer_shape(Inference& x) {
  const int64_t rank = x.rank(0);
  auto position = [&](const char* name, int64_t fallback) {
    const int64_t at = x.attributes().integer(name, fallback);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = position("start", 0), end = std::max(start, position("end", rank));
  x.set(0, DType::kI64, {Dim(end - start)});
  const Shape& s = x.shape(0);
  x.out[0].elements.assign(s.begin() + start, s.begin() + end);
}
void eval_shape(Evaluation& e) {
  const int64_t rank = e.in[0].rank(), given = e.attributes().integer("start", 0);
  const int64_t start = std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank);
  for (int64_t i = 0; i < e.out[0].size(); ++i) e.out[0].as<int64_t>()[i] = e.in[0].dim(start + i);
}

void infer_size(Inference& x) {
  x.set(0, DType::kI64, {});
  x.out[0].elements = {product(x.shape(0))};
}
void eval_size(Evaluation& e) { e.out[0].as<int64_t>()[0] = e.in[0].size(); }

// What all views share: the contents stay, eval shares the bytes.
void set_view(Inference& x, Shape shape) {
  const bool small = x.in[0].elements.size() > 0 ||
                     (x.in[0].data && x.in[0].data->size() > 0 && x.in[0].data->size() <= Fact::kMaxElements);
  x.set(0, x.dtype(0), std::move(shape));
  if (small)
    if (auto contents = x.elements(0)) x.out[0].elements = std::move(*contents);
}
void eval_view(Evaluation& e) { e.out[0] = e.in[0].reshaped(e.out[0].shape()); }

// Reshape, where only the number of new extents is known: each is at most the number of elements (of an empty
// tensor they may be anything).
void reshape_unknown(Inference& x, int64_t rank) {
  const Dim total = product(x.shape(0));
  if (rank == 0) x.require_equal(total, 1, "elements of a scalar");
  if (rank <= 1) return set_view(x, rank == 0 ? Shape{} : Shape{total});
  const int64_t most = total.is(0) ? Interval::kUnbounded : total.hi();
  Shape out;
  for (int64_t d = 0; d < rank; ++d) out.push_back(x.operand_extent(fmt::format("extent{}", d), most));
  x.require_equal(product(out), total, "number of elements");
  set_view(x, std::move(out));
}

// Reshape: -1 takes what is left, 0 copies the input's extent unless allowzero (opsets 5, 14).
void infer_reshape(Inference& x) {
  const int64_t rank = operand_length(x, 1, "shape");
  const auto wanted = x.elements(1);
  if (!wanted) return reshape_unknown(x, rank);
  const bool allow_zero = x.attributes().integer("allowzero", 0) != 0;
  const Shape& in = x.shape(0);
  std::vector<bool> copied(std::max(in.size(), wanted->size()), false);
  Shape out;
  std::optional<size_t> open;
  bool zero = false;
  for (size_t d = 0; d < wanted->size(); ++d) {
    const Dim& w = (*wanted)[d];
    if (w.is(-1)) {
      x.require(!open, "more than one extent of its shape is -1");
      open = d;
    } else if (w.is(0) && !allow_zero) {
      x.require(d < in.size(),
                fmt::format("extent {} of its shape copies an axis that {} lacks", d, text(in)));
      copied[d] = true;
    } else if (w.hi() < 0) {
      x.fail(fmt::format("extent {} of its shape is {}", d, w.text()));
    }
    zero = zero || w.is(0);
    out.push_back(copied[d] ? in[d] : w);
  }
  x.require(!(open && zero && allow_zero), "its shape has both 0 and -1");
  // Copied axes are on both sides and cancel, also where they are 0.
  Dim left(1), given(1);
  for (size_t d = 0; d < in.size(); ++d)
    if (!copied[d]) left = left * in[d];
  for (size_t d = 0; d < out.size(); ++d)
    if (!copied[d] && d != open) given = given * out[d];
  const std::string what = fmt::format("{} reshaped to {}", text(in), text(*wanted));
  if (open) {
    x.require(!given.is(0), what + ": nothing tells what -1 is");
    out[*open] = exact_div(left, given);
    given = given * out[*open];
  }
  if (!(product(in) == product(out))) x.require_equal(left, given, what);
  set_view(x, std::move(out));
}

// Flatten: [d0, d1, …] to [d0 * … * d(axis-1), d(axis) * …]; axis in [-rank, rank].
void infer_flatten(Inference& x) {
  const int64_t rank = x.rank(0);
  int64_t axis = x.attributes().integer("axis", 1);
  x.require(axis >= -rank && axis <= rank,
            fmt::format("axis {} out of range for {}", axis, text(x.shape(0))));
  if (axis < 0) axis += rank;
  const auto at = static_cast<size_t>(axis);
  set_view(x, {product(x.shape(0), 0, at), product(x.shape(0), at)});
}

// Squeeze and Unsqueeze along axes that the run tells: as many extents as there are, each one of the input's
// or 1.
void view_by_data(Inference& x, int64_t rank) {
  x.require(rank >= 0, fmt::format("{} has fewer axes than are squeezed", text(x.shape(0))));
  Dim most(1);
  for (const Dim& d : x.shape(0)) most = max(most, d);
  Shape out;
  for (int64_t d = 0; d < rank; ++d) out.push_back(x.operand_extent(fmt::format("extent{}", d), most.hi()));
  set_view(x, std::move(out));
}

// Squeeze: the given axes, of extent 1, go; without axes every axis that is 1.
void infer_squeeze(Inference& x) {
  const Shape& in = x.shape(0);
  std::vector<bool> gone(in.size(), false);
  if (x.has(1)) {
    const int64_t count = operand_length(x, 1, "axes");
    if (!x.integers(1)) return view_by_data(x, x.rank(0) - count);
    for (int64_t a : distinct_axes(x, known_integers(x, 1, "axes"), x.rank(0))) {
      const auto axis = static_cast<size_t>(a);
      x.require_equal(in[axis], 1, fmt::format("squeezed axis {}", axis));
      gone[axis] = true;
    }
  } else {
    for (size_t d = 0; d < in.size(); ++d) {
      gone[d] = in[d].is(1);
      // The rank would depend on the data: a dynamic axis stays and may not be 1.
      if (!in[d].is_static() && in[d].lo() <= 1)
        x.require_equal(max(in[d], 2), in[d], fmt::format("axis {}, kept by a Squeeze without axes", d));
    }
  }
  Shape out;
  for (size_t d = 0; d < in.size(); ++d)
    if (!gone[d]) out.push_back(in[d]);
  set_view(x, std::move(out));
}

void infer_unsqueeze(Inference& x) {
  const int64_t rank = x.rank(0) + operand_length(x, 1, "axes");
  x.require(rank <= 64, "more than 64 axes");
  if (!x.integers(1)) return view_by_data(x, rank);
  std::vector<int64_t> axes = distinct_axes(x, known_integers(x, 1, "axes"), rank);
  std::sort(axes.begin(), axes.end());
  Shape out = x.shape(0);
  for (int64_t a : axes) out.insert(out.begin() + a, Dim(1));
  set_view(x, std::move(out));
}

// Expand: broadcasts with `shape`, both ways.
void infer_expand(Inference& x) {
  operand_length(x, 1, "shape");
  const Shape wanted = known_elements(x, 1, "shape");
  for (const Dim& d : wanted)
    x.require(d.hi() >= 0, fmt::format("its shape has the negative extent {}", d.text()));
  x.set(0, x.dtype(0), x.broadcast({&x.shape(0), &wanted}));
  propagate_moved(x, {0});
}
void eval_expand(Evaluation& e) {
  const Tensor& in = e.in[0];
  const std::vector<int64_t> dense = row_major_strides(in.shape());
  std::vector<int64_t> strides(e.out[0].shape().size(), 0);
  const size_t added = strides.size() - dense.size();
  for (size_t d = 0; d < dense.size(); ++d)
    if (in.shape()[d] != 1) strides[d + added] = dense[d];
  copy_strided(in, 0, strides, e.out[0]);
}

}  // namespace

const std::vector<Op>& ops_shape() {
  static const std::vector<Op> table = {
      {.name = "Shape", .infer = infer_shape, .eval = eval_shape},
      {.name = "Size", .infer = infer_size, .eval = eval_size},
      {.name = "Reshape",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_reshape,
       .eval = eval_view,
       .is_view = true},
      {.name = "Flatten", .infer = infer_flatten, .eval = eval_view, .is_view = true},
      {.name = "Squeeze", .max_inputs = 2, .infer = infer_squeeze, .eval = eval_view, .is_view = true},
      {.name = "Unsqueeze",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_unsqueeze,
       .eval = eval_view,
       .is_view = true},
      {.name = "Expand", .min_inputs = 2, .max_inputs = 2, .infer = infer_expand, .eval = eval_expand},
  };
  return table;
}

}  // namespace sinter
