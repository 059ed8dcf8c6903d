// Model-local functions are inlined where they are called.
//
// Each call gets a Scope of its own without a parent: a function sees nothing but its arguments. Values and
// nodes of its body are named "call/name". Attribute references inside are replaced by what the call gives,
// else by the function's default, else the attribute is left out. Recursion and expansion bombs are refused.
#include <algorithm>

#include "import/importer.h"
#include "ir/error.h"

namespace sinter {
namespace {

std::string overload_of(const onnx::FunctionProto& f) {
  const auto v = unknown_field(f, 13);  // FunctionProto.overload, IR version 10
  return v.empty() ? "" : v.back();
}

}  // namespace

void Importer::read_functions() {
  for (const onnx::FunctionProto& f : model_.functions()) {
    const std::string key = normal_domain(f.domain()) + ":" + f.name() + ":" + overload_of(f);
    if (!functions_.emplace(key, &f).second)
      problem(
          fmt::format("two functions {} in domain {}", sinter::quoted(f.name()), sinter::quoted(f.domain())));
    Opsets& opsets = function_opsets_[&f];
    for (const auto& o : f.opset_import()) opsets[normal_domain(o.domain())] = o.version();
    for (const auto& [domain, version] : opsets_) opsets.emplace(domain, version);
  }
}

const onnx::FunctionProto* Importer::function_for(const std::string& domain, const std::string& name,
                                                  const std::string& overload) const {
  const auto it = functions_.find(domain + ":" + name + ":" + overload);
  return it == functions_.end() ? nullptr : it->second;
}

void Importer::bind_attributes(const Scope& scope, const onnx::NodeProto& call,
                               const onnx::FunctionProto& function, Bindings& bindings) {
  for (const std::string& bytes : unknown_field(function, 11)) {  // attribute_proto: defaults, IR version 9
    onnx::AttributeProto a;
    if (!a.ParseFromString(bytes))
      refuse("function {} has a broken default", sinter::quoted(function.name()));
    bindings[a.name()] = a;
  }
  for (const onnx::AttributeProto& given : call.attribute()) {
    const onnx::AttributeProto* a = resolve(scope, given);
    if (!a) continue;
    if (a->has_g() || a->graphs_size()) refuse("a graph as argument of a function is not supported");
    const std::string name = given.name();
    bindings[name] = *a;
    bindings[name].set_name(name);
  }
}

void Importer::inline_function(Scope& scope, const onnx::NodeProto& call, const onnx::FunctionProto& f) {
  if (std::find(calls_.begin(), calls_.end(), &f) != calls_.end())
    refuse("function {} calls itself", sinter::quoted(f.name()));
  if (scope.depth + 1 > kMaxDepth) refuse("nested more than {} deep", kMaxDepth);
  if (call.input_size() > f.input_size() || call.output_size() > f.output_size())
    refuse("{} inputs and {} outputs, but the function has {} and {}", call.input_size(), call.output_size(),
           f.input_size(), f.output_size());
  Bindings bindings;
  bind_attributes(scope, call, f, bindings);

  Scope inner;
  inner.graph = scope.graph;
  inner.opsets = &function_opsets_.at(&f);
  inner.bindings = &bindings;
  inner.depth = scope.depth + 1;
  const std::string call_name = call.name().empty() && call.output_size() ? call.output(0) : call.name();
  inner.prefix = scope.prefix + call_name + "/";
  for (int i = 0; i < f.input_size(); ++i)
    if (!inner.values
             .emplace(f.input(i), i < call.input_size() && !call.input(i).empty()
                                      ? lookup(scope, call.input(i))
                                      : nullptr)
             .second)
      refuse("function {} names two inputs {}", sinter::quoted(f.name()), sinter::quoted(f.input(i)));

  // What the body makes under an output's name becomes the call's output itself; an argument passed through,
  // or an output named twice, needs a copy.
  std::vector<std::string> wanted;
  std::vector<std::pair<std::string, Value*>> copies;
  for (int i = 0; i < call.output_size(); ++i) {
    Value* out = call.output(i).empty() ? nullptr : own(scope, call.output(i));
    if (!out) continue;
    wanted.push_back(f.output(i));
    if (inner.values.emplace(f.output(i), out).second)
      inner.awaited.insert(f.output(i));
    else
      copies.emplace_back(f.output(i), out);
  }
  calls_.push_back(&f);
  try {
    import_nodes(inner, f.node(), wanted);
  } catch (...) {
    calls_.pop_back();
    throw;
  }
  calls_.pop_back();
  if (!inner.awaited.empty())
    refuse("function {} does not make its output {}", sinter::quoted(f.name()),
           sinter::quoted(*inner.awaited.begin()));
  for (const auto& [name, out] : copies) {
    copy(scope, inner, name, inner.prefix + name, out);
  }
}

// `to` becomes a copy of what `name` means in `from`.
void Importer::copy(Scope& scope, Scope& from, const std::string& name, const std::string& node_name,
                    Value* to) {
  Value* value = lookup(from, name);
  if (!value) refuse("output {} is an absent argument", sinter::quoted(name));
  Draft d;
  d.op = "Identity";
  d.name = node_name;
  d.inputs = {value};
  d.outputs = {to};
  emit(scope, d);
}

}  // namespace sinter
