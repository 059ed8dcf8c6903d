// Products of floats on the tile matrices of AMX (x86-64: Sapphire Rapids and later), as exact as a chain of
// fused multiply-adds.
//
// The tiles multiply bfloat16 and sum in float. A float is the sum of three bfloat16 of 8 bits each, high +
// middle + low, cut off and not rounded; of the nine products of two such sums the six largest are made:
//
//   high high + (high middle + middle high) + (high low + middle middle + low high)
//
// What is left out is below 2^-22 of a product, and 32 products are added before a sum is rounded, so that
// the error is smaller than that of a float's sums (G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the
// bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019). Differences: an
// infinity becomes NaN, and of products below 1e-30 the low parts may be lost (tiles take denormals for 0).
//
// Operands are cut into blocks of 32 values of k. T rows of the left one, which a tile takes, are
// [blocks][3 parts][T][32]; 16 columns of the right one are [3 parts][16 lines][16 columns][2]. Values i and
// i + 16 of a block form a pair, in both. Behind k's end a block has zeros. A tile lies in one piece: with
// rows a block's pitch apart, those that come from the second-level cache took a tenth longer.
//
// A sum of R x 16 columns x V (R, V: 1 or 2) tiles is in the registers tmm0 to tmm3; the left operand passes
// through tmm4 and tmm5, the right one through tmm6 and tmm7. (Intel, Software Developer's Manual, volume 1,
// chapter 18; registers cleared and sizes forgotten by TILERELEASE.)
#ifndef SINTER_AMX_H_
#define SINTER_AMX_H_
#if !defined(SINTER_ISA_AVX512) || !defined(SINTER_TILE_MATRICES)
#error "include sinter/tile_matrices.h and sinter/simd_avx512.h before sinter/amx.h"
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sinter::SINTER_ISA {

// Whether the system lets this process use the tiles: Linux 5.16 and later wants to be asked (arch_prctl(2),
// ARCH_REQ_XCOMP_PERM of the state component 18). Holds for all threads of the process from then on; asking
// again costs some 100 ns.
[[gnu::noinline, maybe_unused]] static bool amx_permitted() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}

// The tiles of this thread, until amx_close(): those of the left operand and of sums have `rows` rows (1 to
// 16). amx_permitted() must have been true.
SINTER_INLINE void amx_open(int rows) {
  struct alignas(64) {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } sizes = {};
  sizes.palette = 1;
  for (int i = 0; i < 8; i++) {
    sizes.bytes[i] = 64;
    sizes.rows[i] = static_cast<uint8_t>(i < 6 ? rows : 16);
  }
  __asm__ volatile("ldtilecfg %0" : : "m"(sizes));
}
SINTER_INLINE void amx_close() { __asm__ volatile("tilerelease" : :); }

constexpr std::ptrdiff_t kAmxDepth = 32;              // values of k in a block
constexpr std::ptrdiff_t kAmxBlock = 3 * kAmxDepth;   // numbers of a block's parts
constexpr std::ptrdiff_t kAmxTile = 16 * 2 * kLanes;  // numbers of a whole tile
constexpr int kAmxSteps = 6;                          // products of parts that a block has
constexpr std::ptrdiff_t amx_blocks(std::ptrdiff_t k) { return (k + kAmxDepth - 1) / kAmxDepth; }

namespace detail {
constexpr uint32_t kHigh = 0xffff0000u;
SINTER_INLINE f32v high_part(f32v v) { return (f32v)((u32v)v & kHigh); }
// Pairs of bfloat16: that of `first` in the lower half.
SINTER_INLINE __m512i high_pairs(f32v first, f32v second) {
  return _mm512_mask_blend_epi16(0xaaaaaaaau, (__m512i)((u32v)first >> 16), (__m512i)second);
}
// Stores the three parts of 16 pairs, `apart` numbers from one another.
SINTER_INLINE void store_parts(f32v first, f32v second, uint16_t* to, std::ptrdiff_t apart) {
  SINTER_UNROLL
  for (int part = 0; part < 3; part++) {
    _mm512_storeu_si512(to + part * apart, high_pairs(first, second));
    first = first - high_part(first);
    second = second - high_part(second);
  }
}

// ... of the block b of row r, where tiles of T rows of `blocks` blocks begin at `to`.
template <int T>
SINTER_INLINE void store_left(f32v first, f32v second, uint16_t* to, std::ptrdiff_t r, std::ptrdiff_t b,
                              std::ptrdiff_t blocks) {
  store_parts(first, second, to + (r / T * blocks + b) * (T * kAmxBlock) + r % T * kAmxDepth, T * kAmxDepth);
}

constexpr std::ptrdiff_t kLine = 64;  // bytes of a tile's row
// The left operand passes once for each panel of the right one and is to leave that in the first-level cache,
// which the hint of TILELOADDT1 is for.
template <int R>
SINTER_INLINE void amx_left(const uint16_t* a, std::ptrdiff_t below) {
  __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm4" : : "r"(a), "r"(kLine) : "memory");
  if constexpr (R > 1)
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm5" : : "r"(a + below), "r"(kLine) : "memory");
}
template <int V>
SINTER_INLINE void amx_right(const uint16_t* w) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm6" : : "r"(w), "r"(kLine) : "memory");
  if constexpr (V > 1)
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm7" : : "r"(w + kAmxTile), "r"(kLine) : "memory");
}
template <int R, int V>
SINTER_INLINE void amx_multiply() {
  __asm__ volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0" : :);
  if constexpr (V > 1) __asm__ volatile("tdpbf16ps %%tmm7, %%tmm4, %%tmm1" : :);
  if constexpr (R > 1) __asm__ volatile("tdpbf16ps %%tmm6, %%tmm5, %%tmm2" : :);
  if constexpr (R > 1 && V > 1) __asm__ volatile("tdpbf16ps %%tmm7, %%tmm5, %%tmm3" : :);
}

// A place in the order in which products take the left operand: the first block of two tiles' rows, then
// their next blocks, then the next two tiles.
struct AmxPlace {
  std::ptrdiff_t row, block;
};
template <int T>
SINTER_INLINE AmxPlace amx_place(std::ptrdiff_t i, std::ptrdiff_t blocks) {
  return {i / (2 * T * blocks) * (2 * T) + i % (2 * T), i / (2 * T) % blocks};
}
}  // namespace detail

// The places of `rows` rows; those behind the last row are empty.
template <int T>
constexpr std::ptrdiff_t amx_places(std::ptrdiff_t rows, std::ptrdiff_t blocks) {
  return (rows + 2 * T - 1) / (2 * T) * (2 * T * blocks);
}

// Left operands: from(row, block) is a walk that begins at 32 values of k of a row; load(low, high) takes
// those, next() goes on to the next row's.

// Rows of `k` floats, `pitch` floats apart from x on.
struct AmxRows {
  const float* x;
  std::ptrdiff_t k, pitch;

  struct Walk {
    const float* at;
    std::ptrdiff_t pitch, rest;  // rest: floats from `at` to the row's end
    [[gnu::always_inline]] inline void load_to(f32v& low, f32v& high) const {
      low = rest < kLanes ? load_n(at, rest) : load(at);
      high = rest >= kAmxDepth ? load(at + kLanes)
             : rest > kLanes   ? load_n(at + kLanes, rest - kLanes)
                               : zero();
    }
    [[gnu::always_inline]] inline void next() { at += pitch; }
  };
  [[gnu::always_inline]] inline Walk from(std::ptrdiff_t row, std::ptrdiff_t block) const {
    return {x + row * pitch + block * kAmxDepth, pitch, k - block * kAmxDepth};
  }
};

// How the windows of a convolution lie in a picture, [height][width][channels] of a multiple of 32 channels:
// the one of the output pixel (i, j) begins at (i * down - pad_above, j * across - pad_left). To be a constant
// where it is used, as it is divided by.
struct AmxGeometry {
  std::ptrdiff_t height, width, channels, out_width, kernel_width, down, across, dilation_down,
      dilation_across, pad_above, pad_left;
};

// The windows from output pixel `first_pixel` on, as rows of taps and channels from block `first_block` on;
// outside the picture are zeros.
struct AmxWindows {
  const AmxGeometry& g;
  const float* x;
  std::ptrdiff_t first_pixel, first_block;

  struct Walk {
    const AmxGeometry& g;
    const float* channels;  // of the picture's first pixel
    std::ptrdiff_t out_column, i, j;
    [[gnu::always_inline]] inline void load_to(f32v& low, f32v& high) const {
      low = high = zero();
      if (i < 0 || i >= g.height || j < 0 || j >= g.width) return;
      const float* const at = channels + (i * g.width + j) * g.channels;
      low = load(at), high = load(at + kLanes);
    }
    [[gnu::always_inline]] inline void next() {
      j += g.across;
      if (++out_column < g.out_width) return;
      out_column = 0, j -= g.out_width * g.across, i += g.down;
    }
  };
  [[gnu::always_inline]] inline Walk from(std::ptrdiff_t row, std::ptrdiff_t block) const {
    const std::ptrdiff_t pixel = first_pixel + row, column = pixel % g.out_width, b = first_block + block,
                         tap = b * kAmxDepth / g.channels;
    return {g, x + b * kAmxDepth % g.channels, column,
            pixel / g.out_width * g.down + tap / g.kernel_width * g.dilation_down - g.pad_above,
            column * g.across + tap % g.kernel_width * g.dilation_across - g.pad_left};
  }
};

// `rows` rows of a left operand become tiles of T rows at `to`, whose first one begins with the row 0: what
// lies at the places [first, end).
template <int T, class Left>
SINTER_INLINE void amx_split_places(const Left& left, std::ptrdiff_t first, std::ptrdiff_t end,
                                    std::ptrdiff_t rows, std::ptrdiff_t blocks, uint16_t* to) {
  for (std::ptrdiff_t i = first; i < end; i++) {
    const auto [r, b] = detail::amx_place<T>(i, blocks);
    if (r >= rows) continue;
    f32v low, high;
    left.from(r, b).load_to(low, high);
    detail::store_left<T>(low, high, to, r, b, blocks);
  }
}
// ... at all places.
template <int T, class Left>
[[gnu::noinline, maybe_unused]] static void amx_split_rows(const Left& left, std::ptrdiff_t rows,
                                                           std::ptrdiff_t blocks, uint16_t* to) {
  amx_split_places<T>(left, 0, amx_places<T>(rows, blocks), rows, blocks, to);
}

// What is split beside the products of a block: the block that they take two blocks later.
struct AmxAhead {
  std::ptrdiff_t row = 0, block = 0;  // the first row of two tiles, and their block
  template <int T>
  [[gnu::always_inline]] inline void next(std::ptrdiff_t blocks) {
    if (++block == blocks) block = 0, row += 2 * T;
  }
};
// ... of which the part that step, 0 to kAmxSteps - 1, does; the last one goes on to the next block.
template <int T, class Left>
SINTER_INLINE void amx_split_step(const Left& left, AmxAhead& ahead, int step, std::ptrdiff_t rows,
                                  std::ptrdiff_t blocks, uint16_t* to) {
  constexpr std::ptrdiff_t kRows = (2 * T + kAmxSteps - 1) / kAmxSteps;
  const std::ptrdiff_t first = step * kRows, most = first + kRows < 2 * T ? first + kRows : 2 * T,
                       end = most < rows - ahead.row ? most : rows - ahead.row;
  if (first < end) {
    uint16_t* const tile = to + (ahead.row / T * blocks + ahead.block) * (T * kAmxBlock);
    auto walk = left.from(ahead.row + first, ahead.block);
    for (std::ptrdiff_t r = first; r < end; r++, walk.next()) {
      f32v low, high;
      walk.load_to(low, high);
      detail::store_parts(low, high,
                          tile + (r < T ? 0 : blocks * (T * kAmxBlock) - T * kAmxDepth) + r * kAmxDepth,
                          T * kAmxDepth);
    }
  }
  if (step == kAmxSteps - 1) ahead.next<T>(blocks);
}

// Of a panel of V vectors of columns, k lines of floats that are `pitch` floats apart, pairs of lines
// [first, end); 16 make a block: 0 to 16 * amx_blocks(k). What lies `ahead` floats behind them is asked for.
template <int V>
SINTER_INLINE void amx_split_lines(const float* w, std::ptrdiff_t k, std::ptrdiff_t pitch, uint16_t* to,
                                   std::ptrdiff_t first, std::ptrdiff_t end, std::ptrdiff_t ahead = 0) {
  for (std::ptrdiff_t l = first; l < end; l++) {
    const std::ptrdiff_t i = l / 16 * kAmxDepth + l % 16;
    uint16_t* const line = to + l / 16 * (3 * V * kAmxTile) + l % 16 * (2 * kLanes);
    SINTER_UNROLL
    for (int o = 0; ahead != 0 && o < V; o++) {
      __builtin_prefetch(w + ahead + i * pitch + o * kLanes, 0, 2);
      __builtin_prefetch(w + ahead + (i + 16) * pitch + o * kLanes, 0, 2);
    }
    SINTER_UNROLL
    for (int o = 0; o < V; o++)
      detail::store_parts(i < k ? load(w + i * pitch + o * kLanes) : zero(),
                          i + 16 < k ? load(w + (i + 16) * pitch + o * kLanes) : zero(), line + o * kAmxTile,
                          V * kAmxTile);
  }
}
template <int V>
[[gnu::noinline, maybe_unused]] static void amx_split_panel(const float* w, std::ptrdiff_t k,
                                                            std::ptrdiff_t pitch, uint16_t* to) {
  amx_split_lines<V>(w, k, pitch, to, 0, 16 * amx_blocks(k));
}

SINTER_INLINE void amx_zero() {
  __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : :);
}

// Adds the products of R tiles of T rows, as amx_split_rows leaves them at a, with V vectors of columns, as
// amx_split_panel leaves them at w, over `blocks` blocks.
//
// beside(b, step), 0 <= step < 6, is work for the time that the tiles take for the products before it, some
// 64 cycles. The processor runs only few tile instructions ahead, so that work in one piece behind a block's
// 24 products stops them (by half with 150 cycles of it), but costs nothing where it lies between them.
template <int R, int V, int T, class Beside>
SINTER_INLINE void amx_mac(const uint16_t* a, const uint16_t* w, std::ptrdiff_t blocks,
                           const Beside& beside) {
  constexpr std::ptrdiff_t kPart = V * kAmxTile;
  constexpr std::ptrdiff_t kLeft = T * kAmxDepth;
  const std::ptrdiff_t below = blocks * 3 * kLeft;
  // Each step replaces one operand: the parts' products low high, middle high, middle middle, high middle,
  // high low, high high. (One loop, so that the work beside it is in the program once.)
  float awake = 0;
  for (std::ptrdiff_t b = 0; b < blocks; b++, a += 3 * kLeft, w += 3 * kPart)
    for (int step = 0; step < kAmxSteps; step++) {
      if (step == 0) detail::amx_left<R>(a + 2 * kLeft, below);
      if (step == 1) detail::amx_left<R>(a + kLeft, below);
      if (step == 3) detail::amx_left<R>(a, below);
      if (step == 0 || step == 5) detail::amx_right<V>(w);
      if (step == 2) detail::amx_right<V>(w + kPart);
      if (step == 4) detail::amx_right<V>(w + 2 * kPart);
      detail::amx_multiply<R, V>();
      // TILESTORED takes 250 ns more if no floats were added for some 700 ns (measured on a Xeon 6: integers,
      // loads and stores of vectors don't help).
      __asm__ volatile("vaddss %0, %0, %0" : "+x"(awake));
      beside(b, step);
    }
}

// Takes the sums that amx_store left at `from` again.
template <int R, int V>
SINTER_INLINE void amx_load(const float* from, int rows) {
  constexpr std::ptrdiff_t kPitch = V * detail::kLine;
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm0" : : "r"(from), "r"(kPitch) : "memory");
  if constexpr (V > 1)
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm1" : : "r"(from + kLanes), "r"(kPitch) : "memory");
  if constexpr (R > 1) {
    const float* const below = from + rows * (V * kLanes);
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm2" : : "r"(below), "r"(kPitch) : "memory");
    if constexpr (V > 1)
      __asm__ volatile("tileloadd (%0,%1,1), %%tmm3" : : "r"(below + kLanes), "r"(kPitch) : "memory");
  }
}

// Stores the sums as rows of V vectors side by side: the first tile's `rows` rows (as the tiles have), then
// the second one's.
template <int R, int V>
SINTER_INLINE void amx_store(float* to, int rows) {
  constexpr std::ptrdiff_t kPitch = V * detail::kLine;
  __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(to), "r"(kPitch) : "memory");
  if constexpr (V > 1)
    __asm__ volatile("tilestored %%tmm1, (%0,%1,1)" : : "r"(to + kLanes), "r"(kPitch) : "memory");
  if constexpr (R > 1) {
    float* const below = to + rows * (V * kLanes);
    __asm__ volatile("tilestored %%tmm2, (%0,%1,1)" : : "r"(below), "r"(kPitch) : "memory");
    if constexpr (V > 1)
      __asm__ volatile("tilestored %%tmm3, (%0,%1,1)" : : "r"(below + kLanes), "r"(kPitch) : "memory");
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_AMX_H_
