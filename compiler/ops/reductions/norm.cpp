// Normalisations: y = (x - mean) / sqrt(variance + epsilon) * scale + bias over this or that set of elements,
// and their relatives. All compute in double and round once, whatever stash_type says; `stash_type` still
// decides the type of LayerNormalization's second and third output.
//
// Layouts: [N, C, spatial...], or [N, spatial..., C] with channels_last (InstanceNormalization, LRN).
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/movement/movement.h"
#include "ops/op.h"

namespace sinter {
namespace {

// A tensor's elements as doubles, and back.
std::vector<double> values(const Tensor& t) {
  std::vector<double> v(static_cast<size_t>(t.size()));
  with_type(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (size_t i = 0; i < v.size(); ++i) {
      if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
        v[i] = static_cast<double>(to_float(t.as<T>()[i]));
      else
        v[i] = static_cast<double>(t.as<T>()[i]);
    }
  });
  return v;
}
void store(Tensor& t, const std::vector<double>& v) {
  with_type(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (size_t i = 0; i < v.size(); ++i) {
      if constexpr (std::is_same_v<T, half>)
        t.as<T>()[i] = to_half(static_cast<float>(v[i]));
      else if constexpr (std::is_same_v<T, bfloat16>)
        t.as<T>()[i] = to_bfloat16(static_cast<float>(v[i]));
      else
        t.as<T>()[i] = static_cast<T>(v[i]);
    }
  });
}

void require_floats(const Inference& x) {
  for (size_t i = 0; i < own_inputs(x); ++i)
    x.require(!x.has(i) || is_float(x.dtype(i)), fmt::format("input {} is {}", i, name_of(x.dtype(i))));
}
void require_type_of_x(const Inference& x) {
  require_floats(x);
  for (size_t i = 1; i < own_inputs(x); ++i)
    x.require(!x.has(i) || x.dtype(i) == x.dtype(0),
              fmt::format("inputs of types {} and {}", name_of(x.dtype(0)), name_of(x.dtype(i))));
}
bool channels_last(const Attributes& a) { return a.integer("channels_last", 0) != 0; }
// Inputs 1 and up are vectors of one element per channel.
void require_channels(Inference& x, const Dim& channels) {
  for (size_t i = 1; i < own_inputs(x); ++i) {
    if (!x.has(i)) continue;
    x.require(x.rank(i) == 1, fmt::format("input {} is not a vector", i));
    x.require_equal(x.shape(i)[0], channels, fmt::format("elements of input {} and channels", i));
  }
}

// Mean and population variance of n elements, each `stride` apart.
struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const double* x, int64_t n, int64_t stride = 1) {
  Moments m;
  for (int64_t i = 0; i < n; ++i) m.mean += x[i * stride];
  m.mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) m.variance += (x[i * stride] - m.mean) * (x[i * stride] - m.mean);
  m.variance /= static_cast<double>(n);
  return m;
}
double epsilon(const Evaluation& e) { return static_cast<double>(e.attributes().real("epsilon", 1e-5f)); }

// --- BatchNormalization: statistics of each channel, given or (training_mode) of this very batch

void infer_batch(Inference& x) {
  require_floats(x);
  x.require(x.dtype(1) == x.dtype(2), "scale and B are of different types");
  x.require(x.dtype(3) == x.dtype(4), "mean and variance are of different types");
  x.require(x.rank(0) >= 1, "X is a scalar");
  require_channels(x, x.rank(0) > 1 ? x.shape(0)[1] : Dim(1));
  const bool training = x.attributes().integer("training_mode", 0) != 0;
  for (size_t i = 1; i < x.out.size(); ++i) {
    x.require(!x.out[i].present || training, fmt::format("output {} exists in training mode only", i));
    if (x.out[i].present) x.set(i, x.dtype(3), Shape(x.shape(3)));
  }
  x.same(0, 0);
}
void eval_batch(Evaluation& e) {
  const Tensor& in = e.in[0];
  const bool training = e.attributes().integer("training_mode", 0) != 0;
  std::vector<double> x = values(in), scale = values(e.in[1]), bias = values(e.in[2]);
  std::vector<double> mean = values(e.in[3]), variance = values(e.in[4]);
  const int64_t channels = in.rank() > 1 ? in.dim(1) : 1, n = in.dim(0);
  const int64_t area = n * channels == 0 ? 0 : in.size() / (n * channels);
  for (int64_t c = 0; training && c < channels; ++c) {
    std::vector<double> all;
    for (int64_t b = 0; b < n; ++b) {
      const auto plane = x.begin() + (b * channels + c) * area;
      all.insert(all.end(), plane, plane + area);
    }
    const Moments m = moments(all.data(), static_cast<int64_t>(all.size()));
    mean[static_cast<size_t>(c)] = m.mean;
    variance[static_cast<size_t>(c)] = m.variance;
  }
  for (int64_t plane = 0; area > 0 && plane < n * channels; ++plane) {
    const size_t c = static_cast<size_t>(plane % channels);
    const double deviation = std::sqrt(variance[c] + epsilon(e));
    for (size_t i = static_cast<size_t>(plane * area); i < static_cast<size_t>((plane + 1) * area); ++i)
      x[i] = (x[i] - mean[c]) / deviation * scale[c] + bias[c];
  }
  if (e.node.has_output(0)) store(e.out[0], x);
  const double keep = static_cast<double>(e.attributes().real("momentum", 0.9f));
  for (size_t o = 1; o < e.out.size(); ++o) {  // the running statistics move towards this batch's
    if (!e.node.has_output(o)) continue;
    std::vector<double> running = values(e.in[o + 2]);
    const std::vector<double>& batch = o == 1 ? mean : variance;
    for (size_t c = 0; c < running.size(); ++c) running[c] = running[c] * keep + batch[c] * (1 - keep);
    store(e.out[o], running);
  }
}

// --- InstanceNormalization and GroupNormalization: statistics of each group of channels of each sample

void infer_instance(Inference& x) {
  require_type_of_x(x);
  x.require(x.rank(0) >= 2, "X has less than two axes");
  const size_t c = channels_last(x.attributes()) ? x.shape(0).size() - 1 : 1;
  require_channels(x, x.shape(0)[c]);
  x.same(0, 0);
}
void infer_group(Inference& x) {
  require_type_of_x(x);
  x.require(x.rank(0) >= 2, "X has less than two axes");
  const int64_t groups = x.attributes().integer("num_groups", 0);
  x.require(groups > 0, fmt::format("num_groups is {}", groups));
  const Dim& channels = x.shape(0)[channels_last(x.attributes()) ? x.shape(0).size() - 1 : 1];
  x.require_equal(mod(channels, groups), 0, "channels modulo num_groups");
  require_channels(x, channels);
  x.same(0, 0);
}
// In place, [N, C, area]; scale and bias of each channel.
void normalize_groups(std::vector<double>& x, int64_t n, int64_t channels, int64_t area, int64_t groups,
                      const std::vector<double>& scale, const std::vector<double>& bias, double eps) {
  const int64_t each = channels / groups * area;
  for (int64_t g = 0; each > 0 && g < n * groups; ++g) {
    double* block = x.data() + g * each;
    const Moments m = moments(block, each);
    const double factor = 1 / std::sqrt(m.variance + eps);
    for (int64_t i = 0; i < each; ++i) {
      const size_t c = static_cast<size_t>((g * each + i) / area % channels);
      block[i] = (block[i] - m.mean) * factor * scale[c] + bias[c];
    }
  }
}
// The permutation that brings the last axis to place 1, or axis 1 to the last place.
std::vector<int64_t> move_channels(int64_t rank, bool to_last) {
  std::vector<int64_t> p(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t first = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
    const int64_t last = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    p[static_cast<size_t>(i)] = to_last ? last : first;
  }
  return p;
}
// Runs f on [N, C, spatial...] whatever the node's layout is.
template <class F>
void with_channels_first(Evaluation& e, F f) {
  const int64_t rank = e.in[0].rank();
  if (!channels_last(e.attributes())) return f(e.in[0], e.out[0]);
  const Tensor in = e.in[0].transposed(move_channels(rank, false));
  Tensor out(in.dtype(), in.shape());
  f(in, out);
  e.out[0] = out.transposed(move_channels(rank, true));
}
void eval_groups(Evaluation& e, bool instance) {
  with_channels_first(e, [&](const Tensor& in, Tensor& out) {
    std::vector<double> x = values(in);
    const int64_t n = in.dim(0), channels = in.dim(1);
    const int64_t groups = instance ? channels : e.attributes().integer("num_groups", 0);
    if (in.size() > 0)
      normalize_groups(x, n, channels, in.size() / n / channels, groups, values(e.in[1]), values(e.in[2]),
                       epsilon(e));
    store(out, x);
  });
}
void eval_instance(Evaluation& e) { eval_groups(e, true); }
void eval_group(Evaluation& e) { eval_groups(e, false); }

// --- LayerNormalization and RMSNormalization: over the axes from `axis` on; scale and bias broadcast to X

void require_broadcast_to_x(Inference& x, size_t i) {
  x.require(x.rank(i) <= x.rank(0), fmt::format("input {} has more axes than X", i));
  const Shape both = x.broadcast({&x.shape(0), &x.shape(i)});
  for (size_t d = 0; d < both.size(); ++d)
    x.require_equal(x.shape(0)[d], both[d], fmt::format("axis {} of input {}", d, i));
}
DType stash_type(const Inference& x) {
  const int64_t stash = x.attributes().integer("stash_type", 1);
  const DType t = stash < 0 || stash > 100 ? DType::kUndefined : dtype_of_onnx(static_cast<int>(stash));
  x.require(is_float(t), fmt::format("stash_type is {}", stash));
  return t;
}
void infer_layer(Inference& x) {
  require_type_of_x(x);
  const size_t axis = static_cast<size_t>(x.axis("axis", -1, x.rank(0)));
  for (size_t i = 1; i < own_inputs(x); ++i)
    if (x.has(i)) require_broadcast_to_x(x, i);
  x.same(0, 0);
  Shape s = x.shape(0);
  std::fill(s.begin() + static_cast<std::ptrdiff_t>(axis), s.end(), Dim(1));
  const DType t = stash_type(x);
  for (size_t i = 1; i < x.out.size(); ++i) x.set(i, t, s);
}
void infer_rms(Inference& x) {  // the types of X and scale may differ; Y has scale's
  require_floats(x);
  x.axis("axis", -1, x.rank(0));
  stash_type(x);
  require_broadcast_to_x(x, 1);
  x.set(0, x.dtype(1), Shape(x.shape(0)));
}
// t's elements repeated until they fill `shape`.
std::vector<double> broadcast_values(const Tensor& t, const std::vector<int64_t>& shape) {
  const std::vector<double> own = values(t);
  int64_t size = 1;
  for (int64_t d : shape) size *= d;
  std::vector<double> v(static_cast<size_t>(size));
  const std::vector<int64_t> strides = row_major_strides(shape), from = row_major_strides(t.shape());
  const size_t shift = shape.size() - t.shape().size();
  for (int64_t i = 0; i < size; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < from.size(); ++d)
      if (t.shape()[d] != 1) at += i / strides[d + shift] % shape[d + shift] * from[d];
    v[static_cast<size_t>(i)] = own[static_cast<size_t>(at)];
  }
  return v;
}
void eval_layer(Evaluation& e, bool center) {
  const Tensor& in = e.in[0];
  const int64_t given = e.attributes().integer("axis", -1), axis = given < 0 ? given + in.rank() : given;
  int64_t rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= in.dim(d);
  const int64_t n = rows == 0 ? 0 : in.size() / rows;
  std::vector<double> x = values(in), means, inverse;
  for (int64_t r = 0; r < rows; ++r) {
    double* row = x.data() + r * n;
    Moments m = moments(row, n);
    if (!center) m = {0, m.variance + m.mean * m.mean};
    const double factor = 1 / std::sqrt(m.variance + epsilon(e));
    for (int64_t i = 0; i < n; ++i) row[i] = (row[i] - m.mean) * factor;
    means.push_back(m.mean);
    inverse.push_back(factor);
  }
  const std::vector<double> scale = broadcast_values(e.in[1], in.shape());
  for (size_t i = 0; i < x.size(); ++i) x[i] *= scale[i];
  if (e.has(2)) {
    const std::vector<double> bias = broadcast_values(e.in[2], in.shape());
    for (size_t i = 0; i < x.size(); ++i) x[i] += bias[i];
  }
  if (e.node.has_output(0)) store(e.out[0], x);
  if (e.node.has_output(1)) store(e.out[1], means);
  if (e.node.has_output(2)) store(e.out[2], inverse);
}
void eval_layer_normalization(Evaluation& e) { eval_layer(e, true); }
void eval_rms(Evaluation& e) { eval_layer(e, false); }

// --- LpNormalization: each line along the axis divided by its 1- or 2-norm; a line of zeros stays

void infer_lp(Inference& x) {
  require_floats(x);
  x.axis("axis", -1, x.rank(0));
  const int64_t p = x.attributes().integer("p", 2);
  x.require(p == 1 || p == 2, fmt::format("p is {}, not 1 or 2", p));
  x.same(0, 0);
}
void eval_lp(Evaluation& e) {
  const Tensor& in = e.in[0];
  const int64_t given = e.attributes().integer("axis", -1), axis = given < 0 ? given + in.rank() : given;
  const bool euclidean = e.attributes().integer("p", 2) == 2;
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < in.rank(); ++d) inner *= in.dim(d);
  const int64_t n = in.dim(axis);
  std::vector<double> x = values(in);
  for (int64_t l = 0; n > 0 && l < in.size() / n; ++l) {
    double* line = x.data() + l / inner * inner * n + l % inner;
    double norm = 0;
    for (int64_t k = 0; k < n; ++k)
      norm += euclidean ? line[k * inner] * line[k * inner] : std::fabs(line[k * inner]);
    if (euclidean) norm = std::sqrt(norm);
    for (int64_t k = 0; k < n; ++k) line[k * inner] = norm == 0 ? 0 : line[k * inner] / norm;
  }
  store(e.out[0], x);
}

// --- MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over the given axes

void infer_mvn(Inference& x) {
  require_floats(x);
  std::vector<bool> seen(x.shape(0).size(), false);
  for (int64_t a : x.attributes().integers("axes", {0, 2, 3})) {
    const size_t i = static_cast<size_t>(x.check_axis(a, x.rank(0)));
    x.require(!seen[i], fmt::format("axis {} is named twice", a));
    seen[i] = true;
  }
  x.same(0, 0);
}
void eval_mvn(Evaluation& e) {
  const Tensor& in = e.in[0];
  std::vector<bool> reduced(in.shape().size(), false);
  for (int64_t a : e.attributes().integers("axes", {0, 2, 3}))
    reduced[static_cast<size_t>(a < 0 ? a + in.rank() : a)] = true;
  // Reduced axes to the back, so that each set of elements is one line.
  std::vector<int64_t> perm, back(reduced.size());
  for (const bool last : {false, true})
    for (size_t d = 0; d < reduced.size(); ++d)
      if (reduced[d] == last) perm.push_back(static_cast<int64_t>(d));
  int64_t n = 1;
  for (size_t d = 0; d < perm.size(); ++d) {
    back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
    if (reduced[d]) n *= in.shape()[d];
  }
  Tensor t = in.transposed(perm);
  std::vector<double> x = values(t);
  for (int64_t begin = 0; begin < in.size(); begin += n) {
    const Moments m = moments(x.data() + begin, n);
    for (int64_t i = begin; i < begin + n; ++i)
      x[static_cast<size_t>(i)] = (x[static_cast<size_t>(i)] - m.mean) / (std::sqrt(m.variance) + 1e-9);
  }
  store(t, x);
  e.out[0] = t.transposed(back);
}

// --- LRN: x / (bias + alpha / size * sum of squares of the `size` channels around)^beta

void infer_lrn(Inference& x) {
  require_floats(x);
  x.require(x.rank(0) >= 2, "X has less than two axes");
  const int64_t size = x.attributes().integer("size", 0);
  x.require(size > 0, fmt::format("size is {}", size));
  x.same(0, 0);
}
void eval_lrn(Evaluation& e) {
  const Attributes& a = e.attributes();
  const int64_t size = a.integer("size", 1), below = (size - 1) / 2, above = size - 1 - below;
  const double alpha = static_cast<double>(a.real("alpha", 1e-4f)),
               beta = static_cast<double>(a.real("beta", 0.75f));
  const double bias = static_cast<double>(a.real("bias", 1)), weight = alpha / static_cast<double>(size);
  with_channels_first(e, [&](const Tensor& in, Tensor& out) {
    const std::vector<double> x = values(in);
    std::vector<double> y(x.size());
    const int64_t channels = in.dim(1), area = x.empty() ? 0 : in.size() / in.dim(0) / channels;
    for (int64_t i = 0; i < in.size(); ++i) {
      const int64_t c = i / area % channels;
      double sum = 0;
      for (int64_t k = std::max<int64_t>(0, c - below); k <= std::min(channels - 1, c + above); ++k) {
        const double v = x[static_cast<size_t>(i + (k - c) * area)];
        sum += v * v;
      }
      y[static_cast<size_t>(i)] = x[static_cast<size_t>(i)] / std::pow(bias + weight * sum, beta);
    }
    store(out, y);
  });
}

}  // namespace

const std::vector<Op>& ops_norm() {
  static const std::vector<Op> table = {
      {.name = "BatchNormalization",
       .min_inputs = 5,
       .max_inputs = 5,
       .max_outputs = 3,
       .infer = infer_batch,
       .eval = eval_batch},
      {.name = "InstanceNormalization",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_instance,
       .eval = eval_instance},
      {.name = "GroupNormalization",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_group,
       .eval = eval_group},
      {.name = "LayerNormalization",
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 3,
       .infer = infer_layer,
       .eval = eval_layer_normalization},
      {.name = "RMSNormalization", .min_inputs = 2, .max_inputs = 2, .infer = infer_rms, .eval = eval_rms},
      {.name = "LpNormalization", .infer = infer_lp, .eval = eval_lp},
      {.name = "MeanVarianceNormalization", .infer = infer_mvn, .eval = eval_mvn},
      {.name = "LRN", .infer = infer_lrn, .eval = eval_lrn},
  };
  return table;
}

}  // namespace sinter
