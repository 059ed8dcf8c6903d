// Tensors as files: ONNX TensorProto (.pb) and NumPy (.npy), read and written without any library.
//
// A file is hostile until proved otherwise: every length in it is compared with what is left of the file
// before it is believed, nothing is allocated from a number in the file alone, and contents must have exactly
// the size that dims and element type want. In memory an element is what net_run() takes: 4- and 2-bit types
// one element a byte (signed ones sign-extended), bool 0 or 1. The machine is little-endian, as the files
// are. Functions that can fail return a sentence, empty on success.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "sinter/tensor.h"

namespace sinter {

inline const ElementType* element_type(int onnx) {
  static const ElementType types[] = {
      {1, "float32", 4, 32, "<f4"},
      {2, "uint8", 1, 8, "|u1"},
      {3, "int8", 1, 8, "|i1"},
      {4, "uint16", 2, 16, "<u2"},
      {5, "int16", 2, 16, "<i2"},
      {6, "int32", 4, 32, "<i4"},
      {7, "int64", 8, 64, "<i8"},
      {9, "bool", 1, 8, "|b1"},
      {10, "float16", 2, 16, "<f2"},
      {11, "float64", 8, 64, "<f8"},
      {12, "uint32", 4, 32, "<u4"},
      {13, "uint64", 8, 64, "<u8"},
      {16, "bfloat16", 2, 16, nullptr},
      {17, "float8e4m3fn", 1, 8, nullptr},
      {18, "float8e4m3fnuz", 1, 8, nullptr},
      {19, "float8e5m2", 1, 8, nullptr},
      {20, "float8e5m2fnuz", 1, 8, nullptr},
      {21, "uint4", 1, 4, nullptr},
      {22, "int4", 1, 4, nullptr},
      {23, "float4e2m1", 1, 4, nullptr},
      {24, "float8e8m0", 1, 8, nullptr},
      {25, "uint2", 1, 2, nullptr},
      {26, "int2", 1, 2, nullptr},
  };
  for (const ElementType& t : types)
    if (t.onnx == onnx) return &t;
  return nullptr;
}

namespace tensor_file {

inline bool ends_with(const std::string& s, const char* end) {
  const std::size_t n = std::strlen(end);
  return s.size() >= n && s.compare(s.size() - n, n, end) == 0;
}

inline std::string shape_text(const std::vector<std::int64_t>& dims) {
  std::string s = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) s += (i ? "," : "") + std::to_string(dims[i]);
  return s + "]";
}

// The whole file, at most `limit` bytes.
inline std::string slurp(const std::string& path, std::int64_t limit, std::string& bytes) {
  std::FILE* f = std::fopen(path.c_str(), "rb");
  if (!f) return "can't be opened";
  std::string problem;
  std::vector<char> chunk(std::size_t{1} << 20);
  bytes.clear();
  while (problem.empty()) {
    const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), f);
    bytes.append(chunk.data(), n);
    if (static_cast<std::int64_t>(bytes.size()) > limit)
      problem = "is larger than any such tensor (" + std::to_string(limit) + " bytes)";
    else if (n < chunk.size()) {
      if (std::ferror(f)) problem = "can't be read";
      break;
    }
  }
  std::fclose(f);
  return problem;
}

// Bytes of a protobuf message, taken from the front.
class Wire {
 public:
  Wire(const char* data, std::size_t size) : at_(data), end_(data + size) {}
  bool done() const { return at_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  bool varint(std::uint64_t& v) {
    v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) return false;
      const auto b = static_cast<unsigned char>(*at_++);
      if (shift < 64) v |= static_cast<std::uint64_t>(b & 0x7fu) << shift;
      if (b < 0x80) return true;
    }
    return false;
  }
  bool take(std::size_t n, const char*& p) {
    if (n > left()) return false;
    p = at_;
    at_ += n;
    return true;
  }
  bool block(Wire& inside) {
    std::uint64_t n = 0;
    if (!varint(n) || n > left()) return false;
    inside = Wire(at_, static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return true;
  }
  std::string text() const { return std::string(at_, end_); }

 private:
  const char *at_, *end_;
};

// The fields of a TensorProto that are needed, contents not yet decoded.
struct Proto {
  std::vector<std::int64_t> dims;
  std::uint64_t dtype = 0;
  std::string name;
  bool raw = false, external = false, segment = false, strings = false;
  Wire raw_data{nullptr, 0};
  std::string typed;  // elements of the typed field as raw_data holds them
  int typed_field = 0;
  bool mixed = false;     // contents in two typed fields
  bool overflow = false;  // a value that doesn't fit its type
};

// Appends one value of an int32_data, int64_data or uint64_data field in the width that raw_data gives the
// element type; types of less than 8 bits come as bytes that the writer has packed.
inline void append_integer(Proto& p, std::uint64_t v, int field) {
  const ElementType* t = element_type(static_cast<int>(p.dtype));
  const int bits = t ? std::max(t->bits, 8) : 64;
  if (bits < 64) {
    const std::int64_t s = field == 5 ? static_cast<std::int32_t>(v) : static_cast<std::int64_t>(v);
    const bool negatives = t->onnx == 3 || t->onnx == 5 || t->onnx == 6;
    const std::int64_t lo = negatives ? -(std::int64_t{1} << (bits - 1)) : 0;
    const std::int64_t hi = (std::int64_t{1} << (negatives ? bits - 1 : bits)) - 1;
    if (s < lo || s > hi) p.overflow = true;
  }
  p.typed.append(reinterpret_cast<const char*>(&v), static_cast<std::size_t>(bits / 8));
}

inline bool typed_value(Proto& p, Wire& from, int field) {
  p.mixed = p.mixed || (p.typed_field != 0 && p.typed_field != field);
  p.typed_field = field;
  const char* bytes = nullptr;
  std::uint64_t v = 0;
  switch (field) {
    case 4:
      if (!from.take(4, bytes)) return false;
      p.typed.append(bytes, 4);
      return true;
    case 10:
      if (!from.take(8, bytes)) return false;
      p.typed.append(bytes, 8);
      return true;
    default:
      if (!from.varint(v)) return false;
      append_integer(p, v, field);
      return true;
  }
}

// Which typed field holds the contents of an element type.
inline int field_of(int onnx) {
  switch (onnx) {
    case 1: return 4;
    case 11: return 10;
    case 7: return 7;
    case 12:
    case 13: return 11;
    default: return 5;
  }
}

// One pass over the message. Typed fields are decoded only if `typed`: their width depends on data_type,
// which may come behind them.
inline bool scan(Wire all, Proto& p, bool typed) {
  while (!all.done()) {
    std::uint64_t key = 0, v = 0;
    if (!all.varint(key) || key >> 3 == 0 || key >> 32 != 0) return false;
    const int field = static_cast<int>(key >> 3), wire = static_cast<int>(key & 7);
    const bool is_typed = field == 4 || field == 5 || field == 7 || field == 10 || field == 11;
    const int scalar = field == 4 ? 5 : field == 10 ? 1 : 0;
    Wire inside(nullptr, 0);
    const char* skipped = nullptr;
    if (is_typed && wire == scalar && typed) {
      if (!typed_value(p, all, field)) return false;
    } else if (wire == 2) {
      if (!all.block(inside)) return false;
      if (field == 1 && !typed)
        while (!inside.done()) {
          if (!inside.varint(v)) return false;
          p.dims.push_back(static_cast<std::int64_t>(v));
        }
      if (is_typed && typed)
        while (!inside.done())
          if (!typed_value(p, inside, field)) return false;
      if (typed) continue;
      if (field == 3) p.segment = true;
      if (field == 6) p.strings = true;
      if (field == 8) p.name = inside.text();
      if (field == 9) p.raw = true, p.raw_data = inside;
      if (field == 13) p.external = true;
    } else if (wire == 0) {
      if (!all.varint(v)) return false;
      if (typed) continue;
      if (field == 1) p.dims.push_back(static_cast<std::int64_t>(v));
      if (field == 2) p.dtype = v;
      if (field == 14 && v == 1) p.external = true;
    } else if (wire == 1 || wire == 5) {
      if (!all.take(wire == 1 ? 8 : 4, skipped)) return false;
    } else {
      return false;
    }
    if (p.dims.size() > 64) return false;
  }
  return true;
}

// Spreads `bytes`, as raw_data holds them, into memory.
inline std::string unpack(const char* bytes, std::size_t size, TensorFile& out) {
  const ElementType& t = *out.type;
  const std::int64_t n = count(out.dims);
  if (n < 0) return "has the impossible shape " + shape_text(out.dims);
  const std::int64_t want = t.bits < 8 ? (n * t.bits + 7) / 8 : n * t.bytes;
  if (static_cast<std::uint64_t>(want) != size)
    return "has " + std::to_string(size) + " bytes of contents, but its shape " + shape_text(out.dims) +
           " wants " + std::to_string(want);
  if (!out.data.allocate(n * t.bytes)) return "does not fit into memory";
  unsigned char* to = out.data.data();
  if (t.bits >= 8) {
    if (size) std::memcpy(to, bytes, size);
    if (t.onnx == 9)
      for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] != 0;
    return "";
  }
  const int each = 8 / t.bits, mask = (1 << t.bits) - 1, sign = 1 << (t.bits - 1);
  const bool is_signed = t.onnx == 22 || t.onnx == 26;
  for (std::int64_t i = 0; i < n; ++i) {
    int v = (static_cast<unsigned char>(bytes[i / each]) >> (static_cast<int>(i % each) * t.bits)) & mask;
    if (is_signed && (v & sign) != 0) v -= mask + 1;
    to[i] = static_cast<unsigned char>(v);
  }
  return "";
}

inline std::string parse_pb(const std::string& file, TensorFile& out) {
  Proto p;
  const Wire all(file.data(), file.size());
  if (!scan(all, p, false)) return "is not an ONNX tensor";
  out.type = p.dtype < 1000 ? element_type(static_cast<int>(p.dtype)) : nullptr;
  if (p.strings || p.dtype == 8) return "holds strings, which are not supported";
  if (!out.type) return "has the element type " + std::to_string(p.dtype) + ", which is not supported";
  if (p.external) return "has external data, which are not supported here";
  if (p.segment) return "is in segments, which is not supported";
  out.name = std::move(p.name);
  out.dims = p.dims;
  if (!scan(all, p, true)) return "is not an ONNX tensor";
  if (p.raw && (!p.typed.empty() || p.mixed) && p.raw_data.left() > 0)
    return "has contents in raw_data and in a typed field";
  const bool raw = p.raw && p.typed.empty();
  const char* bytes = p.typed.data();
  std::size_t size = p.typed.size();
  if (raw) {
    size = p.raw_data.left();
    if (!p.raw_data.take(size, bytes)) return "is not an ONNX tensor";
  } else if (p.mixed || (p.typed_field != 0 && p.typed_field != field_of(out.type->onnx))) {
    return "has its contents in a field of another type";
  } else if (p.overflow) {
    return std::string("has a value that does not fit ") + out.type->name;
  }
  return unpack(bytes, size, out);
}

// The value behind 'key': in the header of a .npy, a Python dict in text form.
inline std::string npy_value(const std::string& header, const std::string& key) {
  const std::size_t at = header.find("'" + key + "'");
  if (at == std::string::npos) return "";
  std::size_t from = header.find(':', at + key.size() + 2);
  if (from == std::string::npos) return "";
  from = header.find_first_not_of(' ', from + 1);
  if (from == std::string::npos) return "";
  const char first = header[from];
  const std::size_t to = first == '\''  ? header.find('\'', from + 1)
                         : first == '(' ? header.find(')', from)
                                        : header.find_first_of(",}", from) - 1;
  return to == std::string::npos || to < from ? "" : header.substr(from, to - from + 1);
}

inline bool npy_shape(const std::string& text, std::vector<std::int64_t>& dims) {
  if (text.size() < 2 || text[0] != '(') return false;
  std::size_t i = 1;
  while (text[i] != ')') {
    if (text[i] == ' ' || text[i] == ',') {
      ++i;
      continue;
    }
    std::int64_t v = 0;
    const std::size_t start = i;
    while (text[i] >= '0' && text[i] <= '9' && i - start < 16) v = v * 10 + (text[i++] - '0');
    if (i == start || i - start >= 16 || dims.size() >= 64) return false;
    dims.push_back(v);
  }
  return true;
}

// Column-major contents made row-major.
inline std::string reorder(TensorFile& t) {
  const std::int64_t n = count(t.dims), each = t.type->bytes;
  Buffer row;
  if (!row.allocate(n * each)) return "does not fit into memory";
  std::vector<std::int64_t> index(t.dims.size(), 0);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t from = 0, stride = 1;
    for (std::size_t d = 0; d < index.size(); ++d) from += index[d] * stride, stride *= t.dims[d];
    std::memcpy(row.data() + i * each, t.data.data() + from * each, static_cast<std::size_t>(each));
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < t.dims[d]) break;
      index[d] = 0;
    }
  }
  t.data = std::move(row);
  return "";
}

inline std::string parse_npy(const std::string& file, TensorFile& out) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(file[i]));
  };
  if (file.size() < 12 || file.compare(0, 6, "\x93NUMPY") != 0) return "is not a NumPy array";
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return "has a .npy version that is not supported";
  const std::size_t start = version == 1 ? 10 : 12;
  std::size_t length = byte(8) + (byte(9) << 8);
  if (version > 1) length += (byte(10) << 16) + (byte(11) << 24);
  if (length > file.size() - start) return "is cut off";
  const std::string header = file.substr(start, length);
  std::string code = npy_value(header, "descr");
  if (code.size() < 3) return "has no element type that is supported";
  code = code.substr(1, code.size() - 2);
  for (int onnx = 1; onnx < 27 && !out.type; ++onnx) {
    const ElementType* t = element_type(onnx);
    if (!t || !t->npy) continue;
    if (code == t->npy || (t->npy[0] == '|' && code.substr(1) == t->npy + 1)) out.type = t;
  }
  if (!out.type) return "has the element type '" + code.substr(0, 16) + "', which is not supported";
  if (!npy_shape(npy_value(header, "shape"), out.dims)) return "has no shape";
  const std::string order = npy_value(header, "fortran_order");
  if (order != "True" && order != "False") return "has no order";
  const std::string problem = unpack(file.data() + start + length, file.size() - start - length, out);
  return problem.empty() && order == "True" ? reorder(out) : problem;
}

inline void put_varint(std::string& s, std::uint64_t v) {
  while (v >= 0x80) s += static_cast<char>(static_cast<unsigned char>(v | 0x80)), v >>= 7;
  s += static_cast<char>(v);
}

inline std::string npy_header(const ElementType& t, const std::vector<std::int64_t>& dims) {
  std::string shape = "(";
  for (const std::int64_t d : dims) shape += std::to_string(d) + ", ";
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  if (dims.size() == 1) shape.resize(shape.size() - 1);
  std::string h =
      std::string("{'descr': '") + t.npy + "', 'fortran_order': False, 'shape': " + shape + "), }";
  h.append(63 - (10 + h.size()) % 64, ' ');
  h += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(h.size() & 0xff) +
         static_cast<char>(h.size() >> 8) + h;
}

// The contents as raw_data holds them.
inline std::string packed(const ElementType& t, const unsigned char* data, std::int64_t n) {
  if (t.bits >= 8)
    return std::string(reinterpret_cast<const char*>(data), static_cast<std::size_t>(n * t.bytes));
  const int each = 8 / t.bits, mask = (1 << t.bits) - 1;
  std::string bytes(static_cast<std::size_t>((n + each - 1) / each), '\0');
  for (std::int64_t i = 0; i < n; ++i) {
    char& b = bytes[static_cast<std::size_t>(i / each)];
    b = static_cast<char>(static_cast<unsigned char>(b) |
                          ((data[i] & mask) << (static_cast<int>(i % each) * t.bits)));
  }
  return bytes;
}

}  // namespace tensor_file

// Reads a .npy or .pb file (by its first bytes) of at most `limit` bytes.
inline std::string read_tensor(const std::string& path, std::int64_t limit, TensorFile& out) {
  std::string bytes;
  std::string problem = tensor_file::slurp(path, limit, bytes);
  if (problem.empty())
    problem = bytes.compare(0, 6, "\x93NUMPY") == 0 ? tensor_file::parse_npy(bytes, out)
                                                    : tensor_file::parse_pb(bytes, out);
  return problem.empty() ? "" : path + " " + problem;
}

// Writes a .npy where the path ends so, else a .pb.
inline std::string write_tensor(const std::string& path, const std::string& name, const ElementType& type,
                                const std::vector<std::int64_t>& dims, const unsigned char* data) {
  using namespace tensor_file;
  std::string head;
  const std::string bytes = packed(type, data, count(dims));
  if (ends_with(path, ".npy")) {
    if (!type.npy) return path + ": NumPy has no " + type.name + "; name the file .pb";
    head = npy_header(type, dims);
  } else {
    for (const std::int64_t d : dims) head += '\x08', put_varint(head, static_cast<std::uint64_t>(d));
    head += '\x10', put_varint(head, static_cast<std::uint64_t>(type.onnx));
    head += '\x42', put_varint(head, name.size()), head += name;
    head += '\x4a', put_varint(head, bytes.size());
  }
  std::FILE* f = std::fopen(path.c_str(), "wb");
  if (!f) return path + " can't be opened for writing";
  bool ok = std::fwrite(head.data(), 1, head.size(), f) == head.size();
  ok = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size() && ok;
  ok = std::fclose(f) == 0 && ok;
  return ok ? "" : path + " can't be written";
}

}  // namespace sinter
