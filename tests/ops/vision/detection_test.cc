// NonMaxSuppression, RoiAlign, MaxRoiPool, DeformConv: values worked out by hand, shapes and refusals.
#include <algorithm>
#include <optional>
#include <random>

#include "ops/run_node.h"

namespace sinter::node_test {
namespace {

// Two pairs of boxes that overlap by a half and by a ninth, corners in mixed order.
const std::vector<double> kBoxes = {0, 0, 2, 1, 1, 1, 3, 0, 10, 10, 12, 12, 13, 13, 11, 11};

TEST(NonMaxSuppression, KeepsTheBestOfThoseThatOverlap) {
  struct Case {
    std::vector<double> scores;
    double most, overlap, least;
    std::vector<double> boxes;  // kept, in order
  };
  const Case cases[] = {
      {{.5, .6, .7, .8}, 9, .3, 0, {3, 2, 1}},  // a third is more than .3
      {{.5, .6, .7, .8}, 9, .34, 0, {3, 2, 1, 0}},
      {{.5, .6, .7, .8}, 9, .1, 0, {3, 1}},  // a seventh is more than .1
      {{.5, .6, .7, .8}, 1, .3, 0, {3}},
      {{.5, .6, .7, .8}, 0, .3, 0, {}},
      {{.5, .6, .7, .8}, 9, .3, .6, {3, 2}},    // above, not equal
      {{.5, .5, .5, .5}, 9, .3, 0, {0, 2, 3}},  // of equal scores the lower index
      {{.5, kNaN, .7, .8}, 9, .3, -1, {3, 2, 0}},
      {{.5, .6, .7, .8}, INT64_MIN / 2, .3, 0, {}},
  };
  for (const Case& c : cases) {
    const Tensor rows = run("NonMaxSuppression", {floats(kBoxes, {1, 4, 4}), floats(c.scores, {1, 1, 4}),
                                                  ints({c.most}), floats({c.overlap}), floats({c.least})});
    std::vector<double> want;
    for (double box : c.boxes) want.insert(want.end(), {0, 0, box});
    expect_tensor(rows, ints(want, {static_cast<int64_t>(c.boxes.size()), 3}));
  }
}

// The definition: the best that is left, unless it overlaps one kept.
std::vector<double> kept_of(const Tensor& boxes, const Tensor& scores, int64_t most, float overlap,
                            std::optional<float> least) {
  const float *box = boxes.as<float>(), *score = scores.as<float>();
  std::vector<int64_t> left, kept;
  for (int64_t i = 0; i < scores.size(); ++i)
    if (least ? score[i] > *least : score[i] == score[i]) left.push_back(i);
  std::stable_sort(left.begin(), left.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
  const auto area = [](float h, float w) { return std::max(h, 0.0f) * std::max(w, 0.0f); };
  const auto share = [&](const float* a, const float* b) {
    const float common = area(std::min(a[2], b[2]) - std::max(a[0], b[0]),
                              std::min(a[3], b[3]) - std::max(a[1], b[1])),
                whole = area(a[2] - a[0], a[3] - a[1]) + area(b[2] - b[0], b[3] - b[1]) - common;
    return whole > 0 ? common / whole : 0.0f;
  };
  for (int64_t i : left)
    if (static_cast<int64_t>(kept.size()) < most && std::none_of(kept.begin(), kept.end(), [&](int64_t k) {
          return share(box + i * 4, box + k * 4) > overlap;
        }))
      kept.push_back(i);
  std::vector<double> rows;
  for (int64_t i : kept) rows.insert(rows.end(), {0, 0, static_cast<double>(i)});
  return rows;
}

// Counts around the blocks of 16, 16 * 16 and so on that scores are searched in, and the groups of 16 of
// boxes kept; few values, so that many scores are equal, among them -0 and 0, infinite ones and NaN.
TEST(NonMaxSuppression, ManyBoxes) {
  std::mt19937 random(12);
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, kNaN, 1e-42};
  for (const int64_t n : {1, 15, 16, 17, 255, 256, 257, 700, 4095, 4097, 9000})
    for (const int levels : {3, 100000}) {
      std::vector<double> corners, values;
      for (int64_t i = 0; i < n; ++i) {
        const double y = random() % 64, x = random() % 64;
        corners.insert(corners.end(), {y, x, y + random() % 16, x + random() % 16});
        const int number = static_cast<int>(random() % static_cast<unsigned>(levels)) - levels / 2;
        values.push_back(random() % 8 == 0 ? special[random() % 6] : number / 64.0);
      }
      const Tensor boxes = floats(corners, {1, n, 4}), scores = floats(values, {1, 1, n});
      for (const int64_t most : {int64_t{20}, n}) {
        SCOPED_TRACE(fmt::format("{} of {} boxes, {} scores", most, n, levels));
        std::vector<Tensor> in = {boxes, scores, ints({static_cast<double>(most)}), floats({.4})};
        const auto want = [&](std::optional<float> least) {
          const std::vector<double> rows = kept_of(boxes, scores, most, .4f, least);
          return ints(rows, {static_cast<int64_t>(rows.size() / 3), 3});
        };
        expect_tensor(run("NonMaxSuppression", in), want({}));
        in.push_back(floats({-.25}));
        expect_tensor(run("NonMaxSuppression", in), want(-.25f));
      }
    }
}

TEST(NonMaxSuppression, BatchesClassesCentersAndDefaults) {
  const Tensor boxes = floats({1, 1, 2, 2, 1, 1, 2, 2, 5, 5, 2, 2, 5, 5, 2, 2}, {2, 2, 4});
  const Tensor scores = floats({1, 2, 4, 3, 1, 1, 2, 1}, {2, 2, 2});
  const Attrs center = {{"center_point_box", int64_t{1}}};
  expect_tensor(run("NonMaxSuppression", {boxes, scores, ints({5})}, center),
                ints({0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0}, {4, 3}));
  expect_tensor(run("NonMaxSuppression", {boxes, scores}, center), ints({}, {0, 3}));
}

TEST(NonMaxSuppression, TypesAndRefusals) {
  const auto nms = [](Shape boxes, Shape scores, std::vector<Tensor> data = {}, const Attrs& a = {}) {
    std::vector<TensorType> types = {{DType::kF32, boxes}, {DType::kF32, scores}};
    if (!data.empty()) types.push_back({DType::kI64, {}});
    return inferred("NonMaxSuppression", types, a, data);
  };
  const std::vector<Tensor> three = {{}, {}, Tensor::scalar(int64_t{3})};
  EXPECT_EQ(nms({1, 9, 4}, {1, 2, 9}, three), "int64[node_count,3]");
  EXPECT_EQ(nms({1, 9, 4}, {1, 2, 9}), "int64[0,3]");
  EXPECT_EQ(nms({1, 9, 4}, {2, 2, 9}, three),
            "\"node\" (NonMaxSuppression): batch of boxes and scores: 1 is not 2");
  EXPECT_EQ(nms({1, 9, 4}, {1, 2, 8}, three),
            "\"node\" (NonMaxSuppression): number of boxes and scores: 9 is not 8");
  EXPECT_EQ(nms({1, 9, 5}, {1, 2, 9}, three),
            "\"node\" (NonMaxSuppression): coordinates of a box: 5 is not 4");
  EXPECT_EQ(nms({9, 4}, {1, 2, 9}, three), "\"node\" (NonMaxSuppression): boxes of shape [9,4]");
  EXPECT_EQ(nms({1, 9, 4}, {1, 2, 9}, three, {{"center_point_box", int64_t{2}}}),
            "\"node\" (NonMaxSuppression): its center_point_box is 2");
  SingleNode n("NonMaxSuppression", {{DType::kF32, {2, 9, 4}}, {DType::kF32, {2, 5, 9}}, {DType::kI64, {}}},
               three, {}, 1);
  infer(n.graph, *n.node);
  EXPECT_EQ(n.node->outputs[0]->type.shape[0].hi(), 2 * 5 * 3);
}

// A ramp x + 10 y, of which every bilinear sample is known.
Tensor ramp(int64_t n) {
  Tensor t(DType::kF32, {1, 1, n, n});
  for (int64_t i = 0; i < n * n; ++i) t.set_real(i, static_cast<double>(i % n + 10 * (i / n)));
  return t;
}
Attrs bins(int64_t rows, int64_t columns, int64_t ratio, const char* where, const char* mode = "avg") {
  return {{"output_height", rows},
          {"output_width", columns},
          {"sampling_ratio", ratio},
          {"mode", std::string(mode)},
          {"coordinate_transformation_mode", std::string(where)}};
}

TEST(RoiAlign, MeansOfARamp) {
  const Tensor x = ramp(8), zero = ints({0});
  const auto align = [&](const std::vector<double>& region, const Attrs& a) {
    return run("RoiAlign", {x, floats(region, {1, 4}), zero}, a).reals();
  };
  using V = std::vector<double>;
  // Bins of 2 x 2 pixels from (1, 2): their centres are (2, 3), (4, 3), …
  EXPECT_EQ(align({1, 2, 5, 6}, bins(2, 2, 2, "output_half_pixel")), (V{32, 34, 52, 54}));
  EXPECT_EQ(align({1, 2, 5, 6}, bins(2, 2, 0, "half_pixel")), (V{26.5, 28.5, 46.5, 48.5}));
  // Less than a pixel counts as one, but not with half_pixel.
  EXPECT_EQ(align({2, 2, 2, 2}, bins(1, 1, 1, "output_half_pixel")), V{27.5});
  EXPECT_EQ(align({2, 2, 2, 2}, bins(1, 1, 1, "half_pixel")), V{16.5});
  // The greatest weighted pixel of a sample amid four is a quarter of the last.
  EXPECT_EQ(align({2, 2, 3, 3}, bins(1, 1, 1, "output_half_pixel", "max")), V{8.25});
  // Outside of the image; nowhere; and as many samples as that takes.
  EXPECT_EQ(align({20, 20, 24, 24}, bins(1, 1, 2, "half_pixel")), V{0});
  EXPECT_EQ(align({kNaN, 0, 4, 4}, bins(1, 1, 2, "half_pixel")), V{0});
  EXPECT_EQ(align({kNaN, 0, kInf, 4}, bins(1, 1, 0, "half_pixel")), V{0});
  EXPECT_EQ(align({-1e9, -1e9, 1e9, 1e9}, bins(1, 1, 0, "half_pixel"))[0] < 1e-9, true);
}

TEST(RoiAlign, TypesAndRefusals) {
  const auto align = [](Shape x, Shape regions, Shape images, const Attrs& a = {}) {
    return inferred("RoiAlign", {{DType::kF32, x}, {DType::kF32, regions}, {DType::kI64, images}}, a);
  };
  EXPECT_EQ(align({2, 3, 8, 8}, {5, 4}, {5}, bins(7, 6, 2, "half_pixel")), "float32[5,3,7,6]");
  EXPECT_EQ(align({2, 3, 8}, {5, 4}, {5}), "\"node\" (RoiAlign): an image of shape [2,3,8]");
  EXPECT_EQ(align({2, 3, 8, 8}, {5, 3}, {5}), "\"node\" (RoiAlign): numbers of a region: 3 is not 4");
  EXPECT_EQ(align({2, 3, 8, 8}, {5, 4}, {4}),
            "\"node\" (RoiAlign): number of regions and batch_indices: 5 is not 4");
  EXPECT_EQ(align({2, 3, 8, 8}, {5, 4}, {5}, bins(0, 6, 2, "half_pixel")),
            "\"node\" (RoiAlign): its output_height holds 0");
  EXPECT_EQ(align({2, 3, 8, 8}, {5, 4}, {5}, bins(1, 1, -2, "half_pixel")),
            "\"node\" (RoiAlign): its sampling_ratio is -2");
  EXPECT_EQ(align({2, 3, 8, 8}, {5, 4}, {5}, bins(1, 1, 1, "half")),
            "\"node\" (RoiAlign): its coordinate_transformation_mode is \"half\"");
  EXPECT_EQ(refusal("RoiAlign", {ramp(4), floats({0, 0, 1, 1}, {1, 4}), ints({1})}),
            "\"node\" (RoiAlign): a batch index is outside the image's batch");
}

TEST(MaxRoiPool, BinsOfARamp) {
  const auto pool = [](const std::vector<double>& region, std::vector<int64_t> shape, float scale = 1) {
    return run("MaxRoiPool", {ramp(8), floats(region, {1, 5})},
               {{"pooled_shape", std::move(shape)}, {"spatial_scale", scale}})
        .reals();
  };
  using V = std::vector<double>;
  EXPECT_EQ(pool({0, 1, 2, 4, 5}, {2, 2}), (V{32, 34, 52, 54}));
  EXPECT_EQ(pool({0, 1, 2, 3, 4}, {2, 2}), (V{32, 33, 42, 43}));  // bins of three pixels overlap
  EXPECT_EQ(pool({0, 2, 4, 8, 10}, {2, 2}, .5f), (V{32, 34, 52, 54}));
  EXPECT_EQ(pool({0, 5, 5, 2, 2}, {1, 1}), V{55});  // at least one pixel
  EXPECT_EQ(pool({0, 9, 9, 12, 12}, {1, 2}), (V{0, 0}));
  EXPECT_EQ(pool({0, -1e30, -1e30, 1e30, 1e30}, {1, 1}), V{77});
  for (double image : {-1.0, 1.0, static_cast<double>(kNaN)})
    EXPECT_EQ(refusal("MaxRoiPool", {ramp(4), floats({image, 0, 0, 1, 1}, {1, 5})},
                      {{"pooled_shape", std::vector<int64_t>{1, 1}}}),
              "\"node\" (MaxRoiPool): a region's image is outside the batch");
  EXPECT_EQ(inferred("MaxRoiPool", {{DType::kF32, {1, 2, 4, 4}}, {DType::kF32, {3, 5}}}),
            "\"node\" (MaxRoiPool): its pooled_shape has 0 entries");
}

TEST(DeformConv, WithoutOffsetsItIsAConvolution) {
  std::mt19937 random(3);
  const auto noise = [&](std::vector<int64_t> shape) {
    Tensor t(DType::kF32, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, static_cast<double>(random() % 2001) / 1000 - 1);
    return t;
  };
  const Tensor x = noise({2, 4, 6, 7}), w = noise({6, 2, 3, 2}), bias = noise({6});
  const Attrs a = {{"group", int64_t{2}},
                   {"strides", std::vector<int64_t>{2, 1}},
                   {"pads", std::vector<int64_t>{1, 0, 1, 2}},
                   {"dilations", std::vector<int64_t>{1, 2}}};
  const Tensor plain = run("Conv", {x, w, bias}, a);
  Attrs deform = a;
  deform.emplace_back("offset_group", int64_t{2});
  const Tensor offset(DType::kF32, {2, 2 * 6 * 2, plain.dim(2), plain.dim(3)});
  Tensor half(DType::kF32, {2, 2 * 6, plain.dim(2), plain.dim(3)});
  for (int64_t i = 0; i < half.size(); ++i) half.set_real(i, .5);
  expect_tensor(run("DeformConv", {x, w, offset, bias}, deform), plain, 1e-5);
  Tensor halved = w.converted(DType::kF32);
  for (int64_t i = 0; i < halved.size(); ++i) halved.set_real(i, w.real(i) / 2);
  expect_tensor(run("DeformConv", {x, w, offset, bias, half}, deform), run("Conv", {x, halved, bias}, a),
                1e-5);
}

TEST(DeformConv, OffsetsMoveTaps) {
  // One tap of weight 1 on the ramp, moved by (dy, dx).
  const auto moved = [](double dy, double dx) {
    return run("DeformConv", {ramp(4), floats({1}, {1, 1, 1, 1}),
                              [&] {
                                Tensor o(DType::kF32, {1, 2, 4, 4});
                                for (int64_t i = 0; i < 16; ++i) o.set_real(i, dy), o.set_real(16 + i, dx);
                                return o;
                              }()})
        .real(5);  // position (1, 1)
  };
  EXPECT_EQ(moved(0, 0), 11);
  EXPECT_EQ(moved(1, -1), 20);
  EXPECT_EQ(moved(.5, .25), 11 + 5 + .25);
  EXPECT_EQ(moved(-1.5, 0), .5);  // halfway out of the image
  EXPECT_EQ(moved(-2, 0), 0);
  EXPECT_EQ(moved(1e30, kNaN), 0);
}

TEST(DeformConv, Refusals) {
  const auto conv = [](Shape x, Shape w, Shape offset, const Attrs& a = {}) {
    return inferred("DeformConv", {{DType::kF32, x}, {DType::kF32, w}, {DType::kF32, offset}}, a);
  };
  EXPECT_EQ(conv({1, 4, 6, 6}, {5, 4, 3, 3}, {1, 18, 4, 4}), "float32[1,5,4,4]");
  EXPECT_EQ(conv({1, 4, 6}, {5, 4, 3, 3}, {1, 18, 4, 4}),
            "\"node\" (DeformConv): input 0 of shape [1,4,6]: only for images [N,C,H,W]");
  EXPECT_EQ(conv({1, 4, 6, 6}, {5, 4, 3, 3}, {1, 18, 5, 4}),
            "\"node\" (DeformConv): extents of the offset: 4 is not 5");
  EXPECT_EQ(conv({1, 4, 6, 6}, {5, 4, 3, 3}, {1, 17, 4, 4}),
            "\"node\" (DeformConv): channels of the offset: 17 is not 18");
  EXPECT_EQ(conv({1, 4, 6, 6}, {5, 3, 3, 3}, {1, 18, 4, 4}),
            "\"node\" (DeformConv): filters [5,3,3,3] do not fit 4 channels in 1 groups");
  EXPECT_EQ(conv({1, 4, 6, 6}, {5, 4, 3, 3}, {1, 18, 4, 4}, {{"offset_group", int64_t{3}}}),
            "\"node\" (DeformConv): 3 offset groups do not divide 4 channels");
  EXPECT_EQ(conv({1, 4, 6, 6}, {5, 4, 3, 3}, {1, 18, 4, 4}, {{"group", int64_t{0}}}),
            "\"node\" (DeformConv): group and offset_group are at least 1");
  EXPECT_EQ(conv({1, 4, 6, 6}, {5, 4, 3, 3}, {1, 18, 4, 4}, {{"kernel_shape", std::vector<int64_t>{3, 2}}}),
            "\"node\" (DeformConv): kernel_shape is not that of the filters");
}

}  // namespace
}  // namespace sinter::node_test
