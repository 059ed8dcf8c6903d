// product_of_codes and rows_of_codes (domain sinter): constant matrices that stay coded (codes.h) where they
// are multiplied, and where rows of them are read. Lowering of com.microsoft's operators and pass keep_codes
// make them; the matrix is [n][k] in both.
//
//   product_of_codes(x [.., k], codes, scales, zeros?)   x times the matrix, transposed: [.., n]
//   rows_of_codes(indices, codes, scales, zeros?)        rows of the matrix: [indices .., k]; an index may
//                                                        count from the end, one outside is an error of the
//                                                        run
//
// The attribute accuracy_level is MatMulNBits's: with 4, the kernel may round x to bytes, block by block.
// With `floats` it may not even take x for numbers of 24 bits in units of a block's largest. Evaluation does
// neither.
#include "ops/products/codes.h"

#include "ops/movement/movement.h"
#include "ops/products/contraction.h"

namespace sinter {

CodeForm code_form(const Attributes& a) {
  const int64_t bits = a.integer("bits", 4);
  return {
      a.integer("N", 0), a.integer("K", 0), bits, a.integer("block_size", 0),
      a.real("zero", static_cast<float>(int64_t{1} << std::min<int64_t>(std::max<int64_t>(bits - 1, 0), 8)))};
}

Attributes attributes_of(const CodeForm& f) {
  Attributes a;
  a.set("K", f.k);
  a.set("N", f.n);
  a.set("bits", f.bits);
  a.set("block_size", f.block);
  a.set("zero", static_cast<float>(f.zero));
  return a;
}

std::string wrong_codes(const CodeForm& f, const Tensor& codes, const Tensor& scales, const Tensor* zeros) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (f.bits != 2 && f.bits != 4 && f.bits != 8) return fmt::format("{} bits are not supported", f.bits);
  if (f.k <= 0 || f.n <= 0 || f.k >= kMost || f.n >= kMost) return fmt::format("K is {}, N is {}", f.k, f.n);
  if (f.block <= 0 || f.block >= 2 * kMost || f.block * f.bits % 8 != 0)
    return fmt::format("block_size is {}", f.block);
  if (codes.dtype() != DType::kU8 || codes.size() / f.row_bytes() != f.n || codes.size() % f.row_bytes() != 0)
    return fmt::format("{} bytes of weights for K {} and N {}", codes.size(), f.k, f.n);
  const int64_t blocks = f.blocks();
  if (!is_float(scales.dtype()) || scales.size() / blocks != f.n || scales.size() % blocks != 0)
    return fmt::format("{} scales of {} for {} rows of {} blocks", scales.size(), name_of(scales.dtype()),
                       f.n, blocks);
  if (!zeros) return "";
  const bool packed = zeros->dtype() == DType::kU8;
  if (!packed && !is_float(zeros->dtype())) return fmt::format("zero points of {}", name_of(zeros->dtype()));
  const int64_t each = packed ? f.zero_row_bytes() : blocks;
  if (zeros->size() / each != f.n || zeros->size() % each != 0)
    return fmt::format("{} zero points for {} rows of {} blocks", zeros->size(), f.n, blocks);
  return "";
}

Tensor Codes::matrix() const {
  Tensor m(DType::kF32, {form.n, form.k});
  for (int64_t row = 0; row < form.n; ++row)
    for (int64_t i = 0; i < form.k; ++i) m.as<float>()[row * form.k + i] = weight(row, i);
  return m;
}

Codes codes_of(const Node& n) {
  return {code_form(n.attributes), *n.inputs[1]->data, *n.inputs[2]->data,
          n.anchor_inputs > 3 && n.inputs[3] ? *n.inputs[3]->data : Tensor()};
}

bool is_of_codes(const Node& n, std::string_view name) {
  return n.op->domain == std::string_view("sinter") && n.op->name == name;
}

namespace {

CodeForm checked_form(const Inference& x) {
  const CodeForm f = code_form(x.attributes());
  const bool zeros = own_inputs(x) > 3 && x.has(3);
  x.require(x.in[1].data && x.in[2].data && (!zeros || x.in[3].data), "the weights must be constants");
  const std::string wrong = wrong_codes(f, *x.in[1].data, *x.in[2].data, zeros ? x.in[3].data : nullptr);
  x.require(wrong.empty(), wrong);
  return f;
}

Codes codes_of(const Evaluation& e) {
  return {code_form(e.attributes()), e.in[1], e.in[2],
          e.node.anchor_inputs > 3 && e.has(3) ? e.in[3] : Tensor()};
}

void infer_product(Inference& x) {
  const CodeForm f = checked_form(x);
  x.require(x.dtype(0) == DType::kF32, fmt::format("not for {}", name_of(x.dtype(0))));
  x.require(x.rank(0) >= 2, fmt::format("input {}", text(x.shape(0))));
  x.require_equal(x.shape(0).back(), Dim(f.k), "inner extents");
  Shape out = x.shape(0);
  out.back() = Dim(f.n);
  x.set(0, DType::kF32, std::move(out));
}

void eval_product(Evaluation& e) {
  const Codes c = codes_of(e);
  const Tensor w = c.matrix();
  if (e.out[0].size() == 0) return;
  multiply(false, true, e.out[0].size() / c.form.n, c.form.n, c.form.k, e.in[0].as<float>(), c.form.k,
           w.as<float>(), c.form.k, e.out[0].as<float>(), c.form.n);
}

void infer_rows(Inference& x) {
  const CodeForm f = checked_form(x);
  require_index_type(x, 0, "indices");
  Shape out = x.shape(0);
  out.emplace_back(f.k);
  x.set(0, DType::kF32, std::move(out));
}

void eval_rows(Evaluation& e) {
  const Codes c = codes_of(e);
  float* to = e.out[0].as<float>();
  for (int64_t row : e.in[0].integers()) {
    if (row < -c.form.n || row >= c.form.n)
      e.fail(fmt::format("index {} out of range for {} rows", row, c.form.n));
    if (row < 0) row += c.form.n;
    for (int64_t i = 0; i < c.form.k; ++i) *to++ = c.weight(row, i);
  }
}

}  // namespace

const std::vector<Op>& ops_codes() {
  static const std::vector<Op> table = {
      {.name = "product_of_codes",
       .domain = "sinter",
       .min_inputs = 3,
       .max_inputs = 4,
       .infer = infer_product,
       .eval = eval_product,
       .note = "made by lowering and keep_codes"},
      {.name = "rows_of_codes",
       .domain = "sinter",
       .min_inputs = 3,
       .max_inputs = 4,
       .infer = infer_rows,
       .eval = eval_rows,
       .note = "made by lowering and keep_codes"},
  };
  return table;
}

}  // namespace sinter
