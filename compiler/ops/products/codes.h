// Codes: constant matrices of floats as integers of 2, 4 or 8 bits with a scale and a zero point for each
// block of a row, as com.microsoft's MatMulNBits has them. They stay coded from import to the device.
//
// A matrix has n rows of k codes. A row is whole blocks of `block` codes, the last one filled up, in bytes of
// 8 / bits codes, the first one lowest. Weight (row, i) is (code - zero) * scale of its block. Scales are
// floats of any width, [n][blocks]; zero points are codes, [n] rows in whole bytes, or floats, [n][blocks];
// without them all are the attribute `zero`.
#pragma once
#include "ops/op.h"

namespace sinter {

struct CodeForm {
  int64_t n, k, bits, block;
  double zero;  // of all blocks, where there are no zero points
  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t row_bytes() const { return blocks() * block * bits / 8; }
  int64_t zero_row_bytes() const { return (blocks() * bits + 7) / 8; }
};

// The attributes N, K, bits, block_size and `zero`, which is 2^(bits - 1) where it is absent.
CodeForm code_form(const Attributes&);
Attributes attributes_of(const CodeForm&);
// Why there can't be such codes, with scales and zero points (null: none) of these types, whose elements are
// counted; empty where there can.
std::string wrong_codes(const CodeForm&, const Tensor& codes, const Tensor& scales, const Tensor* zeros);

// The matrix's parts, as the inputs 1, 2 and 3 of our operators have them.
struct Codes {
  CodeForm form;
  Tensor codes, scales, zeros;  // zeros: empty where there are none
  int code(int64_t row, int64_t i) const { return element(codes.as<uint8_t>() + row * form.row_bytes(), i); }
  bool has_packed_zeros() const { return zeros && zeros.dtype() == DType::kU8; }
  int packed_zero(int64_t row, int64_t block) const {
    return element(zeros.as<uint8_t>() + row * form.zero_row_bytes(), block);
  }
  double zero(int64_t row, int64_t block) const {
    return !zeros               ? form.zero
           : has_packed_zeros() ? packed_zero(row, block)
                                : zeros.real(row * form.blocks() + block);
  }
  float weight(int64_t row, int64_t i) const {
    const int64_t block = i / form.block;
    return static_cast<float>((code(row, i) - zero(row, block)) * scales.real(row * form.blocks() + block));
  }
  Tensor matrix() const;  // float32 [n][k]

 private:
  int element(const uint8_t* bytes, int64_t i) const {
    const int64_t each = 8 / form.bits;
    return (bytes[i / each] >> (i % each * form.bits)) & ((1 << form.bits) - 1);
  }
};
// Of a `product_of_codes` or `rows_of_codes`, whose codes are constants.
Codes codes_of(const Node&);
// Whether the node is one of domain "sinter" with this name.
bool is_of_codes(const Node&, std::string_view name);

}  // namespace sinter
