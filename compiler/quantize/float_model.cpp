#include "quantize/float_model.h"

#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <cmath>

#include "import/importer.h"
#include "import/tensor_proto.h"
#include "ir/error.h"
#include "quantize/model_draft.h"

namespace sinter::quantize {
namespace {

constexpr int64_t kLeastOpset = 13;

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, const char* name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

// A Constant node's tensor; empty where it holds text or a sparse tensor.
Tensor tensor_of(const onnx::NodeProto& constant, const std::filesystem::path& folder) {
  if (const auto* a = find_attribute(constant, "value"); a && a->t().data_type() != onnx::TensorProto::STRING)
    return parse_tensor(a->t(), folder);
  if (const auto* a = find_attribute(constant, "value_float")) return Tensor::scalar(a->f());
  if (const auto* a = find_attribute(constant, "value_int")) return Tensor::scalar(int64_t{a->i()});
  if (const auto* a = find_attribute(constant, "value_ints"))
    return Tensor::of(std::vector<int64_t>(a->ints().begin(), a->ints().end()));
  if (const auto* a = find_attribute(constant, "value_floats"))
    return Tensor::of(std::vector<float>(a->floats().begin(), a->floats().end()), {a->floats_size()});
  return {};
}

}  // namespace

int64_t attribute(const onnx::NodeProto& node, const char* name, int64_t otherwise) {
  const auto* a = find_attribute(node, name);
  return a ? a->i() : otherwise;
}
float attribute(const onnx::NodeProto& node, const char* name, float otherwise) {
  const auto* a = find_attribute(node, name);
  return a ? a->f() : otherwise;
}
std::string attribute(const onnx::NodeProto& node, const char* name, const std::string& otherwise) {
  const auto* a = find_attribute(node, name);
  return a ? a->s() : otherwise;
}
std::string label_of(const onnx::NodeProto& node) {
  return node.name().empty() && node.output_size() ? node.output(0) : node.name();
}

FloatModel::FloatModel(const std::filesystem::path& file, const ImportOptions& options)
    : proto_(parse_model(file)) {
  if (!proto_.has_graph()) refuse("not an ONNX model: it has no graph");
  constants_are_no_inputs();
  for (const auto& o : proto_.opset_import())
    if (normal_domain(o.domain()).empty() && o.version() < kLeastOpset) {
      declare_shapes(*import_model(file, options).graph);
      bring_to_opset(kLeastOpset);
      break;
    }
  take_constants_in(std::filesystem::absolute(file).parent_path());
  index();
  fold_batch_norms();
}

// Old exporters list every initializer among the inputs, as IR version 3 asked for. They are constants here,
// as they are for import.
void FloatModel::constants_are_no_inputs() {
  std::set<std::string> constants;
  for (const auto& i : graph().initializer()) constants.insert(i.name());
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  for (auto& i : *proto_.mutable_graph()->mutable_input())
    if (!constants.count(i.name())) inputs.Add()->Swap(&i);
  proto_.mutable_graph()->mutable_input()->Swap(&inputs);
  proto_.set_ir_version(std::max<int64_t>(proto_.ir_version(), 7));
}

// What import infers of the tensors: the converter asks for ranks, and its own inference gives up sooner.
void FloatModel::declare_shapes(const Graph& inferred) {
  proto_.mutable_graph()->clear_value_info();
  for (const auto& v : inferred.values) {
    if (v->data || !v->producer) continue;
    auto& info = *proto_.mutable_graph()->add_value_info();
    info.set_name(v->name);
    auto& t = *info.mutable_type()->mutable_tensor_type();
    t.set_elem_type(onnx_of(v->type.dtype));
    t.mutable_shape();
    for (const Dim& d : v->type.shape) {
      auto& dim = *t.mutable_shape()->add_dim();
      if (d.is_static()) dim.set_dim_value(d.value());
    }
  }
}

void FloatModel::bring_to_opset(int64_t least) {
  try {
    proto_ = onnx::version_conversion::ConvertVersion(proto_, static_cast<int>(least));
  } catch (const std::exception& e) {
    refuse(
        "before opset {} scales of channels are not known, and the model can't be brought there: {}; "
        "export it with that opset",
        least, e.what());
  }
}

void FloatModel::take_constants_in(const std::filesystem::path& folder) {
  onnx::GraphProto& g = *proto_.mutable_graph();
  for (auto& i : *g.mutable_initializer())
    if (i.data_location() == onnx::TensorProto::EXTERNAL) i = tensor_proto(parse_tensor(i, folder), i.name());
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (auto& n : *g.mutable_node()) {
    const Tensor t = n.op_type() == "Constant" && n.output_size() == 1 ? tensor_of(n, folder) : Tensor();
    if (t)
      *g.add_initializer() = tensor_proto(t, n.output(0));
    else
      nodes.Add()->Swap(&n);
  }
  g.mutable_node()->Swap(&nodes);
}

void FloatModel::index() {
  constants_.clear(), producers_.clear(), consumers_.clear(), captured_.clear();
  for (int i = 0; i < graph().initializer_size(); ++i) constants_[graph().initializer(i).name()] = i;
  for (const auto& o : graph().output()) captured_.insert(o.name());
  for (int i = 0; i < graph().node_size(); ++i) {
    for (const std::string& o : node(i).output()) producers_[o] = i;
    for (const std::string& x : std::set<std::string>(node(i).input().begin(), node(i).input().end()))
      consumers_[x].push_back(i);
    for (const auto& a : node(i).attribute())
      if (a.has_g()) captured_.merge(free_names(a.g()));
  }
}

Tensor FloatModel::constant(const std::string& name) const { return parse_tensor(initializer(name)); }
const onnx::TensorProto& FloatModel::initializer(const std::string& name) const {
  return graph().initializer(constants_.at(name));
}

int FloatModel::producer(const std::string& name) const {
  const auto it = producers_.find(name);
  return it == producers_.end() ? -1 : it->second;
}

std::vector<int> FloatModel::consumers(const std::string& name) const {
  const auto it = consumers_.find(name);
  return it == consumers_.end() ? std::vector<int>() : it->second;
}

bool FloatModel::has_one_consumer(const std::string& name) const {
  return consumers(name).size() == 1 && !captured_.count(name);
}

FloatModel FloatModel::with_constants(const std::map<std::pair<int, int>, Tensor>& constants) const {
  FloatModel m = *this;
  onnx::GraphProto& g = *m.proto_.mutable_graph();
  std::set<std::string> names;
  for (const auto& [name, at] : constants_) names.insert(name);
  for (const auto& [name, at] : producers_) names.insert(name);
  for (const auto& i : g.input()) names.insert(i.name());
  for (const auto& [place, tensor] : constants) {
    onnx::NodeProto& n = *g.mutable_node(place.first);
    const std::string old = n.input(place.second);
    std::string name = old + "_equalised";
    for (int k = 1; !names.insert(name).second; ++k) name = old + "_equalised_" + std::to_string(k);
    *g.add_initializer() = tensor_proto(tensor, name);
    n.set_input(place.second, name);
  }
  remove_unread(g);
  m.index();
  return m;
}

// Conv(x, w, b) and BatchNormalization(_, scale, bias, mean, variance) are Conv(x, w * f, (b - mean) * f +
// bias) with f = scale / sqrt(variance + epsilon).
bool FloatModel::fold_batch_norm(int conv, int norm) {
  onnx::GraphProto& g = *proto_.mutable_graph();
  const onnx::NodeProto c = node(conv), n = node(norm);
  if (c.op_type() != "Conv" || !is_constant(c.input(1)) || attribute(n, "training_mode", int64_t{0}) ||
      n.input_size() != 5 || (c.input_size() > 2 && !c.input(2).empty() && !is_constant(c.input(2))))
    return false;
  for (int k = 1; k < 5; ++k)
    if (!is_constant(n.input(k)) || constant(n.input(k)).dtype() != DType::kF32) return false;
  Tensor w = constant(c.input(1));
  const Tensor scale = constant(n.input(1)), shift = constant(n.input(2)), mean = constant(n.input(3)),
               variance = constant(n.input(4));
  if (w.dtype() != DType::kF32 || w.rank() < 3 || scale.size() != w.dim(0)) return false;
  const Tensor old = c.input_size() > 2 && !c.input(2).empty() ? constant(c.input(2)) : Tensor();
  const double epsilon = double{attribute(n, "epsilon", 1e-5F)};
  Tensor weights(DType::kF32, w.shape()), bias(DType::kF32, {w.dim(0)});
  const int64_t row = w.dim(0) ? w.size() / w.dim(0) : 0;
  for (int64_t o = 0; o < w.dim(0); ++o) {
    const double f = scale.real(o) / std::sqrt(variance.real(o) + epsilon);
    for (int64_t k = o * row; k < (o + 1) * row; ++k) weights.set_real(k, w.real(k) * f);
    bias.set_real(o, ((old ? old.real(o) : 0) - mean.real(o)) * f + shift.real(o));
  }
  const std::string& base = n.output(0);
  *g.add_initializer() = tensor_proto(weights, base + "_folded_weight");
  *g.add_initializer() = tensor_proto(bias, base + "_folded_bias");
  onnx::NodeProto& folded = *g.mutable_node(conv);
  folded.clear_input();
  for (const std::string& x : {c.input(0), base + "_folded_weight", base + "_folded_bias"})
    folded.add_input(x);
  folded.set_output(0, base);
  g.mutable_node()->DeleteSubrange(norm, 1);
  return true;
}

void FloatModel::fold_batch_norms() {
  for (int i = 0; i < graph().node_size(); ++i) {
    const onnx::NodeProto& n = node(i);
    if (n.op_type() != "BatchNormalization" || n.output_size() != 1 || !has_one_consumer(n.input(0)))
      continue;
    const int conv = producer(n.input(0));
    if (conv >= 0 && fold_batch_norm(conv, i)) index(), --i;
  }
  remove_unread(*proto_.mutable_graph());  // what was folded
  index();
}

}  // namespace sinter::quantize
