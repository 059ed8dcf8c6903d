// Importer: the state of one import, shared by model.cpp (inputs, outputs, dims), nodes.cpp (nodes,
// bodies), functions.cpp (model-local functions) and sequences.cpp. Internal to import/.
//
// Nodes are imported in topological order and inferred at once, so that upgrading an old node can ask for the
// ranks of its inputs. A node that is refused leaves its outputs without a type (dtype kUndefined); what
// depends on it is still imported, for its own problems, but not inferred.
#pragma once
#include <onnx/onnx_pb.h>

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx.h"
#include "import/upgrade.h"
#include "import/weights.h"
#include "ops/op.h"

namespace sinter {

using Opsets = std::map<std::string, int64_t>;
using Bindings = std::map<std::string, onnx::AttributeProto>;
template <class T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

// Names that mean something at one place of the model: the main graph, a body, or an inlined function.
struct Scope {
  Graph* graph = nullptr;              // where its nodes go
  Scope* parent = nullptr;             // names not found here are looked up there; null in functions
  std::string prefix;                  // "call/" for what comes from a function's body
  const Opsets* opsets = nullptr;      // domain -> version
  const Bindings* bindings = nullptr;  // values of a function's attributes; null outside
  int depth = 0;                       // bodies and functions around this one
  std::unordered_map<std::string, Value*> values;  // null: an absent argument of a function
  std::unordered_map<std::string, const onnx::TensorProto*> initializers;
  std::unordered_map<std::string, const onnx::SparseTensorProto*> sparse_initializers;
  std::unordered_set<std::string> awaited;  // in `values`, and some node is still to make it
};

// What declared shapes tell of operands that are run-time inputs (operands.cpp).
struct Learned {
  std::map<std::string, std::map<size_t, int64_t>> elements;  // by input's name
  std::map<std::string, int64_t> limits;                      // capacities of counts, by symbol's name
  bool final = false;  // nothing more to learn: declared extents are taken, and checked when the model runs
};

class Importer {
 public:
  Importer(const onnx::ModelProto& model, Weights& weights, const ImportOptions& options,
           const Learned& learned = {});
  std::unique_ptr<Graph> run();
  const std::vector<std::string>& warnings() const { return warnings_; }
  // After run(): what the numbers of outputs stand for that the model declares as text.
  const std::map<std::string, std::vector<std::string>>& class_names() const { return class_names_; }
  // After run(): adds to `learned` what this import has found; whether another import would use it.
  bool learn(Learned& learned) const;

 private:
  static constexpr int kMaxDepth = 32;
  static constexpr int64_t kMaxNodes = 1'000'000;
  static constexpr size_t kMaxProblems = 100;
  static constexpr int64_t kFoldLimit = 4096;                            // elements
  static constexpr double kStepsOfElement = 64, kStepsOfCharacter = 32;  // of inference: lists and names

  // model.cpp
  void read_opsets();
  void read_functions();
  void read_dim_options();
  void select_outputs();
  void add_inputs(Scope& scope);
  void add_input(Scope& scope, const onnx::ValueInfoProto& info);
  void add_initial(const Scope& scope, const std::string& name);
  Dim input_dim(const onnx::ValueInfoProto& info, int axis);
  const DimOption* option_for(const std::string& param, const std::string& place);
  Dim free_dim(const std::string& name, const std::string& origin, const DimOption* option,
               const int64_t* actual);
  void bound_output(const onnx::ValueInfoProto& info, const Value& v);
  void check_options();
  void add_outputs(Scope& scope);
  void check_output(const onnx::ValueInfoProto& info, const Value& value);
  void tell_stale();

  // empty_extents.cpp
  void find_empty_dims();

  // operands.cpp
  void find_extent_operands();
  const DimOption* value_option(const std::string& name);
  Value* reveal(Value* input);
  void read_declarations();
  void adopt(Graph& graph, Node& node);

  // nodes.cpp
  void declare_initializers(Scope& scope, const onnx::GraphProto& graph);
  void import_nodes(Scope& scope, const Repeated<onnx::NodeProto>& nodes,
                    const std::vector<std::string>& wanted);
  void declare_outputs(Scope& scope, const Repeated<onnx::NodeProto>& nodes, const std::vector<int>& order,
                       const std::vector<std::string>& wanted);
  void import_node(Scope& scope, const onnx::NodeProto& node);
  void import_constant(Scope& scope, const onnx::NodeProto& node);
  Value* lookup(Scope& scope, const std::string& name);
  Value* own(Scope& scope, const std::string& name);  // declared in this scope itself; null where it isn't
  const onnx::AttributeProto* resolve(const Scope& scope, const onnx::AttributeProto& attribute) const;
  Draft draft(Scope& scope, const onnx::NodeProto& node);
  void emit(Scope& scope, Draft& draft);
  void inline_branch(Scope& scope, const onnx::GraphProto& branch, const Draft& draft);
  void copy(Scope& scope, Scope& from, const std::string& name, const std::string& node_name, Value* to);
  const Op* op_for(const Draft& draft) const;
  std::unique_ptr<Graph> import_body(Scope& scope, const onnx::GraphProto& body, const Draft& draft);
  bool try_infer(Graph& graph, Node& node);
  void fold(Graph& graph, Node& node);
  void settle(Graph& graph, Node& node);

  // functions.cpp
  const onnx::FunctionProto* function_for(const std::string& domain, const std::string& name,
                                          const std::string& overload) const;
  void inline_function(Scope& scope, const onnx::NodeProto& call, const onnx::FunctionProto& function);
  void bind_attributes(const Scope& scope, const onnx::NodeProto& call, const onnx::FunctionProto& function,
                       Bindings& bindings);

  // sequences.cpp
  bool expand_sequence(Scope& scope, const Draft& draft);  // whether the node was about sequences
  bool expand_optional(Scope& scope, const Draft& draft);
  void split_to_sequence(Scope& scope, const Draft& draft);
  std::vector<Value*> split_by(Scope& scope, const Draft& draft, Value* sizes, size_t pieces, int64_t axis);
  void split_unknown(Scope& scope, const Draft& draft, int64_t axis);
  Value* element_at(Scope& scope, const Draft& draft, const std::vector<Value*>& list);
  Value* piece(Scope& scope, const Draft& draft, const std::string& op, std::vector<Value*> inputs);

  // text_labels.cpp
  Tensor text_constant(const onnx::TensorProto& t, std::vector<std::string>& names);
  void replace_text(Draft& draft);

  // stacked.cpp
  bool expand_stacked(Scope& scope, const Draft& draft);
  bool expand_growing(const Scope& scope, const Draft& draft);
  bool expand_map(Scope& scope, const Draft& draft);
  void join_stacked(Scope& scope, const Draft& draft, Value* rows);
  void mark_growing(const Draft& draft, const Graph& body);
  void stack_carried(Scope& scope, Draft& draft, Graph& body);
  Value* step(Scope& scope, const Draft& draft, const std::string& op, std::vector<Value*> inputs,
              const Attributes& attributes = {}, Value* out = nullptr);

  // flex_attention.cpp
  void expand_flex_attention(Scope& scope, Rewrite& rewrite);
  Value* inline_modifier(Scope& scope, const onnx::GraphProto& graph, Value* input);

  void problem(std::string text);
  void problems(const Refusal& refusal, const std::string& label);

  const onnx::ModelProto& model_;
  Weights& weights_;
  const ImportOptions& options_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::string> problems_;
  size_t problem_count_ = 0;
  Opsets opsets_;
  std::map<std::string, const onnx::FunctionProto*> functions_;  // "domain:name:overload"
  std::map<const onnx::FunctionProto*, Opsets> function_opsets_;
  std::vector<const onnx::FunctionProto*> calls_;  // those being inlined now
  std::map<std::string, const DimOption*> dim_options_;
  std::set<std::string> dim_options_used_;
  std::vector<std::string> wanted_;          // the outputs' names, as --only leaves them
  std::set<std::string> empty_dims_;         // names of extents that may be 0
  std::set<std::string> dim_params_;         // of all inputs
  std::map<std::string, Dim> named_dims_;    // dim_param -> its one Dim
  std::vector<std::string> free_dim_names_;  // for messages
  // An input leaves an extent open. Whoever opened it has often left the extents of the sample elsewhere (a
  // batch of 1): only another rank is worth a warning then.
  bool has_open_inputs_ = false;
  std::vector<std::string> warnings_;
  std::vector<const Value*> stale_;  // declared with a shape that they don't have
  Learned learned_;
  std::map<std::string, int64_t> capacities_;  // that outputs' bounds give counts, by symbol's name
  std::set<std::string> extent_operands_;      // inputs whose elements decide extents
  std::set<std::string> signed_operands_;      // those of them that may hold negative numbers
  struct Revealed {
    std::string input;
    size_t element = 0;
  };
  std::map<SymbolPtr, Revealed> revealed_;
  std::map<std::string, Shape> declared_;  // of the main graph's values, where static; -1: an open extent
  std::vector<std::pair<Shape, Shape>> typed_;  // inferred, declared: for learn()
  // What stands for a sequence: a Value without type or producer, and the elements.
  std::map<const Value*, std::vector<Value*>> sequences_;
  // Sequences of elements of one shape whose number isn't known: a tensor of their elements as rows.
  std::map<const Value*, Value*> stacked_;
  std::map<const Value*, Value*> list_rows_;  // the same of sequences in `sequences_`, where one was made
  struct Growing {
    const Graph* body = nullptr;
    const Value* from = nullptr;  // its input
    std::vector<Value*> rows;     // inserted in this iteration
  };
  std::map<const Value*, Growing> growing_;  // sequences that a Loop carries, inside its body
  std::set<const Value*> empty_;  // what stands for an empty optional: a Value without type or producer
  std::map<std::string, std::vector<std::string>> class_names_;
  std::map<const Value*, std::vector<std::string>> texts_;  // indices into names where the model has text
  std::set<const Value*> maps_;  // outputs of ZipMap: tensors where the model declares maps
  int64_t node_count_ = 0;
  double folded_bytes_ = 0;
  int speculative_ = 0;     // > 0: inside a body, whose types only its node's infer can decide
  bool speculate_ = false;  // infer there too, as far as it goes: only old opsets' upgrades ask for types
};

Scope inside(Scope& outer,
             Graph* graph);  // of a body: names, opsets and attributes of `outer`; nodes go to `graph`
// The message in a file, which is read in pieces: its bytes are never beside it. Refuses broken ones.
onnx::ModelProto parse_model(const std::filesystem::path& file);
std::string normal_domain(const std::string& domain);  // "ai.onnx" -> ""
// Refuses operators of ONNX's own domain that are younger than `opset`, and attributes that no version has.
void check_schema(const onnx::NodeProto& n, int64_t opset);
std::string node_name(const onnx::NodeProto& n);  // its own, else its first output's
std::string label_of(const std::string& name, const std::string& op);
// The order in which those nodes run that lead to `wanted`; refuses cycles and names with two makers.
std::vector<int> live_order(const Repeated<onnx::NodeProto>& nodes, const std::vector<std::string>& wanted);
// Names that `graph` takes from around it.
std::set<std::string> free_names(const onnx::GraphProto& graph);
// Field `number` of a message that libonnx's older schema doesn't know, one string per occurrence.
std::vector<std::string> unknown_field(const google::protobuf::Message& message, int number);

}  // namespace sinter
