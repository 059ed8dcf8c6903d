// Ensembles of decision trees (ai.onnx.ml TreeEnsemble 5, TreeEnsembleRegressor and ...Classifier 3).
//
// All nodes lie in one array. A leaf names a run of (target, weight) pairs; what the trees give for a target
// is added up (or the least, greatest, mean), in double. Comparisons are exact: features and thresholds of
// any float type are compared as doubles.
#pragma once
#include <cstdint>

#include "sinter/ml.h"

namespace sinter {

enum class TreeTest : std::int32_t { kLeaf, kAtMost, kLess, kAtLeast, kGreater, kEqual, kUnequal };

struct TreeNode {
  double value;
  TreeTest test;
  std::int32_t feature;
  std::int32_t yes, no;         // nodes; of a leaf: its first weight and how many it has
  std::int32_t missing_is_yes;  // NaN passes whatever the test
  std::int32_t unused;
};
struct TreeWeight {
  double weight;
  std::int64_t target;
};
enum class TreeSum { kAverage, kSum, kMin, kMax };

struct Forest {
  const TreeNode* nodes;
  const TreeWeight* weights;
  const std::int32_t* roots;
  std::int64_t trees, targets;
  TreeSum sum;
};

template <class X>
inline const TreeNode& tree_leaf(const Forest& f, std::int32_t root, const X* x) {
  const TreeNode* n = f.nodes + root;
  while (n->test != TreeTest::kLeaf) {
    const double v = cast_to<double>(x[n->feature]);
    bool yes = false;
    switch (n->test) {
      case TreeTest::kAtMost: yes = v <= n->value; break;
      case TreeTest::kLess: yes = v < n->value; break;
      case TreeTest::kAtLeast: yes = v >= n->value; break;
      case TreeTest::kGreater: yes = v > n->value; break;
      case TreeTest::kEqual: yes = v >= n->value && v <= n->value; break;
      case TreeTest::kUnequal: yes = !(v >= n->value && v <= n->value); break;
      case TreeTest::kLeaf: break;
    }
    yes = yes || (v != v && n->missing_is_yes != 0);
    n = f.nodes + (yes ? n->yes : n->no);
  }
  return *n;
}

// What the trees give for one row: scores [targets] (0 where no leaf names the target) plus `base` (or null).
template <class X>
inline void forest_scores(const Forest& f, const X* x, const double* base, double* scores,
                          std::int32_t* seen) {
  for (std::int64_t t = 0; t < f.targets; ++t) {
    scores[t] = 0.0;
    seen[t] = 0;
  }
  for (std::int64_t k = 0; k < f.trees; ++k) {
    const TreeNode& leaf = tree_leaf(f, f.roots[k], x);
    for (std::int32_t i = 0; i < leaf.no; ++i) {
      const TreeWeight& w = f.weights[leaf.yes + i];
      double& s = scores[w.target];
      const bool first = seen[w.target] == 0;
      seen[w.target] = 1;
      if (f.sum == TreeSum::kMin)
        s = first || w.weight < s ? w.weight : s;
      else if (f.sum == TreeSum::kMax)
        s = first || w.weight > s ? w.weight : s;
      else
        s += w.weight;
    }
  }
  for (std::int64_t t = 0; t < f.targets; ++t) {
    if (f.sum == TreeSum::kAverage) scores[t] /= static_cast<double>(f.trees);
    if (base) scores[t] += base[t];
  }
}

// y [rows][targets]. `scores` and `seen` have `targets` elements.
template <class X, class Y>
inline void forest_regression(const Forest& f, const X* x, std::int64_t rows, std::int64_t features,
                              const double* base, MlPost post, double* scores, std::int32_t* seen, Y* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    forest_scores(f, x + r * features, base, scores, seen);
    ml_post(post, scores, f.targets);
    for (std::int64_t t = 0; t < f.targets; ++t) *y++ = cast_to<Y>(scores[t]);
  }
}

// labels [rows] and y [rows][targets] (two targets at least): the class with the greatest score. `binary`:
// all weights are of one class, `single`, of two. Its score s decides: where no weight is negative it counts
// as a probability (above 0.5), else as a distance (above 0). As the score of class 0 it makes the scores (1
// - s, s) or (-s, s), or the logistic function of the latter; as that of class 1 it leaves 0 for class 0.
// That is how ONNX Runtime fills in what the specification leaves open.
template <class X>
inline void forest_classes(const Forest& f, const X* x, std::int64_t rows, std::int64_t features,
                           const double* base, MlPost post, const std::int64_t* classes, bool binary,
                           std::int64_t single, bool probability, double* scores, std::int32_t* seen,
                           std::int64_t* labels, float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    forest_scores(f, x + r * features, base, scores, seen);
    if (binary) {
      const double s = scores[single];
      labels[r] = classes[s > (probability ? 0.5 : 0.0) ? 1 : 0];
      if (single == 1) {
        ml_post(post, scores, 2);
      } else if (post == MlPost::kLogistic) {
        scores[0] = ml_detail::logistic(-s);
        scores[1] = ml_detail::logistic(s);
      } else {
        scores[0] = probability ? 1.0 - s : -s;
        scores[1] = s;
      }
    } else {
      labels[r] = classes[ml_detail::greatest(scores, f.targets)];
      ml_post(post, scores, f.targets);
    }
    for (std::int64_t t = 0; t < f.targets; ++t) *y++ = static_cast<float>(scores[t]);
  }
}

}  // namespace sinter
