// copy: runs of elements moved, repeated and transposed; the words of generated data movement.
//
// Extents are any int64; what is not positive means nothing to do. `to` and `from` do not overlap.
#ifndef SINTER_COPY_H_
#define SINTER_COPY_H_
#ifndef SINTER_ISA
#error "include a sinter/simd_*.h before sinter/copy.h"
#endif

// Shuffles of vectors by name: clang, and g++ from 12 on; older ones copy element by element.
#if !defined(SINTER_ISA_SCALAR) && (defined(__clang__) || __GNUC__ >= 12)
#define SINTER_HAS_SHUFFLES
#endif

namespace sinter {

// to[0..n) = from[0..n).
template <class T>
SINTER_INLINE void copy(T* to, const T* from, std::int64_t n) {
  if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
}

// to[0..n) = value.
template <class T>
SINTER_INLINE void fill(T* to, std::int64_t n, std::common_type_t<T> value) {
  if (n <= 0) return;
  if constexpr (std::is_same_v<T, float>) {
    constexpr std::int64_t kLanes = SINTER_ISA::kLanes;
    const SINTER_ISA::f32v v = SINTER_ISA::splat(value);
    const std::int64_t whole = n - n % kLanes;
    for (std::int64_t i = 0; i < whole; i += kLanes) SINTER_ISA::store(to + i, v);
    SINTER_ISA::store_n(to + whole, v, n % kLanes);
  } else if constexpr (sizeof(T) == 1) {
    unsigned char byte;
    std::memcpy(&byte, &value, 1);
    std::memset(to, byte, static_cast<std::size_t>(n));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = value;
  }
}

namespace detail {

// Rows and columns of a block. NEON's processors follow few streams of memory at once: eight columns are as
// many.
constexpr std::int64_t kTransposedRows = 16;
#if defined(SINTER_ISA_NEON)
template <class T>
constexpr std::int64_t kTransposedColumns = 8;
// What is written and what is read between two visits of a line, in the second-level cache and the first.
constexpr std::int64_t kNearWrites = 64 << 10, kNearReads = 16 << 10;
#else
template <class T>
constexpr std::int64_t kTransposedColumns = 16;
constexpr std::int64_t kNearWrites = 0, kNearReads = 0;
#endif

template <class T, class F>
SINTER_INLINE void transpose_block(T* to, std::int64_t to_row, const F* from, std::int64_t from_row,
                                   std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * to_row + c] = from[c * from_row + r];
}

#if !defined(SINTER_ISA_SCALAR)
SINTER_INLINE SINTER_ISA::f32v load_bits(const float* p) { return SINTER_ISA::load(p); }
SINTER_INLINE SINTER_ISA::f32v load_bits(const std::int32_t* p) {
  return SINTER_ISA::float_bits(SINTER_ISA::load(p));
}
SINTER_INLINE void store_bits(float* p, SINTER_ISA::f32v v) { SINTER_ISA::store(p, v); }
SINTER_INLINE void store_bits(std::int32_t* p, SINTER_ISA::f32v v) {
  SINTER_ISA::store(p, SINTER_ISA::bits(v));
}

#if defined(SINTER_CONVERT_H_)
SINTER_INLINE SINTER_ISA::f32v load_bits(const half* p) { return SINTER_ISA::load(p); }
SINTER_INLINE void store_bits(half* p, SINTER_ISA::f32v v) { SINTER_ISA::store(p, v); }
#endif

// kLanes x kLanes elements, in registers.
template <class T, class F>
SINTER_INLINE void transpose_tile(T* to, std::int64_t to_row, const F* from, std::int64_t from_row) {
  using namespace SINTER_ISA;
  f32v v[kLanes];
  SINTER_UNROLL
  for (int i = 0; i < kLanes; ++i) v[i] = load_bits(from + i * from_row);
  transpose(v);
  SINTER_UNROLL
  for (int i = 0; i < kLanes; ++i) store_bits(to + i * to_row, v[i]);
}

#if defined(SINTER_HAS_SHUFFLES)
// First, First + N, First + 1, First + N + 1 ...: lanes of two vectors of N that take turns.
template <int N, int First, class Row, std::size_t... L>
SINTER_INLINE Row in_turn(Row a, Row b, std::index_sequence<L...>) {
  return __builtin_shufflevector(a, b, (First + static_cast<int>(L) / 2 + static_cast<int>(L) % 2 * N)...);
}
// A square of elements of one or two bytes, as many as 16 bytes have, or eight columns of it: of all vectors,
// each and the one half of them below it take turns, once for each halving.
template <class T, int Columns = 16 / sizeof(T)>
SINTER_INLINE void transpose_square(T* to, std::int64_t to_row, const T* from, std::int64_t from_row) {
  typedef std::conditional_t<sizeof(T) == 1, unsigned char, unsigned short> Lane;
  typedef Lane Row __attribute__((vector_size(16)));
  constexpr int kRows = Columns, kTurns = Columns == 16 ? 4 : 3, kOfTwo = 16 / sizeof(T) / Columns;
  constexpr auto lanes = std::make_index_sequence<16 / sizeof(T)>();
  static_assert(Columns == 16 || Columns == 8);
  Row v[kRows], next[kRows];
  SINTER_UNROLL
  for (int i = 0; i < kRows; ++i) std::memcpy(&v[i], from + i * from_row, 16);
  SINTER_UNROLL
  for (int turn = 0; turn < kTurns; ++turn) {
    SINTER_UNROLL
    for (int i = 0; i < kRows / 2; ++i) {
      next[2 * i] = in_turn<lanes.size(), 0>(v[i], v[i + kRows / 2], lanes);
      next[2 * i + 1] = in_turn<lanes.size(), lanes.size() / 2>(v[i], v[i + kRows / 2], lanes);
    }
    SINTER_UNROLL
    for (int i = 0; i < kRows; ++i) v[i] = next[i];
  }
  SINTER_UNROLL
  for (int i = 0; i < kRows; ++i) {
    SINTER_UNROLL
    for (int j = 0; j < kOfTwo; ++j)
      std::memcpy(static_cast<void*>(to + (i * kOfTwo + j) * to_row),
                  reinterpret_cast<const char*>(&v[i]) + j * (16 / kOfTwo), 16 / kOfTwo);
  }
}
#endif

#if defined(SINTER_HALF_ARITHMETIC)
// 8 x 8 elements between floats and halves: halves are turned, half as many vectors.
SINTER_INLINE SINTER_ISA::f16v load_halves(const half* p) { return SINTER_ISA::load<SINTER_ISA::f16v>(p); }
SINTER_INLINE SINTER_ISA::f16v load_halves(const float* p) {
  SINTER_ISA::Wide w;
  SINTER_UNROLL
  for (int i = 0; i < SINTER_ISA::kFloatVectors; ++i)
    w.part[i] = SINTER_ISA::load(p + i * SINTER_ISA::kLanes);
  return SINTER_ISA::narrow(w);
}
SINTER_INLINE void store_halves(half* p, SINTER_ISA::f16v v) { SINTER_ISA::store(p, v); }
SINTER_INLINE void store_halves(float* p, SINTER_ISA::f16v v) {
  const SINTER_ISA::Wide w = SINTER_ISA::widen_lanes(v);
  SINTER_UNROLL
  for (int i = 0; i < SINTER_ISA::kFloatVectors; ++i)
    SINTER_ISA::store(p + i * SINTER_ISA::kLanes, w.part[i]);
}
template <class T, class F>
SINTER_INLINE void transpose_halves(T* to, std::int64_t to_row, const F* from, std::int64_t from_row) {
  SINTER_ISA::f16v v[8];
  SINTER_UNROLL
  for (int i = 0; i < 8; ++i) v[i] = load_halves(from + i * from_row);
  SINTER_ISA::transpose(v);
  SINTER_UNROLL
  for (int i = 0; i < 8; ++i) store_halves(to + i * to_row, v[i]);
}
#endif

// A whole block.
template <class T, class F>
SINTER_INLINE void transpose_tiles(T* to, std::int64_t to_row, const F* from, std::int64_t from_row) {
#if defined(SINTER_HALF_ARITHMETIC)
  if constexpr (!std::is_same_v<T, F>) {
    for (int r = 0; r < kTransposedRows; r += 8)
      for (int c = 0; c < kTransposedColumns<T>; c += 8)
        transpose_halves(to + r * to_row + c, to_row, from + c * from_row + r, from_row);
    return;
  }
#endif
  for (int r = 0; r < kTransposedRows; r += SINTER_ISA::kLanes)
    for (int c = 0; c < kTransposedColumns<T>; c += SINTER_ISA::kLanes)
      transpose_tile(to + r * to_row + c, to_row, from + c * from_row + r, from_row);
}
#endif

// A block, or what is left of one: high x wide elements.
template <class T, class F>
SINTER_INLINE void transpose_part(T* to, std::int64_t to_row, const F* from, std::int64_t from_row,
                                  std::int64_t high, std::int64_t wide) {
#if !defined(SINTER_ISA_SCALAR)
  [[maybe_unused]] const bool whole = high == kTransposedRows && wide == kTransposedColumns<T>;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::int32_t> || std::is_same_v<F, float>) {
    using SINTER_ISA::kLanes;
    if (whole) return transpose_tiles(to, to_row, from, from_row);
    // The parts of whole tiles, then the strips that are left.
    const std::int64_t tall = high / kLanes * kLanes, broad = wide / kLanes * kLanes;
    for (std::int64_t i = 0; i < tall; i += kLanes)
      for (std::int64_t j = 0; j < broad; j += kLanes)
        transpose_tile(to + i * to_row + j, to_row, from + j * from_row + i, from_row);
    transpose_block(to + broad, to_row, from + broad * from_row, from_row, tall, wide - broad);
    return transpose_block(to + tall * to_row, to_row, from + tall, from_row, high - tall, wide);
  }
#endif
#if defined(SINTER_HAS_SHUFFLES)
  if constexpr (sizeof(T) == 1 && sizeof(F) == 1) {
    if (whole) return transpose_square<T, kTransposedColumns<T>>(to, to_row, from, from_row);
  }
  if constexpr (sizeof(T) == 2 && sizeof(F) == 2) {
    for (std::int64_t i = 0; i < high; i += 8)
      for (std::int64_t j = 0; j < wide; j += 8) {
        T* const corner = to + i * to_row + j;
        const F* const other = from + j * from_row + i;
        if (high - i >= 8 && wide - j >= 8)
          transpose_square(corner, to_row, other, from_row);
        else
          transpose_block(corner, to_row, other, from_row, high - i < 8 ? high - i : 8,
                          wide - j < 8 ? wide - j : 8);
      }
    return;
  }
#endif
  transpose_block(to, to_row, from, from_row, high, wide);
}

// How many rows of so many bytes are `near` bytes, in whole blocks; 0 where that is too few.
SINTER_INLINE std::int64_t near_rows(std::int64_t near, std::int64_t bytes, std::int64_t block) {
  if (near == 0 || bytes <= 0) return 0;
  const std::int64_t rows = near / bytes / block * block;
  return rows > 2 * block ? rows : 0;
}

}  // namespace detail

// to[r * to_row + c] = from[c * from_row + r] for r < rows, c < columns. Block by block, so that a line of
// the cache that is begun is finished; elements of four, two and one bytes go through registers. NEON goes
// down as many rows as stay near before it takes the next columns, so that each column is read in long runs.
// Floats may be made halves on the way, and halves floats (convert.h comes first then).
template <class T, class F>
[[gnu::noinline]] static void transpose(T* to, std::int64_t to_row, const F* from, std::int64_t from_row,
                                        std::int64_t rows, std::int64_t columns) {
  using detail::kTransposedRows;
  constexpr std::int64_t kWide = detail::kTransposedColumns<T>;
  const std::int64_t tall =
      detail::near_rows(detail::kNearWrites, to_row * static_cast<std::int64_t>(sizeof(T)), kTransposedRows);
  const std::int64_t high = tall > 0 ? tall : kTransposedRows;
  // A line of which a block reads a part is wanted by the blocks below it, too.
  constexpr std::int64_t kReads = kTransposedRows * sizeof(F) < 64 ? detail::kNearReads : 0;
  const std::int64_t near = detail::near_rows(kReads, from_row * static_cast<std::int64_t>(sizeof(F)), kWide);
  const std::int64_t broad = near > 0 ? near : columns;
  for (std::int64_t left = 0; left < columns; left += broad) {
    const std::int64_t right = columns - left < broad ? columns : left + broad;
    for (std::int64_t first = 0; first < rows; first += high) {
      const std::int64_t end = rows - first < high ? rows : first + high;
      for (std::int64_t c = left; c < right; c += kWide)
        for (std::int64_t r = first; r < end; r += kTransposedRows)
          detail::transpose_part(to + r * to_row + c, to_row, from + c * from_row + r, from_row,
                                 end - r < kTransposedRows ? end - r : kTransposedRows,
                                 right - c < kWide ? right - c : kWide);
    }
  }
}

#if defined(SINTER_HAS_SHUFFLES)
namespace detail {

// K vectors as one run in which their lanes take turns (lane l of vector k is element l * K + k), and the
// other way round. Each vector of the result is picked from the K given ones, one shuffle for each beyond the
// first.
template <int K, bool Apart, int Which, int Step, std::size_t... L>
SINTER_INLINE SINTER_ISA::f32v pick(SINTER_ISA::f32v before, SINTER_ISA::f32v next,
                                    std::index_sequence<L...>) {
  constexpr int kLanes = SINTER_ISA::kLanes;
  // Where lane l of the result comes from: a vector and its lane.
  constexpr auto vector = [](int l) { return Apart ? (l * K + Which) / kLanes : (Which * kLanes + l) % K; };
  constexpr auto lane = [](int l) { return Apart ? (l * K + Which) % kLanes : (Which * kLanes + l) / K; };
  return __builtin_shufflevector(before, next,
                                 (vector(static_cast<int>(L)) == Step ? kLanes + lane(static_cast<int>(L))
                                  : Step == 1 && vector(static_cast<int>(L)) == 0 ? lane(static_cast<int>(L))
                                                                                  : static_cast<int>(L))...);
}
template <int K, bool Apart, int Which>
SINTER_INLINE SINTER_ISA::f32v picked(const SINTER_ISA::f32v (&v)[K]) {
  constexpr auto lanes = std::make_index_sequence<SINTER_ISA::kLanes>();
  SINTER_ISA::f32v out = pick<K, Apart, Which, 1>(v[0], v[1], lanes);
  if constexpr (K > 2) out = pick<K, Apart, Which, 2>(out, v[2], lanes);
  if constexpr (K > 3) out = pick<K, Apart, Which, 3>(out, v[3], lanes);
  return out;
}
template <int K, bool Apart, class T, std::size_t... Which>
SINTER_INLINE void shuffled(T* to, std::int64_t to_step, const SINTER_ISA::f32v (&v)[K],
                            std::index_sequence<Which...>) {
  (store_bits(to + static_cast<std::int64_t>(Which) * to_step, picked<K, Apart, static_cast<int>(Which)>(v)),
   ...);
}
template <int K, class T>
SINTER_INLINE void load_run(SINTER_ISA::f32v (&v)[K], const T* from) {
  SINTER_UNROLL
  for (int k = 0; k < K; ++k) v[k] = load_bits(from + k * SINTER_ISA::kLanes);
}

}  // namespace detail
#endif

// to[i * K + k] = from[k][i] for i < n, k < K: K rows whose elements take turns.
template <int K, class T>
SINTER_INLINE void interleave(T* to, const T* const (&from)[K], std::int64_t n) {
  std::int64_t whole = 0;
#if defined(SINTER_HAS_SHUFFLES)
  constexpr std::int64_t kLanes = SINTER_ISA::kLanes;
  whole = n / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    SINTER_ISA::f32v v[K];
    SINTER_UNROLL
    for (int k = 0; k < K; ++k) v[k] = detail::load_bits(from[k] + i);
    detail::shuffled<K, false>(to + i * K, kLanes, v, std::make_index_sequence<K>());
  }
#endif
  for (std::int64_t i = whole; i < n; ++i)
    for (int k = 0; k < K; ++k) to[i * K + k] = from[k][i];
}
// The same of rows that are from_step elements apart.
template <int K, class T>
SINTER_INLINE void interleave(T* to, const T* from, std::int64_t from_step, std::int64_t n) {
  const T* rows[K];
  SINTER_UNROLL
  for (int k = 0; k < K; ++k) rows[k] = from + k * from_step;
  interleave<K>(to, rows, n);
}

// to[k * to_step + i] = from[i * K + k] for i < n, k < K.
template <int K, class T>
SINTER_INLINE void deinterleave(T* to, std::int64_t to_step, const T* from, std::int64_t n) {
  std::int64_t whole = 0;
#if defined(SINTER_HAS_SHUFFLES)
  constexpr std::int64_t kLanes = SINTER_ISA::kLanes;
  whole = n / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    SINTER_ISA::f32v v[K];
    detail::load_run(v, from + i * K);
    detail::shuffled<K, true>(to + i, to_step, v, std::make_index_sequence<K>());
  }
#endif
  for (std::int64_t i = 0; i < n - whole; ++i)
    for (int k = 0; k < K; ++k) to[k * to_step + whole + i] = from[(whole + i) * K + k];
}

// to[i] = from[i * K] for i < n: nothing behind from[(n - 1) * K] is read.
template <int K, class T>
SINTER_INLINE void every(T* to, const T* from, std::int64_t n) {
  std::int64_t whole = 0;
#if defined(SINTER_HAS_SHUFFLES)
  constexpr std::int64_t kLanes = SINTER_ISA::kLanes;
  whole = n > 0 ? (n - 1) / kLanes * kLanes : 0;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    SINTER_ISA::f32v v[K];
    detail::load_run(v, from + i * K);
    detail::shuffled<K, true>(to + i, kLanes, v, std::index_sequence<0>());
  }
#endif
  for (std::int64_t i = whole; i < n; ++i) to[i] = from[i * K];
}

// Row i of an axis padded at both ends, i counted from its first own row and possibly outside, as one of its
// n > 0 own rows: the nearest, mirrored without repeating the border, or going around.
SINTER_INLINE std::int64_t edge_row(std::int64_t i, std::int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }
SINTER_INLINE std::int64_t wrap_row(std::int64_t i, std::int64_t n) {
  const std::int64_t r = i % n;
  return r < 0 ? r + n : r;
}
SINTER_INLINE std::int64_t reflect_row(std::int64_t i, std::int64_t n) {
  const std::int64_t r = wrap_row(i, n > 1 ? 2 * (n - 1) : 1);
  return r < n ? r : 2 * (n - 1) - r;
}

}  // namespace sinter

#endif  // SINTER_COPY_H_
