// rows_to_bytes: the rows of a cache as bytes with a scale (--cache int8).
//
// The last axis of n floats becomes n + 4 bytes: each element in steps of the row's scale, a 127th of its
// greatest magnitude, and that scale as a float. A row in which something is infinite or NaN is NaN.
#include "ops/sequences/stored_rows.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace sinter {

Shape stored_shape(const TensorType& type) {
  Shape s = type.shape;
  if (type.dtype == DType::kI8 && !s.empty()) s.back() = s.back() - Dim(kScaleBytes);
  return s;
}

Tensor read_rows(const Tensor& t) {
  if (t.dtype() != DType::kI8) return t;
  std::vector<int64_t> shape = t.shape();
  const int64_t each = shape.back(), n = shape.back() -= kScaleBytes;
  Tensor out(DType::kF32, shape);
  for (int64_t r = 0; r * each < t.size(); ++r) {
    const int8_t* row = t.as<int8_t>() + r * each;
    float scale = 0;
    std::memcpy(&scale, row + n, sizeof scale);
    for (int64_t i = 0; i < n; ++i) out.as<float>()[r * n + i] = static_cast<float>(row[i]) * scale;
  }
  return out;
}

namespace {

void infer_rows(Inference& x) {
  x.require(x.dtype(0) == DType::kF32 && x.rank(0) > 0, "only for rows of float32");
  Shape s = x.shape(0);
  s.back() = s.back() + Dim(kScaleBytes);
  x.set(0, DType::kI8, s);
}

void eval_rows(Evaluation& e) {
  const Tensor& x = e.in[0];
  const int64_t n = x.shape().back();
  for (int64_t r = 0; r * (n + kScaleBytes) < e.out[0].size(); ++r) {
    const float* row = x.as<float>() + r * n;
    int8_t* to = e.out[0].as<int8_t>() + r * (n + kScaleBytes);
    float greatest = 0;
    bool finite = true;
    for (int64_t i = 0; i < n; ++i) {
      finite = finite && std::isfinite(row[i]);
      greatest = std::max(greatest, std::abs(row[i]));
    }
    const float scale = finite ? greatest / 127 : std::numeric_limits<float>::quiet_NaN();
    const float inverse = finite && greatest > 1e-36f ? 127 / greatest : 0;
    for (int64_t i = 0; i < n; ++i)
      to[i] = finite ? static_cast<int8_t>(std::nearbyint(row[i] * inverse)) : 0;
    std::memcpy(to + n, &scale, sizeof scale);
  }
}

}  // namespace

const std::vector<Op>& ops_stored_rows() {
  static const std::vector<Op> table = {
      {.name = "rows_to_bytes", .domain = "sinter", .infer = infer_rows, .eval = eval_rows}};
  return table;
}

}  // namespace sinter
