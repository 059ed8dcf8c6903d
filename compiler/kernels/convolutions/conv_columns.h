// What choosing between the algorithms of a convolution has to know of conv_columns.cpp.
#pragma once
#include "emit/layer.h"

namespace sinter {

// The multiply-adds of the vectors of conv_columns as a share of those of conv_direct; 1 where the first does
// not serve the node or is not worth its second pass.
double columns_share(const Node&, const Context&);

}  // namespace sinter
