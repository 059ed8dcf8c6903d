// Operators that --post makes answers with: mask_of_logits, the class of each pixel of the caller's picture,
// and detections, the boxes of a detector's head. Which boxes suppress which is
// runtime/sinter/detections.h's, for eval and generated code.
#include "ops/vision/answer.h"

#include <algorithm>
#include <cmath>

#include "ops/movement/movement.h"
#include "ops/op.h"
#include "sinter/detections.h"

namespace sinter {

MaskRule mask_rule(const Attributes& a) {
  MaskRule r;
  const std::vector<int64_t> place = a.integers("place");
  if (place.size() != 8) refuse("its place has {} numbers", place.size());
  r.place = {place[0], place[1], {place[2], place[3], place[4], place[5]}, place[6], place[7]};
  r.has_threshold = a.has("threshold");
  r.threshold = a.real("threshold", 0);
  return r;
}

void set_mask_rule(Attributes& a, const MaskRule& r) {
  const AnswerPlace& p = r.place;
  a.set("place", std::vector<int64_t>{p.to_height, p.to_width, p.geometry.height, p.geometry.width,
                                      p.geometry.top, p.geometry.left, p.picture_height, p.picture_width});
  if (r.has_threshold) a.set("threshold", r.threshold);
}

std::vector<FrameTap> mask_taps(int64_t to, int64_t resized, int64_t first, int64_t picture, int64_t from) {
  std::vector<FrameTap> taps;
  for (int64_t i = 0; i < to; ++i) {
    const double in_picture =
        (static_cast<double>(i) + 0.5) * static_cast<double>(resized) / static_cast<double>(to) -
        static_cast<double>(first);
    const double at = std::clamp(in_picture * static_cast<double>(from) / static_cast<double>(picture) - 0.5,
                                 0.0, static_cast<double>(from - 1));
    const auto tap = static_cast<int64_t>(at);
    taps.push_back({tap, at - static_cast<double>(tap)});
  }
  return taps;
}

DetectionRule detection_rule(const Attributes& a) {
  DetectionRule r;
  r.form = static_cast<HeadForm>(a.integer("form", 0));
  r.rows_first = a.integer("rows_first", 1) != 0;
  r.classes = a.integer("classes", 0), r.extra = a.integer("extra", 0);
  r.first_class = a.integer("first_class", 0);
  r.centred = a.integer("centred", 1) != 0;
  r.score = a.real("score", 0.25f), r.overlap = a.real("overlap", 0.45f);
  r.most = a.integer("most", 100);
  r.map = a.reals("map");
  return r;
}

void set_detection_rule(Attributes& a, const DetectionRule& r) {
  a.set("form", static_cast<int64_t>(r.form));
  a.set("rows_first", static_cast<int64_t>(r.rows_first));
  a.set("classes", r.classes), a.set("extra", r.extra), a.set("first_class", r.first_class);
  a.set("centred", static_cast<int64_t>(r.centred));
  a.set("score", r.score), a.set("overlap", r.overlap), a.set("most", r.most), a.set("map", r.map);
}

namespace {

constexpr int64_t kLongest = 1 << 16;

// Logits [1, h, w, classes] give bytes [height, width].
void infer_mask(Inference& x) {
  const MaskRule r = mask_rule(x.attributes());
  const AnswerPlace& p = r.place;
  x.require(x.dtype(0) == DType::kF32, "only for float32");
  x.require(x.rank(0) == 4 && is_static(x.shape(0)) && x.shape(0)[0].is(1),
            fmt::format("logits of shape {}", text(x.shape(0))));
  for (const int64_t n : {p.to_height, p.to_width, p.geometry.height, p.geometry.width, p.picture_height,
                          p.picture_width, x.shape(0)[1].value(), x.shape(0)[2].value()})
    x.require(n >= 1 && n <= kLongest, fmt::format("an extent of {}", n));
  const int64_t classes = x.shape(0)[3].value();
  x.require(r.has_threshold ? classes == 1 : classes > 1 && classes <= 256,
            fmt::format("{} classes in a byte", classes));
  x.set(0, DType::kU8, {p.to_height, p.to_width});
}

void eval_mask(Evaluation& e) {
  const MaskRule r = mask_rule(e.attributes());
  const Tensor& x = e.in[0];
  const AnswerPlace& p = r.place;
  const int64_t h = x.dim(1), w = x.dim(2), classes = x.dim(3);
  const auto rows = mask_taps(p.to_height, p.geometry.height, p.geometry.top, p.picture_height, h),
             columns = mask_taps(p.to_width, p.geometry.width, p.geometry.left, p.picture_width, w);
  int64_t at = 0;
  for (const FrameTap& row : rows)
    for (const FrameTap& column : columns) {
      const int64_t y[] = {row.first, std::min(row.first + 1, h - 1)},
                    k[] = {column.first, std::min(column.first + 1, w - 1)};
      const auto logit = [&](int64_t c) {
        const auto in_row = [&](int64_t i) {
          return x.real((i * w + k[0]) * classes + c) * (1 - column.weight) +
                 x.real((i * w + k[1]) * classes + c) * column.weight;
        };
        return in_row(y[0]) * (1 - row.weight) + in_row(y[1]) * row.weight;
      };
      int64_t best = 0;
      if (r.has_threshold) best = logit(0) > static_cast<double>(r.threshold);
      for (int64_t c = 1; c < classes; ++c)
        if (logit(c) > logit(best)) best = c;
      e.out[0].set_integer(at++, best);
    }
}

// A head [1, rows, anchors] or [1, anchors, rows]; of SSD, boxes [1, anchors, 4] and scores [1, anchors,
// classes]. Boxes [n, 4], scores [n], classes [n] and extra [n, extra].
void infer_detections(Inference& x) {
  const DetectionRule r = detection_rule(x.attributes());
  const bool ssd = r.form == HeadForm::kSsd;
  x.require(x.in.size() == (ssd ? 2u : 1u), "its number of inputs");
  for (size_t i = 0; i < x.in.size(); ++i) {
    x.require(x.dtype(i) == DType::kF32, "only for float32");
    x.require(x.rank(i) == 3 && is_static(x.shape(i)) && x.shape(i)[0].is(1),
              fmt::format("a head of shape {}", text(x.shape(i))));
  }
  const Shape& s = x.shape(0);
  const int64_t rows = s[r.rows_first ? 1 : 2].value(), anchors = s[r.rows_first ? 2 : 1].value();
  x.require(anchors >= 1 && anchors <= 1 << 24, fmt::format("{} anchors", anchors));
  x.require(r.classes > r.first_class && r.first_class >= 0 && r.extra >= 0, "its classes");
  if (ssd) {
    x.require(!r.rows_first && rows == 4, fmt::format("boxes of {} numbers", rows));
    x.require(x.shape(1)[1].is(anchors) && x.shape(1)[2].is(r.classes), "its scores' shape");
  } else {
    x.require(rows == r.first_score() + r.classes + r.extra, fmt::format("{} numbers an anchor", rows));
  }
  x.require(r.most >= 1 && r.most <= 1 << 16, fmt::format("at most {} boxes", r.most));
  x.require(r.map.size() == 6, "its map");
  const Dim count = data_count(x, 0, std::min(r.most, anchors * (ssd ? r.classes : 1)));
  x.set(0, DType::kF32, {count, 4});
  if (x.out.size() > 1) x.set(1, DType::kF32, {count});
  if (x.out.size() > 2) x.set(2, DType::kI64, {count});
  if (x.out.size() > 3) x.set(3, DType::kF32, {count, r.extra});
}

void eval_detections(Evaluation& e) {
  const DetectionRule r = detection_rule(e.attributes());
  const Tensor& head = e.in[0];
  const int64_t rows = head.dim(r.rows_first ? 1 : 2), anchors = head.dim(r.rows_first ? 2 : 1);
  const auto table = [&](int64_t row) {
    return r.rows_first ? AnchorTable{head.as<float>() + row * anchors, anchors, 1}
                        : AnchorTable{head.as<float>() + row, 1, rows};
  };
  DetectionHead h{};
  h.boxes = table(0);
  h.scores =
      r.form == HeadForm::kSsd ? AnchorTable{e.in[1].as<float>(), 1, r.classes} : table(r.first_score());
  if (r.form == HeadForm::kYolov5) h.objectness = table(4);
  if (r.extra > 0) h.extra = table(r.first_score() + r.classes);
  h.anchors = anchors, h.classes = r.classes, h.extras = r.extra, h.first_class = r.first_class;
  h.centred = r.centred, h.best_class = r.form != HeadForm::kSsd;
  h.least_score = r.score, h.most_overlap = r.overlap;
  h.scale_x = r.map[0], h.shift_x = r.map[1], h.width = r.map[2];
  h.scale_y = r.map[3], h.shift_y = r.map[4], h.height = r.map[5];
  const int64_t most = std::min(r.most, anchors * (h.best_class ? 1 : r.classes));
  const auto n = static_cast<size_t>(anchors), found = static_cast<size_t>(detections_found(most));
  std::vector<float> best(n), score(found);
  std::vector<int32_t> kind(n), order(n), number(found), group(found), rank(found);
  Tensor boxes(DType::kF32, {most, 4}), scores(DType::kF32, {most}), classes(DType::kI64, {most}),
      extra(DType::kF32, {most, std::max<int64_t>(r.extra, 1)});
  const int64_t count = find_detections(
      h, most,
      {best.data(), kind.data(), order.data(), score.data(), number.data(), group.data(), rank.data()},
      boxes.as<float>(), scores.as<float>(), classes.as<int64_t>(),
      r.extra > 0 ? extra.as<float>() : nullptr);
  const auto first = [&](const Tensor& t, std::vector<int64_t> shape) {
    Tensor part(t.dtype(), std::move(shape));
    std::copy_n(t.data(), part.bytes(), part.mutable_data());
    return part;
  };
  e.out[0] = first(boxes, {count, 4});
  if (e.out.size() > 1) e.out[1] = first(scores, {count});
  if (e.out.size() > 2) e.out[2] = first(classes, {count});
  if (e.out.size() > 3) e.out[3] = first(extra, {count, r.extra});
}

}  // namespace

const std::vector<Op>& ops_answer() {
  static const std::vector<Op> table = {
      {.name = "mask_of_logits",
       .domain = "sinter",
       .infer = infer_mask,
       .eval = eval_mask,
       .note = "the class of each pixel of the caller's picture; made of --post"},
      {.name = "detections",
       .domain = "sinter",
       .max_inputs = 2,
       .max_outputs = 4,
       .infer = infer_detections,
       .eval = eval_detections,
       .note = "the boxes of a detector's head; made of --post"},
  };
  return table;
}

}  // namespace sinter
