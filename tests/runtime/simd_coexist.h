// One small layer, compiled for several instruction sets into one program (simd_coexist_test.cc).
#ifndef SINTER_TESTS_RUNTIME_SIMD_COEXIST_H_
#define SINTER_TESTS_RUNTIME_SIMD_COEXIST_H_

namespace coexist_scalar {
void layer(const float* x, const float* w, float* y, int n);
}
namespace coexist_sse42 {
void layer(const float* x, const float* w, float* y, int n);
}
namespace coexist_avx2 {
void layer(const float* x, const float* w, float* y, int n);
}
namespace coexist_avx512 {
void layer(const float* x, const float* w, float* y, int n);
}
namespace coexist_neon {
void layer(const float* x, const float* w, float* y, int n);
}

#endif  // SINTER_TESTS_RUNTIME_SIMD_COEXIST_H_
