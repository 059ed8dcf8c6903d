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
}  // namespace detail

// Left operands: from(row, block) is a walk that begins at 32 values of k of a row; load_to(low, high) takes
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

// How the windows of a convolution lie in a picture, [height][width][channels] of a multiple of 32 channels,
// whose pixels are `pixel` floats apart: the one of the output pixel (i, j) begins at (i * down - pad_above,
// j * across - pad_left). To be a constant where it is used, as it is divided by.
struct AmxGeometry {
  std::ptrdiff_t height, width, channels, pixel, out_width, kernel_width, down, across, dilation_down,
      dilation_across, pad_above, pad_left;
};

// The windows from output pixel `first_pixel` on, as rows of taps and channels from block `first_block` on;
// outside the picture are zeros.
template <const AmxGeometry& G>
struct AmxWindows {
  const float* x;
  std::ptrdiff_t first_pixel, first_block;

  struct Walk {
    const float* channels;  // of the picture's first pixel
    std::ptrdiff_t out_column, i, j;
    [[gnu::always_inline]] inline void load_to(f32v& low, f32v& high) const {
      low = high = zero();
      if (i < 0 || i >= G.height || j < 0 || j >= G.width) return;
      const float* const at = channels + (i * G.width + j) * G.pixel;
      low = load(at), high = load(at + kLanes);
    }
    [[gnu::always_inline]] inline void next() {
      j += G.across;
      if (++out_column < G.out_width) return;
      out_column = 0, j -= G.out_width * G.across, i += G.down;
    }
  };
  [[gnu::always_inline]] inline Walk from(std::ptrdiff_t row, std::ptrdiff_t block) const {
    const std::ptrdiff_t pixel = first_pixel + row, column = pixel % G.out_width, b = first_block + block,
                         tap = b * kAmxDepth / G.channels;
    return {x + b * kAmxDepth % G.channels, column,
            pixel / G.out_width * G.down + tap / G.kernel_width * G.dilation_down - G.pad_above,
            column * G.across + tap % G.kernel_width * G.dilation_across - G.pad_left};
  }
};

// Splits a left operand piece by piece into tiles of T rows, in the order in which products take them: the
// first block of two tiles' rows, then their next blocks, then the next two tiles.
template <int T, class Left>
class AmxRowSplitter {
 public:
  // `rows` rows of `blocks` blocks each become tiles at `to`.
  [[gnu::always_inline]] inline void begin(const Left& left, std::ptrdiff_t rows, std::ptrdiff_t blocks,
                                           uint16_t* to) {
    left_ = left, rows_ = rows, blocks_ = blocks, to_ = to, row_ = block_ = 0;
    open_block();
  }
  bool done() const { return row_ >= rows_; }
  // The next `count` blocks of rows, or what is left.
  [[gnu::always_inline]] inline void some(std::ptrdiff_t count) {
    for (; count > 0 && !done(); count--) {
      f32v low, high;
      walk_.load_to(low, high);
      detail::store_parts(
          low, high,
          tile_ + (in_block_ < T ? 0 : blocks_ * (T * kAmxBlock) - T * kAmxDepth) + in_block_ * kAmxDepth,
          T * kAmxDepth);
      walk_.next();
      if (++in_block_ < end_) continue;
      if (++block_ == blocks_) block_ = 0, row_ += 2 * T;
      open_block();
    }
  }
  // What is left.
  [[gnu::always_inline]] inline void all() { some(rows_ * blocks_); }

 private:
  [[gnu::always_inline]] inline void open_block() {
    if (done()) return;
    in_block_ = 0, end_ = rows_ - row_ < 2 * T ? rows_ - row_ : 2 * T;
    walk_ = left_.from(row_, block_);
    tile_ = to_ + (row_ / T * blocks_ + block_) * (T * kAmxBlock);
  }

  Left left_ = {};
  typename Left::Walk walk_ = {};
  std::ptrdiff_t rows_ = 0, blocks_ = 0;
  std::ptrdiff_t row_ = 0, block_ = 0;     // the first row of two tiles, and their block
  std::ptrdiff_t in_block_ = 0, end_ = 0;  // the row among them that is next, and behind the last one
  uint16_t *to_ = nullptr, *tile_ = nullptr;
};

// Of a panel of V vectors of columns, k lines of floats that are `pitch` floats apart, pairs of lines
// [first, end); 16 make a block: 0 to 16 * amx_blocks(k). The lines of a pair lie behind each other; of a
// last block that k ends in, each at its place. `after`: what is split next, which is asked for as well;
// null: not.
//
// Of each pair one line of the cache is asked for, 4 KB ahead, and the processor itself brings what lies
// between: asking for all of them held up the tiles' own loads (measured on a Xeon 6, weights of 9 MB from
// the third-level cache: 240 ns for the products of a block, instead of 180).
template <int V>
SINTER_INLINE void amx_split_lines(const float* w, std::ptrdiff_t k, std::ptrdiff_t pitch, uint16_t* to,
                                   std::ptrdiff_t first, std::ptrdiff_t end, const float* after = nullptr) {
  constexpr std::ptrdiff_t kAhead = 16;
  const std::ptrdiff_t lines = 16 * amx_blocks(k);
  for (std::ptrdiff_t l = first; l < end; l++) {
    if (after != nullptr)
      __builtin_prefetch(
          l + kAhead < lines ? w + (l + kAhead) * 2 * pitch : after + (l + kAhead - lines) * 2 * pitch, 0, 2);
    const std::ptrdiff_t i = l / 16 * kAmxDepth + l % 16;
    const bool whole = l / 16 * kAmxDepth + kAmxDepth <= k;
    const float* const low = w + (whole ? 2 * l : i) * pitch;
    const float* const high = low + (whole ? pitch : 16 * pitch);
    uint16_t* const line = to + l / 16 * (3 * V * kAmxTile) + l % 16 * (2 * kLanes);
    SINTER_UNROLL
    for (int o = 0; o < V; o++)
      detail::store_parts(i < k ? load(low + o * kLanes) : zero(),
                          i + 16 < k ? load(high + o * kLanes) : zero(), line + o * kAmxTile, V * kAmxTile);
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

// Adds the products of R tiles of T rows, as AmxRowSplitter leaves them at a, with V vectors of columns, as
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
