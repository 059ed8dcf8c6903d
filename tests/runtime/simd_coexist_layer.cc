// y[n] = silu(x[n] * w[n] + tanh of x[n]) with a scalar tail of the same text; built once for each
// instruction set.

// clang-format off
#include SINTER_TEST_SIMD_HEADER  // first: it chooses the instruction set
#include "sinter/mac.h"
#include "sinter/math.h"
#include "simd_coexist.h"
// clang-format on

#define SINTER_TEST_PASTE(a, b) a##b
#define SINTER_TEST_NAMESPACE(isa) SINTER_TEST_PASTE(coexist_, isa)

// The formatter takes the macro in the name of the namespace for a function.
// clang-format off
namespace SINTER_TEST_NAMESPACE(SINTER_ISA) {

  namespace isa = sinter::SINTER_ISA;

  void layer(const float* x, const float* w, float* y, int n) {
    auto body = [](auto xv, auto wv) { return isa::silu(isa::fma(xv, wv, isa::tanh(xv))); };
    int i = 0;
    for (; i + isa::kLanes <= n; i += isa::kLanes)
      isa::store(y + i, body(isa::load(x + i), isa::load(w + i)));
    for (; i < n; i++) isa::store(y + i, body(isa::load<float>(x + i), isa::load<float>(w + i)));
  }

}  // namespace

#include "sinter/simd_end.h"
