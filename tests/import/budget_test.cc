// What a few bytes can make import do has an end, and honest models stay what they are.
#include "ir/budget.h"

#include <unistd.h>

#include <fstream>

#include "import/tensor_proto.h"
#include "model_text.h"
#include "onnx_suite.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

onnx::ModelProto model(const std::string& graph) {
  return parse_text("<ir_version: 9, opset_import: [\"\" : 18]> " + graph);
}

// ---- Sum and its like of many operands

class ManyOperands : public testing::TestWithParam<const char*> {};

TEST_P(ManyOperands, AreChains) {
  const std::string op = GetParam();
  for (int count : {1, 2, 16, 17, 31, 32, 100, 5000}) {
    SCOPED_TRACE(count);
    onnx::ModelProto p = model("g (float[2] a, float[2] b) => (float[2] y) { y = " + op + "(a) }");
    for (int i = 1; i < count; ++i) p.mutable_graph()->mutable_node(0)->add_input(i % 3 ? "b" : "a");
    const Model m = import_model(p, {});
    size_t most = 0;
    for (const auto& n : m.graph->nodes) most = std::max(most, n->inputs.size());
    EXPECT_LE(most, 16u);
    const float a[] = {0.1f, -3}, b[] = {1.7f, 2.5f};
    float want[2];
    for (int k = 0; k < 2; ++k) {
      want[k] = a[k];
      for (int i = 1; i < count; ++i) {
        const float next = i % 3 ? b[k] : a[k];
        want[k] = op == "Max"   ? std::max(want[k], next)
                  : op == "Min" ? std::min(want[k], next)
                                : want[k] + next;
      }
      if (op == "Mean") want[k] /= static_cast<float>(count);
    }
    const auto y = evaluate(*m.graph, {Tensor::of({a[0], a[1]}, {2}), Tensor::of({b[0], b[1]}, {2})});
    for (int k = 0; k < 2; ++k) EXPECT_EQ(y[0].as<float>()[k], want[k]);  // every sum rounds as in one node
  }
}
INSTANTIATE_TEST_SUITE_P(All, ManyOperands, testing::Values("Sum", "Mean", "Max", "Min"));

// ---- Loops

std::string loops(int depth, const std::string& name, const std::string& from) {
  if (depth == 0) return name + " = Concat <axis = 0> (" + from + ", x)";
  const std::string i = name + "i", c = name + "c", v = name + "v", q = name + "q", d = name + "d";
  return name + " = Loop(n, t, " + from + ") <body = b" + name + " (int64 " + i + ", bool " + c +
         ", float[D" + std::to_string(depth) + "] " + v + ") => (bool " + d + ", float[E" +
         std::to_string(depth) + "] " + q + ") { " + loops(depth - 1, q, v) + " " + d + " = Identity(" + c +
         ") }>";
}

// A level costs three times what is inside: few are honest, many are refused, none hang.
TEST(ImportBudget, NestedLoopsThatGrow) {
  for (int depth : {1, 3, 20}) {
    const onnx::ModelProto p = model(
        "g (float[4] x) => (float[Z] y) { n = Constant <value_int = 3> () "
        "t = Constant <value = bool {1}> () " +
        loops(depth, "y", "x") + " }");
    const std::string r = refusal_of([&] { import_model(p, {}); });
    EXPECT_EQ(r == "accepted", depth < 20) << depth << ": " << r;
    EXPECT_EQ(r.find("types and extents take more than") != std::string::npos, depth == 20)
        << depth << ": " << r;
  }
}

// ---- lists

TEST(ImportBudget, SequencesThatAreCopied) {
  onnx::ModelProto p =
      model("g (float[4] x) => (float[Z] y) { s0 = SequenceEmpty() y = ConcatFromSequence <axis = 0> (s9) }");
  const onnx::NodeProto last = p.graph().node(1);
  const auto with = [&](int count) {
    onnx::ModelProto longer = p;
    longer.mutable_graph()->mutable_node()->RemoveLast();
    for (int i = 0; i < count; ++i) {
      onnx::NodeProto* n = longer.mutable_graph()->add_node();
      n->set_op_type("SequenceInsert");
      n->add_input("s" + std::to_string(i));
      n->add_input("x");
      n->add_output("s" + std::to_string(i + 1));
    }
    *longer.mutable_graph()->add_node() = last;
    longer.mutable_graph()->mutable_node(count + 1)->set_input(0, "s" + std::to_string(count));
    return refusal_of([&] { import_model(longer, {}); });
  };
  EXPECT_EQ(with(1000), "accepted");
  EXPECT_NE(with(20000).find("more than"), std::string::npos);  // 1.6 GB of pointers
}

// ---- tensors

class Files : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() / ("sinter_budget_" + std::to_string(::getpid()) + "_" + info->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  Model written(const onnx::ModelProto& p) {
    std::ofstream(folder_ / "m.onnx", std::ios::binary) << p.SerializeAsString();
    return import_model(folder_ / "m.onnx");
  }
  fs::path folder_;
};

// The file's message gives its bytes away; a second import of it (declared outputs tell an operand) has them
// all.
TEST_F(Files, WeightsSurviveASecondImport) {
  onnx::ModelProto p = model(
      "g (float[4] x, int64[1] s) => (float[3,4] y) { e = Expand(x, q) a = Add(e, w) "
      "q = Concat <axis = 0> (s, four) four = Constant <value_ints = [4]> () y = Mul(a, w) }");
  *p.mutable_graph()->add_initializer() = tensor_proto(Tensor::of(std::vector<float>{1, 2, 3, 4}, {4}), "w");
  const Model m = written(p);
  const auto y = evaluate(
      *m.graph, {Tensor::of(std::vector<float>{1, 1, 1, 1}, {4}), Tensor::of(std::vector<int64_t>{3})});
  EXPECT_EQ(y[0].shape(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(y[0].real(7), 20);
}

// However many nodes name a tensor, its bytes are there once.
TEST_F(Files, TensorsAreReadOnce) {
  onnx::ModelProto p =
      model("g (float[4] x) => (float[4] y) { a = f.twice(x) b = f.twice(a) y = f.twice(b) }");
  p.add_opset_import()->set_domain("f");
  p.mutable_opset_import(1)->set_version(1);
  const auto status = onnx::OnnxParser::Parse(*p.add_functions(), R"(<domain: "f", opset_import: ["" : 18]>
    twice (v) => (r) { h = Constant <value = float[4] {2.0, 2.0, 2.0, 2.0}> () r = Mul(v, h) })");
  ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
  const Model m = written(p);
  std::set<const std::byte*> bytes;
  for (const auto& v : m.graph->values)
    if (v->data) bytes.insert(v->data->data());
  EXPECT_EQ(bytes.size(), 1u);
}

TEST_F(Files, ExternalDataOverAndOverAgain) {
  std::ofstream(folder_ / "w.bin", std::ios::binary) << std::string(1 << 20, '\0');
  const auto with = [&](int count) {
    onnx::ModelProto p = model("g (float[1] x) => (float[1] y) { y = Add(x, w0) }");
    onnx::NodeProto* n = p.mutable_graph()->mutable_node(0);
    n->set_op_type("Sum");
    for (int i = 0; i < count; ++i) {
      onnx::TensorProto* t = p.mutable_graph()->add_initializer();
      t->set_name("w" + std::to_string(i));
      t->set_data_type(onnx::TensorProto::FLOAT);
      t->add_dims(1 << 18);
      t->set_data_location(onnx::TensorProto::EXTERNAL);
      auto* e = t->add_external_data();
      e->set_key("location");
      e->set_value("w.bin");
      if (i > 0) n->add_input(t->name());
    }
    p.mutable_graph()
        ->mutable_output(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(1 << 18);
    return refusal_of([&] { written(p); });
  };
  EXPECT_EQ(with(8), "accepted");
  EXPECT_NE(with(200).find("external data more than 4 times over"), std::string::npos);
}

TEST_F(Files, SparseTensorsMadeDense) {
  const auto with = [&](int count, int64_t extent) {
    onnx::ModelProto p = model("g (float[1] x) => (float[1] y) { y = Add(x, w0) }");
    onnx::NodeProto* n = p.mutable_graph()->mutable_node(0);
    n->set_op_type("Sum");
    for (int i = 0; i < count; ++i) {
      onnx::SparseTensorProto* t = p.mutable_graph()->add_sparse_initializer();
      *t->mutable_values() = tensor_proto(Tensor::of(std::vector<float>{1}, {1}), "w" + std::to_string(i));
      *t->mutable_indices() = tensor_proto(Tensor::of(std::vector<int64_t>{0}), "");
      t->add_dims(extent);
      if (i > 0) n->add_input("w" + std::to_string(i));
    }
    p.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    return refusal_of([&] { written(p); });
  };
  EXPECT_EQ(with(4, 1 << 18), "accepted");
  EXPECT_NE(with(1, 1 << 27).find("made dense, take"), std::string::npos);
  EXPECT_NE(with(100, 1 << 20).find("made dense, take"), std::string::npos);
}

}  // namespace
}  // namespace sinter
