// Import: an ONNX file becomes a Graph in the newest opset's form, with types and shapes.
//
// A model file is hostile until proved otherwise: every number in it is checked before it is believed, and
// whatever is wrong or not supported ends in one Refusal that lists all problems, each naming its node. The
// result holds: no model-local functions, no Constant nodes, no opset older than the newest, only nodes that
// lead to an output, typed Values, and symbols for the dims that stay free.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace onnx {
class GraphProto;
class ModelProto;
}  // namespace onnx

namespace sinter {

// One --dim option. NAME=4 is lo == hi, "NAME<=8" is lo 1 and at_most, NAME=64..640:32 has step 32 (values
// are multiples of step). NAME is a dim_param, INPUT@AXIS, or an INPUT whose elements decide extents
// (INPUT[K]: one of them).
struct DimOption {
  std::string name;
  int64_t lo = 1, hi = 1, step = 1;
  bool at_most = false;  // nothing is said of the least: elements may be 0, as may extents of caches
  // NAME<=MAX: all that can be said of what the data decide.
  bool is_bound() const { return lo <= 1 && step == 1; }
};

struct ImportOptions {
  std::vector<DimOption> dims;
  std::vector<std::string> only;            // --only: the outputs that are wanted; empty: all
  std::map<std::string, Tensor> constants;  // --const: these inputs become constants
  // Inputs that are states and have an initializer: inputs all the same, which a stream begins with it.
  std::set<std::string> carried;
  std::map<std::string, Tensor> initial;  // --state-init: what the states of these inputs begin with
  int64_t max_trips = INT64_MAX;          // --max-trips: of each Loop that only the run ends
  // Actual shapes of inputs (run, verify): give the free dims that no DimOption names.
  std::map<std::string, std::vector<int64_t>> input_shapes;
  // Operators of the user (--custom-ops), asked for what ops/ doesn't have. Null: none.
  std::function<const Op*(const std::string& domain, const std::string& name)> custom_op;
};

struct Model {
  std::unique_ptr<Graph> graph;
  std::string sha256;  // of the file's bytes, 64 hex digits; empty where there was no file
  std::string producer;
  int64_t ir_version = 0;
  // Outputs that are indices where the model has text, or columns where it has maps with text as keys: the
  // texts, by the output's name.
  std::map<std::string, std::vector<std::string>> class_names;
  std::vector<std::string> warnings;  // what the model says of itself and isn't so, but harms nothing
};

// The newest opset of the domain "" that is understood; older ones are rewritten to it.
constexpr int64_t kNewestOpset = 28;
constexpr int64_t kNewestIr = 14;  // of ModelProto.ir_version

// The names that are read on the way to these outputs: inputs that are not among them go with --only.
std::set<std::string> needed_names(const onnx::GraphProto& graph, const std::vector<std::string>& outputs);

// Throws Refusal with all problems found, and nothing else.
Model import_model(const std::filesystem::path& file, const ImportOptions& options = {});
// The same for a model in memory. `folder` is where external data may lie; empty: such data are refused.
Model import_model(const onnx::ModelProto& model, const std::filesystem::path& folder,
                   const ImportOptions& options = {});

// A file with one TensorProto, as in ONNX's test data. Refuse what isn't one, or can't be read or written.
// 4- and 2-bit types are packed in the file and one element a byte in the Tensor.
Tensor read_tensor_pb(const std::filesystem::path& file);
void write_tensor_pb(const std::filesystem::path& file, const Tensor& tensor, const std::string& name);

}  // namespace sinter
