// look_up_one_hot: the same values for indices inside, below and beyond; and what must stay.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  size_t products;  // that stay
};

const char* kHot = "d = Constant<value = int64 {5}>()  v = Constant<value = float[2] {0.0, 1.0}>()";

const Form kForms[] = {
    {"alone", "(int64[N,4] ids, float[5,3] w_w) => (float[N,4,3] y)",
     "h = OneHot(ids, d, v)  y = MatMul(h, w_w)", 0},
    {"with_epilogue", "(int32[N,4] ids, float[5,3] w_w, float[3] w_b) => (float[N,4,3] y)",
     "h = OneHot(ids, d, v)  m = MatMul(h, w_w)  a = Add(m, w_b)  y = Tanh(a)", 0},
    {"other_values_and_rows", "(int64[N,4] ids, float[5,3] w_w) => (float[r,3] y)",
     "u = Constant<value = float[2] {0.5, -2.0}>()  h = OneHot<axis = 2>(ids, d, u)  s = Constant<value = "
     "int64[2] "
     "{-1, 5}>()  x = Reshape(h, s)  y = MatMul(x, w_w)",
     0},
    // ---- what stays
    {"hot_axis_not_last", "(int64[5,N] ids, float[5,3] w_w) => (float[5,N,3] y)",
     "h = OneHot<axis = 1>(ids, d, v)  p = Transpose<perm = [0, 2, 1]>(h)  y = MatMul(p, w_w)", 1},
    {"operand_of_each_row", "(int64[N,4] ids, float[5,3] w_w, float[N,4,3] b) => (float[N,4,3] y)",
     "h = OneHot(ids, d, v)  m = MatMul(h, w_w)  y = Add(m, b)", 1},
    {"computed_weights", "(int64[N,4] ids, float[5,3] w) => (float[N,4,3] y)",
     "h = OneHot(ids, d, v)  y = MatMul(h, w)", 1},
    {"whole_numbers_as_floats", "(float[N,4] ids, float[5,3] w_w) => (float[N,4,3] y)",
     "h = OneHot(ids, d, v)  y = MatMul(h, w_w)", 1},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

class OneHotForm : public testing::TestWithParam<Form> {};

TEST_P(OneHotForm, SameValues) {
  const Form& f = GetParam();
  const std::unique_ptr<Graph> before = graph_of(model_of(f.signature, fmt::format("{}  {}", kHot, f.nodes)));
  const std::unique_ptr<Graph> after = before->clone();
  run_only(*after, {"fold_constants", "fuse_epilogue", "look_up_one_hot"});
  EXPECT_EQ(count_op(*after, "MatMul"), f.products);
  EXPECT_EQ(count_op(*after, "Gather"), 1 - f.products);
  std::vector<Tensor> inputs = inputs_of(*before, 3, 11);
  for (int64_t i = 0; i < inputs[0].size(); ++i) {
    const int64_t id = i % 15 - 8;  // of five: those in [-5, 5) are hot
    if (is_float(inputs[0].dtype()))
      inputs[0].set_real(i, static_cast<double>(id));
    else
      inputs[0].set_integer(i, id);
  }
  const Tensor want = evaluate(*before, inputs)[0], got = evaluate(*after, inputs)[0];
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.size(); ++i) EXPECT_FLOAT_EQ(got.real(i), want.real(i)) << i;
}

INSTANTIATE_TEST_SUITE_P(All, OneHotForm, testing::ValuesIn(kForms),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace sinter
