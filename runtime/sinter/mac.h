// The register tile at the heart of convolution, GEMM and attention: OB vectors of output channels x T pixels
// (or rows), accumulated in registers over k input channels:
//
//   acc.a[t][o] += sum over i in [0, k) of x[t * pixel_stride + i * k_stride] * w[(i * OB + o) * kLanes ...]
//
// w is a packed panel [k][OB][kLanes], read as one contiguous stream; its rows may be shorter (RowOf). Sums
// are taken in the order of i, each product fused into the sum where the instruction set can. k may be any
// value >= 0 and only known at run time; nothing but the named elements of x and w is read. Everything is
// inlined into the caller's loop, so that strides and k that are constants there become parts of addresses.
//
// Tiles whose inner loop has no spills with g++ 12 (OB x T; kTileT<OB> is the largest good T):
//   AVX-512   1x28  2x14  3x9  4x6     32 registers: OB*T + OB + 1 (x broadcast) <= 32
//   AVX2      1x12  2x6   3x4  4x3     16 registers
//   SSE4.2    1x12  2x6   3x3  4x2     16 registers, one more for each product
//   NEON      1x15  2x10  3x7  4x5     32 registers: OB*T + OB + T (x by lane) <= 32
//                                      modelled best: Cortex-A72 and A76 2x10 (99 %), A53 and A55 4x5, 3x7
//                                      (62-66 %)
// AVX-512 and AVX2 need 8 to 10 sums in flight to be busy, NEON 4 (Cortex-A53) to 8 (A76).
#ifndef SINTER_MAC_H_
#define SINTER_MAC_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/mac.h"
#endif

namespace sinter::SINTER_ISA {

template <int OB, int T>
struct Tile {
  f32v a[T][OB];
};

namespace detail {
constexpr int tile_t(int ob) {
#if defined(SINTER_ISA_NEON)
  return ob == 1 ? 15 : ob == 2 ? 10 : ob == 3 ? 7 : ob == 4 ? 5 : 1;
#elif defined(SINTER_ISA_AVX512)
  return ob == 1 ? 28 : ob == 2 ? 14 : ob == 3 ? 9 : ob == 4 ? 6 : 1;
#elif defined(SINTER_ISA_AVX2)
  return ob == 1 ? 12 : ob == 2 ? 6 : ob == 3 ? 4 : ob == 4 ? 3 : 1;
#else
  return ob == 1 ? 12 : ob == 2 ? 6 : ob == 3 ? 3 : ob == 4 ? 2 : 1;
#endif
}
}  // namespace detail

// The largest T (pixels) of a tile of OB vectors that stays in registers, OB = 1 to 4.
template <int OB>
constexpr int kTileT = detail::tile_t(OB);

#if defined(SINTER_ISA_NEON) && !defined(SINTER_IN_ORDER)
// The vector at p, loaded once more each time it is asked for: what several sums start from. Copies of a
// register would take the unit that multiply-adds need; loads have one of their own.
SINTER_INLINE f32v load_start(const float* p) {
  typedef float vector __attribute__((vector_size(16), aligned(4), may_alias));
  f32v v;
  __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*reinterpret_cast<const vector*>(p)));
  return v;
}
alignas(16) constexpr float kZeros[4] = {};
SINTER_INLINE f32v zero_start() { return load_start(kZeros); }
#else
SINTER_INLINE f32v load_start(const float* p) { return load(p); }
SINTER_INLINE f32v zero_start() { return zero(); }
#endif

// Starts every pixel's sums at bias[OB * kLanes], or at zero if bias is null.
template <int OB, int T>
SINTER_INLINE void tile_bias(Tile<OB, T>& acc, const float* bias) {
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) {
    SINTER_UNROLL
    for (int t = 0; t < T; t++) acc.a[t][o] = bias != nullptr ? load_start(bias + o * kLanes) : zero_start();
  }
}

// How a panel of OB vectors lies in memory: floats from one value of k to the next, and whether only the
// lower half of the last vector's lanes has channels.
//
// A panel whose last channels don't fill a vector may come without the lanes that are missing (ShortRow): the
// last vector of each row ends in the next one then, and a vector more than the panel can be read. What is in
// such lanes only gets to lanes of the sums that nobody stores.
template <int Floats, bool Half>
struct PanelRow {
  static constexpr int value = Floats;
  static constexpr bool half = Half;
  constexpr operator int() const { return Floats; }
};
template <int OB>
using RowOf = PanelRow<OB * kLanes, false>;
template <int OB, int Last>
using WholeRow = PanelRow<OB * kLanes, (Last * 2 <= kLanes)>;
template <int OB, int Last>
using ShortRow = PanelRow<(OB - 1) * kLanes + Last, (Last * 2 <= kLanes)>;

namespace detail {
// acc + w * x, of the lower half of the lanes at least. AVX-512 multiplies halves twice as often on many
// cores; by name, as casts between the vectors' types make moves.
SINTER_INLINE f32v fma_low(f32v w, f32v x, f32v acc) {
#if defined(SINTER_ISA_AVX512)
  __asm__("vfmadd231ps %t2, %t1, %t0" : "+v"(acc) : "v"(w), "v"(x));
  return acc;
#else
  return fma(w, x, acc);
#endif
}
SINTER_INLINE f32v fma_low(f32v w, const float* x, f32v acc) {
#if defined(SINTER_ISA_AVX512)
  __asm__("vfmadd231ps %2%{1to8%}, %t1, %t0" : "+v"(acc) : "v"(w), "m"(*x));
  return acc;
#else
  return fma(w, splat(*x), acc);
#endif
}

// One value of k: an outer product of T values of x and OB vectors of w. The fewer of the two stay in
// registers.
template <class Row, int OB, int T>
SINTER_INLINE void mac_step(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride, const float* w) {
  if constexpr (Row::half) {
    f32v wv[OB];
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) wv[o] = load(w + o * kLanes);
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      if constexpr (OB == 1) {
        acc.a[t][0] = fma_low(wv[0], x + t * pixel_stride, acc.a[t][0]);
      } else {
        const f32v xv = splat(x[t * pixel_stride]);
        SINTER_UNROLL
        for (int o = 0; o + 1 < OB; o++) acc.a[t][o] = fma(wv[o], xv, acc.a[t][o]);
        acc.a[t][OB - 1] = fma_low(wv[OB - 1], xv, acc.a[t][OB - 1]);
      }
    }
  } else if constexpr (OB <= T) {
    f32v wv[OB];
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) wv[o] = load(w + o * kLanes);
    SINTER_UNROLL
    for (int t = 0; t < T; t++) {
      const f32v xv = splat(x[t * pixel_stride]);
      SINTER_UNROLL
      for (int o = 0; o < OB; o++) acc.a[t][o] = fma(wv[o], xv, acc.a[t][o]);
    }
  } else {
    f32v xv[T];
    SINTER_UNROLL
    for (int t = 0; t < T; t++) xv[t] = splat(x[t * pixel_stride]);
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) {
      const f32v wv = load(w + o * kLanes);
      SINTER_UNROLL
      for (int t = 0; t < T; t++) acc.a[t][o] = fma(wv, xv[t], acc.a[t][o]);
    }
  }
}

// part[i] += part[Half + i], i < Half: a constant Half, else g++ leaves the array in memory.
template <int Half, int OB, int N>
SINTER_INLINE void fold(Tile<OB, 1> (&part)[N]) {
  SINTER_UNROLL
  for (int i = 0; i < Half; i++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++) part[i].a[0][o] = add(part[i].a[0][o], part[Half + i].a[0][o]);
  }
}

#if defined(SINTER_ISA_NEON)
// One value of k out of four whose x values sit in the lanes of xv. The instruction by name: from the
// intrinsic g++ 12 makes three-address code and then some 30 moves for 80 of them.
template <int OB, int T, int Lane, int Row = OB* kLanes>
SINTER_INLINE void mac_lane(Tile<OB, T>& acc, const float32x4_t (&xv)[T], const float* w) {
  float32x4_t wv[OB];
  SINTER_UNROLL
  for (int o = 0; o < OB; o++) wv[o] = vld1q_f32(w + Lane * Row + o * kLanes);
  SINTER_UNROLL
  for (int t = 0; t < T; t++) {
    SINTER_UNROLL
    for (int o = 0; o < OB; o++)
      __asm__("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(acc.a[t][o]) : "w"(wv[o]), "w"(xv[t]), "i"(Lane));
  }
}
#endif
}  // namespace detail

// x elements k_stride floats apart (planar inputs, transposed matrices).
template <int OB, int T, class Row = RowOf<OB>>
SINTER_INLINE void mac_strided(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride,
                               std::ptrdiff_t k_stride, const float* w, std::ptrdiff_t k, Row = Row()) {
  for (std::ptrdiff_t i = 0; i < k; i++) {
    detail::mac_step<Row>(acc, x, pixel_stride, w);
    x += k_stride;
    w += Row::value;
  }
}

// x elements contiguous (channels last). NEON loads four of them at once and multiplies by lane.
template <int OB, int T, class Row = RowOf<OB>>
SINTER_INLINE void mac(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride, const float* w,
                       std::ptrdiff_t k, Row row = Row()) {
#if defined(SINTER_ISA_NEON)
  for (; k >= 4; k -= 4) {
    float32x4_t xv[T];
    SINTER_UNROLL
    for (int t = 0; t < T; t++) xv[t] = vld1q_f32(x + t * pixel_stride);
    detail::mac_lane<OB, T, 0, Row::value>(acc, xv, w);
    detail::mac_lane<OB, T, 1, Row::value>(acc, xv, w);
    detail::mac_lane<OB, T, 2, Row::value>(acc, xv, w);
    detail::mac_lane<OB, T, 3, Row::value>(acc, xv, w);
    x += 4;
    w += 4 * Row::value;
  }
#endif
  mac_strided(acc, x, pixel_stride, 1, w, k, row);
}

// Weights that will be read soon, Step floats of them for each value of k that a tile adds: mac asks for them
// beside its multiply-adds, so that they come from memory to the second-level cache in time. A processor's
// own prefetching starts with the first reads only, and waits for each of them. What lies there need not
// exist.
template <int Step>
struct Ahead {
  const float* next;
};
#if !defined(SINTER_ISA_NEON)
template <int OB, int T, class Row, int Step>
SINTER_INLINE void mac(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride, const float* w,
                       std::ptrdiff_t k, Row, Ahead<Step>& ahead) {
  constexpr int kLine = 16;  // floats of a line of the cache
  const float* next = ahead.next;
  for (std::ptrdiff_t i = 0; i < k; i++) {
    SINTER_UNROLL
    for (int j = 0; j < Step; j += kLine) __builtin_prefetch(next + j, 0, 2);
    detail::mac_step<Row>(acc, x, pixel_stride, w);
    x += 1;
    w += Row::value;
    next += Step;
  }
  ahead.next = next;
}
#endif

// Asks for Floats floats that will be read soon. They need not exist.
template <int Floats>
SINTER_INLINE void ask_for(const float* p) {
  SINTER_UNROLL
  for (int i = 0; i < Floats; i += 16) __builtin_prefetch(p + i, 0, 3);
}

// mac where x may be read up to the next multiple of four elements: what is there is not used.
template <int OB, int T, class Row = RowOf<OB>>
SINTER_INLINE void mac_padded(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride, const float* w,
                              std::ptrdiff_t k, Row row = Row()) {
  const std::ptrdiff_t whole = k / 4 * 4;
  mac(acc, x, pixel_stride, w, whole, row);
#if defined(SINTER_ISA_NEON)
  if (k == whole) return;
  float32x4_t xv[T];
  SINTER_UNROLL
  for (int t = 0; t < T; t++) xv[t] = vld1q_f32(x + whole + t * pixel_stride);
  w += whole * Row::value;
  detail::mac_lane<OB, T, 0, Row::value>(acc, xv, w);
  if (k - whole > 1) detail::mac_lane<OB, T, 1, Row::value>(acc, xv, w);
  if (k - whole > 2) detail::mac_lane<OB, T, 2, Row::value>(acc, xv, w);
#else
  mac(acc, x + whole, pixel_stride, w + whole * Row::value, k - whole, row);
#endif
}

// mac for a small K that is known: written out.
template <int K, int OB, int T, class Row = RowOf<OB>>
SINTER_INLINE void mac_few(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride, const float* w,
                           Row = Row()) {
  SINTER_UNROLL
  for (int i = 0; i < K; i++) {
    detail::mac_step<Row>(acc, x + i, pixel_stride, w + i * Row::value);
#if !defined(SINTER_ISA_NEON)
    // Pixels share values with their neighbours' other taps: to keep those would take the sums' registers.
    __asm__("" : "+r"(x));
#endif
  }
}

#if defined(SINTER_ISA_NEON)
namespace detail {
template <class F, int... I>
SINTER_INLINE void each(F f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}
typedef std::uint64_t half_vector __attribute__((may_alias, aligned(1)));

// The two halves of a vector's load, and their union. Statements that keep their order.
template <class Vector = float32x4_t>
SINTER_INLINE Vector load_low(const void* p) {
  Vector v;
  __asm__ volatile("ldr %d0, %1" : "=w"(v) : "m"(*static_cast<const half_vector*>(p)));
  return v;
}
SINTER_INLINE std::uint64_t load_half(const void* p) {
  std::uint64_t h;
  __asm__ volatile("ldr %0, %1" : "=r"(h) : "m"(*static_cast<const half_vector*>(p)));
  return h;
}
SINTER_INLINE std::uint64_t load_high(const float* p) { return load_half(p + 2); }
template <class Vector>
SINTER_INLINE void put_high(Vector& v, std::uint64_t h) {
  __asm__ volatile("ins %0.d[1], %1" : "+w"(v) : "r"(h));
}

// Steps of addresses and counters, kept where they are written: beside a multiply-add.
SINTER_INLINE void step_pointer(const float*& p, int bytes) {
  __asm__ volatile("add %0, %0, %1" : "+r"(p) : "I"(bytes));
}
SINTER_INLINE void step_down(std::ptrdiff_t& n) { __asm__ volatile("sub %0, %0, 1" : "+r"(n)); }

// Four values of k, whose operands are in the registers. But for the last group: loads those of the next one,
// moves x and w there and takes 1 from `left`.
template <bool Last, int Row, int OB, int T>
SINTER_INLINE void mac_group(Tile<OB, T>& acc, float32x4_t (&wv)[OB], std::uint64_t (&wh)[OB],
                             float32x4_t (&xv)[T], std::uint64_t (&xh)[T], const float*& x,
                             std::ptrdiff_t pixel_stride, const float*& w, std::ptrdiff_t& left) {
  constexpr int kGroup = 4 * Row;  // floats of w
  each(
      [&](auto step) __attribute__((always_inline)) {
        constexpr int kLane = step.value / OB, kOut = step.value % OB, kBefore = kOut > 0 ? kOut - 1 : OB - 1;
        constexpr bool kFirstStep = step.value == 0, kLastStep = step.value == 4 * OB - 1;
        constexpr bool kStepBefore = step.value == 4 * OB - 2;
        constexpr bool kLoadsW = !Last || kLane < 3;
        constexpr int kNext = (kLane + 1) * Row + kOut * kLanes;
        each(
            [&](auto pixel) __attribute__((always_inline)) {
              constexpr int kPixel = pixel.value;
              __asm__ volatile("fmla %0.4s, %1.4s, %2.s[%3]"
                               : "+w"(acc.a[kPixel][kOut])
                               : "w"(wv[kOut]), "w"(xv[kPixel]), "i"(kLane));
              if constexpr (kPixel == 0 && kLoadsW) wh[kOut] = load_high(w + kNext);
              if constexpr (!Last && step.value == 4 * OB - 3 && kPixel == 1) step_pointer(x, 16);
              if constexpr (!Last && step.value == 4 * OB - 3 && kPixel == 2) step_down(left);
              // The upper halves go to registers of their own, one beside each multiply-add.
              if constexpr (!Last && kStepBefore && kPixel > 0)
                xh[kPixel - 1] = load_high(x + (kPixel - 1) * pixel_stride);
              if constexpr (!Last && kLastStep) {
                // Each pixel's values are used up now.
                if constexpr (kPixel == 1) xh[T - 1] = load_high(x + (T - 1) * pixel_stride);
                if constexpr (kPixel == 2) step_pointer(w, kGroup * 4);
                if constexpr (kPixel == 3) put_high(wv[kBefore], wh[kBefore]);
                if constexpr (kPixel >= 1) xv[kPixel - 1] = load_low(x + (kPixel - 1) * pixel_stride);
                if constexpr (kPixel >= 4) put_high(xv[kPixel - 4], xh[kPixel - 4]);
              }
              // The upper halves that are still missing: lanes 0 and 1 do without.
              if constexpr (kFirstStep && kPixel < 2) {
                constexpr int kAt = T - 4 + 2 * kPixel;
                put_high(xv[kAt], xh[kAt]);
                put_high(xv[kAt + 1], xh[kAt + 1]);
              }
            },
            std::make_integer_sequence<int, T>());
        if constexpr (kLoadsW) wv[kOut] = load_low(w + (!Last && kLastStep ? kNext - kGroup : kNext));
        if constexpr (kLastStep && !Last)
          xv[T - 1] = load_low(x + (T - 1) * pixel_stride);
        else if constexpr (!kLastStep && (kLoadsW || kOut == 0))
          put_high(wv[kBefore], wh[kBefore]);
      },
      std::make_integer_sequence<int, 4 * OB>());
}
}  // namespace detail

// mac for cores that execute in order (Cortex-A53, A55), same sums. There a 128-bit load keeps multiply-adds
// waiting for two cycles, a 64-bit one for one, and an integer load for none; so a vector comes as a 64-bit
// load, an integer load beside a multiply-add and an insertion beside the next load. Single instructions
// written out in the order in which they are to be issued; each operand is loaded again right after its last
// use, so that no register is spent on waiting.
template <int OB, int T, class Row = RowOf<OB>>
SINTER_INLINE void mac_in_order(Tile<OB, T>& acc, const float* x, std::ptrdiff_t pixel_stride, const float* w,
                                std::ptrdiff_t k, Row row = Row()) {
  if constexpr (OB >= 2 && T >= 4 && OB * T + OB + T <= 32) {
    if (k >= 8) {
      float32x4_t wv[OB], xv[T];
      std::uint64_t wh[OB], xh[T];
      const auto each_w = std::make_integer_sequence<int, OB>();
      const auto each_x = std::make_integer_sequence<int, T>();
      detail::each(
          [&](auto o)
              __attribute__((always_inline)) { wh[o.value] = detail::load_high(w + o.value * kLanes); },
          each_w);
      detail::each(
          [&](auto o)
              __attribute__((always_inline)) { wv[o.value] = detail::load_low(w + o.value * kLanes); },
          each_w);
      detail::each(
          [&](auto t)
              __attribute__((always_inline)) { xh[t.value] = detail::load_high(x + t.value * pixel_stride); },
          each_x);
      detail::each(
          [&](auto t)
              __attribute__((always_inline)) { xv[t.value] = detail::load_low(x + t.value * pixel_stride); },
          each_x);
      detail::each(
          [&](auto o) __attribute__((always_inline)) { detail::put_high(wv[o.value], wh[o.value]); }, each_w);
      detail::each(
          [&](auto t) __attribute__((always_inline)) { detail::put_high(xv[t.value], xh[t.value]); }, each_x);
      for (std::ptrdiff_t left = k / 4 - 1; left != 0;)
        detail::mac_group<false, Row::value>(acc, wv, wh, xv, xh, x, pixel_stride, w, left);
      std::ptrdiff_t none = 0;
      detail::mac_group<true, Row::value>(acc, wv, wh, xv, xh, x, pixel_stride, w, none);
      x += 4;
      w += 4 * Row::value;
      k %= 4;
    }
  }
  mac(acc, x, pixel_stride, w, k, row);
}
#endif

// The sums of one pixel (GEMV, edges): a single chain of dependent sums per vector would wait for each to
// finish, so consecutive k go to different partial sums, added up at the end. The sum's order differs from
// mac's, and with the number of chains: `Count` is the same for all panels of a layer, chains_of its whole
// ones, as columns with the same weights are to have the same results (a Softmax after them tells a
// difference in the last bit of a large sum).
constexpr int chains_of(int vectors) { return vectors >= 4 ? 2 : vectors >= 2 ? 4 : 8; }
template <int OB, int Count = chains_of(OB)>
struct Chains {
  static_assert(Count == 2 || Count == 4 || Count == 8);
  static constexpr int kCount = Count;
  Tile<OB, 1> part[kCount];
};

// Starts at bias[OB * kLanes], or at zero if bias is null.
template <int OB, int Count>
SINTER_INLINE void chains_bias(Chains<OB, Count>& sums, const float* bias) {
  tile_bias(sums.part[0], bias);
  SINTER_UNROLL
  for (int c = 1; c < Count; c++) tile_bias(sums.part[c], nullptr);
}
template <int OB, int Count>
SINTER_INLINE Tile<OB, 1> chains_sum(Chains<OB, Count>& sums) {
  if constexpr (Count >= 8) detail::fold<4>(sums.part);
  if constexpr (Count >= 4) detail::fold<2>(sums.part);
  detail::fold<1>(sums.part);
  return sums.part[0];
}

namespace detail {
// Four values of k, from chain First on.
template <int First, class Row, int OB, int Count>
SINTER_INLINE void chains_four(Chains<OB, Count>& sums, const float* x, const float* w) {
#if defined(SINTER_ISA_NEON)
  const float32x4_t xv[1] = {vld1q_f32(x)};
  mac_lane<OB, 1, 0, Row::value>(sums.part[First % Count], xv, w);
  mac_lane<OB, 1, 1, Row::value>(sums.part[(First + 1) % Count], xv, w);
  mac_lane<OB, 1, 2, Row::value>(sums.part[(First + 2) % Count], xv, w);
  mac_lane<OB, 1, 3, Row::value>(sums.part[(First + 3) % Count], xv, w);
#else
  SINTER_UNROLL
  for (int c = 0; c < 4; c++) mac_step<Row>(sums.part[(First + c) % Count], x + c, 0, w + c * Row::value);
#endif
}
}  // namespace detail

template <int OB, int Count, class Row = RowOf<OB>>
SINTER_INLINE void mac_chains(Chains<OB, Count>& sums, const float* x, const float* w, std::ptrdiff_t k,
                              Row = Row()) {
  constexpr int kStep = Count < 4 ? 4 : Count;
  for (; k >= kStep; k -= kStep) {
    detail::chains_four<0, Row>(sums, x, w);
    if constexpr (kStep == 8) detail::chains_four<4, Row>(sums, x + 4, w + 4 * Row::value);
    x += kStep;
    w += kStep * Row::value;
  }
  if constexpr (kStep == 8) {
    if (k >= 4) {
      detail::chains_four<0, Row>(sums, x, w);
      x += 4;
      w += 4 * Row::value;
      k -= 4;
    }
  }
  if (k > 0) detail::mac_step<Row>(sums.part[0], x, 0, w);
  if (k > 1) detail::mac_step<Row>(sums.part[1 % Count], x + 1, 0, w + Row::value);
  if (k > 2) detail::mac_step<Row>(sums.part[2 % Count], x + 2, 0, w + 2 * Row::value);
}

// One pixel's sums that are done by a single run of k, in the order of panels of `Whole` vectors (0: OB).
template <int Whole = 0, int OB, class Row = RowOf<OB>>
SINTER_INLINE void mac_row(Tile<OB, 1>& acc, const float* x, const float* w, std::ptrdiff_t k,
                           Row row = Row()) {
  Chains<OB, chains_of(Whole == 0 ? OB : Whole)> sums;
  sums.part[0] = acc;
  SINTER_UNROLL
  for (int c = 1; c < sums.kCount; c++) tile_bias(sums.part[c], nullptr);
  mac_chains(sums, x, w, k, row);
  acc = chains_sum(sums);
}

// A number as a type, for tiles whose size is a parameter of a lambda: tile(Int<7>(), …).
template <int N>
using Int = std::integral_constant<int, N>;

// The first `lanes` lanes, 1 to kLanes; a constant kLanes makes them load and store.
template <class V = f32v, if_words<V> = 0>
SINTER_INLINE V load_lanes(const float* p, int lanes) {
  return lanes == kLanes ? load(p) : load_n(p, lanes);
}
SINTER_INLINE void store_lanes(float* p, f32v v, int lanes) {
  if (lanes == kLanes)
    store(p, v);
  else
    store_n(p, v, lanes);
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_MAC_H_
