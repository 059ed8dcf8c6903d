#include "driver/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "driver/inputs.h"
#include "ir/error.h"

namespace sinter {

Difference compare(const Tensor& got, const Tensor& want, const Tolerance& o, double scale) {
  Difference d;
  if (got.shape() != want.shape()) {
    d.shape = fmt::format("{} instead of {}", type_text(got), type_text(want));
    return d;
  }
  const double least = want.dtype() == DType::kF64 ? 0.0 : double{std::numeric_limits<float>::min()};
  double largest = scale;
  for (int64_t i = 0; i < want.size(); ++i)
    if (const double w = std::abs(want.real(i)); std::isfinite(w)) largest = std::max(largest, w);
  for (int64_t i = 0; i < want.size(); ++i) {
    const double g = got.real(i), w = want.real(i);
    double ratio = 0;
    if (std::isnan(g) || std::isnan(w) || std::isinf(g) || std::isinf(w))
      ratio = g == w || (std::isnan(g) && std::isnan(w)) ? 0 : HUGE_VAL;
    else if (const double tolerance = std::max(least, o.rtol * std::abs(w) + o.atol * largest);
             g != w && !is_float(want.dtype()))  // bytes are often quantised: a step at least
      ratio = size_of(want.dtype()) == 1 && want.dtype() != DType::kBool
                  ? std::abs(g - w) / std::max(1.0, tolerance)
                  : HUGE_VAL;
    else if (g != w)
      ratio = std::abs(g - w) / tolerance;
    if (ratio > 1) ++d.count;
    if (ratio > d.ratio) d.ratio = ratio, d.at = i, d.got = g, d.want = w;
  }
  return d;
}

namespace {

std::string index_text(int64_t at, const std::vector<int64_t>& shape) {
  std::string s;
  for (size_t d = shape.size(); d-- > 0;) {
    s = fmt::format("{}{}{}", at % shape[d], s.empty() ? "" : ",", s);
    at /= shape[d];
  }
  return "[" + s + "]";
}

}  // namespace

std::string text(const Difference& d, const std::vector<int64_t>& shape) {
  if (!d.shape.empty()) return d.shape;
  if (d.at < 0) return "equal";
  return fmt::format(
      "at {} {:.7g} instead of {:.7g}, {:.3g} times the tolerance; {} of {} elements are outside",
      index_text(d.at, shape), d.got, d.want, d.ratio, d.count,
      std::max<int64_t>(product(Shape(shape.begin(), shape.end())).value(), 1));
}

}  // namespace sinter
