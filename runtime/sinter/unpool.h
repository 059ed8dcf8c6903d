// What the indices of a MaxUnpool with a larger output_shape count.
//
// The tensor they are of is the one that was pooled: the output_shape, unless a model counts in the tensor
// that the windows imply, which is smaller where the windows left a rest, and lies at its beginning. An index
// of a pool lies inside of its element's window: so it tells.
#ifndef SINTER_UNPOOL_H_
#define SINTER_UNPOOL_H_

#include <cstddef>
#include <cstdint>

namespace sinter {

// One axis: the extents of the input, of the output_shape and of what the windows imply, and the windows.
struct UnpoolAxis {
  std::int64_t in, given, implied, stride, pad, kernel;
};

// Whether the element's index, counted in one of the two tensors, lies inside of its window.
template <std::size_t kRank>
bool in_window(std::int64_t index, const std::int64_t (&element)[kRank], const UnpoolAxis (&axes)[kRank],
               std::int64_t UnpoolAxis::*extent) {
  for (std::size_t d = kRank; d-- > 0;) {
    const UnpoolAxis& a = axes[d];
    const std::int64_t at = index % (a.*extent), first = element[d] * a.stride - a.pad;
    if (at < first || at >= first + a.kernel) return false;
    index /= a.*extent;
  }
  return index == 0;
}

// Whether the indices count in the implied tensor: all lie in their windows there, and some don't in the
// other.
template <std::size_t kRank>
bool counts_in_implied(const std::int64_t* indices, const UnpoolAxis (&axes)[kRank]) {
  bool given = true;
  std::int64_t element[kRank] = {}, count = 1;
  for (const UnpoolAxis& a : axes) count *= a.in;
  for (std::int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || !in_window(indices[i], element, axes, &UnpoolAxis::implied)) return false;
    given = given && in_window(indices[i], element, axes, &UnpoolAxis::given);
    for (std::size_t d = kRank; d-- > 0;) {
      if (++element[d] < axes[d].in) break;
      element[d] = 0;
    }
  }
  return !given;
}

}  // namespace sinter

#endif  // SINTER_UNPOOL_H_
