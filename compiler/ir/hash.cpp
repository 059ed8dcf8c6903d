// Four lanes take eight bytes each at a time, so that no multiplication waits for the one before it. A word
// is multiplied, added to its lane, and the lane rotated and multiplied again: what a bit of one word changes
// there, no single bit of the next word undoes.
#include "ir/hash.h"

#include <bit>
#include <cstring>

namespace sinter {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u, kOther = 0xd1342543de82ef95u;

uint64_t word_at(const unsigned char* p, size_t bytes) {
  uint64_t w = 0;
  std::memcpy(&w, p, bytes);
  return w;
}
uint64_t mixed(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kOther, 31) * kOdd; }

}  // namespace

uint64_t hash_bytes(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t lanes[4] = {kOdd, kOther, ~kOdd, ~kOther};
  size_t i = 0;
  for (; i + 32 <= bytes; i += 32)
    for (size_t k = 0; k < 4; ++k) lanes[k] = mixed(lanes[k], word_at(p + i + 8 * k, 8));
  for (size_t k = 0; i < bytes; ++k) {
    const size_t n = bytes - i < 8 ? bytes - i : 8;
    lanes[k] = mixed(lanes[k], word_at(p + i, n));
    i += n;
  }
  uint64_t h = bytes * kOther;
  for (uint64_t lane : lanes) h = (mixed(h, lane ^ (lane >> 32))) * kOther;
  return h ^ (h >> 31);
}

}  // namespace sinter
