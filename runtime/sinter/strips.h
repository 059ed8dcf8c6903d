// Strips: what the loops over a few rows of several layers need.
#ifndef SINTER_STRIPS_H_
#define SINTER_STRIPS_H_
#include <cstdint>
#include <cstring>

namespace sinter {

// The `count` rows of `row` elements that begin `from` rows behind the buffer's start move to its start; none
// where count or from is not positive.
template <class T>
static inline void keep_rows(T* buffer, std::int64_t from, std::int64_t count, std::int64_t row) {
  if (from > 0 && count > 0)
    std::memmove(buffer, buffer + from * row, static_cast<std::size_t>(count * row) * sizeof(T));
}

}  // namespace sinter

#endif  // SINTER_STRIPS_H_
