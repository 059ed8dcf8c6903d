// If, Loop and Scan: the types that inference gives, what is refused, and what they compute.
#include "model_text.h"
#include "ops/op.h"

namespace sinter {
namespace {

Model import_nodes(const std::string& text, const std::vector<DimOption>& dims = {}) {
  ImportOptions options;
  options.dims = dims;
  return import_model(without_none(parse_text("<ir_version: 9, opset_import: [\"\" : 18]> g " + text)), {},
                      options);
}

// Types of the outputs; an extent that only the run decides is written as its bounds.
std::string types(const Graph& g) {
  std::string all;
  for (const Value* v : g.outputs) {
    all += (all.empty() ? "" : " ") + std::string(name_of(v->type.dtype)) + "[";
    for (size_t axis = 0; axis < v->type.shape.size(); ++axis) {
      std::vector<SymbolPtr> symbols;
      const Dim& d = v->type.shape[axis];
      d.collect_symbols(symbols);
      const bool run = !symbols.empty() && symbols[0]->from_data;
      all += (axis ? "," : "") + (run ? fmt::format("{}..{}", d.lo(), d.hi()) : d.text());
    }
    all += "]";
  }
  return all;
}

// A Loop over float[A,3] whose body makes `made` of the carried value s and the captured x.
std::string loop_of(const std::string& inputs, const std::string& trip, const std::string& made) {
  return "(" + inputs + ") => (float[M,3] y) { c = Constant<value = bool {1}>()  " + trip +
         "  y = Loop (n, c, x) <body = b (int64 i, bool ci, float[A,3] s) => (bool co, float[B,3] so) {" +
         made + "  co = Identity(ci) }> }";
}

// A Loop with a row of x an iteration, whose body counts from `start` by two and goes on while `condition` of
// the count after it, int32 k, holds.
std::string counting(const std::string& inputs, const std::string& trip, const std::string& start,
                     const std::string& condition) {
  return "(" + inputs + ") => (float[T,3] r) { c = Constant<value = bool {1}>()  " + start +
         "  y, r = Loop (" + trip +
         ", c, start) <body = b (int64 i, bool ci, int32 s) => (bool co, int32 k, "
         "float[3] row) { two = Constant<value = int32 {2}>()  nine = Constant<value = int32 {9}>()" +
         "  k = Add(s, two)  row = Gather(x, s)  " + condition + " }> }";
}
const std::string kOne = "start = Constant<value = int32 {1}>()", kBelowNine = "co = Less(k, nine)";

// An If whose branches have the ranks 2 and 0, chosen by the number of elements of `of`.
std::string ranks_by_size(const std::string& of) {
  return "(float[N,3] x, bool[9] kept) => (float[M,K] y) { z = Compress<axis = 0>(x, kept)  n = Size(" + of +
         ")  zero = Constant<value = int64 {0}>()  c = Greater(n, zero)  y = If (c) <then_branch = t () => "
         "(float[P,Q] a) { a = Relu(x) }, else_branch = e () => (float b) { b = ReduceSum<keepdims = 0>(x) "
         "}> }";
}

struct Typed {
  const char* name;
  std::string model, want;
};
std::ostream& operator<<(std::ostream& out, const Typed& t) { return out << t.name; }

const std::string kFour = "n = Constant<value = int64 {4}>()";

const Typed kTyped[] = {
    {"equal_branches",
     "(float[N,3] x, bool c) => (float[N,3] y) { y = If (c) <then_branch = t () => (float[N,3] a) { a = "
     "Relu(x) "
     "}, else_branch = e () => (float[N,3] b) { b = Neg(x) }> }",
     "float32[N,3]"},
    {"ranks_by_an_extent", ranks_by_size("x"), "float32[N,3]"},  // the first branch is meant
    {"state_keeps_its_shape", loop_of("float[N,3] x, int64 n", "", "so = Add(s, x)"), "float32[N,3]"},
    {"state_grows", loop_of("float[2,3] x", kFour, "so = Concat<axis = 0>(s, x)"), "float32[2..10,3]"},
    {"state_grows_by_a_symbol", loop_of("float[N,3] x", kFour, "so = Concat<axis = 0>(s, x)"),
     "float32[1..35,3]"},
    {"state_shrinks",
     loop_of("float[9,3] x", kFour,
             "from = Constant<value = int64[1] {1}>()  to = Constant<value = int64[1] {99}>()"
             "  axis = Constant<value = int64[1] {0}>()  so = Slice(s, from, to, axis)"),
     "float32[0..9,3]"},
    {"state_up_to_a_bound",
     loop_of("float[2,3] x, int64 n", "",
             "from = Constant<value = int64[1] {0}>()  to = Constant<value = int64[1] {5}>()"
             "  axis = Constant<value = int64[1] {0}>()  t = Concat<axis = 0>(s, x)"
             "  so = Slice(t, from, to, axis)"),
     "float32[0..5,3]"},
    {"rows_of_a_symbol",
     "(float[N,3] x) => (float[N,3] r) { shape = Shape(x)  zero = Constant<value = int64 {0}>()"
     "  n = Gather(shape, zero)  c = Constant<value = bool {1}>()  r = Loop (n, c) <body = b (int64 i, bool "
     "ci)"
     " => (bool co, float[3] row) { row = Gather(x, i)  co = Identity(ci) }> }",
     "float32[N,3]"},
    {"rows_while",
     "(float[3] x) => (float[T,3] r) { n = Constant<value = int64 {6}>()  limit = Constant<value = float "
     "{9.0}>()"
     "  y, r = Loop (n, none, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] so, float[3] "
     "row) {"
     " so = Add(s, s)  row = Neg(so)  m = ReduceMax<keepdims = 0>(so)  co = Less(m, limit) }> }",
     "float32[0..6,3]"},
    {"rows_counted", counting("float[9,3] x", "none", kOne, kBelowNine), "float32[4,3]"},
    {"rows_counted_in_floats",
     counting("float[9,3] x", "none", kOne, "a = Cast<to = 1>(k)  b = Cast<to = 1>(nine)  co = Less(a, b)"),
     "float32[4,3]"},
    {"rows_counted_within_trips",
     counting("float[9,3] x", "n", kOne + "  n = Constant<value = int64 {3}>()", kBelowNine), "float32[3,3]"},
    {"rows_counted_within_an_input", counting("float[9,3] x, int64 n", "n", kOne, kBelowNine),
     "float32[0..4,3]"},
    {"rows_counted_by_a_large_tensor",  // 4 TB, which the compiler doesn't make
     counting("float[9,3] x", "none", kOne,
              "large = Constant<value = int64[1] {1099511627776}>()  all = ConstantOfShape<value = int32[1] "
              "{9}>(large)  axis = Constant<value = int64[1] {0}>()  end = ReduceMax<keepdims = 0>(all, axis)"
              "  co = Less(k, end)"),
     "float32[0..9223372036854775807,3]"},
    {"rows_counted_from_an_input",  // nobody knows
     counting("float[9,3] x, int32 start", "none", "", kBelowNine), "float32[0..9223372036854775807,3]"},
    {"scan",
     "(float[2] h, float[N,2] x) => (float[2] y, float[2,N] r) { y, r = Scan <num_scan_inputs = 1,"
     " scan_output_axes = [1], body = b (float[2] s, float[2] e) => (float[2] so, float[2] row) {"
     " so = Add(s, e)  row = Neg(so) }> (h, x) }",
     "float32[2] float32[2,N]"},
};

class Types : public ::testing::TestWithParam<Typed> {};
TEST_P(Types, OfOutputs) {
  const Model m = import_nodes(GetParam().model, GetParam().model.find("[N") == std::string::npos
                                                     ? std::vector<DimOption>{}
                                                     : std::vector<DimOption>{{"N", 1, 7, 1}});
  EXPECT_EQ(types(*m.graph), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(Control, Types, ::testing::ValuesIn(kTyped),
                         [](const auto& p) { return p.param.name; });

struct Refused {
  const char* name;
  std::string model, why;
};
std::ostream& operator<<(std::ostream& out, const Refused& t) { return out << t.name; }

std::string if_of(const std::string& a, const std::string& b) {
  return "(float[2,3] x, bool c) => (float[M,K] y) { y = If (c) <then_branch = t () => (float[P,Q] a) { a "
         "= " +
         a + " }, else_branch = e () => (float[R,S] b) { b = " + b + " }> }";
}

const Refused kRefused[] = {
    {"ranks", if_of("Relu(x)", "Flatten<axis = 0>(x)"), ""},
    {"branch_dtypes", if_of("Relu(x)", "Cast<to = 7>(x)"), "in one branch and int64[2,3] in the other"},
    {"branch_ranks", if_of("Relu(x)", "Size(x)"), "in one branch and"},
    {"ranks_by_a_count", ranks_by_size("z"), "in one branch and"},
    {"state_rank", loop_of("float[2,3] x", kFour, "so = Size(s)"),
     "its body makes int64[] of the carried value"},
    {"no_end",
     "(float[3] x) => (float[3] y) { y = Loop (none, none, x) <body = b (int64 i, bool ci, float[3] s) => "
     "(bool co, "
     "float[3] so) { co = Constant<value = bool {1}>()  so = Add(s, s) }> }",
     "it never ends"},
    {"scan_extents",
     "(float[4,2] x, float[5,2] w) => (float[4,2] r) { r = Scan <num_scan_inputs = 2, body = b (float[2] e, "
     "float[2] f) => (float[2] row) { row = Add(e, f) }> (x, w) }",
     "extents of the scan axes: 4 is not 5"},
    {"scan_axis",
     "(float[4,2] x) => (float[4,2] r) { r = Scan <num_scan_inputs = 1, scan_input_axes = [2], body = b "
     "(float[2] "
     "e) => (float[2] row) { row = Neg(e) }> (x) }",
     "scan axis 2 is out of range"},
    {"scan_state",
     "(float[3] h, float[4,2] x) => (float[3] y) { y = Scan <num_scan_inputs = 1, body = b (float[3] s, "
     "float[2] "
     "e) => (float[5] so) { so = Concat<axis = 0>(s, e) }> (h, x) }",
     "its body makes float32[5] of the state"},
    {"body_inputs",
     "(float[3] x, int64 n) => (float[3] y) { y = Loop (n, none, x) <body = b (int64 i, bool ci) => (bool "
     "co, "
     "float[3] "
     "so) { co = Identity(ci)  so = Neg(x) }> }",
     "its body has 2 inputs instead of 3"},
};

class Refusals : public ::testing::TestWithParam<Refused> {};
TEST_P(Refusals, NameTheReason) {
  const std::string got = refusal_of([&] { import_nodes(GetParam().model); });
  if (GetParam().why.empty())
    EXPECT_EQ(got, "accepted");
  else
    EXPECT_NE(got.find(GetParam().why), std::string::npos) << got;
}
INSTANTIATE_TEST_SUITE_P(Control, Refusals, ::testing::ValuesIn(kRefused),
                         [](const auto& p) { return p.param.name; });

TEST(Control, LoopComputes) {
  // Fibonacci: the pair (a, b) becomes (b, a + b); rows are the a's.
  const Model m = import_nodes(
      "(int64 n) => (int64 a, int64 b, int64[T] r) { c = Constant<value = bool {1}>()"
      "  zero = Constant<value = int64 {0}>()  one = Constant<value = int64 {1}>()"
      "  a, b, r = Loop (n, c, zero, one) <body = l (int64 i, bool ci, int64 p, int64 q)"
      " => (bool co, int64 po, int64 qo, int64 row) { po = Identity(q)  qo = Add(p, q)  row = Identity(p)"
      "  co = Identity(ci) }> }");
  const auto out = evaluate(*m.graph, {Tensor::scalar(int64_t{8})});
  EXPECT_EQ(out[0].integer(0), 21);
  EXPECT_EQ(out[1].integer(0), 34);
  EXPECT_EQ(out[2].integers(), (std::vector<int64_t>{0, 1, 1, 2, 3, 5, 8, 13}));
  const auto none = evaluate(*m.graph, {Tensor::scalar(int64_t{-3})});
  EXPECT_EQ(none[0].integer(0), 0);
  EXPECT_EQ(none[2].shape(), std::vector<int64_t>{0});
}

TEST(Control, ScanBackwardsComputes) {
  const Model m = import_nodes(
      "(float[1] h, float[1,4] x) => (float[1] y, float[1,4] r) { y, r = Scan <num_scan_inputs = 1,"
      " scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [-1],"
      " scan_output_directions = [1], body = b (float[1] s, float[1] e) => (float[1] so, float[1] row) {"
      " so = Add(s, e)  row = Identity(so) }> (h, x) }");
  const auto out = evaluate(*m.graph, {Tensor::of(std::vector<float>{10}, {1}),
                                       Tensor::of(std::vector<float>{1, 2, 3, 4}, {1, 4})});
  EXPECT_EQ(out[0].reals(), std::vector<double>{20});
  EXPECT_EQ(out[1].reals(), (std::vector<double>{20, 19, 17, 14}));
}

TEST(Control, BranchThatCannotRunIsRefusedByTheInterpreter) {
  const Model m = import_nodes(if_of("Relu(x)", "MatMul(x, x)"));
  EXPECT_EQ(types(*m.graph), "float32[2,3]");
  Tensor x(DType::kF32, {2, 3}), no(DType::kBool, {});
  EXPECT_NE(refusal_of([&] {
              evaluate(*m.graph, {x, no});
            }).find("the branch cannot run"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
