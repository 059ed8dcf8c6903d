// Steps of activations and weights.
#include "quantize/steps.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace sinter::quantize {
namespace {

TEST(Steps, RangesHoldZeroExactly) {
  struct Row {
    double lo, hi, scale;
    int zero;
  };
  for (const Row& r : {Row{0, 255, 1, 0}, Row{-255, 0, 1, 255}, Row{-1, 2, 3.0 / 255, 85},
                       Row{3, 5, 5.0 / 255, 0}, Row{-5, -3, 5.0 / 255, 255}, Row{0, 0, 1, 0}}) {
    const Steps s = steps_of(r.lo, r.hi);
    EXPECT_FLOAT_EQ(s.scale, static_cast<float>(r.scale)) << r.lo << ".." << r.hi;
    EXPECT_EQ(s.zero, r.zero) << r.lo << ".." << r.hi;
    EXPECT_EQ(quantised(0, s), s.zero);
  }
}

TEST(Steps, RoundToEvenAndSaturate) {
  const Steps s{0.5F, 10};
  EXPECT_EQ(quantised(0.25, s), 10);  // 0.5 steps
  EXPECT_EQ(quantised(0.75, s), 12);  // 1.5
  EXPECT_EQ(quantised(-1e9, s), 0);
  EXPECT_EQ(quantised(1e9, s), 255);
}

double squared_error(const std::vector<float>& values, const Steps& s) {
  double sum = 0;
  for (const float x : values) {
    const double e = (quantised(x, s) - s.zero) * double{s.scale} - x;
    sum += e * e;
  }
  return sum;
}

// One value far off: the range of least squared error gives it up.
TEST(Steps, LeastSquaresCutsOutliersOff) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 1);
  Tensor t(DType::kF32, {4096});
  std::vector<float> values;
  for (int64_t i = 0; i < t.size(); ++i) values.push_back(t.as<float>()[i] = normal(random));
  t.as<float>()[100] = values[100] = 40;
  Values v;
  v.add(t);
  EXPECT_EQ(v.hi(), 40);
  const std::vector<Estimate> all = estimates_of(v);
  ASSERT_GE(all.size(), 3u);
  EXPECT_EQ(all[0].name, "limits");
  EXPECT_EQ(all[1].name, "least squares");
  EXPECT_LT(squared_error(values, all[1].steps), squared_error(values, all[0].steps));
  EXPECT_LT(all[2].steps.scale * 255, 10);  // without the outermost 0.01 percent
}

TEST(Steps, NaNAndInfinityAreNoValues) {
  Values v;
  v.add(Tensor::of(std::vector<float>{1, NAN, INFINITY, -2, -INFINITY}, {5}));
  EXPECT_EQ(v.lo(), -2);
  EXPECT_EQ(v.hi(), 1);
  EXPECT_EQ(v.some().size(), 2u);
  EXPECT_EQ(estimates_of(Values()).size(), 1u);
}

TEST(ByteWeights, EachChannelHasItsScale) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  for (const int axis : {-1, 0, 1, 2}) {
    Tensor w(DType::kF32, {3, 4, 5});
    for (int64_t i = 0; i < w.size(); ++i) {
      const int64_t channel = axis == 0 ? i / 20 : axis == 1 ? i / 5 % 4 : i % 5;
      w.as<float>()[i] = normal(random) * (axis < 0 ? 1.0F : std::pow(10.0F, static_cast<float>(channel)));
    }
    const ByteWeights q = byte_weights(w, axis);
    EXPECT_EQ(q.scales.size(), axis < 0 ? 1 : w.dim(axis));
    for (int64_t i = 0; i < w.size(); ++i) {
      const int64_t channel = axis < 0 ? 0 : axis == 0 ? i / 20 : axis == 1 ? i / 5 % 4 : i % 5;
      const double scale = q.scales.real(channel);
      EXPECT_NEAR(q.values.real(i), static_cast<double>(q.bytes.integer(i)) * scale, 1e-4 * scale);
      // What isn't cut off is within half a step.
      if (std::abs(q.bytes.integer(i)) < 127) {
        EXPECT_LE(std::abs(q.values.real(i) - w.real(i)), 0.501 * scale);
      }
    }
  }
  const ByteWeights zeros = byte_weights(Tensor(DType::kF32, {2, 2}), 0);
  EXPECT_EQ(zeros.values.reals(), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_GT(zeros.scales.real(0), 0);
}

}  // namespace
}  // namespace sinter::quantize
