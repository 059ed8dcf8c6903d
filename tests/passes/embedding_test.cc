// fuse_embedding on the forms that exporters write, and on what must stay: golden text and equal values.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  size_t embeddings = 1;
};

const Form kForms[] = {
    {"embedding_bert",
     "(int64[N,5] ids, int64[N,5] types, float[9,8] w_w, float[1,5,8] w_p, float[4,8] w_t, float[8] w_s, "
     "float[8] "
     "w_b) => (float[N,5,8] y)",
     "a = Gather(w_w, ids)  b = Add(a, w_p)  c = Gather<axis = -2>(w_t, types)  d = Add(b, c)"
     "y = LayerNormalization<epsilon = 0.001>(d, w_s, w_b)"},
    {"embedding_positions_of_all",
     "(int64[N,S] ids, int32[1,S] at, float[9,8] w_w, float[7,8] w_p, float[8] w_s) => (float[N,S,8] y)",
     "a = Gather(w_w, ids)  b = Gather(w_p, at)  d = Add(b, a)  y = LayerNormalization(d, w_s)"},
    {"embedding_root_mean_square", "(int64[N,S] ids, float[9,6] w_w, float[6] w_s) => (float[N,S,6] y)",
     "a = Gather(w_w, ids)  y = RMSNormalization(a, w_s)"},
    {"embedding_sum_used_twice",
     "(int64[N,S] ids, int64[N,S] at, float[9,6] w_w, float[7,6] w_p, float[6] w_s) => (float[N,S,6] y, "
     "float[N,S,6] d)",
     "a = Gather(w_w, ids)  b = Gather(w_p, at)  d = Add(a, b)  y = LayerNormalization(d, w_s)"},
    {"embedding_part_of_positions",
     "(int64[N,4] ids, float[9,6] w_w, float[7,6] p, float[6] w_s) => (float[N,4,6] y)",
     "zero = Constant<value = int64[1] {0}>()  four = Constant<value = int64[1] {4}>()  b = Slice(p, zero, "
     "four, "
     "zero)  a = Gather(w_w, ids)  d = Add(a, b)  y = LayerNormalization(d, w_s)"},
    // ---- what stays
    {"no_embedding_rows_used",
     "(int64[N,S] ids, float[9,6] w_w, float[6] w_p) => (float[N,S,6] y, float[N,S,6] a)",
     "a = Gather(w_w, ids)  y = Add(a, w_p)", 0},
    {"no_embedding_product",
     "(int64[N,S] ids, float[9,6] w_w, float[N,S,6] x, float[6,6] w_m) => (float[N,S,6] y)",
     "a = Gather(w_w, ids)  m = MatMul(x, w_m)  y = Add(a, m)", 0},
    {"no_embedding_columns", "(int64[N] ids, float[6,9] w_w, float[N] x) => (float[6,N] y)",
     "a = Gather<axis = 1>(w_w, ids)  y = Add(a, x)", 0},
    {"no_embedding_wider_sum", "(int64[N,1] ids, float[9,1] w_w, float[6] w_p) => (float[N,1,6] y)",
     "a = Gather(w_w, ids)  y = Add(a, w_p)", 0},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

class EmbeddingForm : public testing::TestWithParam<Form> {};

TEST_P(EmbeddingForm, SameTextAndValues) {
  const Form& f = GetParam();
  const ProvedForm p =
      prove_form({f.name, "fuse_embedding", "embedding"}, graph_of(model_of(f.signature, f.nodes, 23)));
  EXPECT_EQ(count_op(*p.after, "embedding"), f.embeddings);
}

// An index outside its table is the error that Gather makes of it.
TEST(Embedding, ChecksIndices) {
  const std::unique_ptr<Graph> g = graph_of(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (int64[N] ids, float[9,6] w_w, float[6] w_s) => "
      "(float[N,6] y)"
      " { a = Gather(w_w, ids)  y = LayerNormalization(a, w_s) }");
  run_only(*g, {"fuse_embedding"});
  ASSERT_EQ(count_op(*g, "embedding"), 1u);
  EXPECT_NO_THROW(evaluate(*g, {Tensor::of(std::vector<int64_t>{8, -9})}));
  EXPECT_THROW(evaluate(*g, {Tensor::of(std::vector<int64_t>{9, 0})}), Refusal);
  EXPECT_THROW(evaluate(*g, {Tensor::of(std::vector<int64_t>{0, -10})}), Refusal);
}

INSTANTIATE_TEST_SUITE_P(All, EmbeddingForm, testing::ValuesIn(kForms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sinter
