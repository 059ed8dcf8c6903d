// Drafts: a NodeProto's operands and attributes in our own types, before the upgrade to the newest opset.
#include <algorithm>

#include "import/importer.h"
#include "import/tensor_proto.h"
#include "ir/error.h"

namespace sinter {

using onnx::AttributeProto;
using onnx::NodeProto;

const AttributeProto* Importer::resolve(const Scope& scope, const AttributeProto& a) const {
  if (a.ref_attr_name().empty()) return &a;
  if (!scope.bindings)
    refuse("attribute {} refers to a function's attribute outside of a function", sinter::quoted(a.name()));
  const auto it = scope.bindings->find(a.ref_attr_name());
  return it == scope.bindings->end() ? nullptr : &it->second;
}

namespace {

// Models of IR version 1 leave the type away.
AttributeProto::AttributeType type_of(const AttributeProto& a) {
  if (a.type() != AttributeProto::UNDEFINED) return a.type();
  if (a.has_f()) return AttributeProto::FLOAT;
  if (a.has_i()) return AttributeProto::INT;
  if (a.has_s()) return AttributeProto::STRING;
  if (a.has_t()) return AttributeProto::TENSOR;
  if (a.has_g()) return AttributeProto::GRAPH;
  if (a.floats_size()) return AttributeProto::FLOATS;
  if (a.ints_size()) return AttributeProto::INTS;
  if (a.strings_size()) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

}  // namespace

Draft Importer::draft(Scope& scope, const NodeProto& n) {
  Draft d;
  d.op = n.op_type();
  d.domain = normal_domain(n.domain());
  d.name = scope.prefix + node_name(n);
  for (const std::string& i : n.input()) d.inputs.push_back(i.empty() ? nullptr : lookup(scope, i));
  while (!d.inputs.empty() && !d.inputs.back()) d.inputs.pop_back();
  for (const std::string& o : n.output())
    d.outputs.push_back(!o.empty() && scope.awaited.count(o) ? own(scope, o) : nullptr);
  int named = 0;
  for (int i = 0; i < n.output_size(); ++i)
    if (!n.output(i).empty()) named = i + 1;
  d.outputs.resize(static_cast<size_t>(named));
  std::set<std::string> seen;
  for (const AttributeProto& given : n.attribute()) {
    const std::string& name = given.name();
    if (!seen.insert(name).second) refuse("attribute {} is given twice", sinter::quoted(name));
    const AttributeProto* a = resolve(scope, given);
    if (!a) continue;
    if (a->type() == AttributeProto::UNDEFINED && model_.ir_version() >= 3)
      refuse("attribute {} is of no type", sinter::quoted(name));
    spend_inference(kStepsOfElement *
                    static_cast<double>(a->floats_size() + a->ints_size() + a->strings_size()));
    switch (type_of(*a)) {
      case AttributeProto::FLOAT: d.attributes.set(name, a->f()); break;
      case AttributeProto::INT: d.attributes.set(name, static_cast<int64_t>(a->i())); break;
      case AttributeProto::STRING: d.attributes.set(name, a->s()); break;
      case AttributeProto::FLOATS:
        d.attributes.set(name, std::vector<float>(a->floats().begin(), a->floats().end()));
        break;
      case AttributeProto::INTS:
        d.attributes.set(name, std::vector<int64_t>(a->ints().begin(), a->ints().end()));
        break;
      case AttributeProto::STRINGS:
        d.attributes.set(name, std::vector<std::string>(a->strings().begin(), a->strings().end()));
        break;
      case AttributeProto::TENSOR:
        if (a->t().data_type() == onnx::TensorProto::STRING) {
          d.attributes.set(
              name, std::vector<std::string>(a->t().string_data().begin(), a->t().string_data().end()));
          break;
        }
        try {
          d.attributes.set(name, weights_.dense(a->t()));
        } catch (const Refusal& r) {
          refuse("attribute {}: {}", sinter::quoted(name), r.what());
        }
        break;
      case AttributeProto::GRAPH: d.graphs.emplace_back(name, &a->g()); break;
      case AttributeProto::TYPE_PROTO:
        if (d.op == "Optional") break;  // of an empty one
        [[fallthrough]];
      default: refuse("attribute {} is of a type that is not supported", sinter::quoted(name));
    }
  }
  if (d.op == "If" && d.domain.empty()) {  // then before else
    std::sort(d.graphs.begin(), d.graphs.end(), [](auto& a, auto& b) { return a.first > b.first; });
    if (d.graphs.size() != 2 || d.graphs[0].first != "then_branch" || d.graphs[1].first != "else_branch")
      refuse("an If needs then_branch and else_branch");
  } else if ((d.op == "Loop" || d.op == "Scan") && d.domain.empty()) {
    if (d.graphs.size() != 1 || d.graphs[0].first != "body") refuse("a {} needs one body", d.op);
  }
  return d;
}

}  // namespace sinter
