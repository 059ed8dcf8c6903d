// Floats one after another, best first: what NonMaxSuppression and TopK take boxes and elements by.
//
// A tree says which is next: blocks of 64 keys, the greatest of each, the greatest of 64 of those, and so on.
// To build it reads each key once, to take one out mends a block on each level; neither branches on what the
// keys are, where a heap does on every comparison. Vectors are the compiler's own, of 16 bytes, which every
// target has.
#ifndef SINTER_BEST_FIRST_H_
#define SINTER_BEST_FIRST_H_
#include <cstdint>
#include <cstring>

namespace sinter {

typedef float floats4 __attribute__((vector_size(16)));
typedef std::int32_t integers4 __attribute__((vector_size(16)));

template <class V, class T>
inline V load4(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
// Whether some lane is not 0.
inline bool any_lane(integers4 v) {
  std::int64_t halves[2];
  std::memcpy(halves, &v, sizeof v);
  return (halves[0] | halves[1]) != 0;
}

// Integers in the order of the numbers v; -0 is 0. Of a NaN, some integer.
inline integers4 keys_of(floats4 v) {
  v += 0.0f;
  integers4 bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits ^ ((bits >> 31) & INT32_MAX);
}

class BestFirst {
 public:
  static constexpr std::int32_t kNone = INT32_MIN;  // the key of what is never taken

  // The integers of memory that `count` keys take.
  static constexpr std::int64_t elements(std::int64_t count) {
    std::int64_t all = 0, size = count;
    do {
      size = blocks(size);
      all += size * kFan;
    } while (size > 1);
    return all;
  }

  // The keys of x[0], x[stride], ... are key(four of them at once). `memory`: elements(count) integers.
  template <class Key>
  BestFirst(const float* x, std::int64_t count, std::int64_t stride, const Key& key, std::int32_t* memory) {
    level_[0] = memory;
    for (std::int64_t size = blocks(count);; size = blocks(size)) {
      level_[levels_ + 1] = level_[levels_] + size * kFan;
      ++levels_;
      if (size == 1) break;
    }
    fill(x, count, stride, key);
    std::int64_t size = blocks(count);
    for (int level = 1; level < levels_; ++level) {
      std::int32_t* to = level_[level];
      const std::int64_t room = blocks(size) * kFan;
      for (std::int64_t i = 0; i < size; ++i) to[i] = greatest(level_[level - 1] + i * kFan);
      for (std::int64_t i = size; i < room; ++i) to[i] = kNone;
      size = blocks(size);
    }
    best_ = greatest(level_[levels_ - 1]);
  }

  // Which one has the greatest key, of equal ones the first, and is taken out; -1 where none is left.
  std::int64_t take() {
    if (best_ == kNone) return -1;
    std::int64_t at = 0;
    for (int level = levels_; level-- > 0;) at = at * kFan + first_of(level_[level] + at * kFan, best_);
    std::int32_t key = kNone;
    std::int64_t in_level = at;
    for (int level = 0; level < levels_; ++level) {
      level_[level][in_level] = key;
      in_level /= kFan;
      key = greatest(level_[level] + in_level * kFan);
    }
    best_ = key;
    return at;
  }

 private:
  static constexpr std::int64_t kFan = 64;
  static constexpr int kLevels = 11;  // enough for 2^63 keys
  static constexpr std::int64_t blocks(std::int64_t n) { return n < 1 ? 1 : (n + kFan - 1) / kFan; }

  template <class Key>
  void fill(const float* x, std::int64_t count, std::int64_t stride, const Key& key) {
    std::int32_t* to = level_[0];
    std::int64_t i = 0;
    if (stride == 1)
      for (; i + 4 <= count; i += 4) {
        const integers4 keys = key(load4<floats4>(x + i));
        std::memcpy(to + i, &keys, sizeof keys);
      }
    for (; i < count; ++i) to[i] = key(floats4{} + x[i * stride])[0];
    for (; i < blocks(count) * kFan; ++i) to[i] = kNone;
  }

  static integers4 greater(integers4 a, integers4 b) { return a > b ? a : b; }
  static std::int32_t greatest(const std::int32_t* block) {
    integers4 a = load4<integers4>(block), b = load4<integers4>(block + 4);
    for (int i = 8; i < kFan; i += 8) {
      a = greater(a, load4<integers4>(block + i));
      b = greater(b, load4<integers4>(block + i + 4));
    }
    a = greater(a, b);
    const std::int32_t even = a[0] > a[2] ? a[0] : a[2], odd = a[1] > a[3] ? a[1] : a[3];
    return even > odd ? even : odd;
  }
  // Where the first `key` of a block is, which holds one: the greatest distance of one from the block's end.
  static std::int64_t first_of(const std::int32_t* block, std::int32_t key) {
    const integers4 wanted = integers4{} + key, step = integers4{} + 8;
    integers4 a = {}, b = {}, from_end = {kFan, kFan - 1, kFan - 2, kFan - 3}, next = from_end - 4;
    for (int i = 0; i < kFan; i += 8) {
      a = greater(a, from_end & (load4<integers4>(block + i) == wanted));
      b = greater(b, next & (load4<integers4>(block + i + 4) == wanted));
      from_end -= step;
      next -= step;
    }
    a = greater(a, b);
    const std::int32_t even = a[0] > a[2] ? a[0] : a[2], odd = a[1] > a[3] ? a[1] : a[3];
    return kFan - (even > odd ? even : odd);
  }

  std::int32_t* level_[kLevels + 1] = {};
  int levels_ = 0;
  std::int32_t best_ = kNone;
};

}  // namespace sinter

#endif  // SINTER_BEST_FIRST_H_
