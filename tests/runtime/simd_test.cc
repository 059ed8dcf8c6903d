// Every word of simd_common.h's list against plain C++, lane by lane, and its float overload against the
// vector.
#include "simd_isa.h"

namespace isa = sinter::SINTER_ISA;
using isa::f32v;
using isa::i32v;
using isa::kLanes;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// Pairs and triples of all of these meet in each test.
const std::vector<float> kValues = {0.0f,       -0.0f, 1.0f,   -1.0f, 0.5f,    -0.5f,    1.5f,
                                    -1.5f,      2.5f,  -2.5f,  3.25f, -7.75f,  1e-40f,   -1e-40f,
                                    1e-30f,     3e38f, -3e38f, kInf,  -kInf,   kNan,     8388608.5f,
                                    8388607.5f, 1e9f,  -1e9f,  0.1f,  1234.5f, -1234.5f, 0.49999997f};

bool same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Runs word on vectors and floats over all triples of values; expects `want` of each lane.
template <class Word, class Want>
void check(const char* name, Word word, Want want) {
  const size_t n = kValues.size();
  std::vector<float> a, b, c;
  for (size_t i = 0; i < n * n * n; i++) {
    a.push_back(kValues[i % n]);
    b.push_back(kValues[i / n % n]);
    c.push_back(kValues[i / n / n]);
  }
  int failures = 0;
  for (size_t i = 0; i + kLanes <= a.size() && failures < 5; i += kLanes) {
    float got[kLanes];
    isa::store(got, word(isa::load(&a[i]), isa::load(&b[i]), isa::load(&c[i])));
    for (size_t l = 0; l < kLanes; l++) {
      const float expected = want(a[i + l], b[i + l], c[i + l]);
      const float single = word(a[i + l], b[i + l], c[i + l]);
      if (!same(got[l], expected) || !same(single, expected)) {
        ADD_FAILURE() << name << "(" << a[i + l] << ", " << b[i + l] << ", " << c[i + l] << ") vector "
                      << got[l] << " float " << single << " expected " << expected;
        failures++;
      }
    }
  }
}

#define CHECK_WORD(NAME, WORD, WANT)                                                \
  check(                                                                            \
      NAME, [](auto a, auto b, auto c) { return (void)a, (void)b, (void)c, WORD; }, \
      [](float a, float b, float c) -> float { return (void)a, (void)b, (void)c, WANT; })

// What min and max promise: a NaN in the first operand stays; the rest differs by instruction set.
float want_max(float a, float b) {
#if defined(SINTER_ISA_NEON)
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
#endif
  return b > a ? b : a;
}
float want_min(float a, float b) {
#if defined(SINTER_ISA_NEON)
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? a : b;
#endif
  return b < a ? b : a;
}
// volatile: the compiler must neither contract nor fold the reference.
float want_fma(float a, float b, float c) {
#if defined(SINTER_ISA_FMA)
  return std::fma(a, b, c);
#else
  volatile float product = a * b;
  return product + c;
#endif
}

TEST(SimdWords, Arithmetic) {
  CHECK_WORD("add", isa::add(a, b), a + b);
  CHECK_WORD("sub", isa::sub(a, b), a - b);
  CHECK_WORD("mul", isa::mul(a, b), a * b);
  CHECK_WORD("div", isa::div(a, b), a / b);
  CHECK_WORD("neg", isa::neg(a), -a);
  CHECK_WORD("abs", isa::abs(a), std::fabs(a));
  CHECK_WORD("sqrt", isa::sqrt(a), std::sqrt(a));
  CHECK_WORD("fma", isa::fma(a, b, c), want_fma(a, b, c));
  CHECK_WORD("fnma", isa::fnma(a, b, c), want_fma(-a, b, c));
}

TEST(SimdWords, MinMax) {
  CHECK_WORD("max", isa::max(a, b), want_max(a, b));
  CHECK_WORD("min", isa::min(a, b), want_min(a, b));
  CHECK_WORD("max_nan", isa::max_nan(a, b), std::isnan(b) ? b : want_max(a, b));
  CHECK_WORD("min_nan", isa::min_nan(a, b), std::isnan(b) ? b : want_min(a, b));
}

TEST(SimdWords, Rounding) {
  CHECK_WORD("floor", isa::floor(a), std::floor(a));
  CHECK_WORD("ceil", isa::ceil(a), std::ceil(a));
  CHECK_WORD("trunc", isa::trunc(a), std::trunc(a));
  CHECK_WORD("round", isa::round(a), std::nearbyint(a));
}

TEST(SimdWords, CompareAndSelect) {
  CHECK_WORD("lt", isa::select(isa::lt(a, b), b, c), a < b ? b : c);
  CHECK_WORD("le", isa::select(isa::le(a, b), b, c), a <= b ? b : c);
  CHECK_WORD("gt", isa::select(isa::gt(a, b), b, c), a > b ? b : c);
  CHECK_WORD("ge", isa::select(isa::ge(a, b), b, c), a >= b ? b : c);
  CHECK_WORD("eq", isa::select(isa::eq(a, b), b, c), a == b ? b : c);
  CHECK_WORD("ne", isa::select(isa::ne(a, b), b, c), a != b ? b : c);
  CHECK_WORD("and", isa::select(isa::mask_and(isa::lt(a, b), isa::lt(b, c)), b, c), a < b && b < c ? b : c);
  CHECK_WORD("or", isa::select(isa::mask_or(isa::lt(a, b), isa::lt(b, c)), a, c), a < b || b < c ? a : c);
  CHECK_WORD("not", isa::select(isa::mask_not(isa::lt(a, b)), b, c), !(a < b) ? b : c);
}

TEST(SimdWords, AnyAll) {
  for (int hit = 0; hit <= kLanes; hit++) {
    float p[kLanes], q[kLanes];
    for (int l = 0; l < kLanes; l++) p[l] = l == hit ? -1.0f : 1.0f, q[l] = -p[l];
    EXPECT_EQ(isa::any(isa::lt(isa::load(p), isa::zero())), hit < kLanes) << hit;
    EXPECT_EQ(isa::all(isa::lt(isa::load(q), isa::zero())), hit == kLanes) << hit;
  }
  EXPECT_TRUE(isa::all(isa::eq(isa::zero(), isa::splat(0.0f))));
  EXPECT_TRUE(isa::any(true) && isa::all(true) && !isa::any(false) && !isa::all(false));
}

TEST(SimdWords, LoadStoreOfNLanes) {
  for (int offset = 0; offset < 3; offset++) {  // off by one float from any alignment
    for (int n = 0; n <= kLanes; n++) {
      // Exactly n floats on the heap, so that AddressSanitizer sees one too many.
      std::vector<float> source(static_cast<size_t>(offset + n)), wide(64, -5.0f), target(64, -5.0f);
      for (size_t i = 0; i < source.size(); i++) source[i] = static_cast<float>(i) + 0.5f;
      const f32v v = isa::load_n(source.data() + offset, n);
      isa::store(&wide[1], v);
      isa::store_n(&target[static_cast<size_t>(1 + offset)], isa::splat(7.0f), n);
      for (int l = 0; l < kLanes; l++) {
        EXPECT_EQ(wide[static_cast<size_t>(1 + l)], l < n ? static_cast<float>(offset + l) + 0.5f : 0.0f);
      }
      for (int i = 0; i < 64; i++) {
        const bool written = i >= 1 + offset && i < 1 + offset + n;
        EXPECT_EQ(target[static_cast<size_t>(i)], written ? 7.0f : -5.0f) << n << " at " << i;
      }
      std::vector<float> exact(static_cast<size_t>(n));
      isa::store_n(exact.data(), v, n);
      for (int l = 0; l < n; l++)
        EXPECT_EQ(exact[static_cast<size_t>(l)], source[static_cast<size_t>(offset + l)]);
    }
  }
  float one = 3.0f;
  EXPECT_EQ(isa::load<float>(&one), 3.0f);
  EXPECT_EQ(isa::load_n<float>(&one, 1), 3.0f);
  EXPECT_EQ(isa::load_n<float>(&one, 0), 0.0f);
  isa::store_n(&one, 4.0f, 0);
  EXPECT_EQ(one, 3.0f);
  isa::store_n(&one, 4.0f, 1);
  EXPECT_EQ(one, 4.0f);
}

TEST(SimdWords, Reductions) {
  for (int hot = 0; hot < kLanes; hot++) {
    float p[kLanes];
    for (int l = 0; l < kLanes; l++) p[l] = static_cast<float>(l + 1);
    float sum = 0;
    p[hot] = 100.0f;
    for (float v : p) sum += v;
    EXPECT_EQ(isa::hsum(isa::load(p)), sum);
    EXPECT_EQ(isa::hmax(isa::load(p)), 100.0f);
    p[hot] = -100.0f;
    EXPECT_EQ(isa::hmin(isa::load(p)), -100.0f);
    p[hot] = kNan;
    EXPECT_TRUE(std::isnan(isa::hsum(isa::load(p))));
    EXPECT_TRUE(std::isnan(isa::hmax(isa::load(p)))) << hot;
    EXPECT_TRUE(std::isnan(isa::hmin(isa::load(p)))) << hot;
  }
}

TEST(SimdWords, Transpose) {
  f32v rows[kLanes];
  for (int r = 0; r < kLanes; r++) {
    float p[kLanes];
    for (int c = 0; c < kLanes; c++) p[c] = static_cast<float>(r * 100 + c);
    rows[r] = isa::load(p);
  }
  isa::transpose(rows);
  for (int r = 0; r < kLanes; r++) {
    float p[kLanes];
    isa::store(p, rows[r]);
    for (int c = 0; c < kLanes; c++) EXPECT_EQ(p[c], static_cast<float>(c * 100 + r));
  }
}

template <class Word, class Want>
void check_int(const char* name, Word word, Want want) {
  const int32_t values[] = {0, 1, -1, 5, -7, 1 << 23, INT32_MAX, INT32_MIN, 0x3f800000, -123456789};
  for (int32_t x : values) {
    for (int32_t y : values) {
      int32_t got[kLanes], p[kLanes], q[kLanes];
      for (int l = 0; l < kLanes; l++) p[l] = x, q[l] = l % 2 == 0 ? y : 3;
      isa::store(got, word(isa::load(p), isa::load(q)));
      for (int l = 0; l < kLanes; l++) {
        EXPECT_EQ(got[l], want(p[l], q[l])) << name << " " << p[l] << " " << q[l];
        EXPECT_EQ(word(p[l], q[l]), want(p[l], q[l])) << name << " " << p[l] << " " << q[l];
      }
    }
  }
}

TEST(SimdWords, Integers) {
  auto wrap = [](int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(v))); };
  check_int(
      "add", [](auto a, auto b) { return isa::add(a, b); },
      [=](int64_t a, int64_t b) { return wrap(a + b); });
  check_int(
      "sub", [](auto a, auto b) { return isa::sub(a, b); },
      [=](int64_t a, int64_t b) { return wrap(a - b); });
  check_int(
      "mul", [](auto a, auto b) { return isa::mul(a, b); },
      [=](int64_t a, int64_t b) { return wrap(a * b); });
  check_int(
      "and", [](auto a, auto b) { return isa::bit_and(a, b); }, [](int32_t a, int32_t b) { return a & b; });
  check_int(
      "or", [](auto a, auto b) { return isa::bit_or(a, b); }, [](int32_t a, int32_t b) { return a | b; });
  check_int(
      "xor", [](auto a, auto b) { return isa::bit_xor(a, b); }, [](int32_t a, int32_t b) { return a ^ b; });
  check_int(
      "shift_left", [](auto a, auto) { return isa::template shift_left<7>(a); },
      [=](int64_t a, int64_t) { return wrap(a * 128); });
  check_int(
      "shift_right", [](auto a, auto) { return isa::template shift_right<7>(a); },
      [](int32_t a, int32_t) { return a >> 7; });
  check_int(
      "lt", [](auto a, auto b) { return isa::select(isa::lt(a, b), a, b); },
      [](int32_t a, int32_t b) { return a < b ? a : b; });
  check_int(
      "gt", [](auto a, auto b) { return isa::select(isa::gt(a, b), a, b); },
      [](int32_t a, int32_t b) { return a > b ? a : b; });
  check_int(
      "eq", [](auto a, auto b) { return isa::select(isa::eq(a, b), a, b); },
      [](int32_t, int32_t b) { return b; });
}

TEST(SimdWords, Conversions) {
  const float values[] = {0.0f,  -0.0f,      0.5f, -0.5f, 1.5f,        2.5f,
                          -2.5f, 2.4999998f, 1e9f, -1e9f, 16777216.0f, -2147483648.0f};
  for (float x : values) {
    int32_t p[kLanes];
    isa::store(p, isa::to_int(isa::splat(x)));
    EXPECT_EQ(p[kLanes - 1], static_cast<int32_t>(x));
    EXPECT_EQ(isa::to_int(x), static_cast<int32_t>(x));
    isa::store(p, isa::round_to_int(isa::splat(x)));
    EXPECT_EQ(p[0], static_cast<int32_t>(std::nearbyint(x))) << x;
    EXPECT_EQ(isa::round_to_int(x), static_cast<int32_t>(std::nearbyint(x))) << x;
    float back[kLanes];
    isa::store(back, isa::float_bits(isa::bits(isa::splat(x))));
    EXPECT_TRUE(same(back[kLanes - 1], x));
    EXPECT_TRUE(same(isa::float_bits(isa::bits(x)), x));
  }
  for (int32_t i : {0, 1, -1, 16777217, INT32_MAX, INT32_MIN}) {
    float p[kLanes];
    isa::store(p, isa::to_float(isa::splat_int(i)));
    EXPECT_EQ(p[kLanes - 1], static_cast<float>(i));
    EXPECT_EQ(isa::to_float(i), static_cast<float>(i));
  }
  // Out of range there is no trap and no undefined behaviour.
  for (float x : {kNan, kInf, -kInf, 3e9f, -3e9f}) {
    int32_t p[kLanes];
    isa::store(p, isa::to_int(isa::splat(x)));
    EXPECT_EQ(isa::to_int(x), p[0]) << x;
  }
}

}  // namespace

#include "sinter/simd_end.h"
