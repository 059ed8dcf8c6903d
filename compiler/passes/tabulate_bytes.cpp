// tabulate_bytes: what becomes of a byte, if it is a byte again and costs an exponential or the like, is
// looked up in a table of 256 results.
//
//     quantize(sigmoid(dequantize(x)))            ->  byte_table(x, table)
//     quantize(dequantize(x) * dequantize(y))     ->  byte_table(x, table), where y = byte_table(x, ...):
//     SiLU
//
// Between the bytes stand elementwise operators of x and of constants of one element; the table is these,
// evaluated for all bytes, so that it holds what they mean. Sums, products and bounds stay with the layer
// before them. In registers even a HardSwish costs more: of a convolution's 4,096 results on a modelled
// Cortex-A55 23 cycles each, a look-up about one.
#include <algorithm>
#include <set>

#include "passes/passes.h"
#include "passes/quantised.h"

namespace sinter {
namespace {

// Whether the node is more than steps, sums, products and bounds.
bool is_costly(const Node& n) {
  static const std::set<std::string_view> cheap = {
      "quantize", "dequantize", "Cast", "Identity", "Add", "Sub", "Mul", "Neg", "Relu", "Clip", "Min", "Max"};
  return cheap.count(n.op->name) == 0;
}

bool is_number(const Value& v) { return v.data && v.data->size() == 1; }

class Tables {
 public:
  Tables(Graph& g, const Order&) : g_(g) {}

  bool fuse(Node* n) {
    if (!is_ours(n, "quantize") || !is_bytes(n->outputs[0])) return false;
    inside_.clear();
    if (!find(n)) return false;
    // What is a table of one of these bytes is a part of this one.
    if (sources_.size() > 1) {
      for (const Value* v : sources_)
        if (v->producer && is_ours(v->producer, "byte_table") && sources_.count(v->producer->inputs[0]))
          inside_.insert(v);
      if (!find(n)) return false;
    }
    if (sources_.size() != 1) return false;
    Value* x = const_cast<Value*>(*sources_.begin());
    if (!(x->type.shape == n->outputs[0]->type.shape) || parts_.size() > kMostNodes ||
        std::none_of(parts_.begin(), parts_.end(), [](const Node* p) { return is_costly(*p); }))
      return false;
    Value* table = g_.add_constant(n->name + "/table", results(*x, *n));
    fuse_into(g_, find_op("sinter", "byte_table"), n, {x, table}, {}, parts_);
    return true;
  }

 private:
  static constexpr size_t kMostNodes = 64;

  // The nodes between bytes and n, in order, n the last one, and those bytes; false where there are others.
  bool find(Node* n) {
    parts_.clear();
    sources_.clear();
    std::set<const Node*> seen;
    return visit(n, seen);
  }

  bool visit(Node* n, std::set<const Node*>& seen) {
    if (!seen.insert(n).second) return true;
    const bool table = is_ours(n, "byte_table");
    if (n->epilogue || !n->bodies.empty() || n->outputs.size() != 1 || (!table && !n->op->expr)) return false;
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      Value* v = n->inputs[i];
      if (!v || is_number(*v) || (table && i == 1)) continue;
      if (is_bytes(v) && !inside_.count(v)) {
        sources_.insert(v);
        continue;
      }
      if (!v->producer || seen.size() > kMostNodes || !visit(v->producer, seen)) return false;
    }
    parts_.push_back(n);
    return true;
  }

  // The nodes' last result for all bytes x.
  Tensor results(const Value& x, const Node& n) const {
    Graph g;
    Tensor all(x.type.dtype, {256});
    for (int64_t i = 0; i < 256; ++i) all.as<uint8_t>()[i] = static_cast<uint8_t>(i);
    std::map<const Value*, Value*> made = {{&x, g.add_constant("x", std::move(all))}};
    for (const Node* p : parts_) {
      std::vector<Value*> inputs;
      for (const Value* v : p->inputs) {
        Value* in = nullptr;
        if (const auto at = made.find(v); at != made.end())
          in = at->second;
        else if (v)
          in = g.add_constant("c", is_number(*v) ? v->data->reshaped({}) : *v->data);
        inputs.push_back(in);
      }
      Value* out = made[p->outputs[0]] = g.add_value("y", {});
      Node* copy = g.add_node(p->op, p->name, inputs, {out});
      copy->attributes = p->attributes;
      infer(g, *copy);
    }
    g.outputs.push_back(made.at(n.outputs[0]));
    return evaluate(g, {})[0];
  }

  Graph& g_;
  std::vector<Node*> parts_;
  std::set<const Value*> sources_;  // the bytes
  std::set<const Value*> inside_;   // tables of these, which are parts
};

}  // namespace

bool tabulate_bytes(Graph& g, const PassOptions&) { return fuse_each<Tables>(g); }

}  // namespace sinter
