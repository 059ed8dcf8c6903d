#include "driver/frames.h"

#include <algorithm>
#include <cstring>

#include "driver/errors.h"
#include "driver/image.h"
#include "driver/state_names.h"
#include "ir/error.h"
#include "ops/op.h"

namespace sinter {
namespace {

const DeclaredInput* find_input(const std::vector<DeclaredInput>& inputs, const std::string& name) {
  for (const DeclaredInput& d : inputs)
    if (d.name == name) return &d;
  return nullptr;
}

// The input that words without a name are of: the only one that takes a picture.
const DeclaredInput& only_picture(const std::vector<DeclaredInput>& inputs, const std::string& option) {
  const DeclaredInput* found = nullptr;
  std::string names;
  for (const DeclaredInput& d : inputs) {
    if (!d.needed || !picture_axes(d) || !is_pixel_type(d.dtype)) continue;
    if (inputs.size() > 1 && d.extents.size() < 3) continue;
    found = names.empty() ? &d : nullptr;
    names += (names.empty() ? "" : ", ") + sinter::quoted(d.name);
  }
  if (found) return *found;
  throw UsageError(fmt::format("--pre {}: {}", sinter::quoted(option),
                               names.empty() ? "the model has no input that takes a picture"
                                             : "name its input, NAME: ...; pictures are " + names));
}

void check_shape(const DeclaredInput& d, const FrameWords& w) {
  picture_shape(d, w.height, w.width);  // refuses
  const PictureAxes axes = *picture_axes(d);
  const int64_t channels = axes.channel < 0 ? 1 : d.extents[static_cast<size_t>(axes.channel)].lo;
  check_channels("--pre", w, channels, d.name);
  for (int axis = 0; axis < static_cast<int>(d.extents.size()); ++axis) {
    if (axis == axes.channel || axis == axes.row || axis == axes.column) continue;
    if (const auto& e = d.extents[static_cast<size_t>(axis)]; e.lo > 1)
      throw UsageError(fmt::format(
          "--pre: the input {} takes {} pictures at once, a frame is one: --dim {}=1", sinter::quoted(d.name),
          e.lo, e.text.empty() ? fmt::format("{}@{}", d.name, axis) : e.text));
  }
}

}  // namespace

std::vector<FrameWords> frames_of(const ModelOptions& o, const ImportOptions& import) {
  std::vector<FrameWords> frames;
  if (o.pre.empty()) return frames;
  const std::vector<DeclaredInput> inputs =
      without_states(declared_inputs(o.model, import), state_names(o, import));
  if (inputs.empty()) return frames;  // import says why the model can't be read
  std::vector<std::string> names;
  for (const DeclaredInput& d : inputs) names.push_back(d.name);
  for (const std::string& option : o.pre) {
    FrameWords w = parse_frame_words("--pre", option, names);
    const DeclaredInput& d = w.input.empty() ? only_picture(inputs, option) : *find_input(inputs, w.input);
    w.input = d.name;
    if (!d.needed)
      throw UsageError(
          fmt::format("--pre {}: no output that is wanted needs the input", sinter::quoted(option)));
    for (const FrameWords& other : frames)
      if (other.input == w.input)
        throw UsageError(fmt::format("--pre: the input {} is named twice", sinter::quoted(w.input)));
    check_shape(d, w);
    frames.push_back(std::move(w));
  }
  return frames;
}

std::vector<DeclaredInput> caller_inputs(const ModelOptions& o, const ImportOptions& import) {
  return with_frames(without_states(declared_inputs(o.model, import), state_names(o, import)),
                     frames_of(o, import));
}

std::vector<DeclaredInput> with_frames(std::vector<DeclaredInput> inputs,
                                       const std::vector<FrameWords>& frames) {
  for (DeclaredInput& d : inputs)
    for (const FrameWords& w : frames) {
      if (d.name != w.input) continue;
      d.dtype = DType::kU8;
      d.has_shape = true;
      d.extents.assign(2, {});
      d.extents[0].lo = d.extents[0].hi = w.rows();
      d.extents[1].lo = d.extents[1].hi = w.stride;
      d.frame = w;
    }
  return inputs;
}

ImportOptions with_pictures(const ModelOptions& o, const ImportOptions& import,
                            const std::vector<FrameWords>& frames) {
  ImportOptions out = import;
  if (frames.empty()) return out;
  const std::vector<DeclaredInput> inputs = declared_inputs(o.model, import);
  for (const FrameWords& w : frames) {
    const DeclaredInput& d = *find_input(inputs, w.input);
    out.input_shapes[w.input] = picture_shape(d, w.height, w.width);
  }
  return out;
}

namespace {

// A node behind `x` and before `before`; its result.
Value* behind(Graph& g, const char* domain, const char* op, std::vector<Value*> x, Node* before,
              const std::string& source, const Attributes& attributes) {
  Value* y = g.add_value(x[0]->name + "/" + op, {});
  Node* n = g.add_node(find_op(domain, op), y->name, std::move(x), {y}, before);
  n->attributes = attributes;
  n->sources = {source};
  infer(g, *n);
  y->origin = y->name;
  return y;
}

void add_frame(Graph& g, size_t index, const FrameWords& w) {
  Value* picture = g.inputs[index];
  const Shape& shape = picture->type.shape;
  if (!is_static(shape))
    refuse("--pre: the input {} has free extents, {}; fix them with --dim", sinter::quoted(w.input),
           text(picture->type));
  DeclaredInput d;
  d.name = w.input;
  for (const Dim& e : shape) d.extents.push_back({e.value(), e.value(), 1, "", false});
  const PictureAxes axes = *picture_axes(d);
  const auto extent = [&](int axis) {
    return axis < 0 ? int64_t{1} : shape[static_cast<size_t>(axis)].value();
  };
  if (product(shape).value() != extent(axes.channel) * extent(axes.row) * extent(axes.column))
    refuse("--pre: the input {} takes several pictures at once, {}; a frame is one", sinter::quoted(w.input),
           text(picture->type));
  const DType type = picture->type.dtype;
  const FrameRule rule = frame_rule(w, extent(axes.channel), extent(axes.row), extent(axes.column),
                                    is_float(type) ? DType::kF32 : type);
  Value* frame = g.add_value(w.input + "/frame", {DType::kU8, {w.rows(), w.stride}});
  std::swap(frame->name, picture->name);
  frame->origin = frame->name, picture->origin = picture->name;
  g.inputs[index] = frame;
  Node* first = g.nodes.empty() ? nullptr : g.nodes.front().get();
  const std::string source = fmt::format("{} (--pre)", sinter::quoted(w.input));
  Attributes a;
  set_frame_rule(a, rule);
  Value* v = behind(g, "sinter", "frame_to_tensor", {frame}, first, source, a);
  if (axes.channel >= 0 && axes.channel < axes.row && extent(axes.channel) > 1) {
    Attributes planes;
    planes.set("perm", std::vector<int64_t>{0, 3, 1, 2});
    v = behind(g, "", "Transpose", {v}, first, source, planes);
  }
  if (v->type.shape != shape) {
    Value* to = g.add_constant(w.input + "/shape", Tensor::of(static_dims(shape)));
    v = behind(g, "", "Reshape", {v, to}, first, source, {});
  }
  if (v->type.dtype != type) {
    Attributes cast;
    cast.set("to", static_cast<int64_t>(onnx_of(type)));
    v = behind(g, "", "Cast", {v}, first, source, cast);
  }
  // The last result takes the picture's place with its users.
  std::swap(v->name, picture->name);
  v->origin = v->name;
  g.replace_uses(picture, v);
}

}  // namespace

void add_frames(Graph& g, const std::vector<FrameWords>& frames) {
  for (const FrameWords& w : frames) {
    const auto at =
        std::find_if(g.inputs.begin(), g.inputs.end(), [&](const Value* v) { return v->name == w.input; });
    if (at == g.inputs.end())
      refuse("--pre: no output that is wanted needs the input {}", sinter::quoted(w.input));
    add_frame(g, static_cast<size_t>(at - g.inputs.begin()), w);
  }
  if (!frames.empty()) g.erase_unused();
}

Tensor as_frame(const Tensor& t, const FrameWords& w) {
  const PixelLayout& l = layout_of(*w.format);
  const int64_t rows = w.rows(), row = least_stride(l, w.width);
  const std::vector<int64_t>& shape = t.shape();
  if (t.dtype() != DType::kU8 || shape == std::vector<int64_t>{rows, w.stride}) return t;
  const bool pixels = shape == std::vector<int64_t>{rows, w.width, l.bytes},
             bytes = shape == std::vector<int64_t>{rows, row};
  if (!pixels && !bytes) return t;
  Tensor frame(DType::kU8, {rows, w.stride});
  for (int64_t y = 0; y < rows; ++y)
    std::memcpy(frame.mutable_data() + y * w.stride, t.data() + y * row, static_cast<size_t>(row));
  return frame;
}

bool is_frame(const Value& v) {
  const Op* op = find_op("sinter", "frame_to_tensor");
  return std::any_of(v.users.begin(), v.users.end(), [&](const Node* n) { return n->op == op; });
}

std::string frame_text(const FrameWords& w) {
  const PixelLayout& l = layout_of(*w.format);
  return fmt::format("a frame of {}x{} pixels, {} ({}); {} bytes from row to row, {} in all", w.width,
                     w.height, l.name, l.layout, w.stride, w.rows() * w.stride);
}

}  // namespace sinter
