// Support vector machines (ai.onnx.ml SVMRegressor and SVMClassifier 1), in double.
//
// A classifier without support vectors has one linear score a class. With them it compares each pair of
// classes and counts votes; where it has prob_a and prob_b, the scores of the pairs become probabilities of
// the classes (Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling",
// 2004, second method).
#pragma once
#include <cmath>
#include <cstdint>

#include "sinter/ml.h"

namespace sinter {

enum class SvmKernel { kLinear, kPoly, kRbf, kSigmoid };

struct SvmShape {
  SvmKernel kernel = SvmKernel::kLinear;
  double gamma = 0.0, coef0 = 0.0, degree = 0.0;
  std::int64_t supports = 0, features = 0, classes = 1;
  bool one_class = false;    // regressor: 1 or -1
  bool probability = false;  // prob_a and prob_b are given
  std::int64_t rhos = 1;
  MlPost post = MlPost::kNone;

  std::int64_t pairs() const { return classes * (classes - 1) / 2; }
  // Scores of a row before they are written, and after.
  std::int64_t scores() const { return supports == 0 || probability ? classes : pairs(); }
  std::int64_t width() const { return scores() == 1 && rhos == 1 && classes == 2 ? 2 : scores(); }
  // Doubles that a row of a classifier needs.
  std::int64_t work() const { return supports + pairs() + 2 * classes * classes + 3 * classes + 2; }
};

struct SvmModel {
  const float* vectors;       // [supports][features]
  const float* coefficients;  // [classes - 1][supports]; linear: [classes][features]
  const float* rho;
  const float *prob_a, *prob_b;   // one a pair, or null
  const std::int64_t* per_class;  // support vectors of each class, which stand in that order
  const std::int64_t* labels;     // [classes]
};

namespace svm_detail {

template <class X>
inline double kernel(const SvmShape& s, SvmKernel how, const X* x, const float* v) {
  double sum = 0.0;
  for (std::int64_t f = 0; f < s.features; ++f) {
    const double a = cast_to<double>(x[f]), b = static_cast<double>(v[f]);
    sum += how == SvmKernel::kRbf ? (a - b) * (a - b) : a * b;
  }
  switch (how) {
    case SvmKernel::kLinear: return sum;
    case SvmKernel::kRbf: return std::exp(-s.gamma * sum);
    case SvmKernel::kPoly: return std::pow(sum * s.gamma + s.coef0, s.degree);
    case SvmKernel::kSigmoid: return std::tanh(sum * s.gamma + s.coef0);
  }
  return sum;
}

// Probabilities p [k] of classes from r [k][k], r[i][j] that of i against j. `q` [k][k] and `qp` [k] are
// scratch.
inline void couple(std::int64_t k, const double* r, double* q, double* qp, double* p) {
  for (std::int64_t t = 0; t < k; ++t) {
    p[t] = 1.0 / static_cast<double>(k);
    q[t * k + t] = 0.0;
    for (std::int64_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  }
  for (std::int64_t round = 0; round < (k > 100 ? k : 100); ++round) {
    double all = 0.0, worst = 0.0;
    for (std::int64_t t = 0; t < k; ++t) {
      qp[t] = 0.0;
      for (std::int64_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      all += p[t] * qp[t];
    }
    for (std::int64_t t = 0; t < k; ++t)
      worst = std::fabs(qp[t] - all) > worst ? std::fabs(qp[t] - all) : worst;
    if (worst < 0.005 / static_cast<double>(k)) return;
    for (std::int64_t t = 0; t < k; ++t) {
      const double d = (all - qp[t]) / q[t * k + t];
      p[t] += d;
      all = (all + d * (d * q[t * k + t] + 2.0 * qp[t])) / ((1.0 + d) * (1.0 + d));
      for (std::int64_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + d * q[t * k + j]) / (1.0 + d);
        p[j] /= 1.0 + d;
      }
    }
  }
}

// The scores of all pairs, and the votes of each class.
template <class X>
inline void compare_pairs(const SvmShape& s, const SvmModel& m, const X* x, double* kernels, double* pairs,
                          double* votes) {
  for (std::int64_t v = 0; v < s.supports; ++v)
    kernels[v] = kernel(s, s.kernel, x, m.vectors + v * s.features);
  for (std::int64_t c = 0; c < s.classes; ++c) votes[c] = 0.0;
  std::int64_t at = 0;
  for (std::int64_t i = 0, first_i = 0; i < s.classes; first_i += m.per_class[i], ++i)
    for (std::int64_t j = i + 1, first_j = first_i + m.per_class[i]; j < s.classes;
         first_j += m.per_class[j], ++j) {
      double sum = static_cast<double>(m.rho[at]);
      for (std::int64_t v = first_i; v < first_i + m.per_class[i]; ++v)
        sum += static_cast<double>(m.coefficients[(j - 1) * s.supports + v]) * kernels[v];
      for (std::int64_t v = first_j; v < first_j + m.per_class[j]; ++v)
        sum += static_cast<double>(m.coefficients[i * s.supports + v]) * kernels[v];
      votes[sum > 0.0 ? i : j] += 1.0;
      pairs[at++] = sum;
    }
}

inline void pair_probabilities(const SvmShape& s, const SvmModel& m, const double* pairs, double* r) {
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < s.classes; ++i) {
    r[i * s.classes + i] = 0.0;
    for (std::int64_t j = i + 1; j < s.classes; ++j, ++at) {
      double p = 1.0 - ml_detail::logistic(pairs[at] * static_cast<double>(m.prob_a[at]) +
                                           static_cast<double>(m.prob_b[at]));
      p = p < 1e-7 ? 1e-7 : p > 1.0 - 1e-7 ? 1.0 - 1e-7 : p;
      r[i * s.classes + j] = p;
      r[j * s.classes + i] = 1.0 - p;
    }
  }
}

}  // namespace svm_detail

// y [rows]: what the machine says of each row.
template <class X>
inline void svm_regression(const SvmShape& s, const SvmModel& m, const X* x, std::int64_t rows, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += s.features) {
    double sum = static_cast<double>(m.rho[0]);
    if (s.supports == 0) sum += svm_detail::kernel(s, SvmKernel::kLinear, x, m.coefficients);
    for (std::int64_t v = 0; v < s.supports; ++v)
      sum += static_cast<double>(m.coefficients[v]) *
             svm_detail::kernel(s, s.kernel, x, m.vectors + v * s.features);
    if (s.one_class)
      sum = sum > 0.0 ? 1.0 : -1.0;
    else
      ml_post(s.post, &sum, 1);
    y[r] = static_cast<float>(sum);
  }
}

// labels [rows] and y [rows][s.width()]; `work` has s.work() doubles.
template <class X>
inline void svm_classes(const SvmShape& s, const SvmModel& m, const X* x, std::int64_t rows, double* work,
                        std::int64_t* labels, float* y) {
  const std::int64_t k = s.classes;
  double *kernels = work, *pairs = kernels + s.supports, *r = pairs + s.pairs(), *q = r + k * k;
  double *votes = q + k * k, *qp = votes + k, *scores = qp + k;
  for (std::int64_t row = 0; row < rows; ++row, x += s.features) {
    const double* judged = scores;
    std::int64_t count = s.scores();
    if (s.supports == 0) {
      for (std::int64_t c = 0; c < k; ++c)
        scores[c] = static_cast<double>(m.rho[0]) +
                    svm_detail::kernel(s, SvmKernel::kLinear, x, m.coefficients + c * s.features);
    } else {
      svm_detail::compare_pairs(s, m, x, kernels, pairs, votes);
      judged = votes;
      if (s.probability) {
        svm_detail::pair_probabilities(s, m, pairs, r);
        svm_detail::couple(k, r, q, qp, scores);
      }
    }
    double* out = s.supports > 0 && !s.probability ? pairs : scores;
    const std::int64_t best = ml_detail::greatest(judged, k);
    labels[row] = m.labels[best];
    if (s.rhos == 1 && k == 1) labels[row] = judged[best] > 0.0 ? 1 : 0;
    double two[2] = {-out[0], out[0]};
    if (s.width() != count) {  // one score of two classes
      if (s.post == MlPost::kLogistic) two[1] = ml_detail::logistic(two[1]);
      if (s.post != MlPost::kNone) two[0] = 1.0 - two[1];
      out = two;
      count = 2;
    } else {
      ml_post(s.post, out, count);
    }
    for (std::int64_t i = 0; i < count; ++i) *y++ = static_cast<float>(out[i]);
  }
}

}  // namespace sinter
