// TfIdfVectorizer on integers: counts by hand, skips, modes and refusals.
#include "ops/run_node.h"

namespace sinter::node_test {
namespace {

using I = std::vector<int64_t>;

// The pool: 2, 3 and (2, 3), (5, 2).
Attrs pool(const char* mode, int64_t least, int64_t most, int64_t skips, I columns = {0, 1, 2, 3}) {
  return {{"mode", std::string(mode)},
          {"min_gram_length", least},
          {"max_gram_length", most},
          {"max_skip_count", skips},
          {"pool_int64s", I{2, 3, 2, 3, 5, 2}},
          {"ngram_counts", I{0, 2}},
          {"ngram_indexes", std::move(columns)}};
}

TEST(TfIdfVectorizer, CountsSkipsAndModes) {
  const Tensor x = ints({2, 3, 5, 2, 2, 9, 2, 3}, {2, 4});
  expect_tensor(run("TfIdfVectorizer", {x}, pool("TF", 1, 2, 0)), floats({2, 1, 1, 1, 2, 1, 1, 0}, {2, 4}));
  expect_tensor(run("TfIdfVectorizer", {x}, pool("TF", 2, 2, 2)), floats({0, 0, 1, 1, 0, 0, 2, 0}, {2, 4}));
  expect_tensor(run("TfIdfVectorizer", {ints({2, 3})}, pool("TF", 1, 1, 5, {3, 0, 1, 2})),
                floats({1, 0, 0, 1}));
  Attrs weighted = pool("IDF", 1, 2, 0);
  weighted.emplace_back("weights", std::vector<float>{2, 3, 4, 5});
  expect_tensor(run("TfIdfVectorizer", {x}, weighted), floats({2, 3, 4, 5, 2, 3, 4, 0}, {2, 4}));
  weighted[0].second = std::string("TFIDF");
  expect_tensor(run("TfIdfVectorizer", {x}, weighted), floats({4, 3, 4, 5, 4, 3, 4, 0}, {2, 4}));
}

TEST(TfIdfVectorizer, Refusals) {
  const auto type = [](const Attrs& a, DType t = DType::kI64, Shape s = {2, 4}) {
    return inferred("TfIdfVectorizer", {{t, s}}, a);
  };
  const std::string label = "\"node\" (TfIdfVectorizer): ";
  EXPECT_EQ(type(pool("TF", 1, 2, 0)), "float32[2,4]");
  EXPECT_EQ(type(pool("TF", 1, 2, 0), DType::kF32), label + "only for int32 and int64, not float32");
  EXPECT_EQ(type(pool("TF", 1, 2, 0), DType::kI64, {}), label + "a sequence of shape []");
  EXPECT_EQ(type(pool("BM25", 1, 2, 0)), label + "its mode is \"BM25\"");
  EXPECT_EQ(type(pool("TF", 2, 1, 0)), label + "n-grams of 2 to 1 elements");
  EXPECT_EQ(type(pool("TF", 1, 2, -1)), label + "its max_skip_count is -1");
  EXPECT_EQ(type(pool("TF", 1, 2, 0, {0, 1, 2})), label + "3 ngram_indexes are too few for the pool");
  EXPECT_EQ(type(pool("TF", 1, 2, 0, {0, 1, 2, -3})), label + "its ngram_indexes holds -3");
  Attrs text = pool("TF", 1, 2, 0);
  text.emplace_back("pool_strings", std::vector<std::string>{"a"});
  EXPECT_EQ(type(text), label + "its pool_strings are text, which is not supported");
}

}  // namespace
}  // namespace sinter::node_test
