// look_up_one_hot: a product of one-hot rows with a constant matrix, and what follows it element by element,
// takes one row of a table for each index, which is made here: the same node evaluated for every index.
//
//   OneHot(ids, depth, [off, on]) -> Reshape -> MatMul(., W) -> epilogue of constants
//   Gather(table, ids)
//
// Where an index lies outside of [-depth, depth) no element is hot: the table has a row for that behind the
// others.
#include "passes/builder.h"
#include "passes/passes.h"

namespace sinter {
namespace {

constexpr int64_t kMostRows = 4096;  // of the table: to make it takes their square

bool is_row(const Value& v) {  // the same for all rows of the product
  for (size_t a = 0; a + 1 < v.type.shape.size(); ++a)
    if (!v.type.shape[a].is(1)) return false;
  return v.data.has_value();
}

class Matcher {
 public:
  Matcher(Graph& g, const Order& order) : g_(g), order_(order) {}

  bool fuse(Node* n) {
    if (!is_product(*n)) return false;
    Node* from = producer(n->inputs[0]);
    Node* view = from && is_op(from, "Reshape") ? from : nullptr;
    if (view) from = producer(view->inputs[0]);
    if (!from || !is_op(from, "OneHot") || !keeps_last(*from, *n->inputs[0])) return false;
    const Value& ids = *from->inputs[0];
    const bool whole = ids.type.dtype == DType::kI32 || ids.type.dtype == DType::kI64;
    if (!whole || !from->inputs[2]->data || from->inputs[2]->type.dtype != DType::kF32) return false;
    const Shape rows = rows_of(ids, n->inputs[1]->type.shape[1]);
    const auto target = reshape_target(rows, n->outputs[0]->type.shape);
    if (!target) return false;
    replace(*n, *from, *target);
    return true;
  }

 private:
  Node* producer(const Value* v) const {
    return v && v->producer && order_.has(v->producer) ? v->producer : nullptr;
  }
  static Shape rows_of(const Value& ids, const Dim& columns) {
    Shape s = ids.type.shape;
    s.push_back(columns);
    return s;
  }

  bool is_product(const Node& n) const {
    if (std::string_view(n.op->name) != "MatMul" || n.op->domain[0] != 0 || n.inputs[0]->data) return false;
    const Value& w = *n.inputs[1];
    if (!w.data || w.type.shape.size() != 2 || w.type.dtype != DType::kF32) return false;
    for (size_t i = 2; i < n.inputs.size(); ++i)
      if (!n.inputs[i] || !is_row(*n.inputs[i])) return false;
    return n.outputs[0]->type.dtype == DType::kF32 && w.data->dim(0) > 0 && w.data->dim(0) < kMostRows;
  }

  // Whether the hot axis is the last one, and still is in x, which shows it.
  static bool keeps_last(const Node& one_hot, const Value& x) {
    const Shape& s = one_hot.outputs[0]->type.shape;
    const int64_t axis = one_hot.attributes.integer("axis", -1), rank = static_cast<int64_t>(s.size());
    return (axis == -1 || axis == rank - 1) && s.back().is_static() && !x.type.shape.empty() &&
           x.type.shape.back() == s.back();
  }

  // The product's result for each index, and for none.
  static Tensor table(const Node& n, const Tensor& values) {
    const int64_t depth = n.inputs[1]->data->dim(0);
    Tensor x(DType::kF32, {depth + 1, depth});
    for (int64_t i = 0; i <= depth; ++i)
      for (int64_t j = 0; j < depth; ++j) x.set_real(i * depth + j, values.real(i == j ? 1 : 0));
    Graph g;
    std::vector<Value*> inputs{g.add_constant("x", std::move(x))};
    for (size_t i = 1; i < n.inputs.size(); ++i) inputs.push_back(g.add_constant("c", *n.inputs[i]->data));
    Value* y = g.add_value("y", {});
    Node* product = g.add_node(n.op, "product", inputs, {y});
    product->anchor_inputs = n.anchor_inputs;
    product->epilogue = n.epilogue;
    infer(g, *product);
    g.outputs.push_back(y);
    return evaluate(g, {})[0];
  }

  void replace(Node& n, Node& one_hot, const std::vector<int64_t>& target) {
    Builder make(g_, &n);
    Value* ids = one_hot.inputs[0];
    const int64_t depth = n.inputs[1]->data->dim(0);
    const auto number = [&](int64_t v) {
      Tensor t(ids->type.dtype, {});
      t.set_integer(0, v);
      return make.constant("number", std::move(t));
    };
    Value *zero = number(0), *end = number(depth);
    Value* row = make("Where", {make("Less", {ids, zero}), make("Add", {ids, end}), ids});
    Value* inside = make("And", {make("GreaterOrEqual", {row, zero}), make("Less", {row, end})});
    row = make("Where", {inside, row, end});
    Value* all = make.constant("table", table(n, *one_hot.inputs[2]->data));
    Value* rows = make("Gather", {all, row}, {{"axis", int64_t{0}}});
    fuse_into(g_, find_op("", "Reshape"), &n, {rows, make.integers("shape", target)}, {}, {&one_hot, &n});
  }

  Graph& g_;
  const Order& order_;
};

}  // namespace

bool look_up_one_hot(Graph& g, const PassOptions&) { return fuse_each<Matcher>(g); }

}  // namespace sinter
