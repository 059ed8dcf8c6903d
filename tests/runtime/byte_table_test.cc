// look_up_bytes: all bytes, of all lengths up to a few vectors, from addresses of any alignment, in place
// too.

// clang-format off
#include "simd_isa.h"  // first: it chooses the instruction set
#include "sinter/byte_table.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;

namespace {

TEST(ByteTable, AllBytes) {
  std::vector<std::uint8_t> table(256), x(600);
  for (std::size_t i = 0; i < table.size(); i++) table[i] = static_cast<std::uint8_t>(i * 167 + 91);
  for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<std::uint8_t>(i * 73 + 5);
  for (std::size_t from : {0, 1, 7})
    for (std::size_t n : {0, 1, 15, 16, 17, 31, 32, 33, 63, 100, 256, 513}) {
      std::vector<std::uint8_t> y(n + 2, 0xaa), same(x.begin() + static_cast<std::ptrdiff_t>(from), x.end());
      isa::look_up_bytes(x.data() + from, table.data(), static_cast<std::int64_t>(n), y.data() + 1);
      isa::look_up_bytes(same.data(), table.data(), static_cast<std::int64_t>(n), same.data());
      for (std::size_t i = 0; i < n; i++) {
        ASSERT_EQ(y[i + 1], table[x[from + i]]) << n << " bytes, byte " << i;
        ASSERT_EQ(same[i], table[x[from + i]]) << n << " bytes in place, byte " << i;
      }
      EXPECT_EQ(y[0], 0xaa);
      EXPECT_EQ(y[n + 1], 0xaa) << n;
      EXPECT_EQ(same[n], x[from + n]) << n;
    }
}

}  // namespace

#include "sinter/simd_end.h"
