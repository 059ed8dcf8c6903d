// Frames: rows of a camera's picture, resized bilinearly and scaled to floats as they are read.
//
// A picture's pixel is blended of two pixels of two rows of the frame; where a weight is zero for all, its
// pixel is not read. Channels lie side by side, so a pixel of three channels is one word of four floats,
// whose last one the next pixel overwrites. Frames of luma and chroma become rows of RGB first.
#ifndef SINTER_FRAME_H_
#define SINTER_FRAME_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/frame.h"
#endif

namespace sinter::SINTER_ISA {

// The columns of the picture that show the frame: for each, where the left one of its two pixels begins in a
// row, in bytes, and what the right one weighs. The eight bytes from there belong to the row for all columns
// before `wide`.
struct FrameColumns {
  const std::int32_t* at;
  const float* weight;
  std::int64_t count, wide;
};

// What becomes of a blended byte of each of the picture's channels.
struct FrameScale {
  float factor[4], offset[4];
};

namespace frame {

// Channel `c` of one column, of rows `a` and `b`, the second of which weighs `down`.
template <int Bytes>
SINTER_INLINE float blended(const std::uint8_t* a, const std::uint8_t* b, float down, float across, int c) {
  const auto at = [&](const std::uint8_t* row, int i) { return static_cast<float>(row[i]); };
  const float left = at(a, c) + down * (at(b, c) - at(a, c));
  if (across == 0.0f) return left;
  const float right = at(a, Bytes + c) + down * (at(b, Bytes + c) - at(a, Bytes + c));
  return left + across * (right - left);
}

// Three channels of a column, in the picture's order.
template <int Bytes, bool Swap>
SINTER_INLINE void column(const std::uint8_t* a, const std::uint8_t* b, float down, float across,
                          const FrameScale& s, float* to) {
  for (int c = 0; c < 3; ++c)
    to[c] = blended<Bytes>(a, b, down, across, Swap ? 2 - c : c) * s.factor[c] + s.offset[c];
}

#if defined(SINTER_ISA_NEON)
#define SINTER_FRAME_WORDS 1
// Two neighbouring pixels, their channels in the picture's order, each in four lanes.
template <int Bytes, bool Swap>
SINTER_INLINE uint8x8_t pair(const std::uint8_t* p) {
  const uint8x8_t bytes = vld1_u8(p);
  if constexpr (Bytes == 4 && !Swap) return bytes;
  constexpr std::uint64_t kOrder =
      Bytes == 3 ? (Swap ? 0x0003040500000102u : 0x0005040300020100u) : 0x0704050603000102u;
  return vtbl1_u8(bytes, vcreate_u8(kOrder));
}
SINTER_INLINE float32x4_t floats(uint16x4_t v) { return vcvtq_f32_u32(vmovl_u16(v)); }
SINTER_INLINE float32x4_t floats(int16x4_t v) { return vcvtq_f32_s32(vmovl_s16(v)); }

template <int Bytes, bool Swap, bool Across, bool Down>
SINTER_INLINE f32v word(const std::uint8_t* a, const std::uint8_t* b, float down, float across) {
  const uint8x8_t top = pair<Bytes, Swap>(a);
  const uint16x8_t wide = vmovl_u8(top);
  float32x4_t left = floats(vget_low_u16(wide)), right = left;
  if constexpr (Across) right = floats(vget_high_u16(wide));
  if constexpr (Down) {
    const int16x8_t more = vreinterpretq_s16_u16(vsubl_u8(pair<Bytes, Swap>(b), top));
    left = vfmaq_n_f32(left, floats(vget_low_s16(more)), down);
    if constexpr (Across) right = vfmaq_n_f32(right, floats(vget_high_s16(more)), down);
  }
  if constexpr (Across) left = vfmaq_n_f32(left, vsubq_f32(right, left), across);
  return (f32v)left;
}
SINTER_INLINE void scaled(f32v v, const FrameScale& s, float* to) {
  vst1q_f32(to, vfmaq_f32(vld1q_f32(s.offset), (float32x4_t)v, vld1q_f32(s.factor)));
}

// The same pixels, each channel of the left one beside that of the right one.
template <int Bytes, bool Swap>
SINTER_INLINE uint8x8_t by_channel(const std::uint8_t* p) {
  constexpr std::uint64_t kOrder = Bytes == 3 ? (Swap ? 0x0300030004010502u : 0x0502050204010300u)
                                              : (Swap ? 0x0703040005010602u : 0x0703060205010400u);
  return vtbl1_u8(vld1_u8(p), vcreate_u8(kOrder));
}
// Converting floats takes one pipe for two cycles on cores like the Cortex-A76; what is below 2^23 is the
// lower bits of such a float as well.
SINTER_INLINE float32x4_t small_floats(uint32x4_t v) {
  const uint32x4_t bits = vorrq_u32(v, vdupq_n_u32(0x4b000000u));
  return vsubq_f32(vreinterpretq_f32_u32(bits), vdupq_n_f32(8388608.0f));
}
#elif defined(SINTER_ISA_X86)
#define SINTER_FRAME_WORDS 1
SINTER_INLINE __m128 floats(const std::uint8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, sizeof four);
  return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
}
SINTER_INLINE __m128 between(__m128 a, __m128 b, float weight) {
  return _mm_add_ps(a, _mm_mul_ps(_mm_sub_ps(b, a), _mm_set1_ps(weight)));
}
template <int Bytes, bool Swap, bool Across, bool Down>
SINTER_INLINE __m128 word(const std::uint8_t* a, const std::uint8_t* b, float down, float across) {
  __m128 left = floats(a);
  if constexpr (Down) left = between(left, floats(b), down);
  if constexpr (Across) {
    __m128 right = floats(a + Bytes);
    if constexpr (Down) right = between(right, floats(b + Bytes), down);
    left = between(left, right, across);
  }
  return Swap ? _mm_shuffle_ps(left, left, 0xc6) : left;
}
SINTER_INLINE void scaled(__m128 v, const FrameScale& s, float* to) {
  _mm_storeu_ps(to, _mm_add_ps(_mm_mul_ps(v, _mm_loadu_ps(s.factor)), _mm_loadu_ps(s.offset)));
}
#endif

template <int Bytes, bool Swap, bool Across, bool Down>
SINTER_INLINE void row_of_three(const std::uint8_t* a, const std::uint8_t* b, float down,
                                const FrameColumns& columns, const FrameScale& s, float* to) {
  std::int64_t i = 0;
#if defined(SINTER_FRAME_WORDS)
  // The last word would write behind the row.
  const std::int64_t wide = columns.wide < columns.count ? columns.wide : columns.count - 1;
  for (; i < wide; ++i) {
    const std::int32_t at = columns.at[i];
    scaled(word<Bytes, Swap, Across, Down>(a + at, b + at, down, Across ? columns.weight[i] : 0.0f), s,
           to + 3 * i);
  }
#endif
  for (; i < columns.count; ++i) {
    const std::int32_t at = columns.at[i];
    column<Bytes, Swap>(a + at, b + at, down, Across ? columns.weight[i] : 0.0f, s, to + 3 * i);
  }
}

}  // namespace frame

// A row of three channels from pixels of `Bytes` bytes (3 or 4), the first and the third one exchanged where
// `Swap`. Across: some column has a weight that isn't zero.
template <int Bytes, bool Swap, bool Across>
static inline void frame_row(const std::uint8_t* a, const std::uint8_t* b, float down,
                             const FrameColumns& columns, const FrameScale& s, float* to) {
  if (down == 0.0f)
    frame::row_of_three<Bytes, Swap, Across, false>(a, a, 0.0f, columns, s, to);
  else
    frame::row_of_three<Bytes, Swap, Across, true>(a, b, down, columns, s, to);
}

#if defined(SINTER_ISA_NEON)
// frame_row where all weights, across and down, are a half: the mean of four pixels.
template <int Bytes, bool Swap>
static inline void frame_row_of_halves(const std::uint8_t* a, const std::uint8_t* b,
                                       const FrameColumns& columns, const FrameScale& s, float* to) {
  const float32x4_t factor = vmulq_n_f32(vld1q_f32(s.factor), 0.25f), offset = vld1q_f32(s.offset);
  const std::int64_t wide = columns.wide < columns.count ? columns.wide : columns.count - 1;
  std::int64_t i = 0;
  for (; i < wide; ++i) {
    const std::int32_t at = columns.at[i];
    const uint16x4_t sum =
        vpadal_u8(vpaddl_u8(frame::by_channel<Bytes, Swap>(a + at)), frame::by_channel<Bytes, Swap>(b + at));
    vst1q_f32(to + 3 * i, vfmaq_f32(offset, frame::small_floats(vmovl_u16(sum)), factor));
  }
  for (; i < columns.count; ++i)
    frame::column<Bytes, Swap>(a + columns.at[i], b + columns.at[i], 0.5f, 0.5f, s, to + 3 * i);
}

// ... where they are multiples of 1/256: `down` of them, and for each column those of its right pixel and, in
// the upper half of a word, of its left one. The sums are exact.
template <int Bytes, bool Swap>
static inline void frame_row_of_parts(const std::uint8_t* a, const std::uint8_t* b, int down,
                                      const std::uint32_t* across, const FrameColumns& columns,
                                      const FrameScale& s, float* to) {
  const float32x4_t factor = vld1q_f32(s.factor), offset = vld1q_f32(s.offset);
  const std::int64_t wide = columns.wide < columns.count ? columns.wide : columns.count - 1;
  const uint8x8_t below = vdup_n_u8(static_cast<std::uint8_t>(down)),
                  above = vdup_n_u8(static_cast<std::uint8_t>(256 - down));
  std::int64_t i = 0;
  for (; i < wide; ++i) {
    const std::int32_t at = columns.at[i];
    const uint8x8_t top = frame::pair<Bytes, Swap>(a + at);
    const uint16x8_t both = down == 0
                                ? vshll_n_u8(top, 8)
                                : vmlal_u8(vmull_u8(top, above), frame::pair<Bytes, Swap>(b + at), below);
    const uint16x4_t weight = vreinterpret_u16_u32(vld1_dup_u32(across + i));
    const uint32x4_t sum =
        vmlal_lane_u16(vmull_lane_u16(vget_low_u16(both), weight, 1), vget_high_u16(both), weight, 0);
    vst1q_f32(to + 3 * i, vfmaq_f32(offset, vcvtq_n_f32_u32(sum, 16), factor));
  }
  for (; i < columns.count; ++i)
    frame::column<Bytes, Swap>(a + columns.at[i], b + columns.at[i], static_cast<float>(down) * 0x1p-8f,
                               static_cast<float>(across[i] & 0xffff) * 0x1p-8f, s, to + 3 * i);
}
#endif

// A row of `Channels` channels from gray pixels.
template <int Channels>
static inline void gray_frame_row(const std::uint8_t* a, const std::uint8_t* b, float down,
                                  const FrameColumns& columns, const FrameScale& s, float* to) {
  for (std::int64_t i = 0; i < columns.count; ++i) {
    const std::int32_t at = columns.at[i];
    const float v = frame::blended<1>(a + at, b + at, down, columns.weight[i], 0);
    for (int c = 0; c < Channels; ++c) to[Channels * i + c] = v * s.factor[c] + s.offset[c];
  }
}

// A row of one channel, the luma of pixels of which byte c counts `luma[c]`.
template <int Bytes>
static inline void luma_frame_row(const std::uint8_t* a, const std::uint8_t* b, float down,
                                  const FrameColumns& columns, const float* luma, const FrameScale& s,
                                  float* to) {
  for (std::int64_t i = 0; i < columns.count; ++i) {
    const std::int32_t at = columns.at[i];
    float v = 0.0f;
    for (int c = 0; c < 3; ++c)
      v += luma[c] * frame::blended<Bytes>(a + at, b + at, down, columns.weight[i], c);
    to[i] = v * s.factor[0] + s.offset[0];
  }
}

// `count` pixels of the same `Channels` values.
template <int Channels>
static inline void fill_pixels(float* to, std::int64_t count, const float* value) {
  for (std::int64_t i = 0; i < count; ++i)
    for (int c = 0; c < Channels; ++c) to[Channels * i + c] = value[c];
}

// Floats as the nearest integers, halves upwards or, where `Even`, to even; `zero` is added, and what T has
// not becomes its least or greatest one.
template <bool Even, class T>
static inline void round_pixels(const float* from, std::int64_t count, int zero, T* to) {
  constexpr float kLeast = std::is_signed_v<T> ? -128.0f : 0.0f, kMost = kLeast + 255.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = (Even ? std::nearbyint(from[i]) : std::floor(from[i] + 0.5f)) + static_cast<float>(zero);
    to[i] = static_cast<T>(v < kLeast ? kLeast : v > kMost ? kMost : v);
  }
}

// What a luma and two chroma bytes are in RGB, in units of 2^-13: (y - black) * luma + chroma * coefficient.
struct YuvMatrix {
  std::int32_t black, luma, red_of_v, green_of_u, green_of_v, blue_of_u;
};

namespace frame {

SINTER_INLINE std::uint8_t byte_of(std::int32_t v) {
  const std::int32_t rounded = (v + 4096) >> 13;
  return static_cast<std::uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

// Two pixels that share their chroma.
SINTER_INLINE void two_of_yuv(std::int32_t y0, std::int32_t y1, std::int32_t u, std::int32_t v,
                              const YuvMatrix& m, std::uint8_t* rgb) {
  const std::int32_t red = m.red_of_v * (v - 128), blue = m.blue_of_u * (u - 128),
                     green = m.green_of_u * (u - 128) + m.green_of_v * (v - 128);
  const std::int32_t first = (y0 - m.black) * m.luma, second = (y1 - m.black) * m.luma;
  rgb[0] = byte_of(first + red), rgb[1] = byte_of(first + green), rgb[2] = byte_of(first + blue);
  rgb[3] = byte_of(second + red), rgb[4] = byte_of(second + green), rgb[5] = byte_of(second + blue);
}

#if defined(SINTER_ISA_NEON)
// Eight times two pixels: the same sums, in words of 16 bits by 16.
SINTER_INLINE void sixteen_of_yuv(uint8x8_t y0, uint8x8_t y1, uint8x8_t u, uint8x8_t v, const YuvMatrix& m,
                                  std::uint8_t* rgb) {
  const auto above = [](uint8x8_t a, int least) {
    return vreinterpretq_s16_u16(vsubl_u8(a, vdup_n_u8(static_cast<std::uint8_t>(least))));
  };
  const auto times = [](int16x8_t a, std::int32_t factor) {
    const auto f = static_cast<std::int16_t>(factor);
    return int32x4x2_t{{vmull_n_s16(vget_low_s16(a), f), vmull_n_s16(vget_high_s16(a), f)}};
  };
  const auto bytes = [](const int32x4x2_t& a, const int32x4x2_t& b) {
    return vqmovn_u16(vcombine_u16(vqrshrun_n_s32(vaddq_s32(a.val[0], b.val[0]), 13),
                                   vqrshrun_n_s32(vaddq_s32(a.val[1], b.val[1]), 13)));
  };
  const int16x8_t from_u = above(u, 128), from_v = above(v, 128);
  const int32x4x2_t first = times(above(y0, m.black), m.luma), second = times(above(y1, m.black), m.luma);
  int32x4x2_t green = times(from_u, m.green_of_u);
  const auto more = static_cast<std::int16_t>(m.green_of_v);
  green.val[0] = vmlal_n_s16(green.val[0], vget_low_s16(from_v), more);
  green.val[1] = vmlal_n_s16(green.val[1], vget_high_s16(from_v), more);
  const int32x4x2_t channels[] = {times(from_v, m.red_of_v), green, times(from_u, m.blue_of_u)};
  uint8x16x3_t out;
  for (int c = 0; c < 3; ++c) {
    const uint8x8x2_t pixels = vzip_u8(bytes(first, channels[c]), bytes(second, channels[c]));
    out.val[c] = vcombine_u8(pixels.val[0], pixels.val[1]);
  }
  vst3q_u8(rgb, out);
}
#endif

}  // namespace frame

// A row of RGB bytes from a row of luma and one of chroma pairs: u and v, or v and u where `Swap` (NV12,
// NV21).
template <bool Swap>
static inline void rgb_of_planes(const std::uint8_t* luma, const std::uint8_t* chroma, std::int64_t width,
                                 const YuvMatrix& m, std::uint8_t* rgb) {
  std::int64_t i = 0;
#if defined(SINTER_ISA_NEON)
  for (; i + 16 <= width; i += 16) {
    const uint8x8x2_t y = vld2_u8(luma + i), c = vld2_u8(chroma + i);
    frame::sixteen_of_yuv(y.val[0], y.val[1], c.val[Swap], c.val[!Swap], m, rgb + 3 * i);
  }
#endif
  for (; i < width; i += 2)
    frame::two_of_yuv(luma[i], luma[i + 1], chroma[i + Swap], chroma[i + !Swap], m, rgb + 3 * i);
}

// ... from pairs of pixels in four bytes: y u y v, or u y v y where `ChromaFirst` (YUYV, UYVY).
template <bool ChromaFirst>
static inline void rgb_of_pairs(const std::uint8_t* row, std::int64_t width, const YuvMatrix& m,
                                std::uint8_t* rgb) {
  std::int64_t i = 0;
#if defined(SINTER_ISA_NEON)
  for (; i + 16 <= width; i += 16) {
    const uint8x8x4_t p = vld4_u8(row + 2 * i);
    frame::sixteen_of_yuv(p.val[ChromaFirst], p.val[2 + ChromaFirst], p.val[!ChromaFirst],
                          p.val[2 + !ChromaFirst], m, rgb + 3 * i);
  }
#endif
  for (; i < width; i += 2) {
    const std::uint8_t* p = row + 2 * i;
    frame::two_of_yuv(p[ChromaFirst], p[2 + ChromaFirst], p[!ChromaFirst], p[2 + !ChromaFirst], m,
                      rgb + 3 * i);
  }
}

}  // namespace sinter::SINTER_ISA

#endif  // SINTER_FRAME_H_
