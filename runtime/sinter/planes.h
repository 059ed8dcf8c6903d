// Pictures whose channels are planes, as the first convolution of a net gets them.
#ifndef SINTER_PLANES_H_
#define SINTER_PLANES_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/planes.h"
#endif
#include "sinter/dims.h"

namespace sinter::SINTER_ISA {

// One row of a convolution's kernel, for a row of `count` outputs: to[ox * pitch + j] = row[ox * stride - pad
// + j] for j in [0, Taps), 0 where that lies outside the row's `width` elements. Of floats or halves.
template <int Taps, class E>
[[gnu::noinline]] static void gather_taps(const E* row, std::int64_t width, std::int64_t pad,
                                          std::int64_t stride, std::int64_t count, E* to,
                                          std::int64_t pitch) {
  const auto edges = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t ox = first; ox < end; ox++)
      for (std::int64_t j = 0; j < Taps; j++) {
        const std::int64_t ix = ox * stride - pad + j;
        to[ox * pitch + j] = ix >= 0 && ix < width ? row[ix] : E{};
      }
  };
  const std::int64_t room = width + pad - Taps;  // where the last whole window begins, counted from the pad
  const std::int64_t begin = min_of((pad + stride - 1) / stride, count);
  const std::int64_t end = max_of(begin, room < 0 ? 0 : min_of(room / stride + 1, count));
  edges(0, begin);
  const E* from = row + (begin * stride - pad);
  E* at = to + begin * pitch;
  for (std::int64_t ox = begin; ox < end; ox++, from += stride, at += pitch)
    std::memcpy(at, from, Taps * sizeof(E));
  edges(end, count);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_PLANES_H_
