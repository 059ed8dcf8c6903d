// Loops that count to an extent: the number of rows that their results have, by the form of the condition.
#include "model_text.h"
#include "ops/op.h"

namespace sinter {
namespace {

struct Counting {
  const char* name;
  const char* start;      // the first count and the initial condition: of n, the extent N
  const char* condition;  // of i, the count that an iteration finds, and i2, the one that it makes
  const char* rows;       // "" where only the run tells
  int64_t lo = 1;         // of N, up to 8
  const char* trips = "none";
};
std::ostream& operator<<(std::ostream& out, const Counting& c) { return out << c.name; }

const char* const kBelow = "first = Identity(zero)  go = Less(zero, n)";
const char* const kGoes = "first = Identity(zero)  go = Identity(yes)";

const Counting kCounting[] = {
    {"less", kBelow, "i2 = Add(i, one)  more = Less(i2, n)", "N", 0},
    {"greater", kBelow, "i2 = Add(i, one)  more = Greater(n, i2)", "N", 0},
    {"at_most", "first = Identity(one)  go = LessOrEqual(one, n)",
     "i2 = Add(i, one)  more = LessOrEqual(i2, n)", "N", 0},
    {"unequal", "first = Identity(zero)  e = Equal(zero, n)  go = Not(e)",
     "i2 = Add(i, one)  e2 = Equal(i2, n)  more = Not(e2)", "N", 0},
    {"down", "first = Identity(n)  go = Greater(n, zero)", "i2 = Sub(i, one)  more = Greater(i2, zero)", "N",
     0},
    {"down_unequal", "first = Identity(n)  go = Identity(yes)",
     "i2 = Sub(i, one)  e2 = Equal(i2, zero)  more = Not(e2)", "N"},
    {"by_two", kBelow, "i2 = Add(i, two)  more = Less(i2, n)", "floordiv(N+1,2)", 0},
    {"found_count", kBelow, "i2 = Add(i, one)  more = Less(i, n)", "N+1"},
    {"not_below", kBelow, "i2 = Add(i, one)  m = GreaterOrEqual(i2, n)  more = Not(m)", "N", 0},
    {"casts", "first = Identity(zero)  fz = Cast<to = 1>(zero)  fn = Cast<to = 1>(n)  go = Less(fz, fn)",
     "i2 = Add(i, one)  f = Cast<to = 1>(i2)  h = Cast<to = 1>(n)  more = Less(f, h)", "N", 0},
    {"iteration", kBelow, "i2 = Add(it, one)  more = Less(i2, n)", "N", 0},
    {"shape_inside", kBelow,
     "i2 = Add(i, one)  s2 = Shape(x)  n2 = Gather<axis = 0>(s2, zero)  more = Less(i2, n2)", "N", 0},
    {"shape_cast_inside", kBelow,
     "i2 = Add(i, one)  s2 = Shape(x)  s3 = Cast<to = 1>(s2)  n2 = Gather<axis = 0>(s3, zero)  f = Cast<to = "
     "1>(i2)  "
     "more = Less(f, n2)",
     "N", 0},
    {"and_a_number", kBelow, "i2 = Add(i, one)  a = Less(i2, n)  b = Less(i2, five)  more = And(a, b)",
     "min(5,N)"},
    {"trip_count", kGoes, "i2 = Add(i, one)  more = Identity(c)", "N", 0, "n"},
    {"trip_count_and_condition", kBelow, "i2 = Add(i, one)  more = Less(i2, n)", "min(5,N)", 0, "five"},
    // Where it may not begin, or something else may end it, N is a bound.
    {"begins_anyway", kGoes, "i2 = Add(i, one)  more = Less(i2, n)", "max(0,N-1)+1", 0},
    {"unknown_beginning", "first = Identity(zero)  go = Identity(flag)",
     "i2 = Add(i, one)  more = Less(i2, n)", "0..8"},
    {"and_data", kBelow, "i2 = Add(i, one)  a = Less(i2, n)  more = And(a, flag)", "0..8"},
    {"unequal_may_miss", "first = Identity(one)  go = Identity(yes)",
     "i2 = Add(i, one)  e2 = Equal(i2, n)  more = Not(e2)", "", 0},
    {"or_data", kBelow, "i2 = Add(i, one)  a = Less(i2, n)  more = Or(a, flag)", ""},
    {"grows_away", kBelow, "i2 = Sub(i, one)  more = Less(i2, n)", ""},
    {"doubles", kBelow, "i2 = Add(i, i)  more = Less(i2, n)", ""},
};

Model import_counting(const Counting& c, int64_t max_trips = INT64_MAX) {
  ImportOptions options;
  options.dims = {{"N", c.lo, 8, 1}};
  options.max_trips = max_trips;
  const std::string text = std::string(
                               "<ir_version: 9, opset_import: [\"\" : 18]> g (float[N,3] x, bool flag) => "
                               "(float[T,3] r) <int64 zero = "
                               "{0}, int64 one = {1}, int64 two = {2}, int64 five = {5}, bool yes = {1}, "
                               "float[3] ones = {1, 1, 1}> { s "
                               "= Shape(x)  n = Gather<axis = 0>(s, zero)  ") +
                           c.start + "  last, r = Loop (" + c.trips +
                           ", go, first) <body = b (int64 it, bool c, int64 i) => (bool more, int64 i2, "
                           "float[3] row) { f0 = Cast<to = "
                           "1>(i)  row = Mul(ones, f0)  " +
                           c.condition + " }> }";
  return import_model(without_none(parse_text(text)), {}, options);
}
// The rows' number; where only the run decides it, its bounds, and "" where there are none.
std::string rows_of(const Model& m) {
  const Dim d = m.graph->outputs[0]->type.shape[0];
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  if (symbols.empty() || !symbols[0]->from_data) return d.text();
  return d.bounds().bounded() ? fmt::format("{}..{}", d.lo(), d.hi()) : "";
}

class ExtentLoop : public ::testing::TestWithParam<Counting> {};
TEST_P(ExtentLoop, HasAsManyRows) {
  const Counting& c = GetParam();
  const Model m = import_counting(c);
  EXPECT_EQ(rows_of(m), c.rows);
  EXPECT_EQ(rows_of(import_counting(c, 100)),
            c.rows[0] == 0 ? "0..100" : c.rows);  // the option bounds what isn't
  const std::string said = c.name;
  if (said == "or_data" || said == "grows_away" || said == "doubles") return;  // they might not end
  for (int64_t n = c.lo; n <= 8; ++n) {
    if (said == "unequal_may_miss" && n < 2) continue;
    Tensor yes(DType::kBool, {});
    yes.set_integer(0, 1);
    const std::vector<Tensor> out = evaluate(*m.graph, {Tensor(DType::kF32, {n, 3}), yes});
    const int64_t rows = out[0].dim(0);
    const Dim told = m.graph->outputs[0]->type.shape[0];
    EXPECT_EQ(told.evaluate([&](const Symbol& s) { return s.from_data ? rows : n; }), rows) << n;
  }
}
INSTANTIATE_TEST_SUITE_P(Control, ExtentLoop, ::testing::ValuesIn(kCounting),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace sinter
