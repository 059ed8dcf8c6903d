// Operands that decide extents and come with the run: generated code against the interpreter where the
// operand is as declared, and the status where it isn't.
#include <gtest/gtest.h>

#include <cmath>

#include "emit/sheet.h"
#include "import/onnx.h"
#include "model_text.h"

namespace sinter {
namespace {

struct Case {
  const char* name;
  const char* model;                       // all inputs are floats but the operands
  std::map<std::string, Tensor> operands;  // by input's name
  int status = 0;
  std::vector<DimOption> dims = {};
};

Tensor integers(std::vector<int64_t> v) { return Tensor::of(v); }
Tensor number(int64_t v) { return Tensor::scalar(v); }
Tensor reals(std::vector<float> v) { return Tensor::of(v, {static_cast<int64_t>(v.size())}); }

const std::vector<Case>& cases() {
  const char* col2im = R"(<ir_version: 9, opset_import: ["" : 18]>
    g (float[1,20,12] x, int64[2] image, int64[2] block) => (float[1,5,4,5] y) { y = Col2Im(x, image, block) })";
  const char* dft = R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[3,6,5,1] x, int64 axis) => (float[3,6,3,2] y) { y = DFT<onesided = 1>(x, none, axis) })";
  const char* inverse = R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[1,6,5,2] x, int64 axis) => (float[1,10,5,1] y) { y = DFT<onesided = 1, inverse = 1>(x, none, axis) })";
  const char* stft = R"(<ir_version: 9, opset_import: ["" : 17]>
    g (float[2,40,1] x, int64 step, int64 length) => (float[2,8,5,2] y) { y = STFT(x, step, none, length) })";
  const char* mel = R"(<ir_version: 9, opset_import: ["" : 17]>
    g (int64 mels, int64 length) => (float[9,4] y) {
      rate = Constant<value = int64 {8192}>() low = Constant<value = float {100}>()
      high = Constant<value = float {4000}>() y = MelWeightMatrix(mels, length, rate, low, high) })";
  const char* crop = R"(<ir_version: 9, opset_import: ["" : 17]>
    g (float[9] x, int64[1] wanted) => (float[4] y) {
      two = Constant<value = int64[1] {2}>() shape = Shape(x) most = Max(shape, wanted) more = Sub(most, shape)
      left = Div(more, two) right = Sub(more, left) pads = Concat<axis = 0>(left, right) p = Pad(x, pads)
      padded = Shape(p) rest = Sub(padded, wanted) first = Div(rest, two) last = Add(first, wanted)
      y = Slice(p, first, last) })";
  const char* range = R"(<ir_version: 9, opset_import: ["" : 17]>
    g (float end) => (float[5] y) {
      zero = Constant<value = float {0}>() one = Constant<value = float {1}>() r = Range(zero, end, one)
      y = Cos(r) })";
  const char* resize = R"(<ir_version: 9, opset_import: ["" : 19]>
    g (float[1,2,9,7] x, float[4] scales) => (float[1,2,4,7] y) {
      y = Resize<mode = "linear", antialias = 1>(x, none, scales) })";
  const char* upsample = R"(<ir_version: 4, opset_import: ["" : 9]>
    g (float[1,1,2,3] x, float[4] scales) => (float[1,1,4,9] y) { y = Upsample(x, scales) })";
  // What the model computes has a bound by the user only: a run beyond it writes nothing.
  const char* duration = R"(<ir_version: 9, opset_import: ["" : 17]>
    g (float[3] x) => (float[N] y) {
      sum = ReduceSum<keepdims = 1>(x) frames = Cast<to = 7>(sum) zero = Constant<value = int64 {0}>()
      one = Constant<value = int64 {1}>() last = Squeeze(frames) r = Range(zero, last, one)
      shape = Identity(frames) filled = ConstantOfShape<value = float[1] {2}>(shape)
      f = Cast<to = 1>(r) y = Add(f, filled) })";
  const std::vector<DimOption> at_most{{"frames", 1, 9}};
  static const std::vector<Case> all = {
      {"duration", duration, {{"x", reals({2, 3, 1.5f})}}, 0, at_most},
      {"longest duration", duration, {{"x", reals({2, 3, 4.5f})}}, 0, at_most},
      {"no duration", duration, {{"x", reals({2, 3, -5})}}, 0, at_most},
      {"too long a duration", duration, {{"x", reals({2, 3, 5})}}, 4, at_most},
      {"negative duration", duration, {{"x", reals({2, 3, -9})}}, 4, at_most},
      {"no number", duration, {{"x", reals({2, NAN, 1})}}, 0, at_most},
      {"block", col2im, {{"image", integers({4, 5})}, {"block", integers({1, 4})}}, 3},
      {"block 2x2", col2im, {{"image", integers({4, 5})}, {"block", integers({2, 2})}}},
      {"axis 2", dft, {{"axis", number(2)}}},
      {"axis -2", dft, {{"axis", number(-2)}}},
      {"axis with another extent", dft, {{"axis", number(1)}}, 3},
      {"axis of the parts", dft, {{"axis", number(3)}}, 5},
      {"axis of a half", inverse, {{"axis", number(1)}}},
      {"axis too short", inverse, {{"axis", number(0)}}, 3},
      {"frames", stft, {{"step", number(4)}, {"length", number(9)}}},
      {"frames of 8", stft, {{"step", number(4)}, {"length", number(8)}}, 3},
      {"frames beyond", stft, {{"step", number(4)}, {"length", number(80)}}, 3},
      {"mel", mel, {{"mels", number(4)}, {"length", number(17)}}},
      {"other mel", mel, {{"mels", number(5)}, {"length", number(17)}}, 3},
      {"crop", crop, {{"wanted", integers({4})}}},
      {"other crop", crop, {{"wanted", integers({5})}}, 3},
      {"range", range, {{"end", Tensor::scalar(4.5f)}}},
      {"long range", range, {{"end", Tensor::scalar(5.5f)}}, 4},
      {"short range", range, {{"end", Tensor::scalar(3.5f)}}, 3},
      {"antialiased", resize, {{"scales", reals({1, 1, 0.5f, 1})}}},
      {"least scale", resize, {{"scales", reals({1, 1, 0.4445f, 1})}}},
      {"smaller scale", resize, {{"scales", reals({1, 1, 0.4f, 1})}}, 3},
      {"upsample", upsample, {{"scales", reals({1, 1, 2, 3})}}},
  };
  return all;
}

TEST(OperandKernels, ComputeOrReturnAStatus) {
  GeneratedBatch batch;
  for (const Case& c : cases()) {
    ImportOptions options;
    options.dims = c.dims;
    Model m = import_model(without_none(parse_text(c.model)), {}, options);
    DataSet d;
    std::mt19937 random(5);
    for (const Value* v : m.graph->inputs) {
      const auto given = c.operands.find(v->name);
      d.inputs.push_back(given != c.operands.end() ? given->second
                                                   : Tensor(v->type.dtype, static_dims(v->type.shape)));
      if (given == c.operands.end()) random_fill(d.inputs.back(), random);
    }
    d.status = c.status;
    run_passes(*m.graph, {});
    batch.add(c.name, std::move(m.graph), {std::move(d)});
  }
  for (const char* name : {"host", "aarch64"}) {
    const auto results = batch.run(target(name), {.together = 30});
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
}

}  // namespace
}  // namespace sinter
