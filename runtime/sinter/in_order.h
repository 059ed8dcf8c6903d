// Included before simd_neon.h in code for a core that executes in order (Cortex-A53, A55). There, what waits
// for an operand holds up everything behind it, so the compiler is to move independent instructions between;
// the tiles of mac.h are written in their order already (mac_in_order) and keep it.
#ifndef SINTER_IN_ORDER_H_
#define SINTER_IN_ORDER_H_
#ifdef SINTER_ISA
#error "include sinter/in_order.h before sinter/simd_neon.h"
#endif
#define SINTER_IN_ORDER 1
#endif  // SINTER_IN_ORDER_H_
