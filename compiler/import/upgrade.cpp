// The table of what changed between opsets, from the operators' histories in onnx/defs (ONNX 1.23.2).
//
// A row is {op, last opset of the old form, rewrite to the next form}. Rows of one op stand in order of age;
// where a rewrite renames the op (Upsample -> Resize), the rows of the new name stand further down. Changes
// that only allow more (types, optional inputs, attributes whose default means the old behaviour) need no
// row.
#include "import/upgrade.h"

#include <algorithm>
#include <cmath>

#include "import/onnx.h"
#include "ir/error.h"

namespace sinter {

const TensorType* Rewrite::type(const Value* v) const {
  return v && v->type.dtype != DType::kUndefined ? &v->type : nullptr;
}
Value* Rewrite::constant(Tensor data, const std::string& suffix) {
  return graph_.add_constant(node.name + "/" + suffix, std::move(data));
}
Value* Rewrite::constant(const std::vector<int64_t>& values, const std::string& suffix) {
  return constant(Tensor::of(values), suffix);
}
Value* Rewrite::constant_like(float value, Value* like, const std::string& suffix) {
  Value* single = constant(Tensor::scalar(value), suffix);
  if (!type(like)) return before("CastLike", {single, like});
  if (like->type.dtype != DType::kF32) {
    const DType to = like->type.dtype;
    if (!is_float(to) && !is_integer(to) && to != DType::kBool) fail("not defined for this element type");
    single->data = single->data->converted(to);
    single->type.dtype = to;
  }
  return single;
}
Value* Rewrite::before(const std::string& op, std::vector<Value*> inputs, Attributes attributes) {
  Value* out = graph_.add_value(node.name + "/" + op, {});
  Draft d;
  d.op = op;
  d.name = node.name;
  d.inputs = std::move(inputs);
  d.outputs = {out};
  d.attributes = std::move(attributes);
  emit_(d);
  return out;
}
Value* Rewrite::fresh(const std::string& suffix) { return graph_.add_value(node.name + "/" + suffix, {}); }
std::pair<Value*, Value*> Rewrite::divert(size_t i) {
  Value* old = node.outputs[i];
  node.outputs[i] = graph_.add_value(node.name + "/" + node.op, {});
  return {node.outputs[i], old};
}
void Rewrite::then(const std::string& op, std::vector<Value*> inputs, Value* output, Attributes attributes) {
  Draft d;
  d.op = op;
  d.name = node.name;
  d.inputs = std::move(inputs);
  d.outputs = {output};
  d.attributes = std::move(attributes);
  after.push_back(std::move(d));
}
void Rewrite::attribute_to_input(const std::string& name, size_t i) {
  if (!node.attributes.has(name)) return;
  const Attribute a = node.attributes.all().at(name);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&a))
    node.set_input(i, constant(*list, name));
  else if (const auto* one = std::get_if<int64_t>(&a))
    node.set_input(i, constant(Tensor::scalar(*one), name));
  else
    fail("attribute " + name + " has the wrong type");
  node.attributes.erase(name);
}
void Rewrite::fail(const std::string& why) const {
  refuse("{} ({}): {}", sinter::quoted(node.name), node.op, why);
}

namespace {

Attributes with(const std::string& name, Attribute value) {
  Attributes a;
  a.set(name, std::move(value));
  return a;
}
bool wants(const Draft& d, size_t output) { return output < d.outputs.size() && d.outputs[output]; }
int64_t rank(const TensorType& t) { return static_cast<int64_t>(t.shape.size()); }
// The type of input i, where a rewrite can't do without.
const TensorType& needed_type(Rewrite& r, size_t i) {
  const TensorType* t = r.type(r.node.input(i));
  if (!t) r.fail(fmt::format("its old form needs the type of input {}, which is not known", i));
  return *t;
}

// Opsets to 6: "broadcast" and "axis" say where B's axes lie in A's; newer ones align them at the end.
void legacy_broadcast(Rewrite& r) {
  Attributes& a = r.node.attributes;
  const bool given = a.integer("broadcast", 0) != 0 && a.has("axis");
  int64_t axis = a.integer("axis", 0);
  a.erase("broadcast");
  a.erase("axis");
  if (!given || r.node.inputs.size() != 2) return;
  const int64_t ra = rank(needed_type(r, 0)), rb = rank(needed_type(r, 1));
  if (axis < 0) axis += ra;
  if (axis < 0 || axis + rb > ra)
    r.fail(fmt::format("axis {} does not fit inputs of {} and {} axes", axis, ra, rb));
  std::vector<int64_t> ones;
  for (int64_t i = rb; i < ra - axis; ++i) ones.push_back(i);
  if (!ones.empty()) r.node.inputs[1] = r.before("Unsqueeze", {r.node.inputs[1], r.constant(ones, "axes")});
}

// Opsets to 6: a slope of [C] belongs to axis 1.
void prelu(Rewrite& r) {
  if (r.node.inputs.size() != 2) return;
  const TensorType &x = needed_type(r, 0), &slope = needed_type(r, 1);
  if (rank(slope) != 1 || rank(x) <= 2 || slope.shape[0].is(1)) return;
  std::vector<int64_t> ones;
  for (int64_t i = 1; i < rank(x) - 1; ++i) ones.push_back(i);
  r.node.inputs[1] = r.before("Unsqueeze", {r.node.inputs[1], r.constant(ones, "axes")});
}

// Opsets 1 to 8: with one output it normalises with the given statistics; with more it computes them
// (unless is_test). Version 14 says so by training_mode and no longer saves the batch's own mean and
// variance.
void batch_normalization_mode(Rewrite& r) {
  const bool is_test = r.node.attributes.integer("is_test", 0) != 0;
  r.node.attributes.erase("is_test");
  if (is_test) {
    for (size_t i = 1; i < 5; ++i)
      if (wants(r.node, i)) r.fail("its training outputs are not supported");
    r.node.outputs.resize(1);
  }
}
void batch_normalization_training(Rewrite& r) {
  if (r.node.outputs.size() <= 1) return;
  if (wants(r.node, 3) || wants(r.node, 4)) r.fail("outputs saved_mean and saved_var are not supported");
  r.node.attributes.set("training_mode", int64_t{1});
  r.node.outputs.resize(std::min<size_t>(r.node.outputs.size(), 3));
}
// Opsets to 8, spatial = 0: statistics for each element of [C, D1, ...], not just for each channel.
void batch_normalization_spatial(Rewrite& r) {
  const bool spatial = r.node.attributes.integer("spatial", 1) != 0;
  r.node.attributes.erase("spatial");
  if (spatial) return;
  if (r.node.outputs.size() > 1 || r.node.inputs.size() != 5)
    r.fail("spatial = 0 is only supported for inference");
  const std::vector<Value*> in = r.node.inputs;
  Value* epsilon = r.constant_like(r.node.attributes.real("epsilon", 1e-5f), in[4], "epsilon");
  Value* deviation = r.before("Sqrt", {r.before("Add", {in[4], epsilon})});
  Value* scaled = r.before("Mul", {r.before("Div", {r.before("Sub", {in[0], in[3]}), deviation}), in[1]});
  r.node.op = "Add";
  r.node.inputs = {scaled, in[2]};
  r.node.attributes = {};
}

void cast_by_name(Rewrite& r) {
  static const std::map<std::string, int64_t> types = {
      {"FLOAT", 1}, {"UINT8", 2}, {"INT8", 3},     {"UINT16", 4},  {"INT16", 5},   {"INT32", 6},
      {"INT64", 7}, {"BOOL", 9},  {"FLOAT16", 10}, {"DOUBLE", 11}, {"UINT32", 12}, {"UINT64", 13}};
  std::string to = r.node.attributes.text("to", "");
  std::transform(to.begin(), to.end(), to.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  const auto it = types.find(to);
  if (it == types.end()) r.fail(fmt::format("a cast to {} is not supported", sinter::quoted(to)));
  r.node.attributes.set("to", it->second);
}

void clip(Rewrite& r) {
  size_t i = 1;
  for (const char* name : {"min", "max"}) {
    if (r.node.attributes.has(name))
      r.node.set_input(i, r.constant_like(r.node.attributes.real(name, 0), r.node.input(0), name));
    r.node.attributes.erase(name);
    ++i;
  }
}

void concat_axis(Rewrite& r) {
  if (!r.node.attributes.has("axis")) r.node.attributes.set("axis", int64_t{1});
}

// Complex signals as well: the reference of that time had no float32 transforms.
void dft_in_double(Rewrite& r) { r.node.attributes.set("double", int64_t{1}); }
void dft_axis(Rewrite& r) {
  if (!r.node.attributes.has("axis")) r.node.attributes.set("axis", int64_t{1});
  r.attribute_to_input("axis", 2);
}

// Opsets to 11 know no random dropout at inference: data pass through, the mask is all ones.
void dropout(Rewrite& r) {
  r.node.attributes.erase("is_test");
  r.node.attributes.erase("ratio");
}
void dropout_mask(Rewrite& r) {  // of the data's type until opset 9
  if (!wants(r.node, 1)) return;
  const auto [mask, old] = r.divert(1);
  r.then("CastLike", {mask, r.node.input(0)}, old);
}

void grid_sample_mode(Rewrite& r) {
  const std::string mode = r.node.attributes.text("mode", "bilinear");
  if (mode == "bilinear") r.node.attributes.set("mode", std::string("linear"));
  if (mode == "bicubic") r.node.attributes.set("mode", std::string("cubic"));
}

// Opset 18: scale and bias have one element a group; from 21 on one a channel.
void group_normalization(Rewrite& r) {
  const TensorType& x = needed_type(r, 0);
  const int64_t groups = r.node.attributes.integer("num_groups", 0);
  if (rank(x) < 2 || !x.shape[1].is_static() || groups < 1 || x.shape[1].value() % groups != 0)
    r.fail(fmt::format("{} groups do not divide the channels of {}", groups, text(x)));
  const int64_t channels = x.shape[1].value();
  if (channels == groups) return;
  for (size_t i = 1; i <= 2; ++i) {
    if (!r.node.input(i)) continue;
    Value* column = r.before("Reshape", {r.node.inputs[i], r.constant({groups, 1}, "column")});
    Value* each = r.before("Expand", {column, r.constant({groups, channels / groups}, "groups")});
    r.node.inputs[i] = r.before("Reshape", {each, r.constant({channels}, "channels")});
  }
}

void power_to_integer(Rewrite& r) {  // LpPool, GlobalLpPool of opset 1
  const float p = r.node.attributes.real("p", 2.0f);
  if (!(p >= 1 && p < 1000) || p != std::floor(p)) r.fail(fmt::format("p = {} is not supported", p));
  r.node.attributes.set("p", static_cast<int64_t>(p));
}

void drop_output_sequence(Rewrite& r) { r.node.attributes.erase("output_sequence"); }
void drop_broadcast(Rewrite& r) { r.node.attributes.erase("broadcast"); }  // Gemm: as numpy broadcasts C

void pad_paddings(Rewrite& r) {
  if (!r.node.attributes.has("paddings")) return;
  r.node.attributes.set("pads", r.node.attributes.integers("paddings"));
  r.node.attributes.erase("paddings");
}
void pad(Rewrite& r) {
  if (!r.node.attributes.has("pads")) r.fail("attribute pads is missing");
  r.attribute_to_input("pads", 1);
  const float value = r.node.attributes.real("value", 0);
  if (value != 0) r.node.set_input(2, r.constant_like(value, r.node.input(0), "value"));
  r.node.attributes.erase("value");
}

// Axes as a scalar: not by the text, but ONNX's own function bodies and ONNX Runtime have it.
void axes_scalar(Rewrite& r) {
  const TensorType* t = r.type(r.node.input(1));
  if (!t || !t->shape.empty()) return;
  const Value* axes = r.node.inputs[1];
  r.node.inputs[1] = axes->data ? r.constant(axes->data->reshaped({1}), "axes")
                                : r.before("Reshape", {r.node.inputs[1], r.constant({1}, "one")});
}
void axes_to_input(Rewrite& r) { r.attribute_to_input("axes", 1); }
void shape_to_input(Rewrite& r) { r.attribute_to_input("shape", 1); }

// Opset 10: out[x] = in[x / scale]; nearest rounds down when it enlarges and up when it makes smaller. So an
// enlarging and a shrinking Resize, where one kind of scale isn't known to be absent.
void resize_asymmetric(Rewrite& r) {
  Attributes& a = r.node.attributes;
  if (a.has("nearest_mode")) return;  // made by upsample_9
  Value* scales = r.node.input(1);
  r.node.inputs = {r.node.input(0), nullptr, scales};
  a.set("coordinate_transformation_mode", std::string("asymmetric"));
  if (a.text("mode", "nearest") != "nearest") return;
  a.set("nearest_mode", std::string("floor"));
  if (!scales) return;
  if (scales->data && scales->data->dtype() == DType::kF32) {
    const std::vector<double> s = scales->data->reals();
    if (std::all_of(s.begin(), s.end(), [](double v) { return v >= 1; })) return;
    if (std::all_of(s.begin(), s.end(), [](double v) { return v <= 1; })) {
      a.set("nearest_mode", std::string("ceil"));
      return;
    }
  }
  Value* one = r.constant(Tensor::scalar(1.0f), "one");
  Attributes shrink = a;
  shrink.set("nearest_mode", std::string("ceil"));
  r.node.inputs[0] =
      r.before("Resize", {r.node.inputs[0], nullptr, r.before("Min", {scales, one})}, std::move(shrink));
  r.node.inputs[2] = r.before("Max", {scales, one});
}
void upsample_1(Rewrite& r) {
  Attributes& a = r.node.attributes;
  if (!a.has("height_scale") || !a.has("width_scale")) r.fail("height_scale or width_scale is missing");
  a.set("scales", std::vector<float>{1, 1, a.real("height_scale", 1), a.real("width_scale", 1)});
  a.erase("height_scale");
  a.erase("width_scale");
  if (a.text("mode", "nearest") == "bilinear") a.set("mode", std::string("linear"));
}
void upsample_7(Rewrite& r) {
  if (!r.node.attributes.has("scales")) r.fail("attribute scales is missing");
  const std::vector<float> s = r.node.attributes.reals("scales");
  r.node.set_input(1, r.constant(Tensor::of(s, {static_cast<int64_t>(s.size())}), "scales"));
  r.node.attributes.erase("scales");
}
// Its scales are 1 or more by the text: with those of the run, one enlarging Resize.
void upsample_9(Rewrite& r) {
  r.node.op = "Resize";
  if (const Value* scales = r.node.input(1); scales && !scales->data) {
    r.node.inputs = {r.node.input(0), nullptr, r.node.input(1)};
    r.node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
    r.node.attributes.set("nearest_mode", std::string("floor"));
  }
  if (r.node.attributes.text("mode", "nearest") == "bilinear")
    r.node.attributes.set("mode", std::string("linear"));
}
// Opset 11's tf_half_pixel_for_nn: floor((x + 0.5) / scale), which is half_pixel rounded half up. Empty
// tensors stood for absent inputs.
void resize_11(Rewrite& r) {
  Attributes& a = r.node.attributes;
  if (a.text("coordinate_transformation_mode", "") == "tf_half_pixel_for_nn" &&
      a.text("mode", "nearest") == "nearest" && a.text("nearest_mode", "round_prefer_floor") == "floor") {
    a.set("coordinate_transformation_mode", std::string("half_pixel"));
    a.set("nearest_mode", std::string("round_prefer_ceil"));
  }
}
void resize_empty_inputs(Rewrite& r) {
  for (size_t i = 1; i < std::min<size_t>(r.node.inputs.size(), 4); ++i)
    if (const TensorType* t = r.type(r.node.inputs[i]))
      if (rank(*t) == 1 && t->shape[0].is(0)) r.node.inputs[i] = nullptr;
}

void roi_align(Rewrite& r) {
  r.node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
}

// Opset 8: a batch axis before the sequence axis, and sequence_lens as input 0.
void scan_8(Rewrite& r) {
  if (r.node.input(0)) r.fail("sequence_lens of opset 8 is not supported");
  if (!r.node.inputs.empty()) r.node.inputs.erase(r.node.inputs.begin());
  Value* zero = r.constant({0}, "batch_axis");
  for (size_t i = 0; i < r.node.inputs.size(); ++i) {
    const TensorType& t = needed_type(r, i);
    if (t.shape.empty() || !t.shape[0].is(1)) r.fail("a batch other than 1 is not supported in opset 8");
    r.node.inputs[i] = r.before("Squeeze", {r.node.inputs[i], zero});
  }
  for (size_t i = 0; i < r.node.outputs.size(); ++i)
    if (r.node.outputs[i]) {
      const auto [made, old] = r.divert(i);
      r.then("Unsqueeze", {made, zero}, old);
    }
  if (r.node.attributes.has("directions"))
    r.node.attributes.set("scan_input_directions", r.node.attributes.integers("directions"));
  r.node.attributes.erase("directions");
}

void scatter(Rewrite& r) { r.node.op = "ScatterElements"; }

void selu(Rewrite& r) {  // opset 1 had other digits
  Attributes& a = r.node.attributes;
  if (!a.has("alpha")) a.set("alpha", 1.6732f);
  if (!a.has("gamma")) a.set("gamma", 1.0507f);
}

void slice(Rewrite& r) {
  if (!r.node.attributes.has("starts") || !r.node.attributes.has("ends"))
    r.fail("attributes starts and ends are missing");
  r.attribute_to_input("starts", 1);
  r.attribute_to_input("ends", 2);
  r.attribute_to_input("axes", 3);
}

// Opsets to 12: all axes from `axis` on are one line.
void softmax_flattened(Rewrite& r) {
  Attributes& a = r.node.attributes;
  int64_t axis = a.integer("axis", 1);
  Value* x = r.node.input(0);
  if (const TensorType* t = r.type(x)) {
    const int64_t n = rank(*t);
    if (axis < -n || axis >= n) r.fail(fmt::format("axis {} out of range for {}", axis, text(t->shape)));
    if (axis < 0) axis += n;
    const bool one_axis = axis < n && std::all_of(t->shape.begin() + axis + 1, t->shape.end(),
                                                  [](const Dim& d) { return d.is(1); });
    if (one_axis) return a.set("axis", axis);
  }
  Value* shape = r.before("Shape", {x});
  r.node.inputs = {r.before("Flatten", {x}, with("axis", axis))};
  a.set("axis", int64_t{-1});
  const auto [made, old] = r.divert(0);
  r.then("Reshape", {made, shape}, old, with("allowzero", int64_t{1}));
}

void split_1(Rewrite& r) {
  if (r.node.input(1)) r.node.inputs[1] = r.before("Cast", {r.node.inputs[1]}, with("to", int64_t{7}));
}
void split(Rewrite& r) { r.attribute_to_input("split", 1); }
void split_equally(Rewrite& r) {
  if (!r.node.input(1)) r.node.attributes.set("num_outputs", static_cast<int64_t>(r.node.outputs.size()));
}

void tile_1(Rewrite& r) {
  const TensorType& x = needed_type(r, 0);
  const Value *tiles = r.node.input(1), *axis = r.node.input(2);
  if (!tiles || !axis || !tiles->data || !axis->data || tiles->data->size() != 1 || axis->data->size() != 1)
    r.fail("tiles and axis of opset 1 must be constants");
  const int64_t at = axis->data->integer(0);
  if (at < 0 || at >= rank(x)) r.fail(fmt::format("axis {} out of range for {}", at, text(x.shape)));
  std::vector<int64_t> repeats(x.shape.size(), 1);
  repeats[static_cast<size_t>(at)] = tiles->data->integer(0);
  r.node.inputs = {r.node.inputs[0], r.constant(repeats, "repeats")};
}

void top_k(Rewrite& r) {
  if (!r.node.attributes.has("k")) r.fail("attribute k is missing");
  r.node.set_input(1, r.constant({r.node.attributes.integer("k", 0)}, "k"));
  r.node.attributes.erase("k");
}

struct Row {
  const char* op;
  int64_t last;
  void (*rewrite)(Rewrite&);
};
constexpr int64_t kAlways = kNewestOpset;
constexpr Row kRows[] = {
    {"Add", 6, legacy_broadcast},
    {"Sub", 6, legacy_broadcast},
    {"Mul", 6, legacy_broadcast},
    {"Div", 6, legacy_broadcast},
    {"Pow", 6, legacy_broadcast},
    {"And", 6, legacy_broadcast},
    {"Or", 6, legacy_broadcast},
    {"Xor", 6, legacy_broadcast},
    {"Equal", 6, legacy_broadcast},
    {"Greater", 6, legacy_broadcast},
    {"Less", 6, legacy_broadcast},
    {"BatchNormalization", 6, batch_normalization_mode},
    {"BatchNormalization", 8, batch_normalization_spatial},
    {"BatchNormalization", 13, batch_normalization_training},
    {"Cast", 5, cast_by_name},
    {"Clip", 10, clip},
    {"Concat", 3, concat_axis},
    {"DFT", 18, dft_in_double},
    {"DFT", 19, dft_axis},
    {"Dropout", 9, dropout_mask},
    {"Dropout", 11, dropout},
    {"GRU", 6, drop_output_sequence},
    {"LSTM", 6, drop_output_sequence},
    {"RNN", 6, drop_output_sequence},
    {"Gemm", 6, drop_broadcast},
    {"GlobalLpPool", 1, power_to_integer},
    {"GridSample", 19, grid_sample_mode},
    {"GroupNormalization", 20, group_normalization},
    {"Hardmax", 12, softmax_flattened},
    {"LogSoftmax", 12, softmax_flattened},
    {"LpPool", 1, power_to_integer},
    {"PRelu", 6, prelu},
    {"Pad", 1, pad_paddings},
    {"Pad", 10, pad},
    {"ReduceL1", 17, axes_to_input},
    {"ReduceL2", 17, axes_to_input},
    {"ReduceLogSum", 17, axes_to_input},
    {"ReduceLogSumExp", 17, axes_to_input},
    {"ReduceMax", 17, axes_to_input},
    {"ReduceMean", 17, axes_to_input},
    {"ReduceMin", 17, axes_to_input},
    {"ReduceProd", 17, axes_to_input},
    {"ReduceSum", 12, axes_to_input},
    {"ReduceSumSquare", 17, axes_to_input},
    {"Reshape", 4, shape_to_input},
    {"RoiAlign", 15, roi_align},
    {"Scan", 8, scan_8},
    {"Scatter", 10, scatter},
    {"Selu", 5, selu},
    {"Slice", 9, slice},
    {"Softmax", 12, softmax_flattened},
    {"Split", 1, split_1},
    {"Split", 12, split},
    {"Split", 17, split_equally},
    {"Squeeze", 12, axes_to_input},
    {"Squeeze", kAlways, axes_scalar},
    {"Tile", 5, tile_1},
    {"TopK", 9, top_k},
    {"Unsqueeze", 12, axes_to_input},
    {"Unsqueeze", kAlways, axes_scalar},
    {"Upsample", 6, upsample_1},
    {"Upsample", 8, upsample_7},
    {"Upsample", 9, upsample_9},
    {"Resize", 10, resize_asymmetric},
    {"Resize", 12, resize_11},
    {"Resize", kAlways, resize_empty_inputs},
};

}  // namespace

void upgrade(Rewrite& rewrite) {
  if (rewrite.opset <= 5) rewrite.node.attributes.erase("consumed_inputs");
  for (const Row& row : kRows)
    if (rewrite.opset <= row.last && rewrite.node.op == row.op) row.rewrite(rewrite);
}

}  // namespace sinter
