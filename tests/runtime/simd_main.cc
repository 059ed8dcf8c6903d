// Runs the tests, or tells CTest (exit code 77) that this CPU lacks the instruction set they were built for.
// This file itself is built for the base instruction set.
#include <gtest/gtest.h>

#include <cstdio>
#if defined(SINTER_TEST_HALVES) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

static bool cpu_runs_it() {
#if defined(SINTER_TEST_CPU_AVX512)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(SINTER_TEST_CPU_AVX2)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(SINTER_TEST_CPU_SSE42)
  return __builtin_cpu_supports("sse4.2");
#elif defined(SINTER_TEST_HALVES) && defined(__aarch64__)
  return (getauxval(AT_HWCAP) & (1u << 10)) != 0;  // HWCAP_ASIMDHP
#else
  return true;
#endif
}

int main(int argc, char** argv) {
  if (!cpu_runs_it()) {
    std::printf("skipped: this CPU lacks the instruction set of these tests\n");
    return 77;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
