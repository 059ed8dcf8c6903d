// What inspect writes beside its table: the JSON, and the page as a browser shows it.
#include "report/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "program.h"

namespace sinter {
namespace {

using nlohmann::json;

// A picture net with a branch, two outputs and a layer whose name could end a page's script.
const char* const kNet =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "g (float[1,3,32,32] x) => (float[1,8,16,16] y, float[1,10] z)\n"
    "{ a = Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x, w1)  r = Relu(a)\n"
    "  b = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r, w2)  y = Add(b, r)\n"
    "  p = GlobalAveragePool(y)  f = Flatten(p)  z = MatMul(f, w3) }";

class Report : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void save_net() {
    onnx::ModelProto model = parse_text(kNet);
    add_weights(model, "w1", {8, 3, 3, 3});
    add_weights(model, "w2", {8, 8, 3, 3});
    add_weights(model, "w3", {8, 10});
    model.mutable_graph()->mutable_node(0)->set_name("</script><b>");
    save(model, path("m.onnx"));
  }
  static void add_weights(onnx::ModelProto& model, const char* name, const std::vector<int64_t>& dims) {
    onnx::TensorProto& t = *model.mutable_graph()->add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::FLOAT);
    int64_t n = 1;
    for (const int64_t d : dims) t.add_dims(d), n *= d;
    for (int64_t i = 0; i < n; ++i) t.add_float_data(static_cast<float>(i % 7) / 8 - 0.4f);
  }
  TemporaryFolder folder_;
};

TEST_F(Report, SaysWhatALayerCostsAndWhatElseCouldComputeIt) {
  save_net();
  expect({"inspect", path("m.onnx"), "--target", "cortex-a76", "--json", path("m.json")}, 0,
         "What would help most");
  const json j = json::parse(contents(path("m.json")));
  ASSERT_GE(j["layers"].size(), 4u);
  for (const auto& l : j["layers"]) {
    EXPECT_GT(l["modelled"]["cycles"].get<double>(), 0) << l["function"];
    EXPECT_NEAR(l["modelled"]["us"].get<double>() * j["machine"]["mhz"].get<double>(),
                l["modelled"]["cycles"].get<double>(), 3)
        << l["function"];
    int taken = 0;
    for (const auto& o : l["offers"]) taken += o["taken"].get<bool>();
    EXPECT_EQ(taken, 1) << l["function"];
    EXPECT_EQ(l["offers"][0]["kernel"], l["kernel"]);
  }
  // A convolution by Winograd's filtering has others behind it that could.
  bool others = false;
  for (const auto& l : j["layers"]) others |= l["kernel"] == "conv_winograd" && l["offers"].size() > 1;
  EXPECT_TRUE(others);
  // Every block lies in the arena, and some layer has one that reaches its end.
  int64_t most = 0;
  for (const auto& b : j["blocks"])
    most = std::max(most, b["offset"].get<int64_t>() + b["bytes"].get<int64_t>());
  EXPECT_LE(most, j["arena_bytes"].get<int64_t>());
  EXPECT_GT(most, j["arena_bytes"].get<int64_t>() - 64);
}

// What is modelled is not far from what a simulator of these cores counts (bench/modelled.py; small nets are
// furthest off).
TEST_F(Report, ModelledTimeIsNearTheSimulators) {
  const struct {
    const char *net, *core;
    double mcycles;
  } cases[] = {{"segmentation", "cortex-a53", 12.01}, {"segmentation", "cortex-a72", 6.13},
               {"segmentation", "cortex-a76", 3.29},  {"audio/denoise", "cortex-a53", 0.38},
               {"audio/denoise", "cortex-a72", 0.21}, {"audio/denoise", "cortex-a76", 0.16}};
  for (const auto& c : cases) {
    const std::string net = std::string_view(c.net).find('/') == std::string_view::npos
                                ? fmt::format("{0}/{0}", c.net)
                                : std::string(c.net);
    expect({"inspect", fmt::format("{}/examples/{}.onnx", SINTER_SOURCE_DIR, net), "--target", c.core,
            "--json", path("m.json")},
           0, "modelled");
    double cycles = 0;
    for (const json j = json::parse(contents(path("m.json"))); const auto& l : j["layers"])
      cycles += l["modelled"]["cycles"].get<double>();
    EXPECT_NEAR(cycles / 1e6 / c.mcycles, 1, 0.45) << net << " on " << c.core;
  }
}

TEST_F(Report, AdviceIsWhatTheTargetCanDo) {
  save_net();
  const auto says = [&](const char* target, const char* word) {
    return sinter_program({"inspect", path("m.onnx"), "--target", target}).output.find(word) !=
           std::string::npos;
  };
  EXPECT_TRUE(says("cortex-a76", "--fp16"));
  EXPECT_TRUE(says("cortex-a76", "sinter quantize"));
  EXPECT_FALSE(says("cortex-a72", "--fp16"));
  EXPECT_TRUE(says("aarch64", "--target: "));
}

// The page draws a box for each layer in every picture, and no text of the model's becomes markup.
TEST_F(Report, PageDrawsEveryLayer) {
  if (report_file("libraries").empty()) GTEST_SKIP() << "built without libjs-d3 or dagre";
  save_net();
  expect({"inspect", path("m.onnx"), "--html", path("m.html"), "--json", path("m.json")}, 0, "layers");
  const std::string page = contents(path("m.html"));
  for (const char* fetched : {"src=\"http", "<link", "@import"})
    EXPECT_EQ(page.find(fetched), std::string::npos) << fetched;
  EXPECT_EQ(page.find("<b>\" (Conv)"), std::string::npos);
  const std::string browser = find_program("chromium");
  if (browser.empty()) GTEST_SKIP() << "chromium is not installed";
  const Finished f = run_process(
      {browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
       "--disable-background-networking", "--disable-component-update", "--user-data-dir=" + path("profile"),
       "--virtual-time-budget=10000", "--dump-dom", "file://" + path("m.html")},
      true);
  std::smatch drawn;
  ASSERT_TRUE(std::regex_search(
      f.output, drawn,
      std::regex(
          "data-drawn=\"layers (\\d+) arrows (\\d+) bars (\\d+) blocks (\\d+) dots (\\d+) rows (\\d+)")))
      << f.output.substr(0, 2000);
  const json j = json::parse(contents(path("m.json")));
  const std::string layers = std::to_string(j["layers"].size());
  EXPECT_EQ(drawn[1], layers);
  EXPECT_EQ(drawn[3], layers);
  EXPECT_EQ(drawn[4], std::to_string(j["blocks"].size()));
  EXPECT_EQ(drawn[6], layers);
  EXPECT_GE(std::stoul(drawn[2]), j["layers"].size());  // each is read by somebody, and the input is
  EXPECT_GE(std::stoul(drawn[5]), 3u);
}

}  // namespace
}  // namespace sinter
