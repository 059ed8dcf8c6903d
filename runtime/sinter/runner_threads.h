// The threads of a program around nets that were compiled with --threads: one pool at a time.
#pragma once
#include <memory>

#include "sinter/thread_pool.h"

namespace sinter {
namespace runner {

// A pool of so many threads, `usual` where that is 0; null for one alone.
inline const sinter_pool* pool_of(int threads, int usual) {
  static std::unique_ptr<ThreadPool> pool;
  static int size = 1;
  const int wanted = threads > 0 ? threads : usual;
  if (wanted != size) {
    pool.reset();  // the old ones end before others begin
    if (wanted > 1) pool = std::make_unique<ThreadPool>(wanted);
    size = wanted;
  }
  return pool ? pool->pool() : nullptr;
}

}  // namespace runner
}  // namespace sinter
