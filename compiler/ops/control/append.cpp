// Lists in Loops: `list = Concat(list, Unsqueeze(x, 0))`, beginning with an empty one, is what exporters make
// of an append. As a carried value it would be copied whole in each iteration; as a result of the Loop (one
// row an iteration) it is written once.
#include <algorithm>

#include "ops/control/bodies.h"

namespace sinter {
namespace {

bool is_plain(const Node* n, std::string_view op) {
  return n && n->op->domain[0] == '\0' && n->op->name == op && !n->epilogue;
}

// The Concat that appends one row to state k and does nothing else with it; null where there is none.
Node* appending(const Node& loop, const LoopForm& form, size_t k) {
  const Value* initial = loop.inputs[form.first + k];
  const Graph& body = *loop.bodies[0];
  const Value *in = body.inputs[form.first + k], *made = body.outputs[form.body_output(k)];
  const Shape& s = initial->type.shape;
  if (s.empty() || !s[0].is(0) || !is_static(s)) return nullptr;
  Node* concat = made->producer;
  if (!is_plain(concat, "Concat") || concat->inputs.size() != 2 || concat->inputs[0] != in) return nullptr;
  const int64_t axis = concat->attributes.integer("axis", 1);
  if (axis != 0 && axis != -static_cast<int64_t>(s.size())) return nullptr;
  if (in->users.size() != 1 || !made->users.empty() ||
      std::count(body.outputs.begin(), body.outputs.end(), made) != 1 || body.is_output(in))
    return nullptr;
  const Node* row = concat->inputs[1] ? concat->inputs[1]->producer : nullptr;
  if (!is_plain(row, "Unsqueeze") || !row->input(1) || !row->inputs[1]->data) return nullptr;
  const Tensor& axes = *row->inputs[1]->data;
  return axes.size() == 1 && axes.integer(0) == 0 ? concat : nullptr;
}

template <class T>
void move_to_end(std::vector<T>& v, size_t i) {
  std::rotate(v.begin() + static_cast<std::ptrdiff_t>(i), v.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              v.end());
}

}  // namespace

void append_in_place(Graph& g, Node& loop) {
  for (size_t k = loop_form(loop).states; k-- > 0;) {
    const LoopForm form = loop_form(loop);
    Node* concat = appending(loop, form, k);
    if (!concat) continue;
    Graph& body = *loop.bodies[0];
    Value *in = body.inputs[form.first + k], *initial = loop.inputs[form.first + k];
    // The empty list stays in front of the row: it says which shape rows have where there are none.
    const TensorType type = initial->type;
    body.set_input(concat, 0,
                   body.add_constant(in->name + "/empty", Tensor(type.dtype, static_dims(type.shape))));
    Value* made = concat->outputs[0];
    Value* row = body.add_value(made->name + "/row", {});
    Node* squeeze = body.add_node(
        find_op("", "Squeeze"), concat->name + "/row",
        {made, body.add_constant(concat->name + "/axis", Tensor::of(std::vector<int64_t>{0}))}, {row});
    squeeze->sources = concat->sources;
    body.outputs[form.body_output(k)] = row;
    move_to_end(body.outputs, form.body_output(k));
    move_to_end(loop.outputs, k);
    body.inputs.erase(body.inputs.begin() + static_cast<std::ptrdiff_t>(form.first + k));
    std::erase_if(body.values, [&](const auto& v) { return v.get() == in; });
    g.remove_input(&loop, form.first + k);
  }
}

}  // namespace sinter
