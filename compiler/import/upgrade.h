// Upgrade: nodes of any older opset, rewritten to the newest one's form.
//
// One table (upgrade.cpp), rows {op, last opset with the old form, rewrite}, applied in order, so that a
// rewrite only knows the step to the next form. A rewrite changes the Draft in place and may put nodes before
// and behind it.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace onnx {
class GraphProto;
}

namespace sinter {

// A node that isn't in the graph yet.
struct Draft {
  std::string op, domain, name;
  std::vector<Value*> inputs, outputs;  // null: absent or unwanted
  Attributes attributes;
  std::vector<std::pair<std::string, const onnx::GraphProto*>> graphs;  // graph attributes by name

  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  void set_input(size_t i, Value* v) {
    if (i >= inputs.size()) inputs.resize(i + 1, nullptr);
    inputs[i] = v;
  }
};

class Rewrite {
 public:
  Rewrite(Draft& d, int64_t version, Graph& g, std::function<void(Draft&)> emitter)
      : node(d), opset(version), graph_(g), emit_(std::move(emitter)) {}

  Draft& node;
  const int64_t opset;       // of the model
  std::vector<Draft> after;  // put behind the node, in order

  const TensorType* type(const Value* v) const;  // null where it isn't known (yet)
  Value* constant(Tensor data, const std::string& suffix);
  Value* constant(const std::vector<int64_t>& values, const std::string& suffix);
  // A scalar of the type of `like`.
  Value* constant_like(float value, Value* like, const std::string& suffix);
  // A node before this one; its single output.
  Value* before(const std::string& op, std::vector<Value*> inputs, Attributes attributes = {});
  // The node's output i becomes a new Value, to be turned into the old one by a node behind: returns {new,
  // old}.
  std::pair<Value*, Value*> divert(size_t i);
  // A Value that a node of `after` will make.
  Value* fresh(const std::string& suffix);
  void then(const std::string& op, std::vector<Value*> inputs, Value* output, Attributes attributes = {});
  // Attribute `name` moves to input i as an int64 list (or a scalar); nothing where it is absent.
  void attribute_to_input(const std::string& name, size_t i);
  [[noreturn]] void fail(const std::string& why) const;

 private:
  Graph& graph_;
  std::function<void(Draft&)> emit_;
};

void upgrade(Rewrite& rewrite);
// Sum and its like of very many operands as several nodes (long_operands.cpp).
void shorten_operands(Rewrite& rewrite);
// A node of domain com.microsoft as ONNX operators (contrib.cpp); false where there is no row for it.
bool lower_contrib(Rewrite& rewrite);
// Some of its rows: contrib_moves.cpp, contrib_lstm.cpp.
bool lower_contrib_moves(Rewrite& rewrite);
bool lower_contrib_lstm(Rewrite& rewrite);
std::vector<const char*> contrib_ops();  // the names of all rows

}  // namespace sinter
