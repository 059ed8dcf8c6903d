// Ensembles of decision trees (ai.onnx.ml TreeEnsemble 5, TreeEnsembleRegressor and ...Classifier 3).
//
// Every test is "at most this number" here, and a leaf leads to itself: so eight rows go down a tree side by
// side without a branch, and each waits for its own node only. A block of rows goes through one tree after
// the other, whose nodes the cache holds meanwhile. Of the rows that are left over, eight trees are gone down
// at once. The features that the trees ask for are copied in front, with those of eight rows side by side.
//
// V is float or double: what thresholds, features and weights are compared and added up in, in the order of
// the trees.
#pragma once
#include <cstdint>
#include <type_traits>

#include "sinter/ml.h"

namespace sinter {

inline constexpr std::int64_t kTreeLanes = 8;

template <class V>
using TreeIndex = std::conditional_t<sizeof(V) == 8, std::int64_t, std::int32_t>;

template <class V>
struct TreeNode {
  V value;               // of a leaf where each has one weight and there is one target: its weight
  TreeIndex<V> feature;  // its place among those that are asked for; ~place: NaN counts as at most `value`
  std::int32_t next[2];  // the node where the feature is greater, and where it is at most `value`
};
template <class V>
struct TreeWeight {
  V weight;
  TreeIndex<V> target;
};
struct TreeRoot {
  std::int32_t node, sure, depth;  // steps that end at leaves at the earliest, and at the latest
};
enum class TreeSum { kAverage, kSum, kMin, kMax };

template <class V>
struct Forest {
  const TreeNode<V>* nodes;
  const TreeRoot* roots;
  const std::int32_t* first;  // weights of leaf i: first[i] to first[i + 1]; null: it is the node's value
  const TreeWeight<V>* weights;
  const std::int32_t* used;  // the features that are asked for
  const V* base;             // one a target, or null
  std::int64_t trees, used_count, targets;
  TreeSum sum;
  bool missing;  // a node has a feature of ~place
};

// Memory of a run: block * used_count features, block * targets scores, as many flags (of targets that a leaf
// has named), and `targets` results.
template <class V>
struct ForestWork {
  std::int64_t block;  // rows: a multiple of kTreeLanes
  V* x;
  V* scores;
  std::uint8_t* seen;
  double* results;
};

namespace tree_detail {

template <bool kMissing, class V>
inline std::int32_t next_node(const TreeNode<V>& n, const V* x, std::int64_t stride) {
  std::int64_t feature = n.feature;
  if constexpr (kMissing) {
    const std::int64_t passes = feature < 0 ? 1 : 0;
    const V v = x[(feature ^ -passes) * stride];
    return n.next[static_cast<std::int64_t>(v <= n.value) | (passes & static_cast<std::int64_t>(v != v))];
  } else {
    return n.next[x[feature * stride] <= n.value ? 1 : 0];
  }
}

// Eight walks at once; the features of walk i are `apart` * i behind x, `stride` from each other.
template <bool kMissing, std::int64_t kApart, std::int64_t kStride, class V>
inline void walk(const TreeNode<V>* nodes, const V* x, std::int64_t sure, std::int64_t depth,
                 std::int32_t (&at)[kTreeLanes]) {
  const auto step = [&](std::int64_t i) {
    const std::int32_t from = at[i];
    at[i] = next_node<kMissing>(nodes[from], x + i * kApart, kStride);
    return from ^ at[i];
  };
  for (std::int64_t s = 0; s < sure; ++s)
    step(0), step(1), step(2), step(3), step(4), step(5), step(6), step(7);
  for (std::int64_t s = sure; s < depth; ++s)
    if ((step(0) | step(1) | step(2) | step(3) | step(4) | step(5) | step(6) | step(7)) == 0) return;
}

template <class V>
inline void add(TreeSum how, bool first, V weight, V& score) {
  if (how == TreeSum::kMin)
    score = first || weight < score ? weight : score;
  else if (how == TreeSum::kMax)
    score = first || weight > score ? weight : score;
  else
    score += weight;
}

// What tree k's leaf gives a row.
template <class V>
inline void add_leaf(const Forest<V>& f, std::int64_t k, std::int32_t leaf, V* scores, std::uint8_t* seen) {
  if (!f.first) return add(f.sum, k == 0, f.nodes[leaf].value, *scores);
  for (std::int32_t i = f.first[leaf]; i < f.first[leaf + 1]; ++i) {
    const TreeWeight<V>& w = f.weights[i];
    add(f.sum, seen[w.target] == 0, w.weight, scores[w.target]);
    seen[w.target] = 1;
  }
}

// rows / kTreeLanes groups of rows through all trees.
template <bool kMissing, class V>
inline void block_of_rows(const Forest<V>& f, const V* x, std::int64_t rows, V* scores, std::uint8_t* seen) {
  for (std::int64_t k = 0; k < f.trees; ++k) {
    const TreeRoot root = f.roots[k];
    for (std::int64_t r = 0; r < rows; r += kTreeLanes) {
      std::int32_t at[kTreeLanes];
      for (std::int32_t& a : at) a = root.node;
      walk<kMissing, 1, kTreeLanes>(f.nodes, x + r * f.used_count, root.sure, root.depth, at);
      for (std::int64_t i = 0; i < kTreeLanes; ++i)
        add_leaf(f, k, at[i], scores + (r + i) * f.targets, seen + (r + i) * f.targets);
    }
  }
}
template <bool kMissing, class V>
inline void single_row(const Forest<V>& f, const V* x, V* scores, std::uint8_t* seen) {
  for (std::int64_t k = 0; k < f.trees; k += kTreeLanes) {
    std::int32_t at[kTreeLanes];
    std::int64_t depth = 0;
    for (std::int64_t i = 0; i < kTreeLanes; ++i) {
      const TreeRoot& root = f.roots[k + i < f.trees ? k + i : k];
      at[i] = root.node;
      depth = root.depth > depth ? root.depth : depth;
    }
    walk<kMissing, 0, 1>(f.nodes, x, 0, depth, at);
    for (std::int64_t i = 0; i < kTreeLanes && k + i < f.trees; ++i) add_leaf(f, k + i, at[i], scores, seen);
  }
}

// The scores of `rows` rows of x: a multiple of kTreeLanes up to a block, or one.
template <class X, class V>
inline void scores(const Forest<V>& f, const X* x, std::int64_t rows, std::int64_t features,
                   const ForestWork<V>& w) {
  const std::int64_t lanes = rows == 1 ? 1 : kTreeLanes;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < f.used_count; ++j)
      w.x[r / lanes * lanes * f.used_count + j * lanes + r % lanes] = cast_to<V>(x[r * features + f.used[j]]);
  for (std::int64_t i = 0; i < rows * f.targets; ++i) w.scores[i] = V{0}, w.seen[i] = 0;
  if (rows == 1)
    f.missing ? single_row<true>(f, w.x, w.scores, w.seen) : single_row<false>(f, w.x, w.scores, w.seen);
  else
    f.missing ? block_of_rows<true>(f, w.x, rows, w.scores, w.seen)
              : block_of_rows<false>(f, w.x, rows, w.scores, w.seen);
}

// finish(row, scores, seen) for all rows.
template <class X, class V, class Finish>
inline void for_rows(const Forest<V>& f, const X* x, std::int64_t rows, std::int64_t features,
                     const ForestWork<V>& w, Finish finish) {
  for (std::int64_t r = 0; r < rows;) {
    const std::int64_t left = rows - r;
    const std::int64_t now = left >= w.block ? w.block : left >= kTreeLanes ? left - left % kTreeLanes : 1;
    scores(f, x + r * features, now, features, w);
    for (std::int64_t i = 0; i < now; ++i, ++r) finish(r, w.scores + i * f.targets, w.seen + i * f.targets);
  }
}

}  // namespace tree_detail

// One row's scores as its results. Of several targets, one that no leaf has named stays 0, whatever its base:
// ONNX Runtime has it so.
template <class V>
inline void finish_regression(TreeSum sum, std::int64_t trees, const V* base, MlPost post,
                              std::int64_t targets, const V* scores, const std::uint8_t* seen,
                              double* results) {
  for (std::int64_t t = 0; t < targets; ++t) {
    V s = scores[t];
    if (sum == TreeSum::kAverage) s /= static_cast<V>(trees);
    if (base) s += base[t];
    results[t] = targets == 1 || seen[t] != 0 ? static_cast<double>(s) : 0.0;
  }
  ml_post(post, results, targets);
}

// How a classifier's scores become labels and results.
struct TreeClasses {
  const std::int64_t* labels;
  std::int64_t count;  // two at least
  std::int64_t bases;  // how many base values the model has: 0, 1 or `count`
  MlPost post;
  bool binary;       // of two classes, all weights are of one
  bool probability;  // no weight is negative
};

namespace tree_detail {

// The label of the greatest score that a leaf (or a base value) has set.
template <class V>
inline std::int64_t finish_many(const TreeClasses& c, const V* base, const V* scores,
                                const std::uint8_t* seen, double* results) {
  std::int64_t best = -1;
  V top = V{0};
  for (std::int64_t k = 0; k < c.count; ++k) {
    const bool set = base || seen[k] != 0;
    const V s = base ? scores[k] + base[k] : scores[k];
    results[k] = set ? static_cast<double>(s) : 0.0;
    if (set && (best < 0 || s > top)) best = k, top = s;
  }
  ml_post(c.post, results, c.count);
  return c.labels[best < 0 ? 0 : best];
}

// Two classes. The specification leaves open what base values mean here, and what the scores are where the
// leaves of a row name only the first class; all of this is as ONNX Runtime has it. The score of the second
// class decides where it is set, else the first one's: where all weights are of one class and none is
// negative it counts as a probability (above 0.5), else as a distance (above 0); where they are of both, the
// labels are 0 and 1. A first score s alone makes the results (1 - s, s) or (-s, s), or the logistic function
// of the latter; what ONNX Runtime leaves unset is 0: of (probit(s), 0), and of (s, 0) where the weights are
// of both classes and there is one base value.
template <class V>
inline std::int64_t finish_two(const TreeClasses& c, const V* base, const V* scores, const std::uint8_t* seen,
                               double* results) {
  const bool first = seen[0] != 0, second = seen[1] != 0;
  V a = scores[0], b = scores[1];
  if (c.bases == 2 && second) {
    b = base[1] + a;
    a = -b;
  } else if (c.bases != 0) {
    a += base[0];
  }
  if (c.bases == 2 && !second) b += base[1];
  const V decides = second ? b : first ? a : V{0};
  const bool above = decides > (c.binary && c.probability ? V{1} / V{2} : V{0});
  results[0] = first ? static_cast<double>(a) : 0.0;
  results[1] = second ? static_cast<double>(b) : 0.0;
  if (second || c.bases == 2) {
    ml_post(c.post, results, 2);
  } else if (c.post == MlPost::kProbit) {
    results[0] = ml_detail::probit(results[0]);
  } else if (c.binary || c.bases == 0) {
    const double s = results[0];
    const bool logistic = c.post == MlPost::kLogistic;
    results[0] = logistic ? ml_detail::logistic(-s) : c.binary && c.probability ? 1.0 - s : -s;
    results[1] = logistic ? ml_detail::logistic(s) : s;
  }
  return c.binary ? c.labels[above ? 1 : 0] : above ? 1 : 0;
}

}  // namespace tree_detail

// One row's label; its results in `results`.
template <class V>
inline std::int64_t finish_classes(const TreeClasses& c, const V* base, const V* scores,
                                   const std::uint8_t* seen, double* results) {
  return c.count == 2 ? tree_detail::finish_two(c, base, scores, seen, results)
                      : tree_detail::finish_many(c, base, scores, seen, results);
}

// y [rows][targets].
template <class X, class V, class Y>
inline void forest_regression(const Forest<V>& f, const X* x, std::int64_t rows, std::int64_t features,
                              MlPost post, const ForestWork<V>& w, Y* y) {
  tree_detail::for_rows(f, x, rows, features, w,
                        [&](std::int64_t r, const V* scores, const std::uint8_t* seen) {
                          finish_regression(f.sum, f.trees, f.base, post, f.targets, scores, seen, w.results);
                          for (std::int64_t t = 0; t < f.targets; ++t)
                            y[r * f.targets + t] = cast_to<Y>(w.results[t]);
                        });
}

// labels [rows] and y [rows][classes].
template <class X, class V>
inline void forest_classes(const Forest<V>& f, const X* x, std::int64_t rows, std::int64_t features,
                           const TreeClasses& c, const ForestWork<V>& w, std::int64_t* labels, float* y) {
  tree_detail::for_rows(f, x, rows, features, w,
                        [&](std::int64_t r, const V* scores, const std::uint8_t* seen) {
                          labels[r] = finish_classes(c, f.base, scores, seen, w.results);
                          for (std::int64_t t = 0; t < c.count; ++t)
                            y[r * c.count + t] = static_cast<float>(w.results[t]);
                        });
}

}  // namespace sinter
