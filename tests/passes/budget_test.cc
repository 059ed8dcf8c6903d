// No model makes the compiler work or remember without end: what import and passes spend is counted, not
// timed.
#include "ir/budget.h"

#include "passes/proof.h"

namespace sinter {
namespace {

int64_t constant_bytes(const Graph& g) {
  std::map<const std::byte*, int64_t> tensors;
  for (const auto& v : g.values)
    if (v->data) tensors[v->data->data()] = v->data->bytes();
  int64_t sum = 0;
  for (const auto& [at, bytes] : tensors) sum += bytes;
  return sum;
}

std::unique_ptr<Graph> imported(const std::string& text) {
  return std::move(import_model(without_none(parse_text(text)), {}).graph);
}

// `each` makes a value r# for every # in 0 ... count-1; all of them are summed and added to the input.
std::string sum_of(const std::string& each, int count) {
  std::string text = "<ir_version: 9, opset_import: [\"\" : 23]> g (float[4] x) => (float[4] y) {\n";
  for (int i = 0; i < count; ++i) {
    std::string one = each;
    for (size_t at = 0; (at = one.find('#', at)) != std::string::npos;) one.replace(at, 1, std::to_string(i));
    text += one + fmt::format("\ns{} = ReduceSum <keepdims = 0> (r{}) all{} = Add({}, s{})\n", i, i, i,
                              i == 0 ? std::string("x") : fmt::format("all{}", i - 1), i);
  }
  return text + fmt::format("y = Identity(all{}) }}", count - 1);
}

std::string full(const std::string& name, const std::string& shape) {
  return "n" + name + " = Constant <value_ints = [" + shape + "]> () " + name +
         " = ConstantOfShape <value = float[1] {0.5}> (n" + name + ") ";
}

struct Hostile {
  const char* name;
  std::string each;
  int count;
};

std::vector<Hostile> hostile() {
  const std::string megabytes = full("c#", "16777216");
  return {
      {"cosines", megabytes + "r# = Cos(c#)", 40},
      {"expand",
       "e# = Constant <value_ints = [16777216]> () v# = Constant <value_float = 1.5> () r# = Expand(v#, e#)",
       40},
      {"tile",
       "e# = Constant <value_ints = [8388608]> () v# = Constant <value_floats = [1.0, 2.0]> () r# = Tile(v#, "
       "e#)",
       40},
      {"matmul", full("c#", "2048, 2048") + "r# = MatMul(c#, c#)", 20},
      {"matmul of few sums", full("a#", "4, 4194304") + full("b#", "4194304, 4") + "r# = MatMul(a#, b#)", 40},
      {"conv",
       full("c#", "1, 64, 128, 128") + full("w#", "64, 64, 31, 31") +
           "r# = Conv <pads = [15, 15, 15, 15]> (c#, w#)",
       4},
      {"pool",
       full("c#", "1, 1, 2048, 2048") +
           "r# = MaxPool <kernel_shape = [511, 511], pads = [255, 255, 255, 255]> (c#)",
       4},
      {"einsum",
       full("c#", "64, 64") + "r# = Einsum <equation = \"ab,cd,ef,gh,ij,kl->\"> (c#, c#, c#, c#, c#, c#)", 8},
      {"recurrent",
       full("c#", "4096, 1, 128") + full("w#", "1, 2048, 128") + full("q#", "1, 2048, 512") +
           "r# = LSTM <hidden_size = 512> (c#, w#, q#)",
       2},
      {"attention", full("c#", "1, 16, 4096, 64") + "r# = Attention(c#, c#, c#)", 4},
      {"determinant", full("c#", "2, 2048, 2048") + "r# = Det(c#)", 8},
      {"transforms", full("c#", "1, 65521, 1") + "p# = Constant <value_int = 1> () r# = DFT(c#, none, p#)",
       4},
      {"resize between",
       full("c#", "1, 1, 1, 65536") + "z# = Constant <value_ints = [1, 1, 65536, 1]> () r# = Resize <mode = "
                                      "\"linear\"> (c#, none, none, z#)",
       4},
      {"regions",
       full("c#", "1, 1, 4, 4") + "b# = Constant <value = float[1, 4] {0.0, 0.0, 1.0e9, 1.0e9}> () "
                                  "i# = Constant <value = int64[1] {0}> () r# = RoiAlign(c#, b#, i#)",
       4},
      {"doubling",
       "e0_# = Constant <value_floats = [1.0, 2.0]> () e1_# = Concat <axis = 0> (e0_#, e0_#) "
       "t# = Constant <value_ints = [4194304]> () r# = Tile(e1_#, t#)",
       40},
  };
}

TEST(Budget, ConstantsStayWithinIt) {
  for (const Hostile& h : hostile()) {
    SCOPED_TRACE(h.name);
    const std::unique_ptr<Graph> g = imported(sum_of(h.each, h.count));
    run_only(*g, {"lower_ops", "fold_constants"});
    // The base, and what honest tensors of a few numbers add to it.
    EXPECT_LE(static_cast<double>(constant_bytes(*g)), Budget::kFoldedBytes * 1.01);
    EXPECT_GT(g->nodes.size(), 1u) << "everything was folded, so that nothing was tested";
  }
}

TEST(Budget, RefusesAndTakesNothing) {
  Budget budget;
  EXPECT_NO_THROW(spend_folding(1e30));  // none is in use
  const Budget::Use use(budget);
  EXPECT_THROW(spend_folding(Budget::kFoldingSteps + 1), OverBudget);
  EXPECT_EQ(budget.folding_spent(), 0);
  spend_folding(Budget::kFoldingSteps);
  EXPECT_THROW(spend_folding(1), OverBudget);
  budget.add_tensor(2);
  spend_folding(2 * Budget::kFoldingStepsPerByte);
  EXPECT_THROW(spend_folding(1), OverBudget);
  EXPECT_THROW(spend_folding(std::nan("")), OverBudget);
  EXPECT_THROW(spend_inference(Budget::kInferenceSteps * 2), OverBudget);
  EXPECT_TRUE(budget.may_hold(Budget::kFoldedBytes + 2 * Budget::kFoldedBytesPerByte));
  EXPECT_FALSE(budget.may_hold(Budget::kFoldedBytes + 3 * Budget::kFoldedBytesPerByte));
}

TEST(Budget, UsesNest) {
  Budget outer, inner;
  const Budget::Use use(outer);
  {
    const Budget::Use again(inner);
    spend_folding(3);
  }
  spend_folding(4);
  EXPECT_EQ(inner.folding_spent(), 3);
  EXPECT_EQ(outer.folding_spent(), 4);
}

// A chain of foldings holds the tensors at hand, not all that ever were.
TEST(Budget, GivesBackWhatIsRead) {
  std::string chain = full("c", "4194304");
  std::string last = "c";
  for (int i = 0; i < 16; ++i) chain += fmt::format("d{} = Neg({}) ", i, last), last = fmt::format("d{}", i);
  const std::unique_ptr<Graph> g = imported(sum_of(chain + "r# = Identity(" + last + ")", 1));
  run_only(*g, {"fold_constants"});
  EXPECT_EQ(count_op(*g, "Neg"), 0u);  // 16 times 16 MB passed through
}

// What honest models bring they may fold, whatever the base.
TEST(Budget, GrowsWithTheModel) {
  const std::unique_ptr<Graph> g = graph_of(R"(<ir_version: 9, opset_import: ["" : 18]>
    g (float[1] x, float16[20000000] w_w) => (float[20000000] y) {
      f = Cast <to = 1> (w_w) n = Neg(f) y = Add(x, n) })");
  run_only(*g, {"fold_constants"});
  EXPECT_EQ(count_op(*g, "Cast") + count_op(*g, "Neg"), 0u);
}

}  // namespace
}  // namespace sinter
