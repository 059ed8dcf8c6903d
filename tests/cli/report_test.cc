// What inspect writes beside its table: the JSON, and the page as a browser shows it.
#include "report/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <sstream>

#include "driver/inputs.h"
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
  // What the page says that it has drawn, by its first word; empty without a browser.
  std::map<std::string, size_t> drawn(const std::string& page) {
    std::map<std::string, size_t> counts;
    const std::string browser = find_program("chromium");
    if (browser.empty()) return counts;
    const Finished f = run_process({browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                                    "--disable-background-networking", "--disable-component-update",
                                    "--user-data-dir=" + path("profile"), "--virtual-time-budget=10000",
                                    "--dump-dom", "file://" + path(page)},
                                   true);
    dom_ = f.output;
    std::smatch found;
    EXPECT_TRUE(std::regex_search(f.output, found, std::regex("data-drawn=\"([^\"]*)\"")))
        << f.output.substr(0, 2000);
    std::istringstream words(found[1]);
    for (std::string word; words >> word;) words >> counts[word];
    return counts;
  }
  TemporaryFolder folder_;
  std::string dom_;  // of the last page
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
  // Beside Winograd's filtering stand its other tiles and the direct convolution, which costs more.
  bool others = false;
  for (const auto& l : j["layers"]) {
    if (l["kernel"] != "conv_winograd") continue;
    EXPECT_GT(l["offers"][0]["error"].get<double>(), 0);
    for (const auto& o : l["offers"]) {
      if (o["kernel"] != "conv_direct") continue;
      others = true;
      EXPECT_GT(o["cycles"].get<double>(), l["offers"][0]["cycles"].get<double>());
      EXPECT_LT(o["weight_bytes"].get<int64_t>(), l["offers"][0]["weight_bytes"].get<int64_t>());
      EXPECT_EQ(o["note"], "not taken: modelled as slower");
    }
  }
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

// A budget of weights that is told to save time saves about that much of what is then modelled.
TEST_F(Report, MoreFlashBuysWhatIsSaid) {
  onnx::ModelProto model = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[1,128,32,32] x) => (float[1,128,32,32] y)\n"
      "{ a = Conv<pads=[1,1,1,1]>(x, w1)  r = Relu(a)  b = Conv<pads=[1,1,1,1]>(r, w2)  s = Relu(b)\n"
      "  c = Conv<pads=[1,1,1,1]>(s, w3)  y = Relu(c) }");
  std::mt19937 random(1);  // equal weights would lie there once
  for (const char* w : {"w1", "w2", "w3"}) {
    add_weights(model, w, {128, 128, 3, 3});
    for (float& f : *model.mutable_graph()->mutable_initializer()->rbegin()->mutable_float_data())
      f = static_cast<float>(random() % 2001) / 1000 - 1;
  }
  save(model, path("m.onnx"));
  const auto inspect = [&](const std::vector<std::string>& more, const char* said) {
    std::vector<std::string> words = {"inspect",    path("m.onnx"), "--target",
                                      "cortex-a53", "--json",       path("m.json")};
    words.insert(words.end(), more.begin(), more.end());
    expect(words, 0, said);
    return json::parse(contents(path("m.json")));
  };
  const auto time_of = [](const json& j) {
    double us = 0;
    for (const auto& l : j["layers"]) us += l["modelled"]["us"].get<double>();
    return us;
  };
  const json now = inspect({}, "What more flash for the weights would buy");
  ASSERT_FALSE(now["weight_prices"].empty());
  double saved = 0;
  for (const auto& p : now["weight_prices"]) {
    const auto most = p["max_weights"].get<int64_t>();
    EXPECT_GT(p["us_saved"].get<double>(), saved);
    saved = p["us_saved"].get<double>();
    const json then = inspect({"--max-weights", std::to_string(most)}, "weights");
    EXPECT_LE(then["weights_bytes"].get<int64_t>(), most);
    EXPECT_EQ(then["weights_bytes"].get<int64_t>() - now["weights_bytes"].get<int64_t>(),
              p["more_bytes"].get<int64_t>());
    EXPECT_NEAR(time_of(now) - time_of(then), saved, 0.1) << p;
  }
  // With all that it could use, there is nothing to buy.
  EXPECT_TRUE(inspect({"--fast-weights"}, "layers")["weight_prices"].empty());
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
  auto counts = drawn("m.html");
  if (counts.empty()) GTEST_SKIP() << "chromium is not installed";
  const json j = json::parse(contents(path("m.json")));
  const size_t layers = j["layers"].size();
  EXPECT_EQ(counts["layers"], layers);
  EXPECT_EQ(counts["bars"], layers);
  EXPECT_EQ(counts["blocks"], j["blocks"].size());
  EXPECT_EQ(counts["rows"], layers);
  EXPECT_GE(counts["arrows"], layers);  // each is read by somebody, and the input is
  EXPECT_GE(counts["dots"], 3u);
  EXPECT_EQ(counts["errors"], 0u);
  EXPECT_EQ(dom_.find("id=\"measured\""), std::string::npos);
}

// The data that a page draws.
json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  return json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST_F(Report, VerifysPageHasEachLayersError) {
  if (report_file("libraries").empty()) GTEST_SKIP() << "built without libjs-d3 or dagre";
  save_net();
  expect({"verify", path("m.onnx"), "--html", path("v.html")}, 0, "2 outputs as expected");
  const json good = data_of(contents(path("v.html")));
  size_t compared = 0;
  for (const auto& l : good["layers"]) {
    if (!l.contains("verified")) continue;
    ++compared;
    EXPECT_TRUE(l["verified"]["ok"]) << l;
    EXPECT_LE(l["verified"]["ratio"].get<double>(), 1) << l;
  }
  EXPECT_GE(compared, 3u);
  EXPECT_EQ(good["verified"]["outputs"].size(), 2u);
  EXPECT_EQ(good["verified"]["cases"], json::array({"random inputs, seed 1"}));
  auto counts = drawn("v.html");
  if (counts.empty()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_EQ(counts["layers"], good["layers"].size());
  EXPECT_EQ(counts["errors"], compared);
  EXPECT_NE(dom_.find("layers compared"), std::string::npos);
  EXPECT_NE(dom_.find("output z against the model's meaning: as expected"), std::string::npos);
}

TEST_F(Report, VerifysPageShowsADifference) {
  if (report_file("libraries").empty()) GTEST_SKIP() << "built without libjs-d3 or dagre";
  save_text("g (float[4] x) => (float[4] y) { a = Exp(x) y = Neg(a) }", path("m.onnx"));
  std::filesystem::create_directory(path("data"));
  const std::vector<float> zeros(4), wrong = {-1, -1, -1.25f, -1};
  write_tensor_pb(path("data/input_0.pb"), Tensor::of(zeros, {4}), "x");
  write_tensor_pb(path("data/output_0.pb"), Tensor::of(wrong, {4}), "y");
  expect({"verify", path("m.onnx"), "--data", path("data"), "--html", path("v.html")}, 1,
         "the stored output");
  const json j = data_of(contents(path("v.html")));
  ASSERT_EQ(j["verified"]["outputs"].size(), 2u);
  EXPECT_TRUE(j["verified"]["outputs"][0]["ok"]);
  EXPECT_FALSE(j["verified"]["outputs"][1]["ok"]);
  EXPECT_EQ(j["verified"]["outputs"][1]["against"], "the stored output");
  if (drawn("v.html").empty()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_NE(dom_.find("1 outside"), std::string::npos);
  EXPECT_NE(dom_.find("at [2] -1 instead of -1.25"), std::string::npos);
}

TEST_F(Report, QuantizesPageHasWhatWasMeasured) {
  if (report_file("libraries").empty()) GTEST_SKIP() << "built without libjs-d3 or dagre";
  save_net();
  std::filesystem::create_directory(path("samples"));
  std::mt19937 random(1);
  for (int k = 0; k < 3; ++k)
    write_tensor_pb(path(fmt::format("samples/{}.pb", k)), random_tensor(DType::kF32, {1, 3, 32, 32}, random),
                    "x");
  expect({"quantize", path("m.onnx"), "--data", path("samples"), "-o", path("q.onnx"), "--keep-f32", "z",
          "--report", path("q.json"), "--html", path("q.html")},
         0, "bytes become");
  const json page = data_of(contents(path("q.html"))), report = json::parse(contents(path("q.json")));
  size_t looked = 0, kept = 0;
  for (const auto& l : page["layers"]) {
    if (!l.contains("quantised")) continue;
    const json& q = l["quantised"];
    ++looked;
    kept += q["type"] == "float32";
    EXPECT_GT(q["float_us"].get<double>(), 0) << l["function"];
  }
  EXPECT_GE(looked, 3u);
  EXPECT_GE(kept, 1u);
  EXPECT_LE(looked, report["layers"].size());
  EXPECT_EQ(page["quantised"]["outputs"], report["outputs"]);
  auto counts = drawn("q.html");
  if (counts.empty()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_EQ(counts["layers"], page["layers"].size());
  EXPECT_EQ(counts["errors"], looked);
  EXPECT_NE(dom_.find("float32, kept"), std::string::npos);
}

TEST_F(Report, PagesAreOfOneModel) {
  save_net();
  expect({"verify", path("m.onnx"), "b=" + path("m.onnx"), "--name", "n", "--html", path("v.html")}, 2,
         "--html is for one model");
}

}  // namespace
}  // namespace sinter
