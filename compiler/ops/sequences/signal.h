// What ops and kernels of signal processing share: how a node's inputs and attributes become the geometry of
// runtime/sinter/fft.h.
#pragma once
#include "ops/op.h"

namespace sinter {

// The single number of input i, where it is known as a Dim.
std::optional<Dim> known_number(const Value* v);
// The coefficients of HannWindow, HammingWindow or BlackmanWindow: w[i] = sum of c[k] cos(2 pi k i / period).
struct CosineWindow {
  double coefficient[3];
};
CosineWindow cosine_window_of(std::string_view op);

// DFT: its axis (known), and the length of a transform where input 1 does not say it.
size_t dft_axis(const Node&, size_t rank);
Dim dft_default_length(const Node&, const Dim& extent);
// Whether a DFT of that length is computed in double: of float64, of real signals, where attribute `double`
// (import's, for opsets to 18) says so, and where it may be a convolution with a chirp; other complex float32
// keeps to float. So does ONNX's reference, whose rounding errors
// its tests ask for.
bool dft_in_double(const Attributes&, const TensorType& signal, const Dim& length);
// How many numbers of a transform of that length are kept: all, or the first half of a symmetric one.
Dim dft_kept(const Node&, const Dim& length);

}  // namespace sinter
