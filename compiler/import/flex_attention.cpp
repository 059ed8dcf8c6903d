// FlexAttention (ai.onnx.preview 1): attention whose scores and weights go through graphs of the model's own.
//
// Without such graphs it is Attention. With them it becomes products, Softmax and the graphs' nodes, inlined
// with their one input bound. Queries that share a head of keys are put one behind the other as more rows of
// that head, so that nothing is repeated.
#include <cmath>

#include "import/importer.h"
#include "import/upgrade.h"
#include "ir/error.h"

namespace sinter {
namespace {

Attributes with(const std::string& name, Attribute value) {
  Attributes a;
  a.set(name, std::move(value));
  return a;
}

}  // namespace

Value* Importer::inline_modifier(Scope& outer, const onnx::GraphProto& g, Value* input) {
  if (outer.depth + 1 > kMaxDepth) refuse("nested more than {} deep", kMaxDepth);
  if (g.input_size() != 1 || g.output_size() != 1) refuse("a modifier must have one input and one output");
  Scope scope = inside(outer, outer.graph);
  declare_initializers(scope, g);
  scope.values.emplace(g.input(0).name(), input);
  import_nodes(scope, g.node(), {g.output(0).name()});
  Value* v = lookup(scope, g.output(0).name());
  if (!v || sequences_.count(v)) refuse("a modifier's output is no tensor");
  return v;
}

void Importer::expand_flex_attention(Scope& scope, Rewrite& r) {
  Draft& d = r.node;
  const onnx::GraphProto *of_scores = nullptr, *of_weights = nullptr;
  for (const auto& [name, graph] : d.graphs) {
    if (name == "score_mod") of_scores = graph;
    if (name == "prob_mod") of_weights = graph;
  }
  d.domain.clear();
  d.graphs.clear();
  const int64_t precision = d.attributes.integer("softmax_precision", 0);
  d.attributes.erase("softmax_precision");
  if (!of_scores && !of_weights) {
    d.op = "Attention";
    return;
  }
  if (d.inputs.size() != 3 || !d.inputs[0] || !d.inputs[1] || !d.inputs[2]) refuse("it has not three inputs");
  Value *q = d.inputs[0], *k = d.inputs[1], *v = d.inputs[2];
  const TensorType *of_q = r.type(q), *of_k = r.type(k);
  if (!of_q || !of_k || of_q->shape.size() != 4 || of_k->shape.size() != 4)
    refuse("its inputs have not four axes that are known");
  const Dim &heads = of_q->shape[1], &kv_heads = of_k->shape[1], &head = of_q->shape[3];
  if (!heads.is_static() || !kv_heads.is_static() || !head.is_static() || kv_heads.value() <= 0 ||
      head.value() <= 0 || heads.value() % kv_heads.value() != 0)
    refuse("{} heads of queries for {} of keys", heads.text(), kv_heads.text());
  const DType t = of_q->dtype;
  const DType work = precision != 0     ? dtype_of_onnx(static_cast<int32_t>(precision))
                     : t == DType::kF64 ? t
                                        : DType::kF32;
  const auto as = [&](Value* x, DType to) {
    return t == work ? x : r.before("Cast", {x}, with("to", static_cast<int64_t>(onnx_of(to))));
  };
  const bool shared = !(heads == kv_heads);
  const auto heads_as = [&](Value* x, const Dim& h) {
    return shared ? r.before("Reshape", {x, r.constant({0, h.value(), -1, 0}, "heads")}) : x;
  };
  const float scale =
      d.attributes.real("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(head.value()))));
  Value* turned = r.before("Transpose", {k}, with("perm", std::vector<int64_t>{0, 1, 3, 2}));
  Value* scores = as(r.before("MatMul", {heads_as(q, kv_heads), turned}), work);
  scores = heads_as(r.before("Mul", {scores, r.constant_like(scale, scores, "scale")}), heads);
  if (of_scores) scores = inline_modifier(scope, *of_scores, scores);
  Value* weights = r.before("Softmax", {scores});
  if (of_weights) weights = inline_modifier(scope, *of_weights, weights);
  d.op = "MatMul";
  d.attributes = {};
  d.inputs = {heads_as(as(weights, t), kv_heads), v};
  if (!shared) return;
  const auto [y, whole] = r.divert(0);
  r.then("Reshape", {y, r.constant({0, heads.value(), -1, 0}, "heads")}, whole);
}

}  // namespace sinter
