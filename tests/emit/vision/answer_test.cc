// Masks and detections as generated code against the interpreter.
#include "ops/vision/answer.h"

#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

AttributeList list_of(const Attributes& a) { return {a.all().begin(), a.all().end()}; }

void add_mask(Sheet& s, const Shape& logits, int64_t height, int64_t width, FrameFit fit) {
  MaskRule r;
  const int64_t h = 4 * logits[1].value(), w = 4 * logits[2].value();
  r.place = {height, width, frame_geometry(fit, height, width, h, w), h, w};
  r.has_threshold = logits[3].is(1);
  r.threshold = 0.25f;
  Attributes a;
  set_mask_rule(a, r);
  s.add("mask_of_logits", {floats(logits)}, list_of(a));
}

void some_boxes(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, static_cast<double>(random() % 1000) / 1000);
}

void add_head(Sheet& s, HeadForm form, bool rows_first, int64_t anchors, int64_t classes, int64_t extra) {
  DetectionRule r;
  r.form = form, r.rows_first = rows_first, r.classes = classes, r.extra = extra;
  r.first_class = form == HeadForm::kSsd ? 1 : 0;
  r.centred = form != HeadForm::kSsd;
  r.map = {640, -8, 640, 480, 3, 480};
  r.most = 7;
  Attributes a;
  set_detection_rule(a, r);
  const int64_t rows = form == HeadForm::kSsd ? 4 : r.first_score() + classes + extra;
  std::vector<Arg> in = {floats(rows_first ? Shape{1, rows, anchors} : Shape{1, anchors, rows}, some_boxes)};
  if (form == HeadForm::kSsd) in.push_back(floats({1, anchors, classes}, some_boxes));
  s.add("detections", in, list_of(a), std::vector<bool>(extra > 0 ? 4 : 3, true));
}

TEST(AnswerKernel, MasksAndBoxes) {
  GeneratedBatch batch;
  Sheet s;
  add_mask(s, {1, 3, 5, 4}, 12, 20, FrameFit::kStretch);
  add_mask(s, {1, 4, 4, 21}, 9, 17, FrameFit::kLetterbox);
  add_mask(s, {1, 4, 4, 1}, 17, 9, FrameFit::kLetterbox);
  s.into(batch, "mask");
  add_head(s, HeadForm::kYolov8, true, 40, 5, 3);
  add_head(s, HeadForm::kYolov8, false, 40, 1, 0);
  add_head(s, HeadForm::kYolov5, false, 33, 4, 0);
  add_head(s, HeadForm::kYolov5, true, 33, 2, 2);
  add_head(s, HeadForm::kSsd, false, 50, 3, 0);
  s.into(batch, "detections");
  for (const char* name : {"avx2", "cortex-a76", "scalar"}) {
    const auto results = batch.run(target(name), {.together = 2});
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
  expect_good(batch.run(target("host"), {.threads = 3}), "threads");
}

}  // namespace
}  // namespace sinter
