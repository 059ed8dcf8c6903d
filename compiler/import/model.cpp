// A model's frame: opsets, inputs and their dims, constants, outputs.
#include <algorithm>

#include "import/importer.h"
#include "import/tensor_proto.h"
#include "ir/error.h"
#include "ir/nearest.h"

namespace sinter {

using onnx::GraphProto;
using onnx::ValueInfoProto;

Importer::Importer(const onnx::ModelProto& model, Weights& weights, const ImportOptions& options,
                   const Learned& learned)
    : model_(model),
      weights_(weights),
      options_(options),
      graph_(std::make_unique<Graph>()),
      learned_(learned) {}

void Importer::problem(std::string text) {
  if (++problem_count_ <= kMaxProblems) problems_.push_back(std::move(text));
}
void Importer::problems(const Refusal& r, const std::string& label) {
  for (const std::string& p : r.problems)
    problem(!p.empty() && (p[0] == '"' && p.find("\" (") != std::string::npos)
                ? p
                : fmt::format("{}: {}", label, p));
}

namespace {

// Checks before any recursion over the model: depth of bodies, number of nodes.
void check_size(const Repeated<onnx::NodeProto>& nodes, int depth, int64_t& left) {
  if (depth > 32) refuse("bodies nested more than 32 deep");
  for (const onnx::NodeProto& n : nodes) {
    if (--left < 0) refuse("too many nodes");
    for (const auto& a : n.attribute()) {
      if (a.has_g()) check_size(a.g().node(), depth + 1, left);
      for (const GraphProto& g : a.graphs()) check_size(g.node(), depth + 1, left);
    }
  }
}

// The Values that stood for sequences and empty optionals, here and in bodies.
void remove_placeholders(Graph& g, const std::function<bool(const Value*)>& is_placeholder) {
  std::erase_if(g.values, [&](const auto& v) { return is_placeholder(v.get()); });
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies) remove_placeholders(*b, is_placeholder);
}

}  // namespace

std::unique_ptr<Graph> Importer::run() {
  int64_t left = kMaxNodes;
  check_size(model_.graph().node(), 0, left);
  for (const auto& f : model_.functions()) check_size(f.node(), 0, left);
  if (Budget* budget = Budget::in_use()) budget->add_nodes(static_cast<double>(kMaxNodes - left));
  read_opsets();
  read_functions();
  read_dim_options();
  Scope scope;
  scope.graph = graph_.get();
  scope.opsets = &opsets_;
  graph_->name = model_.graph().name();
  try {
    select_outputs();
    declare_initializers(scope, model_.graph());
    find_extent_operands();
    find_empty_dims();
    read_declarations();
    add_inputs(scope);
    import_nodes(scope, model_.graph().node(), wanted_);
    add_outputs(scope);
    check_options();
  } catch (const Refusal& r) {
    for (const std::string& p : r.problems) problem(p);
  }
  if (problem_count_ > problems_.size())
    problems_.push_back(fmt::format("and {} more problems", problem_count_ - problems_.size()));
  if (!problems_.empty()) throw Refusal(std::move(problems_));
  if (!sequences_.empty() || !empty_.empty() || !stacked_.empty())
    remove_placeholders(*graph_, [&](const Value* v) {
      return sequences_.count(v) != 0 || empty_.count(v) != 0 || stacked_.count(v) != 0;
    });
  graph_->verify();
  return std::move(graph_);
}

void Importer::read_opsets() {
  if (model_.ir_version() > kNewestIr)
    refuse("IR version {} is not supported: up to {} are", model_.ir_version(), kNewestIr);
  for (const auto& o : model_.opset_import()) {
    const std::string domain = normal_domain(o.domain());
    if (!opsets_.emplace(domain, o.version()).second && opsets_[domain] != o.version())
      refuse("two opset versions of domain {}", sinter::quoted(domain));
  }
  if (model_.ir_version() < 3 && opsets_.empty()) opsets_[""] = 1;  // there were no opsets yet
  auto check = [this](const Opsets& opsets) {
    const auto it = opsets.find("");
    if (it != opsets.end() && it->second < 21) speculate_ = true;
    if (it != opsets.end() && (it->second < 1 || it->second > kNewestOpset))
      refuse("opset {} is not supported: 1 to {} are", it->second, kNewestOpset);
  };
  check(opsets_);
  for (const auto& f : model_.functions()) {
    Opsets own;
    for (const auto& o : f.opset_import()) own[normal_domain(o.domain())] = o.version();
    check(own);
  }
}

void Importer::read_dim_options() {
  graph_->symbols->max_trips = options_.max_trips;
  for (const auto& [name, most] : learned_.limits) graph_->symbols->set_limit(name, most);
  for (const DimOption& o : options_.dims) {
    if (o.lo < 0 || (o.hi < o.lo && !(o.at_most && o.hi == 0)) || o.step < 1)
      refuse("--dim {}: {}..{}:{} is no range", sinter::quoted(o.name), o.lo, o.hi, o.step);
    if (o.hi / o.step * o.step < o.lo && !(o.at_most && o.hi == 0))
      refuse("--dim {}: no multiple of {} lies in {}..{}", sinter::quoted(o.name), o.step, o.lo, o.hi);
    if (o.is_bound()) graph_->symbols->set_limit(o.name, o.hi);
    if (!dim_options_.emplace(o.name, &o).second) refuse("--dim {} is given twice", sinter::quoted(o.name));
  }
}

// A dim that the model leaves open: pinned or bounded by an option, else by the actual input, else a symbol.
Dim Importer::free_dim(const std::string& name, const std::string& origin, const DimOption* option,
                       const int64_t* actual) {
  if (!option) {
    if (actual) return Dim(*actual);
    return Dim(graph_->symbols->fresh(name, {1, Interval::kUnbounded}, origin));
  }
  const bool may_be_empty = empty_dims_.count(name) != 0;
  if (option->hi == 0 && !may_be_empty)
    refuse(
        "--dim {}: {} of 0 elements is no input; only what is joined to something else, as a cache is, may "
        "be "
        "empty",
        sinter::quoted(option->name), origin);
  const int64_t step = option->step, least = option->at_most && may_be_empty ? 0 : option->lo;
  const int64_t lo = least / step + (least % step != 0), hi = option->hi / step;
  if (lo == hi) return Dim(lo * step);
  if (step == 1) return Dim(graph_->symbols->fresh(name, {lo, hi}, origin));
  return Dim(step) * Dim(graph_->symbols->fresh(fmt::format("{}/{}", name, step), {lo, hi}, origin));
}

const DimOption* Importer::option_for(const std::string& param, const std::string& place) {
  for (const std::string& key : {param, place}) {
    const auto it = dim_options_.find(key);
    if (key.empty() || it == dim_options_.end()) continue;
    dim_options_used_.insert(key);
    return it->second;
  }
  return nullptr;
}

Dim Importer::input_dim(const ValueInfoProto& info, int axis) {
  const auto& d = info.type().tensor_type().shape().dim(axis);
  const std::string place = fmt::format("{}@{}", info.name(), axis);
  const std::string origin = fmt::format("input {} axis {}", sinter::quoted(info.name()), axis);
  const auto shape = options_.input_shapes.find(info.name());
  const int64_t* actual =
      shape == options_.input_shapes.end() ? nullptr : &shape->second[static_cast<size_t>(axis)];
  if (d.has_dim_value()) {
    if (d.dim_value() < 0) refuse("{}: negative extent {}", origin, d.dim_value());
    const DimOption* o = option_for("", place);
    if (!o || (o->lo == d.dim_value() && o->hi == d.dim_value()))
      return Dim(static_cast<int64_t>(d.dim_value()));
    has_open_inputs_ = true;
    Dim own = free_dim(place, origin, o, actual);
    warnings_.push_back(
        fmt::format("{}: the model fixes it at {}, --dim makes it {}", origin, d.dim_value(),
                    own.is_static() ? own.text() : fmt::format("{}..{}", own.lo(), own.hi())));
    return own;
  }
  const std::string param = d.dim_param();
  const std::string name = param.empty() ? place : param;
  const auto known = param.empty() ? named_dims_.end() : named_dims_.find(param);
  const DimOption* option = option_for(param, place);
  has_open_inputs_ = true;
  if (known == named_dims_.end()) {
    free_dim_names_.push_back(name);
    Dim dim = free_dim(name, origin, option, actual);
    if (!param.empty()) named_dims_.emplace(param, dim);
    return dim;
  }
  if (!option && actual && known->second.is_static() && !known->second.is(*actual))
    refuse("{} is {}, but the dim {} is {} elsewhere", origin, *actual, sinter::quoted(param),
           known->second.value());
  return known->second;
}

// The outputs that are wanted, in the model's order.
void Importer::select_outputs() {
  std::vector<std::string> names;
  for (const ValueInfoProto& o : model_.graph().output()) names.push_back(o.name());
  if (names.empty()) problem("the model has no output");
  for (const std::string& only : options_.only) {
    if (std::count(names.begin(), names.end(), only)) continue;
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + sinter::quoted(n);
    problem(fmt::format("--only {}: the model has no such output; it has {}{}", sinter::quoted(only), all,
                        did_you_mean(only, names)));
  }
  for (const std::string& n : names)
    if (options_.only.empty() || std::count(options_.only.begin(), options_.only.end(), n))
      wanted_.push_back(n);
}

void Importer::add_inputs(Scope& scope) {
  // INPUT@AXIS may name a dim that has a dim_param and comes up earlier: its option is the param's.
  for (const ValueInfoProto& i : model_.graph().input()) {
    const auto& shape = i.type().tensor_type().shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      dim_params_.insert(shape.dim(axis).dim_param());
      const auto it = dim_options_.find(fmt::format("{}@{}", i.name(), axis));
      if (it == dim_options_.end() || shape.dim(axis).dim_param().empty()) continue;
      dim_options_.emplace(shape.dim(axis).dim_param(), it->second);
      dim_options_used_.insert(it->first);
    }
  }
  std::set<std::string> seen, needed;
  if (!options_.only.empty()) needed = needed_names(model_.graph(), wanted_);
  for (const ValueInfoProto& i : model_.graph().input()) {
    if (!options_.only.empty() && !needed.count(i.name())) continue;
    if (!seen.insert(i.name()).second || i.name().empty()) {
      problem(fmt::format("two inputs are named {}", sinter::quoted(i.name())));
      continue;
    }
    const bool has_value = scope.initializers.count(i.name()) || scope.sparse_initializers.count(i.name());
    if (has_value && !options_.carried.count(i.name())) continue;
    try {
      add_input(scope, i);
      add_initial(scope, i.name());
    } catch (const Refusal& r) {
      for (const std::string& p : r.problems)
        problem(p.rfind("input ", 0) == 0 || p.rfind("--", 0) == 0
                    ? p
                    : fmt::format("input {}: {}", sinter::quoted(i.name()), p));
      scope.values.emplace(i.name(), graph_->add_value(i.name(), {}));
    }
  }
}

void Importer::add_input(Scope& scope, const ValueInfoProto& info) {
  const std::string& name = info.name();
  if (!info.type().has_tensor_type())
    refuse("sequences, maps, optionals and sparse tensors are not supported");
  const auto& declared = info.type().tensor_type();
  const DType dtype = dtype_of_onnx(declared.elem_type());
  if (dtype == DType::kUndefined) refuse("element type {} is unknown", declared.elem_type());
  if (dtype == DType::kString) refuse("strings are not supported");
  TensorType type{dtype, {}};
  const auto actual = options_.input_shapes.find(name);
  const auto constant = options_.constants.find(name);
  if (declared.has_shape()) {
    if (declared.shape().dim_size() > 12) refuse("more than 12 axes");
    if (actual != options_.input_shapes.end() &&
        static_cast<int>(actual->second.size()) != declared.shape().dim_size())
      refuse("{} axes given, the model wants {}", actual->second.size(), declared.shape().dim_size());
    for (int axis = 0; axis < declared.shape().dim_size(); ++axis)
      type.shape.push_back(input_dim(info, axis));
  } else if (actual != options_.input_shapes.end()) {
    has_open_inputs_ = true;
    type.shape.assign(actual->second.begin(), actual->second.end());
  } else if (constant == options_.constants.end()) {
    refuse("the model gives it no shape");
  }
  if (constant == options_.constants.end()) {
    Value* v = graph_->add_value(name, std::move(type));
    v->origin = v->name;
    graph_->inputs.push_back(v);
    scope.values.emplace(name, reveal(v));
    return;
  }
  const Tensor& t = constant->second;
  bool fits = t.dtype() == dtype && (!declared.has_shape() || t.shape().size() == type.shape.size());
  for (size_t i = 0; fits && i < type.shape.size(); ++i) {
    const Interval r = type.shape[i].bounds();
    fits = t.shape()[i] >= r.lo && t.shape()[i] <= r.hi;
  }
  if (!fits)
    refuse("--const {} gives {}{}, the model wants {}", sinter::quoted(name), sinter::name_of(t.dtype()),
           text(Shape(t.shape().begin(), t.shape().end())), text(type));
  Value* v = graph_->add_constant(name, t);
  v->origin = v->name;
  scope.values.emplace(name, v);
}

// What the state of an input begins with: what the user has given, else its initializer.
void Importer::add_initial(const Scope& scope, const std::string& name) {
  std::optional<Tensor> t;
  std::string from = "its initializer";
  if (const auto given = options_.initial.find(name); given != options_.initial.end())
    t = given->second, from = "--state-init";
  else if (const auto dense = scope.initializers.find(name); dense != scope.initializers.end())
    t = weights_.dense(*dense->second);
  else if (const auto sparse = scope.sparse_initializers.find(name);
           sparse != scope.sparse_initializers.end())
    t = weights_.sparse(*sparse->second);
  if (!t) return;
  Value* v = scope.values.at(name);
  bool fits = t->dtype() == v->type.dtype && t->shape().size() == v->type.shape.size();
  for (size_t i = 0; fits && i < t->shape().size(); ++i) {
    const Interval r = v->type.shape[i].bounds();
    fits = t->shape()[i] >= r.lo && t->shape()[i] <= r.hi;
  }
  if (!fits)
    refuse("{} gives {}{}, the model wants {}", from, sinter::name_of(t->dtype()),
           text(Shape(t->shape().begin(), t->shape().end())), text(v->type));
  v->initial = std::move(t);
}

void Importer::check_options() {
  std::string names;
  for (const std::string& n : free_dim_names_) names += (names.empty() ? "" : ", ") + sinter::quoted(n);
  for (const DimOption& o : options_.dims) {
    if (dim_options_used_.count(o.name)) continue;
    if (!graph_->symbols->was_asked(o.name))
      problem(fmt::format("--dim {}: the model has no free dim of that name; it has {}{}",
                          sinter::quoted(o.name), names.empty() ? "none" : names,
                          did_you_mean(o.name, {free_dim_names_.begin(), free_dim_names_.end()})));
    else if (!o.is_bound())
      problem(fmt::format("--dim {}: the data decide it, it can only be bounded: {}", sinter::quoted(o.name),
                          sinter::quoted(fmt::format("{}<={}", o.name, o.hi))));
  }
  for (const auto& constant : options_.constants) {
    const auto& inputs = model_.graph().input();
    if (std::none_of(inputs.begin(), inputs.end(), [&](const auto& i) { return i.name() == constant.first; }))
      problem(fmt::format("--const {}: the model has no such input", sinter::quoted(constant.first)));
  }
}

void Importer::check_output(const ValueInfoProto& info, const Value& v) {
  if (v.type.dtype == DType::kUndefined || !info.has_type() || maps_.count(&v)) return;
  if (!info.type().has_tensor_type())
    refuse("sequences, maps, optionals and sparse tensors are not supported");
  const auto& declared = info.type().tensor_type();
  const DType dtype = dtype_of_onnx(declared.elem_type());
  const bool is_text = dtype == DType::kString && texts_.count(&v);
  if (declared.elem_type() != 0 && dtype != v.type.dtype && !is_text)
    refuse("declared as {}, but it is {}", sinter::name_of(dtype), text(v.type));
  if (!declared.has_shape()) return;
  std::string shape;
  bool wrong = declared.shape().dim_size() != static_cast<int>(v.type.shape.size());
  for (int i = 0; i < declared.shape().dim_size(); ++i) {
    const auto& d = declared.shape().dim(i);
    shape += (i ? "," : "") + (d.has_dim_value() ? std::to_string(d.dim_value()) : std::string("?"));
    if (wrong || !d.has_dim_value()) continue;
    const Dim& ours = v.type.shape[static_cast<size_t>(i)];
    wrong = ours.is_static() && !ours.is(d.dim_value());
  }
  if (!wrong) return;
  warnings_.push_back(fmt::format("output {}: declared as [{}], but it is {}", sinter::quoted(info.name()),
                                  shape, text(v.type)));
}

// Shapes that the model declares of values inside it are hints; what was inferred holds. One line for all.
void Importer::tell_stale() {
  std::erase_if(stale_, [&](const Value* v) { return graph_->is_output(v); });
  if (stale_.empty()) return;
  const Value& v = *stale_[0];
  std::string line = fmt::format("the value {} is declared as {}, but it is {}", sinter::quoted(v.name),
                                 text(declared_[v.name]), text(v.type));
  if (stale_.size() > 1)
    line += fmt::format("; {} more values are declared with other shapes", stale_.size() - 1);
  warnings_.push_back(std::move(line));
}

void Importer::add_outputs(Scope& scope) {
  for (const ValueInfoProto& o : model_.graph().output()) {
    if (!std::count(wanted_.begin(), wanted_.end(), o.name())) continue;
    try {
      Value* v = lookup(scope, o.name());
      SINTER_CHECK(v, "a null value in the main graph");
      if (sequences_.count(v) || stacked_.count(v) || empty_.count(v))
        refuse("sequences and empty optionals are not supported");
      check_output(o, *v);
      bound_output(o, *v);
      graph_->outputs.push_back(v);
      if (const auto names = texts_.find(v); names != texts_.end()) class_names_[v->name] = names->second;
    } catch (const Refusal& r) {
      problem(fmt::format("output {}: {}", sinter::quoted(o.name()), r.what()));
    }
  }
  tell_stale();
}

}  // namespace sinter
