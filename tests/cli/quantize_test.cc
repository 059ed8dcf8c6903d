// sinter quantize: from a model and samples to a model of bytes, which is read and evaluated.
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "driver/options.h"
#include "ops/op.h"
#include "program.h"

namespace sinter {
namespace {

class Quantize : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }

  // A small net of what vision nets consist of, its weights seeded.
  void save_net(int opset = 17) {
    onnx::ModelProto m = parse_text("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + R"(]>
      g (float[N,3,16,16] x) => (float[N,5] y) {
        a = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w0, b0)
        n = BatchNormalization(a, scale, shift, mean, variance)
        r = Relu(n)
        d = Conv<pads = [1, 1, 1, 1], group = 8>(r, w1, b0)
        e = Clip(d, zero, six)
        c = Conv(e, w2)
        s = Add(c, r)
        t = Relu(s)
        p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(t)
        g = GlobalAveragePool(p)
        f = Flatten(g)
        y = Gemm<transB = 1>(f, w3, b3)
      })");
    std::mt19937 random(5);
    const auto add = [&](const char* name, const std::vector<int64_t>& shape, float offset, float width) {
      onnx::TensorProto& t = *m.mutable_graph()->add_initializer();
      t.set_name(name);
      t.set_data_type(onnx::TensorProto::FLOAT);
      int64_t size = 1;
      for (const int64_t e : shape) t.add_dims(e), size *= e;
      for (int64_t i = 0; i < size; ++i)
        t.add_float_data(offset + width * (static_cast<float>(random() % 2001) / 1000 - 1));
    };
    add("w0", {8, 3, 3, 3}, 0, 0.5F), add("b0", {8}, 0, 0.2F), add("w1", {8, 1, 3, 3}, 0.1F, 0.4F);
    add("w2", {8, 8, 1, 1}, 0, 0.6F), add("w3", {5, 8}, 0, 1), add("b3", {5}, 0, 0.3F);
    add("scale", {8}, 1, 0.3F), add("shift", {8}, 0.2F, 0.2F), add("mean", {8}, 0, 0.2F);
    add("variance", {8}, 1, 0.5F), add("zero", {}, 0, 0), add("six", {}, 6, 0);
    save(m, path("net.onnx"));
    Tensor x(DType::kF32, {4, 3, 16, 16});
    for (int64_t i = 0; i < x.size(); ++i)
      x.as<float>()[i] =
          static_cast<float>(random() % 2001) / 1000 - 1 + 0.2F * static_cast<float>(i / 768 % 3);
    std::filesystem::create_directory(path("data"));
    write_tensor_pb(path("data/x.pb"), x, "x");
    sample_ = x;
  }

  // The signal to noise ratio, in dB, of a file's output against the net's on all samples.
  double snr_of(const std::string& file, std::vector<Tensor> inputs) {
    ImportOptions o;
    o.input_shapes["x"] = inputs[0].shape();
    const Tensor want = evaluate(*import_model(path("net.onnx"), o).graph, inputs)[0],
                 got = evaluate(*import_model(file, o).graph, inputs)[0];
    double noise = 0, signal = 0;
    for (int64_t i = 0; i < want.size(); ++i) {
      noise += (got.real(i) - want.real(i)) * (got.real(i) - want.real(i));
      signal += want.real(i) * want.real(i);
    }
    return 10 * std::log10(signal / noise);
  }

  std::map<std::string, int> ops_of(const std::string& file) {
    onnx::ModelProto m;
    std::ifstream f(file, std::ios::binary);
    EXPECT_TRUE(m.ParseFromIstream(&f));
    std::map<std::string, int> count;
    for (const auto& n : m.graph().node()) ++count[n.op_type()];
    return count;
  }

  TemporaryFolder folder_;
  Tensor sample_;
};

TEST_F(Quantize, WritesWhatStandsForTheModel) {
  for (const int opset : {11, 17}) {
    save_net(opset);
    expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--report",
            path("r.json")},
           0, "over 4 samples");
    EXPECT_GT(snr_of(path("q.onnx"), {sample_}), 30) << opset;
    const auto ops = ops_of(path("q.onnx"));
    EXPECT_EQ(ops.count("BatchNormalization"), 0u);
    EXPECT_EQ(ops.at("QuantizeLinear"), 7);  // x r e t p g f, and the skip's tensor is r
    EXPECT_GE(ops.at("DequantizeLinear"), 7 + 4 + 4);
    const auto report = nlohmann::json::parse(contents(path("r.json")));
    EXPECT_GT(report["outputs"][0]["snr_db"].get<double>(), 30);
    EXPECT_EQ(report["layers"].size(), 6u);  // four products, a sum, a mean
    for (const auto& l : report["layers"]) EXPECT_EQ(l["type"], "int8") << l;
    if (opset == 11) continue;
    // The same samples lead to the same file.
    const std::string first = contents(path("q.onnx"));
    expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx")}, 0, "over 4 samples");
    EXPECT_EQ(contents(path("q.onnx")), first);
  }
}

TEST_F(Quantize, KeepsTheWorstLayersInFloats) {
  save_net();
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--max-loss", "48",
          "--report", path("r.json")},
         0, "float32");
  const auto report = nlohmann::json::parse(contents(path("r.json")));
  EXPECT_GE(report["outputs"][0]["snr_db"].get<double>(), 47.5);
  EXPECT_GT(snr_of(path("q.onnx"), {sample_}), 47.5);
  // By hand.
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--keep-f32", "y",
          "--keep-f32", "n"},
         0, "SNR");
  EXPECT_EQ(ops_of(path("q.onnx")).at("QuantizeLinear"), 2);  // r and e
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--keep-f32", "yy"}, 2,
         "no such node");
}

// What is told of a layer is what the file has: a sum and a mean whose neighbours are floats are floats too.
TEST_F(Quantize, TellsWhatTheFileComputesAndItsTime) {
  save_net();
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--keep-f32", "y",
          "--keep-f32", "n", "--target", "cortex-a76", "--report", path("r.json")},
         0, "modelled for one core of cortex-a76 at 2400 MHz");
  const auto report = nlohmann::json::parse(contents(path("r.json")));
  std::map<std::string, std::string> computed;
  double before = 0, after = 0;
  const auto add = [&](const nlohmann::json& figures) {
    before += figures.value("float_us", 0.0), after += figures.value("us", 0.0);
  };
  for (const auto& l : report["layers"]) {
    const auto node = l["node"].get<std::string>();
    computed[node] = l["type"].get<std::string>() + (l["kept"].get<bool>() ? ", kept" : "");
    EXPECT_TRUE(l.contains("us") || l.contains("in")) << l;
    if (l.contains("weight_bytes")) {
      EXPECT_EQ(l["weight_bytes"] == l["weight_bytes_float"], l["type"] == "float32") << l;
    }
    add(l);
  }
  const std::map<std::string, std::string> want = {{"n", "float32, kept"}, {"d", "int8"},
                                                   {"c", "int8"},          {"s", "float32"},
                                                   {"g", "float32"},       {"y", "float32, kept"}};
  EXPECT_EQ(computed, want);
  const auto& modelled = report["modelled"];
  add(modelled["others"]);
  EXPECT_NEAR(before, modelled["float_us"].get<double>(), 0.01);
  EXPECT_NEAR(after, modelled["us"].get<double>(), 0.01);
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--target", "cortex"},
         2, "--target \"cortex\": there are");
}

// Channels whose ranges differ by 100 share a tensor's 256 steps, unless they are scaled against each other.
TEST_F(Quantize, EqualisesChannels) {
  onnx::ModelProto m = parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[N,3,16,16] x) => (float[N,4,16,16] y) {
        a = Conv<pads = [1, 1, 1, 1]>(x, w0)
        r = Relu(a)
        d = Conv<pads = [1, 1, 1, 1], group = 16>(r, w1)
        s = LeakyRelu(d)
        y = Conv(s, w2)
      })");
  std::mt19937 random(5);
  // `uneven`: the channels of axis 0 grow or shrink to 100 times.
  const auto add = [&](const char* name, const std::vector<int64_t>& shape, double uneven) {
    onnx::TensorProto& t = *m.mutable_graph()->add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::FLOAT);
    int64_t size = 1;
    for (const int64_t e : shape) t.add_dims(e), size *= e;
    for (int64_t i = 0; i < size; ++i) {
      const auto channel = static_cast<double>(i * shape[0] / size);
      t.add_float_data(static_cast<float>((static_cast<double>(random() % 2001) / 1000 - 1) *
                                          std::pow(uneven, channel / 15)));
    }
  };
  add("w0", {16, 3, 3, 3}, 0.01), add("w1", {16, 1, 3, 3}, 100), add("w2", {4, 16, 1, 1}, 1);
  save(m, path("net.onnx"));
  Tensor x(DType::kF32, {4, 3, 16, 16});
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(random() % 2001) / 1000 - 1;
  std::filesystem::create_directory(path("data"));
  write_tensor_pb(path("data/x.pb"), x, "x");
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--no-equalise"}, 0,
         "over 4 samples");
  const double without = snr_of(path("q.onnx"), {x});
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--report",
          path("r.json")},
         0, "equalised: the channels between ");
  EXPECT_GE(snr_of(path("q.onnx"), {x}), without + 10);
  EXPECT_TRUE(nlohmann::json::parse(contents(path("r.json")))["equalised"]["taken"].get<bool>());
}

// The score is given by how many layers are bytes: each costs one.
TEST_F(Quantize, ACommandScores) {
  save_net();
  const std::string count =
      "echo chatter; echo noise >&2; expr 100 - $(grep -a -o QuantizeLinear {model} | wc -l)";
  const auto quantized = [&](const std::string& loss) {
    expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--score", count,
            "--max-loss", loss, "--report", path("r.json")},
           0, "of the float model 100");
    return nlohmann::json::parse(contents(path("r.json")));
  };
  size_t bytes = 7;
  for (const char* loss : {"1000", "3%", "0"}) {
    const auto report = quantized(loss);
    const auto& score = report["score"];
    EXPECT_GE(score["written"].get<double>(), score["least"].get<double>()) << loss;
    size_t left = 0;
    for (const auto& l : report["layers"]) left += l["type"] == "int8" ? 1 : 0;
    EXPECT_LT(left, bytes) << loss;
    bytes = left;
  }
  EXPECT_EQ(ops_of(path("q.onnx")).count("QuantizeLinear"), 0u);
  struct {
    const char *score, *loss;
    int code;
    const char* said;
  } const wrong[] = {
      {"exit 3", "1%", 3, "--score: the command ended with code 3"},
      {"echo it is fine", "1%", 3, "the last word that the command prints is no number: \"fine\""},
      {"true", "1%", 3, "is no number: \"\""},
      {"echo nan", "1", 3, "is no number"},
      {"echo 1", "much", 2, "what the score may lose, such as 0.5 or 1%"},
      {"echo 1", "-1", 2, "what the score may lose"},
      {"", "1%", 2, "want dB, such as 35"},
  };
  for (const auto& w : wrong) {
    std::vector<std::string> command = {"quantize",
                                        path("net.onnx"),
                                        "--data",
                                        path("data"),
                                        "-o",
                                        path("q.onnx"),
                                        "--max-loss=" + std::string(w.loss)};
    if (*w.score) command.insert(command.end(), {"--score", w.score});
    expect(command, w.code, w.said);
  }
  expect({"quantize", path("net.onnx"), "--data", path("data"), "-o", path("q.onnx"), "--score", "echo 1"}, 2,
         "say with --max-loss what may be lost");
}

TEST_F(Quantize, WeightsOnly) {
  save_text(
      "g (float[N,64] x) => (float[N,40] y) { h = MatMul(x, w0) r = Relu(h) y = Gemm<transB = 1>(r, w1, b) }",
      path("net.onnx"));
  onnx::ModelProto m;
  {
    std::ifstream f(path("net.onnx"), std::ios::binary);
    ASSERT_TRUE(m.ParseFromIstream(&f));
  }
  std::mt19937 random(9);
  for (const auto& [name, shape] :
       std::map<std::string, std::vector<int64_t>>{{"w0", {64, 80}}, {"w1", {40, 80}}, {"b", {40}}}) {
    Tensor t(DType::kF32, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.as<float>()[i] = static_cast<float>(random() % 2001) / 1000 - 1;
    write_tensor_pb(path("t.pb"), t, name);
    ASSERT_TRUE(m.mutable_graph()->add_initializer()->ParseFromString(contents(path("t.pb"))));
  }
  save(m, path("net.onnx"));
  Tensor x(DType::kF32, {5, 64});
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(random() % 2001) / 1000 - 1;
  struct Row {
    const char *bits, *op;
    double snr;
    size_t bytes;
  };
  for (const Row& r : {Row{"8", "DequantizeLinear", 38, 11000}, Row{"4", "MatMulNBits", 17, 8000}}) {
    expect({"quantize", path("net.onnx"), "--weights-only", r.bits, "-o", path("q.onnx")}, 0,
           "2 layers' weights");
    EXPECT_EQ(ops_of(path("q.onnx")).at(r.op), 2);
    EXPECT_GT(snr_of(path("q.onnx"), {x}), r.snr) << r.bits;
    EXPECT_LT(std::filesystem::file_size(path("q.onnx")), r.bytes);
  }
}

TEST_F(Quantize, SaysWhatItNeeds) {
  save_net();
  expect({"quantize", path("net.onnx"), "-o", path("q.onnx")}, 2, "--data DIR");
  std::filesystem::create_directory(path("empty"));
  expect({"quantize", path("net.onnx"), "-o", path("q.onnx"), "--data", path("empty")}, 2, "holds no sample");
  expect({"quantize", path("net.onnx"), "-o", path("q.onnx"), "--data", path("nowhere")}, 2, "No such file");
  write_tensor_pb(path("empty/a.pb"), Tensor(DType::kF32, {1, 3, 8}), "x");
  expect({"quantize", path("net.onnx"), "-o", path("q.onnx"), "--data", path("empty")}, 2, "takes float32");
  put(path("broken.onnx"), "no model");
  expect({"quantize", path("broken.onnx"), "-o", path("q.onnx"), "--data", path("data")}, 3,
         "not an ONNX model");
  save_text("g (float[2] x) => (float[2] y) { y = Relu(x) }", path("net.onnx"));
  write_tensor_pb(path("data/x.pb"), Tensor(DType::kF32, {2}), "x");
  expect({"quantize", path("net.onnx"), "-o", path("q.onnx"), "--data", path("data")}, 3, "no Conv");
  expect({"quantize", path("net.onnx"), "-o", path("no/q.onnx"), "--weights-only", "8"}, 3, "no node has");
}

}  // namespace
}  // namespace sinter
