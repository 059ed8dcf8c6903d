// quantise_frames: the same bytes from the frame at once, and what must stay.
#include "passes/quantise_frames.h"

#include "ops/vision/frame.h"
#include "passes/passes.h"
#include "passes/proof.h"

namespace sinter {
namespace {

struct Quantised {
  Graph g;
  // A frame of 6 x 4 to planes, quantised; `also_output`: the floats are wanted as well.
  Quantised(DType to, double step, int64_t zero, bool also_output = false) {
    Value* frame = g.add_value("frame", {DType::kU8, {4, 20}});
    FrameRule r;
    r.format = PixelFormat::kBgr;
    r.width = 6, r.height = 4, r.to_width = 3, r.to_height = 2;
    r.factor = {1, 0.5f, 0.25f}, r.offset = {-20, 0, 3}, r.border = {0, 0, 0};
    Attributes a;
    set_frame_rule(a, r);
    Value* picture = node("sinter", "frame_to_tensor", {frame}, a);
    Attributes perm;
    perm.set("perm", std::vector<int64_t>{0, 3, 1, 2});
    Value* planes = node("", "Transpose", {picture}, perm);
    Tensor point(to, {});
    point.set_integer(0, zero);
    Value* q = node("", "QuantizeLinear",
                    {planes, g.add_constant("scale", Tensor::scalar(static_cast<float>(step))),
                     g.add_constant("zero", point)},
                    {});
    g.inputs = {frame}, g.outputs = {node("", "Identity", {q}, {})};
    if (also_output) g.outputs.push_back(planes);
  }
  Value* node(const char* domain, const char* op, std::vector<Value*> in, const Attributes& a) {
    Value* out = g.add_value(op, {});
    Node* n = g.add_node(find_op(domain, op), op, std::move(in), {out});
    n->attributes = a;
    infer(g, *n);
    return out;
  }
  int64_t count(std::string_view op) const {
    return std::count_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n->op->name == op; });
  }
};

TEST(QuantiseFrames, TheSameBytes) {
  Tensor frame(DType::kU8, {4, 20});
  for (int64_t i = 0; i < frame.size(); ++i) frame.set_integer(i, i * 37 % 256);
  for (const DType t : {DType::kU8, DType::kI8})
    for (const double step : {0.25, 1.0, 2.0}) {
      Quantised q(t, step, t == DType::kU8 ? 7 : -5);
      const Tensor want = evaluate(q.g, {frame})[0];
      lower_ops(q.g, {});
      fold_constants(q.g, {});
      EXPECT_EQ(q.count("quantize"), 1);
      EXPECT_TRUE(quantise_frames(q.g, {}));
      q.g.verify();
      EXPECT_EQ(q.count("quantize"), 0);
      EXPECT_TRUE(evaluate(q.g, {frame})[0].same_bits(want)) << name_of(t) << " " << step;
      EXPECT_FALSE(quantise_frames(q.g, {}));
    }
}

TEST(QuantiseFrames, WhatStays) {
  Quantised wanted(DType::kU8, 0.5, 0, true);
  EXPECT_FALSE(quantise_frames(wanted.g, {}));
  Quantised exact(DType::kU8, 0.5, 0);
  PassOptions options;
  options.exact = true;
  EXPECT_FALSE(quantise_frames(exact.g, options));
  EXPECT_EQ(exact.count("QuantizeLinear"), 1);
}

}  // namespace
}  // namespace sinter
