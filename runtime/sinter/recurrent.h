// The states of a recurrent layer on their way in and out: rows of `hidden` floats or halves in the caller's
// layout, rows of whole vectors inside the layer.
#ifndef SINTER_RECURRENT_H_
#define SINTER_RECURRENT_H_

#include <cmath>
#include <cstdint>

namespace sinter {

namespace detail {
template <class E>
struct State {
  typedef const E* rows;  // null pointers have no element type
};
}  // namespace detail

// to[n][0..hidden) = from[n * from_row ...], the rest of each row of `padded` numbers 0; all 0 where from is
// null.
template <class E>
inline void load_states(E* to, std::int64_t rows, std::int64_t hidden, std::int64_t padded,
                        typename detail::State<E>::rows from, std::int64_t from_row) {
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < padded; ++j)
      to[n * padded + j] = from != nullptr && j < hidden ? from[n * from_row + j] : 0.0f;
}

template <class E>
inline void store_states(E* to, std::int64_t to_row, const E* from, std::int64_t rows, std::int64_t hidden,
                         std::int64_t padded) {
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < hidden; ++j) to[n * to_row + j] = from[n * padded + j];
}

// to = the states in rows of `padded` floats, rounded to the 256 steps that DynamicQuantizeLinear finds for
// all of them.
inline void states_in_steps(const float* from, std::int64_t rows, std::int64_t hidden, std::int64_t padded,
                            float* to) {
  float low = 0.0f, high = 0.0f;
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < hidden; ++j) {
      const float v = from[n * padded + j];
      low = v < low ? v : low;
      high = v > high ? v : high;
    }
  const float scale = low == high ? 1.0f : (high - low) / 255.0f;
  const auto bounded = [](float v) { return v < 0.0f ? 0.0f : v > 255.0f ? 255.0f : v; };
  const float zero = std::nearbyint(bounded(-low / scale));
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < padded; ++j) {
      const float q = bounded(std::nearbyint(from[n * padded + j] / scale) + zero);
      to[n * padded + j] = j < hidden ? (q - zero) * scale : 0.0f;
    }
}

}  // namespace sinter

#endif  // SINTER_RECURRENT_H_
