#include "quantize/twin.h"

#include <algorithm>

#include "import/importer.h"
#include "import/tensor_proto.h"
#include "quantize/model_draft.h"

namespace sinter::quantize {
namespace {

int64_t opset_of(const onnx::ModelProto& m) {
  int64_t opset = 13;
  for (const auto& o : m.opset_import())
    if (normal_domain(o.domain()).empty()) opset = o.version();
  return opset;
}

onnx::AttributeProto integers(const char* name, const std::vector<int64_t>& values) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INTS);
  for (const int64_t v : values) a.add_ints(v);
  return a;
}

void declare(onnx::ValueInfoProto& v, const std::string& name, const std::vector<int64_t>& shape) {
  v.set_name(name);
  auto& t = *v.mutable_type()->mutable_tensor_type();
  t.set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t d : shape) t.mutable_shape()->add_dim()->set_dim_value(d);
}

}  // namespace

Twin::Twin(const FloatModel& model, const Layers& layers)
    : proto_(model.proto()), opset_(opset_of(model.proto())), layers_(layers) {
  onnx::GraphProto& g = *proto_.mutable_graph();
  for (bool taken = true; taken;) {  // no name of the model's begins like ours
    taken = false;
    for (const auto& n : g.node())
      for (const std::string& o : n.output()) taken |= o.rfind(prefix_, 0) == 0;
    for (const auto& i : g.initializer()) taken |= i.name().rfind(prefix_, 0) == 0;
    for (const auto& i : g.input()) taken |= i.name().rfind(prefix_, 0) == 0;
    if (taken) prefix_ = "_" + prefix_;
  }
  for (const Site& s : layers_.sites) tensors_.insert(tensors_.end(), s.tensors.begin(), s.tensors.end());
  for (const Layer& l : layers_.layers) {
    if (l.kind != Layer::Kind::kProduct) continue;
    products_.push_back(l.node);
    const Tensor w = model.constant(model.node(l.node).input(l.weights));
    weights_[l.node] = byte_weights(w, l.axis);
    const bool grouped = l.axis < 0;  // ConvTranspose: [in, out / group, ...]
    channels_[l.node] =
        grouped ? w.dim(1) * attribute(model.node(l.node), "group", int64_t{1}) : w.dim(l.axis);
  }
  const size_t flags = tensors_.size() + products_.size();
  const std::vector<std::string> numbers =
      split_input("choices", std::vector<int64_t>(flags + 2 * layers_.sites.size(), 1));
  std::vector<int64_t> sizes;
  for (const int p : products_) sizes.push_back(channels_[p]);
  const std::vector<std::string> corrections = split_input("corrections", sizes);

  size_t at = 0;
  for (size_t s = 0; s < layers_.sites.size(); ++s)
    for (const std::string& t : layers_.sites[s].tensors)
      round_tensor(t, numbers[at++], numbers[flags + 2 * s], numbers[flags + 2 * s + 1]);
  for (const Layer& l : layers_.layers)
    for (const int k : l.bytes)
      g.mutable_node(l.node)->set_input(k, read_as_.at(model.node(l.node).input(k)));
  size_t product = 0;
  for (const Layer& l : layers_.layers)
    if (l.kind == Layer::Kind::kProduct) {
      add_product(model, l, numbers[at++], corrections[product]);
      ++product;
    }
}

std::string Twin::fresh(const std::string& what) { return prefix_ + what + std::to_string(count_++); }

std::string Twin::constant(const Tensor& t) {
  std::string name = fresh("constant");
  *proto_.mutable_graph()->add_initializer() = tensor_proto(t, name);
  return name;
}

std::string Twin::add_node(const char* op, const std::vector<std::string>& inputs) {
  onnx::NodeProto& n = *proto_.mutable_graph()->add_node();
  n.set_op_type(op);
  n.set_name(fresh(op));
  for (const std::string& i : inputs) n.add_input(i);
  n.add_output(n.name());
  return n.output(0);
}

std::vector<std::string> Twin::split_input(const std::string& name, const std::vector<int64_t>& sizes) {
  int64_t all = 0;
  for (const int64_t s : sizes) all += s;
  const std::string input = prefix_ + name;
  declare(*proto_.mutable_graph()->add_input(), input, {all});
  if (sizes.size() == 1) return {input};
  add_node("Split", {input, constant(Tensor::of(sizes))});
  onnx::NodeProto& split = *proto_.mutable_graph()->mutable_node()->rbegin();
  split.clear_output();
  std::vector<std::string> pieces;
  for (size_t k = 0; k < sizes.size(); ++k) {
    pieces.push_back(fresh(name));
    split.add_output(pieces.back());
  }
  return pieces;
}

void Twin::add_output(const std::string& name, int64_t rank) {
  onnx::ValueInfoProto& v = *proto_.mutable_graph()->add_output();
  v.set_name(name);
  auto& t = *v.mutable_type()->mutable_tensor_type();
  t.set_elem_type(onnx::TensorProto::FLOAT);
  for (int64_t d = 0; d < rank; ++d) t.mutable_shape()->add_dim();
}

// Round(x / scale) + zero, kept to a byte, and back; read instead of x where the flag is set.
void Twin::round_tensor(const std::string& x, const std::string& flag, const std::string& scale,
                        const std::string& zero) {
  const std::string steps = add_node("Add", {add_node("Round", {add_node("Div", {x, scale})}), zero});
  const std::string byte =
      add_node("Clip", {steps, constant(Tensor::scalar(0.0F)), constant(Tensor::scalar(255.0F))});
  const std::string rounded = add_node("Mul", {add_node("Sub", {byte, zero}), scale});
  const std::string set = add_node("Greater", {flag, constant(Tensor::scalar(0.5F))});
  read_as_[x] = add_node("Where", {set, rounded, x});
  values_[x] = add_node("Identity", {x});
  proto_.mutable_graph()->add_output()->set_name(values_[x]);
  proto_.mutable_graph()->mutable_output()->rbegin()->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
}

// The mean over all axes but the channels'.
std::string Twin::mean_of_channels(const std::string& x, const Layer& l, int64_t rank) {
  std::string rows = x;
  std::vector<int64_t> axes = {0};
  const std::string& op = proto_.graph().node(l.node).op_type();
  if (op == "MatMul") {
    rows = add_node("Reshape", {x, constant(Tensor::of({-1, channels_.at(l.node)}))});
  } else if (op != "Gemm") {
    for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  }
  std::vector<std::string> inputs = {rows};
  if (opset_ >= 18) inputs.push_back(constant(Tensor::of(axes)));
  std::string mean = add_node("ReduceMean", inputs);
  onnx::NodeProto& n = *proto_.mutable_graph()->mutable_node()->rbegin();
  if (opset_ < 18) *n.add_attribute() = integers("axes", axes);
  *n.add_attribute() = integer_attribute("keepdims", 0);
  return mean;
}

void Twin::add_product(const FloatModel& model, const Layer& l, const std::string& flag,
                       const std::string& correction) {
  const Tensor w = model.constant(model.node(l.node).input(l.weights));
  Tensor difference(DType::kF32, w.shape());
  const Tensor& values = weights_.at(l.node).values;
  for (int64_t i = 0; i < w.size(); ++i) difference.set_real(i, values.real(i) - w.real(i));
  onnx::NodeProto share = proto_.graph().node(l.node);
  while (share.input_size() > 2) share.mutable_input()->RemoveLast();
  share.set_input(l.weights, constant(difference));
  share.set_name(fresh("product"));
  share.set_output(0, share.name());
  *proto_.mutable_graph()->add_node() = share;

  const bool matrix = share.op_type() == "MatMul" || share.op_type() == "Gemm";
  std::string shift = correction;
  if (!matrix) {
    std::vector<int64_t> shape(static_cast<size_t>(w.rank()), 1);
    shape[1] = channels_.at(l.node);
    shift = add_node("Reshape", {correction, constant(Tensor::of(shape))});
  }
  const std::string result = model.node(l.node).output(0), floats = fresh("floats");
  proto_.mutable_graph()->mutable_node(l.node)->set_output(0, floats);
  const std::string sum = add_node("Add", {floats, add_node("Mul", {share.output(0), flag})});
  add_node("Add", {sum, shift});
  proto_.mutable_graph()->mutable_node()->rbegin()->set_output(0, result);
  means_[l.node] = mean_of_channels(share.output(0), l, w.rank());
  add_output(means_[l.node], 1);
}

std::vector<Tensor> Twin::inputs(const Setting& s) const {
  std::vector<float> choices, corrections;
  for (const std::string& t : tensors_) choices.push_back(s.bytes.count(t) && s.bytes.at(t) ? 1 : 0);
  for (const int p : products_) choices.push_back(s.products.count(p) && s.products.at(p) ? 1 : 0);
  for (const Steps& site : s.steps)
    choices.insert(choices.end(), {site.scale, static_cast<float>(site.zero)});
  for (const int p : products_) {
    const auto c = s.corrections.find(p);
    if (c == s.corrections.end())
      corrections.insert(corrections.end(), static_cast<size_t>(channels_.at(p)), 0.0F);
    else
      corrections.insert(corrections.end(), c->second.begin(), c->second.end());
  }
  const auto size = [](const std::vector<float>& v) {
    return std::vector<int64_t>{static_cast<int64_t>(v.size())};
  };
  return {Tensor::of(choices, size(choices)), Tensor::of(corrections, size(corrections))};
}

}  // namespace sinter::quantize
