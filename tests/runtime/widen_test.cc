// widen: all finite values of both 16-bit types, bit for bit, in vectors and in what is left of them, with
// the processor's denormals on and off.

// clang-format off
#include "simd_isa.h"  // first: it chooses the instruction set
#include "sinter/widen.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;

namespace {

template <class Half>
std::vector<Half> finite_values() {
  std::vector<Half> all;
  for (std::uint32_t b = 0; b < 65536; b++) {
    const Half h = {static_cast<std::uint16_t>(b)};
    if (std::isfinite(sinter::to_float(h))) all.push_back(h);
  }
  return all;
}

template <class Half>
void check() {
  const std::vector<Half> values = finite_values<Half>();
  for (std::ptrdiff_t less : {0, 1, 3, 5, 15}) {
    const auto count = static_cast<std::ptrdiff_t>(values.size()) - less;
    std::vector<float> to(static_cast<std::size_t>(count + isa::kLanes), 1.0f);
    ASSERT_EQ(isa::widen(values.data() + less, count, to.data()), to.data());
    for (std::ptrdiff_t i = 0; i < count; i++) {
      const float want = sinter::to_float(values[static_cast<std::size_t>(i + less)]);
      ASSERT_EQ(std::memcmp(&to[static_cast<std::size_t>(i)], &want, sizeof want), 0)
          << std::hex << values[static_cast<std::size_t>(i + less)].bits;
    }
    for (std::ptrdiff_t i = count; i < count + isa::kLanes; i++)
      ASSERT_EQ(to[static_cast<std::size_t>(i)], 0.0f);
  }
}

TEST(Widen, Half) { check<sinter::half>(); }
TEST(Widen, BFloat16) { check<sinter::bfloat16>(); }

#if defined(SINTER_ISA_X86)
TEST(Widen, DenormalsAreZero) {
  const std::vector<sinter::half> values = finite_values<sinter::half>();
  const auto count = static_cast<std::ptrdiff_t>(values.size());
  std::vector<float> want(values.size() + isa::kLanes), got = want;
  isa::widen(values.data(), count, want.data());
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040u);  // flush to zero, denormals are zero
  isa::widen(values.data(), count, got.data());
  _mm_setcsr(mode);
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0);
}
#endif

}  // namespace

#include "sinter/simd_end.h"
