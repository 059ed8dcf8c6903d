// Before a simd_*.h: the rest of the unit may use the processor's tile matrices (amx.h). The header of the
// instruction set switches them on where the compiler's flags don't.
#ifndef SINTER_TILE_MATRICES
#define SINTER_TILE_MATRICES 1
#endif
