// Frames of models: inputs and their dims, options, initializers, outputs, functions, bodies, external data.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "import/sha256.h"
#include "import/tensor_proto.h"
#include "model_text.h"
#include "onnx_suite.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

const char* const kDynamic = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[N,4,H] x, float[N,4,H] z) => (float[N,4,H] y) { y = Add(x, z) })";

std::string type_with(std::vector<DimOption> dims,
                      std::map<std::string, std::vector<int64_t>> input_shapes = {}) {
  ImportOptions o;
  o.dims = std::move(dims);
  o.input_shapes = std::move(input_shapes);
  std::string result;
  const std::string refusal = refusal_of([&] {
    const Model m = import_text(kDynamic, o);
    result = text(m.graph->outputs[0]->type);
    for (const SymbolPtr& s : m.graph->symbols->all())
      result += " " + s->name + " in " + std::to_string(s->range.lo) + ".." +
                (s->range.bounded() ? std::to_string(s->range.hi) : "");
  });
  return refusal == "accepted" ? result : refusal;
}

TEST(Dims, AreSymbolsPinnedOrBounded) {
  EXPECT_EQ(type_with({}), "float32[N,4,H] N in 1.. H in 1..");
  EXPECT_EQ(type_with({{"N", 3, 3}}), "float32[3,4,H] H in 1..");
  EXPECT_EQ(type_with({{"N", 1, 8}, {"H", 5, 5}}), "float32[N,4,5] N in 1..8");
  EXPECT_EQ(type_with({{"H", 64, 640, 32}, {"N", 1, 1}}), "float32[1,4,32*H_32] H/32 in 2..20");
  EXPECT_EQ(type_with({{"H", 33, 63, 32}}), R"(--dim "H": no multiple of 32 lies in 33..63)");
  EXPECT_EQ(type_with({{"x@0", 7, 7}}), "float32[7,4,H] H in 1..");
  EXPECT_EQ(type_with({{"z@0", 7, 7}}), "float32[7,4,H] H in 1..");
  EXPECT_EQ(type_with({}, {{"x", {2, 4, 3}}, {"z", {2, 4, 3}}}), "float32[2,4,3]");
  EXPECT_EQ(type_with({{"N", 1, 8}}, {{"x", {2, 4, 3}}, {"z", {2, 4, 3}}}), "float32[N,4,3] N in 1..8");
}

TEST(Dims, OfTheModelGiveWayToTheUser) {
  const auto changed = [](const DimOption& option) {
    ImportOptions o;
    o.dims = {option};
    const Model m = import_text(
        R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1,4] x) => (float[1,4] y) { y = Relu(x) })", o);
    std::string all = text(m.graph->outputs[0]->type);
    for (const std::string& w : m.warnings) all += "|" + w;
    return all;
  };
  EXPECT_EQ(changed({"x@0", 3, 3}),
            R"(float32[3,4]|input "x" axis 0: the model fixes it at 1, --dim makes it 3|)"
            R"(output "y": declared as [1,4], but it is float32[3,4])");
  EXPECT_EQ(changed({"x@0", 1, 8}),
            R"(float32[x_0,4]|input "x" axis 0: the model fixes it at 1, --dim makes it 1..8)");
  EXPECT_EQ(changed({"x@0", 1, 1}), "float32[1,4]");
}

// What grows from nothing may be empty: all that reads it joins it to something else.
TEST(Dims, MayBeNothingWhereSomethingIsJoined) {
  const auto past = [](const std::string& nodes, const DimOption& option) {
    std::string range;
    const std::string refusal = refusal_of([&] {
      ImportOptions o;
      o.dims = {option};
      const Model m = import_text(
          "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,P,4] past, float[1,1,4] x) => (float[a,b,c] "
          "y) {" +
              nodes + "}",
          o);
      const Dim& d = m.graph->inputs[0]->type.shape[1];
      range = std::to_string(d.lo()) + ".." + std::to_string(d.hi());
    });
    return refusal == "accepted" ? range : refusal;
  };
  const DimOption most{"P", 1, 8, 1, true}, none{"P", 0, 0}, exact{"P", 1, 8};
  const std::string joined = "y = Concat<axis = 1>(past, x)",
                    moved =
                        "t = Transpose<perm = [1, 0, 2]>(past) "
                        "u = Transpose<perm = [1, 0, 2]>(x) y = Concat<axis = -3>(t, u)";
  EXPECT_EQ(past(joined, most), "0..8");
  EXPECT_EQ(past(moved, most), "0..8");
  EXPECT_EQ(past("y = Identity(x)", most), "0..8");
  EXPECT_EQ(past(joined, exact), "1..8");
  EXPECT_EQ(past(joined, none), "0..0");
  EXPECT_EQ(past("y = Relu(past)", most), "0..8");
  EXPECT_EQ(past("y = Softmax<axis = 1>(past)", most), "1..8");
  const std::string branches =
      "s = ReduceSum<keepdims = 0>(x) z = Constant<value = float {0.0}>() c = Less(s, z) "
      "y = If(c) <then_branch = t () => (float[1,P,4] u) { u = Softmax<axis = 1>(past) }, "
      "else_branch = e () => (float[1,1,4] v) { v = Relu(x) }>";
  EXPECT_EQ(past(branches, most), "0..8");
  EXPECT_NE(past("y = Softmax<axis = 1>(past)", none).find("of 0 elements is no input"), std::string::npos);
}

TEST(Dims, RefuseWhatDoesNotFit) {
  EXPECT_EQ(type_with({{"Q", 1, 1}}),
            R"(--dim "Q": the model has no free dim of that name; it has "N", "H")");
  EXPECT_EQ(type_with({{"N", 5, 4}}), R"(--dim "N": 5..4:1 is no range)");
  EXPECT_EQ(type_with({{"N", 1, 1}, {"N", 2, 2}}), R"(--dim "N" is given twice)");
  EXPECT_EQ(type_with({}, {{"x", {2, 4}}, {"z", {2, 4, 3}}}),
            R"(input "x": 2 axes given, the model wants 3)");
  EXPECT_EQ(type_with({}, {{"x", {2, 4, 3}}, {"z", {5, 4, 3}}}),
            R"(input "z" axis 0 is 5, but the dim "N" is 2 elsewhere)");
}

TEST(Dims, WithoutNameAreCalledAfterTheirPlace) {
  onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,4] x) => (float[N,4] y) { y = Relu(x) })");
  p.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->clear_dim_param();
  const Model m = import_model(p, {});
  EXPECT_EQ(m.graph->symbols->all()[0]->name, "x@0");
  ImportOptions o;
  o.dims = {{"x@0", 1, 8}};
  EXPECT_EQ(import_model(p, {}, o).graph->inputs[0]->type.shape[0].hi(), 8);
}

// Counts get capacities by what the model calls an output's extent, or by the output.
std::string outputs_with(const DimOption& option) {
  ImportOptions o;
  o.dims = {option};
  std::string result;
  const std::string refusal = refusal_of([&] {
    const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[4,8] x) => (int64[K,2] y, int64[J,2] z, int64[L,2] w) {
        n = NonZero(x)  y = Transpose(n)
        from = Constant<value_ints = [0]>()  to = Constant<value_ints = [6]>()  z = Slice(y, from, to, from)
        w = Concat<axis = 0>(y, y)
      })",
                                o);
    for (const Value* v : m.graph->outputs)
      result += (result.empty() ? "" : " ") + std::to_string(v->type.shape[0].hi());
  });
  return refusal == "accepted" ? result : refusal;
}

TEST(Dims, OfOutputsBoundCounts) {
  EXPECT_EQ(outputs_with({"K", 1, 32}), "32 6 64");
  EXPECT_EQ(outputs_with({"K", 1, 5}), "5 5 10");
  EXPECT_EQ(outputs_with({"y@0", 1, 5}), "5 5 10");
  EXPECT_EQ(outputs_with({"z@0", 1, 3}), "3 3 6");
  EXPECT_EQ(outputs_with({"J", 1, 6}), "32 6 64");
  EXPECT_EQ(outputs_with({"L", 1, 9}), "4 4 8");
  EXPECT_EQ(outputs_with({"K", 4, 4}),
            R"(output "y": --dim "K": the data decide the count, which can only be bounded: K<=4)");
  EXPECT_EQ(outputs_with({"y@1", 1, 1}),
            R"(--dim "y@1": the model has no free dim of that name; it has "K", "J", "L")");
}

TEST(Constants, InputsByOption) {
  ImportOptions o;
  o.constants["z"] = Tensor(DType::kF32, {2, 4, 3});
  const Model m = import_text(kDynamic, o);
  ASSERT_EQ(m.graph->inputs.size(), 1u);
  EXPECT_TRUE(m.graph->nodes[0]->inputs[1]->is_constant());
  o.constants["z"] = Tensor(DType::kF32, {2, 5, 3});
  EXPECT_EQ(refusal_of([&] { import_text(kDynamic, o); }),
            R"(--const "z" gives float32[2,5,3], the model wants float32[N,4,H])");
  o.constants = {{"q", Tensor(DType::kF32, {1})}};
  EXPECT_EQ(refusal_of([&] { import_text(kDynamic, o); }), R"(--const "q": the model has no such input)");
}

TEST(Model, InitializersAmongInputsAreConstants) {
  onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) })");
  *p.mutable_graph()->add_initializer() = tensor_proto(Tensor::of(std::vector<float>{3, 5}, {2}), "w");
  const Model m = import_model(p, {});
  ASSERT_EQ(m.graph->inputs.size(), 1u);
  const auto y = evaluate(*m.graph, {Tensor::of(std::vector<float>{2, 2}, {2})});
  EXPECT_EQ(y[0].reals(), (std::vector<double>{6, 10}));
}

TEST(Model, SparseInitializersAreMadeDense) {
  onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) })");
  auto* s = p.mutable_graph()->add_sparse_initializer();
  *s->mutable_values() = tensor_proto(Tensor::of(std::vector<float>{7, 9}, {2}), "w");
  *s->mutable_indices() = tensor_proto(Tensor::of(std::vector<int64_t>{1, 5}), "");
  s->add_dims(2);
  s->add_dims(3);
  const Model m = import_model(p, {});
  const auto y = evaluate(*m.graph, {Tensor(DType::kF32, {2, 3})});
  EXPECT_EQ(y[0].reals(), (std::vector<double>{0, 7, 0, 0, 0, 9}));
  *s->mutable_indices() = tensor_proto(Tensor::of(std::vector<int64_t>{1, 6}), "");
  EXPECT_NE(refusal_of([&] { import_model(p, {}); }).find("index 6 is out of range"), std::string::npos);
}

TEST(Model, NodesMayStandInAnyOrderAndUnusedOnesGo) {
  const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Relu(b) b = Neg(a) a = Abs(x) dead = NoSuchOp(x) })");
  ASSERT_EQ(m.graph->nodes.size(), 3u);
  EXPECT_STREQ(m.graph->nodes[0]->op->name, "Abs");
  EXPECT_STREQ(m.graph->nodes[2]->op->name, "Relu");
  EXPECT_EQ(m.graph->nodes[2]->name, "y");
  EXPECT_EQ(m.graph->nodes[2]->sources, std::vector<std::string>{R"("y" (Relu))"});
}

TEST(Model, AllProblemsAreReported) {
  EXPECT_EQ(refusal_of([] {
              import_text(R"(<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
                g (float[2] x) => (float[2] y, float[2] z) {
                  a = Foo(x) b = mine.Bar(a) c = Relu(missing) y = Add(b, c) z = Softmax<axis = 3>(x) })");
            }),
            R"("a" (Foo): operator Foo of domain "" (opset 17) is not supported
"b" (Bar): operator Bar of domain "mine" is not supported; --custom-ops FILE names a C function for it
"c" (Relu): "missing" is not defined
"z" (Softmax): axis 3 out of range for [2])");
}

TEST(Model, BrokenStructureIsRefused) {
  auto refusal = [](const char* nodes, const char* outputs = "float[2] y") {
    return refusal_of([&] {
      import_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (") + outputs +
                  ") {" + nodes + "}");
    });
  };
  EXPECT_EQ(refusal("a = Relu(b) b = Relu(a) y = Add(a, x)"), R"(the graph has a cycle at "a" (Relu))");
  EXPECT_EQ(refusal("y = Relu(y)"), R"(the graph has a cycle at "y" (Relu))");
  EXPECT_EQ(refusal("y = Relu(x) y = Neg(x)"), R"("y" (Neg): the name "y" is made twice)");
  EXPECT_EQ(refusal("x = Relu(x) y = Neg(x)"), R"(the graph has a cycle at "x" (Relu))");
  EXPECT_EQ(refusal("a = Relu(x)"), R"(output "y": "y" is not defined)");
  EXPECT_EQ(refusal("y = Relu(x)", "int32[2] y"), R"(output "y": declared as int32, but it is float32[2])");
  EXPECT_EQ(refusal("y = Relu(x)", "float[K] y"), "accepted");
  EXPECT_EQ(refusal("y = Relu<alpha = @nothing>(x)"),
            R"("y" (Relu): attribute "alpha" refers to a function's attribute outside of a function)");
}

// Whoever opened the batch has left the sample's elsewhere: the extents of "a" and "y".
TEST(Model, ExtentsOfTheSampleAreForgivenWhereInputsAreOpen) {
  const auto import_with = [](const std::string& input, const std::string& outputs,
                              const std::vector<DimOption>& dims) {
    auto proto = parse_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[" + input + ",3] x) => (" +
                            outputs + ") { a = Relu(x) y = Neg(a) }");
    auto* stale = proto.mutable_graph()->add_value_info();
    stale->set_name("a");
    auto* shape = stale->mutable_type()->mutable_tensor_type();
    shape->set_elem_type(1);
    for (const int64_t extent : {1, 3}) shape->mutable_shape()->add_dim()->set_dim_value(extent);
    ImportOptions options;
    options.dims = dims;
    return import_model(proto, {}, options);
  };
  const Model fixed = import_with("N", "float[1,3] y", {{"N", 4, 4, 1}});
  EXPECT_EQ(text(fixed.graph->outputs[0]->type), "float32[4,3]");
  EXPECT_EQ(fixed.warnings,
            std::vector<std::string>{R"(output "y": declared as [1,3], but it is float32[4,3])"});
  const Model bounded = import_with("N", "float[1,3] y", {{"N", 1, 4, 1}});
  EXPECT_EQ(text(bounded.graph->outputs[0]->type), "float32[N,3]");
  EXPECT_TRUE(bounded.warnings.empty());
}

// What is declared inside a model and of its outputs is a hint: the inferred shape holds.
TEST(Model, OtherDeclaredShapesAreWarnings) {
  const auto warnings = [](const char* output, const std::vector<int64_t>& inside) {
    auto proto = parse_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,3] x) => (") +
                            output + ") { a = Relu(x) y = Neg(a) }");
    auto* info = proto.mutable_graph()->add_value_info();
    info->set_name("a");
    info->mutable_type()->mutable_tensor_type()->set_elem_type(1);
    for (const int64_t extent : inside)
      info->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
    const Model m = import_model(proto, {});
    EXPECT_EQ(text(m.graph->outputs[0]->type), "float32[2,3]");
    std::string all;
    for (const std::string& w : m.warnings) all += w + "|";
    return all;
  };
  EXPECT_EQ(warnings("float[2,3] y", {2, 3}), "");
  EXPECT_EQ(warnings("float y", {2, 3}), R"(output "y": declared as [], but it is float32[2,3]|)");
  EXPECT_EQ(warnings("float[1,2,3] y", {2, 3}),
            R"(output "y": declared as [1,2,3], but it is float32[2,3]|)");
  EXPECT_EQ(warnings("float[2,4] y", {2, 3}), R"(output "y": declared as [2,4], but it is float32[2,3]|)");
  EXPECT_EQ(warnings("float[K,L] y", {6}), R"(the value "a" is declared as [6], but it is float32[2,3]|)");
}

// --only: an output's own nodes and inputs stay, in the model's order.
TEST(Model, OnlyTheOutputsThatAreWanted) {
  const auto only = [](const std::vector<std::string>& names) {
    std::string said;
    const std::string refusal = refusal_of([&] {
      ImportOptions o;
      o.only = names;
      const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] a, string[2] t, float[2] b) => (float[2] sum, float[2] left, string[2] words) {
          sum = Add(a, b) left = Neg(a) words = Mystery(t) })",
                                  o);
      for (const Value* v : m.graph->inputs) said += v->name + " ";
      said += "->";
      for (const Value* v : m.graph->outputs) said += " " + v->name;
    });
    return refusal == "accepted" ? said : refusal;
  };
  EXPECT_EQ(only({"sum"}), "a b -> sum");
  EXPECT_EQ(only({"left"}), "a -> left");
  EXPECT_EQ(only({"left", "sum"}), "a b -> sum left");
  EXPECT_EQ(
      only({"lefd"}),
      R"(--only "lefd": the model has no such output; it has "sum", "left", "words"; did you mean "left"?)");
}

TEST(Model, InputMayBeOutput) {
  const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] x, float[2] y, float[1] k) { y = Relu(x) k = Constant<value_floats = [4.0]>() })");
  ASSERT_EQ(m.graph->outputs.size(), 3u);
  EXPECT_EQ(m.graph->outputs[0], m.graph->inputs[0]);
  const auto y = evaluate(*m.graph, {Tensor::of(std::vector<float>{-2, 2}, {2})});
  EXPECT_EQ(y[2].reals(), std::vector<double>{4});
}

TEST(Constants, InAllForms) {
  const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g () => (float a, int64 b, float[2] c, int64[3] d, uint8[2] e) {
      a = Constant<value_float = 1.5>() b = Constant<value_int = -3>() c = Constant<value_floats = [1.0, 2.0]>()
      d = Constant<value_ints = [1, 2, 3]>() e = Constant<value = uint8[2] {7, 255}>() })");
  const auto v = evaluate(*m.graph, {});
  EXPECT_EQ(v[0].reals(), std::vector<double>{1.5});
  EXPECT_EQ(v[1].integers(), std::vector<int64_t>{-3});
  EXPECT_EQ(v[2].reals(), (std::vector<double>{1, 2}));
  EXPECT_EQ(v[3].integers(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(v[4].integers(), (std::vector<int64_t>{7, 255}));
  EXPECT_EQ(refusal_of([] {
              import_text(R"(<ir_version: 8, opset_import: ["" : 17]> g () => (float[2] y) {
                y = Constant<value_string = "no">() })");
            }),
            R"("y" (Constant): a Constant by attribute "value_string" is not supported)");
}

TEST(Constants, ShapeArithmeticFoldsAlsoThroughFloats) {
  const Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,6] x) => (float[4,3] y) {
      s = Shape(x) f = Cast<to = 1>(s) k = Constant<value_floats = [2.0, 0.5]>() h = Mul(f, k)
      t = Cast<to = 7>(h) y = Reshape(x, t) })");
  ASSERT_EQ(m.graph->nodes.size(), 1u);
  EXPECT_EQ(text(m.graph->outputs[0]->type), "float32[4,3]");
}

// Functions
// --------------------------------------------------------------------------------------------------

onnx::ModelProto with_function(const std::string& main, const std::vector<std::string>& functions) {
  onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17, "f" : 1]> )" + main);
  for (const std::string& text : functions) {
    const auto status = onnx::OnnxParser::Parse(*p.add_functions(), text.c_str());
    EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  }
  return p;
}
std::vector<double> run(const onnx::ModelProto& p, std::vector<float> x) {
  const int64_t n = static_cast<int64_t>(x.size());
  const Model m = import_model(p, {});
  return evaluate(*m.graph, {Tensor::of(x, {n})})[0].reals();
}

TEST(Functions, AreInlinedWithTheirAttributes) {
  const auto p =
      with_function("g (float[2] x) => (float[2] y) { a = f.twice<by = 3.0>(x) y = f.twice<by = 5.0>(a) }",
                    {R"(<domain: "f", opset_import: ["" : 17]> twice <by> (v) => (w) {
            k = Constant<value_float: float = @by>() h = f.scale(v, k) w = f.scale(h, k) })",
                     R"(<domain: "f", opset_import: ["" : 17]> scale (a, k) => (r) { r = Mul(a, k) })"});
  EXPECT_EQ(run(p, {1, -2}), (std::vector<double>{225, -450}));
  const Model m = import_model(p, {});
  ASSERT_EQ(m.graph->nodes.size(), 4u);
  EXPECT_EQ(m.graph->nodes[0]->name, "a/h/r");
  EXPECT_EQ(m.graph->nodes[1]->outputs[0]->name, "a");
}

TEST(Functions, ArgumentsPassedThroughAreCopied) {
  const auto p =
      with_function("g (float[2] x) => (float[2] y, float[2] z) { y, z = f.both(x) }",
                    {R"(<domain: "f", opset_import: ["" : 17]> both (v) => (v, w) { w = Neg(v) })"});
  EXPECT_EQ(run(p, {1, -2}), (std::vector<double>{1, -2}));
}

TEST(Functions, AbsentArgumentsStayAbsent) {
  const auto p = with_function(
      "g (float[3] x, float m) => (float[3] y) { y = f.top(x, , m) }",
      {R"(<domain: "f", opset_import: ["" : 17]> top (v, lo, hi) => (w) { w = Clip(v, lo, hi) })"});
  const Model m = import_model(p, {});
  EXPECT_EQ(m.graph->nodes[0]->inputs[1], nullptr);
  EXPECT_EQ(
      evaluate(*m.graph, {Tensor::of(std::vector<float>{-9, 1, 9}, {3}), Tensor::scalar(2.0f)})[0].reals(),
      (std::vector<double>{-9, 1, 2}));
}

TEST(Functions, HaveTheirOwnOpset) {
  const auto p = with_function("g (float[4] x) => (float[4] y) { y = f.cut(x) }",
                               {R"(<domain: "f", opset_import: ["" : 6]> cut (v) => (w) {
                                     w = Clip<max = 1.0>(v) })"});
  EXPECT_EQ(run(p, {0, 1, 2, 3}), (std::vector<double>{0, 1, 1, 1}));
}

TEST(Functions, DoNotSeeTheirCallers) {
  const auto p =
      with_function("g (float[2] x) => (float[2] y) { secret = Neg(x) a = f.leak(x) y = Add(a, secret) }",
                    {R"(<domain: "f", opset_import: ["" : 17]> leak (v) => (w) { w = Add(v, secret) })"});
  EXPECT_EQ(refusal_of([&] { import_model(p, {}); }), R"("a/w" (Add): "secret" is not defined)");
}

TEST(Functions, RecursionIsRefused) {
  const auto p = with_function("g (float[2] x) => (float[2] y) { y = f.a(x) }",
                               {R"(<domain: "f", opset_import: ["" : 17]> a (v) => (w) { w = f.b(v) })",
                                R"(<domain: "f", opset_import: ["" : 17]> b (v) => (w) { w = f.a(v) })"});
  EXPECT_EQ(refusal_of([&] { import_model(p, {}); }), R"("y/w/w" (a): function "a" calls itself)");
}

TEST(Functions, ExpansionBombIsRefused) {
  std::vector<std::string> functions;
  for (int i = 0; i < 25; ++i) {
    const std::string next = i == 24 ? "Neg" : "f.f" + std::to_string(i + 1);
    functions.push_back("<domain: \"f\", opset_import: [\"\" : 17]> f" + std::to_string(i) +
                        " (v) => (w) { a = " + next + "(v) b = " + next + "(a) w = " + next + "(b) }");
  }
  const auto p = with_function("g (float[2] x) => (float[2] y) { y = f.f0(x) }", functions);
  // Either the nodes are too many or what they take to infer.
  const std::string r = refusal_of([&] { import_model(p, {}); });
  EXPECT_NE(r.find(" more than "), std::string::npos) << r;
}

// Tensors
// ----------------------------------------------------------------------------------------------------

TEST(Tensors, SurviveTheirFile) {
  const fs::path file = fs::temp_directory_path() / ("sinter_tensor_" + std::to_string(::getpid()) + ".pb");
  for (DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kBool, DType::kI4, DType::kU4,
                  DType::kI2, DType::kU2, DType::kBF16}) {
    Tensor a(t, {3, 5});
    for (int64_t i = 0; i < a.size(); ++i) a.set_integer(i, t == DType::kI2 ? i % 2 - 1 : i % 2);
    write_tensor_pb(file, a, "a");
    EXPECT_TRUE(read_tensor_pb(file).same_bits(a)) << name_of(t);
  }
  fs::remove(file);
  EXPECT_NE(refusal_of([&] { read_tensor_pb(file); }), "accepted");
}

TEST(Tensors, TypedFields) {
  onnx::TensorProto p;
  p.set_data_type(onnx::TensorProto::FLOAT16);
  p.add_dims(2);
  p.add_int32_data(0x3c00);
  p.add_int32_data(0xc000);
  EXPECT_EQ(parse_tensor(p).reals(), (std::vector<double>{1, -2}));
  p.set_data_type(onnx::TensorProto::INT8);
  EXPECT_EQ(refusal_of([&] { parse_tensor(p); }), "the value 15360 does not fit its type");
  p.clear_int32_data();
  p.set_data_type(22);  // INT4, two a byte
  p.set_raw_data(std::string("\x8f", 1));
  EXPECT_EQ(parse_tensor(p).integers(), (std::vector<int64_t>{-1, -8}));
  p.set_data_type(onnx::TensorProto::BOOL);
  p.set_raw_data(std::string("\x02\x00", 2));
  EXPECT_EQ(parse_tensor(p).integers(), (std::vector<int64_t>{1, 0}));
}

TEST(Sha256, KnownValues) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace sinter
