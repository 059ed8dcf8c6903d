// FloatModel: a model's message in the form in which layers can be chosen, measured and rewritten.
//
// `sinter quantize` writes ONNX, so it works on the message and not on a Graph: whatever it doesn't quantise
// stays as the exporter wrote it. What holds after reading: constants of the main graph are initializers
// whose contents are inside the message; a BatchNormalization behind a Conv of its own is part of that Conv;
// the opset is at least 13, with which DequantizeLinear has scales for each channel.
#pragma once
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "import/onnx.h"
#include "ir/tensor.h"

namespace sinter::quantize {

class FloatModel {
 public:
  // Refuses what is no model, what import refuses to read, and opsets that can't be brought to 13.
  explicit FloatModel(const std::filesystem::path& file, const ImportOptions& options = {});

  const onnx::ModelProto& proto() const { return proto_; }
  const onnx::GraphProto& graph() const { return proto_.graph(); }
  const onnx::NodeProto& node(int i) const { return proto_.graph().node(i); }

  bool is_constant(const std::string& name) const { return constants_.count(name) != 0; }
  // A constant's contents; must be one.
  Tensor constant(const std::string& name) const;
  const onnx::TensorProto& initializer(const std::string& name) const;  // its message
  // The node that makes a tensor; -1 for inputs and constants.
  int producer(const std::string& name) const;
  // The nodes of the main graph that read it, each once.
  std::vector<int> consumers(const std::string& name) const;
  // Read by one node of the main graph and by nothing else: no output, not taken by a body.
  bool has_one_consumer(const std::string& name) const;
  // Is an output, or taken by a body.
  bool is_read_elsewhere(const std::string& name) const { return captured_.count(name) != 0; }

  // The same model in which inputs of nodes (by node and input) are these constants.
  FloatModel with_constants(const std::map<std::pair<int, int>, Tensor>& constants) const;

 private:
  void constants_are_no_inputs();
  void declare_shapes(const Graph& inferred);
  void bring_to_opset(int64_t least);
  void take_constants_in(const std::filesystem::path& folder);
  void fold_batch_norms();
  bool fold_batch_norm(int conv, int norm);
  void index();

  onnx::ModelProto proto_;
  std::map<std::string, int> constants_;  // index of the initializer
  std::map<std::string, int> producers_;
  std::map<std::string, std::vector<int>> consumers_;
  std::set<std::string> captured_;  // names that bodies read, and the graph's outputs
};

// An attribute of a node, or its default.
int64_t attribute(const onnx::NodeProto& node, const char* name, int64_t otherwise);
float attribute(const onnx::NodeProto& node, const char* name, float otherwise);
std::string attribute(const onnx::NodeProto& node, const char* name, const std::string& otherwise);
std::string label_of(const onnx::NodeProto& node);  // its name, else its first output's

}  // namespace sinter::quantize
