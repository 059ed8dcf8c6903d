// Channels between products that are scaled against each other.
#include "quantize/equalise.h"

#include <cmath>
#include <random>

#include "driver/interrupt.h"
#include "import/onnx.h"
#include "model_text.h"
#include "ops/op.h"

namespace sinter::quantize {
namespace {

// Nodes between "x" float32[2,4,6,6] and "y", with constants of the shapes given by name; seeded.
class Net {
 public:
  Net(const std::string& nodes, const std::map<std::string, std::vector<int64_t>>& constants) {
    onnx::ModelProto proto = parse_text(
        "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[2,4,6,6] x) => (float[] y) {" + nodes + "}");
    std::mt19937 random(11);
    for (const auto& [name, shape] : constants) {
      onnx::TensorProto& t = *proto.mutable_graph()->add_initializer();
      t.set_name(name);
      t.set_data_type(onnx::TensorProto::FLOAT);
      int64_t size = 1;
      for (const int64_t d : shape) t.add_dims(d), size *= d;
      for (int64_t i = 0; i < size; ++i) t.add_float_data(static_cast<float>(random() % 2001) / 1000 - 1);
    }
    std::ofstream(file(), std::ios::binary) << proto.SerializeAsString();
  }
  FloatModel model() const { return FloatModel(file()); }
  Tensor run(const onnx::ModelProto& proto) const {
    const std::filesystem::path other = folder_.path() / "other.onnx";
    std::ofstream(other, std::ios::binary) << proto.SerializeAsString();
    std::mt19937 random(3);
    Tensor x(DType::kF32, {2, 4, 6, 6});
    for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(random() % 2001) / 1000 - 1;
    return evaluate(*import_model(other).graph, {x})[0];
  }

 private:
  std::filesystem::path file() const { return folder_.path() / "m.onnx"; }
  TemporaryFolder folder_;
};

const std::map<std::string, std::vector<int64_t>> kConstants = {
    {"w", {4, 4, 3, 3}}, {"d", {4, 1, 3, 3}}, {"g", {4, 2, 1, 1}}, {"t", {4, 4, 2, 2}},
    {"b", {4}},          {"a", {4, 1, 1}},    {"m", {4, 3}},       {"k", {4, 3}},
    {"one", {1}},        {"lo", {}},          {"hi", {}}};

// "a>b,c": the nodes by what they make.
std::string text(const FloatModel& m, const std::vector<Link>& links) {
  std::string s;
  for (const Link& l : links) {
    s += (s.empty() ? "" : " ") + m.node(l.before).output(0) + ">";
    for (const Link::After& a : l.after) s += (s.back() == '>' ? "" : ",") + m.node(a.node).output(0);
  }
  return s;
}

struct Row {
  std::string nodes, links;
};
const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"p = Conv(x, w, b) y = Conv(p, w)", "p>y"},
      {"p = Conv(x, w, b) q = Relu(p) y = Conv<group = 4>(q, d)", "p>y"},
      {"p = Conv<group = 4>(x, d) q = PRelu(p, a) r = MaxPool<kernel_shape = [2, 2]>(q) y = Conv(r, w, b)",
       "p>y"},
      {"p = Conv(x, w) q = LeakyRelu(p) r = Conv<group = 2>(q, g) s = Relu(r) y = ConvTranspose(s, t)",
       "p>r r>y"},
      {"p = ConvTranspose(x, t, b) q = Relu(p) y = Conv(q, w)", "p>y"},
      {"p = Conv(x, w) q = GlobalAveragePool(p) f = Flatten(q) r = Gemm(f, m) s = Relu(r) "
       "y = Gemm<transB = 1>(s, k, b)",
       "r>y"},
      // Each reader is a product: all are multiplied.
      {"p = Conv(x, w, b) q = Relu(p) r = Conv(q, w) s = Conv(q, w, b) y = Add(r, s)", "p>r,s"},
      // Limits, sums, joined channels and what is read elsewhere hold a tensor where it is.
      {"p = Conv(x, w) q = Clip(p, lo, hi) y = Conv(q, w)", ""},
      {"p = Conv(x, w) q = Sigmoid(p) y = Conv(q, w)", ""},
      {"p = Conv<pads = [1, 1, 1, 1]>(x, w) q = Add(p, x) y = Conv(q, w)", ""},
      {"p = Conv(x, w) q = Conv(p, w) r = Neg(p) z = Conv(r, w) y = Add(q, z)", ""},
      {"p = Conv(x, w) q = Conv(x, w) r = Concat<axis = 0>(p, q) y = Conv(r, w)", ""},
      {"y = Conv(x, w) q = Conv(y, w)", ""},
  };
  return table;
}

TEST(Equalise, Links) {
  for (const Row& r : rows()) {
    const FloatModel m = Net(r.nodes, kConstants).model();
    EXPECT_EQ(text(m, links_of(m, choose_layers(m, {}))), r.links) << r.nodes;
  }
}

// Whatever the factors, the model computes the same.
TEST(Equalise, KeepsTheModel) {
  for (const Row& r : rows()) {
    if (r.links.empty()) continue;
    const Net net(r.nodes, kConstants);
    const FloatModel m = net.model();
    const std::vector<Link> links = links_of(m, choose_layers(m, {}));
    std::vector<Factors> factors;
    for (const Link& l : links) {
      Factors f;
      for (int64_t c = 0; c < l.channels; ++c) f.push_back(std::pow(0.07, static_cast<double>(c)));
      factors.push_back(f);
    }
    const FloatModel e = equalised(m, links, factors);
    const Tensor want = net.run(m.proto()), got = net.run(e.proto());
    double most = 0;
    for (int64_t i = 0; i < want.size(); ++i) most = std::max(most, std::abs(want.real(i)));
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got.real(i), want.real(i), 1e-5 * most) << r.nodes << ", element " << i;
    const Tensor w = m.constant(m.node(links[0].before).input(1)),
                 scaled = e.constant(e.node(links[0].before).input(1));
    EXPECT_FALSE(w.same_bits(scaled)) << r.nodes;
  }
}

// Depthwise weights have a scale for each channel, so its input's channels become as wide as the widest.
TEST(Equalise, FactorsMakeChannelsEven) {
  const Net net("p = Conv(x, w, b) q = Relu(p) y = Conv<group = 4>(q, d)", kConstants);
  const FloatModel m = net.model();
  const std::vector<Link> links = links_of(m, choose_layers(m, {}));
  ASSERT_EQ(links.size(), 1u);
  const auto factors = [&](const std::vector<float>& tops) {
    Tensor t(DType::kF32, {1, 4, 2, 2});
    for (int64_t i = 0; i < t.size(); ++i)
      t.as<float>()[i] = tops[static_cast<size_t>(i / 4)] * static_cast<float>(i % 4) / 3;
    std::map<std::string, Channels> channels;
    channels["q"].add(t);
    return factors_of(m, links[0], channels);
  };
  const Factors f = factors({100, 1, 10, 0});
  ASSERT_EQ(f.size(), 4u);
  EXPECT_NEAR(f[1], 0.01, 1e-6);
  EXPECT_NEAR(f[2], 0.1, 1e-6);
  EXPECT_EQ(f[0], 1);
  EXPECT_EQ(f[3], 1);  // nothing is known of it
  EXPECT_TRUE(factors({1, 1, 1, 1}).empty());
  EXPECT_NEAR(factors({1e6F, 1, 1, 1})[1], 1.0 / 1024, 1e-9);  // no less
}

}  // namespace
}  // namespace sinter::quantize
