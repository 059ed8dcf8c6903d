// Nodes: in topological order from NodeProto through the upgrade into the graph; bodies likewise.
#include <algorithm>
#include <queue>

#include "import/importer.h"
#include "import/schemas.h"
#include "import/tensor_proto.h"
#include "ir/error.h"
#include "ir/nearest.h"
#include "ops/control/bodies.h"

namespace sinter {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }
std::string label_of(const std::string& name, const std::string& op) {
  return sinter::quoted(name) + " (" + op + ")";
}

std::string node_name(const NodeProto& n) {
  if (!n.name().empty()) return n.name();
  for (const std::string& o : n.output())
    if (!o.empty()) return o;
  return n.op_type();
}

namespace {

// op_type goes into messages unquoted where it is a plain word.
std::string word(const std::string& op) {
  const bool plain = !op.empty() && op.size() < 80 && std::all_of(op.begin(), op.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return plain ? op : sinter::quoted(op, 80);
}

std::vector<const GraphProto*> graphs_of(const NodeProto& n) {
  std::vector<const GraphProto*> out;
  for (const AttributeProto& a : n.attribute()) {
    if (a.has_g()) out.push_back(&a.g());
    for (const GraphProto& g : a.graphs()) out.push_back(&g);
  }
  return out;
}

// Calls f(name) for every name that the node reads, in its bodies too.
template <class F>
void for_each_read(const NodeProto& n, F f) {
  for (const std::string& i : n.input())
    if (!i.empty()) f(i);
  for (const GraphProto* g : graphs_of(n))
    for (const std::string& name : free_names(*g)) f(name);
}

}  // namespace

std::set<std::string> free_names(const GraphProto& g) {
  std::set<std::string> made, read;
  for (const auto& i : g.input()) made.insert(i.name());
  for (const auto& t : g.initializer()) made.insert(t.name());
  for (const auto& t : g.sparse_initializer()) made.insert(t.values().name());
  for (const NodeProto& n : g.node()) {
    for (const std::string& o : n.output()) made.insert(o);
    for_each_read(n, [&](const std::string& name) { read.insert(name); });
  }
  for (const auto& o : g.output()) read.insert(o.name());
  std::set<std::string> out;
  std::set_difference(read.begin(), read.end(), made.begin(), made.end(), std::inserter(out, out.end()));
  return out;
}

std::vector<int> live_order(const Repeated<NodeProto>& nodes, const std::vector<std::string>& wanted) {
  std::unordered_map<std::string, int> maker;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& o : nodes[i].output())
      if (!o.empty() && !maker.emplace(o, i).second)
        refuse("{}: the name {} is made twice", label_of(node_name(nodes[i]), word(nodes[i].op_type())),
               sinter::quoted(o));
  // Backwards from what is wanted ...
  std::vector<char> live(static_cast<size_t>(nodes.size()), 0);
  std::vector<std::vector<int>> needs(live.size()), users(live.size());
  std::vector<int> todo;
  auto want = [&](const std::string& name) -> int {
    const auto it = maker.find(name);
    if (it == maker.end()) return -1;
    if (!live[static_cast<size_t>(it->second)]) {
      live[static_cast<size_t>(it->second)] = 1;
      todo.push_back(it->second);
    }
    return it->second;
  };
  for (const std::string& name : wanted) want(name);
  while (!todo.empty()) {
    const int i = todo.back();
    todo.pop_back();
    for_each_read(nodes[i], [&](const std::string& name) {
      const int from = want(name);
      if (from < 0) return;
      needs[static_cast<size_t>(i)].push_back(from);
      users[static_cast<size_t>(from)].push_back(i);
    });
  }
  // ... then forwards; among ready nodes the model's own order.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  std::vector<size_t> waits(live.size(), 0);
  size_t count = 0;
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    ++count;
    waits[i] = needs[i].size();
    if (waits[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int u : users[static_cast<size_t>(i)])
      if (--waits[static_cast<size_t>(u)] == 0) ready.push(u);
  }
  if (order.size() < count)
    for (int i = 0; i < nodes.size(); ++i)
      if (waits[static_cast<size_t>(i)] != 0)
        refuse("the graph has a cycle at {}", label_of(node_name(nodes[i]), word(nodes[i].op_type())));
  return order;
}

std::set<std::string> needed_names(const GraphProto& g, const std::vector<std::string>& outputs) {
  std::set<std::string> names(outputs.begin(), outputs.end());
  for (int i : live_order(g.node(), outputs))
    for_each_read(g.node(i), [&](const std::string& name) { names.insert(name); });
  return names;
}

void Importer::declare_initializers(Scope& scope, const GraphProto& g) {
  for (const auto& t : g.initializer())
    if (!scope.initializers.emplace(t.name(), &t).second)
      problem(fmt::format("two initializers are named {}", sinter::quoted(t.name())));
  for (const auto& t : g.sparse_initializer())
    if (scope.initializers.count(t.values().name()) ||
        !scope.sparse_initializers.emplace(t.values().name(), &t).second)
      problem(fmt::format("two initializers are named {}", sinter::quoted(t.values().name())));
}

Value* Importer::own(Scope& scope, const std::string& name) {
  if (const auto it = scope.values.find(name); it != scope.values.end()) return it->second;
  const auto dense = scope.initializers.find(name);
  const auto sparse = scope.sparse_initializers.find(name);
  if (dense == scope.initializers.end() && sparse == scope.sparse_initializers.end()) return nullptr;
  Value* v = nullptr;
  try {
    std::vector<std::string> texts;
    const bool is_text =
        dense != scope.initializers.end() && dense->second->data_type() == TensorProto::STRING;
    v = scope.graph->add_constant(scope.prefix + name, is_text ? text_constant(*dense->second, texts)
                                                       : dense != scope.initializers.end()
                                                           ? weights_.dense(*dense->second)
                                                           : weights_.sparse(*sparse->second));
    if (is_text) texts_[v] = std::move(texts);
  } catch (const Refusal& r) {  // once; its users find a value without a type
    problem(fmt::format("initializer {}: {}", sinter::quoted(name), r.what()));
    v = scope.graph->add_value(scope.prefix + name, {});
  }
  v->origin = v->name;
  scope.values.emplace(name, v);
  return v;
}

Value* Importer::lookup(Scope& scope, const std::string& name) {
  for (Scope* s = &scope; s; s = s->parent) {
    if (Value* v = own(*s, name)) return v;
    if (s->values.count(name)) return nullptr;  // an absent argument
  }
  refuse("{} is not defined", sinter::quoted(name));
}

void Importer::declare_outputs(Scope& scope, const Repeated<NodeProto>& nodes, const std::vector<int>& order,
                               const std::vector<std::string>& wanted) {
  std::unordered_set<std::string> used(wanted.begin(), wanted.end());
  for (int i : order) for_each_read(nodes[i], [&](const std::string& name) { used.insert(name); });
  for (int i : order)
    for (const std::string& o : nodes[i].output()) {
      if (o.empty() || !used.count(o) || scope.awaited.count(o)) continue;
      if (scope.values.count(o) || scope.initializers.count(o) || scope.sparse_initializers.count(o)) {
        problem(fmt::format("{}: the name {} is taken",
                            label_of(node_name(nodes[i]), word(nodes[i].op_type())), sinter::quoted(o)));
        continue;
      }
      Value* v = scope.graph->add_value(scope.prefix + o, {});
      v->origin = v->name;
      scope.values.emplace(o, v);
      scope.awaited.insert(o);
    }
}

void Importer::import_nodes(Scope& scope, const Repeated<NodeProto>& nodes,
                            const std::vector<std::string>& wanted) {
  const std::vector<int> order = live_order(nodes, wanted);
  declare_outputs(scope, nodes, order, wanted);
  for (int i : order) {
    if (++node_count_ > kMaxNodes) refuse("more than {} nodes", kMaxNodes);
    spend_inference(kStepsOfCharacter *
                    static_cast<double>(scope.prefix.size() + nodes[i].name().size() + 16));
    try {
      import_node(scope, nodes[i]);
    } catch (const OverBudget&) {  // so would all that follow
      throw;
    } catch (const Refusal& r) {
      problems(r, label_of(scope.prefix + node_name(nodes[i]), word(nodes[i].op_type())));
    }
    for (const std::string& o : nodes[i].output()) scope.awaited.erase(o);
  }
}

void Importer::import_node(Scope& scope, const NodeProto& n) {
  const std::string domain = normal_domain(n.domain());
  const auto overload = unknown_field(n, 8);  // NodeProto.overload, IR version 10
  if (const auto* f = function_for(domain, n.op_type(), overload.empty() ? "" : overload.back()))
    return inline_function(scope, n, *f);
  if (n.op_type() == "Constant" && domain.empty()) return import_constant(scope, n);
  if (domain == "sinter") refuse("domain \"sinter\" is the compiler's own");
  Draft d = draft(scope, n);
  // Lowered like ONNX Runtime's operators: SimplifiedLayerNormalization is one, but written without a domain;
  // CausalConvWithState came into ONNX from there.
  const bool contrib =
      domain == "com.microsoft" ||
      (domain.empty() && (d.op == "SimplifiedLayerNormalization" || d.op == "CausalConvWithState"));
  const bool flex = domain == "ai.onnx.preview" && d.op == "FlexAttention";
  if (!domain.empty() && !contrib && !flex) return emit(scope, d);
  if (!domain.empty() && !scope.opsets->count(domain))
    refuse("the model names no opset of domain {}", sinter::quoted(domain));
  const auto version = scope.opsets->find("");
  const bool known = version != scope.opsets->end();
  if (!known && domain.empty()) refuse("the model names no opset of ONNX's own operators");
  if (domain.empty() && !contrib) check_schema(n, version->second);
  Rewrite rewrite(d, known ? version->second : 0, *scope.graph, [&](Draft& made) { emit(scope, made); });
  if (flex)
    expand_flex_attention(scope, rewrite);
  else if (!contrib)
    upgrade(rewrite);
  else if (!(options_.custom_op && options_.custom_op(d.domain, d.op)))
    lower_contrib(rewrite);
  shorten_operands(rewrite);
  emit(scope, d);
  for (Draft& after : rewrite.after) emit(scope, after);
}

void Importer::import_constant(Scope& scope, const NodeProto& n) {
  if (n.output_size() != 1 || n.input_size() != 0 || n.attribute_size() != 1)
    refuse("a Constant has no input, one output and one attribute");
  Value* v = own(scope, n.output(0));
  const AttributeProto* a = resolve(scope, n.attribute(0));
  if (!a) refuse("a Constant without a value");
  const std::string& kind = n.attribute(0).name();
  Tensor t;
  if (kind == "value" && a->has_t() && a->t().data_type() == TensorProto::STRING && v) {
    t = text_constant(a->t(), texts_[v]);
  } else if (kind == "value" && a->has_t()) {
    t = weights_.dense(a->t());
  } else if (kind == "sparse_value" && a->has_sparse_tensor()) {
    t = weights_.sparse(a->sparse_tensor());
  } else if (kind == "value_float") {
    t = Tensor::scalar(a->f());
  } else if (kind == "value_int") {
    t = Tensor::scalar(static_cast<int64_t>(a->i()));
  } else if (kind == "value_floats") {
    t = Tensor::of(std::vector<float>(a->floats().begin(), a->floats().end()), {a->floats_size()});
  } else if (kind == "value_ints") {
    t = Tensor::of(std::vector<int64_t>(a->ints().begin(), a->ints().end()));
  } else {
    refuse("a Constant by attribute {} is not supported", sinter::quoted(kind));
  }
  if (!v || !scope.awaited.count(n.output(0))) return;
  v->type = {t.dtype(), Shape(t.shape().begin(), t.shape().end())};
  v->data = std::move(t);
}

namespace {
// The operators of a domain, by their names.
std::vector<std::string> known_ops(const std::string& domain) {
  std::vector<std::string> names;
  for (const Op* op : all_ops())
    if (op->domain == domain) names.emplace_back(op->name);
  if (domain == "com.microsoft")
    for (const char* name : contrib_ops()) names.emplace_back(name);
  return names;
}
}  // namespace

const Op* Importer::op_for(const Draft& d) const {
  if (const Op* op = find_op(d.domain, d.op)) return op;
  if (options_.custom_op)
    if (const Op* op = options_.custom_op(d.domain, d.op)) return op;
  // An operator of ONNX's own can't be replaced.
  const char* const own = "; --custom-ops FILE names a C function for it";
  if (const char* why = why_never(d.domain, d.op))
    refuse("operator {} is not supported: {}{}", word(d.op), why, d.domain.empty() ? "" : own);
  if (d.domain.empty()) {
    const auto version = opsets_.find("");
    refuse("operator {} of domain \"\" (opset {}) is not supported{}", word(d.op),
           version == opsets_.end() ? 0 : version->second, did_you_mean(d.op, known_ops("")));
  }
  const std::vector<std::string> known = known_ops(d.domain);
  const bool elsewhere = find_op("", d.op) != nullptr;
  refuse("operator {} of domain {} is not supported{}{}", word(d.op), sinter::quoted(d.domain),
         elsewhere ? "; ONNX's own domain has one of that name" : did_you_mean(d.op, known), own);
}

void Importer::emit(Scope& scope, Draft& d) {
  if (++node_count_ > kMaxNodes) refuse("more than {} nodes", kMaxNodes);
  Graph& g = *scope.graph;
  replace_text(d);
  if (expand_sequence(scope, d)) return;
  if (d.domain == "ai.onnx.ml" && d.op == "ZipMap") {  // names for the columns: the tensor itself serves
    if (d.inputs.size() != 1 || d.outputs.size() != 1 || !d.inputs[0] || !d.outputs[0])
      refuse("it has one input and one output");
    maps_.insert(d.outputs[0]);
    if (auto keys = d.attributes.texts("classlabels_strings"); !keys.empty()) texts_[d.outputs[0]] = keys;
    d.domain = "";
    d.op = "Identity";
    d.attributes = {};
  }
  if (d.op == "If" && d.domain.empty() && d.graphs.size() == 2 && d.input(0) && d.input(0)->data) {
    const Tensor& condition = *d.input(0)->data;
    if (condition.dtype() != DType::kBool || condition.size() != 1) refuse("its condition is not one bool");
    return inline_branch(scope, *d.graphs[condition.as<bool>()[0] ? 0 : 1].second, d);
  }
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& [name, body] : d.graphs) bodies.push_back(import_body(scope, *body, d));
  if (d.op == "Loop" && d.domain.empty() && !bodies.empty()) stack_carried(scope, d, *bodies[0]);
  const Op* op = op_for(d);
  if (d.domain.empty() && (d.op == "If" || d.op == "Loop" || d.op == "Scan") && !bodies.empty()) {
    const size_t count = bodies[0]->outputs.size() - (d.op == "Loop" && !bodies[0]->outputs.empty() ? 1 : 0);
    if (d.outputs.size() < count) d.outputs.resize(count);
  }
  if (op->max_outputs >= 0 && d.outputs.size() > static_cast<size_t>(op->max_outputs) &&
      op->domain[0] == '\0')
    refuse("{} outputs, but it has at most {}", d.outputs.size(), op->max_outputs);
  // Outputs that must be there are made even if nobody wants them; ops with any number of outputs may count
  // them, so all are made.
  for (size_t i = 0; i < d.outputs.size(); ++i)
    if (!d.outputs[i] && (op->max_outputs < 0 || static_cast<int>(i) < op->min_outputs))
      d.outputs[i] = g.add_value(fmt::format("{}/output{}", d.name, i), {});
  while (static_cast<int>(d.outputs.size()) < op->min_outputs)
    d.outputs.push_back(g.add_value(fmt::format("{}/output{}", d.name, d.outputs.size()), {}));
  while (!d.outputs.empty() && !d.outputs.back()) d.outputs.pop_back();
  while (!d.inputs.empty() && !d.inputs.back()) d.inputs.pop_back();
  for (const Value* v : d.outputs)
    if (v && (v->producer || v->data)) refuse("the name {} is made twice", sinter::quoted(v->name));
  Node* node = g.add_node(op, d.name, d.inputs, d.outputs);
  node->attributes = std::move(d.attributes);
  node->sources = {label(*node)};
  node->bodies = std::move(bodies);
  if (!node->bodies.empty()) close_bodies(g, *node);
  if (node->op == find_op("", "Loop")) append_in_place(g, *node);
  if (!try_infer(g, *node)) return;
  if (node->bodies.empty())
    fold(g, *node);
  else if (speculative_ == 0)
    settle(g, *node);
}

Scope inside(Scope& outer, Graph* graph) {
  Scope scope;
  scope.graph = graph;
  scope.parent = &outer;
  scope.prefix = outer.prefix;
  scope.opsets = outer.opsets;
  scope.bindings = outer.bindings;
  scope.depth = outer.depth + 1;
  return scope;
}

// An If whose condition is known is its branch. Exporters put shape tests there, and the branch not taken
// often has no valid shapes.
void Importer::inline_branch(Scope& outer, const GraphProto& branch, const Draft& d) {
  if (outer.depth + 1 > kMaxDepth) refuse("nested more than {} deep", kMaxDepth);
  if (branch.input_size() != 0) refuse("a branch has no inputs");
  if (static_cast<int>(d.outputs.size()) > branch.output_size())
    refuse("{} outputs, but the branch has {}", d.outputs.size(), branch.output_size());
  Scope scope = inside(outer, outer.graph);
  declare_initializers(scope, branch);
  std::unordered_set<std::string> made;
  for (const NodeProto& n : branch.node()) made.insert(n.output().begin(), n.output().end());
  std::vector<std::string> wanted;
  std::vector<std::pair<std::string, Value*>> copies;
  for (size_t i = 0; i < d.outputs.size(); ++i) {
    if (!d.outputs[i]) continue;
    const std::string& name = branch.output(static_cast<int>(i)).name();
    wanted.push_back(name);
    if (made.count(name) && scope.values.emplace(name, d.outputs[i]).second)
      scope.awaited.insert(name);
    else
      copies.emplace_back(name, d.outputs[i]);
  }
  import_nodes(scope, branch.node(), wanted);
  for (const auto& [name, out] : copies) copy(outer, scope, name, d.name, out);
}

// Types the node's outputs where that is possible yet; returns whether it did.
bool Importer::try_infer(Graph& g, Node& node) {
  bool constant = true;
  for (const Value* v : node.inputs) {
    if (v && v->type.dtype == DType::kUndefined)
      return false;  // its maker's problem, or not known before infer
    constant = constant && (!v || v->data);
  }
  if (speculative_ == 0) {
    if (problem_count_ && !node.bodies.empty()) return false;  // bodies may be broken
    reveal_operands(g, node);
    infer(g, node);
    adopt(g, node);
    return true;
  }
  if (!speculate_ && !constant) return false;
  try {
    infer(g, node);
    return true;
  } catch (const OverBudget&) {
    throw;
  } catch (const Refusal&) {  // the node around the body will infer again, and then it counts
    for (Value* v : node.outputs)
      if (v) v->type = {};
    return false;
  }
}

// Once the types of the bodies are sure: branches inside that are always taken replace their If, and branches
// that cannot run are emptied.
void Importer::settle(Graph& g, Node& node) {
  for (size_t k = 0; k < node.bodies.size(); ++k) {
    Graph& body = *node.bodies[k];
    if (!body.unreachable.empty()) {
      body.outputs.clear();
      body.nodes.clear();
      std::erase_if(body.values, [&](const auto& v) {
        return std::find(body.inputs.begin(), body.inputs.end(), v.get()) == body.inputs.end();
      });
      for (Value* v : body.inputs) v->users.clear();
      body.checks.clear();
      continue;
    }
    for (bool again = true; again;) {
      again = false;
      for (size_t i = 0; i < body.nodes.size() && !again; ++i) {
        Node& inner = *body.nodes[i];
        const int branch = known_branch(inner);
        if (branch < 0) continue;
        sinter::inline_branch(body, inner, static_cast<size_t>(branch));
        again = true;
      }
      if (again) body.erase_unused();
    }
    for (const auto& inner : body.nodes)
      if (!inner->bodies.empty()) settle(body, *inner);
  }
  drop_unused_captures(g, node);
}

namespace {

// A dequantised matrix or filter: its bytes say more than the floats that they stand for (pass
// integer_products).
bool is_of_weights(const Node& n) {
  return n.op->domain[0] == 0 && std::string_view(n.op->name) == "DequantizeLinear" && n.inputs[0] &&
         n.inputs[0]->type.shape.size() >= 2;
}

}  // namespace

// Small results that are known now become constants: exporters compute shapes, scales and limits by many
// nodes, partly in floats, and inference of what follows needs their values. (Folding of weights is a pass's
// work.) The node must be the last one of the graph and inferred.
void Importer::fold(Graph& g, Node& node) {
  if (is_of_weights(node)) return;
  if (node.op->impure || !node.bodies.empty() || (!node.op->eval && !node.op->expr && !node.op->lower))
    return;
  bool constant = true, small = true;
  double bytes = 0;
  for (const Value* v : node.inputs) constant = constant && (!v || v->data);
  for (const Value* v : node.outputs) {
    if (!v) continue;
    const Dim size = product(v->type.shape);
    small = small && size.hi() <= kFoldLimit;
    if (small) bytes += static_cast<double>(size.hi()) * static_cast<double>(size_of(v->type.dtype));
  }
  if (!small) return;  // a count of rows (Unique, NonZero) is known with them
  if (folded_bytes_ + bytes > Budget::kImportedBytes) return;
  std::vector<Tensor> contents;
  if (constant) {
    std::vector<Tensor> inputs;
    for (const Value* v : node.inputs) inputs.push_back(v ? *v->data : Tensor());
    try {
      contents = evaluate(node, std::move(inputs));
    } catch (const OverBudget&) {
      return;
    }
  } else {
    if (speculative_) return;  // what a body knows of its inputs is a guess
    for (const Value* v : node.outputs) {
      auto t = v ? known_contents(*v) : Tensor();
      if (!t) return;
      contents.push_back(std::move(*t));
    }
  }
  folded_bytes_ += bytes;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Value* v = node.outputs[i];
    if (!v) continue;
    v->producer = nullptr;
    v->elements.clear();
    v->type = {contents[i].dtype(), Shape(contents[i].shape().begin(), contents[i].shape().end())};
    v->data = std::move(contents[i]);
  }
  for (Value* v : node.inputs)
    if (v) v->users.erase(std::find(v->users.begin(), v->users.end(), &node));
  SINTER_CHECK(g.nodes.back().get() == &node);
  g.nodes.pop_back();
}

namespace {

// The iteration's number and the condition of a Loop have no axis or one, as the body declares them.
Shape one_element(const onnx::ValueInfoProto& declared) {
  const bool has_axis = declared.type().tensor_type().shape().dim_size() == 1;
  return has_axis ? Shape{Dim(1)} : Shape{};
}

// What the body's input i is likely to be, for upgrades that ask for ranks; infer of the node around decides.
TensorType likely_type(const Draft& d, size_t i, size_t body_inputs, const onnx::ValueInfoProto& declared) {
  if (d.op == "Loop" && i == 0) return {DType::kI64, one_element(declared)};
  if (d.op == "Loop" && i == 1) return {DType::kBool, one_element(declared)};
  if (d.op == "Loop" && d.input(i)) return d.input(i)->type;
  if (d.op != "Scan" || !d.input(i)) return {};
  TensorType t = d.input(i)->type;
  const int64_t scanned = d.attributes.integer("num_scan_inputs", 0);
  const int64_t k = static_cast<int64_t>(i) - (static_cast<int64_t>(body_inputs) - scanned);
  if (k < 0 || t.shape.empty()) return t;
  const auto axes = d.attributes.integers("scan_input_axes");
  int64_t axis = k < static_cast<int64_t>(axes.size()) ? axes[static_cast<size_t>(k)] : 0;
  if (axis < 0) axis += static_cast<int64_t>(t.shape.size());
  if (axis < 0 || axis >= static_cast<int64_t>(t.shape.size())) return {};
  t.shape.erase(t.shape.begin() + axis);
  return t;
}

}  // namespace

std::unique_ptr<Graph> Importer::import_body(Scope& outer, const GraphProto& proto, const Draft& d) {
  if (outer.depth + 1 > kMaxDepth) refuse("nested more than {} deep", kMaxDepth);
  auto body = std::make_unique<Graph>();
  body->name = proto.name();
  body->parent = outer.graph;
  body->symbols = outer.graph->symbols;
  Scope scope = inside(outer, body.get());
  declare_initializers(scope, proto);
  for (int i = 0; i < proto.input_size(); ++i) {
    const std::string& name = proto.input(i).name();
    Value* v = body->add_value(
        scope.prefix + name,
        likely_type(d, static_cast<size_t>(i), static_cast<size_t>(proto.input_size()), proto.input(i)));
    v->origin = v->name;
    if (name.empty() || scope.initializers.count(name) || !scope.values.emplace(name, v).second)
      refuse("its body has no proper name for input {}", i);
    body->inputs.push_back(v);
  }
  mark_growing(d, *body);
  std::vector<std::string> wanted;
  for (const auto& o : proto.output()) wanted.push_back(o.name());
  ++speculative_;
  try {
    import_nodes(scope, proto.node(), wanted);
  } catch (...) {
    --speculative_;
    throw;
  }
  --speculative_;
  for (const std::string& name : wanted) {
    Value* v = lookup(scope, name);
    const bool grows = v && growing_.count(v) != 0 && d.op != "Loop";  // see stack_carried() for Loops
    if (!v || sequences_.count(v) || stacked_.count(v) || empty_.count(v) || grows)
      refuse("output {} of its body is an absent argument or a sequence, which is not supported",
             sinter::quoted(name));
    body->outputs.push_back(v);
  }
  body->checks.clear();
  return body;
}

}  // namespace sinter
