// --pre and the words of --image: what they accept, refuse and come to, on all commands.
#include <gtest/gtest.h>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#include "driver/frame_words.h"
#include "driver/options.h"
#include "input_file.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

class Frames : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  void write(const std::string& name, const Tensor& t) { write_input(path(name), t); }
  static Tensor bytes(std::vector<int64_t> shape, const std::vector<int>& values) {
    Tensor t(DType::kU8, std::move(shape));
    for (size_t i = 0; i < values.size(); ++i) t.set_integer(static_cast<int64_t>(i), values[i]);
    return t;
  }
  TemporaryFolder folder_;
};

TEST_F(Frames, AFrameIsTheInput) {
  save_text("g (float[1,3,1,2] x) => (float[1,3,1,2] y) { y = Neg(x) }", path("m.onnx"));
  write("f.npy", bytes({1, 8}, {1, 2, 3, 4, 5, 6, 99, 99}));
  write("array.npy", bytes({1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  const std::string m = path("m.onnx"), words = "x: u8 hwc bgr 2x1 stride=8 scale=2 mean=1,0,0";
  // Red, green and blue planes: 3*2-1, 6*2-1; 2*2, 5*2; 1*2, 4*2.
  const std::string want = "y float32[1,3,1,2]: -5 -11 -4 -10 -2 -8";
  expect({"run", m, "--pre", words, "--in", path("f.npy")}, 0, want);
  expect({"run", m, "--pre", words, "--in", path("array.npy")}, 0, want);  // as arrays have it
  expect({"run", m, "--pre", "u8 bgr 2x1 scale=2 mean=1,0,0", "--in", "x=" + path("array.npy")}, 0, want);
  expect({"compile", m, "--pre", words, "-o", path("net")}, 0, "m: ");
  EXPECT_NE(contents(path("net/m.cpp")).find("--pre \"x: u8 hwc bgr 2x1 stride=8"), std::string::npos);
  const std::string header = contents(path("net/m.h"));
  EXPECT_NE(header.find("const uint8_t* x;"), std::string::npos);
  EXPECT_NE(header.find("a frame of 2x1 pixels, bgr (blue, green, red); 8 bytes from row to row, 8 in all"),
            std::string::npos)
      << header;
  expect({"run", "--bundle", path("net"), "--in", path("array.npy")}, 0, want);
  expect({"run", m, "--pre", words, "--in", path("m.onnx")}, 2, "");
  expect({"verify", m, "--pre", words}, 0, "1 outputs as expected");
  expect({"verify", m, "--pre", words, "--in", path("array.npy")}, 0, "1 outputs as expected");
  expect({"inspect", m, "--pre", words}, 0, "input  \"x\" uint8[1,8]");
  expect({"bench", m, "--pre", words, "--repeat", "2"}, 0, "min ");
  write("wide.npy", bytes({1, 9}, {}));
  expect({"run", m, "--pre", words, "--in", path("wide.npy")}, 2, "the input \"x\" takes uint8[1,8]");
}

TEST_F(Frames, PicturesBecomeFrames) {
  const unsigned char pixels[] = {255, 0, 0, 0, 0, 102};  // 2 x 1: red, then blue
  ASSERT_TRUE(stbi_write_png(path("p.png").c_str(), 2, 1, 3, pixels, 6));
  save_text("g (float[1,3,1,2] x) => (float[1,3,1,2] y) { y = Identity(x) }", path("m.onnx"));
  const std::string m = path("m.onnx"), in = path("p.png"), want = ": 255 0 0 0 0 102";
  // Each format, and each of the ways to say it.
  expect({"run", m, "--pre", "u8 rgb 2x1", "--in", in}, 0, want);
  expect({"run", m, "--pre", "u8 bgr 2x1", "--image", in}, 0, want);
  expect({"run", m, "--image", "u8 rgba 2x1", "--in", in}, 0, want);
  expect({"run", m, "--pre", "u8 bgra 2x1", "--in", in}, 0, want);
  expect({"run", m, "--pre", "u8 yuyv 2x1 full", "--in", in}, 0, "y float32[1,3,1,2]: ");
  expect({"run", m, "--pre", "gray 2x1", "--in", in}, 0, ": 76 12 76 12 76 12");
  expect({"verify", m, "--pre", "u8 rgb 2x1", "--image", in}, 0, "1 outputs as expected");
  // The picture is brought to the frame's size first.
  expect({"run", m, "--pre", "u8 rgb 4x2 resize=crop", "--in", in}, 0, "y float32[1,3,1,2]: 223 32 ");
  expect({"run", m, "--pre", "u8 rgb 2x1", "--in", in, "--image", "x: scale=2"}, 2, "--pre says all");
  // What the model leaves free is the frame's; of types, all that hold pixels.
  save_text("g (float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Identity(x) }", path("free.onnx"));
  expect({"run", path("free.onnx"), "--pre", "u8 rgb 2x1", "--in", in}, 0, "y float32[1,3,1,2]" + want);
  expect({"run", path("free.onnx"), "--pre", "u8 rgb 2x1", "--dim", "W=4", "--in", in}, 0,
         "y float32[1,3,1,4]");
  for (const char* type : {"uint8", "float16", "double"}) {
    save_text(fmt::format("g ({0}[1,3,1,2] x) => ({0}[1,3,1,2] y) {{ y = Identity(x) }}", type),
              path("t.onnx"));
    expect({"run", path("t.onnx"), "--pre", "u8 rgb 2x1", "--in", in}, 0, want);
  }
  save_text("g (int8[1,2,2,3] x) => (int8[1,2,2,3] y) { y = Identity(x) }", path("nhwc.onnx"));
  expect({"run", path("nhwc.onnx"), "--pre", "u8 rgb 2x1 mean=128", "--in", in}, 0,
         ": 127 -128 -128 -128 -128 -26 127 -128 -128 -128 -128 -26");
}

// A convolution takes the rows as they are made, and computes what it does from the whole picture.
TEST_F(Frames, NoPictureOfFloats) {
  save_text(
      "g (float[1,3,64,96] x) => (float[1,8,32,48] y) <float[8,3,3,3] w = {" +
          [] {
            std::string s;
            for (int i = 0; i < 216; ++i) s += fmt::format("{}{}", i ? "," : "", (i * 7 % 13) - 6);
            return s;
          }() +
          "}> { y = Conv<strides = [2,2], pads = [1,1,1,1]>(x, w) }",
      path("m.onnx"));
  const std::string m = path("m.onnx"),
                    words = "u8 bgr 128x96 stride=390 resize=letterbox pad=114 scale=1/255";
  expect({"verify", m, "--pre", words}, 0, "1 outputs as expected");
  expect({"verify", m, "--pre", words, "--threads", "3"}, 0, "1 outputs as expected");
  expect({"compile", m, "--pre", words, "-o", path("net")}, 0, "m: ");
  const std::string map = contents(path("net/m.map"));
  const size_t at = map.find("\"arena_bytes\": ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::stoll(map.substr(at + 15)), 3 * 64 * 96 * 4);  // with the result, 49152
}

TEST_F(Frames, WordsThatAreRefused) {
  save_text("g (float[1,3,4,4] x, float[5] z) => (float[1,3,4,4] y, float[5] v) { y = Neg(x) v = Neg(z) }",
            path("m.onnx"));
  save_text(
      "g (float[1,1,4,4] a, float[2,3,4,4] b) => (float[1,1,4,4] y, float[2,3,4,4] v) { y = Neg(a) v = "
      "Neg(b) }",
      path("two.onnx"));
  const auto refused = [&](const char* model, const std::string& words, const std::string& why) {
    expect({"compile", path(model), "-o", path("net"), "--pre", words}, 2, why);
  };
  for (const auto& [words, why] : std::vector<std::pair<std::string, std::string>>{
           {"y: u8 rgb 4x4", "the model has no input \"y\"; its inputs are \"x\", \"z\""},
           {"z: u8 rgb 4x4", "takes no picture"},
           {"x: u8 4x4", "its format is missing: rgb, bgr"},
           {"x: u8 rgb", "its size is missing"},
           {"x: rgb bgr 4x4", "\"rgb\" and \"bgr\": there is one format"},
           {"x: rgb rgb 4x4", "\"rgb\" is there twice"},
           {"x: rgb 4x4 8x8", "there is one size"},
           {"x: rgb 4x4 scale=1 scale=2", "there is one scale"},
           {"x: rgbb 4x4", "did you mean \"rgb\"?"},
           {"x: rgb 4x4 strid=12", "did you mean \"stride=\"?"},
           {"x: rgb 4x4 stride=11", "4 pixels of rgb take 12 bytes"},
           {"x: rgb 4x4 stride=-1", "is no number"},
           {"x: rgb 0x4", "is no number from 1 to"},
           {"x: nv12 3x4", "give an even width"},
           {"x: nv12 4x3", "give an even height"},
           {"x: yuyv 3x4", "give an even width"},
           {"x: yuyv 4x4 stride=7", "take 8 bytes"},
           {"x: nv12 hwc 4x4", "nv12 is no hwc"},
           {"x: rgb 4x4 bt709", "is about luma and chroma"},
           {"x: nv12 4x4 bt709 bt601", "there is one matrix"},
           {"x: rgb 4x4 resize=fill", "there are stretch, crop, letterbox"},
           {"x: rgb 4x4 pad=114", "resize=letterbox"},
           {"x: rgb 4x4 mean=1,2", "one number, or one for each of three channels"},
           {"x: rgb 4x4 mean=1,,2", "is no number"},
           {"x: rgb 4x4 std=0", "it divides"},
           {"x: rgb 4x4 scale=1/0", "is no number"},
           {"x: rgb 4x4 scale=0", "all pixels would be the same"},
           {"x: rgb 4x4 order=gray", "order=gray doesn't go with the input \"x\" of 3 channel(s)"},
           {"x: chw rgb 4x4", "hwc"},
           {"x: f32 rgb 4x4", "a frame has bytes"}})
    refused("m.onnx", words, why);
  refused("two.onnx", "rgb 4x4", "name its input");
  refused("two.onnx", "a: rgb 4x4 mean=1,2,3", "3 numbers in mean=, the input \"a\" has 1 channel(s)");
  refused("two.onnx", "b: rgb 4x4", "takes 2 pictures at once");
  expect({"compile", path("m.onnx"), "-o", path("net"), "--pre", "x: rgb 4x4", "--pre", "x: bgr 4x4"}, 2,
         "named twice");
  expect({"compile", path("m.onnx"), "-o", path("net"), "--only", "v", "--pre", "x: rgb 4x4"}, 2,
         "no output that is wanted");
}

// What a bundle keeps of the words says the same.
TEST(FrameWords, TheirTextIsReadAgain) {
  for (const char* words :
       {"u8 hwc bgr 640x480 stride=1920 resize=letterbox pad=114 scale=1/255 mean=0.5,0.25,0 std=0.2",
        "nv12 64x48 bt709 full resize=crop order=bgr", "gray 7x5 stride=9"}) {
    const FrameWords w = parse_frame_words("--pre", words, {});
    const FrameWords again = parse_frame_words("--pre", text(w), {});
    EXPECT_EQ(text(again), text(w));
    EXPECT_EQ(again.scale, w.scale);
    EXPECT_EQ(again.mean, w.mean);
    EXPECT_EQ(again.stride, w.stride);
    EXPECT_EQ(again.bt709, w.bt709);
  }
}

}  // namespace
}  // namespace sinter
