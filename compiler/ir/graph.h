// Graph: typed Values, the Nodes that make them, nothing else.
//
// Invariants (Graph::verify): nodes are in topological order; every Value has one producer (a node of the
// same graph, or none for inputs and constants); users lists each use once per occurrence; names of Values
// are unique within a graph and its bodies. A body (If, Loop, Scan) uses Values of its own only: what it
// takes from around it comes in through inputs of the node (its captures) and of the body. See
// ops/control/bodies.h.
//
// Fused layers are Nodes too: `epilogue` is the scalar expression that follows the anchor's result element by
// element; inputs from anchor_inputs on are its operands. So every graph, fused or not, can be evaluated.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dim.h"
#include "ir/expr.h"
#include "ir/tensor.h"

namespace sinter {

struct Op;
struct Node;
struct Graph;

struct TensorType {
  DType dtype = DType::kUndefined;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};
std::string text(const TensorType&);  // "float32[N,3,224,224]"

// Where the elements of a tensor of numbers lie, both ends included. NaN lies in every range.
struct Range {
  double lo = 0, hi = 0;
  bool operator==(const Range&) const = default;
};

struct Value {
  std::string name;  // as in the model; made up (and unique) for values of our own
  TensorType type;
  Node* producer = nullptr;    // null: graph input, body input or constant
  std::vector<Node*> users;    // one entry per use as an input
  std::optional<Tensor> data;  // set for weights and whatever has been folded
  std::vector<Dim> elements;  // symbolic contents of a small integer tensor (row-major), if known; else empty
  // What is known of all elements, where anything is. Exact arithmetic found it, the run rounds: whoever
  // relies on it checks it when the model runs.
  std::optional<Range> range;
  // This value is the model's value `origin` with its axes permuted: dim i here is dim perm[i] there. Empty
  // origin: no such value in the model (passes made it). Empty perm: not permuted.
  std::string origin;
  std::vector<int64_t> perm;
  // Of an input that is a state (plan/state.h): what a stream begins with; absent: zeros.
  std::optional<Tensor> initial;
  bool is_constant() const { return data.has_value(); }
};

using Attribute = std::variant<int64_t, float, std::string, Tensor, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>>;

// A node's attributes. The typed getters refuse an attribute of another type, naming it.
class Attributes {
 public:
  bool has(const std::string& name) const { return map_.count(name) != 0; }
  int64_t integer(const std::string& name, int64_t fallback) const;
  float real(const std::string& name, float fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::vector<int64_t> integers(const std::string& name, std::vector<int64_t> fallback = {}) const;
  std::vector<float> reals(const std::string& name, std::vector<float> fallback = {}) const;
  std::vector<std::string> texts(const std::string& name) const;
  const Tensor* tensor(const std::string& name) const;  // null where absent
  void set(const std::string& name, Attribute value) { map_[name] = std::move(value); }
  void erase(const std::string& name) { map_.erase(name); }
  const std::map<std::string, Attribute>& all() const { return map_; }

 private:
  std::map<std::string, Attribute> map_;
};

// What subnormal floats are for a layer (passes/allow_flush.cpp): numbers, zeros or numbers as it comes, or
// zeros because that is faster.
enum class Subnormals { kNumbers, kEither, kZeros };

// What a node does in halves (passes/compute_in_halves.cpp): its floats, operands and results, are float16
// then, but for constants in front of the epilogue's, which are rounded where they are packed.
enum class Halves {
  kNone,      // float16 tensors mean what the model says of them
  kStored,    // they are stored so; computed in floats
  kComputed,  // arithmetic and short sums are of halves, too
};

// How a node's arithmetic may be rearranged, as the passes allow_*.cpp find it. Whether it pays, the planner
// decides (plan/decision.h).
struct Freedom {
  int64_t winograd = 0;        // the most outputs of a Winograd tile along an axis; 0: not by Winograd
  bool strassen = false;       // by Strassen's products of quarters
  bool tile_matrices = false;  // on tile matrices of bfloat16, each float as a sum of three
  Subnormals subnormals = Subnormals::kNumbers;
  Halves halves = Halves::kNone;
  double half_error =
      -1;  // what halves cost or would have cost, of the largest result; below 0: not measured
};

struct Node {
  const Op* op = nullptr;
  std::string name;             // the ONNX node's own name, kept for ever; made from its output's where empty
  std::vector<Value*> inputs;   // null: an optional input that is absent
  std::vector<Value*> outputs;  // null: an optional output that nobody wants
  Attributes attributes;
  Freedom freedom;
  std::vector<std::unique_ptr<Graph>> bodies;  // If: {then, else}; Loop, Scan: {body}
  ExprPtr epilogue;                            // null: none
  size_t anchor_inputs = 0;          // inputs before the epilogue's operands; all of them where there is none
  std::vector<std::string> sources;  // the ONNX nodes inside, as `"/enc/Conv_3" (Conv)`, in order

  const Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* input(size_t i) { return i < inputs.size() ? inputs[i] : nullptr; }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i]; }
};

// A required equality that inference could not prove: checked when the generated code runs.
struct Check {
  Dim a, b;
  bool or_one = false;  // broadcasting: one of them may be 1 as well
  std::string why;      // `"/Add_3" (Add): axis 2`
};

// Element `element` of a graph input has this value in every run: what is declared of the outputs says so.
// The generated code compares.
struct ElementCheck {
  size_t input = 0;  // of Graph::inputs
  size_t element = 0;
  int64_t value = 0;
};

struct Graph {
  std::string name;
  std::shared_ptr<Symbols> symbols = std::make_shared<Symbols>();
  std::vector<std::unique_ptr<Value>> values;
  std::vector<std::unique_ptr<Node>> nodes;  // topologically sorted
  std::vector<Value*> inputs, outputs;
  std::vector<Check> checks;
  std::vector<ElementCheck> element_checks;
  Graph* parent = nullptr;  // the graph around a body
  // A branch of an If that no input reaches, since its types contradict each other: how. Empty: it can run.
  std::string unreachable;

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Value* add_value(const std::string& name, TensorType type);  // a taken name gets a number behind it
  Value* add_constant(const std::string& name, Tensor data);
  // A node behind all others, or before `before`. Registers uses and producers.
  Node* add_node(const Op* op, const std::string& name, std::vector<Value*> inputs,
                 std::vector<Value*> outputs, Node* before = nullptr);
  void set_input(Node* node, size_t i, Value* value);  // also grows the list; value may be null
  void remove_input(Node* node, size_t i);
  // Every use of `from` as node input (bodies too) and graph output becomes a use of `to`.
  void replace_uses(Value* from, Value* to);
  void erase(Node* node);  // its outputs must be unused; they go as well
  void erase_unused();     // dead nodes (with all bodies) and values
  bool is_output(const Value* v) const;
  bool has_uses(const Value* v) const { return !v->users.empty() || is_output(v); }
  void sort();          // restores topological order after surgery
  void verify() const;  // the invariants above, or a bug
  std::unique_ptr<Graph> clone() const;

 private:
  std::map<std::string, int> taken_;  // names in use -> next suffix
};

std::string text(const Graph&);  // for people and goldens; see docs/design.md
std::string text(const Node&);
std::string label(const Node& node);  // `"/enc/Conv_3" (Conv)`
[[noreturn]] void refuse_node(const Node& node, const std::string& why);

}  // namespace sinter
