// Target: what the code generator must know of a processor family. One file a family, one table
// (targets.cpp).
#pragma once
#include <string>
#include <vector>

namespace sinter {

struct Target {
  const char* name;       // "cortex-a72", as --target spells it
  const char* what;       // one line for `sinter targets`
  const char* isa;        // namespace and header of the runtime words: neon, avx512, avx2, sse42, scalar
  int lanes;              // floats in a vector register
  int registers;          // vector registers
  bool aarch64;           // else the machine that sinter runs on (x86-64) or anything (scalar)
  const char* cxx_flags;  // what NAME.cmake and `sinter run` add for this target beside -std=c++17 -O2
  const char* gcc_flags;  // ... where the compiler is g++: how it orders instructions and allocates registers
  const char* boards;     // examples, for the docs
  // The register tile of the multiply-accumulate kernels: pixels held at once beside `vectors` output
  // vectors.
  int tile(int vectors) const;
  int max_vectors;             // the widest tile, in output vectors
  bool dot_products = false;   // one instruction sums four products of bytes (runtime/sinter/dot.h)
  bool tile_matrices = false;  // products of tiles of bfloat16 (runtime/sinter/amx.h)
  bool byte_matrices = false;  // ... of matrices of bytes (runtime/sinter/dot_matrices.h)
  bool halves = false;         // arithmetic of 16-bit floats (runtime/sinter/half_arithmetic.h)
  int element_bytes() const { return of_halves ? 2 : 4; }
  bool of_halves = false;  // the row is for layers that compute in them: lanes and tiles are halves'
};

// The target as layers that compute in halves see it: more lanes, other tiles. It must have `halves`.
const Target& in_halves(const Target&);

const std::vector<const Target*>& all_targets();
// nullptr where unknown. "host" is the best row that this machine can execute.
const Target* find_target(const std::string& name);
// Whether this machine executes the target's code without an emulator.
bool host_can_run(const Target&);

}  // namespace sinter
