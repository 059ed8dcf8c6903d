// Detections: the boxes that the head of a detector means, the best of those that overlap, best score first.
//
// A head is a table of anchors with the coordinates of a box and scores of classes, in rows or columns, in
// one tensor or two. Detectors whose classes exclude each other count each anchor once, with its best class;
// the others (SSD) count it for each class. Boxes of different classes don't suppress each other.
#ifndef SINTER_DETECTIONS_H_
#define SINTER_DETECTIONS_H_
#include <cstdint>

namespace sinter {

// Numbers of all anchors: number `row` of anchor `i` is data[row * by_row + i * by_anchor].
struct AnchorTable {
  const float* data;
  std::int64_t by_row, by_anchor;
  float at(std::int64_t row, std::int64_t i) const { return data[row * by_row + i * by_anchor]; }
};

struct DetectionHead {
  AnchorTable boxes, scores;
  AnchorTable objectness;  // what scores are multiplied by; data is null where there is none
  AnchorTable extra;       // numbers that come along with a box
  std::int64_t anchors, classes, extras;
  std::int64_t first_class;  // those before are no objects
  bool centred;              // boxes are centre and size, else left, top, right, bottom
  bool best_class;           // an anchor counts once
  float least_score, most_overlap;
  // A box in pixels of the caller's picture: x * scale_x + shift_x, inside of [0, width]; the same down.
  float scale_x, shift_x, width, scale_y, shift_y, height;
};

// Elements of each piece of memory: best scores and classes by anchor, anchors in order; and found, for
// `most`.
constexpr std::int64_t detections_found(std::int64_t most) { return 2 * most; }
struct DetectionMemory {
  float* best;           // anchors
  std::int32_t* kind;    // anchors
  std::int32_t* order;   // anchors
  float* score;          // detections_found(most), as the next two
  std::int32_t* number;  // the anchor's
  std::int32_t* group;   // the class
  std::int32_t* rank;    // detections_found(most)
};

namespace detections {

// Sorts in place, by a heap: the first is the one that `before` puts before all others. No two are equal.
template <class Before>
inline void sort(std::int32_t* v, std::int64_t count, Before before) {
  const auto sink = [&](std::int64_t at, std::int64_t end) {
    const std::int32_t moved = v[at];
    for (std::int64_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && before(v[child], v[child + 1])) ++child;
      if (!before(moved, v[child])) break;
      v[at] = v[child];
      at = child;
    }
    v[at] = moved;
  };
  for (std::int64_t i = count / 2; i-- > 0;) sink(i, count);
  for (std::int64_t end = count; end-- > 1;) {
    const std::int32_t last = v[0];
    v[0] = v[end], v[end] = last;
    sink(0, end);
  }
}

template <class T>
inline void exchange(T& a, T& b) {
  const T c = a;
  a = b, b = c;
}

struct Box {
  float left, top, right, bottom;
};
inline Box box_of(const DetectionHead& h, std::int64_t i) {
  const float a = h.boxes.at(0, i), b = h.boxes.at(1, i), c = h.boxes.at(2, i), d = h.boxes.at(3, i);
  if (!h.centred) return {a, b, c, d};
  return {a - c / 2, b - d / 2, a + c / 2, b + d / 2};
}

inline bool overlap(const Box& a, const Box& b, float most) {
  const float width = (a.right < b.right ? a.right : b.right) - (a.left > b.left ? a.left : b.left),
              height = (a.bottom < b.bottom ? a.bottom : b.bottom) - (a.top > b.top ? a.top : b.top);
  if (!(width > 0 && height > 0)) return false;
  const float common = width * height, whole = (a.right - a.left) * (a.bottom - a.top) +
                                               (b.right - b.left) * (b.bottom - b.top) - common;
  return common / whole > most;
}

// The anchors' scores for one class, or their best ones.
inline void score_anchors(const DetectionHead& h, std::int64_t first, std::int64_t end,
                          const DetectionMemory& m) {
  for (std::int64_t i = 0; i < h.anchors; ++i) {
    m.best[i] = h.scores.at(first, i);
    m.kind[i] = static_cast<std::int32_t>(first);
  }
  for (std::int64_t c = first + 1; c < end; ++c)
    for (std::int64_t i = 0; i < h.anchors; ++i)
      if (const float s = h.scores.at(c, i); s > m.best[i]) {
        m.best[i] = s;
        m.kind[i] = static_cast<std::int32_t>(c);
      }
  if (h.objectness.data)
    for (std::int64_t i = 0; i < h.anchors; ++i) m.best[i] *= h.objectness.at(0, i);
}

// Puts what survives among the scored anchors behind the `found` ones that are there; returns how many there
// are then. Only those of its own class, and of those before only the ones from `own` on, suppress a box.
inline std::int64_t suppress(const DetectionHead& h, const DetectionMemory& m, std::int64_t found,
                             std::int64_t most) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < h.anchors; ++i)
    if (m.best[i] > h.least_score) m.order[count++] = static_cast<std::int32_t>(i);
  sort(m.order, count, [&](std::int32_t a, std::int32_t b) {
    return m.best[a] > m.best[b] || (m.best[a] == m.best[b] && a < b);
  });
  const std::int64_t own = found, end = found + most;
  for (std::int64_t k = 0; k < count && found < end; ++k) {
    const std::int32_t i = m.order[k];
    const Box box = box_of(h, i);
    bool free = true;
    for (std::int64_t f = own; free && f < found; ++f)
      free = m.group[f] != m.kind[i] || !overlap(box, box_of(h, m.number[f]), h.most_overlap);
    if (!free) continue;
    m.score[found] = m.best[i], m.number[found] = i, m.group[found] = m.kind[i];
    ++found;
  }
  return found;
}

// The `most` best of the `found`, in order; returns how many.
inline std::int64_t keep_best(const DetectionMemory& m, std::int64_t found, std::int64_t most) {
  for (std::int64_t k = 0; k < found; ++k) m.rank[k] = static_cast<std::int32_t>(k);
  sort(m.rank, found, [&](std::int32_t a, std::int32_t b) {
    return m.score[a] > m.score[b] || (m.score[a] == m.score[b] && a < b);
  });
  // Each takes its place by an exchange; who stood there is found where the ranks before have put it.
  for (std::int64_t k = 0; k < found; ++k) {
    std::int64_t from = m.rank[k];
    while (from < k) from = m.rank[from];
    exchange(m.score[k], m.score[from]);
    exchange(m.number[k], m.number[from]);
    exchange(m.group[k], m.group[from]);
  }
  return found < most ? found : most;
}

inline float inside(float v, float most) { return v < 0 ? 0 : v > most ? most : v; }

}  // namespace detections

// Writes at most `most` boxes [n][4] (left, top, right, bottom), scores [n], classes [n] and extra
// [n][extras]; returns n.
inline std::int64_t find_detections(const DetectionHead& h, std::int64_t most, const DetectionMemory& m,
                                    float* boxes, float* scores, std::int64_t* classes, float* extra) {
  std::int64_t found = 0;
  if (h.best_class) {
    detections::score_anchors(h, h.first_class, h.classes, m);
    found = detections::suppress(h, m, 0, most);
  } else {
    for (std::int64_t c = h.first_class; c < h.classes; ++c) {
      detections::score_anchors(h, c, c + 1, m);
      found = detections::keep_best(m, detections::suppress(h, m, found, most), most);
    }
  }
  for (std::int64_t k = 0; k < found; ++k) {
    const detections::Box b = detections::box_of(h, m.number[k]);
    boxes[4 * k] = detections::inside(b.left * h.scale_x + h.shift_x, h.width);
    boxes[4 * k + 1] = detections::inside(b.top * h.scale_y + h.shift_y, h.height);
    boxes[4 * k + 2] = detections::inside(b.right * h.scale_x + h.shift_x, h.width);
    boxes[4 * k + 3] = detections::inside(b.bottom * h.scale_y + h.shift_y, h.height);
    if (scores) scores[k] = m.score[k];
    if (classes) classes[k] = m.group[k];
    for (std::int64_t e = 0; extra && e < h.extras; ++e) extra[k * h.extras + e] = h.extra.at(e, m.number[k]);
  }
  return found;
}

}  // namespace sinter

#endif  // SINTER_DETECTIONS_H_
