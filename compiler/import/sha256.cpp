// The constants are the first 32 bits of the fractional parts of the cube roots of the first 64 primes (and
// of the square roots of the first 8): computed here rather than listed, in exact integer arithmetic.
#include "import/sha256.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>

namespace sinter {
namespace {

using Wide = unsigned __int128;

// floor(prime^(1/root) * 2^32) mod 2^32, by bisection.
constexpr uint32_t fraction_of_root(uint32_t prime, int root) {
  uint64_t lo = 0, hi = uint64_t{1} << 37;  // largest: sqrt(19) and cbrt(311), both below 8
  while (hi - lo > 1) {
    const uint64_t mid = (lo + hi) / 2;
    const Wide square = Wide{mid} * mid;
    const bool below = root == 2 ? square <= (Wide{prime} << 64) : (square * mid) <= (Wide{prime} << 96);
    (below ? lo : hi) = mid;
  }
  return static_cast<uint32_t>(lo);
}

struct Constants {
  std::array<uint32_t, 64> round{};
  std::array<uint32_t, 8> start{};
};
constexpr Constants make_constants() {
  Constants c;
  size_t n = 0;
  for (uint32_t p = 2; n < 64; ++p) {
    bool prime = true;
    for (uint32_t d = 2; d * d <= p; ++d) prime = prime && p % d != 0;
    if (!prime) continue;
    if (n < 8) c.start[n] = fraction_of_root(p, 2);
    c.round[n++] = fraction_of_root(p, 3);
  }
  return c;
}
constexpr Constants kConstants = make_constants();

void compress(std::array<uint32_t, 8>& state, const unsigned char* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           uint32_t{block[4 * i + 3]};
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  std::array<uint32_t, 8> v = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t a = v[0], e = v[4];
    const uint32_t choose = (e & v[5]) ^ (~e & v[6]);
    const uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
    const uint32_t t1 =
        v[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choose + kConstants.round[i] + w[i];
    const uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    v = {t1 + t2, a, v[1], v[2], v[3] + t1, e, v[5], v[6]};
  }
  for (size_t i = 0; i < 8; ++i) state[i] += v[i];
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<uint32_t, 8> state = kConstants.start;
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 64; left -= 64, p += 64) compress(state, p);
  unsigned char tail[128] = {};
  for (size_t i = 0; i < left; ++i) tail[i] = p[i];
  tail[left] = 0x80;
  const size_t length = left < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) tail[length - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t at = 0; at < length; at += 64) compress(state, tail + at);
  std::string out;
  for (uint32_t word : state) out += fmt::format("{:08x}", word);
  return out;
}

}  // namespace sinter
