// Before a simd_*.h: the rest of the unit computes with halves. The header of the instruction set switches
// the instructions on where it has them and the compiler's flags don't, and includes the words by this name,
// so that bundles without halves, which get what their includes spell out, don't carry them.
#ifndef SINTER_HALF_ARITHMETIC
#define SINTER_HALF_ARITHMETIC "sinter/simd_half.h"
#endif
