// The last resort of the table in recurrent.cpp.
#pragma once
#include "emit/layer.h"

namespace sinter {

void emit_recurrent_plain(LayerWriter& w);

}  // namespace sinter
