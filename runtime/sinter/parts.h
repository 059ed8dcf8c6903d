// Parts of a loop, or of several layers, run at once by the threads of a pool.
#ifndef SINTER_PARTS_H_
#define SINTER_PARTS_H_
#include <cstdint>

#include "sinter/pool.h"
#include "sinter/subnormals.h"

namespace sinter {

// body(first, end, part) for up to `most` consecutive ranges that make up [0, count), part = 0, 1 … Without a
// pool the whole is one range. Parts compute with floats as the caller does (float_mode).
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
    unsigned mode;
  } work{body, count, parts, float_mode()};
  pool->run(
      pool, static_cast<int>(parts),
      [](void* argument, int i) {
        const Work& w = *static_cast<const Work*>(argument);
        const unsigned own = float_mode();
        set_float_mode(w.mode);
        w.body(w.count * i / w.parts, w.count * (i + 1) / w.parts, std::int64_t{i});
        set_float_mode(own);
      },
      &work);
}

// The same of a body that returns a status, and ends its range where that is not 0: the first such one, in
// the order of the ranges, or 0.
template <int Most, class Body>
int run_parts_until_failure(const sinter_pool* pool, std::int64_t count, const Body& body) {
  int status[Most] = {};
  run_parts(pool, Most, count, [&](std::int64_t first, std::int64_t end, std::int64_t part) {
    status[part] = body(first, end, part);
  });
  for (const int s : status)
    if (s != 0) return s;
  return 0;
}

// A thread's share of layers whose parts don't depend on one another: body(own, part), part = 0 to Parts - 1,
// runs the layers with the pool `own`, on which of what they cut into Parts parts only the one of that number
// runs. Without a pool body(null, 0) runs all of them. Returns the first status that is not 0.
template <int Parts, class Body>
int run_shares(const sinter_pool* pool, const Body& body) {
  if (pool == nullptr) return body(pool, std::int64_t{0});
  return run_parts_until_failure<Parts>(pool, Parts, [&](std::int64_t, std::int64_t, std::int64_t part) {
    const sinter_pool own = {[](const sinter_pool* p, int count, void (*task)(void*, int), void* argument) {
                               const auto number = *static_cast<const std::int64_t*>(p->context);
                               if (number < count) task(argument, static_cast<int>(number));
                             },
                             &part};
    return body(&own, part);
  });
}

}  // namespace sinter

#endif  // SINTER_PARTS_H_
