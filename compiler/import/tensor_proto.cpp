// Reading: bytes_of() finds the bytes (raw, external, or gathered from a typed field), unpack() spreads them
// into a Tensor. Everything typed goes through the same little-endian byte form, so there is one size check.
#include "import/tensor_proto.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "import/onnx.h"
#include "ir/error.h"
#include "ir/read_files.h"

namespace sinter {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little endian");

namespace fs = std::filesystem;
using onnx::TensorProto;

// Elements of `dims`, refusing what overflows or no Tensor could hold.
int64_t checked_size(const std::vector<int64_t>& dims, DType dtype) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) refuse("negative extent {}", d);
    if (d == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(n, d, &n)) {
      refuse("its size overflows 64 bits");
    }
  }
  if (empty) return 0;
  if (n > Tensor::kMaxBytes / static_cast<int64_t>(size_of(dtype)))
    refuse("{} elements exceed the limit of {} bytes", n, Tensor::kMaxBytes);
  return n;
}

// The file of external data: inside `folder`, also once symbolic links are followed.
fs::path confined(const fs::path& folder, const std::string& location) {
  if (folder.empty()) refuse("external data, but the model is no file");
  const fs::path relative(location);
  if (location.empty() || location.find('\0') != std::string::npos)
    refuse("external data without a proper location");
  if (relative.is_absolute()) refuse("external data at the absolute path {}", sinter::quoted(location));
  for (const fs::path& part : relative)
    if (part == "..")
      refuse("external data at {}, which may leave the model's folder", sinter::quoted(location));
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) refuse("the model's folder can't be resolved: {}", error.message());
  const fs::path file = fs::canonical(root / relative, error);
  if (error) refuse("external data at {}: {}", sinter::quoted(location), error.message());
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  if (end != root.end())
    refuse("external data at {} is a link out of the model's folder", sinter::quoted(location));
  if (!fs::is_regular_file(file, error))
    refuse("external data at {} is no regular file", sinter::quoted(location));
  return file;
}

int64_t decimal(const std::string& text, const char* what) {
  int64_t v = 0;
  if (text.empty() || text.size() > 18) refuse("external data with the {} {}", what, sinter::quoted(text));
  for (char c : text) {
    if (c < '0' || c > '9') refuse("external data with the {} {}", what, sinter::quoted(text));
    v = v * 10 + (c - '0');
  }
  return v;
}

std::string external_bytes(const TensorProto& proto, const fs::path& folder, int64_t want) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& e : proto.external_data()) {
    if (e.key() == "location") location = e.value();
    if (e.key() == "offset") offset = decimal(e.value(), "offset");
    if (e.key() == "length") length = decimal(e.value(), "length");
  }
  const fs::path path = confined(folder, location);
  note_read(folder / location);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) refuse("external data at {} can't be read", sinter::quoted(location));
  const int64_t size = static_cast<int64_t>(file.tellg());
  if (length < 0) length = std::min(want, std::max<int64_t>(size - offset, 0));
  if (length != want) refuse("{} bytes of external data, but its shape wants {}", length, want);
  if (offset > size || length > size - offset)
    refuse("external data at {} end behind the file's {} bytes", sinter::quoted(location), size);
  std::string bytes(static_cast<size_t>(length), '\0');
  file.seekg(offset);
  file.read(bytes.data(), length);
  if (file.gcount() != length) refuse("external data at {} can't be read", sinter::quoted(location));
  return bytes;
}

template <class T, class Field>
std::string gather(const Field& field) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(field.size()) * sizeof(T));
  for (auto v : field) {
    using V = decltype(v);
    if constexpr (std::is_integral_v<V> && sizeof(T) < sizeof(V)) {
      if (v < static_cast<V>(std::numeric_limits<T>::min()) ||
          v > static_cast<V>(std::numeric_limits<T>::max()))
        refuse("the value {} does not fit its type", v);
    }
    const T t = static_cast<T>(v);
    bytes.append(reinterpret_cast<const char*>(&t), sizeof t);
  }
  return bytes;
}

// The contents of a typed field as raw_data would hold them.
std::string typed_bytes(const TensorProto& p, DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kComplex64: return gather<float>(p.float_data());
    case DType::kF64:
    case DType::kComplex128: return gather<double>(p.double_data());
    case DType::kI64: return gather<int64_t>(p.int64_data());
    case DType::kU32: return gather<uint32_t>(p.uint64_data());
    case DType::kU64: return gather<uint64_t>(p.uint64_data());
    case DType::kI32: return gather<int32_t>(p.int32_data());
    case DType::kI16: return gather<int16_t>(p.int32_data());
    case DType::kI8: return gather<int8_t>(p.int32_data());
    case DType::kF16:
    case DType::kBF16:
    case DType::kU16: return gather<uint16_t>(p.int32_data());
    default: return gather<uint8_t>(p.int32_data());  // bool, u8, small floats, packed 4- and 2-bit types
  }
}

bool has_typed_data(const TensorProto& p) {
  return p.float_data_size() || p.int32_data_size() || p.int64_data_size() || p.double_data_size() ||
         p.uint64_data_size() || p.string_data_size();
}

Tensor unpack(const std::string& bytes, DType dtype, std::vector<int64_t> dims) {
  Tensor t(dtype, std::move(dims));
  const int bits = bits_of(dtype);
  if (bits >= 8) {
    if (!bytes.empty()) std::memcpy(t.mutable_data(), bytes.data(), bytes.size());
    if (dtype == DType::kBool)  // any other byte in a bool is undefined behaviour
      for (int64_t i = 0; i < t.size(); ++i) {
        auto* b = reinterpret_cast<unsigned char*>(t.mutable_data()) + i;
        *b = *b != 0;
      }
    return t;
  }
  const int each = 8 / bits, mask = (1 << bits) - 1, sign = 1 << (bits - 1);
  auto* out = reinterpret_cast<int8_t*>(t.mutable_data());
  for (int64_t i = 0; i < t.size(); ++i) {
    const int byte = static_cast<unsigned char>(bytes[static_cast<size_t>(i / each)]);
    int v = (byte >> (static_cast<int>(i % each) * bits)) & mask;
    if (is_signed(dtype) && (v & sign)) v -= mask + 1;
    out[i] = static_cast<int8_t>(v);
  }
  return t;
}

std::string slurp(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    refuse("{} is not a file that can be read", sinter::quoted(path.string()));
  note_read(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("{} can't be read", sinter::quoted(path.string()));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Tensor parse_tensor(const TensorProto& p, const fs::path& folder) {
  const DType dtype = dtype_of_onnx(p.data_type());
  if (dtype == DType::kUndefined) refuse("element type {} is unknown", p.data_type());
  if (dtype == DType::kString) refuse("strings are not supported");
  if (p.has_segment()) refuse("tensors in segments are not supported");
  std::vector<int64_t> dims(p.dims().begin(), p.dims().end());
  if (dims.size() > 64) refuse("{} axes", dims.size());
  const int64_t size = checked_size(dims, dtype);
  const int64_t want = (size * bits_of(dtype) + 7) / 8;
  std::string bytes;
  if (p.data_location() == TensorProto::EXTERNAL) {
    bytes = external_bytes(p, folder, want);
  } else if (p.has_raw_data() && !(p.raw_data().empty() && has_typed_data(p))) {
    if (has_typed_data(p)) refuse("contents in raw_data and in a typed field");
    if (static_cast<int64_t>(p.raw_data().size()) != want)
      refuse("{} bytes of contents, but its shape wants {}", p.raw_data().size(), want);
    return unpack(p.raw_data(), dtype, std::move(dims));
  } else {
    bytes = typed_bytes(p, dtype);
  }
  if (static_cast<int64_t>(bytes.size()) != want)
    refuse("{} bytes of contents, but its shape wants {}", bytes.size(), want);
  return unpack(bytes, dtype, std::move(dims));
}

Tensor parse_sparse_tensor(const onnx::SparseTensorProto& p, const fs::path& folder) {
  const Tensor values = parse_tensor(p.values(), folder);
  const Tensor indices = parse_tensor(p.indices(), folder);
  const std::vector<int64_t> dims(p.dims().begin(), p.dims().end());
  if (values.rank() != 1 || indices.dtype() != DType::kI64 || (indices.rank() != 1 && indices.rank() != 2) ||
      indices.dim(0) != values.size() ||
      (indices.rank() == 2 && indices.dim(1) != static_cast<int64_t>(dims.size())))
    refuse("a sparse tensor whose values and indices don't fit together");
  const int64_t size = checked_size(dims, values.dtype());
  // A few bytes may name a huge dense tensor; nobody means that.
  if (size > int64_t{1} << 28) refuse("a sparse tensor of {} elements is too large to be made dense", size);
  Tensor out(values.dtype(), dims);
  const std::vector<int64_t> strides = row_major_strides(dims);
  const size_t each = size_of(values.dtype());
  for (int64_t i = 0; i < values.size(); ++i) {
    int64_t at = 0;
    if (indices.rank() == 1) {
      at = indices.as<int64_t>()[i];
    } else {
      for (size_t d = 0; d < dims.size(); ++d) {
        const int64_t k = indices.as<int64_t>()[i * indices.dim(1) + static_cast<int64_t>(d)];
        if (k < 0 || k >= dims[d]) refuse("a sparse tensor's index {} is out of range", k);
        at += k * strides[d];
      }
    }
    if (at < 0 || at >= size) refuse("a sparse tensor's index {} is out of range", at);
    std::memcpy(out.mutable_data() + static_cast<size_t>(at) * each,
                values.data() + static_cast<size_t>(i) * each, each);
  }
  return out;
}

onnx::TensorProto tensor_proto(const Tensor& t, const std::string& name) {
  TensorProto p;
  p.set_name(name);
  p.set_data_type(onnx_of(t.dtype()));
  for (int64_t d : t.shape()) p.add_dims(d);
  const int bits = bits_of(t.dtype());
  const auto* in = reinterpret_cast<const unsigned char*>(t.data());
  if (bits >= 8) {
    p.set_raw_data(t.data(), static_cast<size_t>(t.bytes()));
    return p;
  }
  const int each = 8 / bits, mask = (1 << bits) - 1;
  std::string bytes(static_cast<size_t>((t.size() + each - 1) / each), '\0');
  for (int64_t i = 0; i < t.size(); ++i) {
    char& byte = bytes[static_cast<size_t>(i / each)];
    byte = static_cast<char>(byte | ((in[i] & mask) << (static_cast<int>(i % each) * bits)));
  }
  p.set_raw_data(std::move(bytes));
  return p;
}

Tensor read_tensor_pb(const fs::path& path) {
  try {
    TensorProto p;
    if (!p.ParseFromString(slurp(path))) refuse("not an ONNX tensor");
    return parse_tensor(p, fs::absolute(path).parent_path());
  } catch (const Refusal& r) {
    refuse("{}: {}", sinter::quoted(path.string()), r.what());
  } catch (const std::exception& e) {
    refuse("{}: {}", sinter::quoted(path.string()), e.what());
  }
}

void write_tensor_pb(const fs::path& path, const Tensor& tensor, const std::string& name) {
  const TensorProto p = tensor_proto(tensor, name);
  if (p.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max()))
    refuse("{}: a tensor of {} bytes does not fit a .pb file", sinter::quoted(path.string()), tensor.bytes());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file || !p.SerializeToOstream(&file) || !file.flush())
    refuse("{} can't be written", sinter::quoted(path.string()));
}

}  // namespace sinter
