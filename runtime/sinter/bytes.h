// Sixteen bytes at a time, by the compiler's own vectors, which every target has.
//
//   load_bytes(p, n)      the first n (1 to 16) at p, zeros behind them
//   store_bytes(p, v, n)  the first n to p
//   max_bytes(a, b)       the greater of each pair
#ifndef SINTER_BYTES_H_
#define SINTER_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace sinter {

constexpr std::int64_t kBytes = 16;
template <class T>
struct Bytes {
  static_assert(sizeof(T) == 1, "int8 or uint8");
  typedef T vector __attribute__((vector_size(16)));
  vector v;
};

template <class T>
inline Bytes<T> load_bytes(const T* p, std::size_t n) {
  Bytes<T> b{};
  if (n == 16)
    std::memcpy(&b.v, p, 16);
  else
    std::memcpy(&b.v, p, n);
  return b;
}
template <class T>
inline void store_bytes(T* p, Bytes<T> b, std::size_t n) {
  if (n == 16)
    std::memcpy(p, &b.v, 16);
  else
    std::memcpy(p, &b.v, n);
}
template <class T>
inline Bytes<T> lowest_bytes() {
  Bytes<T> b;
  b.v = typename Bytes<T>::vector{} + std::numeric_limits<T>::lowest();
  return b;
}
template <class T>
inline Bytes<T> max_bytes(Bytes<T> a, Bytes<T> b) {
  a.v = a.v > b.v ? a.v : b.v;
  return a;
}

}  // namespace sinter

#endif  // SINTER_BYTES_H_
