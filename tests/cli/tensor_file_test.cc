// runtime/sinter/tensor_file.h: what it writes it reads, and no file makes it misbehave.
#include "sinter/tensor_file.h"

#include <gtest/gtest.h>

#include <random>

#include "import/onnx.h"
#include "program.h"

namespace sinter {
namespace {

TensorFile read_bytes(const std::string& bytes, std::string& problem) {
  TensorFile t;
  problem = bytes.compare(0, 6, "\x93NUMPY") == 0 ? tensor_file::parse_npy(bytes, t)
                                                  : tensor_file::parse_pb(bytes, t);
  return t;
}

TEST(TensorFiles, EveryTypeSurvivesBothFormats) {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  for (int onnx = 1; onnx < 27; ++onnx) {
    const ElementType* type = element_type(onnx);
    if (!type) continue;
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {3}, {2, 5}, {0, 4}, {1, 2, 3}}) {
      const int64_t n = tensor_file::count(dims);
      std::vector<unsigned char> data(static_cast<size_t>(n * type->bytes));
      for (unsigned char& b : data) b = static_cast<unsigned char>(random());
      for (unsigned char& b : data) {
        if (onnx == 9) b &= 1;
        if (type->bits < 8) b = static_cast<unsigned char>(b & ((1 << type->bits) - 1));
        if ((onnx == 22 && b > 7) || (onnx == 26 && b > 1))  // sign-extended
          b = static_cast<unsigned char>(b | (onnx == 22 ? 0xf0 : 0xfc));
      }
      for (const char* name : {"t.pb", "t.npy"}) {
        const std::string path = (folder.path() / name).string();
        const std::string problem = write_tensor(path, "a name", *type, dims, data.data());
        if (!type->npy && std::string(name) == "t.npy") {
          EXPECT_NE(problem, "");
          continue;
        }
        ASSERT_EQ(problem, "");
        TensorFile t;
        ASSERT_EQ(read_tensor(path, 1 << 20, t), "") << type->name;
        EXPECT_EQ(t.type, type);
        EXPECT_EQ(t.dims, dims);
        EXPECT_EQ(std::string(t.data.data(), t.data.data() + t.data.size()),
                  std::string(data.begin(), data.end()))
            << type->name << " " << name;
        if (std::string(name) == "t.pb") {
          const Tensor ours = read_tensor_pb(path);  // by the importer, with protobuf
          EXPECT_EQ(ours.shape(), dims);
          EXPECT_EQ(std::memcmp(ours.data(), data.data(), data.size()), 0) << type->name;
        }
      }
    }
  }
}

// Typed fields, packed as protobuf writes them and one by one.
TEST(TensorFiles, TypedFields) {
  struct Row {
    int dtype;
    std::vector<double> values;
  };
  for (const Row& row :
       {Row{1, {1.5, -2}}, Row{11, {0.25, 3}}, Row{3, {-128, 127}}, Row{2, {0, 255}}, Row{5, {-32768, 7}},
        Row{4, {65535, 1}}, Row{6, {-2147483648.0, 5}}, Row{7, {-9, 1e15}}, Row{12, {4294967295.0, 0}},
        Row{13, {1e15, 2}}, Row{9, {1, 0}}}) {
    onnx::TensorProto p;
    p.set_data_type(row.dtype);
    p.add_dims(2);
    for (const double v : row.values) switch (row.dtype) {
        case 1: p.add_float_data(static_cast<float>(v)); break;
        case 11: p.add_double_data(v); break;
        case 7: p.add_int64_data(static_cast<int64_t>(v)); break;
        case 12:
        case 13: p.add_uint64_data(static_cast<uint64_t>(v)); break;
        default: p.add_int32_data(static_cast<int32_t>(v));
      }
    std::string problem;
    const TensorFile t = read_bytes(p.SerializeAsString(), problem);
    ASSERT_EQ(problem, "") << row.dtype;
    Tensor ours(dtype_of_onnx(row.dtype), t.dims);
    ASSERT_EQ(ours.bytes(), t.data.size());
    std::memcpy(ours.mutable_data(), t.data.data(), static_cast<size_t>(ours.bytes()));
    EXPECT_EQ(ours.reals(), row.values);
  }
  std::string problem;
  read_bytes(std::string("\x08\x01\x10\x03\x28\xac\x02", 7), problem);  // int8 [1] with int32_data: 300
  EXPECT_NE(problem.find("does not fit int8"), std::string::npos) << problem;
  const TensorFile one =
      read_bytes(std::string("\x28\x05\x08\x01\x10\x03", 6), problem);  // the type comes last
  EXPECT_EQ(problem, "");
  EXPECT_EQ(one.data.data()[0], 5);
}

TEST(TensorFiles, ColumnMajorNumpy) {
  std::string head = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }";
  head.resize(118, ' ');
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head;
  for (const char v : {1, 4, 2, 5, 3, 6}) file += std::string{v, 0};
  std::string problem;
  const TensorFile t = read_bytes(file, problem);
  ASSERT_EQ(problem, "");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(t.data.data()[2 * i], i + 1);
}

TEST(TensorFiles, Refusals) {
  auto npy = [](const std::string& dict, const std::string& data) {
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dict.size()) + '\0' + dict + data;
  };
  struct Row {
    std::string file, said;
  };
  for (const Row& r : {
           Row{"", "element type 0"},
           Row{"\xff\xff\xff", "not an ONNX tensor"},
           Row{std::string("\x10\x08", 2), "strings"},
           Row{std::string("\x10\x0e", 2), "element type 14"},
           Row{std::string("\x10\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13), "impossible shape"},
           Row{std::string("\x10\x01\x08\xff\xff\xff\xff\xff\x0f", 9), "0 bytes of contents"},
           Row{std::string("\x10\x01\x08\x01\x4a\x02\x00\x00", 8), "2 bytes of contents"},
           Row{std::string("\x10\x01\x08\x01\x4a\x7f\x00\x00", 8), "not an ONNX tensor"},
           Row{std::string("\x10\x01\x08\x01\x70\x01", 6), "external data"},
           Row{npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"), "'>f4'"},
           Row{npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "abcd"), "element type"},
           Row{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd"),
               "4 bytes of contents"},
           Row{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", ""),
               "no shape"},
           Row{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999,9999999999), }", ""),
               "impossible"},
           Row{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", ""), "no shape"},
           Row{npy("{'descr': '<f4', 'shape': (1,), }", "abcd"), "no order"},
           Row{npy("{'descr': '", ""), "element type"},
           Row{npy("", ""), "not a NumPy"},
           Row{std::string("\x93NUMPY\x01\x00\xff\xff{}", 12), "cut off"},
           Row{std::string("\x93NUMPY\x09\x00\x01\x00{}", 12), "version"},
       }) {
    std::string problem;
    read_bytes(r.file, problem);
    EXPECT_NE(problem.find(r.said), std::string::npos) << testing::PrintToString(r.file) << ": " << problem;
  }
  TensorFile t;
  EXPECT_NE(read_tensor("/dev/zero", 1000, t).find("larger"), std::string::npos);
  EXPECT_NE(read_tensor("/", 1000, t), "");
}

// Damaged files: whatever they say, reading ends with a tensor of its own size or a sentence.
TEST(TensorFiles, DamagedFilesAreHarmless) {
  onnx::TensorProto p;
  p.set_data_type(6);
  p.add_dims(4);
  p.add_dims(2);
  for (int i = 0; i < 8; ++i) p.add_int32_data(i * 1000 - 3);
  p.set_name("name");
  std::string head = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  head.resize(118, ' ');
  const std::string originals[] = {
      p.SerializeAsString(), std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + std::string(24, 'a')};
  std::mt19937 random(3);
  for (const std::string& original : originals)
    for (int k = 0; k < 20000; ++k) {
      std::string bytes = original;
      for (uint32_t changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes) {
        const size_t at = random() % bytes.size();
        switch (random() % 4) {
          case 0: bytes[at] = static_cast<char>(random()); break;
          case 1: bytes.erase(at, random() % 5); break;
          case 2: bytes.insert(at, 1 + random() % 3, static_cast<char>(random())); break;
          default: bytes.resize(at + 1);
        }
      }
      std::string problem;
      const TensorFile t = read_bytes(bytes, problem);
      if (!problem.empty()) continue;
      EXPECT_EQ(t.data.size(), tensor_file::count(t.dims) * t.type->bytes);
    }
}

}  // namespace
}  // namespace sinter
