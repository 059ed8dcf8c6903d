#include "targets/core_speed.h"

#include <algorithm>

namespace sinter {

double stream_cycles(const CoreSpeed& m, double weight_bytes, double passes, bool near) {
  const bool stays = weight_bytes <= static_cast<double>(m.l2);
  const double behind = near ? m.again_bytes : m.memory_bytes;
  return weight_bytes / (stays && !m.starts_cold ? m.l2_bytes : behind) +
         (passes - 1) * weight_bytes / (stays ? m.l2_bytes : m.again_bytes);
}

double beside_stream(double sums, double stream) {
  return std::max(sums, stream) + 0.3 * std::min(sums, stream);
}

}  // namespace sinter
