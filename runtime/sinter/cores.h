// Which instructions the core has that a program runs on, as far as the targets of sinter differ in them: a
// level, of which each includes those below. Bundles for several cores choose their code by it.
//
//   x86-64    1 x86-64-v2, 2 x86-64-v3 (AVX2), 3 x86-64-v4 (AVX-512), 4 AVX-512 with VNNI
//   aarch64   1 ARMv8-A, 2 with dot products and arithmetic of halves (ARMv8.2-A), 3 with matrices of bytes
//   (ARMv8.6-A)
//
// 0 is less than all of them. On aarch64 without Linux, whose hardware capabilities are asked for, it is 1.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace sinter {
namespace cores {

inline constexpr bool has(unsigned long all, unsigned long bits) { return (all & bits) == bits; }
inline constexpr unsigned bit(int number) { return 1u << number; }

#if defined(__x86_64__)
inline int level() {
  unsigned a = 0, b = 0, c = 0, d = 0, b7 = 0, c7 = 0, c81 = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const unsigned first = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) b7 = b, c7 = c;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) c81 = c;
  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
  if (!has(first, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23))) return 0;
  // FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
  if (!has(first, bit(12) | bit(22) | bit(27) | bit(28) | bit(29)) || !has(b7, bit(3) | bit(5) | bit(8)) ||
      !has(c81, bit(5)))
    return 1;
  unsigned saved = 0, high = 0;  // the registers that the system keeps
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if (!has(saved, 0x06)) return 1;
  // AVX-512 F, DQ, CD, BW, VL; then VNNI
  if (!has(saved, 0xe6) || !has(b7, bit(16) | bit(17) | bit(28) | bit(30) | bit(31))) return 2;
  return has(c7, bit(11)) ? 4 : 3;
}
#elif defined(__aarch64__) && defined(__linux__)
inline int level() {
  const unsigned long one = getauxval(16), two = getauxval(26);  // AT_HWCAP, AT_HWCAP2
  // ATOMICS, FPHP, ASIMDHP, ASIMDRDM, ASIMDDP
  if (!has(one, bit(8) | bit(9) | bit(10) | bit(12) | bit(20))) return 1;
  // JSCVT, FCMA, LRCPC; FRINT, I8MM, BF16
  return has(one, bit(13) | bit(14) | bit(15)) && has(two, bit(8) | bit(13) | bit(14)) ? 3 : 2;
}
#elif defined(__aarch64__)
inline int level() { return 1; }
#else
inline int level() { return 0; }
#endif

}  // namespace cores
}  // namespace sinter
