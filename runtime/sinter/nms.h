// NonMaxSuppression (ONNX 11): of boxes that overlap, only the one with the best score stays.
//
// For each batch and class the boxes above the score threshold are taken from a heap, best score first (of
// equal scores the lower index); one is kept unless it overlaps one kept before. The rows already written are
// the list of those kept, so that the only scratch memory is a heap of one index a box.
#pragma once
#include <cmath>
#include <cstdint>

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

inline bool overlaps(const Edges& a, const Edges& b, float most) {
  const float y0 = a.y0 > b.y0 ? a.y0 : b.y0, y1 = a.y1 < b.y1 ? a.y1 : b.y1;
  const float x0 = a.x0 > b.x0 ? a.x0 : b.x0, x1 = a.x1 < b.x1 ? a.x1 : b.x1;
  if (!(y1 > y0) || !(x1 > x0) || !(a.area > 0.0f) || !(b.area > 0.0f)) return false;
  const float common = (y1 - y0) * (x1 - x0), whole = a.area + b.area - common;
  return whole > 0.0f && common / whole > most;
}

// The order of the heap: whether box a comes before box b.
inline bool before(const float* scores, std::int64_t a, std::int64_t b) {
  return scores[a] > scores[b] || (!(scores[a] < scores[b]) && a < b);
}
inline void sink(const float* scores, std::int64_t* heap, std::int64_t at, std::int64_t size) {
  for (std::int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && before(scores, heap[child + 1], heap[child])) ++child;
    if (!before(scores, heap[child], heap[at])) return;
    const std::int64_t t = heap[at];
    heap[at] = heap[child];
    heap[child] = t;
    at = child;
  }
}

// The boxes that count as an indexed heap; how many there are. A NaN is no score.
inline std::int64_t candidates(const float* scores, std::int64_t boxes, const NmsOptions& o,
                               std::int64_t* heap) {
  std::int64_t size = 0;
  for (std::int64_t i = 0; i < boxes; ++i)
    if (o.has_least_score ? scores[i] > o.least_score : scores[i] == scores[i]) heap[size++] = i;
  for (std::int64_t i = size / 2; i-- > 0;) sink(scores, heap, i, size);
  return size;
}

}  // namespace nms_detail

// boxes [batches][boxes][4] and scores [batches][classes][boxes] give rows {batch, class, box} of `selected`,
// at most batches * classes * min(most, boxes) of them; returns how many, or -1 where there is no room for
// one more. `heap` has `boxes` elements.
inline std::int64_t non_max_suppression(const float* boxes, const float* scores, std::int64_t batches,
                                        std::int64_t classes, std::int64_t count, const NmsOptions& o,
                                        std::int64_t* heap, std::int64_t* selected) {
  std::int64_t rows = 0;
  if (o.most <= 0) return 0;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t c = 0; c < classes; ++c) {
      const float* of_batch = boxes + b * count * 4;
      const float* of_class = scores + (b * classes + c) * count;
      const std::int64_t first = rows;
      std::int64_t size = nms_detail::candidates(of_class, count, o, heap);
      while (size > 0 && rows - first < o.most) {
        const std::int64_t best = heap[0];
        heap[0] = heap[--size];
        nms_detail::sink(of_class, heap, 0, size);
        const nms_detail::Edges box = nms_detail::edges(of_batch + best * 4, o.center);
        bool keep = true;
        for (std::int64_t k = first; k < rows && keep; ++k)
          keep = !nms_detail::overlaps(box, nms_detail::edges(of_batch + selected[k * 3 + 2] * 4, o.center),
                                       o.overlap);
        if (!keep) continue;
        if (rows >= o.room) return -1;
        selected[rows * 3] = b;
        selected[rows * 3 + 1] = c;
        selected[rows * 3 + 2] = best;
        ++rows;
      }
    }
  return rows;
}

}  // namespace sinter
