// A tensor in memory as a program around a net has it: its name, element type, dims and contents. What reads
// and writes it as a file is sinter/tensor_file.h.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace sinter {

// One element type by its number in ONNX's TensorProto.DataType.
struct ElementType {
  int onnx;
  const char* name;
  std::int64_t bytes;  // in memory
  int bits;            // in a .pb
  const char* npy;     // type code of a .npy; null: NumPy has no such type
};

// 64-byte aligned memory of its own.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& o) noexcept : data_(o.data_), size_(o.size_) { o.data_ = nullptr, o.size_ = 0; }
  Buffer& operator=(Buffer&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  // Zero bytes get an address as well. False where memory is short.
  bool allocate(std::int64_t bytes) {
    if (bytes < 0 || bytes > (std::int64_t{1} << 46)) return false;
    std::free(data_);
    size_ = bytes;
    data_ = std::aligned_alloc(64, (static_cast<std::size_t>(bytes) + 64) / 64 * 64);
    return data_ != nullptr;
  }
  unsigned char* data() { return static_cast<unsigned char*>(data_); }
  const unsigned char* data() const { return static_cast<const unsigned char*>(data_); }
  std::int64_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::int64_t size_ = 0;
};

struct TensorFile {
  std::string name;  // empty where the format has none
  const ElementType* type = nullptr;
  std::vector<std::int64_t> dims;
  Buffer data;  // row-major
};

namespace tensor_file {

// The elements of `dims`; -1 for a negative extent or more elements than fit.
inline std::int64_t count(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  bool empty = false;
  for (const std::int64_t d : dims) {
    if (d < 0) return -1;
    if (d == 0)
      empty = true;
    else if (n > (std::int64_t{1} << 46) / d)
      return -1;
    else
      n *= d;
  }
  return empty ? 0 : n;
}

}  // namespace tensor_file
}  // namespace sinter
