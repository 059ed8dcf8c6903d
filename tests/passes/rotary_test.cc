// fuse_rotary on the forms that exporters write, and on what must stay: golden text and equal values.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* signature;
  const char* nodes;
  bool fused = true;
};

#define BOUNDS                                                                        \
  "zero = Constant<value = int64[1] {0}>()  two = Constant<value = int64[1] {2}>()  " \
  "four = Constant<value = int64[1] {4}>()  six = Constant<value = int64[1] {6}>()  " \
  "end = Constant<value = int64[1] {9223372036854775807}>()  ax = Constant<value = int64[1] {-1}>()"
#define SLICES "a = Slice(x, zero, two, ax)  b = Slice(x, two, end, ax)  "
#define SUM "r = Concat<axis = -1>(m, a)  p = Mul(x, c)  q = Mul(r, s)  y = Add(p, q)"

const Form kForms[] = {
    {"rotary_halves", "(float[N,2,S,4] x, float[S,4] c, float[S,4] s) => (float[N,2,S,4] y)",
     BOUNDS SLICES "m = Neg(b)" SUM},
    {"rotary_same_angles_in_pairs", "(float[N,2,2,4] x) => (float[N,2,2,4] y)",
     BOUNDS "c = Constant<value = float[2,4] {1, 0.5, 1, 0.5, 0.25, -1, 0.25, -1}>()  "
            "s = Constant<value = float[1,1,2,4] {0, 0.5, 0, 0.5, 0.75, 1, 0.75, 1}>()" SLICES
            "m = Neg(b)" SUM},
    {"rotary_behind_transpose", "(float[N,S,8] x0, float[N,1,S,4] c, float[N,1,S,4] s) => (float[N,2,S,4] y)",
     BOUNDS
     "h = Constant<value = int64[4] {0, 0, 2, 4}>()  x1 = Reshape(x0, h)  x = Transpose<perm = [0, 2, 1, "
     "3]>(x1)  a, b = Split<axis = 3, num_outputs = 2>(x)  m = Neg(b)  r = Concat<axis = 3>(m, a)  q = "
     "Mul(s, r)"
     "  p = Mul(c, x)  y = Add(q, p)"},
    {"rotary_positions_first", "(float[N,S,2,4] x, float[S,1,4] c, float[S,1,4] s) => (float[N,S,2,4] y)",
     BOUNDS SLICES "m = Neg(b)" SUM},
    {"rotary_without_heads", "(float[N,S,4] x, float[N,S,4] c, float[N,S,4] s) => (float[N,S,4] y)",
     BOUNDS SLICES "m = Neg(b)" SUM},
    {"rotary_interleaved", "(float[N,2,S,4] x, float[S,4] c, float[S,4] s) => (float[N,2,S,4] y)",
     BOUNDS
     "f = Constant<value = int64[4] {0, 2, -1, 4}>()  one = Constant<value = int64[1] {1}>()"
     "a = Slice(x, zero, end, ax, two)  b = Slice(x, one, end, ax, two)  m = Neg(b)  m1 = Unsqueeze(m, ax)"
     "a1 = Unsqueeze(a, ax)  j = Concat<axis = -1>(m1, a1)  r = Reshape(j, f)  p = Mul(x, c)  q = Mul(r, s)"
     "y = Add(p, q)"},
    {"rotary_first_channels", "(float[N,2,S,6] w, float[S,4] c, float[S,4] s) => (float[N,2,S,6] z)",
     BOUNDS "x = Slice(w, zero, four, ax)  e = Slice(w, four, six, ax)" SLICES "m = Neg(b)" SUM
            "  z = Concat<axis = -1>(y, e)"},
    {"rotary_pairs", "(float[N,2,S,4] x, float[S,2] c, float[S,2] s) => (float[N,2,S,4] y)",
     BOUNDS SLICES
     "ac = Mul(a, c)  bs = Mul(s, b)  bc = Mul(b, c)  as = Mul(a, s)  l = Sub(ac, bs)  h = Add(as, bc)"
     "y = Concat<axis = -1>(l, h)"},
    {"rotary_complex_pairs", "(float[N,S,2,4] x, float[S,1,2] c, float[S,1,2] s) => (float[N,S,2,4] y)",
     BOUNDS "f = Constant<value = int64[5] {0, 0, 2, 2, 2}>()  t = Constant<value = int64[4] {0, 0, 2, 4}>()"
            "i = Constant<value = int64 {0}>()  j = Constant<value = int64 {1}>()  u = Reshape(x, f)"
            "a = Gather<axis = 4>(u, i)  b = Gather<axis = 4>(u, j)"
            "ac = Mul(a, c)  bs = Mul(b, s)  bc = Mul(b, c)  as = Mul(a, s)  l = Sub(ac, bs)  h = Add(bc, as)"
            "l1 = Unsqueeze(l, ax)  h1 = Unsqueeze(h, ax)  o = Concat<axis = -1>(l1, h1)  y = Reshape(o, t)"},
    {"rotary_columns", "(float[N,S,2,4] x, float[S,1,2] c, float[S,1,2] s) => (float[N,S,2,1,4] y)",
     BOUNDS
     "f = Constant<value = int64[5] {0, 0, 2, 2, 2}>()  t = Constant<value = int64[5] {0, 0, 2, 1, 4}>()"
     "i = Constant<value = int64 {0}>()  j = Constant<value = int64 {-1}>()  u = Reshape(x, f)"
     "a = Gather<axis = 4>(u, i)  b = Gather<axis = 4>(u, j)"
     "ac = Mul(a, c)  bs = Mul(b, s)  bc = Mul(b, c)  as = Mul(a, s)  l = Sub(ac, bs)  h = Add(bc, as)"
     "l1 = Unsqueeze(l, ax)  h1 = Unsqueeze(h, ax)  o = Concat<axis = -1>(l1, h1)  y = Reshape(o, t)"},
    // ---- what stays
    {"no_rotary_result_used",
     "(float[N,2,S,4] x, float[S,4] c, float[S,4] s) => (float[N,2,S,4] y, float[N,2,S,4] r)",
     BOUNDS SLICES "m = Neg(b)" SUM, false},
    {"no_rotary_without_sign", "(float[N,2,S,4] x, float[S,4] c, float[S,4] s) => (float[N,2,S,4] y)",
     BOUNDS SLICES "m = Relu(b)" SUM, false},
    {"no_rotary_halves_crossed", "(float[N,2,S,4] x, float[S,4] c, float[S,4] s) => (float[N,2,S,4] y)",
     BOUNDS "b = Slice(x, zero, two, ax)  a = Slice(x, two, end, ax)  m = Neg(b)" SUM, false},
    {"no_rotary_angles_of_heads", "(float[N,2,S,4] x, float[2,S,4] c, float[S,4] s) => (float[N,2,S,4] y)",
     BOUNDS SLICES "m = Neg(b)" SUM, false},
    {"no_rotary_other_tensor",
     "(float[N,2,S,4] x, float[N,2,S,4] z, float[S,4] c, float[S,4] s) => (float[N,2,S,4] y)",
     BOUNDS SLICES "m = Neg(b)  r = Concat<axis = -1>(m, a)  p = Mul(z, c)  q = Mul(r, s)  y = Add(p, q)",
     false},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

class RotaryForm : public testing::TestWithParam<Form> {};

TEST_P(RotaryForm, SameTextAndValues) {
  const Form& f = GetParam();
  const ProvedForm p =
      prove_form({f.name, "fuse_rotary", "RotaryEmbedding", 1e-6}, graph_of(model_of(f.signature, f.nodes)));
  EXPECT_EQ(count_op(*p.after, "RotaryEmbedding"), f.fused ? 1u : 0u);
  if (f.fused) {
    EXPECT_EQ(count_op(*p.after, "Mul") + count_op(*p.after, "Concat") + count_op(*p.after, "Add"), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RotaryForm, testing::ValuesIn(kForms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sinter
