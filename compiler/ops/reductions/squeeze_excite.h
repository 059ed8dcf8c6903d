// squeeze_excite (domain sinter, made by pass fuse_squeeze_excite): what its attributes say, for the pass
// that sets them and the kernel.
#pragma once
#include <optional>
#include <string>

#include "ir/expr.h"

namespace sinter {

// Inputs: x, then weights [to, from] and bias [to] (or null) of the squeezing and the exciting product.
enum SqueezeExciteInput : size_t { kSeX, kSqueezeWeights, kSqueezeBias, kExciteWeights, kExciteBias };

// An expression over the accumulator and constants of float32 as text of an attribute: functions before their
// arguments, "hard_sigmoid acc 0x1p-3 0x1p-1". No value where the expression holds anything else.
std::optional<std::string> activation_text(const Expr&);
ExprPtr activation_of(const std::string& text);

}  // namespace sinter
