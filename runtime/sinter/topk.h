// topk: the k greatest or least elements of a line, in order, with their indices.
//
// The order is total: of equal elements the one with the lower index comes first, and NaN counts as greater
// than every number. The outputs serve as a heap whose root is the worst element kept so far, so that no
// scratch memory is needed: O(n log k) comparisons. topk_by_tree takes floats one after another from a tree
// of all (sinter/best_first.h), which takes memory and is several times as fast.
#pragma once
#include <cstdint>
#include <type_traits>

#include "sinter/best_first.h"
#include "sinter/half.h"

namespace sinter {

template <class T>
inline auto ordered(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return to_float(v);
  else
    return v;
}

// Whether element (a, i) comes before (b, j) among the `largest` (or the least) ones.
template <class T>
inline bool topk_before(T a, std::int64_t i, T b, std::int64_t j, bool largest) {
  const auto x = ordered(a), y = ordered(b);
  const bool x_nan = x != x, y_nan = y != y;
  if (x_nan != y_nan) return x_nan == largest;
  if (!x_nan && x != y) return (x > y) == largest;
  return i < j;
}

// One line of the result; element e is at index e * stride of values and of indices.
template <class T>
struct TopkLine {
  T* values;
  std::int64_t* indices;
  std::int64_t stride;
  bool largest;

  bool before(std::int64_t a, std::int64_t b) const {
    return topk_before(values[a * stride], indices[a * stride], values[b * stride], indices[b * stride],
                       largest);
  }
  void swap(std::int64_t a, std::int64_t b) const {
    const T v = values[a * stride];
    const std::int64_t i = indices[a * stride];
    values[a * stride] = values[b * stride];
    indices[a * stride] = indices[b * stride];
    values[b * stride] = v;
    indices[b * stride] = i;
  }
  // Restores the heap of `size` elements below `at`: a parent comes after its children.
  void sink(std::int64_t at, std::int64_t size) const {
    for (std::int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && before(child, child + 1)) ++child;
      if (!before(at, child)) return;
      swap(at, child);
      at = child;
    }
  }
};

// The first k (0 <= k <= n) of the n elements x[0], x[x_stride] … in the order above. `values` and `indices`
// get k elements each, `stride` apart; they must not overlap x.
template <class T>
inline void topk(const T* x, std::int64_t n, std::int64_t x_stride, std::int64_t k, bool largest, T* values,
                 std::int64_t* indices, std::int64_t stride) {
  if (k <= 0) return;
  const TopkLine<T> line{values, indices, stride, largest};
  for (std::int64_t i = 0; i < k; ++i) {
    values[i * stride] = x[i * x_stride];
    indices[i * stride] = i;
  }
  for (std::int64_t i = k / 2; i-- > 0;) line.sink(i, k);
  for (std::int64_t i = k; i < n; ++i) {
    if (!topk_before(x[i * x_stride], i, values[0], indices[0], largest)) continue;
    values[0] = x[i * x_stride];
    indices[0] = i;
    line.sink(0, k);
  }
  for (std::int64_t size = k - 1; size > 0; --size) {
    line.swap(0, size);
    line.sink(0, size);
  }
}

// The same of floats. `memory`: BestFirst::elements(n) integers.
inline void topk_by_tree(const float* x, std::int64_t n, std::int64_t x_stride, std::int64_t k, bool largest,
                         float* values, std::int64_t* indices, std::int64_t stride, std::int32_t* memory) {
  const integers4 turned = integers4{} - (largest ? 0 : 1),
                  of_nan = integers4{} + (largest ? INT32_MAX : BestFirst::kNone + 1);
  const auto key = [=](floats4 v) {
    const integers4 number = v == v;
    return (number & (keys_of(v) ^ turned)) | (~number & of_nan);
  };
  BestFirst best_first(x, n, x_stride, key, memory);
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t at = best_first.take();
    values[i * stride] = x[at * x_stride];
    indices[i * stride] = at;
  }
}

}  // namespace sinter
