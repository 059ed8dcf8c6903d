// Parts of a loop, run at once by the threads of a pool.
#ifndef SINTER_PARTS_H_
#define SINTER_PARTS_H_
#include <cstdint>

#include "sinter/pool.h"

namespace sinter {

// body(first, end, part) for up to `most` consecutive ranges that make up [0, count), part = 0, 1 … Without a
// pool the whole is one range.
template <class Body>
void run_parts(const sinter_pool* pool, std::int64_t most, std::int64_t count, const Body& body) {
  const std::int64_t parts = count < most ? count : most;
  if (pool == nullptr || parts <= 1) {
    if (count > 0) body(std::int64_t{0}, count, std::int64_t{0});
    return;
  }
  struct Work {
    const Body& body;
    std::int64_t count, parts;
  } work{body, count, parts};
  pool->run(
      pool, static_cast<int>(parts),
      [](void* argument, int i) {
        const Work& w = *static_cast<const Work*>(argument);
        w.body(w.count * i / w.parts, w.count * (i + 1) / w.parts, std::int64_t{i});
      },
      &work);
}

}  // namespace sinter

#endif  // SINTER_PARTS_H_
