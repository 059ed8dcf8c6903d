// keep_codes: matrices of integers behind dequantisation or casts stay coded where floats are multiplied by
// them and where rows of them are looked up, in every form that exporters write; what codes can't say stays
// floats.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  size_t products, rows;  // of codes, behind the pass
  size_t exact = 0;       // both of them with --exact
};

// Larger than what import folds.
const char* kBytes = "(float[N,200] x, int8[200,24] w_w, float[24] w_s, int8[24] w_z) => (float[N,24] y)";
const char* kTurned = "(float[N,200] x, int8[24,200] w_w, float[24] w_s, int8[24] w_z) => (float[N,24] y)";
const char* kBlocks = "(float[N,40] x, uint8[40,6] w_w, float[3,6] w_s, uint8[3,6] w_z) => (float[N,6] y)";
const char* kRowBlocks = "(float[N,40] x, int8[6,40] w_w, float[6,3] w_s) => (float[N,6] y)";
const char* kTable =
    "(int64[N] i, float[N,24] x, uint8[20,24] w_w, float[20] w_s) => (float[N,24] y, float[N,20] z)";

const Form kForms[] = {
    {"channel", kBytes, "{c} d = DequantizeLinear<axis = 1>(w_w, w_s, w_z) y = MatMul(x, d)", 1, 0, 1},
    {"one_scale", kBytes, "{c} d = DequantizeLinear(w_w, one) y = MatMul(x, d)", 1, 0, 1},
    {"transposed", kTurned,
     "{c} d = DequantizeLinear<axis = 0>(w_w, w_s, w_z) t = Transpose(d) y = MatMul(x, t)", 1, 0, 1},
    {"gemm", kTurned, "{c} d = DequantizeLinear<axis = 0>(w_w, w_s, w_z) y = Gemm<transB = 1>(x, d, w_s)", 1,
     0, 1},
    {"blocks", kBlocks, "d = DequantizeLinear<axis = 0, block_size = 16>(w_w, w_s, w_z) y = MatMul(x, d)", 1,
     0, 1},
    {"blocks_of_rows", kRowBlocks,
     "d = DequantizeLinear<axis = 1, block_size = 16>(w_w, w_s) y = Gemm<transB = 1>(x, d)", 1, 0, 1},
    {"cast_mul", kBytes, "{c} f = Cast<to = 1>(w_w) d = Mul(f, w_s) y = MatMul(x, d)", 1, 0, 1},
    {"mul_cast", kBytes, "{c} f = Cast<to = 1>(w_w) d = Mul(one, f) y = MatMul(x, d)", 1, 0, 1},
    {"cast_sub_mul", kBytes,
     "{c} f = Cast<to = 1>(w_w) zf = Cast<to = 1>(w_z) m = Sub(f, zf) d = Mul(m, w_s) y = MatMul(x, d)", 1, 0,
     1},
    {"cast", kBytes, "f = Cast<to = 1>(w_w) y = MatMul(x, f)", 1, 0, 1},
    {"halves", "(float16[N,24] x, int8[24,6] w_w, float16[6] w_s) => (float16[N,6] y)",
     "d = DequantizeLinear<axis = 1>(w_w, w_s) y = MatMul(x, d)", 1, 0},
    {"rounded_scale", kBytes,
     "{c} sh = Cast<to = 10>(w_s) d = DequantizeLinear<axis = 1>(w_w, sh) df = Cast<to = 1>(d) y = MatMul(x, "
     "df)",
     1, 0},
    {"tied", kTable,
     "d = DequantizeLinear<axis = 0>(w_w, w_s) y = Gather(d, i) t = Transpose(d) z = MatMul(x, t)", 1, 1, 2},
    {"looked_up", "(int64[N] i, int8[20,32] w_w, float[20,2] w_s) => (float[N,32] y)",
     "d = DequantizeLinear<axis = 1, block_size = 16>(w_w, w_s) y = Gather(d, i)", 0, 1, 1},
    // Not: scales along the summed axis, blocks that vectors don't fill, another reader, rows of bytes.
    {"scales_of_rows", "(float[N,24] x, int8[24,6] w_w, float[24] w_s) => (float[N,6] y)",
     "d = DequantizeLinear<axis = 0>(w_w, w_s) y = MatMul(x, d)", 0, 0},
    {"small_blocks", "(float[N,24] x, int8[24,6] w_w, float[3,6] w_s) => (float[N,6] y)",
     "d = DequantizeLinear<axis = 0, block_size = 8>(w_w, w_s) y = MatMul(x, d)", 0, 0},
    {"read_as_floats",
     "(float[N,24] x, int8[24,6] w_w, float[6] w_s, int8[6] w_z) => (float[N,6] y, float[6] r)",
     "{c} d = DequantizeLinear<axis = 1>(w_w, w_s, w_z) y = MatMul(x, d) a = Constant<value = int64[1] "
     "{0}>() "
     "r = ReduceMax<keepdims = 0>(d, a)",
     0, 0},
    {"rows_of_bytes", "(int8[N,24] x, int8[24,6] w_w, float[6] w_s, int8[6] w_z) => (float[N,6] y)",
     "{c} d = DequantizeLinear<axis = 1>(w_w, w_s, w_z) xd = DequantizeLinear(x, one) y = MatMul(xd, d)", 0,
     0},
};

std::string model_of_form(const Form& f) {
  std::string nodes = f.nodes;
  const std::string constants =
      "s = Constant<value = float[6] {0.25, 0.5, 0.125, 1.0, 0.5, 2.0}>() one = Constant<value = float "
      "{0.5}>() "
      "z = Constant<value = int8[6] {0, 3, -7, 100, -128, 127}>() ";
  if (const size_t at = nodes.find("{c}"); at != std::string::npos) nodes.replace(at, 3, constants);
  return model_of(f.signature, nodes, 21);
}

class KeepCodes : public testing::TestWithParam<Form> {};

TEST_P(KeepCodes, InEveryForm) {
  const Form& f = GetParam();
  const auto before = graph_of(model_of_form(f));
  const double tolerance =
      std::string_view(f.name) == "halves" || std::string_view(f.name) == "rounded_scale" ? 2e-3 : 1e-5;
  const auto after = before->clone();
  run_only(*after, {"lower_ops", "keep_codes"});
  EXPECT_EQ(count_op(*after, "product_of_codes"), f.products) << text(*after);
  EXPECT_EQ(count_op(*after, "rows_of_codes"), f.rows) << text(*after);
  expect_same_values(*before, *after, tolerance, {1, 5});
  const auto all = before->clone();
  run_only(*all, {"all"});
  EXPECT_EQ(count_op(*all, "product_of_codes"), f.products);
  expect_same_values(*before, *all, tolerance, {1, 5});
  const auto exact = before->clone();
  run_only(*exact, {"lower_ops", "keep_codes"}, true);
  EXPECT_EQ(count_op(*exact, "product_of_codes") + count_op(*exact, "rows_of_codes"), f.exact);
  expect_same_values(*before, *exact, 1e-6, {1, 5});
}
INSTANTIATE_TEST_SUITE_P(Forms, KeepCodes, testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

// A table that is looked up and multiplied by is one set of constants.
TEST(KeepCodes, TiesATable) {
  const auto g = graph_of(model_of_form(kForms[12]));
  run_only(*g, {"all"});
  const Node *rows = nullptr, *product = nullptr;
  for (const auto& n : g->nodes) {
    if (n->op->name == std::string_view("rows_of_codes")) rows = n.get();
    if (n->op->name == std::string_view("product_of_codes")) product = n.get();
  }
  ASSERT_TRUE(rows && product) << text(*g);
  for (const size_t i : {1, 2}) EXPECT_EQ(rows->inputs[i], product->inputs[i]);
}

}  // namespace
}  // namespace sinter
