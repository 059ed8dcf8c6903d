// counted: operators with as many results as the data say. Header-only, no memory but what is given.
#pragma once
#include <cstdint>
#include <type_traits>

#include "sinter/half.h"

namespace sinter {
namespace detail {

template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class T>
static inline bool is_zero(T v) {
  if constexpr (is_small_float<T>)
    return to_float(v) == 0.0f;
  else if constexpr (std::is_floating_point_v<T>)
    return !(v < T{0}) && !(v > T{0}) && v == v;
  else
    return v == T{};
}

// -1, 0 or 1 as a is before, equal to or behind b; NaN is behind all numbers and equals itself.
template <class T>
static inline int compare(T a, T b) {
  if constexpr (is_small_float<T>) {
    return compare(to_float(a), to_float(b));
  } else {
    if (a < b) return -1;
    if (a > b) return 1;
    const bool a_nan = a != a, b_nan = b != b;
    return a_nan == b_nan ? 0 : b_nan ? -1 : 1;
  }
}

}  // namespace detail

// How many of the n elements are not 0.
template <class T>
static inline std::int64_t count_non_zero(const T* x, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += detail::is_zero(x[i]) ? 0 : 1;
  return count;
}

// The positions of the elements that are not 0 of a row-major tensor with `rank` extents `dims`, in row-major
// order: y[d * count + k] is position d of the k-th. `count`: as count_non_zero says.
template <class T>
static inline void non_zero(const T* x, const std::int64_t* dims, int rank, std::int64_t count,
                            std::int64_t* y) {
  std::int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= dims[d];
  for (std::int64_t i = 0, k = 0; i < n && k < count; ++i) {
    if (detail::is_zero(x[i])) continue;
    std::int64_t rest = i;
    for (int d = rank; d-- > 0;) {
      y[d * count + k] = rest % dims[d];
      rest /= dims[d];
    }
    ++k;
  }
}

// A tensor [outer][rows][inner] whose rows along the middle axis are compared element by element.
template <class T>
struct RowView {
  const T* x;
  std::int64_t outer, rows, inner;

  int compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        const std::int64_t row = o * rows;
        const int c = detail::compare(x[(row + a) * inner + i], x[(row + b) * inner + i]);
        if (c != 0) return c;
      }
    return 0;
  }
  // Equal rows keep their order, so that all places are distinct.
  bool before(std::int64_t a, std::int64_t b) const {
    const int c = compare(a, b);
    return c != 0 ? c < 0 : a < b;
  }
  // Restores the heap order[0..size) below `at`: no row comes behind its parent.
  void sink(std::int64_t* order, std::int64_t at, std::int64_t size) const {
    for (std::int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && before(order[child], order[child + 1])) ++child;
      if (!before(order[at], order[child])) return;
      const std::int64_t t = order[at];
      order[at] = order[child];
      order[child] = t;
      at = child;
    }
  }
  void sort(std::int64_t* order) const {
    for (std::int64_t i = 0; i < rows; ++i) order[i] = i;
    for (std::int64_t i = rows / 2; i-- > 0;) sink(order, i, rows);
    for (std::int64_t size = rows - 1; size > 0; --size) {
      const std::int64_t t = order[0];
      order[0] = order[size];
      order[size] = t;
      sink(order, 0, size);
    }
  }
};

// The distinct rows of `view`: how many there are. Each array has a place for every row: first[k] is where
// the k-th distinct row stands first, times[k] how often it occurs, place[i] which one row i is. Distinct
// rows are in ascending order, or in that of their first appearance. `order` is scratch.
template <class T>
static inline std::int64_t unique(const RowView<T>& view, bool sorted, std::int64_t* order,
                                  std::int64_t* first, std::int64_t* place, std::int64_t* times) {
  view.sort(order);
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < view.rows; ++k) {
    if (k == 0 || view.compare(order[k - 1], order[k]) != 0) {
      first[count] = order[k];
      times[count] = 0;
      ++count;
    }
    place[order[k]] = count - 1;
    ++times[count - 1];
  }
  if (sorted) return count;
  // Renumbered by first appearance: `order` holds the times meanwhile.
  for (std::int64_t k = 0; k < count; ++k) order[k] = times[k];
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < view.rows; ++i) {
    const std::int64_t old = place[i];
    if (first[old] == i) {  // its first appearance: `old` is still its number among the sorted ones
      times[seen] = order[old];
      order[old] = seen++;
    }
    place[i] = order[old];
  }
  seen = 0;
  for (std::int64_t i = 0; i < view.rows; ++i)
    if (place[i] == seen) first[seen++] = i;
  return count;
}

}  // namespace sinter
