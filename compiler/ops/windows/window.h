// Window: the geometry that convolutions, transposed convolutions and pools share, one axis after the other.
//
// Along axis i, output o and tap k meet at input position o * strides[i] + k * dilations[i] - pads_begin[i];
// positions outside [0, in[i]) are padding. For transposed windows (ConvTranspose, MaxUnpool) the roles turn:
// input o and tap k meet at output position o * strides[i] + k * dilations[i] - pads_begin[i].
// auto_pad is resolved: pads are what counts, and become expressions where an extent is symbolic.
// Invariants: all vectors have one entry per spatial axis; kernel, strides, dilations lie in [1, 2^31), pads
// are >= 0 (transposed with output_shape: too), a plain window fits the padded input at least once.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace sinter {

struct Inference;

// A Window whose extents and pads are all numbers.
struct StaticWindow {
  std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end, in, out;
  size_t rank() const { return kernel.size(); }
  int64_t taps() const;         // product of kernel
  int64_t in_size() const;      // product of in
  int64_t out_size() const;     // product of out
  bool is_pointwise() const;    // kernel 1, stride 1, no pads: the output is the input's grid
  StaticWindow turned() const;  // in and out swapped: a transposed window as the plain one it undoes
};

struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<Dim> pads_begin, pads_end;
  Shape in, out;  // spatial extents
  bool ceil_mode = false;
  bool same_pads = false;  // auto_pad SAME_*: the window fits whatever the extents
  bool transposed = false;
  size_t rank() const { return kernel.size(); }
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  // How far the padded input exceeds what one window needs; with ceil_mode its last stride - 1 elements may
  // be missing. Not negative, or there is no output.
  Dim room(size_t axis) const;
  bool has_static_pads() const;
  bool is_pointwise() const;     // kernel 1, stride 1, no pads
  bool is_static() const;        // in, out and pads are numbers
  StaticWindow numbers() const;  // is_static() only, else a bug
};

enum class WindowKind { kConv, kPool, kConvTranspose, kUnpool };

// The window of attributes {strides, dilations, pads, auto_pad, ceil_mode; output_padding, output_shape} over
// `spatial_in`. Pools refuse pads that reach the kernel's extent (whole windows of padding). Throws a Refusal
// without the node's name.
Window window_of(const Attributes&, WindowKind, std::vector<int64_t> kernel, const Shape& spatial_in);
// The same for a node of a typed graph: the kernel is kernel_shape, else the weights' extents.
Window window_of(const Node&, const Shape& spatial_in);
Window window_of(const Node&);
// Lets infer leave run-time checks that symbolic extents hold the window and are not negative.
void check_window(Inference&, const Window&);

// Tensors of [N, C, spatial...] or, with the attribute channels_last, [N, spatial..., C].
bool is_channels_last(const Attributes&);
Shape spatial_of(const Attributes&, const Shape& data);
Dim channels_of(const Attributes&, const Shape& data);
Shape with_channels(const Attributes&, const Dim& batch, const Dim& channels, const Shape& spatial);
Tensor channels_first(const Attributes&, const Tensor&);  // any data tensor of the node as [N, C, spatial...]
Tensor as_node_layout(const Attributes&, const Tensor&);  // back

// Whether the node is a convolution of 3x3, 4x4, 5x5 or 6x6 taps over two axes, or of 2 to 7 taps in a line
// over one or two, of stride 1, or 2 along axes of 1, 3, 4 or 6 taps, channels last, one group, in float32
// with constant weights and bias: what Winograd's filtering computes. Rearranging sums so is a matter of the
// caller's.
bool may_use_winograd(const Node&);
// Whether the node is a convolution of a picture of up to 4 channels and known extents, of 3 to 7 taps along
// its rows and a stride of 1 or 2 there, otherwise as above: what Winograd's filtering computes along the
// rows.
bool may_use_winograd_along_rows(const Node&);
// Whether the node is a convolution of a picture of up to 4 channels that a Transpose makes of planes, whose
// taps along a row lie side by side: one that may read the planes themselves. Whether somebody else wants the
// Transpose's result, and whether a kernel reads planes, is the caller's to ask.
bool may_read_planes(const Node&);
// Outputs along an axis of its transform with `positions` (4, 6 or 8) positions, of the even inputs' where
// the stride is 2; 1 for a single tap; 0 where both transforms together had 16 (a square's inputs would take
// more than 16 KB of stack).
int64_t winograd_outputs(int64_t taps, int64_t stride, int64_t positions);
// The greatest number, along either axis, with at most so many positions; the node satisfies may_use_winograd
// or may_use_winograd_along_rows. 1 or less: there is no such tile.
int64_t most_winograd_outputs(const Node&, int64_t positions);

// Visits the taps of output `flat` (row-major over w.out) that lie inside the input: f(tap, offset) with
// the tap's row-major number within the kernel and the row-major offset within the input's spatial extents.
template <class F>
void for_each_tap(const StaticWindow& w, int64_t flat, F f) {
  const size_t n = w.rank();
  // Per axis: the input position of tap 0 and the range of taps inside.
  std::vector<int64_t> base(n), first(n), last(n), k(n);
  for (size_t i = n; i-- > 0;) {
    base[i] = flat % w.out[i] * w.strides[i] - w.pads_begin[i];
    flat /= w.out[i];
    first[i] = base[i] >= 0 ? 0 : (-base[i] + w.dilations[i] - 1) / w.dilations[i];
    last[i] = base[i] >= w.in[i] ? 0 : (w.in[i] - 1 - base[i]) / w.dilations[i] + 1;
    if (last[i] > w.kernel[i]) last[i] = w.kernel[i];
    if (first[i] >= last[i]) return;
    k[i] = first[i];
  }
  for (;;) {
    int64_t tap = 0, offset = 0;
    for (size_t i = 0; i < n; ++i) {
      tap = tap * w.kernel[i] + k[i];
      offset = offset * w.in[i] + base[i] + k[i] * w.dilations[i];
    }
    f(tap, offset);
    size_t i = n;
    for (; i-- > 0;) {
      if (++k[i] < last[i]) break;
      k[i] = first[i];
    }
    if (i == SIZE_MAX) return;
  }
}

}  // namespace sinter
