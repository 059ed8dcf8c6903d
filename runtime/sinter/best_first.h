// Floats one after another, best first: what NonMaxSuppression and TopK take boxes and elements by.
//
// A tree says which is next: blocks of 16 keys, the greatest of each, the greatest of 16 of those, and so on.
// To build it reads each key once, to take one out reads a block on each level; neither branches on what the
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
    std::int64_t path[kLevels], at = 0;
    std::int32_t rest[kLevels];
    for (int level = levels_; level-- > 0;) {
      at = at * kFan + find(level_[level] + at * kFan, best_, rest[level]);
      path[level] = at;
    }
    // Bottom up, a block's greatest key is the greatest of those beside the one taken or of what is left
    // below.
    std::int32_t left = kNone;
    for (int level = 0; level < levels_; ++level) {
      level_[level][path[level]] = left;
      if (rest[level] > left) left = rest[level];
    }
    best_ = left;
    return at;
  }

 private:
  static constexpr std::int64_t kFan = 16;
  static constexpr int kLevels = 16;  // enough for 2^63 keys
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
  static std::int32_t greatest_lane(integers4 v) {
    const std::int32_t even = v[0] > v[2] ? v[0] : v[2], odd = v[1] > v[3] ? v[1] : v[3];
    return even > odd ? even : odd;
  }
  static std::int32_t greatest(const std::int32_t* block) {
    return greatest_lane(greater(greater(load4<integers4>(block), load4<integers4>(block + 4)),
                                 greater(load4<integers4>(block + 8), load4<integers4>(block + 12))));
  }
  // Where the first `key` of a block is, which holds one, and the greatest of the others.
  static std::int64_t find(const std::int32_t* block, std::int32_t key, std::int32_t& rest) {
    const integers4 a = load4<integers4>(block), b = load4<integers4>(block + 4),
                    c = load4<integers4>(block + 8), d = load4<integers4>(block + 12),
                    wanted = integers4{} + key;
    // Distances from the block's end: the first one's is the greatest.
    const integers4 from_a = {16, 15, 14, 13}, from_b = from_a - 4, from_c = from_a - 8, from_d = from_a - 12;
    const std::int32_t from_end =
        greatest_lane(greater(greater(from_a & (a == wanted), from_b & (b == wanted)),
                              greater(from_c & (c == wanted), from_d & (d == wanted))));
    const integers4 taken = integers4{} + from_end, none = integers4{} + kNone;
    rest = greatest_lane(greater(greater(from_a == taken ? none : a, from_b == taken ? none : b),
                                 greater(from_c == taken ? none : c, from_d == taken ? none : d)));
    return kFan - from_end;
  }

  std::int32_t* level_[kLevels + 1] = {};
  int levels_ = 0;
  std::int32_t best_ = kNone;
};

}  // namespace sinter

#endif  // SINTER_BEST_FIRST_H_
