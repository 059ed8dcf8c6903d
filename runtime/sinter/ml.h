// The operators of domain ai.onnx.ml on numbers: scaling, encoding, linear models.
//
// Matrices are [rows][features]; inputs of any number type are computed in double, results are floats.
// Tables come with the model.
#pragma once
#include <cmath>
#include <cstdint>

#include "sinter/scalar.h"

namespace sinter {

// What turns the scores of a row into its outputs.
enum class MlPost { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

namespace ml_detail {

inline double logistic(double v) {
  const double p = 1.0 / (1.0 + std::exp(-std::fabs(v)));
  return v < 0.0 ? 1.0 - p : p;
}

// The quantile of the normal distribution, by Winitzki's approximation of erf's inverse, as ONNX Runtime has
// it. NaN outside of [0, 1].
inline double probit(double p) {
  const double x = 2.0 * p - 1.0, rest = (1.0 - x) * (1.0 + x);
  const double log = std::log(rest), a = 2.0 / (3.14159265358979323846 * 0.147) + 0.5 * log;
  const double root = std::sqrt(std::sqrt(a * a - log / 0.147) - a);
  return 1.41421356 * (x < 0.0 ? -root : root);
}

// exp(s - max) / sum; `zero`: scores of 0 count as 0, not as exp(0).
inline void softmax(double* s, std::int64_t n, bool zero) {
  double top = s[0], sum = 0.0;
  for (std::int64_t i = 1; i < n; ++i) top = s[i] > top ? s[i] : top;
  for (std::int64_t i = 0; i < n; ++i) {
    const bool none = zero && std::fabs(s[i]) <= 1e-7;
    s[i] = none ? s[i] * std::exp(-top) : std::exp(s[i] - top);
    sum += s[i];
  }
  for (std::int64_t i = 0; i < n; ++i) s[i] = sum > 0.0 || sum < 0.0 ? s[i] / sum : zero ? 0.5 : s[i] / sum;
}

inline std::int64_t greatest(const double* s, std::int64_t n) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n; ++i)
    if (s[i] > s[best]) best = i;
  return best;
}

}  // namespace ml_detail

// Applied to the n scores of a row. Of a single score only the probit is taken: ONNX Runtime has it so, and
// exporters rely on it.
inline void ml_post(MlPost how, double* s, std::int64_t n) {
  if (n == 1 && how != MlPost::kProbit) return;
  switch (how) {
    case MlPost::kNone: return;
    case MlPost::kSoftmax: return ml_detail::softmax(s, n, false);
    case MlPost::kSoftmaxZero: return ml_detail::softmax(s, n, true);
    case MlPost::kLogistic:
      for (std::int64_t i = 0; i < n; ++i) s[i] = ml_detail::logistic(s[i]);
      return;
    case MlPost::kProbit:
      for (std::int64_t i = 0; i < n; ++i) s[i] = ml_detail::probit(s[i]);
      return;
  }
}

// Scaler: (x - offset) * scale; a table of one element serves all features.
template <class X>
inline void ml_scale(const X* x, std::int64_t rows, std::int64_t features, const float* offset,
                     std::int64_t offsets, const float* scale, std::int64_t scales, float* y) {
  for (std::int64_t i = 0; i < rows * features; ++i) {
    const std::int64_t f = i % features;
    y[i] = (cast_to<float>(x[i]) - offset[offsets == 1 ? 0 : f]) * scale[scales == 1 ? 0 : f];
  }
}

enum class MlNorm { kMax, kL1, kL2 };
// Normalizer: each row divided by its greatest element, the sum of its magnitudes or the root of the sum of
// its squares; rows where that is 0 stay.
template <class X>
inline void ml_normalize(const X* x, std::int64_t rows, std::int64_t features, MlNorm how, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += features, y += features) {
    double norm = 0.0;
    for (std::int64_t f = 0; f < features; ++f) {
      const double v = cast_to<double>(x[f]);
      if (how == MlNorm::kMax)
        norm = f == 0 || v > norm ? v : norm;
      else
        norm += how == MlNorm::kL1 ? std::fabs(v) : v * v;
    }
    if (how == MlNorm::kL2) norm = std::sqrt(norm);
    for (std::int64_t f = 0; f < features; ++f)
      y[f] = cast_to<float>(norm > 0.0 || norm < 0.0 ? cast_to<double>(x[f]) / norm : cast_to<double>(x[f]));
  }
}

// Imputer: elements equal to `replaced` (NaN equals NaN) become the feature's value.
template <class X>
inline void ml_impute(const X* x, std::int64_t rows, std::int64_t features, X replaced, const X* values,
                      std::int64_t count, X* y) {
  for (std::int64_t i = 0; i < rows * features; ++i) {
    const bool hit = (!(x[i] < replaced) && !(x[i] > replaced) && x[i] == x[i]) == (replaced == replaced) &&
                     (replaced == replaced || x[i] != x[i]);
    y[i] = hit ? values[count == 1 ? 0 : i % features] : x[i];
  }
}

// LabelEncoder: the value behind each element's key; keys ascending, NaN last.
template <class K, class V>
inline void ml_encode(const K* x, std::int64_t n, const K* keys, const V* values, std::int64_t count, V other,
                      V* y) {
  const auto before = [](K a, K b) { return a < b || (b != b && a == a); };
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t lo = 0, hi = count;  // the first key that is not before x[i]
    while (lo < hi) {
      const std::int64_t mid = lo + (hi - lo) / 2;
      if (before(keys[mid], x[i]))
        lo = mid + 1;
      else
        hi = mid;
    }
    y[i] = lo < count && !before(x[i], keys[lo]) ? values[lo] : other;
  }
}

// OneHotEncoder: y [n][count], 1 at the category that x is; false where it is none and one is required.
template <class X>
inline bool ml_one_hot(const X* x, std::int64_t n, const std::int64_t* categories, std::int64_t count,
                       bool required, float* y) {
  for (std::int64_t i = 0; i < n; ++i, y += count) {
    const std::int64_t v = cast_to<std::int64_t>(x[i]);
    bool any = false;
    for (std::int64_t c = 0; c < count; ++c) {
      y[c] = v == categories[c] ? 1.0f : 0.0f;
      any = any || v == categories[c];
    }
    if (required && !any) return false;
  }
  return true;
}

// ArrayFeatureExtractor: y [rows][count], the features that `indices` name; false where one does not exist.
template <class X>
inline bool ml_extract(const X* x, std::int64_t rows, std::int64_t features, const std::int64_t* indices,
                       std::int64_t count, X* y) {
  for (std::int64_t k = 0; k < count; ++k)
    if (indices[k] < 0 || indices[k] >= features) return false;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < count; ++k) y[r * count + k] = x[r * features + indices[k]];
  return true;
}

// FeatureVectorizer, one input: the first `wide` features of each row, filled with 0, go to y, whose rows are
// `stride` apart.
template <class X>
inline void ml_place(const X* x, std::int64_t rows, std::int64_t features, std::int64_t wide,
                     std::int64_t stride, float* y) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t f = 0; f < wide; ++f)
      y[r * stride + f] = f < features ? cast_to<float>(x[r * features + f]) : 0.0f;
}

// scores [targets]: each the product of a row with the target's coefficients, plus its intercept (or null).
template <class X>
inline void ml_products(const X* x, std::int64_t features, const float* coefficients, const float* intercepts,
                        std::int64_t targets, double* scores) {
  for (std::int64_t t = 0; t < targets; ++t) {
    double sum = intercepts ? static_cast<double>(intercepts[t]) : 0.0;
    for (std::int64_t f = 0; f < features; ++f)
      sum += cast_to<double>(x[f]) * static_cast<double>(coefficients[t * features + f]);
    scores[t] = sum;
  }
}

// LinearRegressor. `scores`: `targets` doubles.
template <class X>
inline void ml_linear_regression(const X* x, std::int64_t rows, std::int64_t features,
                                 const float* coefficients, const float* intercepts, std::int64_t targets,
                                 MlPost post, double* scores, float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    ml_products(x + r * features, features, coefficients, intercepts, targets, scores);
    ml_post(post, scores, targets);
    for (std::int64_t t = 0; t < targets; ++t) *y++ = static_cast<float>(scores[t]);
  }
}

// LinearClassifier: y [rows][classes], the label of the best class in `labels`. One target for two classes is
// the second one's score s, and 1 - s the first one's; where the transform is the logistic function it comes
// before that. `scores`: classes doubles.
template <class X>
inline void ml_linear_classes(const X* x, std::int64_t rows, std::int64_t features, const float* coefficients,
                              const float* intercepts, std::int64_t targets, MlPost post,
                              const std::int64_t* classes, std::int64_t count, double* scores,
                              std::int64_t* labels, float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    ml_products(x + r * features, features, coefficients, intercepts, targets, scores);
    if (targets == 1) {
      const double s = scores[0];
      labels[r] = count == 2 ? classes[s > 0.0 ? 1 : 0] : s > 0.0 ? classes[0] : 0;
      scores[count - 1] = post == MlPost::kLogistic ? ml_detail::logistic(s) : s;
      if (count == 2) scores[0] = 1.0 - scores[1];
    } else {
      labels[r] = classes[ml_detail::greatest(scores, count)];
      ml_post(post, scores, count);
    }
    for (std::int64_t c = 0; c < count; ++c) *y++ = static_cast<float>(scores[c]);
  }
}

}  // namespace sinter
