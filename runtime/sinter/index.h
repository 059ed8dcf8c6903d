// index: positions that come from data.
#pragma once
#include <cstdint>

namespace sinter {

// `index` into an axis of `extent` elements, counted from the end where negative; -1 where it is outside.
[[gnu::always_inline]] static inline std::int64_t index_of(std::int64_t index, std::int64_t extent) {
  if (index < 0) index += extent;
  return index >= 0 && index < extent ? index : -1;
}

// One axis of a Slice whose bounds are data: `start` and `end` count from the end where negative and are
// clamped. The first position and how many there are; none where step is 0.
struct SliceAxis {
  std::int64_t first, count;
};
static inline SliceAxis slice_axis(std::int64_t extent, std::int64_t start, std::int64_t end,
                                   std::int64_t step) {
  const auto clamp = [](std::int64_t v, std::int64_t lo, std::int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
  };
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  if (step > 0) {
    start = clamp(start, 0, extent);
    end = clamp(end, 0, extent);
    return {start, end > start ? (end - start - 1) / step + 1 : 0};
  }
  if (step == 0 || extent == 0) return {0, 0};
  start = clamp(start, 0, extent - 1);
  end = clamp(end, -1, extent - 1);
  if (step == INT64_MIN) ++step;
  return {start, end < start ? (start - end - 1) / -step + 1 : 0};
}

// Whether all of `count` indices are positions in an axis of `extent` elements.
inline bool are_inside(const std::int64_t* indices, std::int64_t count, std::int64_t extent) {
  for (std::int64_t i = 0; i < count; ++i)
    if (index_of(indices[i], extent) < 0) return false;
  return true;
}

// Whether none of `count` indices counts from the end, and each is less than the next one.
inline bool are_ascending(const std::int64_t* indices, std::int64_t count) {
  if (count > 0 && indices[0] < 0) return false;
  for (std::int64_t i = 1; i < count; ++i)
    if (indices[i - 1] >= indices[i]) return false;
  return true;
}

}  // namespace sinter
