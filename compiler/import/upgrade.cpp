// The table of what changed between opsets.
#include "import/upgrade.h"

#include "import/onnx.h"
#include "ir/error.h"

namespace sinter {

const TensorType* Rewrite::type(const Value* v) const {
  return v && v->type.dtype != DType::kUndefined ? &v->type : nullptr;
}
Value* Rewrite::constant(Tensor data, const std::string& suffix) {
  return graph_.add_constant(node.name + "/" + suffix, std::move(data));
}
Value* Rewrite::constant(const std::vector<int64_t>& values, const std::string& suffix) {
  return constant(Tensor::of(values), suffix);
}
Value* Rewrite::before(const std::string& op, std::vector<Value*> inputs, Attributes attributes) {
  Value* out = graph_.add_value(node.name + "/" + op, {});
  Draft d;
  d.op = op;
  d.name = node.name;
  d.inputs = std::move(inputs);
  d.outputs = {out};
  d.attributes = std::move(attributes);
  emit_(d);
  return out;
}
std::pair<Value*, Value*> Rewrite::divert(size_t i) {
  Value* old = node.outputs[i];
  node.outputs[i] = graph_.add_value(node.name + "/" + node.op, {});
  return {node.outputs[i], old};
}
void Rewrite::then(const std::string& op, std::vector<Value*> inputs, Value* output, Attributes attributes) {
  Draft d;
  d.op = op;
  d.name = node.name;
  d.inputs = std::move(inputs);
  d.outputs = {output};
  d.attributes = std::move(attributes);
  after.push_back(std::move(d));
}
void Rewrite::attribute_to_input(const std::string& name, size_t i) {
  if (!node.attributes.has(name)) return;
  const Attribute a = node.attributes.all().at(name);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&a))
    node.set_input(i, constant(*list, name));
  else if (const auto* one = std::get_if<int64_t>(&a))
    node.set_input(i, constant(Tensor::scalar(*one), name));
  else
    fail("attribute " + name + " has the wrong type");
  node.attributes.erase(name);
}
void Rewrite::fail(const std::string& why) const {
  refuse("{} ({}): {}", sinter::quoted(node.name), node.op, why);
}

void upgrade(Rewrite& rewrite) { (void)rewrite; }

}  // namespace sinter
