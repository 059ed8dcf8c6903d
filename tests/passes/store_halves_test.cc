// store_halves: which factors become halves, and what the layer makes of them.
#include <gtest/gtest.h>

#include <cmath>

#include "emit/sheet.h"
#include "passes/passes.h"

namespace sinter {
namespace {

// Numbers that no half holds, times `scale`; the first is `first`.
Tensor thirds(double scale, double first) {
  Tensor t(DType::kF32, {16, 8});
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, scale * (static_cast<double>(i % 11) - 5) / 3);
  t.set_real(0, first);
  return t;
}

struct Case {
  const char* what;
  double scale, first;
  double limit;  // of the error
  bool kept;     // by name
  bool exact;
  bool becomes_halves;
};

TEST(StoreHalves, FactorsAreRoundedWhereHalvesHoldThem) {
  const Case cases[] = {
      {"weights", 1, 0.7, 1e-2, false, false, true},
      {"beyond a half's range", 1, 1e5, 1e-2, false, false, false},
      {"few digits so close to zero", 1e-7, 1e-7, 1e-2, false, false, false},
      {"halves already", 3, 1, 1e-2, false, false, false},
      {"a limit below what is lost", 1, 0.7, 1e-6, false, false, false},
      {"kept by name", 1, 0.7, 1e-2, true, false, false},
      {"exact", 1, 0.7, 1e-2, false, true, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Sheet s;
    const Tensor w = thirds(c.scale, c.first);
    Node* n = s.add("MatMul", {floats({4, 16}), constant(w)});
    Tensor x(DType::kF32, {4, 16});
    for (int64_t i = 0; i < x.size(); ++i) x.set_real(i, std::sin(static_cast<double>(i)));
    PassOptions options;
    options.half_weights = true;
    options.half_error = c.limit;
    options.exact = c.exact;
    if (c.kept) options.keep_f32.insert(n->name);
    options.samples = {{x}};
    EXPECT_EQ(store_halves(s.graph(), options), c.becomes_halves);
    s.graph().verify();
    const Tensor& got = *n->inputs[1]->data;
    for (int64_t i = 0; i < w.size(); ++i) {
      const double half = w.converted(DType::kF16).real(i);
      ASSERT_EQ(got.real(i), c.becomes_halves ? half : w.real(i)) << i;
    }
    if (c.becomes_halves) {
      EXPECT_GT(n->freedom.half_error, 0);
      EXPECT_LT(n->freedom.half_error, 1e-3);
    }
  }
}

// Two products of one constant go on sharing it; a factor that is computed is nobody's to round.
TEST(StoreHalves, SharedFactorsStayShared) {
  Sheet s;
  const Arg w = constant(thirds(1, 0.7));
  Node* a = s.add("MatMul", {floats({4, 16}), w});
  Node* b = s.add("MatMul", {floats({2, 16}), floats({16, 8})});
  Node* c = s.add("MatMul", {floats({3, 16}), w});
  s.graph().set_input(c, 1, a->inputs[1]);
  PassOptions options;
  options.half_weights = true;
  ASSERT_TRUE(store_halves(s.graph(), options));
  EXPECT_EQ(a->inputs[1], c->inputs[1]);
  EXPECT_FALSE(b->inputs[1]->data.has_value());
  EXPECT_FALSE(store_halves(s.graph(), options));
}

}  // namespace
}  // namespace sinter
