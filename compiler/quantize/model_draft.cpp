#include "quantize/model_draft.h"

#include "import/importer.h"
#include "import/tensor_proto.h"

namespace sinter::quantize {

onnx::AttributeProto integer_attribute(const char* name, int64_t value) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INT);
  a.set_i(value);
  return a;
}

void remove_unread(onnx::GraphProto& g) {
  std::set<std::string> read;
  for (const auto& o : g.output()) read.insert(o.name());
  for (const auto& n : g.node()) {
    read.insert(n.input().begin(), n.input().end());
    for (const auto& a : n.attribute())
      if (a.has_g()) read.merge(free_names(a.g()));
  }
  google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
  for (auto& t : *g.mutable_initializer())
    if (read.count(t.name())) kept.Add()->Swap(&t);
  g.mutable_initializer()->Swap(&kept);
}

ModelDraft::ModelDraft(const onnx::ModelProto& from) : proto_(from) {
  proto_.mutable_graph()->clear_node();
  for (const auto& n : from.graph().node()) {
    names_.insert(n.output().begin(), n.output().end());
    names_.insert(n.name());
  }
  for (const auto& i : from.graph().initializer()) names_.insert(i.name());
  for (const auto& i : from.graph().input()) names_.insert(i.name());
}

std::string ModelDraft::fresh(const std::string& name) {
  std::string n = name;
  for (int k = 1; !names_.insert(n).second; ++k) n = name + "_" + std::to_string(k);
  return n;
}

std::string ModelDraft::constant(const Tensor& t, const std::string& name) {
  std::string n = fresh(name);
  *proto_.mutable_graph()->add_initializer() = tensor_proto(t, n);
  return n;
}

onnx::ModelProto ModelDraft::finish() {
  remove_unread(*proto_.mutable_graph());
  return std::move(proto_);
}

}  // namespace sinter::quantize
