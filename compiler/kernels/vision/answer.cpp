// Answers of --post: a mask a row at a time, its logits blended down first, then across, so that no picture
// of logits is in memory; and the boxes of a detector's head, a call of runtime/sinter/detections.h.
#include "ops/vision/answer.h"

#include "emit/expr_text.h"
#include "emit/layer.h"
#include "kernels/movement/copies.h"
#include "ops/op.h"
#include "sinter/detections.h"

namespace sinter {
namespace {

bool accepts_mask(const Node& n, const Context&) {
  return n.op == find_op("sinter", "mask_of_logits") && !n.epilogue;
}

// The tables of an axis: pixels before, and what the next one weighs.
std::pair<std::string, std::string> tables(LayerWriter& w, const std::string& name,
                                           const std::vector<FrameTap>& taps) {
  std::vector<int32_t> first;
  std::vector<float> weight;
  for (const FrameTap& t : taps) {
    first.push_back(static_cast<int32_t>(t.first));
    weight.push_back(static_cast<float>(t.weight));
  }
  const std::string comment = fmt::format("[{}]", taps.size());
  std::string at = w.weights(name, "std::int32_t", first.data(), first.size() * 4, comment);
  return {at, w.weights(name + "_weight", "float", weight.data(), weight.size() * 4, comment)};
}

void emit_mask(LayerWriter& w) {
  const MaskRule r = mask_rule(w.node.attributes);
  const AnswerPlace& p = r.place;
  const Shape& in = w.node.inputs[0]->type.shape;
  const int64_t height = in[1].value(), width = in[2].value(), classes = in[3].value(), row = width * classes;
  w.include("sinter/mask.h");
  w.summary(fmt::format("mask {} of {}", text(w.node.outputs[0]->type.shape), text(in)));
  w.flops(Dim(p.to_height * p.to_width * classes * 4));
  const std::string x = w.input(0);
  const auto [rows, below] =
      tables(w, "rows", mask_taps(p.to_height, p.geometry.height, p.geometry.top, p.picture_height, height));
  const auto [columns, right] =
      tables(w, "columns", mask_taps(p.to_width, p.geometry.width, p.geometry.left, p.picture_width, width));
  const std::string y = w.output(0);
  const LayerWriter::Turns turns = w.open_parts(std::to_string(p.to_height));
  const std::string blended = w.floats_of_part("blended", row);
  w.out.line("for (std::int64_t i = {}; i < {}; ++i) {{", turns.first, turns.end);
  w.out.line("const float* const a = {} + {}[i] * std::int64_t{{{}}};", x, rows, row);
  w.out.line("const float* const b = {}[i] == 0.0f ? a : a + {};", below, row);
  w.out.line("blend_rows(a, b, {}[i], {}, {});", below, row, blended);
  const std::string to = fmt::format("{} + i * {}", y, p.to_width);
  if (r.has_threshold)
    w.out.line("mask_row_above({}, {}, {}, {}, {}, {});", blended, columns, right, p.to_width,
               float_literal(r.threshold), to);
  else
    w.out.line("mask_row({}, {}, {}, {}, {}, {});", blended, columns, right, p.to_width, classes, to);
  w.out.line("}}");
  w.close_parts();
}

bool accepts_detections(const Node& n, const Context&) {
  return n.op == find_op("sinter", "detections") && !n.epilogue &&
         own_count(n, n.outputs[0]->type.shape[0]) != nullptr;
}

void emit_detections(LayerWriter& w) {
  const Node& n = w.node;
  const DetectionRule r = detection_rule(n.attributes);
  const bool ssd = r.form == HeadForm::kSsd;
  const Shape& s = n.inputs[0]->type.shape;
  const int64_t rows = s[r.rows_first ? 1 : 2].value(), anchors = s[r.rows_first ? 2 : 1].value();
  const Dim& count = n.outputs[0]->type.shape[0];
  const int64_t most = count.hi(), found = detections_found(most);
  w.include("sinter/detections.h");
  w.include("sinter/status.h");
  w.summary(fmt::format("the best of {} boxes of {} classes, {} at most", anchors, r.classes - r.first_class,
                        most));
  w.flops(Dim(anchors * r.classes * 2));
  const std::string x = w.input(0);
  const auto table = [&](int64_t row) {
    return r.rows_first ? fmt::format("{{{} + {}, {}, 1}}", x, row * anchors, anchors)
                        : fmt::format("{{{} + {}, 1, {}}}", x, row, rows);
  };
  w.out.line("sinter::DetectionHead head{{}};");
  w.out.line("head.boxes = {};", table(0));
  w.out.line("head.scores = {};",
             ssd ? fmt::format("{{{}, 1, {}}}", w.input(1), r.classes) : table(r.first_score()));
  if (r.form == HeadForm::kYolov5) w.out.line("head.objectness = {};", table(4));
  if (r.extra > 0) w.out.line("head.extra = {};", table(r.first_score() + r.classes));
  w.out.line("head.anchors = {}, head.classes = {}, head.extras = {}, head.first_class = {};", anchors,
             r.classes, r.extra, r.first_class);
  w.out.line("head.centred = {}, head.best_class = {};", r.centred, !ssd);
  w.out.line("head.least_score = {}, head.most_overlap = {};", float_literal(r.score),
             float_literal(r.overlap));
  const char* const fields[] = {"scale_x", "shift_x", "width", "scale_y", "shift_y", "height"};
  for (size_t i = 0; i < 6; ++i) w.out.line("head.{} = {};", fields[i], float_literal(r.map[i]));
  const auto scratch = [&](const char* name, const char* type, int64_t elements) {
    return w.scratch(name, type, elements);
  };
  const std::string memory =
      fmt::format("{{{}, {}, {}, {}, {}, {}, {}}}", w.floats_of_part("best", anchors),
                  scratch("kind", "std::int32_t", anchors), scratch("order", "std::int32_t", anchors),
                  w.floats_of_part("score", found), scratch("number", "std::int32_t", found),
                  scratch("group", "std::int32_t", found), scratch("rank", "std::int32_t", found));
  const auto out = [&](size_t i) { return n.has_output(i) ? w.output(i) : std::string("nullptr"); };
  const std::string boxes = w.output(0), scores = out(1), classes = out(2), extra = out(3);
  w.can_fail();
  w.out.line("*{} = sinter::find_detections(head, {}, {}, {}, {}, {}, {});", w.count(count), most, memory,
             boxes, scores, classes, extra);
  w.out.line("return sinter::kOk;");
}

}  // namespace

const std::vector<Kernel>& kernels_answer() {
  static const std::vector<Kernel> table = {
      {"mask", "a mask of logits, blended and compared row by row", accepts_mask, emit_mask},
      {"detections", "a detector's boxes, the best of those that overlap", accepts_detections,
       emit_detections},
  };
  return table;
}

}  // namespace sinter
