// Includes the SIMD header that the build names (-DSINTER_TEST_SIMD_HEADER="sinter/simd_avx2.h"); each test
// here is built once for every instruction set. GoogleTest comes first: the SIMD header switches the
// instruction set of what follows it.
#ifndef SINTER_TESTS_RUNTIME_SIMD_ISA_H_
#define SINTER_TESTS_RUNTIME_SIMD_ISA_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include SINTER_TEST_SIMD_HEADER

#endif  // SINTER_TESTS_RUNTIME_SIMD_ISA_H_
