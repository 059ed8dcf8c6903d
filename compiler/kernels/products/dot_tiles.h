// What the kernels of products of bytes share (conv_dot.cpp, conv_dot_depthwise.cpp): packed constants, and
// what becomes of a tile of sums.
//
// The words are those of runtime/sinter/dot.h.
#pragma once
#include <string>
#include <vector>

#include "kernels/products/finish_tile.h"
#include "kernels/products/integer.h"
#include "kernels/products/micro_kernels.h"

namespace sinter {

// What the micro-kernel adds to every x by flipping its sign: -128, 0 or 128.
int64_t flip_of(const Node& n, MicroKernel::Sign);
// What is to be taken off every x as the micro-kernel sees it: the zero point, and that.
int64_t offset_of(const Node& n, MicroKernel::Sign);

// No sum of products of n's operands exceeds this, whatever x holds. `out`: the axis of the weights that
// counts the output channels.
double most_of(const Node& n, size_t out);

// Whether int8 weights hold -128, of which two products may leave 16 bits.
bool holds_lowest(const Tensor& weights);

// int32 [groups][padded] by `at(output channel)`.
template <class At>
std::vector<int32_t> for_channels(int64_t groups, int64_t columns, int64_t padded, At at) {
  std::vector<int32_t> v(static_cast<size_t>(groups * padded), 0);
  for (int64_t m = 0; m < groups * columns; ++m)
    v[static_cast<size_t>(m / columns * padded + m % columns)] = static_cast<int32_t>(at(m));
  return v;
}

// Words of 32 bits among the weights.
std::string words(LayerWriter& w, const std::string& name, const std::vector<int32_t>& v,
                  const std::string& comment);

constexpr const char* kByteWeights = "const std::int8_t* wp";  // for open_panel

}  // namespace sinter
