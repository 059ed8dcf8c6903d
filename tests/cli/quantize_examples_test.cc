// The examples' nets, quantised with the examples' own data, against what ONNX Runtime makes of their floats:
// digits that are read, pixels that are masked, boxes that are found.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "driver/sample_folder.h"
#include "driver/session.h"
#include "program.h"

namespace sinter {
namespace {

class QuantizedExample : public testing::Test {
 protected:
  static std::string example(const std::string& file) {
    return std::string(SINTER_SOURCE_DIR) + "/examples/" + file;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  // Quantises NAME/NAME.onnx with pictures of its folder.
  void quantize(const std::string& name, const std::vector<std::string>& pictures, const std::string& scale) {
    model_ = example(name + "/" + name + ".onnx");
    std::filesystem::create_directory(path("data"));
    for (const std::string& p : pictures)
      std::filesystem::copy_file(example(name + "/" + p + ".png"), path("data/" + p + ".png"));
    scale_ = "scale=" + scale;
    expect({"quantize", model_, "--data", path("data"), "--image", scale_, "-o", path("q.onnx")}, 0,
           "bytes become");
  }
  // The pictures of a folder as the net's inputs, by name.
  std::vector<Tensor> inputs(const std::string& folder) const {
    std::vector<Tensor> all;
    for (const auto& sample : samples_in(folder, declared_inputs(model_, {}), {scale_}))
      all.push_back(sample[0]);
    return all;
  }
  // What was written makes of each: the outputs of these names.
  std::vector<std::vector<Tensor>> run(const std::vector<Tensor>& xs,
                                       const std::vector<std::string>& outputs) const {
    ModelOptions o;
    o.model = path("q.onnx");
    ImportOptions import;
    import.input_shapes[declared_inputs(o.model, {})[0].name] = xs[0].shape();
    std::vector<std::vector<std::string>> files;
    for (const Tensor& x : xs) {
      files.push_back({path(std::to_string(files.size()) + ".pb")});
      write_tensor_pb(files.back()[0], x, "x");
    }
    return Session(o, import).run(files, outputs);
  }

  TemporaryFolder folder_;
  std::string model_, scale_;
};

template <class T>
std::vector<T> numbers_in(const std::string& file) {
  std::ifstream f(file);
  std::vector<T> numbers;
  for (T n; f >> n;) numbers.push_back(n);
  return numbers;
}

TEST_F(QuantizedExample, DigitsLosesOnePictureOf360AtMost) {
  std::vector<std::string> pictures;
  for (int d = 0; d < 10; ++d) pictures.push_back("digit" + std::to_string(d));
  quantize("digits", pictures, "1/240");
  // The sheet's cells are digits, row by row.
  DeclaredInput sheet;
  sheet.name = "sheet", sheet.dtype = DType::kF32, sheet.has_shape = true;
  for (const int64_t e : {1, 1, 144, 160}) sheet.extents.push_back({e, e});
  std::filesystem::create_directory(path("sheet"));
  std::filesystem::copy_file(example("digits/heldout.png"), path("sheet/heldout.png"));
  const Tensor pixels = samples_in(path("sheet"), {sheet}, {scale_})[0][0];
  Tensor x(DType::kF32, {360, 1, 8, 8});
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t cell = i / 64, row = cell / 20 * 8 + i / 8 % 8, column = cell % 20 * 8 + i % 8;
    x.set_real(i, pixels.real(row * 160 + column));
  }
  const Tensor logits = run({x}, {"logits"})[0][0];
  const auto labels = numbers_in<int>(example("digits/labels.txt")),
             floats = numbers_in<int>(example("digits/onnxruntime_predictions.txt"));
  ASSERT_EQ(labels.size(), 360u);
  int right = 0, right_in_floats = 0;
  for (size_t k = 0; k < labels.size(); ++k) {
    const float* scores = logits.as<float>() + 10 * k;
    right += std::max_element(scores, scores + 10) - scores == labels[k];
    right_in_floats += floats[k] == labels[k];
  }
  EXPECT_GE(right, right_in_floats - 1);
  RecordProperty("right", right), RecordProperty("right_in_floats", right_in_floats);
}

TEST_F(QuantizedExample, SegmentationKeeps99OfItsPixels) {
  const std::vector<std::string> pictures = {"camera", "coffee", "coins", "rocket"};  // as a folder is sorted
  quantize("segmentation", pictures, "1/255");
  const auto masks = run(inputs(path("data")), {"mask"});
  for (size_t k = 0; k < pictures.size(); ++k) {
    const Tensor want = read_tensor_file(example("segmentation/" + pictures[k] + "_onnxruntime.npy"));
    int64_t same = 0;
    for (int64_t i = 0; i < want.size(); ++i) same += (masks[k][0].real(i) >= 0.5) == (want.real(i) >= 0.5);
    EXPECT_GE(same, 0.99 * static_cast<double>(want.size())) << pictures[k];
    RecordProperty(pictures[k], static_cast<int>(want.size() - same));
  }
}

// Intersection over union.
double overlap(const float* a, const float* b) {
  const auto area = [](const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  const float both[] = {std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]),
                        std::min(a[3], b[3])};
  if (both[2] <= both[0] || both[3] <= both[1]) return 0;
  return double{area(both)} / double{area(a) + area(b) - area(both)};
}

TEST_F(QuantizedExample, DetectionKeepsItsBoxes) {
  const std::vector<std::string> pictures = {"camera", "coffee", "empty", "gravel", "rocket"};
  quantize("detection", pictures, "1/255");
  const auto found = run(inputs(path("data")), {"boxes", "classes"});
  for (size_t k = 0; k < pictures.size(); ++k) {
    // A row: class, score, left, top, right, bottom.
    const auto rows = numbers_in<float>(example("detection/" + pictures[k] + "_onnxruntime.txt"));
    const Tensor &boxes = found[k][0], &classes = found[k][1];
    ASSERT_EQ(boxes.dim(0), static_cast<int64_t>(rows.size() / 6)) << pictures[k];
    std::vector<int64_t> left(rows.size() / 6);
    std::iota(left.begin(), left.end(), 0);
    for (int64_t b = 0; b < boxes.dim(0); ++b) {  // scores that are nearly equal may change places
      const auto best = std::find_if(left.begin(), left.end(), [&](int64_t w) {
        return static_cast<int64_t>(rows[static_cast<size_t>(6 * w)]) == classes.integer(b) &&
               overlap(boxes.as<float>() + 4 * b, rows.data() + 6 * w + 2) >= 0.9;
      });
      EXPECT_NE(best, left.end()) << pictures[k] << ", box " << b;
      if (best != left.end()) left.erase(best);
    }
  }
}

}  // namespace
}  // namespace sinter
