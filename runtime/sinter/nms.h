// NonMaxSuppression (ONNX 11): of boxes that overlap, only the one with the best score stays.
//
// For each batch and class the boxes above the score threshold are taken best score first (of equal scores
// the lower index); one is kept unless it overlaps one kept before.
//
// Which box is next, a tree of the greatest scores says (nms_detail::BestFirst): blocks of 64 scores, the
// greatest of each, the greatest of 64 of those, and so on. To build it reads each score once, to take one
// out mends a block on each level; neither branches on what the scores are, where a heap does on every
// comparison. The edges of boxes kept lie together, sixteen at a time, so that a box is compared with several
// at once. Vectors are the compiler's own, of 16 bytes, which every target has.
//
// Classes know nothing of one another: several threads may take some each (non_max_suppression_apart).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace sinter {

struct NmsOptions {
  bool center = false;           // boxes are [x, y, width, height], else two opposite corners [y, x, y, x]
  std::int64_t most = 0;         // boxes kept for each batch and class
  float overlap = 0.0f;          // suppressed: intersection over union above this
  bool has_least_score = false;  // kept: scores above least_score
  float least_score = 0.0f;
  std::int64_t room = INT64_MAX;  // rows that there is place for
};

namespace nms_detail {

typedef float floats __attribute__((vector_size(16)));
typedef std::int32_t integers __attribute__((vector_size(16)));

template <class V, class T>
inline V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

constexpr std::int64_t kFan = 64;  // scores, or greatest ones, to a block
constexpr std::int64_t blocks(std::int64_t n) { return n < 1 ? 1 : (n + kFan - 1) / kFan; }

// Candidates, best first. Scores become integers of the same order (-0 is 0); kNone is below all of them and
// stands for what is no candidate: a NaN, a score that is not above the least one, a box already taken.
class BestFirst {
 public:
  // `keys`: elements(count) integers of memory.
  BestFirst(const float* scores, std::int64_t count, const NmsOptions& o, std::int32_t* keys) {
    level_[0] = keys;
    for (std::int64_t size = blocks(count);; size = blocks(size)) {
      level_[levels_ + 1] = level_[levels_] + size * kFan;
      ++levels_;
      if (size == 1) break;
    }
    fill(scores, count, o);
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

  static constexpr std::int64_t elements(std::int64_t count) {
    std::int64_t all = 0, size = count;
    do {
      size = blocks(size);
      all += size * kFan;
    } while (size > 1);
    return all;
  }

  // The next candidate, which is one no more; -1 where there is none.
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
  static constexpr std::int32_t kNone = INT32_MIN;
  static constexpr int kLevels = 11;  // enough for 2^63 scores

  static integers keys_of(floats score, floats least, integers any_number) {
    score += 0.0f;
    integers bits;
    std::memcpy(&bits, &score, sizeof bits);
    const integers key = bits ^ ((bits >> 31) & INT32_MAX);
    const integers counts = (score > least) | (any_number & (score == score));
    return (counts & key) | (~counts & (integers{} + kNone));
  }
  void fill(const float* scores, std::int64_t count, const NmsOptions& o) {
    const floats least = floats{} + (o.has_least_score ? o.least_score : INFINITY);
    const integers any_number = integers{} - (o.has_least_score ? 0 : 1);
    std::int32_t* to = level_[0];
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const integers keys = keys_of(load<floats>(scores + i), least, any_number);
      std::memcpy(to + i, &keys, sizeof keys);
    }
    for (; i < count; ++i) to[i] = keys_of(floats{} + scores[i], least, any_number)[0];
    for (; i < blocks(count) * kFan; ++i) to[i] = kNone;
  }

  static integers greater(integers a, integers b) { return a > b ? a : b; }
  static std::int32_t greatest(const std::int32_t* block) {
    integers a = load<integers>(block), b = load<integers>(block + 4);
    for (int i = 8; i < kFan; i += 8) {
      a = greater(a, load<integers>(block + i));
      b = greater(b, load<integers>(block + i + 4));
    }
    a = greater(a, b);
    const std::int32_t even = a[0] > a[2] ? a[0] : a[2], odd = a[1] > a[3] ? a[1] : a[3];
    return even > odd ? even : odd;
  }
  // Where the first `key` of a block is, which holds one: the greatest distance of one from the block's end.
  static std::int64_t first_of(const std::int32_t* block, std::int32_t key) {
    const integers wanted = integers{} + key, step = integers{} + 8;
    integers a = {}, b = {}, from_end = {kFan, kFan - 1, kFan - 2, kFan - 3}, next = from_end - 4;
    for (int i = 0; i < kFan; i += 8) {
      a = greater(a, from_end & (load<integers>(block + i) == wanted));
      b = greater(b, next & (load<integers>(block + i + 4) == wanted));
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

struct Edges {
  float y0, x0, y1, x1, area;
};

inline Edges edges(const float* box, bool center) {
  Edges e;
  if (center) {
    e.x0 = box[0] - box[2] / 2.0f;
    e.x1 = box[0] + box[2] / 2.0f;
    e.y0 = box[1] - box[3] / 2.0f;
    e.y1 = box[1] + box[3] / 2.0f;
  } else {
    e.y0 = box[0] < box[2] ? box[0] : box[2];
    e.y1 = box[0] < box[2] ? box[2] : box[0];
    e.x0 = box[1] < box[3] ? box[1] : box[3];
    e.x1 = box[1] < box[3] ? box[3] : box[1];
  }
  e.area = (e.y1 - e.y0) * (e.x1 - e.x0);
  return e;
}

// The edges of boxes kept, in groups of sixteen: all their y0, x0, y1, x1 and areas. A box of no area, such
// as those that fill up a group, overlaps nothing.
class Kept {
 public:
  // `memory`: elements(most) floats.
  explicit Kept(float* memory) : groups_(memory) {}

  static constexpr std::int64_t elements(std::int64_t most) {
    return (most + kGroup - 1) / kGroup * kFields * kGroup;
  }

  void add(const Edges& e) {
    float* group = groups_ + size_ / kGroup * kFields * kGroup;
    const std::int64_t at = size_ % kGroup;
    if (at == 0) std::memset(group, 0, kFields * kGroup * sizeof(float));
    const float fields[kFields] = {e.y0, e.x0, e.y1, e.x1, e.area};
    for (int f = 0; f < kFields; ++f) group[f * kGroup + at] = fields[f];
    ++size_;
  }

  // Whether the intersection of a box with one of these is more than `most` of their union.
  bool overlap(const Edges& e, float most) const {
    if (!(e.area > 0.0f)) return false;
    const floats zero = {};
    const Spread box = {zero + e.y0, zero + e.x0, zero + e.y1, zero + e.x1, zero + e.area, zero + most};
    for (std::int64_t first = 0; first < size_; first += kGroup) {
      const float* group = groups_ + first * kFields;
      integers any = {};
      for (int i = 0; i < kGroup; i += 4) any |= overlap(box, group + i);
      std::int64_t halves[2];
      std::memcpy(halves, &any, sizeof any);
      if ((halves[0] | halves[1]) != 0) return true;
    }
    return false;
  }

 private:
  static constexpr int kGroup = 16, kFields = 5;

  // A box, and what it must not exceed, in every lane.
  struct Spread {
    floats y0, x0, y1, x1, area, most;
  };
  static integers overlap(const Spread& a, const float* group) {
    const floats low_y = load<floats>(group), low_x = load<floats>(group + kGroup),
                 high_y = load<floats>(group + 2 * kGroup), high_x = load<floats>(group + 3 * kGroup),
                 area = load<floats>(group + 4 * kGroup), none = {};
    const floats y0 = a.y0 > low_y ? a.y0 : low_y, y1 = a.y1 < high_y ? a.y1 : high_y;
    const floats x0 = a.x0 > low_x ? a.x0 : low_x, x1 = a.x1 < high_x ? a.x1 : high_x;
    const floats common = (y1 - y0) * (x1 - x0), whole = a.area + area - common;
    return (y1 > y0) & (x1 > x0) & (area > none) & (whole > none) & (common / whole > a.most);
  }

  float* groups_;
  std::int64_t size_ = 0;
};

}  // namespace nms_detail

// Elements of the memory that the functions below work in, for `count` boxes of which up to `most` are kept.
constexpr std::int64_t nms_keys(std::int64_t count) { return nms_detail::BestFirst::elements(count); }
constexpr std::int64_t nms_edges(std::int64_t count, std::int64_t most) {
  return nms_detail::Kept::elements(most < 1 ? 0 : most < count ? most : count);
}
// A thread's own: nms_keys(count) and nms_edges(count, most) elements.
struct NmsMemory {
  std::int32_t* keys;
  float* edges;
};

// One class: boxes [count][4] and scores [count] give rows {batch, class, box}; returns how many, or -1 where
// they are more than o.room.
inline std::int64_t nms_class(const float* boxes, const float* scores, std::int64_t count,
                              const NmsOptions& o, std::int64_t batch, std::int64_t number, NmsMemory memory,
                              std::int64_t* rows) {
  nms_detail::BestFirst best_first(scores, count, o, memory.keys);
  nms_detail::Kept kept(memory.edges);
  std::int64_t found = 0;
  while (found < o.most) {
    const std::int64_t best = best_first.take();
    if (best < 0) break;
    const nms_detail::Edges box = nms_detail::edges(boxes + best * 4, o.center);
    if (kept.overlap(box, o.overlap)) continue;
    if (found >= o.room) return -1;
    kept.add(box);
    rows[found * 3] = batch;
    rows[found * 3 + 1] = number;
    rows[found * 3 + 2] = best;
    ++found;
  }
  return found;
}

// boxes [batches][count][4] and scores [batches][classes][count] give rows {batch, class, box} of `selected`,
// at most batches * classes * min(most, count) of them; returns how many, or -1 where they are more than
// o.room.
inline std::int64_t non_max_suppression(const float* boxes, const float* scores, std::int64_t batches,
                                        std::int64_t classes, std::int64_t count, const NmsOptions& o,
                                        NmsMemory memory, std::int64_t* selected) {
  std::int64_t rows = 0;
  NmsOptions left = o;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t c = 0; c < classes; ++c) {
      left.room = o.room - rows;
      const std::int64_t found = nms_class(boxes + b * count * 4, scores + (b * classes + c) * count, count,
                                           left, b, c, memory, selected + rows * 3);
      if (found < 0) return -1;
      rows += found;
    }
  return rows;
}

// The same in two steps, the first by several threads, where `selected` has room for all that could be kept:
// the classes [first, end) of the batches * classes, each in rows of its own, ...
inline void non_max_suppression_apart(const float* boxes, const float* scores, std::int64_t classes,
                                      std::int64_t count, const NmsOptions& o, std::int64_t first,
                                      std::int64_t end, NmsMemory memory, std::int64_t* selected) {
  const std::int64_t each = o.most < count ? o.most : count;
  for (std::int64_t i = first; i < end && each > 0; ++i) {
    std::int64_t* rows = selected + i * each * 3;
    const std::int64_t found = nms_class(boxes + i / classes * count * 4, scores + i * count, count, o,
                                         i / classes, i % classes, memory, rows);
    if (found < each) rows[found * 3] = -1;
  }
}
// ... then closed up; returns how many they are.
inline std::int64_t nms_close_up(std::int64_t batches_and_classes, std::int64_t count, const NmsOptions& o,
                                 std::int64_t* selected) {
  const std::int64_t each = o.most < count ? o.most : count;
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < batches_and_classes && each > 0; ++i) {
    const std::int64_t* from = selected + i * each * 3;
    for (std::int64_t k = 0; k < each && from[k * 3] >= 0; ++k, ++rows)
      for (int j = 0; j < 3; ++j) selected[rows * 3 + j] = from[k * 3 + j];
  }
  return rows;
}

}  // namespace sinter
