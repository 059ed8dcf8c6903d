#include "passes/random_stream.h"

#include <algorithm>

#include "ops/control/bodies.h"
#include "ops/elementwise/random.h"
#include "ops/op.h"

namespace sinter {
namespace {

const TensorType kStream = {DType::kU64, {Dim(2)}};

bool draws(const Graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const auto& n) {
    return is_random(*n) ||
           std::any_of(n->bodies.begin(), n->bodies.end(), [](const auto& body) { return draws(*body); });
  });
}

bool draws(const Node& n) {
  return std::any_of(n.bodies.begin(), n.bodies.end(), [](const auto& body) { return draws(*body); });
}

// The stream behind a run or an iteration.
Value* advanced(Graph& g, Value* stream) {
  Value* one =
      g.add_constant(stream->name + "/one", Tensor::of(std::vector<int64_t>{0, 1}).converted(DType::kU64));
  Value* next = g.add_value(stream->name + "/next", {});
  infer(g, *g.add_node(find_op("", "Add"), next->name, {stream, one}, {next}));
  return next;
}

class Streams {
 public:
  void thread(Graph& g, Value* stream) {
    std::vector<Node*> nodes;
    for (const auto& n : g.nodes) nodes.push_back(n.get());
    for (Node* n : nodes) {
      if (is_random(*n)) {
        n->attributes.set("stream", count_++);
        g.set_input(n, stream_input(*n), stream);
      } else if (draws(*n) && n->op->name == std::string_view("If")) {
        thread_branches(g, *n, stream);
      } else if (draws(*n)) {
        thread_iterations(g, *n, stream);
      }
    }
  }

 private:
  void thread_branches(Graph& g, Node& n, Value* stream) {
    g.set_input(&n, n.inputs.size(), stream);
    for (const auto& body : n.bodies) {
      body->inputs.push_back(body->add_value(stream->name, kStream));
      thread(*body, body->inputs.back());
    }
  }

  // One more carried value, behind those that there are.
  void thread_iterations(Graph& g, Node& n, Value* stream) {
    const LoopForm f = loop_form(n);
    const auto at = [](size_t i) { return static_cast<std::ptrdiff_t>(i); };
    Value* own = g.add_value(n.name + "/stream", kStream);
    own->origin = own->name;
    Node* split = g.add_node(find_op("sinter", "random_stream"), own->name, {stream}, {own}, &n);
    split->attributes.set("stream", count_++);
    const size_t input = f.first + f.states;
    // Inputs shift by one: the list grows at its end and is filled from there.
    const std::vector<Value*> behind(n.inputs.begin() + at(input), n.inputs.end());
    for (size_t i = behind.size(); i-- > 0;) g.set_input(&n, input + 1 + i, behind[i]);
    g.set_input(&n, input, own);
    Value* last = g.add_value(n.name + "/stream/last", kStream);
    last->producer = &n;
    n.outputs.insert(n.outputs.begin() + at(f.states), last);
    Graph& body = *n.bodies[0];
    Value* in = body.add_value(own->name, kStream);
    body.inputs.insert(body.inputs.begin() + at(input), in);
    thread(body, in);
    body.outputs.insert(body.outputs.begin() + at(f.body_output(f.states)), advanced(body, in));
  }

  int64_t count_ = 0;
};

}  // namespace

bool draw_from_stream(Graph& g) {
  if (!draws(g)) return false;
  Value* stream = g.add_value("random", kStream);
  stream->origin = stream->name;
  g.inputs.push_back(stream);
  Streams().thread(g, stream);
  Value* next = advanced(g, stream);
  next->origin = next->name;
  g.outputs.push_back(next);
  return true;
}

}  // namespace sinter
