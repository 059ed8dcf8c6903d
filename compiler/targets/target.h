// Target: what the code generator must know of a processor. A row is an instruction set, which its kin share,
// and a core: features, figures of speed, compiler flags. One file an instruction set's family (aarch64.cpp,
// x86.cpp, scalar.cpp), one table (targets.cpp). `sinter targets --markdown` prints it for the docs.
#pragma once
#include <string>
#include <vector>

#include "targets/core_speed.h"

namespace sinter {

struct Target;

// What the runtime words of a header runtime/sinter/simd_NAME.h compute with.
struct InstructionSet {
  const char* isa;    // NAME, and the words' namespace: neon, avx512, avx2, sse42, scalar
  const char* spelt;  // for people: "NEON"
  int lanes;          // floats in a vector register
  int registers;      // vector registers
  int max_vectors;    // the widest register tile, in output vectors
  bool aarch64;       // else the machine that sinter runs on (x86-64) or anything (scalar)
  // The register tile of the multiply-accumulate kernels: pixels held at once beside `vectors` output
  // vectors.
  int (*tile_of)(const Target&, int vectors);
  bool (*runs_here)();  // whether this machine executes it without an emulator
};

// What a core has besides its instruction set; a row each in feature_table().
struct Features {
  bool dot_products = false;   // one instruction sums four products of bytes (runtime/sinter/dot.h)
  bool byte_matrices = false;  // products of matrices of bytes (runtime/sinter/dot_matrices.h)
  bool halves = false;         // arithmetic of 16-bit floats (runtime/sinter/half_arithmetic.h)
  bool tile_matrices = false;  // products of tiles of bfloat16 (runtime/sinter/amx.h)
};

struct FeatureRow {
  bool Features::*member;
  const char* spelt;  // for people: "dot products"
  const char* json;   // its key in `sinter targets --json`
  bool (*runs_here)();
};
const std::vector<FeatureRow>& feature_table();

struct Core {
  const char* name;    // "cortex-a72", as --target spells it
  const char* what;    // one line for `sinter targets`
  const char* boards;  // examples, for the docs
  Features features;
  CoreSpeed speed;
  const char* cxx_flags = "";  // what NAME.cmake and `sinter run` add for it beside -std=c++17 -O2
  const char* gcc_flags =
      "";  // ... where the compiler is g++: how it orders instructions, allocates registers
  // Whether this machine, which executes the row, is such a core; nullptr: nobody can tell, and --target host
  // is never this row.
  bool (*is_host)() = nullptr;
};

struct Target : InstructionSet, Core {
  bool of_halves = false;  // the row is for layers that compute in halves: lanes and tiles are theirs
  int element_bytes() const { return of_halves ? 2 : 4; }
  int tile(int vectors) const { return tile_of(*this, vectors); }
};

// Of rows that run on any core of the instruction set.
inline bool any_core() { return true; }

// The target as layers that compute in halves see it: more lanes, other tiles. It must have `halves`.
const Target& in_halves(const Target&);

const std::vector<const Target*>& all_targets();
// nullptr where unknown. "host" is the row that suits this machine best: of those that it executes and is a
// core of, the widest, and of these the last one in the table.
const Target* find_target(const std::string& name);
// Whether this machine executes the target's code without an emulator.
bool host_can_run(const Target&);

}  // namespace sinter
