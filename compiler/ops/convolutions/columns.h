// im2col and its inverse, for eval of Conv and ConvTranspose.
//
// The column matrix of one image with C channels is [C * taps, positions]: row c * taps + k holds what tap k
// sees of channel c at each output position, 0 in the padding. Positions are cut into runs (one tap, one row
// of outputs along the last axis); the runs are found once and used for all channels, images and groups.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/windows/window.h"

namespace sinter {

struct ColumnRun {
  int64_t tap, row;     // row: index among the rows of the block
  int64_t first, last;  // outputs along the last axis that see the input
  int64_t offset;       // of the input element that output `first` sees, within a channel
};

// The runs of output rows [row_begin, row_end) (rows: all axes but the last, flattened).
inline std::vector<ColumnRun> column_runs(const StaticWindow& w, int64_t row_begin, int64_t row_end) {
  const size_t n = w.rank(), last = n - 1;
  std::vector<ColumnRun> runs;
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    std::vector<int64_t> k(n);
    for (int64_t i = static_cast<int64_t>(n), rest = tap; i-- > 0;) {
      k[static_cast<size_t>(i)] = rest % w.kernel[static_cast<size_t>(i)];
      rest /= w.kernel[static_cast<size_t>(i)];
    }
    const int64_t s = w.strides[last], base = k[last] * w.dilations[last] - w.pads_begin[last];
    const int64_t first = base >= 0 ? 0 : (-base + s - 1) / s;
    const int64_t end = base >= w.in[last] ? 0 : std::min(w.out[last], (w.in[last] - 1 - base) / s + 1);
    for (int64_t row = row_begin; row < row_end; ++row) {
      int64_t rest = row, offset = 0, scale = w.in[last];
      bool inside = first < end;
      for (size_t i = last; i-- > 0;) {
        const int64_t p = rest % w.out[i] * w.strides[i] + k[i] * w.dilations[i] - w.pads_begin[i];
        rest /= w.out[i];
        inside = inside && p >= 0 && p < w.in[i];
        offset += p * scale;
        scale *= w.in[i];
      }
      if (inside)
        runs.push_back({tap, row - row_begin, first, end, offset + base + first * s});
      else
        runs.push_back({tap, row - row_begin, 0, 0, 0});
    }
  }
  return runs;
}

// Fills columns[taps, rows * out.back()] from one channel x.
template <class T>
void gather_columns(const StaticWindow& w, const std::vector<ColumnRun>& runs, int64_t rows, const T* x,
                    T* columns) {
  const int64_t width = w.out.back(), stride = w.strides.back();
  for (const ColumnRun& r : runs) {
    T* to = columns + (r.tap * rows + r.row) * width;
    std::fill(to, to + r.first, T{});
    const T* from = x + r.offset;
    for (int64_t o = r.first; o < r.last; ++o, from += stride) to[o] = *from;
    std::fill(to + r.last, to + width, T{});
  }
}

// The transpose of gather_columns: adds columns to the channel x.
template <class T>
void scatter_columns(const StaticWindow& w, const std::vector<ColumnRun>& runs, int64_t rows,
                     const T* columns, T* x) {
  const int64_t width = w.out.back(), stride = w.strides.back();
  for (const ColumnRun& r : runs) {
    const T* from = columns + (r.tap * rows + r.row) * width;
    T* to = x + r.offset;
    for (int64_t o = r.first; o < r.last; ++o, to += stride) *to += from[o];
  }
}

// Rows of outputs to treat at once so that a column matrix of `channels` stays near 16 MB.
inline int64_t rows_at_once(const StaticWindow& w, int64_t channels) {
  const int64_t per_row = std::max<int64_t>(1, channels * w.taps() * w.out.back());
  return std::max<int64_t>(1, (int64_t{1} << 22) / per_row);
}

}  // namespace sinter
