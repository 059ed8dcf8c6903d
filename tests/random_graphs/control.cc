// If, Loop and Scan around small bodies that capture values of the graph.
#include "random_graphs/productions.h"

namespace sinter::random_graphs {
namespace {

onnx::NodeProto* add(onnx::GraphProto& g, const std::string& op, const std::vector<std::string>& inputs,
                     const std::string& output) {
  auto* n = g.add_node();
  n->set_op_type(op);
  n->set_name(op + "_" + output);
  for (const std::string& i : inputs) n->add_input(i);
  n->add_output(output);
  return n;
}
void add_tensor(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* to, const std::string& name,
                DType t, bool scalar = false) {
  auto* v = to->Add();
  v->set_name(name);
  v->mutable_type()->mutable_tensor_type()->set_elem_type(onnx_of(t));
  if (scalar) v->mutable_type()->mutable_tensor_type()->mutable_shape();
}

const Item* any_state(Builder& b) {
  return b.any([](const Item& i) { return is_float(i.dtype) && i.rank() > 0; });
}

bool add_if(Builder& b) {
  const Item* x = any_state(b);
  if (!x) return false;
  const std::string sum = b.node("ReduceMax", {x->name}, {{"keepdims", int64_t{0}}});
  const std::string condition = b.node("Greater", {sum, b.scalar(x->dtype, b.uniform(-1, 1.9))});
  const std::string name = x->name, tag = condition;
  onnx::GraphProto yes, no;
  yes.set_name("yes");
  no.set_name("no");
  add(yes, "Neg", {name}, tag + "_n");
  add(yes, "Sigmoid", {tag + "_n"}, tag + "_t");
  add_tensor(yes.mutable_output(), tag + "_t", x->dtype);
  if (b.chance(50))
    add(no, "Relu", {name}, tag + "_e");
  else
    add(no, "Add", {name, name}, tag + "_e");
  add_tensor(no.mutable_output(), tag + "_e", x->dtype);
  b.control("If", {condition}, {{"then_branch", yes}, {"else_branch", no}}, {}, 1);
  return true;
}

// state = tanh(state * x + state); one row of results for each iteration.
bool add_loop(Builder& b) {
  const Item* x = any_state(b);
  if (!x || x->rank() > 3) return false;
  const std::string tag = b.integers({b.between(1, 4)});
  onnx::GraphProto body;
  body.set_name("body");
  add_tensor(body.mutable_input(), tag + "_i", DType::kI64, true);
  add_tensor(body.mutable_input(), tag + "_c", DType::kBool, true);
  add_tensor(body.mutable_input(), tag + "_s", x->dtype);
  add(body, "Identity", {tag + "_c"}, tag + "_k");
  add(body, "Mul", {tag + "_s", x->name}, tag + "_m");
  add(body, "Add", {tag + "_m", tag + "_s"}, tag + "_a");
  add(body, "Tanh", {tag + "_a"}, tag + "_o");
  add(body, "Relu", {tag + "_o"}, tag + "_r");
  add_tensor(body.mutable_output(), tag + "_k", DType::kBool, true);
  add_tensor(body.mutable_output(), tag + "_o", x->dtype);
  add_tensor(body.mutable_output(), tag + "_r", x->dtype);
  const std::string count = b.node("Squeeze", {tag});
  b.control("Loop", {count, b.weight(DType::kBool, {}, 1, 1), x->name}, {{"body", body}}, {}, 2);
  return true;
}

bool add_scan(Builder& b) {
  const Item* x = b.any([](const Item& i) { return is_float(i.dtype) && i.rank() == 3; });
  if (!x) return false;
  const int64_t axis = b.between(0, 2);
  const std::string tag = b.integers({0});
  onnx::GraphProto body;
  body.set_name("body");
  add_tensor(body.mutable_input(), tag + "_x", x->dtype);
  add(body, "Softmax", {tag + "_x"}, tag + "_y");
  add_tensor(body.mutable_output(), tag + "_y", x->dtype);
  b.control("Scan", {x->name}, {{"body", body}},
            {{"num_scan_inputs", int64_t{1}},
             {"scan_input_axes", std::vector<int64_t>{axis}},
             {"scan_output_axes", std::vector<int64_t>{b.between(0, 2)}},
             {"scan_input_directions", std::vector<int64_t>{b.between(0, 1)}}},
            1);
  return true;
}

}  // namespace

const std::vector<Production>& control_productions() {
  static const std::vector<Production> table = {
      {"if", 4, add_if}, {"loop", 3, add_loop}, {"scan", 3, add_scan}};
  return table;
}

}  // namespace sinter::random_graphs
