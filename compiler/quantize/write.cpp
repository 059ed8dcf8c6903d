#include "quantize/write.h"

#include <algorithm>
#include <cmath>

#include "quantize/model_draft.h"

namespace sinter::quantize {
namespace {

class Writer {
 public:
  Writer(const FloatModel& model, const Layers& layers, const Twin& twin, const Setting& setting)
      : model_(model), layers_(layers), twin_(twin), setting_(setting), draft_(model.proto()) {}

  onnx::ModelProto write() {
    for (const auto& i : model_.graph().input()) round(i.name());
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      onnx::NodeProto n = model_.node(i);
      for (const Layer& l : layers_.layers)
        if (l.node == i) read_bytes(l, n);
      const std::vector<std::string> outputs(n.output().begin(), n.output().end());
      draft_.add(n);
      for (const std::string& o : outputs) round(o);
    }
    draft_.proto().mutable_graph()->clear_value_info();
    return draft_.finish();
  }

 private:
  std::string add_node(const char* op, const std::vector<std::string>& inputs, const std::string& output,
                       int axis = -1) {
    onnx::NodeProto n;
    n.set_op_type(op);
    n.set_name(draft_.fresh(output + "_node"));
    for (const std::string& i : inputs) n.add_input(i);
    n.add_output(draft_.fresh(output));
    if (axis >= 0) *n.add_attribute() = integer_attribute("axis", axis);
    draft_.add(n);
    return n.output(0);
  }

  const Steps& steps_of_tensor(const std::string& t) const {
    return setting_.steps[static_cast<size_t>(layers_.site_of(t))];
  }
  bool is_bytes(const std::string& t) const { return setting_.bytes.count(t) && setting_.bytes.at(t); }

  void round(const std::string& t) {
    if (!is_bytes(t)) return;
    const Steps& s = steps_of_tensor(t);
    const std::string scale = draft_.constant(Tensor::scalar(s.scale), t + "_scale");
    Tensor z(DType::kU8, {});
    z.set_integer(0, s.zero);
    const std::string zero = draft_.constant(z, t + "_zero_point");
    const std::string bytes = add_node("QuantizeLinear", {t, scale, zero}, t + "_quantized");
    rounded_[t] = add_node("DequantizeLinear", {bytes, scale, zero}, t + "_dequantized");
  }

  void read_bytes(const Layer& l, onnx::NodeProto& n) {
    for (const int k : l.bytes)
      if (const auto it = rounded_.find(n.input(k)); it != rounded_.end()) n.set_input(k, it->second);
    if (l.kind != Layer::Kind::kProduct || !setting_.products.count(l.node)) return;
    const ByteWeights& w = twin_.weights().at(l.node);
    const std::string name = n.input(l.weights);
    const int axis = w.scales.rank() == 1 ? l.axis : -1;
    Tensor zeros(DType::kI8, w.scales.shape());
    n.set_input(l.weights, add_node("DequantizeLinear",
                                    {draft_.constant(w.bytes, name + "_quantized"),
                                     draft_.constant(w.scales, name + "_scale"),
                                     draft_.constant(zeros, name + "_zero_point")},
                                    name + "_dequantized", axis));
    if (n.op_type() != "MatMul") set_bias(l, w, n);
  }

  // The bias with its correction, as int32 in steps of the product: exact to a half of the smallest step.
  void set_bias(const Layer& l, const ByteWeights& w, onnx::NodeProto& n) {
    const bool given = n.input_size() > 2 && !n.input(2).empty();
    const auto correction = setting_.corrections.find(l.node);
    if (!given && correction == setting_.corrections.end()) return;
    Tensor old = given ? model_.constant(model_.node(l.node).input(2)) : Tensor();
    const int64_t channels = correction != setting_.corrections.end()
                                 ? static_cast<int64_t>(correction->second.size())
                                 : old.size();
    if (given && old.size() != channels) {  // of Gemm: one for all, or one for each element
      if (correction == setting_.corrections.end()) return;
      if (old.size() != 1) return;
      Tensor all(DType::kF32, {channels});
      for (int64_t c = 0; c < channels; ++c) all.set_real(c, old.real(0));
      old = all;
    }
    Tensor floats(DType::kF32, {channels}), integers(DType::kI32, {channels}),
        scales(DType::kF32, {channels});
    const double step = double{steps_of_tensor(model_.node(l.node).input(0)).scale};
    bool fits = true;
    for (int64_t c = 0; c < channels; ++c) {
      const double bias =
          (given ? old.real(c) : 0) +
          (correction != setting_.corrections.end() ? correction->second[static_cast<size_t>(c)] : 0);
      scales.set_real(c, step * w.scales.real(w.scales.rank() ? c : 0));
      const double q = std::nearbyint(bias / scales.real(c));
      fits = fits && std::abs(q) < 2147483647.0;
      floats.set_real(c, bias);
      if (fits) integers.set_integer(c, static_cast<int64_t>(q));
    }
    const std::string name = given ? n.input(2) : n.output(0) + "_bias";
    while (n.input_size() < 3) n.add_input("");
    if (!fits) {
      n.set_input(2, draft_.constant(floats, name + "_corrected"));
      return;
    }
    n.set_input(
        2, add_node("DequantizeLinear",
                    {draft_.constant(integers, name + "_quantized"), draft_.constant(scales, name + "_scale"),
                     draft_.constant(Tensor(DType::kI32, {channels}), name + "_zero_point")},
                    name + "_dequantized", 0));
  }

  const FloatModel& model_;
  const Layers& layers_;
  const Twin& twin_;
  const Setting& setting_;
  ModelDraft draft_;
  std::map<std::string, std::string> rounded_;  // tensor -> what its bytes stand for
};

}  // namespace

onnx::ModelProto quantised_model(const FloatModel& model, const Layers& layers, const Twin& twin,
                                 const Setting& setting) {
  return Writer(model, layers, twin, setting).write();
}

}  // namespace sinter::quantize
