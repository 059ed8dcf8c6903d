// TfIdfVectorizer (ONNX 9) on integers: how often each n-gram of a pool occurs in a sequence.
//
// The elements of an n-gram may be up to `skips` positions apart, all by the same distance. n-grams of one
// length are sorted, so that each place of the sequence is looked up by bisection.
#pragma once
#include <cstdint>

#include "sinter/scalar.h"

namespace sinter {

enum class TfIdfMode { kTf, kIdf, kTfIdf };

// The n-grams of `length`, sorted: items [count][length], and the column of the result that each counts in.
struct Ngrams {
  std::int64_t length, count;
  const std::int64_t *items, *columns;
};

// Counts the n-grams of one length and distance in x [n].
template <class X>
inline void count_ngrams(const Ngrams& g, const X* x, std::int64_t n, std::int64_t distance, float* y) {
  for (std::int64_t i = 0; i + (g.length - 1) * distance < n; ++i) {
    std::int64_t lo = 0, hi = g.count;
    while (lo < hi) {
      const std::int64_t mid = lo + (hi - lo) / 2;
      const std::int64_t* item = g.items + mid * g.length;
      std::int64_t k = 0;
      while (k < g.length && item[k] == static_cast<std::int64_t>(x[i + k * distance])) ++k;
      if (k == g.length) {
        y[g.columns[mid]] += 1.0f;
        break;
      }
      if (item[k] < static_cast<std::int64_t>(x[i + k * distance]))
        lo = mid + 1;
      else
        hi = mid;
    }
  }
}

// x [rows][n] gives y [rows][columns]. `weights` [columns] or null: all 1. Single elements have no distance
// and are counted once.
template <class X, int Lengths>
inline void tfidf(const X* x, std::int64_t rows, std::int64_t n, const Ngrams (&grams)[Lengths],
                  std::int64_t skips, TfIdfMode mode, const float* weights, std::int64_t columns, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += columns) {
    for (std::int64_t c = 0; c < columns; ++c) y[c] = 0.0f;
    for (const Ngrams& g : grams)
      for (std::int64_t d = 1; d <= (g.length == 1 ? 1 : skips + 1) && (g.length - 1) * d < n; ++d)
        count_ngrams(g, x, n, d, y);
    if (mode == TfIdfMode::kTf) continue;
    for (std::int64_t c = 0; c < columns; ++c) {
      const float weight = weights ? weights[c] : 1.0f;
      y[c] = mode == TfIdfMode::kIdf ? (y[c] > 0.0f ? weight : 0.0f) : weight * y[c];
    }
  }
}

}  // namespace sinter
