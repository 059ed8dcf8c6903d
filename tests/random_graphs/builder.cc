#include "random_graphs/builder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "import/tensor_proto.h"
#include "ir/error.h"
#include "random_graphs/noise.h"

namespace sinter::random_graphs {

bool Item::is_static() const {
  return std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d >= 0; });
}
int64_t Item::size() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return is_static() ? n : -1;
}

Builder::Builder(uint64_t seed) : random_(static_cast<uint32_t>(seed * 2654435761u + 17)), seed_(seed) {
  model_.set_ir_version(10);
  model_.set_producer_name("random_graphs");
  auto* opset = model_.add_opset_import();
  opset->set_version(21);
  opset = model_.add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model_.mutable_graph()->set_name("graph" + std::to_string(seed));
}

const Item* Builder::any(const std::function<bool(const Item&)>& fits) {
  std::vector<const Item*> found;
  for (const Item& i : items_)
    if (fits(i)) found.push_back(&i);
  if (found.empty()) return nullptr;
  // The better of two draws: chains grow, and yet old values are used again.
  const size_t a = below(found.size()), b = below(found.size());
  return found[chance(70) ? std::max(a, b) : a];
}
const Item* Builder::any_float() {
  return any([](const Item& i) { return is_float(i.dtype); });
}

void Builder::input(DType dtype, const std::vector<std::string>& dims) {
  auto* v = model_.mutable_graph()->add_input();
  v->set_name("x" + std::to_string(model_.graph().input_size() - 1));
  auto* type = v->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx_of(dtype));
  type->mutable_shape();
  Item item{v->name(), dtype, {}, dims};
  for (const std::string& d : dims) {
    auto* to = type->mutable_shape()->add_dim();
    const bool number = !d.empty() && std::isdigit(static_cast<unsigned char>(d[0]));
    if (number)
      to->set_dim_value(std::stoll(d));
    else
      to->set_dim_param(d);
    item.shape.push_back(number ? std::stoll(d) : -1);
  }
  items_.push_back(std::move(item));
}

std::string Builder::weight(DType dtype, const std::vector<int64_t>& shape, double lo, double hi) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i)
    if (is_float(dtype))
      t.set_real(i, uniform(lo, hi));
    else
      t.set_integer(i, between(static_cast<int64_t>(lo), static_cast<int64_t>(hi)));
  const std::string n = name();
  *model_.mutable_graph()->add_initializer() = tensor_proto(t, n);
  return n;
}
std::string Builder::integers(const std::vector<int64_t>& values) {
  const std::string n = name();
  *model_.mutable_graph()->add_initializer() = tensor_proto(Tensor::of(values), n);
  return n;
}
std::string Builder::floats(const std::vector<float>& values) {
  const std::string n = name();
  const Tensor t = Tensor::of(values, {static_cast<int64_t>(values.size())});
  *model_.mutable_graph()->add_initializer() = tensor_proto(t, n);
  return n;
}
std::string Builder::scalar(DType dtype, double value) {
  Tensor t(dtype, {});
  t.set_real(0, value);
  const std::string n = name();
  *model_.mutable_graph()->add_initializer() = tensor_proto(t, n);
  return n;
}

namespace {

void set_attribute(onnx::AttributeProto& a, const AttributeValue& value) {
  struct Setter {
    onnx::AttributeProto& a;
    void operator()(int64_t v) { a.set_type(onnx::AttributeProto::INT), a.set_i(v); }
    void operator()(float v) { a.set_type(onnx::AttributeProto::FLOAT), a.set_f(v); }
    void operator()(const std::string& v) { a.set_type(onnx::AttributeProto::STRING), a.set_s(v); }
    void operator()(const std::vector<int64_t>& v) {
      a.set_type(onnx::AttributeProto::INTS);
      for (int64_t i : v) a.add_ints(i);
    }
    void operator()(const std::vector<float>& v) {
      a.set_type(onnx::AttributeProto::FLOATS);
      for (float i : v) a.add_floats(i);
    }
    void operator()(const std::vector<std::string>& v) {
      a.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& i : v) a.add_strings(i);
    }
  };
  std::visit(Setter{a}, value);
}

}  // namespace

std::string Builder::node(const std::string& op, const std::vector<std::string>& inputs,
                          const AttributeList& attributes, int outputs, const std::string& domain) {
  auto* n = model_.mutable_graph()->add_node();
  n->set_op_type(op);
  n->set_domain(domain);
  const std::string first = name();
  n->set_name(op + "_" + first);
  for (const std::string& i : inputs) n->add_input(i);
  for (int i = 0; i < outputs; ++i) n->add_output(i == 0 ? first : first + "_" + std::to_string(i));
  for (const auto& [key, value] : attributes) {
    auto* a = n->add_attribute();
    a->set_name(key);
    set_attribute(*a, value);
  }
  return first;
}

std::string Builder::control(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<std::pair<std::string, onnx::GraphProto>>& bodies,
                             const AttributeList& attributes, int outputs) {
  const std::string first = node(op, inputs, attributes, outputs);
  auto* n = model_.mutable_graph()->mutable_node(model_.graph().node_size() - 1);
  for (const auto& [key, body] : bodies) {
    auto* a = n->add_attribute();
    a->set_name(key);
    a->set_type(onnx::AttributeProto::GRAPH);
    *a->mutable_g() = body;
  }
  return first;
}

ImportOptions Builder::import_options() const {
  ImportOptions options;
  for (const DimRange& r : ranges_) options.dims.push_back({r.name, r.lo, r.hi, 1});
  return options;
}

std::vector<std::vector<Tensor>> Builder::data_sets() const {
  std::vector<std::vector<Tensor>> sets;
  std::mt19937 random(static_cast<uint32_t>(seed_ + 5));
  for (int set = 0; set < (ranges_.empty() ? 1 : 3); ++set) {
    std::map<std::string, int64_t> extents;
    for (const DimRange& r : ranges_) extents[r.name] = set == 0 ? r.hi : set == 1 ? r.lo : (r.lo + r.hi) / 2;
    sets.emplace_back();
    for (const Item& item : items_) {
      if (item.name[0] != 'x') continue;
      std::vector<int64_t> shape = item.shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] < 0) shape[d] = extents[item.dims[d]];
      Tensor t(item.dtype, shape);
      for (int64_t i = 0; i < t.size(); ++i) {
        const double u = static_cast<double>(random()) / 4294967296.0;
        t.set_real(i, is_float(item.dtype)         ? 4 * u - 2
                      : item.dtype == DType::kBool ? u < 0.5
                      : item.dtype == DType::kU8   ? std::floor(u * 256)
                      : is_signed(item.dtype)      ? std::floor(u * 20 - 8)
                                                   : std::floor(u * 20));
      }
      sets.back().push_back(std::move(t));
    }
  }
  return sets;
}

// Whether values are fit to be compared, and how far they may differ: "" or why not.
std::string Builder::judge(const Graph& graph, std::map<std::string, double>& deviations) const {
  for (const std::vector<Tensor>& inputs : data_sets()) {
    const Values clean = evaluate_with_noise(graph, inputs, 0);
    for (const auto& [name, t] : clean) {
      if (t.size() > 20000) return "too large";
      for (int64_t i = 0; is_float(t.dtype()) && i < t.size(); ++i)
        if (!(std::fabs(t.real(i)) < 1e4)) return "not finite or too far from 1";
    }
    // Steps of 16-bit floats are wide: whether one turns a comparison takes more tries to see.
    const bool wide = std::any_of(clean.begin(), clean.end(),
                                  [](const auto& v) { return is_stored_float(v.second.dtype()); });
    for (uint32_t run = 1; run <= (wide ? 10u : 2u); ++run) {
      const Values noisy = evaluate_with_noise(graph, inputs, run);
      for (const auto& [name, t] : clean) {
        const double d = largest_difference(noisy.at(name), t);
        if (d < 0) return "a shape that depends on rounding";
        if (d > allowed_deviation(t)) return "magnifies rounding errors";
        deviations[name] = std::max(deviations[name], d);
      }
    }
  }
  return "";
}

std::string Builder::why_not(const onnx::ModelProto& trial, std::vector<Item>& made) {
  try {
    const Model m = import_model(trial, {}, import_options());
    for (const Value* v : m.graph->outputs) {
      Item item{v->name, v->type.dtype, {}, {}};
      for (const Dim& d : v->type.shape) {
        item.shape.push_back(d.is_static() ? d.value() : -1);
        item.dims.push_back(d.text());
        if (d.is(0)) return "empty";
      }
      made.push_back(std::move(item));
    }
    return judge(*m.graph, deviations_);
  } catch (const Refusal& r) {
    return "refused: " + r.problems[0];
  }
}

void Builder::roll_back() {
  auto* g = model_.mutable_graph();
  while (g->node_size() > kept_nodes_) g->mutable_node()->RemoveLast();
  while (g->initializer_size() > kept_weights_) g->mutable_initializer()->RemoveLast();
}

bool Builder::commit() {
  onnx::ModelProto trial = model_;
  std::vector<std::string> used;
  for (int k = kept_nodes_; k < model_.graph().node_size(); ++k) {
    const auto& n = model_.graph().node(k);
    for (const std::string& o : n.output()) trial.mutable_graph()->add_output()->set_name(o);
    used.insert(used.end(), n.input().begin(), n.input().end());
  }
  std::vector<Item> made;
  const std::string why = why_not(trial, made);
  if (!why.empty()) {
    const auto& g = model_.graph();
    const std::string op = g.node_size() > kept_nodes_ ? g.node(g.node_size() - 1).op_type() : "nothing";
    ++rejected_[op + ": " + why];
    roll_back();
    return false;
  }
  for (Item& item : items_) item.uses += static_cast<int>(std::count(used.begin(), used.end(), item.name));
  for (Item& item : made) {
    item.uses = static_cast<int>(std::count(used.begin(), used.end(), item.name));
    items_.push_back(std::move(item));
  }
  kept_nodes_ = model_.graph().node_size();
  kept_weights_ = model_.graph().initializer_size();
  return true;
}

onnx::ModelProto Builder::finish() {
  std::vector<const Item*> outputs;
  std::set<std::string> inputs;
  for (const auto& i : model_.graph().input()) inputs.insert(i.name());
  for (const Item& item : items_)
    if (!inputs.count(item.name) && (item.uses == 0 || chance(8))) outputs.push_back(&item);
  if (outputs.size() > 8) outputs.erase(outputs.begin(), outputs.end() - 8);
  onnx::ModelProto out = model_;
  for (const Item* item : outputs) {
    auto* v = out.mutable_graph()->add_output();
    v->set_name(item->name);
    v->mutable_type()->mutable_tensor_type()->set_elem_type(onnx_of(item->dtype));
  }
  return out;
}

}  // namespace sinter::random_graphs
