// What the nodes mean that make answers of a model's outputs (--post): mask_of_logits and detections.
#pragma once
#include <vector>

#include "ir/graph.h"
#include "ops/vision/frame.h"

namespace sinter {

// Where the caller's picture lies in the model's: resized to height x width, of which row `top` and column
// `left` are the model's first (ops/vision/frame.h).
struct AnswerPlace {
  int64_t to_height = 0, to_width = 0;            // of the caller's picture
  FrameGeometry geometry{0, 0, 0, 0};             // it resized
  int64_t picture_height = 0, picture_width = 0;  // of the model's
};

struct MaskRule {
  AnswerPlace place;
  bool has_threshold = false;  // of one channel: 1 where it is above
  float threshold = 0;
};
MaskRule mask_rule(const Attributes&);
void set_mask_rule(Attributes&, const MaskRule&);

// Where the rows (or columns) of a mask lie among `from` rows of logits.
std::vector<FrameTap> mask_taps(int64_t to, int64_t resized, int64_t first, int64_t picture, int64_t from);

enum class HeadForm { kYolov8, kYolov5, kSsd };
struct DetectionRule {
  HeadForm form = HeadForm::kYolov8;
  bool rows_first = true;          // [1, rows, anchors], else [1, anchors, rows]
  int64_t classes = 0, extra = 0;  // of extra numbers behind the scores
  int64_t first_class = 0;         // those before are background
  bool centred = true;
  float score = 0.25f, overlap = 0.45f;
  int64_t most = 100;
  std::vector<float> map;  // scale_x, shift_x, width, scale_y, shift_y, height
  int64_t first_score() const { return form == HeadForm::kYolov8 ? 4 : form == HeadForm::kYolov5 ? 5 : 0; }
};
DetectionRule detection_rule(const Attributes&);
void set_detection_rule(Attributes&, const DetectionRule&);

}  // namespace sinter
