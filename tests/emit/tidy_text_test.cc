// What becomes of a line's neutral terms, and where long ones are broken.
#include "emit/tidy_text.h"

#include <gtest/gtest.h>

namespace sinter {
namespace {

TEST(TidyText, NeutralTermsGo) {
  const std::pair<const char*, const char*> cases[] = {
      {"f(w + 0);", "f(w);"},
      {"f(w + 0, 1);", "f(w, 1);"},
      {"x[i + 0] = y;", "x[i] = y;"},
      {"wp + (k0 * 3 + 0) * (1 * kVectors * kLanes)", "wp + (k0 * 3) * (kVectors * kLanes)"},
      {"mac(sum, x + (ox) * 8, 8, wp + 0 * (8 * kVectors * kLanes), 8);", "mac(sum, x + ox * 8, 8, wp, 8);"},
      {"a + ox * 1, 1", "a + ox, 1"},
      {"y + (ci * 0 + 1 * k)", "y + (ci * 0 + k)"},
      {"f(0 * n * 4 + i)", "f(i)"},
      {"a = 0 + b;", "a = b;"},
      // What only looks like them.
      {"x + 0.5f", "x + 0.5f"},
      {"x + 0 * y", "x"},
      {"x + 0x10", "x + 0x10"},
      {"x * 16", "x * 16"},
      {"x * 1.5f", "x * 1.5f"},
      {"a / 0 * b", "a / 0 * b"},
      {"a - 0 * b", "a - 0 * b"},
      {"10 * b", "10 * b"},
      {"f(10 * b)", "f(10 * b)"},
      {"x + 0 / y", "x + 0 / y"},
      {"x = (y) + 1;", "x = (y) + 1;"},
      {"#define A x + 0", "#define A x + 0"},
      {"f(\"a + 0\", b + 0);", "f(\"a + 0\", b + 0);"},
      {"f(b + 0);  // (x) * 1 + 0", "f(b);  // (x) * 1 + 0"},
  };
  for (const auto& [from, to] : cases) EXPECT_EQ(tidied(from), to) << from;
}

TEST(TidyText, LongLinesAreBrokenAtTheirOutermostCommas) {
  EXPECT_EQ(wrapped("call(first, inner(a, b), last);", 2, 80), "  call(first, inner(a, b), last);\n");
  EXPECT_EQ(wrapped("call(first_argument, inner(aaaaaaaaaaaaaa, bbbbbbbbbbbbbb), last);", 2, 40),
            "  call(first_argument,\n      inner(aaaaaaaaaaaaaa,\n      bbbbbbbbbbbbbb), last);\n");
  // Nothing to break at, and what must not be broken.
  const std::string word(60, 'x');
  EXPECT_EQ(wrapped(word, 0, 40), word + "\n");
  EXPECT_EQ(wrapped("#define A(x, y) " + word, 0, 40), "#define A(x, y) " + word + "\n");
  EXPECT_EQ(wrapped("f(\"" + word + "\", 1);", 0, 40), "f(\"" + word + "\", 1);\n");
  // A comment doesn't count.
  EXPECT_EQ(wrapped("f(a, b);  // " + word, 0, 40), "f(a, b);  // " + word + "\n");
}

}  // namespace
}  // namespace sinter
