// CoreSpeed: what the choice between algorithms must know of how fast a core is. Each row of the targets has
// one.
//
// Figures are per cycle of one core and rough on purpose: they decide between algorithms that differ by
// tenths, not between instructions.
#pragma once
#include <cstdint>

namespace sinter {

struct CoreSpeed {
  double fma;           // vector multiply-adds
  double ops;           // other vector operations, loads and stores among them, in straight code
  double l2_bytes;      // bytes of weights that stream in from the second-level cache
  double memory_bytes;  // ... and from behind it
  double again_bytes;   // ... that were there shortly before: from a third level where there is one
  int64_t l1, l2;       // bytes of data cache that one core can count on
  bool in_order = false;
  bool asks_ahead = false;     // weights come from far behind a core's caches: prefetch instructions pay
  bool starts_cold = false;    // no layer finds its weights in the second-level cache, however few they are
  double work_share = 0.8;     // of the second-level cache, for what a group of Winograd's tiles keeps there
  int64_t again_at_once = 0;   // bytes that each tile may read again for nothing; 0: what the first level has
  int64_t l3 = 0;              // bytes of a third level that a net's weights can count on; 0: not known
  double exchanged_bytes = 0;  // bytes that another core wrote last; 0: as those from behind the caches
  double shared_work_share = 0;  // work_share where several threads work; 0: the same
  // Bytes of a net's weights that stay in the third level from one run to the next, so that one thread gets
  // them at again_bytes; 0: none do.
  int64_t near_weights = 0;
  // For the model of what layers cost (plan/cost.h): what register tiles reach of `fma`, and the clock of the
  // usual board.
  double tile_share = 0.95;
  int mhz = 2400;
  double other_core_bytes() const { return exchanged_bytes > 0 ? exchanged_bytes : again_bytes; }
  int64_t reread_bytes() const { return again_at_once > 0 ? again_at_once : l1; }
  int64_t work_bytes(int threads) const {
    const double share = threads > 1 && shared_work_share > 0 ? shared_work_share : work_share;
    return static_cast<int64_t>(static_cast<double>(l2) * share);
  }
};

// Cycles for which a layer's weights stream in, `passes` times; near: the first time from the third level.
double stream_cycles(const CoreSpeed&, double weight_bytes, double passes, bool near = false);
// Cycles of a layer whose sums take `sums` and whose weights stream in beside them in `stream`.
double beside_stream(double sums, double stream);

}  // namespace sinter
