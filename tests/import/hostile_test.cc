// Hostile files: whatever the bytes, import gives a Graph or a Refusal; nothing crashes, hangs, reads outside
// the model's folder or asks for memory that the file can't fill.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "import/tensor_proto.h"
#include "model_text.h"
#include "onnx_suite.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

// A folder for one test, removed with everything in it.
class Hostile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() / ("sinter_hostile_" + std::to_string(::getpid()) + "_" + info->name());
    fs::create_directories(folder_ / "model");
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / "model" / name, std::ios::binary) << bytes;
    return folder_ / "model" / name;
  }
  // Imports the bytes as a file; the test is that this returns.
  bool accepted(const std::string& bytes) {
    const fs::path file = write("m.onnx", bytes);
    try {
      const Model m = import_model(file);
      m.graph->verify();
      return true;
    } catch (const Refusal& r) {
      EXPECT_FALSE(r.problems.empty());
      return false;
    }
  }
  std::string refusal(const onnx::ModelProto& p) {
    const fs::path file = write("m.onnx", p.SerializeAsString());
    return refusal_of([&] { import_model(file); });
  }

  fs::path folder_;
};

// Small, but with a bit of everything: bodies, a function, raw and typed data, attributes of most kinds.
onnx::ModelProto sample() {
  onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 11, "f" : 1]>
    g (float[N,4] x, bool c) => (float[N,4] y) {
      k = Constant<value = float[4] {1.0, 2.0, 3.0, 4.0}>()
      a = Add(x, k) b = f.half(a) s = Softmax<axis = 1>(b)
      t = Transpose<perm = [1, 0]>(s) u = Transpose<perm = [1, 0]>(t)
      y = If (c) <then_branch = g1 () => (float[N,4] p) { p = Relu(u) },
                  else_branch = g2 () => (float[N,4] q) { q = Mul(u, w) }>
    })");
  *p.mutable_graph()->add_initializer() = tensor_proto(Tensor::of(std::vector<float>{1, 2, 3, 4}, {4}), "w");
  const auto status = onnx::OnnxParser::Parse(
      *p.add_functions(),
      R"(<domain: "f", opset_import: ["" : 11]> half (v) => (r) { h = Constant<value_float = 0.5>() r = Mul(v, h) })");
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return p;
}

onnx::ModelProto with_weight(const onnx::TensorProto& w) {
  onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Add(x, w) })");
  *p.mutable_graph()->add_initializer() = w;
  p.mutable_graph()->mutable_initializer(0)->set_name("w");
  return p;
}

TEST_F(Hostile, EveryTruncationReturns) {
  const std::string bytes = sample().SerializeAsString();
  for (size_t n = 0; n < bytes.size(); ++n) accepted(bytes.substr(0, n));
}

TEST_F(Hostile, FlippedBytesReturn) {
  const std::string bytes = sample().SerializeAsString();
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string b = bytes;
    for (unsigned k = 0; k < 1 + random() % 3; ++k)
      b[random() % b.size()] = static_cast<char>(random() % 256);
    accepted(b);
  }
}

TEST_F(Hostile, NotAModel) {
  EXPECT_NE(
      refusal_of([&] { import_model(write("a", "hello, I am a text file\n")); }).find("not an ONNX model"),
      std::string::npos);
  EXPECT_EQ(refusal_of([&] { import_model(write("a", "")); }), "not an ONNX model: it has no graph");
  EXPECT_NE(refusal_of([&] { import_model(folder_ / "none.onnx"); }).find("does not exist"),
            std::string::npos);
  EXPECT_NE(refusal_of([&] { import_model(folder_); }).find("no regular file"), std::string::npos);
}

TEST_F(Hostile, SizesThatDoNotMatchTheBytes) {
  onnx::TensorProto w;
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(2);
  w.set_raw_data("1234567");
  EXPECT_EQ(refusal(with_weight(w)), R"(initializer "w": 7 bytes of contents, but its shape wants 8)");
  w.set_raw_data("12345678");
  EXPECT_EQ(refusal(with_weight(w)), "accepted");
  w.add_float_data(1);
  EXPECT_EQ(refusal(with_weight(w)), R"(initializer "w": contents in raw_data and in a typed field)");
  w.clear_float_data();
  w.set_dims(0, int64_t{1} << 30);
  EXPECT_EQ(refusal(with_weight(w)),
            R"(initializer "w": 8 bytes of contents, but its shape wants 4294967296)");
  w.set_dims(0, int64_t{1} << 62);
  w.add_dims(4);
  EXPECT_EQ(refusal(with_weight(w)), R"(initializer "w": its size overflows 64 bits)");
  w.set_dims(0, -2);
  EXPECT_EQ(refusal(with_weight(w)), R"(initializer "w": negative extent -2)");
  w.set_data_type(77);
  EXPECT_EQ(refusal(with_weight(w)), R"(initializer "w": element type 77 is unknown)");
  w.set_data_type(onnx::TensorProto::STRING);
  EXPECT_EQ(refusal(with_weight(w)), R"(initializer "w": a tensor of text has the extent -2)");
}

TEST_F(Hostile, ExternalDataStayInTheFolder) {
  write("good.bin", std::string(16, '\1'));
  std::ofstream(folder_ / "secret.bin", std::ios::binary) << std::string(16, '\2');
  fs::create_symlink(folder_ / "secret.bin", folder_ / "model" / "link.bin");
  fs::create_directory_symlink(folder_, folder_ / "model" / "up");
  fs::create_symlink("good.bin", folder_ / "model" / "inside.bin");
  auto at = [&](const std::string& location, const std::string& offset = "", const std::string& length = "") {
    onnx::TensorProto w;
    w.set_data_type(onnx::TensorProto::FLOAT);
    w.add_dims(2);
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    auto add = [&](const char* key, const std::string& value) {
      if (value.empty()) return;
      auto* e = w.add_external_data();
      e->set_key(key);
      e->set_value(value);
    };
    add("location", location);
    add("offset", offset);
    add("length", length);
    const std::string r = refusal(with_weight(w));
    return r.rfind("initializer \"w\": ", 0) == 0 ? r.substr(17) : r;
  };
  EXPECT_EQ(at("good.bin"), "accepted");
  EXPECT_EQ(at("good.bin", "8", "8"), "accepted");
  EXPECT_EQ(at("inside.bin"), "accepted");
  EXPECT_EQ(at("./good.bin", "4"), "accepted");
  EXPECT_EQ(at("good.bin", "9", "8"), R"(external data at "good.bin" end behind the file's 16 bytes)");
  EXPECT_EQ(at("good.bin", "9"), "7 bytes of external data, but its shape wants 8");
  EXPECT_EQ(at("good.bin", "0", "12"), "12 bytes of external data, but its shape wants 8");
  EXPECT_EQ(at("good.bin", "-8"), R"(external data with the offset "-8")");
  EXPECT_EQ(at("good.bin", "99999999999999999999"),
            R"(external data with the offset "99999999999999999999")");
  EXPECT_EQ(at("../secret.bin"), R"(external data at "../secret.bin", which may leave the model's folder)");
  EXPECT_EQ(at("/etc/hostname"), R"(external data at the absolute path "/etc/hostname")");
  EXPECT_EQ(at("link.bin"), R"(external data at "link.bin" is a link out of the model's folder)");
  EXPECT_EQ(at("up/secret.bin"), R"(external data at "up/secret.bin" is a link out of the model's folder)");
  EXPECT_EQ(at("up/model/good.bin"), "accepted");
  EXPECT_EQ(at("none.bin").rfind("external data at \"none.bin\":", 0), 0u);
  EXPECT_EQ(at("."), R"(external data at "." is no regular file)");
  EXPECT_EQ(at(""), "external data without a proper location");
  EXPECT_EQ(at(std::string("good.bin\0x", 10)), "external data without a proper location");
}

TEST_F(Hostile, ExternalDataNeedAFolder) {
  onnx::TensorProto w;
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(2);
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_EQ(refusal_of([&] { import_model(with_weight(w), {}); }),
            R"(initializer "w": external data, but the model is no file)");
}

TEST_F(Hostile, DeepNesting) {
  for (const int depth : {20, 1000}) {
    onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2] x, bool c) => (float[2] y) { y = Relu(x) })");
    onnx::GraphProto inner = p.graph();
    inner.clear_input();
    for (int i = 0; i < depth; ++i) {
      onnx::GraphProto outer;
      *outer.add_output() = p.graph().output(0);
      onnx::NodeProto& n = *outer.add_node();
      n.set_op_type("If");
      n.add_input("c");
      n.add_output("y");
      for (const char* branch : {"then_branch", "else_branch"}) {
        onnx::AttributeProto& a = *n.add_attribute();
        a.set_name(branch);
        a.set_type(onnx::AttributeProto::GRAPH);
        if (branch[0] == 't')
          a.mutable_g()->Swap(&inner);
        else
          *a.mutable_g() = p.graph(), a.mutable_g()->clear_input();
      }
      inner.Swap(&outer);
    }
    *inner.mutable_input() = p.graph().input();
    p.mutable_graph()->Swap(&inner);
    const std::string in_memory = refusal_of([&] { import_model(p, {}); });
    if (depth == 20) {  // deep, but not too deep
      const bool fine = in_memory == "accepted" || in_memory.find("operator If") != std::string::npos;
      EXPECT_TRUE(fine) << in_memory;
      EXPECT_EQ(refusal(p), in_memory);
    } else {
      EXPECT_EQ(in_memory, "bodies nested more than 32 deep");
      EXPECT_EQ(refusal(p), "not an ONNX model: its protobuf is broken");
    }
  }
}

TEST_F(Hostile, InputsThatAreNoTensorsOrTooLarge) {
  auto with_type = [&](auto change) {
    onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2,3] x) => (float[2,3] y) { y = Relu(x) })");
    p.mutable_graph()->mutable_output(0)->clear_type();
    change(*p.mutable_graph()->mutable_input(0)->mutable_type());
    return refusal(p);
  };
  EXPECT_EQ(with_type([](onnx::TypeProto& t) { t.mutable_tensor_type()->set_elem_type(99); }),
            R"(input "x": element type 99 is unknown)");
  EXPECT_EQ(with_type([](onnx::TypeProto& t) { t.mutable_tensor_type()->clear_shape(); }),
            R"(input "x": the model gives it no shape)");
  EXPECT_EQ(with_type([](onnx::TypeProto& t) { t.mutable_sequence_type(); }),
            R"(input "x": sequences, maps, optionals and sparse tensors are not supported)");
  auto dim = [](int64_t v) {
    return [v](onnx::TypeProto& t) {
      t.mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(v);
    };
  };
  EXPECT_EQ(with_type(dim(-1)), R"(input "x" axis 0: negative extent -1)");
  EXPECT_NE(with_type(dim(int64_t{1} << 62)).find("overflow"), std::string::npos);
  EXPECT_EQ(with_type([](onnx::TypeProto& t) {
              for (int i = 0; i < 20; ++i)
                t.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(1);
            }),
            R"(input "x": more than 12 axes)");
}

// The passes make operators whose inference believes them: no model may name one.
TEST_F(Hostile, OperatorsOfTheCompiler) {
  const char* const text = R"(<ir_version: 8, opset_import: ["" : 17, "sinter" : 1]>
    g (uint8[2] x, float s, uint8 z) => (float[2] y) { y = sinter.dequantize(x, s, z) })";
  EXPECT_EQ(refusal(parse_text(text)), "\"y\" (dequantize): domain \"sinter\" is the compiler's own");
}

// What stands for a sequence is no tensor, also for operators of other domains.
TEST_F(Hostile, SequencesAreNoTensors) {
  for (const char* op : {"Relu(s)", "ai.onnx.ml.Normalizer(s)", "com.microsoft.Gelu(s)"}) {
    const std::string text = std::string(R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3,
      "com.microsoft" : 1]> g (float[2] x) => (float[2] y) { s = SequenceConstruct(x) y = )") +
                             op + " }";
    const std::string r = refusal(parse_text(text));
    EXPECT_NE(r.find("a sequence as "), std::string::npos) << op << ": " << r;
  }
}

// An operand that says something of each axis can't be longer than a shape may be.
TEST_F(Hostile, OperandsLongerThanAnyShape) {
  const char* const text = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x, int64[8589934592] s) => (float[3] y) { y = Reshape(x, s) })";
  EXPECT_EQ(refusal(parse_text(text)), "\"y\" (Reshape): 8589934592 shape: at most 1024 are allowed");
}

TEST_F(Hostile, NamesAreEscapedInMessages) {
  onnx::ModelProto p = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Relu(x) })");
  p.mutable_graph()->mutable_node(0)->set_op_type("*/\n\x1b[2J");
  const std::string r = refusal(p);
  for (char c : r) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << r;
  EXPECT_EQ(r.find("*/"), std::string::npos) << r;
}

}  // namespace
}  // namespace sinter
