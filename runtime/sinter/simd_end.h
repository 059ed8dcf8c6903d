// Last include of a translation unit that began with a simd_*.h: closes the region in which clang compiles
// for the chosen instruction set. (g++ keeps the set to the end of the unit, where it also instantiates
// templates.)
#if defined(SINTER_ISA_POP)
#undef SINTER_ISA_POP
#pragma clang attribute pop
#endif
