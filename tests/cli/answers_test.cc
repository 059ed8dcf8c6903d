// --post: what its words accept, refuse and come to.
#include <gtest/gtest.h>

#include <array>

#include "driver/options.h"
#include "input_file.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

class Answers : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void write(const std::string& name, DType t, std::vector<int64_t> shape,
             const std::vector<double>& values) {
    Tensor x(t, std::move(shape));
    for (size_t i = 0; i < values.size(); ++i) x.set_real(static_cast<int64_t>(i), values[i]);
    write_input(path(name), x);
  }
  // A model whose outputs are its inputs.
  void save(const std::string& name, const std::string& ins, const std::string& outs,
            const std::string& nodes) {
    save_text("g (" + ins + ") => (" + outs + ") { " + nodes + " }", path(name));
  }
  TemporaryFolder folder_;
};

TEST_F(Answers, Classes) {
  save("m.onnx", "float[1,4] x, float[1,2] z", "float[1,4] y, float[1,2] v", "y = Neg(x) v = Neg(z)");
  write("x.npy", DType::kF32, {1, 4}, {-1, -3, -2, 0});
  write("z.npy", DType::kF32, {1, 2}, {5, 7});
  const auto run = [&](const std::string& words, const std::string& said) {
    expect({"run", path("m.onnx"), "--post", words, "--in", path("x.npy"), "--in", path("z.npy")}, 0, said);
  };
  run("y: argmax", "y int64[1]: 1\nv float32[1,2]: -5 -7");
  run("y: u8 argmax", "y uint8[1]: 1");
  run("y: topk=2", "y_values float32[1,2]: 3 2\ny_classes int64[1,2]: 1 2\nv float32");
  run("v: softmax", "v float32[1,2]: 0.88");
  run("y: argmax axis=0", "y int64[4]: 0 0 0 0");
  expect({"verify", path("m.onnx"), "--post", "y: topk=2", "--post", "v: softmax"}, 0,
         "3 outputs as expected");
  expect({"compile", path("m.onnx"), "--post", "y: topk=2", "-o", path("net")}, 0, "m: ");
  EXPECT_NE(contents(path("net/m.cpp")).find("--post \"y: topk=2\""), std::string::npos);
  EXPECT_NE(contents(path("net/m.h")).find("int64_t* y_classes;"), std::string::npos);
  expect({"run", "--bundle", path("net"), "--in", path("x.npy"), "--in", path("z.npy")}, 0,
         "y_classes int64[1,2]: 1 2");
}

// A frame of 4 x 2 in a picture of 4 x 4: the mask has the frame's pixels.
TEST_F(Answers, Masks) {
  save("m.onnx", "float[1,3,4,4] x", "float[1,3,4,4] y", "y = Identity(x)");
  write("f.npy", DType::kU8, {2, 4, 3}, {9, 0, 0, 0, 9, 0, 0, 0, 9, 9, 0, 0,  //
                                         0, 9, 0, 0, 0, 9, 9, 0, 0, 0, 9, 0});
  const std::string pre = "u8 rgb 4x2 resize=letterbox", m = path("m.onnx");
  expect({"run", m, "--pre", pre, "--post", "u8 argmax resize=input", "--in", path("f.npy")}, 0,
         "y uint8[2,4]: 0 1 2 0 1 2 0 1");
  expect({"run", m, "--pre", pre, "--post", "u8 argmax", "--in", path("f.npy")}, 0,
         "y uint8[1,4,4]: 0 0 0 0 0 1 2 0 1 2 0 1 0 0 0 0");
  expect({"verify", m, "--pre", pre, "--post", "u8 argmax resize=input", "--in", path("f.npy")}, 0,
         "1 outputs as expected");
  expect({"compile", m, "--pre", "u8 rgb 4x2 resize=crop", "--post", "u8 argmax resize=input", "-o",
          path("net")},
         2, "edges are cut off");
  save("one.onnx", "float[1,1,2,2] x", "float[1,1,2,2] y", "y = Identity(x)");
  write("g.npy", DType::kU8, {2, 2}, {1, 2, 3, 4});
  expect({"run", path("one.onnx"), "--pre", "gray 2x2", "--post", "u8 threshold=2.5 resize=input", "--in",
          path("g.npy")},
         0, "y uint8[2,2]: 0 0 1 1");
}

TEST_F(Answers, Boxes) {
  // Two anchors of a YOLO with one class that overlap, beside a picture that tells the scale.
  save("yolo.onnx", "float[1,3,8,8] image, float[1,5,7] head", "float[1,3,8,8] p, float[1,5,7] boxes",
       "p = Identity(image) boxes = Identity(head)");
  write("image.npy", DType::kU8, {16, 16, 3}, {});
  std::vector<double> head(35, 0);
  for (const auto& [anchor, at] : std::vector<std::pair<size_t, std::array<double, 5>>>{
           {1, {4, 4, 2, 2, 0.9}}, {3, {4.25, 4, 2, 2, 0.8}}, {5, {1, 1, 4, 2, 0.5}}})
    for (size_t k = 0; k < 5; ++k) head[k * 7 + anchor] = at[k];
  write("head.npy", DType::kF32, {1, 5, 7}, head);
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"run",  path("yolo.onnx"), "--pre", "image: rgb 16x16",
                                    "--in", path("image.npy"), "--in",  path("head.npy")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect(
      with({"--post", "boxes: nms"}), 0,
      "boxes float32[2,4]: 6 6 10 10 0 0 6 4\nboxes_scores float32[2]: 0.9 0.5\nboxes_classes int64[2]: 0 0");
  expect(with({"--post", "boxes: nms max=1 iou=1"}), 0, "boxes float32[1,4]: 6 6 10 10");
  expect(with({"--post", "boxes: nms score=0.6 iou=1"}), 0, "boxes float32[2,4]: 6 6 10 10 6.5 6 10.5 10");
  expect(with({"--post", "boxes: nms score=2"}), 0, "boxes float32[0,4]");
  expect(with({"--post", "boxes: nms boxes=corners"}), 0, "boxes float32[");
  // SSD: corners as shares, class 0 is background.
  save("ssd.onnx", "float[1,3,8,8] image, float[1,2,4] b, float[1,2,3] s",
       "float[1,3,8,8] p, float[1,2,4] boxes, float[1,2,3] scores",
       "p = Identity(image) boxes = Identity(b) scores = Identity(s)");
  write("b.npy", DType::kF32, {1, 2, 4}, {0, 0, .5, .5, .25, .25, 1, 1});
  write("s.npy", DType::kF32, {1, 2, 3}, {.9, .1, .3, .1, .6, .4});
  expect({"run", path("ssd.onnx"), "--pre", "image: rgb 16x16", "--post", "boxes: nms", "--in",
          path("image.npy"), "--in", path("b.npy"), "--in", path("s.npy")},
         0,
         "boxes float32[3,4]: 4 4 16 16 4 4 16 16 0 0 8 8\nboxes_scores float32[3]: 0.6 0.4 0.3\n"
         "boxes_classes int64[3]: 1 2 2");
  expect({"verify", path("ssd.onnx"), "--post", "boxes: nms"}, 0, "4 outputs as expected");
}

TEST_F(Answers, WordsThatAreRefused) {
  save("m.onnx", "float[1,3,4,4] x, float[1,6,6] h, float[1,1,4,4] o",
       "float[1,3,4,4] y, float[1,6,6] z, float[1,1,4,4] w", "y = Neg(x) z = Neg(h) w = Neg(o)");
  for (const auto& [words, why] : std::vector<std::pair<std::string, std::string>>{
           {"yy: argmax", "the model has no output \"yy\"; its outputs are \"y\", \"z\", \"w\""},
           {"argmax", "name the output"},
           {"y:", "what becomes of it?"},
           {"y: u8", "what becomes of it?"},
           {"y: argmin", "did you mean \"argmax\"?"},
           {"y: argmax softmax", "there is one answer"},
           {"y: argmax argmax", "is there twice"},
           {"y: topk", "there are argmax"},
           {"y: topk=0", "from 1 to"},
           {"y: topk=4", "topk=4 of 3"},
           {"y: topk=2.5", "is no whole number"},
           {"y: argmax axis=4", "axis=4"},
           {"y: argmax score=0.5", "goes with nms"},
           {"y: softmax u8", "goes with argmax and threshold"},
           {"y: argmax resize=input", "gives bytes: u8"},
           {"y: u8 argmax resize=output", "there are input"},
           {"y: u8 threshold=0.5", "there are 3: argmax"},
           {"w: u8 argmax resize=input", "give threshold="},
           {"y: threshold=0.5", "gives bytes: u8"},
           {"y: nms", "is no head of a detector"},
           {"z: nms", "Give format=yolov8, yolov5 or ssd"},
           {"z: nms iou=2", "is no number from 0 to 1"},
           {"z: nms format=yolov9", "there are yolov8, yolov5, ssd"},
           {"z: nms scores=q", "no such output"},
           {"z: nms format=yolov8 classes=9", "give classes="},
           {"z: nms format=yolov8", "in which picture"}})
    expect({"compile", path("m.onnx"), "-o", path("net"), "--post", words}, 2, why);
  expect({"compile", path("m.onnx"), "-o", path("net"), "--post", "y: argmax", "--post", "y: softmax"}, 2,
         "named twice");
}

}  // namespace
}  // namespace sinter
