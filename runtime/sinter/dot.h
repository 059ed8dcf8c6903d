// The register tile of products of 8 bits: as mac_int.h, with four neighbouring k at a time.
//
//   acc.a[t][o] += sum over i in [0, k) of flipped(x[t * pixel_stride + i]) * w[i, o]
//
// One instruction multiplies four pairs of bytes and adds the products to a lane of 32 bits: SDOT of ARMv8.2
// (signed by signed) and VPDPBUSD of AVX-512 VNNI (unsigned by signed). Where x has the other sign its top
// bit is flipped, which adds -128 (NEON) or 128 (x86) to it: detail::Flip. The caller takes that, with the
// zero point, out of the sums (kernels/products/dot_tiles.h). w is packed four k at a time, [ceil(k /
// 4)][OB], each a vector of kLanes times 4 int8: [lane][4]; behind the last k are zeros. Sums wrap. Nothing
// but the named elements of x is read.
#ifndef SINTER_DOT_H_
#define SINTER_DOT_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/dot.h"
#endif

#include "sinter/mac_int.h"

namespace sinter::SINTER_ISA {

namespace detail {
#if defined(SINTER_ISA_NEON) && defined(SINTER_DOT_PRODUCTS)
#define SINTER_DOT_BY_LANE 1
#endif

// x with its top bit flipped where the instruction wants the other sign.
#if defined(SINTER_ISA_X86)
template <class X>
constexpr std::uint32_t kFlip = std::is_signed_v<X> ? 0x80808080u : 0u;
#else
template <class X>
constexpr std::uint32_t kFlip = std::is_signed_v<X> ? 0u : 0x80808080u;
#endif

// The `Count` (1 to 4) bytes at x in each lane, zeros behind them.
template <int Count, class X>
SINTER_INLINE i32v quad(const X* x) {
  std::uint32_t q = 0;
  std::memcpy(&q, x, Count);
#if defined(SINTER_ISA_NEON)
  // Flipped in the lanes, which are loaded: no way through a general register.
  return (i32v)veorq_u32(vdupq_n_u32(q), vdupq_n_u32(kFlip<X>));
#else
  return splat_int<i32v>(static_cast<std::int32_t>(q ^ kFlip<X>));
#endif
}

#if defined(SINTER_ISA_X86)
// The products of the bytes of x with those of w, of which in each pair one of x must be 0, summed to a lane.
SINTER_INLINE i32v sum_products(i32v x, const std::int8_t* w) {
#if defined(SINTER_ISA_AVX512)
  return (i32v)_mm512_madd_epi16(_mm512_maddubs_epi16((__m512i)x, _mm512_loadu_si512(w)),
                                 _mm512_set1_epi16(1));
#elif defined(SINTER_ISA_AVX2)
  return (i32v)_mm256_madd_epi16(
      _mm256_maddubs_epi16((__m256i)x, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w))),
      _mm256_set1_epi16(1));
#else
  return (i32v)_mm_madd_epi16(
      _mm_maddubs_epi16((__m128i)x, _mm_loadu_si128(reinterpret_cast<const __m128i*>(w))), _mm_set1_epi16(1));
#endif
}
#endif

// acc + the products of the four bytes of each lane of x and of w. Without the instruction, by products of 16
// bits, which are summed where they can't overflow.
SINTER_INLINE i32v dot_lanes(i32v acc, i32v x, const std::int8_t* w) {
#if defined(SINTER_ISA_AVX512) && defined(SINTER_DOT_PRODUCTS)
  return (i32v)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)x, _mm512_loadu_si512(w));
#elif defined(SINTER_DOT_BY_LANE)
  return (i32v)vdotq_s32((int32x4_t)acc, vld1q_s8(w), (int8x16_t)x);
#elif defined(SINTER_ISA_X86)
  const i32v even = x & splat_int<i32v>(0x00ff00ff), odd = x ^ even;
  u32v sum = (u32v)acc + (u32v)sum_products(even, w) + (u32v)sum_products(odd, w);
  __asm__("" : "+v"(sum));  // g++ would put off the sums of a tile until it has all products, on the stack
  return (i32v)sum;
#elif defined(SINTER_ISA_NEON)
  const int8x16_t bytes = (int8x16_t)x, weights = vld1q_s8(w);
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(bytes), vget_low_s8(weights))),
                  high = vpaddlq_s16(vmull_high_s8(bytes, weights));
  return (i32v)vaddq_s32((int32x4_t)acc, vpaddq_s32(low, high));
#else
  for (int j = 0; j < 4; j++) {
    const auto byte = static_cast<std::int8_t>(static_cast<std::uint32_t>(x) >> (8 * j));
    acc = add(acc, byte * w[j]);
  }
  return acc;
#endif
}

#if defined(SINTER_ISA_NEON)
SINTER_INLINE int8x16_t load_signed(const std::int8_t* p) { return vld1q_s8(p); }
SINTER_INLINE int8x16_t load_signed(const std::uint8_t* p) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p), vdupq_n_u8(0x80)));
}
#endif

#if defined(SINTER_DOT_BY_LANE)
// The four k of lane `Lane` of x, for a whole tile. The instruction by name: from the intrinsic g++ 12 makes
// moves.
template <int Lane, int OB, int T>
SINTER_INLINE void dot_lane(IntTile<OB, T>& acc, const int8x16_t (&x)[T], const std::int8_t* w) {
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    const int8x16_t wo = vld1q_s8(w + (Lane * OB + o) * 16);
    SINTER_UNROLL
    for (int t = 0; t < T; t++)
      __asm__("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(acc.a[t][o]) : "w"(wo), "w"(x[t]), "i"(Lane));
  }
}
#endif

template <int Count, int OB, int T, class X>
SINTER_INLINE void dot_step(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride,
                            const std::int8_t* w) {
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    const i32v q = quad<Count>(x + t * pixel_stride);
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) acc.a[t][o] = dot_lanes(acc.a[t][o], q, w + o * 4 * kLanes);
  }
}
}  // namespace detail

}  // namespace sinter::SINTER_ISA

#if defined(SINTER_DOT_BY_LANE) && defined(SINTER_IN_ORDER)
#include "sinter/dot_in_order.h"
#endif

namespace sinter::SINTER_ISA {

template <int OB, int T, class X>
SINTER_INLINE void mac(IntTile<OB, T>& acc, const X* x, std::ptrdiff_t pixel_stride, const std::int8_t* w,
                       std::ptrdiff_t k) {
  static_assert(sizeof(X) == 1, "int8 or uint8");
#if defined(SINTER_DOT_BY_LANE) && defined(SINTER_IN_ORDER)
  if (k >= 8) {
    detail::dot_groups(acc, x, pixel_stride, w, k);
    x += k / 8 * 8;
    w += k / 8 * 8 * OB * kLanes;
    k %= 8;
  }
#elif defined(SINTER_DOT_BY_LANE)
  for (; k >= 16; k -= 16) {
    int8x16_t sixteen[T];
    SINTER_UNROLL
    for (int t = 0; t < T; t++) sixteen[t] = detail::load_signed(x + t * pixel_stride);
    detail::dot_lane<0>(acc, sixteen, w);
    detail::dot_lane<1>(acc, sixteen, w);
    detail::dot_lane<2>(acc, sixteen, w);
    detail::dot_lane<3>(acc, sixteen, w);
    x += 16;
    w += 16 * OB * kLanes;
  }
#endif
  for (; k >= 4; k -= 4) {
    detail::dot_step<4>(acc, x, pixel_stride, w);
    x += 4;
    w += 4 * OB * kLanes;
  }
  if (k == 1) detail::dot_step<1>(acc, x, pixel_stride, w);
  if (k == 2) detail::dot_step<2>(acc, x, pixel_stride, w);
  if (k == 3) detail::dot_step<3>(acc, x, pixel_stride, w);
}

// `n` bytes from `from` with their top bits flipped: as int8 what was uint8 less 128, and the other way.
template <class To, class From>
SINTER_INLINE void copy_flipped(To* __restrict to, const From* __restrict from, std::int64_t n) {
  static_assert(sizeof(To) == 1 && sizeof(From) == 1);
  typedef unsigned char Sixteen __attribute__((vector_size(16)));
  std::int64_t i = 0;
  SINTER_UNROLL_FOUR
  for (; i + 16 <= n; i += 16) {
    Sixteen v;
    std::memcpy(&v, from + i, 16);
    v ^= static_cast<unsigned char>(0x80);
    std::memcpy(to + i, &v, 16);
  }
  for (; i < n; i++) to[i] = static_cast<To>(from[i] ^ 0x80);
}

// The sums of a tile before its products: a vector for each output vector, from biases, plus what is added
// later.
template <int OB>
struct SumStart {
  i32v a[OB];
};
template <int OB>
SINTER_INLINE SumStart<OB> sum_start(const std::int32_t* bias) {
  SumStart<OB> start;
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) start.a[o] = load(bias + o * kLanes);
  return start;
}
template <int OB>
SINTER_INLINE void add_share(SumStart<OB>& start, const std::int32_t* share) {
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) start.a[o] = add(start.a[o], load(share + o * kLanes));
}
template <int OB>
SINTER_INLINE void store_start(std::int32_t* to, const SumStart<OB>& start) {
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) store(to + o * kLanes, start.a[o]);
}

// The taps of one output at an edge of its row, as they lie in `taps`: tap k at k * tap_stride, from
// x + k * step where k is in [first, end), else filled with the zero point.
template <int K, class X>
SINTER_INLINE void gather_taps(X* taps, std::ptrdiff_t tap_stride, const X* x, std::ptrdiff_t step,
                               std::ptrdiff_t depth, std::int64_t first, std::int64_t end, int zero) {
  for (std::int64_t k = 0; k < K; k++) {
    if (k >= first && k < end)
      std::memcpy(taps + k * tap_stride, x + k * step, static_cast<std::size_t>(depth));
    else
      std::memset(taps + k * tap_stride, static_cast<unsigned char>(zero), static_cast<std::size_t>(depth));
  }
}

// Sums of which the compiler knows that they stay below 2^22: with kSmallSum in their bias they are the bits
// of a float, 1.5 * 2^23 more than themselves.
constexpr std::int32_t kSmallSum = 0x4b400000;
constexpr float kRoundingShift = 12582912.0f;  // 1.5 * 2^23: floats there are a step of 1 apart
struct SmallSums {
  i32v bits;
};
SINTER_INLINE SmallSums small_sums(i32v bits) { return {bits}; }
SINTER_INLINE f32v to_float(SmallSums s) { return sub(float_bits(s.bits), splat<f32v>(kRoundingShift)); }

// How real numbers become bytes: rounded, ties to even, plus `zero`, within [low, high], which lies within
// the range of the type. `below_2_15`: all of them are, by their size.
struct ByteRange {
  int zero, low, high;
  bool below_2_15;
};

#if defined(SINTER_ISA_NEON)
namespace detail {
// Rounded by addition, which costs a quarter of what conversions do; the lower half of each sum is the
// integer.
SINTER_INLINE int16x8_t rounded(f32v a, f32v b, ByteRange r) {
  if (!r.below_2_15) {
    const f32v low = splat(static_cast<float>(r.low - r.zero)),
               high = splat(static_cast<float>(r.high - r.zero));
    a = min(max(a, low), high);
    b = min(max(b, low), high);
  }
  const auto half = [](f32v v) __attribute__((always_inline)) {
    float32x4_t x = ps(v);
    __asm__("" : "+w"(x));  // a product is rounded before: no fused multiply-add with the shift
    return vreinterpretq_s16_f32(vaddq_f32(x, vdupq_n_f32(kRoundingShift)));
  };
  const int16x8_t both = vuzp1q_s16(half(a), half(b));
  return r.zero == 0 ? both : vaddq_s16(both, vdupq_n_s16(static_cast<std::int16_t>(r.zero)));
}

template <class T>
SINTER_INLINE uint8x16_t as_bytes(int16x8_t a, int16x8_t b, ByteRange r) {
  if (!r.below_2_15) return vuzp1q_u8(vreinterpretq_u8_s16(a), vreinterpretq_u8_s16(b));
  if constexpr (std::is_signed_v<T>) {
    int8x16_t v = vqmovn_high_s16(vqmovn_s16(a), b);
    if (r.low > -128) v = vmaxq_s8(v, vdupq_n_s8(static_cast<std::int8_t>(r.low)));
    if (r.high < 127) v = vminq_s8(v, vdupq_n_s8(static_cast<std::int8_t>(r.high)));
    return vreinterpretq_u8_s8(v);
  } else {
    uint8x16_t v = vqmovun_high_s16(vqmovun_s16(a), b);
    if (r.low > 0) v = vmaxq_u8(v, vdupq_n_u8(static_cast<std::uint8_t>(r.low)));
    if (r.high < 255) v = vminq_u8(v, vdupq_n_u8(static_cast<std::uint8_t>(r.high)));
    return v;
  }
}

template <int Count>
SINTER_INLINE void store_first(std::uint8_t* to, uint8x16_t bytes) {
  if constexpr (Count == 16) {
    vst1q_u8(to, bytes);
  } else {
    if constexpr (Count >= 8) vst1_u8(to, vget_low_u8(bytes));
    constexpr int kRest = Count % 8;
    if constexpr (kRest > 0) {
      const uint8x8_t rest = Count >= 8 ? vget_high_u8(bytes) : vget_low_u8(bytes);
      const std::uint64_t word = vget_lane_u64(vreinterpret_u64_u8(rest), 0);
      std::memcpy(to + Count / 8 * 8, &word, kRest);
    }
  }
}
}  // namespace detail
#endif

// OB vectors of real numbers (no NaN) as bytes at p, of the last one the first `Last`.
template <class T, int Last, int OB>
SINTER_INLINE void store_rounded(T* p, const f32v (&x)[OB], ByteRange r) {
#if defined(SINTER_ISA_NEON)
  static_assert(OB <= 4, "one vector of bytes");
  const int16x8_t a = detail::rounded(x[0], x[OB > 1 ? 1 : 0], r),
                  b = OB > 2 ? detail::rounded(x[OB > 2 ? 2 : 0], x[OB - 1], r) : a;
  detail::store_first<(OB - 1) * kLanes + Last>(reinterpret_cast<std::uint8_t*>(p),
                                                detail::as_bytes<T>(a, b, r));
#else
  const f32v low = splat<f32v>(static_cast<float>(r.low - r.zero)),
             high = splat<f32v>(static_cast<float>(r.high - r.zero));
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    const f32v v = min(max(x[o], low), high);
#if defined(SINTER_ISA_AVX512)
    const __m128i bytes =
        _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)add(round_to_int(v), splat_int<i32v>(r.zero)));
    if (o + 1 < OB || Last == kLanes)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p + o * kLanes), bytes);
    else
      std::memcpy(p + o * kLanes, &bytes, Last);
#else
    const i32v wide = add(round_to_int(v), splat_int<i32v>(r.zero));
    T bytes[kLanes];
    if (o + 1 < OB || Last == kLanes) {
      store_narrow(p + o * kLanes, wide);
    } else {
      store_narrow(static_cast<T*>(bytes), wide);
      std::memcpy(p + o * kLanes, bytes, Last);
    }
#endif
  }
#endif
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_DOT_H_
