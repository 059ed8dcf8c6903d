// DFT, STFT, windows, MelWeightMatrix: against the definition and values by hand, shapes and refusals.
#include <complex>
#include <random>

#include "ops/run_node.h"

namespace sinter::node_test {
namespace {

using Line = std::vector<std::complex<double>>;

Line by_definition(const Line& x, size_t n, double sign) {
  Line y(n), roots(n);
  for (size_t k = 0; k < n; ++k)
    roots[k] = std::polar(1.0, sign * 2 * std::acos(-1.0) * static_cast<double>(k) / static_cast<double>(n));
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < std::min(n, x.size()); ++i) y[k] += x[i] * roots[i * k % n];
  return y;
}
Tensor complex_tensor(const Line& line, std::vector<int64_t> shape) {
  Tensor t(DType::kF64, std::move(shape));
  for (size_t i = 0; i < line.size(); ++i) {
    t.set_real(static_cast<int64_t>(2 * i), line[i].real());
    t.set_real(static_cast<int64_t>(2 * i + 1), line[i].imag());
  }
  return t;
}
Line noise(size_t n, bool real, unsigned seed) {
  std::mt19937 random(seed);
  Line line(n);
  for (auto& v : line)
    v = {static_cast<double>(random() % 2001) / 1000 - 1,
         real ? 0 : static_cast<double>(random() % 2001) / 1000 - 1};
  return line;
}

TEST(DFT, EveryLengthByTheDefinition) {
  std::vector<int64_t> lengths = {97, 211, 400, 512, 768, 1000, 1009, 2018, 2310};
  for (int64_t n = 1; n <= 70; ++n) lengths.push_back(n);
  for (int64_t n : lengths)
    for (bool inverse : {false, true})
      for (bool real : {false, true}) {
        const Line x = noise(static_cast<size_t>(n), real, static_cast<unsigned>(n));
        Line want = by_definition(x, x.size(), inverse ? 1 : -1);
        if (inverse)
          for (auto& v : want) v /= static_cast<double>(n);
        Tensor given = complex_tensor(x, {1, n, 2});
        if (real) {
          given = Tensor(DType::kF64, {1, n, 1});
          for (int64_t i = 0; i < n; ++i) given.set_real(i, x[static_cast<size_t>(i)].real());
        }
        expect_tensor(run("DFT", {given}, {{"inverse", int64_t{inverse}}}), complex_tensor(want, {1, n, 2}),
                      1e-11, fmt::format("{} {}", n, real));
      }
}

// Numbers of float32 lose nothing on the way through a chirp, whose transforms are of doubles.
TEST(DFT, ComplexFloatsOfAPrimeLength) {
  const int64_t n = 1009;
  const Line x = noise(static_cast<size_t>(n), false, 3);
  expect_tensor(run("DFT", {complex_tensor(x, {1, n, 2}).converted(DType::kF32)}),
                complex_tensor(by_definition(x, x.size(), -1), {1, n, 2}).converted(DType::kF32), 2e-5);
}

TEST(DFT, HalvesCutsFillsAndAxes) {
  for (int64_t n : {8, 9}) {
    const Line x = noise(static_cast<size_t>(n), true, 5);
    Tensor real(DType::kF64, {n, 1});
    for (int64_t i = 0; i < n; ++i) real.set_real(i, x[static_cast<size_t>(i)].real());
    const Tensor half = run("DFT", {real}, {{"onesided", int64_t{1}}});
    Line want = by_definition(x, x.size(), -1);
    want.resize(static_cast<size_t>(n / 2 + 1));
    expect_tensor(half, complex_tensor(want, {n / 2 + 1, 2}), 1e-11);
    expect_tensor(run("DFT", {half, ints({static_cast<double>(n)}, {})},
                      {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}),
                  real, 1e-11);
    for (int64_t length : {5, 12})
      expect_tensor(run("DFT", {real, ints({static_cast<double>(length)}, {})}),
                    complex_tensor(by_definition(x, static_cast<size_t>(length), -1), {length, 2}), 1e-11);
  }
  const Tensor columns = floats({1, 2, 3, 4, 5, 6}, {3, 2, 1});
  expect_tensor(
      run("DFT", {columns, {}, ints({0}, {})}),
      floats({9, 0, 12, 0, -3, 1.7320508, -3, 1.7320508, -3, -1.7320508, -3, -1.7320508}, {3, 2, 2}));
}

TEST(DFT, TypesAndRefusals) {
  const auto dft = [](Shape x, const Attrs& a = {}, std::vector<Tensor> data = {}) {
    std::vector<TensorType> types = {{DType::kF32, x}};
    for (size_t i = 1; i < data.size(); ++i) types.push_back(type_of(data[i]));
    return inferred("DFT", types, a, data);
  };
  const std::string label = "\"node\" (DFT): ";
  EXPECT_EQ(dft({3, 9, 1}), "float32[3,9,2]");
  EXPECT_EQ(dft({3, 9, 1}, {{"onesided", int64_t{1}}}), "float32[3,5,2]");
  EXPECT_EQ(dft({3, 5, 2}, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}), "float32[3,8,1]");
  EXPECT_EQ(dft({3, 9, 3}), label + "the last axis is 3, not 1 (real) or 2 (complex)");
  EXPECT_EQ(dft({3, 9, 2}, {{"onesided", int64_t{1}}}), label + "onesided needs a real signal");
  EXPECT_EQ(dft({1}), label + "a signal of shape [1]");
  EXPECT_EQ(dft({3, 0, 2}), label + "a transform of length 0");
  EXPECT_EQ(dft({3, 9, 2}, {}, {{}, ints({0}, {})}), label + "its dft_length is 0");
  EXPECT_EQ(dft({3, 9, 2}, {}, {{}, {}, ints({2}, {})}),
            label + "its axis is that of real and imaginary parts");
  EXPECT_EQ(dft({3, 9, 2}, {}, {{}, {}, ints({3}, {})}), label + "axis 3 out of range for [3,9,2]");
}

TEST(STFT, FramesTimesTheWindow) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8, 1}), step = ints({3}, {});
  expect_tensor(run("STFT", {x, step, floats({1, 1, 0, 0})}),
                floats({3, 0, 1, -2, -1, 0, 9, 0, 4, -5, -1, 0}, {1, 2, 3, 2}));
  expect_tensor(run("STFT", {x, step, {}, ints({2}, {})}, {{"onesided", int64_t{0}}}),
                floats({3, 0, -1, 0, 9, 0, -1, 0, 15, 0, -1, 0}, {1, 3, 2, 2}));
  expect_tensor(run("STFT", {floats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8}), step, floats({1, 1, 0, 0})}),
                floats({3, 0, 1, -2, -1, 0, 9, 0, 4, -5, -1, 0}, {1, 2, 3, 2}));  // without the axis of parts
  const auto stft = [](Shape x, std::vector<Tensor> data) {
    std::vector<TensorType> types = {{DType::kF32, x}};
    for (size_t i = 1; i < data.size(); ++i) types.push_back(type_of(data[i]));
    return inferred("STFT", types, {}, data);
  };
  const std::string label = "\"node\" (STFT): ";
  EXPECT_EQ(stft({2, 100, 1}, {{}, ints({10}, {}), {}, ints({16}, {})}), "float32[2,9,9,2]");
  EXPECT_EQ(stft({2, 100}, {{}, ints({10}, {}), {}, ints({16}, {})}), "float32[2,9,9,2]");
  EXPECT_EQ(stft({2, 100, 1}, {{}, ints({0}, {}), {}, ints({16}, {})}), label + "its frame_step is 0");
  EXPECT_EQ(stft({2, 100, 2}, {{}, ints({1}, {}), {}, ints({16}, {})}),
            label + "onesided needs a real signal");
  EXPECT_EQ(stft({2, 100, 1}, {{}, ints({1}, {}), floats({1, 1}), ints({16}, {})}),
            label + "frame_length and window: 16 is not 2");
}

TEST(Windows, ByHand) {
  const auto window = [](const char* op, double n, bool periodic, int64_t type = 1) {
    return run(op, {ints({n}, {})}, {{"periodic", int64_t{periodic}}, {"output_datatype", type}});
  };
  expect_tensor(window("HannWindow", 4, true), floats({0, .5, 1, .5}));
  expect_tensor(window("HannWindow", 5, false), floats({0, .5, 1, .5, 0}));
  expect_tensor(window("HammingWindow", 4, true), floats({4.0 / 46, 25.0 / 46, 1, 25.0 / 46}));
  expect_tensor(window("BlackmanWindow", 4, true), floats({0, .34, 1, .34}));
  expect_tensor(window("HannWindow", 4, true, 11), tensor(DType::kF64, {0, .5, 1, .5}), 1e-15);
  expect_tensor(window("HannWindow", 0, true), floats({}));
  EXPECT_EQ(refusal("HannWindow", {ints({-1}, {})}), "\"node\" (HannWindow): its size is -1");
  EXPECT_EQ(refusal("HannWindow", {ints({4}, {})}, {{"output_datatype", int64_t{8}}}),
            "\"node\" (HannWindow): its output_datatype 8 is not a number's");
}

TEST(MelWeightMatrix, Triangles) {
  const auto mel = [](double mels, double length, double rate, double low, double high) {
    return std::vector<Tensor>{ints({mels}, {}), ints({length}, {}), ints({rate}, {}), floats({low}, {}),
                               floats({high}, {})};
  };
  const Tensor m = run("MelWeightMatrix", mel(2, 16, 8192, 0, 4096));
  EXPECT_EQ(m.shape(), (std::vector<int64_t>{9, 2}));
  for (int64_t c = 0; c < 2; ++c) {
    double top = 0;
    for (int64_t r = 0; r < 9; ++r) top = std::max(top, m.real(r * 2 + c));
    EXPECT_EQ(top, 1);
  }
  for (const auto& [low, high] : {std::pair{0.0, 1e9}, {-1e4, 100.0}, {4000.0, 10.0}, {0.0, double{kNaN}}})
    EXPECT_EQ(
        refusal("MelWeightMatrix", mel(4, 16, 8192, low, high)),
        "\"node\" (MelWeightMatrix): its edges are not frequencies of the transform, in ascending order");
}

}  // namespace
}  // namespace sinter::node_test
