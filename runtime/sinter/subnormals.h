// Subnormal floats: those closer to zero than the smallest normal one, 2^-126. x86-64 processors may multiply
// them in microcode: 150 cycles for a vector with one operand or result among them, on Intel's, instead of
// half a cycle. Trained weights that decayed have whole channels of such numbers. Where they are as good as
// zero, the processor is told to take them for it; Arm's cores take no longer for them.
#ifndef SINTER_SUBNORMALS_H_
#define SINTER_SUBNORMALS_H_

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace sinter {

// How this thread computes with floats: its register MXCSR on x86-64 (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 1, 10.2.3), 0 on others. No object that sets it back when it goes: that
// would need what unwinds the stack of exceptions. Setting it and setting it back takes 4 ns.
inline unsigned float_mode() {
#if defined(__SSE__)
  return _mm_getcsr();
#else
  return 0;
#endif
}

inline void set_float_mode(unsigned mode) {
  if (mode == float_mode()) return;
#if defined(__SSE__)
  _mm_setcsr(mode);
#endif
}

constexpr unsigned kSubnormalsAreZeros = 0x8040;  // of MXCSR: FTZ for results, DAZ for operands

// From now on subnormal operands and results are zeros of their sign, on x86-64.
inline void subnormals_are_zeros() { set_float_mode(float_mode() | kSubnormalsAreZeros); }
// ... are numbers, as IEEE 754 has it.
inline void subnormals_are_numbers() { set_float_mode(float_mode() & ~kSubnormalsAreZeros); }

// For a return statement: the mode is what it was, the status what it is.
inline int back_to(unsigned mode, int status) {
  set_float_mode(mode);
  return status;
}

}  // namespace sinter

#endif  // SINTER_SUBNORMALS_H_
