#include "driver/trace_file.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace sinter {

Traced read_trace(const std::filesystem::path& path) {
  std::ifstream f(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(f), {});
  size_t at = 0;
  auto take = [&](void* to, size_t n) {
    if (n > bytes.size() - at) throw std::runtime_error("the trace is cut off");
    std::memcpy(to, bytes.data() + at, n);
    at += n;
  };
  char magic[8];
  take(magic, 8);
  if (std::string_view(magic, 8) != "SNTRACE1") throw std::runtime_error("no trace was written");
  Traced traced;
  while (at < bytes.size()) {
    int32_t head[4];
    take(head, sizeof head);
    std::vector<int64_t> shape(static_cast<size_t>(head[2]));
    take(shape.data(), shape.size() * sizeof(int64_t));
    std::string name(static_cast<size_t>(head[3]), '\0');
    take(name.data(), name.size());
    Tensor t(dtype_of_onnx(head[1]), shape);
    take(t.mutable_data(), static_cast<size_t>(t.bytes()));
    traced[{head[0], name}] = std::move(t);
  }
  return traced;
}

}  // namespace sinter
