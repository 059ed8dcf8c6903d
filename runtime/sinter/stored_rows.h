// Rows of a cache that are stored as halves, or as bytes with a scale (--cache f16, int8): what attention
// needs to read them where they lie, a vector at a time.
//
// A row of n bytes has its scale behind it, a float in four more bytes of any alignment: element i is byte i
// times that. The greatest magnitude is 127 scales; an infinity or a NaN makes the row NaN.
#ifndef SINTER_STORED_ROWS_H_
#define SINTER_STORED_ROWS_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/stored_rows.h"
#endif

#include <cstring>

#include "sinter/convert.h"
#include "sinter/lanes.h"
#include "sinter/mac.h"
#include "sinter/pack.h"

namespace sinter::SINTER_ISA {

SINTER_INLINE float row_scale(const std::int8_t* row, std::ptrdiff_t n) {
  float scale;
  std::memcpy(&scale, row + n, sizeof scale);
  return scale;
}
SINTER_INLINE float row_scale(const half*, std::ptrdiff_t) { return 1.0f; }

// A row of n floats as bytes, and its scale.
SINTER_INLINE void store_row(const float* x, std::ptrdiff_t n, std::int8_t* to) {
  float greatest = 0.0f;
  bool numbers = true;
  for (std::ptrdiff_t i = 0; i < n; i++) {
    const float a = __builtin_fabsf(x[i]);
    numbers = numbers && a < __builtin_inff();
    greatest = a > greatest ? a : greatest;
  }
  const float scale = numbers ? greatest / 127.0f : __builtin_nanf("");
  const float inverse = numbers && greatest > 1e-36f ? 127.0f / greatest : 0.0f;
  for (std::ptrdiff_t i = 0; i < n; i++)
    to[i] = numbers ? static_cast<std::int8_t>(__builtin_rintf(x[i] * inverse)) : std::int8_t{0};
  std::memcpy(to + n, &scale, sizeof scale);
}

// a . row over n elements.
template <class E>
SINTER_INLINE float dot(const float* a, const E* row, std::ptrdiff_t n) {
  f32v s0 = zero(), s1 = zero();
  std::ptrdiff_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    s0 = fma(load(a + i), load(row + i), s0);
    s1 = fma(load(a + i + kLanes), load(row + i + kLanes), s1);
  }
  for (; i + kLanes <= n; i += kLanes) s0 = fma(load(a + i), load(row + i), s0);
  if (i < n) s1 = fma(load_n(a + i, n - i), load_lanes(row + i, static_cast<int>(n - i)), s1);
  return hsum(add(s0, s1)) * row_scale(row, n);
}

// weights[j] *= the scale of row j.
SINTER_INLINE void scale_weights(float* weights, const std::int8_t* rows, std::ptrdiff_t stride,
                                 std::ptrdiff_t width, std::ptrdiff_t n) {
  for (std::ptrdiff_t j = 0; j < n; j++) weights[j] *= row_scale(rows + j * stride, width);
}

// sum += weights[j] * rows[j * stride ...], as for rows of floats; bytes count as they are.
template <class E, int OB>
SINTER_INLINE void add_rows(Tile<OB, 1>& sum, const float* weights, const E* rows, std::ptrdiff_t stride,
                            std::ptrdiff_t n, int lanes) {
  for (std::ptrdiff_t j = 0; j < n; j++) {
    const f32v weight = splat(weights[j]);
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const f32v row = load_lanes(rows + j * stride + o * kLanes, o == OB - 1 ? lanes : kLanes);
      sum.a[0][o] = fma(weight, row, sum.a[0][o]);
    }
  }
}

// `columns` rows of k elements as the columns of a panel [k][OB][kLanes] of floats, each times its scale.
template <int OB, class E, class Each = Keep>
SINTER_INLINE void pack_stored_keys(const E* rows, std::ptrdiff_t stride, std::ptrdiff_t k,
                                    std::ptrdiff_t columns, float* panel, Each each = Each()) {
  constexpr std::ptrdiff_t kWidth = std::ptrdiff_t{OB} * kLanes;
  for (std::ptrdiff_t j = 0; j < kWidth; j += kLanes)
    for (std::ptrdiff_t i = 0; i < k; i += kLanes) {
      const std::ptrdiff_t count = k - i < kLanes ? k - i : kLanes;
      f32v block[kLanes];
      for (int l = 0; l < kLanes; l++) {
        if (j + l >= columns) {
          block[l] = zero();
          continue;
        }
        const E* const row = rows + (j + l) * stride;
        block[l] = mul(load_lanes(row + i, static_cast<int>(count)), splat(row_scale(row, k)));
      }
      transpose(block);
      for (std::ptrdiff_t l = 0; l < count; l++) store(panel + (i + l) * kWidth + j, each(block[l]));
    }
}

// `columns` elements of each of k rows as a panel [k][OB][kLanes] of floats; bytes count as they are.
template <int OB, class E>
SINTER_INLINE void pack_stored_values(const E* rows, std::ptrdiff_t stride, std::ptrdiff_t k,
                                      std::ptrdiff_t columns, float* panel) {
  constexpr std::ptrdiff_t kWidth = std::ptrdiff_t{OB} * kLanes;
  for (std::ptrdiff_t i = 0; i < k; i++)
    for (std::ptrdiff_t o = 0; o < OB; o++) {
      const std::ptrdiff_t left = columns - o * kLanes;
      const E* const from = rows + i * stride + o * kLanes;
      const f32v row = left > 0 ? load_lanes(from, static_cast<int>(left < kLanes ? left : kLanes)) : zero();
      store(panel + i * kWidth + o * kLanes, row);
    }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_STORED_ROWS_H_
