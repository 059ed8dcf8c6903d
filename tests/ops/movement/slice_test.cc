// Slice, Split, Concat and Pad.
#include "ops/movement/movement_trial.h"

namespace sinter::movement_test {
namespace {

constexpr int64_t kMax = INT64_MAX, kMin = INT64_MIN;

TEST(Slice, AgreesWithPositionsOneByOne) {
  // Python's rule by hand: every start, end and step on short axes.
  const int64_t positions[] = {kMin, -6, -5, -2, -1, 0, 1, 3, 4, 5, 6, kMax};
  const int64_t steps[] = {1, 2, 3, 7, kMax, -1, -2, -7, kMin};
  for (int64_t n : {0, 1, 5})
    for (int64_t start : positions)
      for (int64_t end : positions)
        for (int64_t step : steps) {
          const auto front = [&](int64_t at) { return at < 0 ? at + n : at; };
          const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
          int64_t i = std::clamp(front(start), int64_t{0}, std::max<int64_t>(high, 0));
          const int64_t stop = std::clamp(front(end), low, std::max(high, low));
          std::string want;
          int64_t count = 0;
          while (n > 0 && (step > 0 ? i < stop : i > stop)) {
            want += fmt::format(" {}", i);
            ++count;
            if (step > n || step < -n) break;
            i += step;
          }
          Trial t("Slice");
          t.input({n}).ints({start}).ints({end}).ints({0}).ints({step});
          EXPECT_EQ(t.evaluated({iota({n})}), fmt::format("[{}]{}", count, want))
              << n << ": " << start << " " << end << " " << step;
        }
}

TEST(Slice, SymbolicFormsMeanTheSame) {
  // Extent and start as Dims of N and K, evaluated, are those of the same slice with numbers.
  struct Unknown {
    Interval n, k;
  };
  const Unknown unknowns[] = {{{0, Interval::kUnbounded}, {0, Interval::kUnbounded}},
                              {{1, 8}, {0, 4}},
                              {{3, Interval::kUnbounded}, {1, 3}},
                              {{0, 8}, {-4, -1}}};
  int known = 0;
  for (const Unknown& u : unknowns) {
    Symbols symbols;
    const Dim n(symbols.fresh("N", u.n, "test")), k(symbols.fresh("K", u.k, "test"));
    const Dim extents[] = {n, n + 2, n * 2};
    const Dim positions[] = {kMin, -5, -2, -1, 0, 1, 4, kMax, n, n - 1, n + 1, k, k + 2, n - k};
    for (const Dim& extent : extents)
      for (const Dim& start : positions)
        for (const Dim& end : positions)
          for (const int64_t step : {int64_t{1}, int64_t{3}, int64_t{-1}, int64_t{-2}}) {
            const auto size = slice_extent(extent, start, end, step);
            if (!size) continue;
            ++known;
            for (int64_t nv = u.n.lo; nv <= std::min<int64_t>(u.n.hi, u.n.lo + 6); ++nv)
              for (int64_t kv = u.k.lo; kv <= std::min<int64_t>(u.k.hi, u.k.lo + 6); ++kv) {
                const auto value = [&](const Symbol& s) { return s.name == "N" ? nv : kv; };
                const Dim e(extent.evaluate(value)), a(start.evaluate(value)), b(end.evaluate(value));
                const int64_t want = slice_extent(e, a, b, step)->value();
                const std::string which = fmt::format("{}[{}:{}:{}] N={} K={}", extent.text(), start.text(),
                                                      end.text(), step, nv, kv);
                ASSERT_EQ(size->evaluate(value), want) << which << ": " << size->text();
                ASSERT_TRUE(want >= size->lo() && want <= size->hi()) << which << ": " << size->text();
                if (want == 0) continue;
                ASSERT_EQ(slice_start(extent, start, step)->evaluate(value), slice_start(e, a, step)->value())
                    << which;
              }
          }
  }
  EXPECT_GT(known, 4000);
}

TEST(Slice, SymbolicExtents) {
  struct Case {
    int64_t start, end, step;
    std::string expected;
  };
  const Case table[] = {
      {0, kMax, 1, "float32[N,8]"},         {1, kMax, 1, "float32[N-1,8]"},
      {0, -1, 1, "float32[N-1,8]"},         {-1, kMax, 1, "float32[1,8]"},
      {0, INT32_MAX, 1, "float32[N,8]"},    {-1, kMin, -1, "float32[N,8]"},
      {kMax, kMin, -1, "float32[N,8]"},     {0, kMax, 2, "float32[floordiv(N+1,2),8]"},
      {0, 100, 1, "float32[min(100,N),8]"},
  };
  for (const Case& c : table) {
    Trial t("Slice");
    t.input({t.symbol("N"), 8}).ints({c.start}).ints({c.end}).ints({0}).ints({c.step});
    EXPECT_EQ(t.inferred(), c.expected) << c.start << " " << c.end << " " << c.step;
  }
}

TEST(Slice, SymbolicPositions) {
  {
    Trial t("Slice");
    const Dim n = t.symbol("N", 1, 64);
    t.input({100, 8}).dims({0}).dims({n});
    EXPECT_EQ(t.inferred(), "float32[N,8]");
  }
  {
    Trial t("Slice");
    const Dim n = t.symbol("N", 1, 64);
    t.input({100, n}).dims({n}).dims({n + 5}).ints({0});
    EXPECT_EQ(t.inferred(), "float32[5,N]");
  }
  {  // a last element chosen as N - 1, which is -1 for the empty axis
    Trial t("Slice");
    const Dim n = t.symbol("N", 0);
    t.input({n}).dims({0}).dims({n - 1});
    EXPECT_EQ(t.inferred(), "float32[max(0,N-1)]");
  }
  {  // the sign is open
    Trial t("Slice");
    const Dim n = t.symbol("N", 0), k = t.symbol("K", -4, 4);
    t.input({n}).dims({0}).dims({k});
    EXPECT_EQ(t.inferred(), "float32[node_axis0]");
  }
}

TEST(Slice, UnknownPositionsAreCounts) {
  Trial t("Slice");
  t.input({100, 8}).input(DType::kI64, {1}).input(DType::kI64, {1}).ints({0}).ints({2});
  EXPECT_EQ(t.inferred(), "float32[node_axis0,8]");
  EXPECT_EQ(t.graph.symbols->find("node_axis0")->range, (Interval{0, 50}));
}

TEST(Slice, ContentsPass) {
  Trial t("Slice");
  const Dim n = t.symbol("N");
  t.dims({n, 3, n * 2, 5}).ints({-1}).ints({kMin}).ints({0}).ints({-2});
  EXPECT_EQ(t.inferred(), "int64[2]{5,3}");
}

TEST(Slice, Refuses) {
  auto with = [](std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes,
                 std::vector<int64_t> steps) {
    Trial t("Slice");
    t.input({4, 5}).ints(starts).ints(ends).ints(axes).ints(steps);
    return t.inferred();
  };
  EXPECT_EQ(with({0}, {1, 2}, {0}, {1}), "its starts and ends differ in number");
  EXPECT_EQ(with({0}, {1}, {0, 1}, {1}), "its starts and axes differ in number");
  EXPECT_EQ(with({0}, {1}, {0}, {}), "its starts and steps differ in number");
  EXPECT_EQ(with({0}, {1}, {2}, {1}), "axis 2 out of range for 2 axes");
  EXPECT_EQ(with({0, 0}, {1, 1}, {0, -2}, {1, 1}), "axis 0 is given twice");
  EXPECT_EQ(with({0}, {1}, {0}, {0}), "a step is 0");
}

TEST(Split, Sizes) {
  Trial a("Split", 3);
  a.input({7, 2}).set("num_outputs", int64_t{3});
  EXPECT_EQ(a.inferred(), "float32[3,2]; float32[3,2]; float32[1,2]");
  EXPECT_EQ(a.evaluated({iota({7, 2})}), "[3,2] 0 1 2 3 4 5; [3,2] 6 7 8 9 10 11; [1,2] 12 13");
  Trial b("Split", 2);
  b.input({b.symbol("N"), 6}).ints({2, 4}).set("axis", int64_t{-1});
  EXPECT_EQ(b.inferred(), "float32[N,2]; float32[N,4]");
  EXPECT_EQ(b.evaluated({iota({2, 6})}), "[2,2] 0 1 6 7; [2,4] 2 3 4 5 8 9 10 11");
  Trial c("Split", 2);
  const Dim n = c.symbol("N");
  c.input({n * 2}).dims({n, n});
  EXPECT_EQ(c.inferred(), "float32[N]; float32[N]");
  EXPECT_EQ(c.checks(), "");
  Trial d("Split", 2);
  d.input({d.symbol("N") * 2}).set("num_outputs", int64_t{2});
  EXPECT_EQ(d.inferred(), "float32[N]; float32[N]");
  Trial e("Split", 2);
  e.dims({e.symbol("N"), 3, 4});
  EXPECT_EQ(e.inferred(), "int64[2]{N,3}; int64[1]{4}");
  Trial f("Split", 2);
  f.input({9}).input(DType::kI64, {2});
  EXPECT_EQ(f.inferred(), "float32[node_part0]; float32[node_part1]");
}
TEST(Split, Refuses) {
  EXPECT_EQ(Trial("Split", 2).input({5}).ints({2, 2}).inferred(), "sum of the split sizes: 4 is not 5");
  EXPECT_EQ(Trial("Split", 2).input({5}).ints({6, -1}).inferred(), "the split size -1");
  EXPECT_EQ(Trial("Split", 2).input({5}).ints({5}).inferred(), "1 split sizes for 2 outputs");
  EXPECT_EQ(Trial("Split", 4).input({5}).inferred(), "5 elements do not fill 4 parts");
  EXPECT_EQ(Trial("Split", 2).input({}).inferred(), "axis 0 out of range for []");
}

TEST(Concat, SumsAnAxis) {
  Trial t("Concat");
  const Dim n = t.symbol("N");
  t.input({n, 2}).input({3, 2}).input({n, 2}).set("axis", int64_t{0});
  EXPECT_EQ(t.inferred(), "float32[2*N+3,2]");
  Trial u("Concat");
  u.input({2, 1}).input({2, 2}).set("axis", int64_t{-1});
  EXPECT_EQ(u.evaluated({iota({2, 1}), iota({2, 2})}), "[2,3] 0 0 1 1 2 3");
  EXPECT_EQ(u.evaluated({iota({2, 1}), iota({2, 0})}), "[2,1] 0 1");
  Trial v("Concat");
  v.dims({v.symbol("M")}).ints({-1, 8}).set("axis", int64_t{0});
  EXPECT_EQ(v.inferred(), "int64[3]{M,-1,8}");
  EXPECT_EQ(Trial("Concat").input({2}).input({2}).inferred(), "its axis is missing");
  EXPECT_EQ(Trial("Concat").input({2, 3}).input({2, 4}).set("axis", int64_t{0}).inferred(),
            "axis 1: 3 is not 4");
  EXPECT_EQ(Trial("Concat").input({2}).input(DType::kI64, {2}).set("axis", int64_t{0}).inferred(),
            "inputs of types float32 and int64");
  EXPECT_EQ(Trial("Concat").input({2}).input({2, 1}).set("axis", int64_t{0}).inferred(),
            "inputs of shapes [2] and [2,1]");
  EXPECT_EQ(Trial("Concat").input({2}).set("axis", int64_t{1}).inferred(), "axis 1 out of range for [2]");
}

struct PadCase {
  std::string mode;
  int64_t before, after;
  std::string expected;
};
TEST(Pad, Modes) {
  const PadCase table[] = {
      {"constant", 1, 2, "[6] 9 0 1 2 9 9"},
      {"constant", -1, 1, "[3] 1 2 9"},
      {"constant", -4, 5, "[4] 9 9 9 9"},
      {"constant", -1, -2, "[0]"},
      {"constant", 0, -4, "node"},
      {"edge", 2, 1, "[6] 0 0 0 1 2 2"},
      {"edge", -1, 2, "[4] 1 2 2 2"},
      {"reflect", 2, 2, "[7] 2 1 0 1 2 1 0"},
      {"reflect", 5, 0, "[8] 1 0 1 2 1 0 1 2"},
      {"reflect", -1, 2, "[4] 1 2 1 2"},
      {"wrap", 2, 2, "[7] 1 2 0 1 2 0 1"},
      {"wrap", 4, 0, "[7] 2 0 1 2 0 1 2"},
      {"reflect", -3, 1, "node"},
  };
  for (const PadCase& c : table) {
    Trial t("Pad");
    t.input({3}).ints({c.before, c.after}).constant(Tensor::scalar(9.f)).set("mode", c.mode);
    const std::string got = t.evaluated({iota({3})});
    if (c.expected == "node")
      EXPECT_TRUE(got.starts_with("\"node\" (Pad): ")) << got;
    else
      EXPECT_EQ(got, c.expected) << c.mode << " " << c.before << " " << c.after;
  }
  Trial t("Pad");
  t.input({2, 2}).ints({0, 1}).absent().ints({-1});
  EXPECT_EQ(t.evaluated({iota({2, 2})}), "[2,3] 0 1 0 2 3 0");
}
TEST(Pad, Shapes) {
  Trial t("Pad");
  const Dim n = t.symbol("N"), k = t.symbol("K", 0, 8);
  t.input({n, 4}).dims({0, 1, k, 1});
  EXPECT_EQ(t.inferred(), "float32[K+N,6]");
  EXPECT_EQ(Trial("Pad").input({4}).input(DType::kI64, {2}).inferred(), "float32[node_axis0]");
  EXPECT_EQ(Trial("Pad").input({4}).ints({1}).inferred(), "1 pads for 1 axes");
  EXPECT_EQ(Trial("Pad").input({4}).ints({0, 0}).set("mode", std::string("odd")).inferred(),
            "its mode is \"odd\"");
  EXPECT_EQ(Trial("Pad").input({0}).ints({1, 0}).set("mode", std::string("edge")).inferred(),
            "rows of axis 0 to pad from: 1 exceeds 0");
  Trial u("Pad");
  u.dims({u.symbol("M")}).ints({1, 1}).ints({7});
  u.set("mode", std::string("constant"));
  EXPECT_EQ(u.inferred(), "int64[3]{7,M,7}");
}

}  // namespace
}  // namespace sinter::movement_test
