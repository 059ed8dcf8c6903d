// The states of a recurrent layer on their way in and out: rows of `hidden` floats in the caller's layout,
// rows of whole vectors inside the layer.
#ifndef SINTER_RECURRENT_H_
#define SINTER_RECURRENT_H_

#include <cstdint>

namespace sinter {

// to[n][0..hidden) = from[n * from_row ...], the rest of each row of `padded` floats 0; all 0 where from is
// null.
inline void load_states(float* to, std::int64_t rows, std::int64_t hidden, std::int64_t padded,
                        const float* from, std::int64_t from_row) {
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < padded; ++j)
      to[n * padded + j] = from != nullptr && j < hidden ? from[n * from_row + j] : 0.0f;
}

inline void store_states(float* to, std::int64_t to_row, const float* from, std::int64_t rows,
                         std::int64_t hidden, std::int64_t padded) {
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = 0; j < hidden; ++j) to[n * to_row + j] = from[n * padded + j];
}

}  // namespace sinter

#endif  // SINTER_RECURRENT_H_
