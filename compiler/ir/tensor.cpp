#include "ir/tensor.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sinter/small_float.h"

namespace sinter {
namespace {

// Float to integer as ONNX Runtime on x86-64 leaves open and we fix: saturates, NaN becomes 0.
template <class T>
T saturate(double v) {
  if (std::isnan(v)) return 0;
  if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

template <class T>
double get_real(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return static_cast<double>(to_float(v));
  else
    return static_cast<double>(v);
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<int64_t> shape) : dtype_(dtype), shape_(std::move(shape)), size_(1) {
  for (int64_t d : shape_) {
    if (d < 0) refuse("a tensor has the negative extent {}", d);
    if (__builtin_mul_overflow(size_, d, &size_)) refuse("a tensor's size overflows 64 bits");
  }
  const int64_t each = static_cast<int64_t>(size_of(dtype_));
  if (each > 0 && size_ > kMaxBytes / each)
    refuse("a tensor of {} elements exceeds the limit of {} bytes", size_, kMaxBytes);
  const size_t bytes = (static_cast<size_t>(size_ * each) / 64 + 1) * 64;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  if (!p) refuse("out of memory for a tensor of {} bytes", bytes);
  std::memset(p, 0, bytes);
  data_ = std::shared_ptr<std::byte>(p, std::free);
}

float small_to_float(DType t, uint8_t bits) {
  switch (t) {
    case DType::kF8E4M3FN: return to_float(float8e4m3fn{bits});
    case DType::kF8E4M3FNUZ: return to_float(float8e4m3fnuz{bits});
    case DType::kF8E5M2: return to_float(float8e5m2{bits});
    case DType::kF8E5M2FNUZ: return to_float(float8e5m2fnuz{bits});
    case DType::kF8E8M0: return to_float(float8e8m0{bits});
    case DType::kF4E2M1: return to_float(float4e2m1{bits});
    default: bug(__FILE__, __LINE__, "not a float of 4 or 8 bits");
  }
}
uint8_t small_from_float(DType t, float x) {
  switch (t) {
    case DType::kF8E4M3FN: return to_small<float8e4m3fn>(x).bits;
    case DType::kF8E4M3FNUZ: return to_small<float8e4m3fnuz>(x).bits;
    case DType::kF8E5M2: return to_small<float8e5m2>(x).bits;
    case DType::kF8E5M2FNUZ: return to_small<float8e5m2fnuz>(x).bits;
    case DType::kF8E8M0: return to_small<float8e8m0>(x).bits;
    case DType::kF4E2M1: return to_small<float4e2m1>(x).bits;
    default: bug(__FILE__, __LINE__, "not a float of 4 or 8 bits");
  }
}

double Tensor::real(int64_t i) const {
  if (is_small_float(dtype_)) return static_cast<double>(small_to_float(dtype_, as<uint8_t>()[i]));
  return with_type(dtype_, [&](auto t) { return get_real(as<decltype(t)>()[i]); });
}
int64_t Tensor::integer(int64_t i) const {
  if (is_small_float(dtype_)) return saturate<int64_t>(real(i));
  return with_type(dtype_, [&](auto t) -> int64_t {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(as<T>()[i]);
    else
      return saturate<int64_t>(get_real(as<T>()[i]));
  });
}
void Tensor::set_real(int64_t i, double v) {
  if (is_small_float(dtype_)) {
    as<uint8_t>()[i] = small_from_float(dtype_, static_cast<float>(v));
    return;
  }
  with_type(dtype_, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_same_v<T, half>)
      as<T>()[i] = to_half(static_cast<float>(v));
    else if constexpr (std::is_same_v<T, bfloat16>)
      as<T>()[i] = to_bfloat16(static_cast<float>(v));
    else if constexpr (std::is_same_v<T, bool>)
      as<T>()[i] = v != 0;
    else if constexpr (std::is_integral_v<T>)
      as<T>()[i] = saturate<T>(v);
    else
      as<T>()[i] = static_cast<T>(v);
  });
}
void Tensor::set_integer(int64_t i, int64_t v) {
  if (is_small_float(dtype_)) return set_real(i, static_cast<double>(v));
  with_type(dtype_, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_same_v<T, half>)
      as<T>()[i] = to_half(static_cast<float>(v));
    else if constexpr (std::is_same_v<T, bfloat16>)
      as<T>()[i] = to_bfloat16(static_cast<float>(v));
    else
      as<T>()[i] = static_cast<T>(v);
  });
}
std::vector<int64_t> Tensor::integers() const {
  std::vector<int64_t> out(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) out[static_cast<size_t>(i)] = integer(i);
  return out;
}
std::vector<double> Tensor::reals() const {
  std::vector<double> out(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) out[static_cast<size_t>(i)] = real(i);
  return out;
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  SINTER_CHECK(n == size_, "Tensor::reshaped changes the size");
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

Tensor Tensor::converted(DType to) const {
  Tensor out(to, shape_);
  const bool via_integer =
      (is_integer(dtype_) || dtype_ == DType::kBool) && (is_integer(to) || to == DType::kBool);
  const bool from_u64 = dtype_ == DType::kU64;
  for (int64_t i = 0; i < size_; ++i) {
    if (to == DType::kBool && via_integer)
      out.as<bool>()[i] = integer(i) != 0;
    else if (via_integer)
      out.set_integer(i, integer(i));
    else if (from_u64)
      out.set_real(i, static_cast<double>(as<uint64_t>()[i]));
    else
      out.set_real(i, real(i));
  }
  return out;
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> s(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) s[i - 1] = s[i] * shape[i];
  return s;
}

Tensor Tensor::transposed(const std::vector<int64_t>& perm) const {
  SINTER_CHECK(perm.size() == shape_.size());
  std::vector<int64_t> shape(perm.size()), strides(perm.size());
  const std::vector<int64_t> from = row_major_strides(shape_);
  for (size_t i = 0; i < perm.size(); ++i) {
    shape[i] = shape_[static_cast<size_t>(perm[i])];
    strides[i] = from[static_cast<size_t>(perm[i])];
  }
  Tensor out(dtype_, shape);
  const size_t each = size_of(dtype_);
  std::vector<int64_t> index(perm.size(), 0);
  int64_t source = 0;
  for (int64_t i = 0; i < size_; ++i) {
    std::memcpy(out.data_.get() + static_cast<size_t>(i) * each,
                data_.get() + static_cast<size_t>(source) * each, each);
    for (size_t d = perm.size(); d-- > 0;) {
      source += strides[d];
      if (++index[d] < shape[d]) break;
      source -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return out;
}

bool Tensor::same_bits(const Tensor& o) const {
  return dtype_ == o.dtype_ && shape_ == o.shape_ &&
         std::memcmp(data(), o.data(), static_cast<size_t>(bytes())) == 0;
}

bool Tensor::is_uniform() const {
  const size_t each = size_of(dtype_), all = static_cast<size_t>(bytes());
  return size_ > 0 && each > 0 && std::memcmp(data(), data() + each, all - each) == 0;
}

Tensor Tensor::of(const std::vector<int64_t>& values) {
  Tensor t(DType::kI64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.as<int64_t>()[i] = values[i];
  return t;
}
Tensor Tensor::of(const std::vector<float>& values, std::vector<int64_t> shape) {
  Tensor t(DType::kF32, std::move(shape));
  SINTER_CHECK(t.size() == static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) t.as<float>()[i] = values[i];
  return t;
}
Tensor Tensor::scalar(float v) {
  Tensor t(DType::kF32, {});
  t.as<float>()[0] = v;
  return t;
}
Tensor Tensor::scalar(int64_t v) {
  Tensor t(DType::kI64, {});
  t.as<int64_t>()[0] = v;
  return t;
}

}  // namespace sinter
