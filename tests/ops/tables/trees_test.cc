// Ensembles of trees with base values: what ONNX Runtime 1.32.0 makes of two classes, of targets that no leaf
// of a row names, and of sums that just reach a limit.
#include "ops/run_node.h"

namespace sinter::node_test {
namespace {

using I = std::vector<int64_t>;
using F = std::vector<float>;
using S = std::vector<std::string>;

// Trees of one test each, x[k % 2] <= 0.5, whose leaves have the weights 2 k and 2 k + 1.
Attrs stumps(const std::string& leaves, const I& targets, const F& weights) {
  I tree, node, feature, yes, no, leaf_tree, leaf_node;
  S modes;
  F values;
  for (int64_t k = 0; k < static_cast<int64_t>(targets.size()) / 2; ++k)
    for (int64_t i = 0; i < 3; ++i) {
      tree.push_back(k), node.push_back(i), feature.push_back(i == 0 ? k % 2 : 0);
      values.push_back(i == 0 ? .5f : 0), modes.push_back(i == 0 ? "BRANCH_LEQ" : "LEAF");
      yes.push_back(i == 0 ? 1 : 0), no.push_back(i == 0 ? 2 : 0);
      if (i > 0) leaf_tree.push_back(k), leaf_node.push_back(i);
    }
  return {{"nodes_treeids", tree},    {"nodes_nodeids", node},          {"nodes_featureids", feature},
          {"nodes_modes", modes},     {"nodes_values", values},         {"nodes_truenodeids", yes},
          {"nodes_falsenodeids", no}, {leaves + "_treeids", leaf_tree}, {leaves + "_nodeids", leaf_node},
          {leaves + "_ids", targets}, {leaves + "_weights", weights}};
}
Attrs operator+(Attrs a, const Attrs& more) {
  a.insert(a.end(), more.begin(), more.end());
  return a;
}
const Tensor kCorners = floats({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});

// The runtime's quantile of the normal distribution is good to four digits near 0.
void expect_close(const Tensor& got, const std::vector<double>& want, const std::string& label) {
  ASSERT_EQ(static_cast<size_t>(got.size()), want.size()) << label;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double a = got.real(i), b = want[static_cast<size_t>(i)];
    const bool same = std::isfinite(b) ? std::fabs(a - b) <= 2e-5 + 1e-4 * std::fabs(b)
                                       : (std::isnan(b) ? std::isnan(a) : !(a < b) && !(a > b));
    EXPECT_TRUE(same) << label << " [" << i << "]: " << a << " is not " << b;
  }
}

const I kFirst = {0, 0, 0, 0}, kSecond = {1, 1, 1, 1}, kBoth = {0, 1, 1, 0};
const F kChances = {.1f, .4f, .2f, .3f}, kMargins = {-.5f, .25f, .75f, -.3f};

struct TwoClasses {
  I ids;
  F weights, base;
  const char* post;
  std::vector<double> labels, scores;
};
const TwoClasses kTwoClasses[] = {
    {kFirst, kChances, {}, "NONE", {5, 5, 9, 9}, {0.7, 0.3, 0.6, 0.4, 0.4, 0.6, 0.3, 0.7}},
    {kFirst,
     kChances,
     {},
     "LOGISTIC",
     {5, 5, 9, 9},
     {0.425557, 0.574443, 0.401312, 0.598688, 0.354344, 0.645656, 0.331812, 0.668188}},
    {kFirst, kChances, {}, "SOFTMAX", {5, 5, 9, 9}, {0.7, 0.3, 0.6, 0.4, 0.4, 0.6, 0.3, 0.7}},
    {kFirst, kChances, {}, "SOFTMAX_ZERO", {5, 5, 9, 9}, {0.7, 0.3, 0.6, 0.4, 0.4, 0.6, 0.3, 0.7}},
    {kFirst, kChances, {0.25}, "NONE", {9, 9, 9, 9}, {0.45, 0.55, 0.35, 0.65, 0.15, 0.85, 0.05, 0.95}},
    {kFirst,
     kChances,
     {0.25},
     "LOGISTIC",
     {9, 9, 9, 9},
     {0.365864, 0.634136, 0.34299, 0.65701, 0.299433, 0.700567, 0.278885, 0.721115}},
    {kFirst, kChances, {0.25}, "SOFTMAX", {9, 9, 9, 9}, {0.45, 0.55, 0.35, 0.65, 0.15, 0.85, 0.05, 0.95}},
    {kFirst,
     kChances,
     {0.25},
     "SOFTMAX_ZERO",
     {9, 9, 9, 9},
     {0.45, 0.55, 0.35, 0.65, 0.15, 0.85, 0.05, 0.95}},
    {kFirst, kChances, {0.25, 0.35}, "NONE", {9, 9, 9, 9}, {0.55, 0, 0.65, 0, 0.85, 0, 0.95, 0}},
    {kFirst,
     kChances,
     {0.25, 0.35},
     "LOGISTIC",
     {9, 9, 9, 9},
     {0.634136, 0.5, 0.65701, 0.5, 0.700567, 0.5, 0.721115, 0.5}},
    {kFirst,
     kChances,
     {0.25, 0.35},
     "SOFTMAX",
     {9, 9, 9, 9},
     {0.634136, 0.365864, 0.65701, 0.34299, 0.700567, 0.299433, 0.721115, 0.278885}},
    {kFirst, kChances, {0.25, 0.35}, "SOFTMAX_ZERO", {9, 9, 9, 9}, {1, 0, 1, 0, 1, 0, 1, 0}},
    {kFirst,
     kChances,
     {0.25, 0.35},
     "PROBIT",
     {9, 9, 9, 9},
     {0.125662, -kInf, 0.38534, -kInf, 1.03661, -kInf, 1.64467, -kInf}},
    {kFirst, kChances, {0.1, -0.6}, "NONE", {5, 5, 9, 9}, {0.4, 0, 0.5, 0, 0.7, 0, 0.8, 0}},
    {kFirst,
     kChances,
     {0.1, -0.6},
     "LOGISTIC",
     {5, 5, 9, 9},
     {0.598688, 0.5, 0.622459, 0.5, 0.668188, 0.5, 0.689974, 0.5}},
    {kFirst,
     kChances,
     {0.1, -0.6},
     "SOFTMAX",
     {5, 5, 9, 9},
     {0.598688, 0.401312, 0.622459, 0.377541, 0.668188, 0.331812, 0.689974, 0.310026}},
    {kFirst, kChances, {0.1, -0.6}, "SOFTMAX_ZERO", {5, 5, 9, 9}, {1, 0, 1, 0, 1, 0, 1, 0}},
    {kFirst,
     kChances,
     {0.1, -0.6},
     "PROBIT",
     {5, 5, 9, 9},
     {-0.253354, -kInf, 0, -kInf, 0.524446, -kInf, 0.841756, -kInf}},
    {kFirst, kMargins, {}, "NONE", {9, 5, 9, 5}, {-0.25, 0.25, 0.8, -0.8, -1, 1, 0.05, -0.05}},
    {kFirst,
     kMargins,
     {},
     "LOGISTIC",
     {9, 5, 9, 5},
     {0.437823, 0.562177, 0.689974, 0.310026, 0.268941, 0.731059, 0.512497, 0.487503}},
    {kFirst, kMargins, {}, "SOFTMAX_ZERO", {9, 5, 9, 5}, {-0.25, 0.25, 0.8, -0.8, -1, 1, 0.05, -0.05}},
    {kFirst, kMargins, {0.25}, "NONE", {9, 5, 9, 9}, {-0.5, 0.5, 0.55, -0.55, -1.25, 1.25, -0.2, 0.2}},
    {kFirst,
     kMargins,
     {0.25},
     "LOGISTIC",
     {9, 5, 9, 9},
     {0.377541, 0.622459, 0.634136, 0.365864, 0.2227, 0.7773, 0.450166, 0.549834}},
    {kFirst,
     kMargins,
     {0.25},
     "SOFTMAX_ZERO",
     {9, 5, 9, 9},
     {-0.5, 0.5, 0.55, -0.55, -1.25, 1.25, -0.2, 0.2}},
    {kFirst, kMargins, {0.25, 0.35}, "NONE", {9, 5, 9, 9}, {0.5, 0, -0.55, 0, 1.25, 0, 0.2, 0}},
    {kFirst, kMargins, {0.1, -0.6}, "NONE", {9, 5, 9, 9}, {0.35, 0, -0.7, 0, 1.1, 0, 0.05, 0}},
    {kFirst,
     kMargins,
     {0.1, -0.6},
     "LOGISTIC",
     {9, 5, 9, 9},
     {0.586618, 0.5, 0.331812, 0.5, 0.75026, 0.5, 0.512497, 0.5}},
    {kFirst, kMargins, {0.1, -0.6}, "SOFTMAX_ZERO", {9, 5, 9, 9}, {1, 0, 1, 0, 1, 0, 1, 0}},
    {kSecond, kChances, {}, "NONE", {5, 5, 9, 9}, {0, 0.3, 0, 0.4, 0, 0.6, 0, 0.7}},
    {kSecond,
     kChances,
     {},
     "LOGISTIC",
     {5, 5, 9, 9},
     {0.5, 0.574443, 0.5, 0.598688, 0.5, 0.645656, 0.5, 0.668188}},
    {kSecond,
     kChances,
     {},
     "SOFTMAX",
     {5, 5, 9, 9},
     {0.425557, 0.574443, 0.401312, 0.598688, 0.354344, 0.645656, 0.331812, 0.668188}},
    {kSecond, kChances, {}, "SOFTMAX_ZERO", {5, 5, 9, 9}, {0, 1, 0, 1, 0, 1, 0, 1}},
    {kSecond,
     kChances,
     {},
     "PROBIT",
     {5, 5, 9, 9},
     {-kInf, -0.524446, -kInf, -0.253354, -kInf, 0.253354, -kInf, 0.524446}},
    {kSecond, kChances, {0.25}, "NONE", {5, 5, 9, 9}, {0, 0.3, 0, 0.4, 0, 0.6, 0, 0.7}},
    {kSecond,
     kChances,
     {0.25},
     "LOGISTIC",
     {5, 5, 9, 9},
     {0.5, 0.574443, 0.5, 0.598688, 0.5, 0.645656, 0.5, 0.668188}},
    {kSecond,
     kChances,
     {0.25},
     "SOFTMAX",
     {5, 5, 9, 9},
     {0.425557, 0.574443, 0.401312, 0.598688, 0.354344, 0.645656, 0.331812, 0.668188}},
    {kSecond, kChances, {0.25}, "SOFTMAX_ZERO", {5, 5, 9, 9}, {0, 1, 0, 1, 0, 1, 0, 1}},
    {kSecond,
     kChances,
     {0.25},
     "PROBIT",
     {5, 5, 9, 9},
     {-kInf, -0.524446, -kInf, -0.253354, -kInf, 0.253354, -kInf, 0.524446}},
    {kSecond, kChances, {0.25, 0.35}, "NONE", {5, 5, 5, 5}, {0, 0.35, 0, 0.35, 0, 0.35, 0, 0.35}},
    {kSecond,
     kChances,
     {0.25, 0.35},
     "LOGISTIC",
     {5, 5, 5, 5},
     {0.5, 0.586618, 0.5, 0.586618, 0.5, 0.586618, 0.5, 0.586618}},
    {kSecond,
     kChances,
     {0.25, 0.35},
     "SOFTMAX",
     {5, 5, 5, 5},
     {0.413382, 0.586618, 0.413382, 0.586618, 0.413382, 0.586618, 0.413382, 0.586618}},
    {kSecond, kChances, {0.25, 0.35}, "SOFTMAX_ZERO", {5, 5, 5, 5}, {0, 1, 0, 1, 0, 1, 0, 1}},
    {kSecond,
     kChances,
     {0.25, 0.35},
     "PROBIT",
     {5, 5, 5, 5},
     {-kInf, -0.38534, -kInf, -0.38534, -kInf, -0.38534, -kInf, -0.38534}},
    {kSecond, kChances, {0.1, -0.6}, "NONE", {5, 5, 5, 5}, {0, -0.6, 0, -0.6, 0, -0.6, 0, -0.6}},
    {kSecond,
     kChances,
     {0.1, -0.6},
     "LOGISTIC",
     {5, 5, 5, 5},
     {0.5, 0.354344, 0.5, 0.354344, 0.5, 0.354344, 0.5, 0.354344}},
    {kSecond,
     kChances,
     {0.1, -0.6},
     "SOFTMAX",
     {5, 5, 5, 5},
     {0.645656, 0.354344, 0.645656, 0.354344, 0.645656, 0.354344, 0.645656, 0.354344}},
    {kSecond, kChances, {0.1, -0.6}, "SOFTMAX_ZERO", {5, 5, 5, 5}, {0, 1, 0, 1, 0, 1, 0, 1}},
    {kSecond,
     kChances,
     {0.1, -0.6},
     "PROBIT",
     {5, 5, 5, 5},
     {-kInf, kNaN, -kInf, kNaN, -kInf, kNaN, -kInf, kNaN}},
    {kSecond, kMargins, {}, "NONE", {9, 5, 9, 5}, {0, 0.25, 0, -0.8, 0, 1, 0, -0.05}},
    {kSecond,
     kMargins,
     {},
     "LOGISTIC",
     {9, 5, 9, 5},
     {0.5, 0.562177, 0.5, 0.310026, 0.5, 0.731059, 0.5, 0.487503}},
    {kSecond, kMargins, {}, "SOFTMAX_ZERO", {9, 5, 9, 5}, {0, 1, 0, 1, 0, 1, 0, 1}},
    {kSecond, kMargins, {0.25}, "NONE", {9, 5, 9, 5}, {0, 0.25, 0, -0.8, 0, 1, 0, -0.05}},
    {kSecond,
     kMargins,
     {0.25},
     "LOGISTIC",
     {9, 5, 9, 5},
     {0.5, 0.562177, 0.5, 0.310026, 0.5, 0.731059, 0.5, 0.487503}},
    {kSecond, kMargins, {0.25}, "SOFTMAX_ZERO", {9, 5, 9, 5}, {0, 1, 0, 1, 0, 1, 0, 1}},
    {kSecond, kMargins, {0.25, 0.35}, "NONE", {9, 9, 9, 9}, {0, 0.35, 0, 0.35, 0, 0.35, 0, 0.35}},
    {kSecond, kMargins, {0.1, -0.6}, "NONE", {5, 5, 5, 5}, {0, -0.6, 0, -0.6, 0, -0.6, 0, -0.6}},
    {kSecond,
     kMargins,
     {0.1, -0.6},
     "LOGISTIC",
     {5, 5, 5, 5},
     {0.5, 0.354344, 0.5, 0.354344, 0.5, 0.354344, 0.5, 0.354344}},
    {kSecond, kMargins, {0.1, -0.6}, "SOFTMAX_ZERO", {5, 5, 5, 5}, {0, 1, 0, 1, 0, 1, 0, 1}},
    {kBoth, kChances, {}, "NONE", {1, 1, 1, 1}, {0.1, 0.2, -0.4, 0.4, 0, 0.6, 0.3, 0.4}},
    {kBoth,
     kChances,
     {},
     "LOGISTIC",
     {1, 1, 1, 1},
     {0.524979, 0.549834, 0.401312, 0.598688, 0.5, 0.645656, 0.574443, 0.598688}},
    {kBoth,
     kChances,
     {},
     "SOFTMAX",
     {1, 1, 1, 1},
     {0.475021, 0.524979, -0.4, 0.4, 0.354344, 0.645656, 0.475021, 0.524979}},
    {kBoth,
     kChances,
     {},
     "SOFTMAX_ZERO",
     {1, 1, 1, 1},
     {0.475021, 0.524979, -0.4, 0.4, 0, 1, 0.475021, 0.524979}},
    {kBoth, kChances, {0.25, 0.35}, "NONE", {1, 1, 1, 1}, {-0.45, 0.45, 0.65, 0, 0, 0.35, -0.65, 0.65}},
    {kBoth,
     kChances,
     {0.25, 0.35},
     "LOGISTIC",
     {1, 1, 1, 1},
     {0.389361, 0.610639, 0.65701, 0.5, 0.5, 0.586618, 0.34299, 0.65701}},
    {kBoth,
     kChances,
     {0.25, 0.35},
     "SOFTMAX",
     {1, 1, 1, 1},
     {0.28905, 0.710949, 0.65701, 0.34299, 0.413382, 0.586618, 0.214165, 0.785835}},
    {kBoth,
     kChances,
     {0.25, 0.35},
     "SOFTMAX_ZERO",
     {1, 1, 1, 1},
     {0.28905, 0.710949, 1, 0, 0, 1, 0.214165, 0.785835}},
    {kBoth,
     kChances,
     {0.25, 0.35},
     "PROBIT",
     {1, 1, 1, 1},
     {kNaN, -0.125662, 0.38534, -kInf, -kInf, -0.38534, kNaN, 0.38534}},
    {kBoth, kChances, {0.1, -0.6}, "NONE", {0, 1, 0, 0}, {0.5, -0.5, 0.5, 0, 0, -0.6, 0.3, -0.3}},
    {kBoth,
     kChances,
     {0.1, -0.6},
     "LOGISTIC",
     {0, 1, 0, 0},
     {0.622459, 0.377541, 0.622459, 0.5, 0.5, 0.354344, 0.574443, 0.425557}},
    {kBoth,
     kChances,
     {0.1, -0.6},
     "SOFTMAX",
     {0, 1, 0, 0},
     {0.731059, 0.268941, 0.622459, 0.377541, 0.645656, 0.354344, 0.645656, 0.354344}},
    {kBoth,
     kChances,
     {0.1, -0.6},
     "SOFTMAX_ZERO",
     {0, 1, 0, 0},
     {0.731059, 0.268941, 1, 0, 0, 1, 0.645656, 0.354344}},
    {kBoth, kChances, {0.1, -0.6}, "PROBIT", {0, 1, 0, 0}, {0, kNaN, 0, -kInf, -kInf, kNaN, -0.524446, kNaN}},
    {kBoth, kMargins, {}, "NONE", {1, 0, 1, 1}, {-0.5, 0.75, 0.8, -0.8, 0, 1, -0.3, 0.25}},
    {kBoth,
     kMargins,
     {},
     "LOGISTIC",
     {1, 0, 1, 1},
     {0.377541, 0.679179, 0.689974, 0.310026, 0.5, 0.731059, 0.425557, 0.562177}},
    {kBoth,
     kMargins,
     {},
     "SOFTMAX_ZERO",
     {1, 0, 1, 1},
     {0.2227, 0.7773, 0.8, -0.8, 0, 1, 0.365864, 0.634136}},
    {kBoth, kMargins, {0.25, 0.35}, "NONE", {0, 0, 1, 1}, {0.15, -0.15, -0.55, 0, 0, 0.35, -0.05, 0.05}},
    {kBoth, kMargins, {0.1, -0.6}, "NONE", {0, 0, 0, 0}, {1.1, -1.1, -0.7, 0, 0, -0.6, 0.9, -0.9}},
    {kBoth,
     kMargins,
     {0.1, -0.6},
     "LOGISTIC",
     {0, 0, 0, 0},
     {0.75026, 0.24974, 0.331812, 0.5, 0.5, 0.354344, 0.710949, 0.289051}},
    {kBoth,
     kMargins,
     {0.1, -0.6},
     "SOFTMAX_ZERO",
     {0, 0, 0, 0},
     {0.90025, 0.0997505, 1, 0, 0, 1, 0.858149, 0.141851}},
};

TEST(Trees, TwoClassesWithBaseValuesAsOnnxRuntime) {
  for (const TwoClasses& c : kTwoClasses) {
    Attrs a = stumps("class", c.ids, c.weights) +
              Attrs{{"classlabels_int64s", I{5, 9}}, {"post_transform", std::string(c.post)}};
    if (!c.base.empty()) a.emplace_back("base_values", c.base);
    const auto got = run_all("TreeEnsembleClassifier", {kCorners}, a, 2);
    const std::string label = fmt::format("ids {} weights {} base {} {}", fmt::join(c.ids, ","),
                                          fmt::join(c.weights, ","), fmt::join(c.base, ","), c.post);
    expect_close(got[0], c.labels, label + " labels");
    expect_close(got[1], c.scores, label);
  }
}

// One base value of two classes with weights of both: added to the first; (s, 0) where no leaf names the
// second.
TEST(Trees, OneBaseValueOfTwoClasses) {
  const auto got = run_all(
      "TreeEnsembleClassifier", {kCorners},
      stumps("class", kBoth, kChances) + Attrs{{"classlabels_int64s", I{0, 1}}, {"base_values", F{.25}}}, 2);
  expect_close(got[0], {1, 1, 1, 1}, "labels");
  expect_close(got[1], {.35, .2, .65, 0, 0, .6, .55, .4}, "scores");
  EXPECT_EQ(inferred("TreeEnsembleClassifier", {{DType::kF32, {4, 2}}},
                     stumps("class", kFirst, kChances) + Attrs{{"classlabels_int64s", I{0, 1}},
                                                               {"base_values", F{.25}},
                                                               {"post_transform", std::string("PROBIT")}},
                     {}, 2),
            "\"node\" (TreeEnsembleClassifier): PROBIT of a single score is not supported");
  EXPECT_EQ(inferred("TreeEnsembleClassifier", {{DType::kF32, {4, 2}}},
                     stumps("class", kFirst, kChances) +
                         Attrs{{"classlabels_int64s", I{0, 1}}, {"base_values", F{1, 2, 3}}},
                     {}, 2),
            "\"node\" (TreeEnsembleClassifier): its base_values has 3 entries, not 2");
}

TEST(Trees, ManyClassesOnlyCountThoseThatALeafNames) {
  const Attrs a =
      stumps("class", {0, 2, 0, 1}, {-.1f, -.4f, -.2f, -.3f}) + Attrs{{"classlabels_int64s", I{5, 6, 7}}};
  const auto plain = run_all("TreeEnsembleClassifier", {kCorners}, a, 2);
  expect_close(plain[0], {5, 5, 5, 6}, "labels");
  expect_close(plain[1], {-.3, 0, 0, -.1, -.3, 0, -.2, 0, -.4, 0, -.3, -.4}, "scores");
  const auto based =
      run_all("TreeEnsembleClassifier", {kCorners}, a + Attrs{{"base_values", F{.1f, -.2f, -.3f}}}, 2);
  expect_close(based[0], {6, 5, 5, 5}, "labels with base values");
  expect_close(based[1], {-.2, -.2, -.3, 0, -.5, -.3, -.1, -.2, -.7, .1, -.5, -.7},
               "scores with base values");
}

TEST(Trees, RegressionWithBaseValues) {
  struct {
    const char* sum;
    std::vector<double> one, two;
  } const cases[] = {
      {"SUM", {.6, .7, 1.1, 1.2}, {.6, 0, .4, .55, .7, .65, 0, .95}},
      {"AVERAGE", {.55, .6, .8, .85}, {.55, 0, .45, .4, .6, .45, 0, .6}},
      {"MIN", {.4, .4, .7, .8}, {.4, 0, .4, .55, .7, .65, 0, .55}},
      {"MAX", {.7, .8, .9, .9}, {.7, 0, .4, .55, .7, .65, 0, .65}},
  };
  for (const auto& c : cases) {
    const Attrs how = {{"aggregate_function", std::string(c.sum)}};
    const F weights = {-.1f, .4f, .2f, .3f};
    expect_close(run("TreeEnsembleRegressor", {kCorners},
                     stumps("target", kFirst, weights) + how + Attrs{{"base_values", F{.5}}}),
                 c.one, std::string("one target, ") + c.sum);
    expect_close(run("TreeEnsembleRegressor", {kCorners},
                     stumps("target", {0, 1, 0, 1}, weights) + how +
                         Attrs{{"n_targets", int64_t{2}}, {"base_values", F{.5, .25}}}),
                 c.two, std::string("two targets, ") + c.sum);
  }
}

// Half of the trees vote: a sum of floats, in the trees' order, decides what exceeds 0.5.
TEST(Trees, VotesAreAddedUpInFloat) {
  for (const int64_t trees : {10, 20}) {
    const auto n = static_cast<size_t>(trees);
    F weights(2 * n);
    for (size_t k = 0; k < n; ++k) weights[2 * k + k % 2] = 1 / static_cast<float>(trees);
    const auto got =
        run_all("TreeEnsembleClassifier", {floats({0, 0}, {1, 2})},
                stumps("class", I(2 * n, 0), weights) + Attrs{{"classlabels_int64s", I{0, 1}}}, 2);
    EXPECT_EQ(got[0].integer(0), trees == 20 ? 1 : 0) << trees;
  }
}

}  // namespace
}  // namespace sinter::node_test
