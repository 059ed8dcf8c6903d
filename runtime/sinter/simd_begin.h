// First part of every simd_*.h: the standard headers, which must come before the switch of instruction set
// (what they define then keeps the program's base instruction set), and the two attributes every word is
// written with.
#ifndef SINTER_SIMD_BEGIN_H_
#define SINTER_SIMD_BEGIN_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Internal linkage and always inlined: two translation units for different instruction sets never share such
// code.
#define SINTER_INLINE [[gnu::always_inline]] static inline

// Before a loop with a small constant trip count whose body indexes an array of vectors: unrolled, the array
// lives in registers. FOUR: of a long loop, four turns at once.
#if defined(__clang__)
#define SINTER_UNROLL _Pragma("clang loop unroll(full)")
#define SINTER_UNROLL_FOUR _Pragma("clang loop unroll_count(4)")
#else
#define SINTER_UNROLL _Pragma("GCC unroll 64")
#define SINTER_UNROLL_FOUR _Pragma("GCC unroll 4")
#endif

namespace sinter {
// Vectors of 16-bit lanes (simd_half.h), which have words of the same names.
template <class V>
inline constexpr bool of_halves = false;
template <class V>
using if_words = std::enable_if_t<!of_halves<V>, int>;
template <class V>
using if_halves = std::enable_if_t<of_halves<V>, int>;
}  // namespace sinter

#endif  // SINTER_SIMD_BEGIN_H_
