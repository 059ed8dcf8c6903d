// Generated code of quantised operators and of casts to and from small types, against the interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "emit/sheet.h"

namespace sinter {
namespace {

Target const& on(const char* name) { return *find_target(name); }

void wide(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, static_cast<double>(random() % 60000) / 1000 - 30);
}
// Any code, NaN and infinity too, but only what a type of 4 or 2 bits can hold.
void codes(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i) {
    if (is_packed(t.dtype()))
      t.set_integer(i, static_cast<int64_t>(random() % (1 << bits_of(t.dtype()))) -
                           (is_signed(t.dtype()) ? 1 << (bits_of(t.dtype()) - 1) : 0));
    else
      t.as<uint8_t>()[i] = static_cast<uint8_t>(random() % (t.dtype() == DType::kF4E2M1 ? 16 : 256));
  }
}
void bytes(Tensor& t, std::mt19937& random) {
  for (int64_t i = 0; i < t.size(); ++i)
    t.set_integer(i, static_cast<int64_t>(random() % 256) - (is_signed(t.dtype()) ? 128 : 0));
}
Tensor filled(DType t, std::vector<int64_t> shape, const Fill& fill, unsigned seed) {
  Tensor c(t, std::move(shape));
  std::mt19937 random(seed);
  fill(c, random);
  return c;
}
Tensor scales(std::vector<int64_t> shape) {
  Tensor t(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, 0.125 * static_cast<double>(i + 1));
  return t;
}
Tensor one(DType t, int64_t v) {
  Tensor c(t, {});
  c.set_integer(0, v);
  return c;
}

constexpr DType kSmall[] = {DType::kI4,       DType::kU4,         DType::kI2,     DType::kU2,
                            DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
                            DType::kF4E2M1,   DType::kF8E8M0};

void add_casts(GeneratedBatch& batch) {
  Sheet s;
  for (const DType t : kSmall) {
    const int64_t to = onnx_of(t);
    for (const DType from : {DType::kF32, DType::kF16, DType::kI32})
      s.add("Cast", {values(from, {37}, wide)}, {{"to", to}});
    s.add("Cast", {values(t, {37}, codes)}, {{"to", int64_t{onnx_of(DType::kF32)}}});
    s.add("Cast", {values(t, {37}, codes)}, {{"to", int64_t{onnx_of(DType::kF16)}}});
    s.add("Transpose", {values(t, {3, 5}, codes)});
  }
  for (const DType t : {DType::kF8E4M3FN, DType::kF8E5M2})
    s.add("Cast", {values(DType::kF32, {37}, wide)}, {{"to", int64_t{onnx_of(t)}}, {"saturate", int64_t{0}}});
  s.into(batch, "casts", {{}});
}

void add_linear(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 4);
  for (const DType t :
       {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI4, DType::kU4, DType::kI2, DType::kU2}) {
    const bool byte = bits_of(t) == 8;
    s.add("QuantizeLinear", {floats({n, 45}, wide), constant(scales({})), constant(one(t, 1))});
    s.add("QuantizeLinear",
          {floats({n, 5, 9}, wide), constant(scales({5})),
           constant(filled(t, {5}, byte ? Fill(bytes) : Fill(random_fill), 3).converted(t))},
          {{"axis", int64_t{1}}});
    s.add("DequantizeLinear", {values(t, {n, 45}, bits_of(t) < 8 ? Fill(codes) : Fill(random_fill)),
                               constant(scales({})), constant(one(t, 1))});
    s.add("DequantizeLinear",
          {values(t, {n, 6}, bits_of(t) < 8 ? Fill(codes) : Fill(random_fill)), constant(scales({6}))},
          {{"axis", int64_t{-1}}});
  }
  s.add("QuantizeLinear",
        {floats({n, 45}, wide), floats({}, [](Tensor& t, std::mt19937&) { t.set_real(0, 0.3); }),
         constant(one(DType::kU8, 9))});
  s.add("QuantizeLinear", {floats({2, 7}, wide), constant(scales({2, 3}))},
        {{"axis", int64_t{1}}, {"block_size", int64_t{3}}});
  for (const DType t : {DType::kF8E4M3FN, DType::kF8E5M2, DType::kF4E2M1})
    s.add("QuantizeLinear", {floats({n, 45}, wide), constant(scales({}))},
          {{"output_dtype", int64_t{onnx_of(t)}}});
  s.add("DynamicQuantizeLinear", {floats({n, 45}, wide)}, {}, {true, true, true});
  s.into(batch, "linear", {{{"N", 1}}, {{"N", 3}}});
}

Arg zero(DType t, int64_t v) { return constant(one(t, v)); }

// Values around those where the rounded one changes, and what is no number: a division is not to be seen.
void add_ties(GeneratedBatch& batch) {
  Sheet s;
  const auto ties = [](float scale) {
    return [scale](Tensor& t, std::mt19937& random) {
      for (int64_t i = 0; i < t.size(); ++i) {
        float x = static_cast<float>((static_cast<double>(i / 5) - 270 + 0.5) * static_cast<double>(scale));
        for (int k = 0; k < i % 5; ++k) x = std::nextafter(x, i % 2 ? INFINITY : -INFINITY);
        t.set_real(i, static_cast<double>(x));
      }
      const double odd[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38, -0.0, 1e-42};
      for (const double v : odd)
        t.set_real(static_cast<int64_t>(random() % static_cast<unsigned>(t.size())), v);
    };
  };
  for (const float scale : {0.047244094f, 0.125f, 0.1f, 1.0f / 3, 1e-3f, 7.77f, 0.99999994f})
    for (const DType t : {DType::kI8, DType::kU8})
      for (const int64_t point : {0, 7, 120})
        s.add("QuantizeLinear",
              {floats({2701}, ties(scale)), constant(Tensor::scalar(scale)), zero(t, point)});
  s.into(batch, "ties", {{}}, {0, 0});
}

void add_products(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 4);
  const auto conv = [&](Shape x, std::vector<int64_t> w, const AttributeList& attributes) {
    const int64_t m = w[0];
    s.add("QLinearConv",
          {values(DType::kU8, x, bytes), constant(scales({})), zero(DType::kU8, 120),
           constant(filled(DType::kI8, w, bytes, 5)), constant(scales({m})),
           constant(filled(DType::kI8, {m}, random_fill, 6)), constant(Tensor::scalar(90.0f)),
           zero(DType::kU8, 100), constant(filled(DType::kI32, {m}, random_fill, 7))},
          attributes);
  };
  conv({Dim(1), Dim(3), Dim(9), Dim(11)}, {5, 3, 3, 3},
       {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  conv({n, Dim(8), Dim(6), Dim(7)}, {19, 8, 3, 2}, {{"pads", Ints{0, 1, 1, 0}}});
  conv({Dim(1), Dim(18), Dim(5), Dim(6)}, {18, 1, 3, 3},
       {{"group", int64_t{18}}, {"pads", Ints{1, 1, 1, 1}}});
  conv({Dim(1), Dim(6), Dim(5), Dim(6)}, {4, 3, 2, 2}, {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}});
  conv({Dim(1), Dim(16), Dim(30)}, {33, 16, 1}, {});
  s.add("ConvInteger", {values(DType::kI8, {Dim(1), Dim(2), Dim(5)}, bytes),
                        constant(filled(DType::kI8, {3, 2, 2}, bytes, 8))});
  s.add("ConvInteger", {values(DType::kI8, {Dim(1), Dim(2), Dim(5)}, bytes),
                        values(DType::kU8, {Dim(3), Dim(2), Dim(2)}, bytes), zero(DType::kI8, 4)});
  for (const int64_t k : {1, 7, 40})
    s.add("MatMulInteger",
          {values(DType::kU8, {n, Dim(k)}, bytes), constant(filled(DType::kI8, {k, 21}, bytes, 9)),
           zero(DType::kU8, 200), zero(DType::kI8, -3)});
  s.add("MatMulInteger", {values(DType::kI8, {Dim(2), Dim(3), Dim(4)}, bytes),
                          values(DType::kI8, {Dim(2), Dim(4), Dim(5)}, bytes)});
  s.add("QLinearMatMul",
        {values(DType::kU8, {n, Dim(3), Dim(12)}, bytes), constant(scales({})), zero(DType::kU8, 3),
         constant(filled(DType::kI8, {12, 7}, bytes, 2)), constant(scales({7})),
         constant(filled(DType::kI8, {7}, bytes, 1)), constant(Tensor::scalar(30.0f)), zero(DType::kI8, 0)});
  s.add("DynamicQuantizeMatMul",
        {floats({n, Dim(12)}), constant(filled(DType::kI8, {12, 7}, bytes, 2)), constant(scales({7}))});
  s.into(batch, "products", {{{"N", 1}}, {{"N", 4}}});
}

void add_microsoft(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 4);
  const auto x = [&](Shape shape) { return values(DType::kU8, std::move(shape), bytes); };
  const Arg scale = constant(scales({})), point = zero(DType::kU8, 128);
  s.add("QLinearAdd",
        {x({n, Dim(5), Dim(7)}), scale, point, x({Dim(5), Dim(1)}), scale, point, scale, point});
  s.add("QLinearMul", {x({n, Dim(35)}), scale, point, x({n, Dim(35)}), scale, absent(), scale, point});
  s.add("QLinearLeakyRelu", {x({n, Dim(35)}), scale, point, scale, point}, {{"alpha", 0.25f}});
  s.add("QLinearConcat", {scale, point, x({n, Dim(3)}), scale, point, x({n, Dim(4)}), scale, point},
        {{"axis", int64_t{1}}});
  s.into(batch, "microsoft", {{{"N", 1}}, {{"N", 3}}});
}

void add_tables(GeneratedBatch& batch) {
  Sheet s;
  const Dim n = s.symbol("N", 1, 4);
  for (const DType from : {DType::kU8, DType::kI8})
    for (const DType to : {DType::kU8, DType::kI8}) {
      const Arg table = constant(filled(to, {256}, bytes, 5));
      s.add("byte_table", {values(from, {n, 45}, bytes), table});
      s.add("byte_table", {values(from, {3}, bytes), table});
    }
  s.into(batch, "tables", {{{"N", 1}}, {{"N", 3}}}, {0, 0});
}

void add_all(GeneratedBatch& batch) {
  add_tables(batch);
  add_ties(batch);
  add_casts(batch);
  add_linear(batch);
  add_products(batch);
  add_microsoft(batch);
}

TEST(Quantize, OnAvx512) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(on("avx512")));
}
TEST(Quantize, OnSse42) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(on("x86-64-v2"), {.clang = true}));
}
TEST(Quantize, OnAarch64) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(on("aarch64")));
}
TEST(Quantize, Scalar) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(on("scalar")));
}
TEST(Quantize, WithSanitizers) {
  GeneratedBatch batch;
  add_all(batch);
  expect_good(batch.run(on("avx2"), {.sanitize = true}));
}

}  // namespace
}  // namespace sinter
