// Before a simd_*.h: the rest of the unit may use the processor's dot products of bytes (dot.h). The header
// of the instruction set switches them on where the compiler's flags don't.
#ifndef SINTER_DOT_PRODUCTS
#define SINTER_DOT_PRODUCTS 1
#endif
