#include "quantize/write.h"

#include <algorithm>
#include <cmath>

#include "import/tensor_proto.h"

namespace sinter::quantize {
namespace {

class Writer {
 public:
  Writer(const FloatModel& model, const Layers& layers, const Twin& twin, const Setting& setting)
      : model_(model), layers_(layers), twin_(twin), setting_(setting), proto_(model.proto()) {
    proto_.mutable_graph()->clear_node();
    for (const auto& n : model.graph().node()) {
      names_.insert(n.output().begin(), n.output().end());
      names_.insert(n.name());
    }
    for (const auto& i : model.graph().initializer()) names_.insert(i.name());
    for (const auto& i : model.graph().input()) names_.insert(i.name());
  }

  onnx::ModelProto write() {
    for (const auto& i : model_.graph().input()) round(i.name());
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      onnx::NodeProto n = model_.node(i);
      for (const Layer& l : layers_.layers)
        if (l.node == i) read_bytes(l, n);
      const std::vector<std::string> outputs(n.output().begin(), n.output().end());
      *proto_.mutable_graph()->add_node() = std::move(n);
      for (const std::string& o : outputs) round(o);
    }
    remove_unread();
    return std::move(proto_);
  }

 private:
  std::string fresh(const std::string& name) {
    std::string n = name;
    for (int k = 1; !names_.insert(n).second; ++k) n = name + "_" + std::to_string(k);
    return n;
  }
  std::string constant(const Tensor& t, const std::string& name) {
    const std::string n = fresh(name);
    *proto_.mutable_graph()->add_initializer() = tensor_proto(t, n);
    return n;
  }
  std::string add_node(const char* op, const std::vector<std::string>& inputs, const std::string& output,
                       int axis = -1) {
    onnx::NodeProto& n = *proto_.mutable_graph()->add_node();
    n.set_op_type(op);
    n.set_name(fresh(output + "_node"));
    for (const std::string& i : inputs) n.add_input(i);
    n.add_output(fresh(output));
    if (axis >= 0) {
      auto& a = *n.add_attribute();
      a.set_name("axis"), a.set_type(onnx::AttributeProto::INT), a.set_i(axis);
    }
    return n.output(0);
  }

  const Steps& steps_of_tensor(const std::string& t) const {
    return setting_.steps[static_cast<size_t>(layers_.site_of(t))];
  }
  bool is_bytes(const std::string& t) const { return setting_.bytes.count(t) && setting_.bytes.at(t); }

  void round(const std::string& t) {
    if (!is_bytes(t)) return;
    const Steps& s = steps_of_tensor(t);
    const std::string scale = constant(Tensor::scalar(s.scale), t + "_scale");
    Tensor z(DType::kU8, {});
    z.set_integer(0, s.zero);
    const std::string zero = constant(z, t + "_zero_point");
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
    n.set_input(l.weights,
                add_node("DequantizeLinear",
                         {constant(w.bytes, name + "_quantized"), constant(w.scales, name + "_scale"),
                          constant(zeros, name + "_zero_point")},
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
      n.set_input(2, constant(floats, name + "_corrected"));
      return;
    }
    n.set_input(2, add_node("DequantizeLinear",
                            {constant(integers, name + "_quantized"), constant(scales, name + "_scale"),
                             constant(Tensor(DType::kI32, {channels}), name + "_zero_point")},
                            name + "_dequantized", 0));
  }

  void remove_unread() {
    std::set<std::string> read;
    const onnx::GraphProto& g = proto_.graph();
    for (const auto& n : g.node()) read.insert(n.input().begin(), n.input().end());
    onnx::GraphProto& out = *proto_.mutable_graph();
    google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
    for (auto& t : *out.mutable_initializer()) {
      const bool weights = std::any_of(layers_.layers.begin(), layers_.layers.end(), [&](const Layer& l) {
        const auto& in = model_.node(l.node).input();
        return l.weights >= 0 && (t.name() == in[l.weights] || (in.size() > 2 && t.name() == in[2]));
      });
      if (read.count(t.name()) || !weights) kept.Add()->Swap(&t);
    }
    out.mutable_initializer()->Swap(&kept);
    out.clear_value_info();
  }

  const FloatModel& model_;
  const Layers& layers_;
  const Twin& twin_;
  const Setting& setting_;
  onnx::ModelProto proto_;
  std::set<std::string> names_;
  std::map<std::string, std::string> rounded_;  // tensor -> what its bytes stand for
};

}  // namespace

onnx::ModelProto quantised_model(const FloatModel& model, const Layers& layers, const Twin& twin,
                                 const Setting& setting) {
  return Writer(model, layers, twin, setting).write();
}

}  // namespace sinter::quantize
