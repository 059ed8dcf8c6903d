// narrow: all values of the four small integer types, read into lanes and stored from lanes whose other bits
// are set, with nothing beyond the last element touched.

// clang-format off
#include "simd_isa.h"  // first: it chooses the instruction set
#include "sinter/lanes.h"
// clang-format on

namespace isa = sinter::SINTER_ISA;

namespace {

template <class T>
class Narrow : public testing::Test {};
using Types = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>;
TYPED_TEST_SUITE(Narrow, Types);

// All values of T and a vector more; its memory is exactly as long, so that a sanitizer sees a step beyond.
template <class T>
std::vector<T> values() {
  const std::size_t count = std::size_t{1} << (8 * sizeof(T));
  std::vector<T> all(count + isa::kLanes);
  for (std::size_t i = 0; i < all.size(); i++) all[i] = static_cast<T>(i * 7919u);
  return all;
}

TYPED_TEST(Narrow, LoadsEveryValue) {
  const std::vector<TypeParam> from = values<TypeParam>();
  for (std::size_t i = 0; i + isa::kLanes <= from.size(); i++) {
    std::int32_t got[isa::kLanes];
    isa::store(got, isa::load_wide(&from[i]));
    for (std::size_t l = 0; l < isa::kLanes; l++) ASSERT_EQ(got[l], from[i + l]);
  }
}

TYPED_TEST(Narrow, StoresTheLowBits) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 20000; turn++) {
    std::int32_t wide[isa::kLanes];
    for (std::int32_t& w : wide) w = static_cast<std::int32_t>(random());
    TypeParam to[isa::kLanes + 2];
    std::memset(to, 0x5a, sizeof to);
    const TypeParam guard = to[0];
    isa::store_narrow(to + 1, isa::load(static_cast<const std::int32_t*>(wide)));
    for (std::size_t l = 0; l < isa::kLanes; l++) ASSERT_EQ(to[1 + l], static_cast<TypeParam>(wide[l]));
    ASSERT_EQ(to[0], guard);
    ASSERT_EQ(to[isa::kLanes + 1], guard);
  }
}

// As floats, a whole vector of them and what is left of one.
TYPED_TEST(Narrow, FloatsThereAndBack) {
  const std::vector<TypeParam> from = values<TypeParam>();
  for (std::size_t i = 0; i + isa::kLanes <= from.size(); i += isa::kLanes)
    for (int lanes = 1; lanes <= isa::kLanes; lanes++) {
      TypeParam to[isa::kLanes + 1] = {};
      isa::store_lanes(static_cast<TypeParam*>(to), isa::load_lanes(&from[i], lanes), lanes);
      for (int l = 0; l <= isa::kLanes; l++)
        ASSERT_EQ(to[l], l < lanes ? from[i + static_cast<std::size_t>(l)] : TypeParam{0});
    }
}

// Without and with a unit scale, and of NaN, which is 0 whatever the zero point.
TYPED_TEST(Narrow, Quantized) {
  if constexpr (sizeof(TypeParam) == 1) {
    const float low = std::numeric_limits<TypeParam>::min(), high = std::numeric_limits<TypeParam>::max();
    for (const float zero : {0.0f, 3.0f})
      for (const float scale : {1.0f, 0.25f}) {
        const isa::QuantizeSteps q = {scale, 1 / scale, zero, (low - zero - 0.25f) * scale,
                                      (high - zero + 0.25f) * scale};
        for (int i = -1500; i <= 1500; i++) {
          const float x = static_cast<float>(i) * 0.3f * scale;
          const float want = std::min(std::max(std::nearbyint(x / scale) + zero, low), high);
          ASSERT_EQ(isa::quantized<TypeParam>(x, q), want) << x;
          ASSERT_EQ(isa::quantized_number<TypeParam>(x, q), want) << x;
          float lanes[isa::kLanes];
          isa::store(static_cast<float*>(lanes), isa::quantized<TypeParam>(isa::splat(x), q));
          ASSERT_EQ(lanes[isa::kLanes - 1], want) << x;
        }
        EXPECT_EQ(isa::quantized<TypeParam>(std::numeric_limits<float>::quiet_NaN(), q), 0.0f);
      }
  }
}

}  // namespace

#include "sinter/simd_end.h"
