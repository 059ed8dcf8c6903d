#include "quantize/steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinter::quantize {
namespace {

double squared_error(const std::vector<float>& values, const Steps& s) {
  double sum = 0;
  for (const float x : values) {
    const double e = (quantised(x, s) - s.zero) * double{s.scale} - x;
    sum += e * e;
  }
  return sum;
}

// Of ranges that share the limits' proportions, the one whose steps lose least.
Steps least_squares(const Values& v) {
  Steps best = steps_of(v.lo(), v.hi());
  double least = squared_error(v.some(), best);
  for (int k = 1; k < 50; ++k) {
    const double part = 1 - 0.015 * k;
    for (const Steps& s : {steps_of(v.lo() * part, v.hi() * part), steps_of(v.lo(), v.hi() * part),
                           steps_of(v.lo() * part, v.hi())})
      if (const double e = squared_error(v.some(), s); e < least) least = e, best = s;
  }
  return best;
}

// What 1 - 2 * outside of the values lie in.
Steps without_tails(std::vector<float> sorted, double outside) {
  const auto n = static_cast<double>(sorted.size());
  const auto at = [&](double part) { return double{sorted[static_cast<size_t>(part * (n - 1))]}; };
  return steps_of(at(outside), at(1 - outside));
}

// The scale that loses least of these weights, found from the greatest downwards.
float scale_of(const std::vector<double>& w) {
  double most = 0;
  for (const double x : w) most = std::max(most, std::abs(x));
  if (!(most > 0)) return 1;
  double best = most / 127, least = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 24; ++k) {
    const double scale = most * (1 - 0.02 * k) / 127;
    double sum = 0;
    for (const double x : w) {
      const double e = std::clamp(std::nearbyint(x / scale), -127.0, 127.0) * scale - x;
      sum += e * e;
    }
    if (sum < least) least = sum, best = scale;
  }
  return static_cast<float>(std::max(best, double{std::numeric_limits<float>::min()}));
}

}  // namespace

Steps steps_of(double lo, double hi) {
  lo = std::min(lo, 0.0), hi = std::max(hi, 0.0);
  if (!(hi - lo > 1e-30)) return {1, 0};
  Steps s;
  s.scale = static_cast<float>((hi - lo) / 255);
  s.zero = static_cast<int>(std::clamp(std::nearbyint(-lo / s.scale), 0.0, 255.0));
  return s;
}

int quantised(double x, const Steps& s) {
  return static_cast<int>(std::clamp(std::nearbyint(x / s.scale) + s.zero, 0.0, 255.0));
}

void Values::add(const Tensor& t) {
  const int64_t every = std::max<int64_t>(1, t.size() / kOfSample);
  for (int64_t i = 0; i < t.size(); ++i) {
    const float x = t.as<float>()[i];
    if (!std::isfinite(x)) continue;
    lo_ = std::min(lo_, double{x}), hi_ = std::max(hi_, double{x});
    if (i % every == 0) some_.push_back(x);
  }
}

std::vector<Estimate> estimates_of(const Values& v) {
  std::vector<Estimate> all = {{"limits", steps_of(v.lo(), v.hi())}};
  if (v.some().empty()) return all;
  std::vector<float> sorted = v.some();
  std::sort(sorted.begin(), sorted.end());
  all.push_back({"least squares", least_squares(v)});
  all.push_back({"99.98 percent", without_tails(sorted, 1e-4)});
  all.push_back({"99.8 percent", without_tails(sorted, 1e-3)});
  std::vector<Estimate> different;
  for (const Estimate& e : all)
    if (std::none_of(different.begin(), different.end(), [&](const Estimate& d) {
          return d.steps.scale == e.steps.scale && d.steps.zero == e.steps.zero;
        }))
      different.push_back(e);
  return different;
}

ByteWeights byte_weights(const Tensor& w, int axis) {
  const int64_t channels = axis < 0 ? 1 : w.dim(axis);
  int64_t inner = 1;
  for (int64_t d = axis + 1; axis >= 0 && d < w.rank(); ++d) inner *= w.dim(d);
  const auto channel_of = [&](int64_t i) { return axis < 0 ? 0 : i / inner % channels; };
  std::vector<std::vector<double>> of(static_cast<size_t>(channels));
  for (int64_t i = 0; i < w.size(); ++i) of[static_cast<size_t>(channel_of(i))].push_back(w.real(i));
  ByteWeights q;
  q.bytes = Tensor(DType::kI8, w.shape());
  q.values = Tensor(DType::kF32, w.shape());
  q.scales = axis < 0 ? Tensor::scalar(1.0F) : Tensor(DType::kF32, {channels});
  for (int64_t c = 0; c < channels; ++c) q.scales.set_real(c, scale_of(of[static_cast<size_t>(c)]));
  for (int64_t i = 0; i < w.size(); ++i) {
    const float scale = q.scales.as<float>()[channel_of(i)];
    const double n = std::clamp(std::nearbyint(w.real(i) / scale), -127.0, 127.0);
    q.bytes.set_integer(i, static_cast<int64_t>(n));
    q.values.set_real(i, n * scale);
  }
  return q;
}

}  // namespace sinter::quantize
