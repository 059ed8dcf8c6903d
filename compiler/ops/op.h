// Op: the one place where an operator is defined, a plain struct of functions, listed in ops.def.
//
// Everything sinter knows about what an operator means is in its file of ops/ and reaches the rest through
// this struct. Import has already rewritten older opsets to the newest meaning (import/upgrade.cpp), so no op
// knows about versions: attributes that became inputs are inputs here.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"

namespace sinter {

// What is known of one input or output while types and shapes are inferred.
struct Fact {
  bool present = false;  // an absent optional input is not
  TensorType type;
  const Tensor* data = nullptr;  // contents, where constant
  std::vector<Dim>
      elements;  // symbolic contents of an integer tensor of at most kMaxElements, row-major; else empty
  static constexpr int64_t kMaxElements = 64;
  std::optional<Range> range;  // of all elements: see Value::range
};

// The arguments of Op::infer: reads `in`, writes `out` (present is preset for wanted outputs).
struct Inference {
  const Node& node;
  std::vector<Fact> in, out;
  Symbols& symbols;
  std::vector<Check>& checks;

  bool has(size_t i) const { return i < in.size() && in[i].present; }
  const Shape& shape(size_t i) const { return in[i].type.shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(in[i].type.shape.size()); }
  DType dtype(size_t i) const { return in[i].type.dtype; }
  const Attributes& attributes() const { return node.attributes; }
  // Contents of input i as Dims: from constants or data propagation. Empty optional where unknown.
  std::optional<std::vector<Dim>> elements(size_t i) const;
  // Contents as integers, all known; nullopt otherwise.
  std::optional<std::vector<int64_t>> integers(size_t i) const;
  // Attribute `name` as an axis of a tensor of `rank`, negative ones counted from the end; refuses what's
  // outside.
  int64_t axis(const std::string& name, int64_t fallback, int64_t rank) const;
  int64_t check_axis(int64_t axis, int64_t rank) const;
  // a == b must hold: proved, or refused where it can't, or left as a Check for run time. Returns the better
  // known.
  Dim require_equal(const Dim& a, const Dim& b, const std::string& what);
  Shape broadcast(const std::vector<const Shape*>& shapes);  // ONNX's multidirectional rule, with Checks
  void same(size_t out_index, size_t in_index) { out[out_index].type = in[in_index].type; }
  void set(size_t out_index, DType dtype, Shape shape);
  // A count that only the data decide, in [0, hi]: a fresh symbol named after the node.
  Dim count(const std::string& what, const Dim& at_most);
  // An extent that the contents of an operand decide, in [0, at_most]: as count(), but what the model
  // declares of its outputs may fix it (Symbol::learnable). The node's kernel reports it where it is a
  // symbol, and returns kDimError where it is a number and comes out otherwise.
  Dim operand_extent(const std::string& what, int64_t at_most = Interval::kUnbounded);
  [[noreturn]] void fail(const std::string& why) const;  // a Refusal that names the node
  void require(bool condition, const std::string& why) const {
    if (!condition) fail(why);
  }
};

// The arguments of Op::eval. `in` holds empty Tensors for absent inputs. `out[i]` is allocated (zero-filled)
// where inference with the actual inputs gave a static shape; for data-dependent outputs the op makes the
// Tensor itself.
struct Evaluation {
  const Node& node;
  std::vector<Tensor> in, out;
  const Attributes& attributes() const { return node.attributes; }
  bool has(size_t i) const { return i < in.size() && static_cast<bool>(in[i]); }
  [[noreturn]] void fail(const std::string& why) const;
};

class Lowering;

struct Op {
  const char* name;         // as in ONNX: "Softmax"; our own ones begin with a small letter: "elementwise"
  const char* domain = "";  // "" is ai.onnx; "sinter" ours; else as models spell it: "com.microsoft"
  int min_inputs = 1, max_inputs = 1;    // max -1: any number
  int min_outputs = 1, max_outputs = 1;  // max -1: any number
  // Types and shapes of the outputs (and `elements` of small integer tensors) from what is known of the
  // inputs. Refuses what the op does not allow, so that eval and generated code need not check again.
  void (*infer)(Inference&) = nullptr;
  // What it means: plain and obvious, sharing no code with the kernels. Folds constants and is the oracle.
  void (*eval)(Evaluation&) = nullptr;
  // Elementwise ops only: the same meaning as an expression of one element; args[i] is input i (null:
  // absent), already of the types that infer let through. eval and infer may then be left null.
  ExprPtr (*expr)(const Node&, const std::vector<ExprPtr>& args) = nullptr;
  // The op as simpler ones (ops/lowering.h), for ops without infer and eval: both follow from it, and pass
  // lower_ops replaces such nodes before all other passes.
  void (*lower)(Lowering&) = nullptr;
  // The output is the input's bytes under another shape (Reshape, Squeeze …): no code, no memory.
  bool is_view = false;
  // Not the same result for the same inputs (random ops): never folded or merged.
  bool impure = false;
  const char* note = "";  // for the support table: what isn't supported
};

const Op* find_op(std::string_view domain, std::string_view name);  // null where unknown
const std::vector<const Op*>& all_ops();                            // by name

// The contents of a value, where they are known: a constant's, or elements that are all numbers.
std::optional<Tensor> known_contents(const Value&);
// Runs `infer` on every node in order and stores types, elements and checks in the graph's Values. All
// problems in one Refusal. Declared types that contradict are refused; `declared` more static than inferred
// become Checks.
void infer(Graph&);
void infer(Graph&, Node&);  // one node whose inputs are typed
// Ranges of the outputs from those of the inputs (ops/ranges.cpp), once their types are inferred.
void propagate_ranges(Inference&);
// Where an operand of `n` decides extents and its elements are unknown but lie in a range: makes them symbols
// that a `reveal` reads when the model runs (ops/shapes/reveal.cpp). Adds nodes before `n`, which is in `g`
// with its inputs typed.
void reveal_operands(Graph& g, Node& n);
// Where operand `i` of `n` decides extents and can't be revealed: the value, it or one that it is made of,
// whose bound by the user (--dim VALUE<=MAX) would do; null where none would.
const Value* to_be_bounded(const Node& n, size_t i);

// The values of `graph` for these inputs (in order of graph.inputs): its outputs. With `trace`, called for
// every Value as it is computed; what it leaves in the Tensor is what the rest is computed from. Checks input
// dtypes and shapes against the graph's types.
using Trace = std::function<void(const Value&, Tensor&)>;
std::vector<Tensor> evaluate(const Graph& graph, const std::vector<Tensor>& inputs,
                             const Trace& trace = nullptr);
// One node alone: infer with the actual inputs, eval, epilogue. Refused where an output has more than
// `most_elements`, before it is allocated.
std::vector<Tensor> evaluate(const Node& node, std::vector<Tensor> inputs,
                             int64_t most_elements = Interval::kUnbounded);

}  // namespace sinter
