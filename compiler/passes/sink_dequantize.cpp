// sink_dequantize: what only moves or compares elements works on bytes where its result is quantised by the
// steps that its operands were dequantised by.
//
// quantize(f(dequantize(x))) is f(x) then for Reshape and its kin, Transpose, Concat and MaxPool: dequantize
// grows with x, and quantize undoes it (steps of 0 to 255 are far apart in float32). For targets with dot
// products of bytes, where the layers around them keep bytes; others keep floats between their layers.
//
// What Concat joins may have been dequantised by other steps: such an operand is quantised by its result's
// before it is joined, which makes the same bytes, and is done by the layer that computes it.
#include "passes/passes.h"
#include "passes/quantised.h"

namespace sinter {
namespace {

bool moves_elements(const Node& n) {
  for (const char* op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "MaxPool"})
    if (is_op(&n, op)) return n.outputs.size() == 1 || !n.has_output(1);
  return false;
}

class Sinking {
 public:
  Sinking(Graph& g, const Order&) : g_(g) {}

  // n: a `quantize`.
  bool fuse(Node* n) {
    const auto steps = quantized_steps(n);
    if (!steps) return false;
    Node* moved = n->inputs[0]->producer;
    if (Value* x = bytes_of(n->inputs[0], n, *steps)) return bypass(g_, n->outputs[0], x);
    if (!moved || g_.is_output(n->inputs[0]) || n->inputs[0]->users.size() != 1) return false;
    const bool joins = is_op(moved, "Concat");
    if (!joins && !moves_elements(*moved)) return false;
    const size_t operands = joins ? moved->inputs.size() : 1;
    for (size_t i = 0; i < operands; ++i)
      if (joins ? !dequantized_steps(moved->inputs[i]->producer) : !bytes_of(moved->inputs[i], n, *steps))
        return false;
    std::vector<Value*> inputs = moved->inputs;
    for (size_t i = 0; i < operands; ++i) {
      Value* bytes = bytes_of(moved->inputs[i], n, *steps);
      inputs[i] = bytes ? bytes : quantized(moved->inputs[i], n);
    }
    Value* y = g_.add_value(moved->name + "/bytes", {});
    Node* made = g_.add_node(moved->op, moved->name, std::move(inputs), {y}, n);
    made->attributes = moved->attributes;
    made->sources = moved->sources;
    add_sources(*made, *n);
    infer(g_, *made);
    y->type.shape = n->outputs[0]->type.shape;
    return bypass(g_, n->outputs[0], y);
  }

 private:
  // The bytes that v was dequantised from, of n's type, by those steps; null where it wasn't.
  static Value* bytes_of(const Value* v, const Node* n, const Steps& steps) {
    const auto s = dequantized_steps(v->producer);
    if (!s || !(*s == steps) || v->producer->inputs[0]->type.dtype != n->outputs[0]->type.dtype)
      return nullptr;
    return v->producer->inputs[0];
  }

  // v, quantised as n does it.
  Value* quantized(Value* v, Node* n) {
    Value* y = g_.add_value(v->name + "/bytes", {});
    std::vector<Value*> inputs = n->inputs;
    inputs[0] = v;
    Node* made = g_.add_node(n->op, n->name, std::move(inputs), {y}, n);
    made->attributes = n->attributes;
    made->sources = n->sources;
    infer(g_, *made);
    return y;
  }

  Graph& g_;
};

}  // namespace

bool sink_dequantize(Graph& g, const PassOptions& options) {
  return options.byte_products && !options.exact && fuse_each<Sinking>(g);
}

}  // namespace sinter
