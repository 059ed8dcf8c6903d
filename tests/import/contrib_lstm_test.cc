// DynamicQuantizeLSTM against what ONNX Runtime 1.32.0 gives: two directions, two sequences, scales for each
// gate.
#include "passes/proof.h"

namespace sinter {
namespace {

const char* kWeights =
    "W = Constant<value = uint8[2,2,8] {207, 21, 45, 60, 46, 205, 222, 149, 10, 24, 85, 110, 159, 122, 67, "
    "40, 177, 188, 8, 29, 115, 100, 227, 132, 107, 110, 170, 150, 44, 188, 193, 244}>()  "
    "R = Constant<value = uint8[2,2,8] {201, 72, 81, 166, 166, 178, 222, 74, 240, 0, 19, 249, 241, 76, 35, "
    "80, 11, 228, 169, 149, 62, 120, 48, 197, 121, 7, 65, 180, 133, 95, 64, 23}>()  "
    "B = Constant<value = float[2,16] {0.075722, -0.203417, -0.091449, 0.070958, 0.11564, -0.215801, "
    "-0.049804, 0.032802, -0.060922, 0.159064, -0.119123, 0.035453, -0.104841, 0.140596, -0.002165, "
    "-0.037225, -0.171818, 0.168183, 0.075278, 0.075356, 0.113788, 0.034923, -0.063925, -0.080024, -0.08002, "
    "0.137007, -0.146038, -0.059637, -0.032124, 0.022462, 0.057535, -0.12491}>()  "
    "ws = Constant<value = float[2,8] {0.008605, 0.011315, 0.004072, 0.008301, 0.004982, 0.009418, 0.009222, "
    "0.004187, 0.010299, 0.008577, 0.008828, 0.010201, 0.006286, 0.009587, 0.010785, 0.003023}>()  "
    "wz = Constant<value = uint8[2,8] {131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, "
    "131, 131}>()  "
    "rs = Constant<value = float[2,8] {0.010498, 0.005939, 0.006797, 0.003463, 0.008984, 0.00492, 0.010711, "
    "0.004754, 0.007618, 0.005997, 0.008129, 0.003966, 0.003803, 0.009469, 0.009522, 0.00767}>()  "
    "rz = Constant<value = uint8[2,8] {122, 122, 122, 122, 122, 122, 122, 122, 122, 122, 122, 122, 122, 122, "
    "122, 122}>()  ";

std::unique_ptr<Graph> graph_of_lstm() {
  return graph_of(
      std::string("<ir_version: 8, opset_import: [\"\" : 18, \"com.microsoft\" : 1]> g (float[3,2,2] x, "
                  "float[2,2,2] h0, float[2,2,2] c0) => (float[3,2,2,2] y, float[2,2,2] h, float[2,2,2] "
                  "c) { ") +
      kWeights +
      "y, h, c = com.microsoft.DynamicQuantizeLSTM<hidden_size = 2, direction = \"bidirectional\">(x, W, R, "
      "B, , h0, c0, , ws, wz, rs, rz) }");
}

Tensor floats(std::vector<float> v, std::vector<int64_t> shape) { return Tensor::of(v, std::move(shape)); }

// A state that is rounded to another step moves a result by a weight's share of a step.
TEST(ContribLstm, AsOnnxRuntime) {
  const auto g = graph_of_lstm();
  const std::vector<Tensor> in{
      floats({-1.73, -0.0044, 1.2136, 0.7571, 0.2157, -0.3172, 0.2932, -0.2433, 0.8172, -0.7944, 0.1342,
              -0.1108},
             {3, 2, 2}),
      floats({0.5434, 0.2246, 2.55, 1.4987, 1.4967, -2.0395, -0.3403, -0.6086}, {2, 2, 2}),
      floats({0.5327, -2.279, 1.1745, 1.067, -1.3021, -0.9785, -0.8012, 0.0433}, {2, 2, 2}),
  };
  const std::vector<Tensor> want{
      floats({0.04301,  -0.516166, 0.070535, 0.377341, -0.312338, -0.107679, 0.117895,  -0.003688,
              0.178561, -0.134123, 0.302512, 0.211505, -0.081436, -0.028724, 0.00323,   -0.074221,
              0.290913, -0.016422, 0.264508, 0.101683, -0.285307, 0.092807,  -0.063306, 0.014959},
             {3, 2, 2, 2}),
      floats({0.290913, -0.016422, 0.264508, 0.101683, -0.312338, -0.107679, 0.117895, -0.003688}, {2, 2, 2}),
      floats({0.839194, -0.037939, 0.844069, 0.188437, -0.381946, -0.126107, 0.507687, -0.014932}, {2, 2, 2}),
  };
  const std::vector<Tensor> got = evaluate(*g, in);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(difference_of(got[i], want[i], 1e-5), "") << "output " << i;
  const auto passed = g->clone();
  run_only(*passed, {"all"});
  const std::vector<Tensor> behind = evaluate(*passed, in);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(difference_of(behind[i], want[i], 1e-5), "") << "output " << i;
}

// Sequences that end early: their steps and states are 0 behind the end, their cell stays; the range of the
// inputs counts the steps that some sequence has, that of the states the sequences that go on.
TEST(ContribLstm, SequencesOfUnequalLengthsAsOnnxRuntime) {
  const auto g = graph_of(
      std::string("<ir_version: 8, opset_import: [\"\" : 18, \"com.microsoft\" : 1]> g (float[3,2,2] x, "
                  "float[2,2,2] h0, float[2,2,2] c0, int32[2] n) => (float[3,2,2,2] y, float[2,2,2] h, "
                  "float[2,2,2] c) { ") +
      kWeights +
      "y, h, c = com.microsoft.DynamicQuantizeLSTM<hidden_size = 2, direction = \"bidirectional\">(x, W, R, "
      "B, n, h0, c0, , ws, wz, rs, rz) }");
  const auto passed = g->clone();
  run_only(*passed, {"all"});
  const Tensor x = floats({-1.73, -0.0044, 1.2136, 0.7571, 0.2157, -0.3172, 0.2932, -0.2433, 4.086, -3.972,
                           0.671, -0.554},
                          {3, 2, 2}),
               h0 = floats({0.5434, 0.2246, 2.55, 1.4987, 1.4967, -2.0395, -0.3403, -0.6086}, {2, 2, 2}),
               c0 = floats({0.5327, -2.279, 1.1745, 1.067, -1.3021, -0.9785, -0.8012, 0.0433}, {2, 2, 2});
  const struct {
    std::vector<int64_t> lengths;
    std::vector<float> y, h, c;
  } cases[] = {
      {{2, 1},
       {0.04301,  -0.516166, 0.070535, 0.377341, -0.464843, 0.068665, 0.073325, 0.053555,
        0.178561, -0.134123, 0,        0,        -0.386567, 0.12079,  0,        0,
        0,        0,         0,        0,        0,         0,        0,        0},
       {0.178561, -0.134123, 0.070535, 0.377341, -0.464843, 0.068665, 0.073325, 0.053555},
       {0.350647, -0.30523, 1.99329, 0.783648, -0.630156, 0.080141, 0.274262, 0.250367}},
      {{1, 3},
       {0.043236, -0.516059, 0.070834, 0.377929, -0.570689, 0.090564, 0.121767,  -0.004503,
        0,        0,         0.303366, 0.212035, 0,         0,        0.018366,  -0.084434,
        0,        0,         0.302082, 0.148817, 0,         0,        -0.010679, -0.021121},
       {0.043236, -0.516059, 0.302082, 0.148817, -0.570689, 0.090564, 0.121767, -0.004503},
       {0.0828, -0.78459, 1.20715, 0.314658, -0.679279, 0.110911, 0.517599, -0.018088}},
      {{0, 2},
       {0, 0, 0.070535,  0.377341, 0, 0, 0.106379, 0.006173, 0, 0, 0.302732, 0.211519,
        0, 0, -0.044268, 0.002389, 0, 0, 0,        0,        0, 0, 0,        0},
       {0, 0, 0.302732, 0.211519, 0, 0, 0.106379, 0.006173},
       {0, 0, 1.18029, 0.414872, 0, 0, 0.472063, 0.024757}},
  };
  for (const auto& k : cases) {
    const std::vector<Tensor> in{x, h0, c0, Tensor::of(k.lengths).converted(DType::kI32)},
        want{floats(k.y, {3, 2, 2, 2}), floats(k.h, {2, 2, 2}), floats(k.c, {2, 2, 2})};
    for (const Graph* each : {g.get(), passed.get()}) {
      const std::vector<Tensor> got = evaluate(*each, in);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(difference_of(got[i], want[i], 1e-5), "") << "output " << i << " lengths " << k.lengths[0];
    }
  }
}

TEST(ContribLstm, Refusals) {
  const auto why = [](const char* node) {
    return refusal_of([&] {
      graph_of(
          std::string(
              "<ir_version: 8, opset_import: [\"\" : 18, \"com.microsoft\" : 1]> g (float[3,2,2] x, int32[2] "
              "n) => (float[3,2,2,2] y) { ") +
          kWeights + node + " }");
    });
  };
  EXPECT_NE(why("y = com.microsoft.DynamicQuantizeLSTM<hidden_size = 2, clip = 1.0, direction = "
                "\"bidirectional\">(x, W, R, B, n, , , , ws, wz, rs, rz)")
                .find("sequence_lens of more than one sequence are supported with Sigmoid gates"),
            std::string::npos);
  EXPECT_NE(
      why("y = com.microsoft.DynamicQuantizeLSTM<hidden_size = 2>(x, W, R, B)").find("4 inputs, not 12"),
      std::string::npos);
  EXPECT_NE(why("y = com.microsoft.DynamicQuantizeLSTM<hidden_size = 2>(x, B, R, B, , , , , ws, wz, rs, rz)")
                .find("W is not of bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
