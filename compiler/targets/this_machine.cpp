#include "targets/this_machine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sinter {

#if defined(__x86_64__)

bool has_sse42() { return __builtin_cpu_supports("sse4.2"); }
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}
bool has_dot_products() { return __builtin_cpu_supports("avx512vnni"); }
bool has_byte_matrices() { return false; }
bool has_half_arithmetic() { return false; }

bool has_tile_matrices() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kBfloat16) == 0 || (d & kTiles) == 0) return false;
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}

namespace {
struct Identity {
  unsigned family = 0, model = 0;
};
Identity identity() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  return {(a >> 8 & 15) + (a >> 20 & 255), (a >> 4 & 15) | (a >> 12 & 0xf0)};
}
}  // namespace

// Servers of Cascade Lake, Cooper Lake (model 55h) and Ice Lake (6Ah, 6Ch); the others of Intel's processors
// with VNNI have one 512-bit unit, or are Sapphire Rapids and later.
bool is_cascade_lake() {
  const Identity c = identity();
  return __builtin_cpu_is("intel") && c.family == 6 &&
         (c.model == 0x55 || c.model == 0x6a || c.model == 0x6c);
}

// Cooper Lake has bfloat16 too.
bool is_sapphire_rapids() {
  return __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512bf16") && !is_cascade_lake();
}

// Zen 5 with whole 512-bit units: family 1Ah, but for Strix Point (models 2xh) and Krackan Point (6xh), whose
// units are half as wide.
bool is_wide_zen5() {
  const Identity c = identity();
  return __builtin_cpu_is("amd") && c.family == 0x1a && c.model >> 4 != 2 && c.model >> 4 != 6;
}

#else

bool has_sse42() { return false; }
bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_tile_matrices() { return false; }
bool is_cascade_lake() { return false; }
bool is_sapphire_rapids() { return false; }
bool is_wide_zen5() { return false; }

#if defined(__aarch64__) && defined(__linux__)
bool has_dot_products() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
bool has_byte_matrices() { return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }
bool has_half_arithmetic() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0; }
#else
bool has_dot_products() { return false; }
bool has_byte_matrices() { return false; }
bool has_half_arithmetic() { return false; }
#endif

#endif

}  // namespace sinter
