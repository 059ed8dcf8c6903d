// ModelDraft: a model that is written anew, node by node, beside the constants of another; and small pieces
// that all who write messages of ONNX here need.
#pragma once
#include <onnx/onnx_pb.h>

#include <set>
#include <string>

#include "ir/tensor.h"

namespace sinter::quantize {

onnx::AttributeProto integer_attribute(const char* name, int64_t value);

// Takes the initializers out that no node, body or output of the graph reads.
void remove_unread(onnx::GraphProto&);

class ModelDraft {
 public:
  // All of `from` but its nodes.
  explicit ModelDraft(const onnx::ModelProto& from);

  onnx::ModelProto& proto() { return proto_; }
  void add(const onnx::NodeProto& n) { *proto_.mutable_graph()->add_node() = n; }
  // The name, or one like it that neither `from` nor the draft has.
  std::string fresh(const std::string& name);
  // Adds an initializer, and returns its name.
  std::string constant(const Tensor& t, const std::string& name);
  // The model, without the constants that are read no more.
  onnx::ModelProto finish();

 private:
  onnx::ModelProto proto_;
  std::set<std::string> names_;
};

}  // namespace sinter::quantize
