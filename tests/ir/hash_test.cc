// The hash of bytes: every byte and the length count, and ordinary tensors don't collide.
#include "ir/hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

namespace sinter {
namespace {

TEST(Hash, EveryBitCounts) {
  for (size_t size : {1, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100}) {
    std::vector<unsigned char> bytes(size, 0x5a);
    std::set<uint64_t> seen{hash_bytes(bytes.data(), size)};
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      EXPECT_TRUE(seen.insert(hash_bytes(bytes.data(), size)).second) << size << " bytes, bit " << bit;
      bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    }
  }
}

TEST(Hash, LengthAndOrderCount) {
  const std::vector<unsigned char> zeros(4096, 0);
  std::set<uint64_t> seen;
  for (size_t size = 0; size <= zeros.size(); ++size)
    EXPECT_TRUE(seen.insert(hash_bytes(zeros.data(), size)).second) << size;
  const uint64_t a[] = {1, 2, 3, 4, 5, 6, 7, 8}, b[] = {2, 1, 3, 4, 5, 6, 7, 8},
                 c[] = {5, 2, 3, 4, 1, 6, 7, 8};
  EXPECT_NE(hash_bytes(a, sizeof a), hash_bytes(b, sizeof b));
  EXPECT_NE(hash_bytes(a, sizeof a), hash_bytes(c, sizeof c));
}

// Tensors of one number, floats that differ in few bits: as weights do. Both halves of the hash spread.
TEST(Hash, Spreads) {
  std::set<uint64_t> whole;
  std::set<uint32_t> low, high;
  for (int k = 0; k < 20000; ++k) {
    const std::vector<float> v(16, static_cast<float>(k) / 4);
    const uint64_t h = hash_bytes(v.data(), v.size() * sizeof(float));
    whole.insert(h);
    low.insert(static_cast<uint32_t>(h));
    high.insert(static_cast<uint32_t>(h >> 32));
  }
  EXPECT_EQ(whole.size(), 20000u);
  EXPECT_GT(low.size(), 19990u);  // by chance 0.05 of them are twice
  EXPECT_GT(high.size(), 19990u);
}

TEST(Hash, DoesNotDependOnAlignment) {
  std::mt19937 random(1);
  std::vector<unsigned char> bytes(300);
  for (auto& b : bytes) b = static_cast<unsigned char>(random());
  for (size_t size : {5u, 40u, 200u}) {
    const uint64_t want = hash_bytes(bytes.data(), size);
    for (size_t shift = 1; shift < 9; ++shift) {
      std::vector<unsigned char> moved(size + shift);
      std::memcpy(moved.data() + shift, bytes.data(), size);
      EXPECT_EQ(hash_bytes(moved.data() + shift, size), want);
    }
  }
}

}  // namespace
}  // namespace sinter
