// Rows: the loops over output rows that windowed channels-last kernels share (convolution, depthwise, pools).
//
// Tensors are [N][spatial ...][C]. The last spatial axis is the row; the axes before it are walked by loops
// in which the range of kernel taps that fall inside the input is cut out per row, so that no padding is ever
// read. Along the row, the positions where the whole window is inside are the interior, the others are edges.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "emit/layer.h"
#include "ops/windows/window.h"

namespace sinter {

struct Rows {
  LayerWriter& w;
  const Window& window;
  // Of the whole tensors; channels are how far a pixel is from the next.
  Dim batch, in_channels, out_channels;
  LayerWriter::Turns turns = {};         // of the outermost loop, where it is not all of them
  std::string x_base = {}, y_base = {};  // the first position in memory along the first axis; empty: 0

  // How many turns the outermost loop has; 1 where there is none but that along the row.
  Dim outermost() const { return !batch.is(1) ? batch : last() > 0 ? window.out[0] : Dim(1); }

  // Where the node is in a strip: from now on these are its rows. `columns`: of a row, where all pixels are
  // one long row. Whether it is.
  bool take_strip(const std::optional<Dim>& columns = {});

  // Opens `for n` and a loop per outer spatial axis, with the variables n, o0, o1 … and k0_first, k0_last … .
  void open();
  void close();
  // Opens the loops over the taps of the outer axes inside the input: k0, k1 …
  void open_taps(Printer& out) const;
  void close_taps(Printer& out) const;
  // C++ text: the offset (elements) of input position (n, o*stride + k*dilation - pad …, ix), channel 0.
  std::string input_offset(const std::string& ix) const;
  // The same in a tensor [N][C][spatial ...], for channel `channel`.
  std::string planar_offset(const std::string& channel, const std::string& ix) const;
  // The offset of output pixel (n, o0 …, ox), channel 0.
  std::string output_offset(const std::string& ox) const;
  // The number of the tap (k0, k1 …, kw) in the kernel's row-major order.
  std::string tap(const std::string& kw) const;
  // The index variables of the output's axes for an Epilogue: n, o0 …, `ox`, `channel`.
  std::vector<std::string> index(const std::string& ox, const std::string& channel) const;

  size_t last() const { return window.rank() - 1; }
  int64_t kernel() const { return window.kernel[last()]; }
  int64_t stride() const { return window.strides[last()]; }
  int64_t dilation() const { return window.dilations[last()]; }
  Dim pad() const { return window.pads_begin[last()]; }
  Dim width() const { return window.in[last()]; }
  Dim out_width() const { return window.out[last()]; }
  Dim interior_begin() const;  // first ox whose window lies inside
  Dim interior_end() const;    // behind the last one; at least interior_begin
  // Text for the taps of output `ox` on the row that lie inside: the first and the one behind the last.
  std::string first_tap(const std::string& ox) const;
  std::string last_tap(const std::string& ox) const;
  // Position of tap 0 of output ox: "ox * 2 - 1".
  std::string position(const std::string& ox) const;

 private:
  // The number of input position (…, ix) among those of the outer axes whose number is `at`.
  std::string position_from(std::string at, const std::string& ix) const;
};

// The window of a pointwise convolution seen as one long row (all spatial axes, and the batch where
// `with_batch`).
Window flattened(const Window&, const Dim& batch, bool with_batch);

}  // namespace sinter
