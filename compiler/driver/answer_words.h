// The words of --post: what becomes of an output.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/vision/answer.h"

namespace sinter {

struct AnswerWords {
  std::string option;  // as given
  std::string output;
  enum class Kind { kArgmax, kSoftmax, kTopk, kThreshold, kNms } kind = Kind::kArgmax;
  // argmax, softmax, topk: of which axis; none: the channels of [N,C,H,W], else the last one.
  std::optional<int64_t> axis;
  int64_t k = 1;
  float threshold = 0;
  bool bytes = false;         // u8
  bool resize_input = false;  // in the caller's pixels
  // nms
  float score = 0.25f, overlap = 0.45f;
  int64_t most = 100;
  std::string scores;  // the output that has them; empty: found out, or the head itself
  std::optional<HeadForm> form;
  std::optional<int64_t> classes, background;
  std::optional<bool> centred, relative;  // boxes= and units=
};

// "scores: topk=5", "boxes: nms score=0.25 iou=0.45 max=100", "mask: u8 argmax resize=input". The output may
// be left out where there is only one. UsageError where a word is unknown, comes twice or goes with another.
AnswerWords parse_answer_words(const std::string& text, const std::vector<std::string>& outputs);

}  // namespace sinter
