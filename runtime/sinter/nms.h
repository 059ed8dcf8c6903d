// NonMaxSuppression (ONNX 11): of boxes that overlap, only the one with the best score stays.
//
// For each batch and class the boxes above the score threshold are taken best score first (of equal scores
// the lower index); one is kept unless it overlaps one kept before. The edges of those kept lie together, so
// that a box is compared with several at once. Classes know nothing of one another: several threads may take
// some each (non_max_suppression_apart).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "sinter/best_first.h"

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

// Bytes of the widest vectors there are. All that computes with them has them as a parameter: a program may
// hold models for several processors.
#if defined(__AVX512F__)
constexpr int kWidest = 64;
#elif defined(__AVX2__)
constexpr int kWidest = 32;
#else
constexpr int kWidest = 16;
#endif

// The edges of boxes kept, in blocks of four vectors: all their y0, x0, y1, x1 and areas. A box of no area,
// such as those that fill up a block, overlaps nothing.
template <int kBytes>
class Kept {
 public:
  // `memory`: elements(most) floats, the same for every width: it is planned on another machine.
  explicit Kept(float* memory) : blocks_(memory) {}

  static constexpr std::int64_t elements(std::int64_t most) {
    constexpr std::int64_t widest = 64;
    static_assert(widest % kBlock == 0, "blocks end where the widest do");
    return (most + widest - 1) / widest * kFields * widest;
  }

  void add(const Edges& e) {
    float* block = blocks_ + size_ / kBlock * kFields * kBlock;
    const std::int64_t at = size_ % kBlock;
    if (at == 0) std::memset(block, 0, kFields * kBlock * sizeof(float));
    const float fields[kFields] = {e.y0, e.x0, e.y1, e.x1, e.area};
    for (int f = 0; f < kFields; ++f) block[f * kBlock + at] = fields[f];
    ++size_;
  }

  // Whether the intersection of a box with one of these is more than `most` of their union. The quotient
  // counts, as ONNX has it; where a product a little below says no to a whole block, so would the quotients.
  bool overlap(const Edges& e, float most) const {
    if (!(e.area > 0.0f)) return false;
    const floats zero = {};
    const Spread box = {zero + e.y0, zero + e.x0, zero + e.y1, zero + e.x1, zero + e.area};
    const floats below = zero + (most > 0.0f ? 0.9999f * most : -INFINITY);
    for (std::int64_t first = 0; first < size_; first += kBlock) {
      const float* block = blocks_ + first * kFields;
      const std::int64_t left = size_ - first, end = left < kBlock ? left : kBlock;
      integers near = {};
      for (std::int64_t i = 0; i < end; i += kLanes) {
        const Shared s = shared(box, block + i);
        near |= s.meet & (s.common >= below * s.whole);
      }
      if (!any(near)) continue;
      integers found = {};
      for (std::int64_t i = 0; i < end; i += kLanes) {
        const Shared s = shared(box, block + i);
        found |= s.meet & (load(block + i + 4 * kBlock) > zero) & (s.whole > zero) &
                 (s.common / s.whole > zero + most);
      }
      if (any(found)) return true;
    }
    return false;
  }

 private:
  typedef float floats __attribute__((vector_size(kBytes)));
  typedef std::int32_t integers __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / 4, kBlock = 4 * kLanes, kFields = 5;

  static floats load(const float* p) {
    floats v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static bool any(const integers& v) {
    integers4 all = {};
    for (int i = 0; i < kBytes; i += 16) all |= load4<integers4>(reinterpret_cast<const char*>(&v) + i);
    std::int64_t words[2];
    std::memcpy(words, &all, sizeof words);
    return (words[0] | words[1]) != 0;
  }

  // A box in every lane.
  struct Spread {
    floats y0, x0, y1, x1, area;
  };
  // What it shares with some of a block: whether they meet, and the areas of intersection and union.
  struct Shared {
    integers meet;
    floats common, whole;
  };
  static Shared shared(const Spread& a, const float* block) {
    const floats low_y = load(block), low_x = load(block + kBlock), high_y = load(block + 2 * kBlock),
                 high_x = load(block + 3 * kBlock);
    const floats y0 = a.y0 > low_y ? a.y0 : low_y, y1 = a.y1 < high_y ? a.y1 : high_y;
    const floats x0 = a.x0 > low_x ? a.x0 : low_x, x1 = a.x1 < high_x ? a.x1 : high_x;
    Shared s;
    s.meet = (y1 > y0) & (x1 > x0);
    s.common = (y1 - y0) * (x1 - x0);
    s.whole = a.area + load(block + 4 * kBlock) - s.common;
    return s;
  }

  float* blocks_;
  std::int64_t size_ = 0;
};

}  // namespace nms_detail

// Elements of the memory that the functions below work in, for `count` boxes of which up to `most` are kept.
constexpr std::int64_t nms_keys(std::int64_t count) { return BestFirst::elements(count); }
constexpr std::int64_t nms_edges(std::int64_t count, std::int64_t most) {
  return nms_detail::Kept<nms_detail::kWidest>::elements(most < 1 ? 0 : most < count ? most : count);
}
// A thread's own: nms_keys(count) and nms_edges(count, most) elements.
struct NmsMemory {
  std::int32_t* keys;
  float* edges;
};

// One class: boxes [count][4] and scores [count] give rows {batch, class, box}; returns how many, or -1 where
// they are more than o.room.
template <int kBytes>
inline std::int64_t nms_class(const float* boxes, const float* scores, std::int64_t count,
                              const NmsOptions& o, std::int64_t batch, std::int64_t number, NmsMemory memory,
                              std::int64_t* rows) {
  // A score counts where it is above the least one; where there is no such, unless it is a NaN.
  const floats4 least = floats4{} + (o.has_least_score ? o.least_score : INFINITY);
  const integers4 any_number = integers4{} - (o.has_least_score ? 0 : 1);
  const auto key = [=](floats4 score) {
    const integers4 counts = (score > least) | (any_number & (score == score));
    return (counts & keys_of(score)) | (~counts & (integers4{} + BestFirst::kNone));
  };
  BestFirst best_first(scores, count, 1, key, memory.keys);
  nms_detail::Kept<kBytes> kept(memory.edges);
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
template <int kBytes = nms_detail::kWidest>
inline std::int64_t non_max_suppression(const float* boxes, const float* scores, std::int64_t batches,
                                        std::int64_t classes, std::int64_t count, const NmsOptions& o,
                                        NmsMemory memory, std::int64_t* selected) {
  std::int64_t rows = 0;
  NmsOptions left = o;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t c = 0; c < classes; ++c) {
      left.room = o.room - rows;
      const std::int64_t found = nms_class<kBytes>(boxes + b * count * 4, scores + (b * classes + c) * count,
                                                   count, left, b, c, memory, selected + rows * 3);
      if (found < 0) return -1;
      rows += found;
    }
  return rows;
}

// The same in two steps, the first by several threads, where `selected` has room for all that could be kept:
// the classes [first, end) of the batches * classes, each in rows of its own, ...
template <int kBytes = nms_detail::kWidest>
inline void non_max_suppression_apart(const float* boxes, const float* scores, std::int64_t classes,
                                      std::int64_t count, const NmsOptions& o, std::int64_t first,
                                      std::int64_t end, NmsMemory memory, std::int64_t* selected) {
  const std::int64_t each = o.most < count ? o.most : count;
  for (std::int64_t i = first; i < end && each > 0; ++i) {
    std::int64_t* rows = selected + i * each * 3;
    const std::int64_t found = nms_class<kBytes>(boxes + i / classes * count * 4, scores + i * count, count,
                                                 o, i / classes, i % classes, memory, rows);
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
