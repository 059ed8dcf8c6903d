#include "driver/answers.h"

#include <algorithm>

#include "driver/errors.h"
#include "driver/image.h"
#include "ir/error.h"
#include "ops/op.h"

namespace sinter {
namespace {

using Kind = AnswerWords::Kind;
using AttributeList = std::vector<std::pair<std::string, Attribute>>;

std::vector<std::string> wanted_outputs(const ModelOptions& o) {
  std::vector<std::string> names = declared_outputs(o.model);
  if (!o.only.empty())
    std::erase_if(names, [&](const std::string& n) { return !std::count(o.only.begin(), o.only.end(), n); });
  return names;
}

// Where the caller's picture lies in the model's, by its frame or, without one, as the only input that takes
// a picture; nothing where there is none or several.
std::optional<AnswerPlace> place_of(const Graph& g, const std::vector<FrameWords>& frames) {
  std::optional<AnswerPlace> place;
  for (const Value* v : g.inputs) {
    AnswerPlace p;
    if (const Node* n = v->users.empty() ? nullptr : v->users[0];
        n && n->op == find_op("sinter", "frame_to_tensor")) {
      const FrameRule r = frame_rule(n->attributes);
      p = {r.height, r.width, frame_geometry(r.fit, r.height, r.width, r.to_height, r.to_width), r.to_height,
           r.to_width};
    } else if (frames.empty() && v->type.shape.size() == 4 && is_static(v->type.shape)) {
      DeclaredInput d;
      for (const Dim& e : v->type.shape) d.extents.push_back({e.value(), e.value(), 1, "", false});
      const std::optional<PictureAxes> axes = picture_axes(d);
      if (!axes) continue;
      const int64_t h = d.extents[static_cast<size_t>(axes->row)].lo,
                    w = d.extents[static_cast<size_t>(axes->column)].lo;
      p = {h, w, {h, w, 0, 0}, h, w};
    } else {
      continue;
    }
    if (place) return std::nullopt;
    place = p;
  }
  return place;
}

class Writer {
 public:
  Writer(Graph& g, const AnswerWords& words, const std::vector<std::string>& names,
         const std::optional<AnswerPlace>& place)
      : g_(g), words_(words), names_(names), place_(place) {}

  // The new outputs in place of output `index`; `taken`: another output that goes with it, or SIZE_MAX.
  std::vector<Value*> write(size_t index, size_t& taken) {
    taken = SIZE_MAX;
    x_ = g_.outputs[index];
    switch (words_.kind) {
      case Kind::kNms: return boxes(index, taken);
      case Kind::kThreshold: return {renamed(mask(), "")};
      case Kind::kTopk: return top();
      case Kind::kSoftmax: {
        need_numbers();
        return {renamed(add("", "Softmax", {as_floats(x_)}, {{"axis", axis()}})[0], "")};
      }
      case Kind::kArgmax: break;
    }
    return {renamed(words_.resize_input ? mask() : best(), "")};
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw UsageError(fmt::format("--post {}: {}", sinter::quoted(words_.option), why));
  }
  const Shape& shape() const { return x_->type.shape; }

  std::vector<Value*> add(const char* domain, const char* op, std::vector<Value*> inputs,
                          const AttributeList& list, size_t outputs = 1) {
    std::vector<Value*> out;
    for (size_t i = 0; i < outputs; ++i) out.push_back(g_.add_value(words_.output + "/" + op, {}));
    Node* n = g_.add_node(find_op(domain, op), out[0]->name, std::move(inputs), out);
    for (const auto& [key, value] : list) n->attributes.set(key, value);
    n->sources = {fmt::format("{} (--post)", sinter::quoted(words_.output))};
    infer(g_, *n);
    for (Value* v : out) v->origin = v->name;
    return out;
  }
  Value* cast(Value* v, DType to) {
    if (v->type.dtype == to) return v;
    return add("", "Cast", {v}, {{"to", static_cast<int64_t>(onnx_of(to))}})[0];
  }
  Value* as_floats(Value* v) { return is_float(v->type.dtype) ? v : cast(v, DType::kF32); }

  // `v` under the output's name and `end`; the output's own Value gets another one.
  Value* renamed(Value* v, const std::string& end) {
    const auto named = std::find_if(g_.values.begin(), g_.values.end(),
                                    [&](const auto& o) { return o->name == words_.output; });
    Value* holder =
        end.empty() && named != g_.values.end() ? named->get() : g_.add_value(words_.output + end, v->type);
    std::swap(holder->name, v->name);
    holder->origin = holder->name;
    v->origin = v->name;
    return v;
  }

  void need_numbers() const {
    if (!is_float(x_->type.dtype) && !is_integer(x_->type.dtype))
      fail(fmt::format("it is of {}", name_of(x_->type.dtype)));
    if (shape().empty()) fail("it is one number");
  }
  int64_t axis() const {
    const auto rank = static_cast<int64_t>(shape().size());
    const int64_t a = words_.axis.value_or(rank == 4 ? 1 : rank - 1);
    if (a < -rank || a >= rank) fail(fmt::format("axis={} of {}", a, text(x_->type)));
    return a < 0 ? a + rank : a;
  }

  Value* best() {
    need_numbers();
    const Dim& classes = shape()[static_cast<size_t>(axis())];
    if (words_.bytes && classes.hi() > 256) fail(fmt::format("{} classes don't fit u8", classes.text()));
    Value* v = add("", "ArgMax", {x_}, {{"axis", axis()}, {"keepdims", int64_t{0}}})[0];
    return words_.bytes ? cast(v, DType::kU8) : v;
  }

  std::vector<Value*> top() {
    need_numbers();
    const Dim& classes = shape()[static_cast<size_t>(axis())];
    if (classes.lo() < words_.k)
      fail(fmt::format("topk={} of {} in {}", words_.k, classes.text(), text(x_->type)));
    Value* k = g_.add_constant(words_.output + "/k", Tensor::of(std::vector<int64_t>{words_.k}));
    const std::vector<Value*> out = add("", "TopK", {x_, k}, {{"axis", axis()}}, 2);
    return {renamed(out[0], "_values"), renamed(out[1], "_classes")};
  }

  // [1, C, h, w], [C, h, w] or [1, h, w, C], as [1, h, w, C].
  Value* logits() {
    Value* v = as_floats(x_);
    v = cast(v, DType::kF32);
    if (!is_static(shape())) fail(fmt::format("{} has free extents; fix them with --dim", text(x_->type)));
    std::vector<int64_t> s = static_dims(shape());
    if (s.size() == 3) s.insert(s.begin(), 1);
    if (s.size() != 4 || s[0] != 1) fail(fmt::format("{} are no logits [1,C,H,W]", text(x_->type)));
    if (shape().size() == 3) {
      Value* to = g_.add_constant(words_.output + "/shape", Tensor::of(s));
      v = add("", "Reshape", {v, to}, {})[0];
    }
    // Channels are fewer than rows and columns; where they are last, they stay.
    const bool last = s[3] < s[1] && s[3] < s[2];
    return last ? v : add("", "Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}})[0];
  }

  Value* mask() {
    Value* v = logits();
    const int64_t h = v->type.shape[1].value(), w = v->type.shape[2].value(),
                  classes = v->type.shape[3].value();
    MaskRule r;
    r.has_threshold = words_.kind == Kind::kThreshold;
    r.threshold = words_.threshold;
    if (r.has_threshold && classes != 1)
      fail(fmt::format("threshold= is of one channel, there are {}: argmax", classes));
    if (!r.has_threshold && classes == 1) fail("argmax of one channel: give threshold=");
    if (classes > 256) fail(fmt::format("{} classes don't fit u8", classes));
    r.place = {h, w, {h, w, 0, 0}, h, w};
    if (words_.resize_input) {
      if (!place_) fail("resize=input: there is no one input that takes a picture; name one by --pre");
      r.place = *place_;
      const FrameGeometry& at = place_->geometry;
      if (at.height > place_->picture_height || at.width > place_->picture_width)
        fail("resize=input: the frame's edges are cut off (resize=crop), nothing is known of them");
    }
    Attributes a;
    set_mask_rule(a, r);
    return add("sinter", "mask_of_logits", {v}, {a.all().begin(), a.all().end()})[0];
  }

  // ---- nms

  // [a, b] or [1, a, b] as that.
  Value* head_of(Value* v) {
    if (!is_static(v->type.shape))
      fail(fmt::format("{} has free extents; fix them with --dim", text(v->type)));
    std::vector<int64_t> s = static_dims(v->type.shape);
    while (s.size() > 3 && s[0] == 1) s.erase(s.begin());
    if (s.size() == 2) s.insert(s.begin(), 1);
    if (s.size() != 3 || s[0] != 1)
      fail(
          fmt::format("{} is no head of a detector; heads are [1,4+C,N] (yolov8), [1,N,5+C] (yolov5), or "
                      "boxes [1,N,4] with scores [1,N,C] (ssd)",
                      text(v->type)));
    Value* f = cast(v, DType::kF32);
    if (s.size() == v->type.shape.size()) return f;
    Value* to = g_.add_constant(words_.output + "/shape", Tensor::of(s));
    return add("", "Reshape", {f, to}, {})[0];
  }

  // The output that has the scores of the boxes [1, N, 4].
  size_t scores_of(int64_t anchors) const {
    size_t found = SIZE_MAX;
    std::string several;
    for (size_t i = 0; i < g_.outputs.size() && i < names_.size(); ++i) {
      if (g_.outputs[i] == x_) continue;
      if (!words_.scores.empty()) {
        if (names_[i] == words_.scores) return i;
        continue;
      }
      const Shape& s = g_.outputs[i]->type.shape;
      if (s.size() < 2 || !s[s.size() - 2].is(anchors) || s.back().is(4)) continue;
      several += (several.empty() ? "" : ", ") + sinter::quoted(names_[i]);
      found = found == SIZE_MAX ? i : SIZE_MAX - 1;
    }
    if (found == SIZE_MAX)
      fail(fmt::format("no output has scores [1,{},C] for the boxes; name it, scores=", anchors));
    if (found == SIZE_MAX - 1) fail("which of the outputs has the scores? scores= of " + several);
    return found;
  }

  HeadForm form_of(int64_t a, int64_t b) const {
    if (words_.form) return *words_.form;
    if (!words_.scores.empty() || (b == 4 && a != 4)) return HeadForm::kSsd;
    if (a == b) fail(fmt::format("which head is [1,{},{}]? Give format=yolov8, yolov5 or ssd", a, b));
    return a < b ? HeadForm::kYolov8 : HeadForm::kYolov5;
  }

  // Numbers behind the scores: coefficients of masks, of which another output has as many planes.
  void count_classes(DetectionRule& r, int64_t rows) const {
    const int64_t rest = rows - r.first_score();
    if (words_.classes) {
      r.classes = *words_.classes;
    } else {
      r.classes = rest;
      for (const Value* v : g_.outputs)
        if (v != x_ && v->type.shape.size() == 4 && v->type.shape[1].is_static() &&
            v->type.shape[1].value() < rest && !v->type.shape[1].is(1))
          r.classes = rest - v->type.shape[1].value();
    }
    r.extra = rest - r.classes;
    if (r.classes < 1 || r.extra < 0)
      fail(fmt::format("{} numbers an anchor are no box and {} classes; give classes= or format=", rows,
                       r.classes));
  }

  std::vector<float> map_of(bool relative) const {
    if (!place_) {
      if (words_.relative && !*words_.relative) return {1, 0, 1e9f, 1, 0, 1e9f};
      fail("in which picture are the boxes? There is no one input that takes a picture; name one by --pre");
    }
    const AnswerPlace& p = *place_;
    const auto axis = [&](int64_t to, int64_t resized, int64_t first, int64_t picture) -> std::vector<float> {
      const double back = static_cast<double>(to) / static_cast<double>(resized);
      return {static_cast<float>(back * (relative ? static_cast<double>(picture) : 1)),
              static_cast<float>(back * static_cast<double>(first)), static_cast<float>(to)};
    };
    std::vector<float> map = axis(p.to_width, p.geometry.width, p.geometry.left, p.picture_width);
    const std::vector<float> down = axis(p.to_height, p.geometry.height, p.geometry.top, p.picture_height);
    map.insert(map.end(), down.begin(), down.end());
    return map;
  }

  std::vector<Value*> boxes(size_t, size_t& taken) {
    Value* head = head_of(x_);
    const int64_t a = head->type.shape[1].value(), b = head->type.shape[2].value();
    DetectionRule r;
    r.form = form_of(a, b);
    const bool ssd = r.form == HeadForm::kSsd;
    r.score = words_.score, r.overlap = words_.overlap, r.most = words_.most;
    std::vector<Value*> inputs = {head};
    if (ssd) {
      if (b != 4) fail(fmt::format("{} are no boxes [1,N,4]", text(x_->type)));
      r.rows_first = false;
      taken = scores_of(a);
      inputs.push_back(head_of(g_.outputs[taken]));
      const Shape& s = inputs[1]->type.shape;
      if (!s[1].is(a)) fail(fmt::format("{} scores for {} boxes", s[1].text(), a));
      r.classes = s[2].value();
      r.first_class = words_.background.value_or(r.classes > 1 ? 1 : 0);
      if (r.classes <= r.first_class) fail("the only class is background: background=none");
    } else {
      r.rows_first = a < b;
      count_classes(r, r.rows_first ? a : b);
    }
    r.centred = words_.centred.value_or(!ssd);
    r.map = map_of(words_.relative.value_or(ssd));
    Attributes list;
    set_detection_rule(list, r);
    const std::vector<Value*> out =
        add("sinter", "detections", inputs, {list.all().begin(), list.all().end()}, r.extra > 0 ? 4 : 3);
    std::vector<Value*> named = {renamed(out[0], ""), renamed(out[1], "_scores"),
                                 renamed(out[2], "_classes")};
    if (r.extra > 0) named.push_back(renamed(out[3], "_extra"));
    return named;
  }

  Graph& g_;
  const AnswerWords& words_;
  const std::vector<std::string>& names_;
  const std::optional<AnswerPlace>& place_;
  Value* x_ = nullptr;
};

}  // namespace

std::vector<AnswerWords> answers_of(const ModelOptions& o) {
  std::vector<AnswerWords> answers;
  if (o.post.empty()) return answers;
  const std::vector<std::string> outputs = wanted_outputs(o);
  if (outputs.empty()) return answers;  // import says why
  for (const std::string& option : o.post) {
    AnswerWords w = parse_answer_words(option, outputs);
    for (const AnswerWords& other : answers)
      if (other.output == w.output || other.scores == w.output ||
          (!w.scores.empty() && w.scores == other.output))
        throw UsageError(fmt::format("--post: the output {} is named twice", sinter::quoted(w.output)));
    answers.push_back(std::move(w));
  }
  return answers;
}

void add_answers(Graph& g, const std::vector<AnswerWords>& answers, const std::vector<FrameWords>& frames,
                 const ModelOptions& o, StateLinks& states) {
  if (answers.empty()) return;
  const std::vector<std::string> names = wanted_outputs(o);
  const std::optional<AnswerPlace> place = place_of(g, frames);
  std::vector<std::vector<Value*>> made(g.outputs.size());
  std::vector<bool> gone(g.outputs.size(), false);
  for (const AnswerWords& w : answers) {
    const auto index = static_cast<size_t>(std::find(names.begin(), names.end(), w.output) - names.begin());
    size_t taken = SIZE_MAX;
    made[index] = Writer(g, w, names, place).write(index, taken);
    for (const size_t i : {index, taken}) {
      if (i == SIZE_MAX) continue;
      if (gone[i] || std::any_of(states.begin(), states.end(), [&](const auto& s) { return s.output == i; }))
        throw UsageError(fmt::format("--post {}: the output {} is {}", sinter::quoted(w.option),
                                     sinter::quoted(names[i]), gone[i] ? "another answer's" : "a state"));
      gone[i] = true;
    }
  }
  std::vector<Value*> outputs;
  std::vector<size_t> moved(g.outputs.size());
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    moved[i] = outputs.size();
    if (!gone[i]) outputs.push_back(g.outputs[i]);
    outputs.insert(outputs.end(), made[i].begin(), made[i].end());
  }
  g.outputs = std::move(outputs);
  for (auto& s : states) s.output = moved[s.output];
  g.erase_unused();
}

}  // namespace sinter
