// The few moves that passes make on a graph beyond Graph's own, and the questions they ask of it.
//
// Passes never erase nodes while they walk: they take a snapshot, leave what is replaced without users and
// call Graph::erase_unused() at the end.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ops/op.h"

namespace sinter {

// Positions of the nodes of one graph (not of its bodies).
class Order {
 public:
  explicit Order(const Graph& g);
  bool has(const Node* n) const { return at_.count(n) != 0; }
  size_t of(const Node* n) const { return at_.at(n); }
  void set(const Node* n, size_t position) { at_[n] = position; }
  void remove(const Node* n) { at_.erase(n); }

 private:
  std::unordered_map<const Node*, size_t> at_;
};

std::vector<Node*> snapshot(const Graph& g);

// Uses of y become uses of x, which holds the same. A graph output keeps its name: then x's producer makes y
// instead. False, with nothing changed, where neither can be (both names must stay, or the types differ).
bool bypass(Graph& g, Value* y, Value* x);

// from->outputs[j] becomes to->outputs[i]; the value that `to` made before has no producer any more.
void take_output(Node* to, size_t i, Node* from, size_t j);

// Infers the node, whose first output keeps `type`: the same extents, as the rest of the graph spells them.
void infer_as(Graph& g, Node& n, const TensorType& type);
void add_sources(Node& to, const Node& from);             // behind those of `to`, each once
void move_before(Graph& g, Node* n, const Node* before);  // in Graph::nodes
void move_to_end(Graph& g, Node* n);
Node* node_after(const Graph& g, const Node* n);  // the next one, null at the end

// One node in place of a match that ends in `last`: it makes last's first output, which keeps its type, and
// has the sources of all parts.
Node* fuse_into(Graph& g, const Op* op, Node* last, std::vector<Value*> inputs, Attributes attributes,
                const std::vector<Node*>& parts);
// The only user of n's only output, in this graph; null where there are more or it is a graph output.
Node* only_user(const Graph& g, const Order& order, const Node* n);
// Matcher(g, order).fuse(n) for every node as the graph has them now; whether any did.
template <class Matcher>
bool fuse_each(Graph& g) {
  bool changed = false;
  const Order order(g);
  Matcher matcher(g, order);
  for (Node* n : snapshot(g)) changed |= matcher.fuse(n);
  g.erase_unused();
  return changed;
}

bool is_op(const Node* n, std::string_view name);  // of ONNX's own domain, without an epilogue
Value* constant_integers(Graph& g, const std::string& name, const std::vector<int64_t>& values);
std::optional<std::vector<int64_t>> integers_of(const Value* v);  // contents of a constant; null otherwise
// The one number a constant tensor of a float or integer type repeats; no value where it isn't one.
std::optional<double> uniform_of(const Value* v);
// Proved equal, or required equal by one of the graph's checks.
bool same_extent(const Graph& g, const Dim& a, const Dim& b);
bool same_shape(const Graph& g, const Shape& a, const Shape& b);
// What the shapes broadcast to, where that needs no check; null otherwise.
std::optional<Shape> broadcast_of(const Graph& g, const std::vector<const Shape*>& shapes);
// A Reshape target (0 copies, one -1) that takes `from` to `to` for all values of the symbols; null: none.
std::optional<std::vector<int64_t>> reshape_target(const Shape& from, const Shape& to);

// Value::perm of a permuted copy of v (its axis i is v's axis perm[i]).
std::vector<int64_t> composed_perm(const Value& v, const std::vector<int64_t>& perm);
std::vector<int64_t> inverse(const std::vector<int64_t>& perm);
bool is_identity(const std::vector<int64_t>& perm);
std::vector<int64_t> transpose_perm(const Node& transpose);  // with ONNX's default filled in
// The permutation only moves axes of extent 1: the bytes stay where they are.
bool is_view(const std::vector<int64_t>& perm, const Shape& from);
Shape permuted(const Shape& s, const std::vector<int64_t>& perm);

}  // namespace sinter
