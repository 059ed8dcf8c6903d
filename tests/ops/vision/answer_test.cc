// mask_of_logits and detections: values worked out by hand. Which boxes stay is told by code that generated
// code has too (runtime/sinter/detections.h), so a plain definition is compared with it as well.
#include "ops/vision/answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ops/op.h"

namespace sinter {
namespace {

using Numbers = std::vector<double>;

std::vector<Tensor> run(const char* op, const std::vector<Tensor>& inputs, const Attributes& a,
                        size_t outputs) {
  Graph g;
  std::vector<Value*> in, out;
  for (const Tensor& t : inputs)
    in.push_back(g.add_value("x", {t.dtype(), Shape(t.shape().begin(), t.shape().end())}));
  for (size_t i = 0; i < outputs; ++i) out.push_back(g.add_value("y", {}));
  g.inputs = in, g.outputs = out;
  g.add_node(find_op("sinter", op), "n", in, out)->attributes = a;
  infer(g);
  return evaluate(g, inputs);
}

Tensor floats(const Numbers& v, std::vector<int64_t> shape) {
  Tensor t(DType::kF32, std::move(shape));
  for (size_t i = 0; i < v.size(); ++i) t.set_real(static_cast<int64_t>(i), v[i]);
  return t;
}

Tensor mask(const Tensor& logits, const MaskRule& r) {
  Attributes a;
  set_mask_rule(a, r);
  return run("mask_of_logits", {logits}, a, 1)[0];
}

TEST(Answer, MasksAreBlendedLogits) {
  // Class 1 wins on the right: at a quarter and three quarters the blended logits are 0.75 and 0.25 of a
  // pixel.
  const Tensor logits = floats({3, 0, 0, 2}, {1, 1, 2, 2});
  MaskRule r;
  r.place = {1, 4, {1, 4, 0, 0}, 1, 4};
  EXPECT_EQ(mask(logits, r).reals(), (Numbers{0, 0, 1, 1}));
  r.place = {1, 8, {1, 8, 0, 0}, 1, 8};
  // Class 0 has 3(1-t), class 1 has 2t: equal at t = 0.6, which lies between columns 4 and 5.
  EXPECT_EQ(mask(logits, r).reals(), (Numbers{0, 0, 0, 0, 1, 1, 1, 1}));
  r.has_threshold = true, r.threshold = 0.5f;
  r.place = {1, 2, {1, 2, 0, 0}, 1, 2};
  EXPECT_EQ(mask(floats({0.4, 0.6}, {1, 1, 2, 1}), r).reals(), (Numbers{0, 1}));
}

// The frame of 4 x 2 lies in the middle of a picture of 4 x 4; logits have its size.
TEST(Answer, MasksUndoLetterboxes) {
  Numbers v;
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) v.insert(v.end(), {0.5, y == 1 && x == 2 ? 1.0 : 0.0});
  MaskRule r;
  r.place = {2, 4, frame_geometry(FrameFit::kLetterbox, 2, 4, 4, 4), 4, 4};
  EXPECT_EQ(mask(floats(v, {1, 4, 4, 2}), r).reals(), (Numbers{0, 0, 1, 0, 0, 0, 0, 0}));
}

DetectionRule rule(HeadForm form, int64_t classes) {
  DetectionRule r;
  r.form = form, r.classes = classes;
  r.rows_first = form == HeadForm::kYolov8;
  r.centred = form != HeadForm::kSsd;
  r.map = {1, 0, 1000, 1, 0, 1000};
  return r;
}
std::vector<Tensor> detect(const std::vector<Tensor>& inputs, const DetectionRule& r, size_t outputs = 3) {
  Attributes a;
  set_detection_rule(a, r);
  return run("detections", inputs, a, outputs);
}

TEST(Answer, HeadsOfYolo) {
  // Centre and size, two classes, one number more. The second overlaps the first one by 19/21, in its class;
  // the third has another one, the fourth too low a score.
  const Numbers anchors[] = {{50, 50, 20, 20, .9, .1, 7},
                             {51, 50, 20, 20, .8, .2, 8},
                             {50, 51, 20, 20, .3, .6, 9},
                             {9, 9, 2, 2, .2, .1, 0}};
  Numbers rows(28), columns;
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 7; ++k) rows[k * 4 + i] = anchors[i][k];
  DetectionRule r = rule(HeadForm::kYolov8, 2);
  r.extra = 1;
  r.map = {2, -10, 111, 1, 5, 1000};
  const auto out = detect({floats(rows, {1, 7, 4})}, r, 4);
  EXPECT_EQ(out[0].reals(), (Numbers{70, 45, 110, 65, 70, 46, 110, 66}));
  EXPECT_EQ(out[2].reals(), (Numbers{0, 1}));
  EXPECT_EQ(out[3].reals(), (Numbers{7, 9}));
  r.most = 1;
  EXPECT_EQ(detect({floats(rows, {1, 7, 4})}, r, 4)[2].reals(), (Numbers{0}));
  r.most = 100, r.map[2] = 90, r.overlap = 0.95f;
  EXPECT_EQ(detect({floats(rows, {1, 7, 4})}, r, 4)[0].reals(),
            (Numbers{70, 45, 90, 65, 72, 45, 90, 65, 70, 46, 90, 66}));  // inside of the picture
  // With objectness, in rows.
  for (size_t i = 0; i < 4; ++i) {
    columns.insert(columns.end(), anchors[i].begin(), anchors[i].begin() + 4);
    columns.push_back(0.5);
    columns.insert(columns.end(), anchors[i].begin() + 4, anchors[i].begin() + 6);
  }
  const auto five = detect({floats(columns, {1, 4, 7})}, rule(HeadForm::kYolov5, 2));
  EXPECT_NEAR(five[1].real(0), .45, 1e-6);
  EXPECT_NEAR(five[1].real(1), .3, 1e-6);
  EXPECT_EQ(five[2].reals(), (Numbers{0, 1}));
  EXPECT_EQ(detect({floats({5, 5, 2, 2, .1}, {1, 5, 1})}, rule(HeadForm::kYolov8, 1))[0].shape(),
            (std::vector<int64_t>{0, 4}));
}

// SSD: by the definition, on random boxes.
TEST(Answer, HeadsOfSsd) {
  std::mt19937 random(9);
  constexpr int64_t kBoxes = 60, kClasses = 4;
  for (int turn = 0; turn < 20; ++turn) {
    const auto uniform = [&] { return static_cast<float>(random() % 1000) / 1000; };
    Tensor boxes(DType::kF32, {1, kBoxes, 4}), scores(DType::kF32, {1, kBoxes, kClasses});
    for (int64_t i = 0; i < kBoxes; ++i) {
      const float x = uniform(), y = uniform();
      const float box[] = {x, y, x + uniform() / 2, y + uniform() / 2};
      std::copy_n(box, 4, boxes.as<float>() + 4 * i);
    }
    for (int64_t i = 0; i < scores.size(); ++i) scores.as<float>()[i] = uniform();
    DetectionRule r = rule(HeadForm::kSsd, kClasses);
    r.first_class = 1, r.most = turn % 2 ? 9 : 200, r.overlap = 0.3f, r.score = 0.4f;
    struct Found {
      float score;
      int64_t kind, box;
    };
    std::vector<Found> want;
    const float* b = boxes.as<float>();
    const auto share = [&](int64_t i, int64_t k) {
      const float w = std::min(b[4 * i + 2], b[4 * k + 2]) - std::max(b[4 * i], b[4 * k]),
                  h = std::min(b[4 * i + 3], b[4 * k + 3]) - std::max(b[4 * i + 1], b[4 * k + 1]);
      const auto area = [&](int64_t n) { return (b[4 * n + 2] - b[4 * n]) * (b[4 * n + 3] - b[4 * n + 1]); };
      return w > 0 && h > 0 ? w * h / (area(i) + area(k) - w * h) : 0.0f;
    };
    for (int64_t c = 1; c < kClasses; ++c) {
      std::vector<int64_t> order(kBoxes);
      std::iota(order.begin(), order.end(), 0);
      const auto score = [&](int64_t i) { return scores.as<float>()[i * kClasses + c]; };
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t k) { return score(i) > score(k); });
      std::vector<int64_t> kept;
      for (int64_t i : order)
        if (score(i) > r.score &&
            std::none_of(kept.begin(), kept.end(), [&](int64_t k) { return share(i, k) > r.overlap; }))
          kept.push_back(i);
      for (int64_t i : kept) want.push_back({score(i), c, i});
    }
    std::stable_sort(want.begin(), want.end(),
                     [](const Found& x, const Found& y) { return x.score > y.score; });
    want.resize(std::min<size_t>(want.size(), static_cast<size_t>(r.most)));
    const auto got = detect({boxes, scores}, r);
    ASSERT_EQ(got[1].size(), static_cast<int64_t>(want.size()));
    for (size_t k = 0; k < want.size(); ++k) {
      const auto at = static_cast<int64_t>(k);
      EXPECT_EQ(got[1].as<float>()[at], want[k].score);
      EXPECT_EQ(got[2].integer(at), want[k].kind);
      EXPECT_EQ(got[0].as<float>()[4 * at], b[4 * want[k].box]);
    }
  }
}

TEST(Answer, Refusals) {
  const auto why = [](auto f) -> std::string {
    try {
      f();
    } catch (const Refusal& e) {
      return e.problems.at(0);
    }
    return "";
  };
  MaskRule r;
  r.place = {2, 2, {2, 2, 0, 0}, 2, 2};
  EXPECT_NE(why([&] { mask(Tensor(DType::kF32, {1, 2, 2, 1}), r); }).find("1 classes"), std::string::npos);
  EXPECT_NE(why([&] {
              mask(Tensor(DType::kF32, {2, 2, 2, 2}), r);
            }).find("logits of shape"),
            std::string::npos);
  EXPECT_NE(why([&] {
              detect({Tensor(DType::kF32, {1, 7, 4})}, rule(HeadForm::kYolov8, 2));
            }).find("7 numbers"),
            std::string::npos);
  EXPECT_NE(
      why([&] {
        detect({Tensor(DType::kF32, {1, 9, 5}), Tensor(DType::kF32, {1, 9, 2})}, rule(HeadForm::kSsd, 2));
      }).find("boxes of 5"),
      std::string::npos);
}

}  // namespace
}  // namespace sinter
