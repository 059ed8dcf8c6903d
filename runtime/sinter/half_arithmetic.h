// Before a simd_*.h: the rest of the unit computes with halves (simd_half.h). The header of the instruction
// set switches the instructions on where it has them and the compiler's flags don't.
#ifndef SINTER_HALF_ARITHMETIC
#define SINTER_HALF_ARITHMETIC 1
#endif
