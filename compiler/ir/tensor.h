// Tensor: a dense, row-major array with values: constants of the graph, and what `eval` computes with.
//
// Copying a Tensor shares its bytes; who writes calls mutable_data() or as<T>() on a Tensor that nobody else
// holds (freshly made ones). Memory is 64-byte aligned. size() elements times size_of(dtype) bytes always
// fit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace sinter {

class Tensor {
 public:
  Tensor() = default;
  // Zero-filled. Refuses shapes whose bytes exceed kMaxBytes or with a negative extent.
  Tensor(DType dtype, std::vector<int64_t> shape);
  static constexpr int64_t kMaxBytes = int64_t{1} << 34;

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t dim(int64_t i) const { return shape_[static_cast<size_t>(i)]; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(size_of(dtype_)); }
  explicit operator bool() const { return data_ != nullptr; }

  const std::byte* data() const { return data_.get(); }
  std::byte* mutable_data() { return data_.get(); }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_.get());
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_.get());
  }

  // Element i, whatever the dtype, as a double / as an integer (floats truncate, bool 0 or 1).
  double real(int64_t i) const;
  int64_t integer(int64_t i) const;
  // Stores v at i: floats round to nearest even, integers keep the low bits, bool is v != 0.
  void set_real(int64_t i, double v);
  void set_integer(int64_t i, int64_t v);
  std::vector<int64_t> integers() const;  // all elements
  std::vector<double> reals() const;

  Tensor reshaped(std::vector<int64_t> shape) const;  // same bytes, same size
  Tensor converted(DType to) const;                   // element by element, as set_real / set_integer do
  Tensor transposed(const std::vector<int64_t>& perm) const;
  bool same_bits(const Tensor& other) const;  // dtype, shape and bytes
  bool is_uniform() const;                    // all elements are the same bytes; at least one element

  static Tensor of(const std::vector<int64_t>& values);  // int64 [n]
  static Tensor of(const std::vector<float>& values, std::vector<int64_t> shape);
  static Tensor scalar(float v);
  static Tensor scalar(int64_t v);

 private:
  DType dtype_ = DType::kUndefined;
  std::vector<int64_t> shape_;
  int64_t size_ = 0;
  std::shared_ptr<std::byte> data_;
};

// An element of a float type of 4 or 8 bits, as in runtime/sinter/small_float.h.
float small_to_float(DType, uint8_t bits);
uint8_t small_from_float(DType, float);

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);  // in elements

// Calls f(T{}) with the C++ type of a dtype that has arithmetic of its own: f32 f64 i8..i64 u8..u64 bool.
// half and bfloat16 are passed as sinter::half / sinter::bfloat16. Other dtypes are a bug: check before.
template <class F>
decltype(auto) with_type(DType t, F&& f);

}  // namespace sinter

#include "ir/tensor_inl.h"
