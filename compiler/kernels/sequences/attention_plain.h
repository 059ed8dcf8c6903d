// The last resort of the table in attention.cpp.
#pragma once
#include "emit/layer.h"

namespace sinter {

void emit_attention_plain(LayerWriter& w);

}  // namespace sinter
