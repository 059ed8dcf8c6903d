// What the processor that sinter runs on has, and which it is; false where it is of another architecture.
#pragma once

namespace sinter {

bool has_sse42();
bool has_avx2();    // with FMA
bool has_avx512();  // F, BW, CD, DQ and VL

bool has_dot_products();
bool has_byte_matrices();
bool has_half_arithmetic();
bool has_tile_matrices();  // AMX with bfloat16, which the system lets processes use (runtime/sinter/amx.h)

bool is_cascade_lake();
bool is_sapphire_rapids();  // or a later Xeon
bool is_wide_zen5();

}  // namespace sinter
