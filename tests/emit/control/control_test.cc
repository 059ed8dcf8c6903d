// If, Loop and Scan in generated code, against the interpreter: every branch, trip counts from hostile to the
// greatest, nesting, captures, shapes that change, and the codes of runs that leave their bounds.
#include <algorithm>
#include <cmath>

#include "emit/generated.h"
#include "model_text.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace sinter {
namespace {

Tensor flag(bool b) {
  Tensor t(DType::kBool, {});
  t.set_integer(0, b);
  return t;
}
Tensor number(int64_t n) { return Tensor::scalar(n); }
// Floats that differ from one another, of both signs.
Tensor floats(std::vector<int64_t> shape) {
  Tensor t(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, static_cast<double>((i * 7 + 3) % 11) / 4 - 1.25);
  return t;
}

Tensor numbers(const std::vector<double>& v, std::vector<int64_t> shape = {}) {
  Tensor t(DType::kF32, shape.empty() ? std::vector<int64_t>{static_cast<int64_t>(v.size())} : shape);
  for (int64_t i = 0; i < t.size(); ++i) t.set_real(i, v[static_cast<size_t>(i)]);
  return t;
}

Tensor indices(const std::vector<int64_t>& v) { return Tensor::of(v); }

Tensor flags(const std::vector<int>& v) {
  Tensor t(DType::kBool, {6});
  for (size_t i = 0; i < v.size(); ++i) t.set_integer(static_cast<int64_t>(i), v[i]);
  return t;
}
// Boxes that do not touch.
Tensor apart(int64_t n) {
  Tensor t(DType::kF32, {1, n, 4});
  for (int64_t i = 0; i < 4 * n; ++i) t.set_real(i, static_cast<double>(i / 4 * 10 + (i % 4) / 2 * 5));
  return t;
}

const Target& target(const char* name) {
  const Target* t = find_target(name);
  SINTER_CHECK(t, "the test names an unknown target");
  return *t;
}

struct Run {
  std::vector<Tensor> inputs;
  int status = 0;
};
struct Net {
  const char* name = "";
  const char* text = "";
  std::vector<Run> runs = {};
  std::vector<DimOption> dims = {};
  int64_t max_trips = INT64_MAX;
};

std::vector<Net> nets() {
  return {
      {"captures",
       R"((float[2,3] x, bool c) => (float[2,3] y) {
         z = Neg(x)
         y = If (c) <then_branch = t () => (float[2,3] a) { a = Add(z, x) },
                     else_branch = e () => (float[2,3] b) { b = Identity(z) }> })",
       {{{floats({2, 3}), flag(true)}}, {{floats({2, 3}), flag(false)}}}},
      {"branch_shapes",
       R"((float[N,3] x, bool c) => (float[M,3] y, float[M] s) {
         axis = Constant<value = int64[1] {1}>()
         y = If (c) <then_branch = t () => (float[N,3] a) { a = Relu(x) },
                     else_branch = e () => (float[K,3] b) { b = Concat<axis = 0>(x, x) }>
         s = ReduceSum<keepdims = 0>(y, axis) })",
       {{{floats({1, 3}), flag(true)}}, {{floats({7, 3}), flag(true)}}, {{floats({7, 3}), flag(false)}}},
       {{"N", 1, 7, 1}}},
      {"counts_in_branches",
       R"((float[6] x, bool c) => (int64[1,M] y) {
         y = If (c) <then_branch = t () => (int64[1,K] a) { a = NonZero(x) },
                     else_branch = e () => (int64[1,L] b) { r = Relu(x)  b = NonZero(r) }> })",
       {{{floats({6}), flag(true)}}, {{floats({6}), flag(false)}}}},
      {"trip_count",
       R"((float[2,3] x, int64 n) => (float[2,3] y, float[T,2,3] r) {
         c = Constant<value = bool {1}>()
         y, r = Loop (n, c, x) <body = b (int64 i, bool ci, float[2,3] s)
             => (bool co, float[2,3] so, float[2,3] row) {
           f = Cast<to = 1>(i)  so = Add(s, f)  row = Mul(so, x)  co = Identity(ci) }> })",
       {{{floats({2, 3}), number(0)}},
        {{floats({2, 3}), number(1)}},
        {{floats({2, 3}), number(4)}},
        {{floats({2, 3}), number(9)}},
        {{floats({2, 3}), number(-1)}},
        {{floats({2, 3}), number(INT64_MIN)}},
        {{floats({2, 3}), number(10)}, 6},
        {{floats({2, 3}), number(INT64_MAX)}, 6}},
       {{"r@0", 1, 9, 1}}},
      {"modes_of_floats",  // products and quotients in turns; a state called like the caller's mode
       R"((float[4,4] x, int64 n, bool k) => (float[4,4] y, float[4,4] z, float[4,4] v) {
         c = Constant<value = bool {1}>()
         p = MatMul(x, x)
         y = Loop (n, c, p) <body = b (int64 i, bool ci, float[4,4] floats) => (bool co, float[4,4] so) {
           m = MatMul(floats, x)  t = Tanh(m)  d = Div(x, t)  so = MatMul(d, x)  co = Identity(ci) }>
         z = If (k) <then_branch = t () => (float[4,4] a) { f = MatMul(y, x)  a = Sigmoid(f) },
                     else_branch = e () => (float[4,4] g) { h = Sqrt(x)  g = Div(h, x) }>
         v = MatMul(z, x) })",
       {{{floats({4, 4}), number(0), flag(true)}},
        {{floats({4, 4}), number(1), flag(true)}},
        {{floats({4, 4}), number(2), flag(false)}}}},
      {"while",
       R"((float[3] x, bool c0) => (float[3] y, int64 k) {
         z = Constant<value = int64 {0}>()  one = Constant<value = int64 {1}>()
         limit = Constant<value = float {100.0}>()
         y, k = Loop (none, c0, x, z) <body = b (int64 i, bool ci, float[3] s, int64 q)
             => (bool co, float[3] so, int64 qo) {
           so = Add(s, s)  m = ReduceMax<keepdims = 0>(so)  co = Less(m, limit)  qo = Add(q, one) }> })",
       {{{floats({3}), flag(true)}}, {{floats({3}), flag(false)}}}},
      {"to_an_extent",  // as exported: no trip count, both sides cast to be compared
       R"((float[N,3] x) => (float[T,3] r) {
         zero = Constant<value = int32 {0}>()  one = Constant<value = int32 {1}>()
         none_yet = Constant<value = float[3] {0, 0, 0}>()  first = Constant<value = int64 {0}>()
         shape = Shape(x)  n = Gather(shape, first)  n32 = Cast<to = 6>(n)  fz = Cast<to = 1>(zero)
         fn = Cast<to = 1>(n32)  c = Less(fz, fn)
         k, y, r = Loop (none, c, zero, none_yet) <body = b (int64 i, bool ci, int32 j, float[3] s)
             => (bool co, int32 jo, float[3] so, float[3] row) {
           row = Gather(x, j)  so = Add(s, row)  jo = Add(j, one)  fj = Cast<to = 1>(jo)
           fm = Cast<to = 1>(n32)  co = Less(fj, fm) }> })",
       {{{floats({5, 3})}}, {{floats({1, 3})}}, {{floats({0, 3})}}},
       {{"N", 0, 5, 1}}},
      {"at_most_trips",  // only the data end it
       R"((float[3] x, float limit) => (float[T,3] r) {
         yes = Constant<value = bool {1}>()
         y, r = Loop (none, yes, x) <body = b (int64 i, bool ci, float[3] s) => (bool co, float[3] so, float[3] row) {
           so = Add(s, s)  m = ReduceMax<keepdims = 0>(so)  co = Less(m, limit)  row = Identity(so) }> })",
       {{{floats({3}), Tensor::scalar(20.0f)}},
        {{floats({3}), Tensor::scalar(0.0f)}},
        {{floats({3}), Tensor::scalar(1e9f)}, 6}},
       {},
       8},
      {"uneven_sequences",  // a row of each element as often as its number says
       R"((float[N,3] x, int64[N] times) => (float[T,3] y) {
         c = Constant<value = bool {1}>()  s = SplitToSequence<keepdims = 0>(x)  n = SequenceLength(s)
         axis = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()
         zero = Constant<value = int64 {0}>()  four = Constant<value = int64 {4}>()
         none_yet = SequenceEmpty()
         t = Loop (n, c, none_yet) <body = b (int64 i, bool ci, float[M,3] l) => (bool co, float[M,3] m) {
           v = SequenceAt(s, i)  k = Gather(times, i)  least = Max(k, zero)  most = Min(least, four)
           rows = Unsqueeze(most, axis)  shape = Concat<axis = 0>(rows, one)  wide = Unsqueeze(v, axis)
           e = Expand(wide, shape)  m = SequenceInsert(l, e)  co = Identity(ci) }>
         y = ConcatFromSequence<axis = 0>(t) })",
       {{{floats({3, 3}), indices({2, 0, 4})}},
        {{floats({1, 3}), indices({-1})}},
        {{floats({4, 3}), indices({1, 1, 9, 3})}}},
       {{"N", 1, 4, 1}, {"most", 0, 4, 1}}},
      {"counting",  // twice, and not at all
       R"((float[9,3] x) => (float[T,3] r, float[U,3] q) {
         c = Constant<value = bool {1}>()  no = Constant<value = bool {0}>()
         one = Constant<value = int32 {1}>()
         y, r = Loop (none, c, one) <body = b (int64 i, bool ci, int32 s) => (bool co, int32 so, float[3] row) {
           two = Constant<value = int32 {2}>()  nine = Constant<value = int32 {9}>()
           so = Add(s, two)  co = Less(so, nine)  row = Gather(x, s) }>
         z, q = Loop (none, no, one) <body = b (int64 i, bool ci, int32 s) => (bool co, int32 so, float[3] row) {
           two = Constant<value = int32 {2}>()  nine = Constant<value = int32 {9}>()
           so = Add(s, two)  co = Less(so, nine)  row = Gather(x, s) }> })",
       {{{floats({9, 3})}}}},
      {"growing",
       R"((float[2,3] x, int64 n) => (float[M,3] y) {
         c = Constant<value = bool {1}>()
         y = Loop (n, c, x) <body = b (int64 i, bool ci, float[A,3] s) => (bool co, float[B,3] so) {
           so = Concat<axis = 0>(s, x)  co = Identity(ci) }> })",
       {{{floats({2, 3}), number(0)}},
        {{floats({2, 3}), number(1)}},
        {{floats({2, 3}), number(4)}},
        {{floats({2, 3}), number(5)}, 4},
        {{floats({2, 3}), number(INT64_MAX)}, 4}},
       {{"y@0", 1, 10, 1}}},
      {"growing_by_constants",
       R"((float[2,3] x) => (float[M,3] y, float[4,2,3] r) {
         n = Constant<value = int64 {4}>()
         y, r = Loop (n, none, x) <body = b (int64 i, bool ci, float[A,3] s)
             => (bool co, float[B,3] so, float[2,3] row) {
           so = Concat<axis = 0>(s, x)  row = Exp(x)  co = Identity(ci) }> })",
       {{{floats({2, 3})}}}},
      {"slices",
       R"((float[6,3] x, int64 n) => (float[T,1,3] r, float[3] y) {
         six = Constant<value = int64 {6}>()  m = Min(n, six)  c = Constant<value = bool {1}>()
         z = Constant<value = float[3] {0.5, 0.5, 0.5}>()
         y, r = Loop (m, c, z) <body = b (int64 i, bool ci, float[3] s)
             => (bool co, float[3] so, float[1,3] row) {
           one = Constant<value = int64[1] {1}>()  zero = Constant<value = int64[1] {0}>()
           from = Reshape(i, one)  to = Add(from, one)  row = Slice(x, from, to, zero)
           q = Squeeze(row, zero)  so = Add(s, q)  co = Identity(ci) }> })",
       {{{floats({6, 3}), number(0)}},
        {{floats({6, 3}), number(3)}},
        {{floats({6, 3}), number(6)}},
        {{floats({6, 3}), number(60)}}},
       {{"r@0", 1, 6, 1}}},
      {"swapped",
       R"((float[3] x, float[3] w, int64 n) => (float[3] y, float[3] v) {
         c = Constant<value = bool {1}>()
         y, v = Loop (n, c, x, w) <body = b (int64 i, bool ci, float[3] s, float[3] t)
             => (bool co, float[3] so, float[3] to) {
           so = Identity(t)  to = Add(s, t)  co = Identity(ci) }> })",
       {{{floats({3}), floats({3}), number(0)}},
        {{floats({3}), floats({3}), number(1)}},
        {{floats({3}), floats({3}), number(6)}}}},
      {"nested",
       R"((float[3] x, int64 n) => (float[3] y, float[T,3] r) {
         c = Constant<value = bool {1}>()  three = Constant<value = int64 {3}>()
         w = Constant<value = float[3] {1.5, -2.0, 0.25}>()
         y, r = Loop (n, c, x) <body = b (int64 i, bool ci, float[3] s)
             => (bool co, float[3] so, float[3] row) {
           m = Mod(i, three)  zero = Constant<value = int64 {0}>()  e = Equal(m, zero)
           so = If (e) <then_branch = t () => (float[3] p) { p = Add(s, w) },
                        else_branch = f () => (float[3] q) {
               q = Loop (m, ci, s) <body = bi (int64 j, bool cj, float[3] u) => (bool ck, float[3] uo) {
                 uo = Mul(u, w)  ck = Identity(cj) }> }>
           row = Sub(so, x)  co = Identity(ci) }> })",
       {{{floats({3}), number(0)}}, {{floats({3}), number(1)}}, {{floats({3}), number(7)}}},
       {{"r@0", 1, 7, 1}}},
      {"names_of_the_code",  // functions and variables must not get in each other's way
       R"((float[3] a, int64 w) => (float[3] y, float[3] trips) {
         go = Constant<value = bool {1}>()
         y, trips = Loop (w, go, a, a) <body = b (int64 iteration, bool status, float[3] x, float[3] y_next)
             => (bool co, float[3] x_next, float[3] x_then) {
           x_next = Add(x, y_next)  x_then = Exp(x_next)  co = Identity(status) }> })",
       {{{floats({3}), number(0)}}, {{floats({3}), number(2)}}}},
      {"scan_axes",
       R"((float[2] h, float[2] k, float[2,5] x, float[5,2] w)
           => (float[2] hn, float[2] kn, float[2,5] a, float[5,2] b) {
         hn, kn, a, b = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0],
             scan_input_directions = [1, 0], scan_output_axes = [-1, 0], scan_output_directions = [0, 1],
             body = bd (float[2] hi, float[2] ki, float[2] xi, float[2] wi)
                 => (float[2] ho, float[2] ko, float[2] ao, float[2] bo) {
           ho = Add(hi, xi)  t = Mul(ki, wi)  ko = Sub(t, h)  ao = Mul(ho, xi)  bo = Identity(ko) }>
           (h, k, x, w) })",
       {{{floats({2}), floats({2}), floats({2, 5}), floats({5, 2})}}}},
      {"scan_in_scan",
       R"((float[2] h, float[N,4,2] x) => (float[2] hn, float[N,4,2] a) {
         hn, a = Scan <num_scan_inputs = 1, body = bd (float[2] hi, float[4,2] xi)
             => (float[2] ho, float[4,2] ao) {
           ho, ao = Scan <num_scan_inputs = 1, body = b2 (float[2] p, float[2] q)
               => (float[2] po, float[2] r) { po = Add(p, q)  r = Tanh(po) }> (hi, xi) }> (h, x) })",
       {{{floats({2}), floats({1, 4, 2})}}, {{floats({2}), floats({6, 4, 2})}}},
       {{"N", 1, 6, 1}}},
      {"lowered_capacities",  // at most as many as the user allows, never one less
       R"((float[6] x, float[1,6,4] boxes, float[1,1,6] scores, bool[6] keep)
           => (int64[1,M] y, int64[K,3] z, float[L] w) {
         y = NonZero(x)  most = Constant<value = int64 {6}>()  overlap = Constant<value = float {0.5}>()
         z = NonMaxSuppression(boxes, scores, most, overlap)  w = Compress(x, keep) })",
       {{{numbers({0, 1, 0, 2, 3, 0}), apart(6), numbers({1, 2, 3, 4, NAN, NAN}, {1, 1, 6}),
          flags({1, 1, 0})}},
        {{numbers({0, 1, 0, 2, 0, 0}), apart(6), numbers({NAN, 2, 3, 4, NAN, NAN}, {1, 1, 6}),
          flags({0, 0, 0})}},
        {{numbers({1, 1, 0, 2, 3, 0}), apart(6), numbers({1, 2, 3, 4, NAN, NAN}, {1, 1, 6}),
          flags({1, 1, 0})},
         4},
        {{numbers({0, 1, 0, 2, 3, 0}), apart(6), numbers({1, 2, 3, 4, 5, NAN}, {1, 1, 6}), flags({1, 1, 0})},
         4},
        {{numbers({0, 1, 0, 2, 3, 0}), apart(6), numbers({1, 2, 3, 4, NAN, NAN}, {1, 1, 6}),
          flags({1, 1, 1})},
         4}},
       {{"y@1", 0, 3, 1}, {"z@0", 0, 4, 1}, {"w@0", 0, 2, 1}}},
      {"sizes_of_data",  // bounded by the Clip; NaN is cast to 0
       R"((float[1,1,3,3] x, float[2] s) => (float[1,1,H,W] y, float[A,B] z) {
         lo = Constant<value = float {0.0}>()  hi = Constant<value = float {7.0}>()
         c = Clip(s, lo, hi)  d = Cast<to = 7>(c)  one = Constant<value = int64[2] {1, 1}>()
         sizes = Concat<axis = 0>(one, d)
         y = Resize<mode = "linear">(x, none, none, sizes)
         more = Add(d, one)  z = ConstantOfShape(more) })",
       {{{floats({1, 1, 3, 3}), numbers({2, 5})}},
        {{floats({1, 1, 3, 3}), numbers({7.9, 1})}},
        {{floats({1, 1, 3, 3}), numbers({0, 3})}},
        {{floats({1, 1, 3, 3}), numbers({-4, 1e30})}},
        {{floats({1, 1, 3, 3}), numbers({3, NAN})}}}},
      {"sizes_in_a_loop",  // each iteration has a size of its own; the frame around it stays
       R"((float[3,2] x, float[N,2] s) => (float[N,4,4] y) {
         lo = Constant<value = float {0.0}>()  hi = Constant<value = float {6.0}>()
         c = Clip(s, lo, hi)  d = Cast<to = 7>(c)  four = Constant<value = int64 {4}>()
         zero = Constant<value = int64 {0}>()  ends = Constant<value = int64[2] {4, 4}>()
         starts = Constant<value = int64[2] {0, 0}>()  go = Constant<value = bool {1}>()
         shape = Shape(s)  n = Gather(shape, zero)  axis = Constant<value = int64[1] {0}>()
         none_yet = Constant<value = float[0,4,4] {}>()
         y = Loop (n, go, none_yet) <body = b (int64 i, bool ci, float[K,4,4] list)
             => (bool co, float[L,4,4] more) {
           size = Gather(d, i)  e = Constant<value = float[0] {}>()
           big = Resize<mode = "nearest">(x, e, e, size)
           room = Constant<value = int64[2] {4, 4}>()  under = Sub(room, size)
           least = Max(under, starts)  pads = Concat<axis = 0>(starts, least)
           wide = Pad(big, pads)  cut = Slice(wide, starts, ends)
           row = Unsqueeze(cut, axis)  more = Concat<axis = 0>(list, row)  co = Identity(ci) }> })",
       {{{floats({3, 2}), numbers({1, 4, 6, 6, 3, 2}, {3, 2})}},
        {{floats({3, 2}), numbers({0, 4, 4, 0, 5, 5, 1, 1}, {4, 2})}},
        {{floats({3, 2}), numbers({}, {0, 2})}},
        {{floats({3, 2}), numbers({1, NAN}, {1, 2})}}},
       {{"N", 0, 5, 1}}},
      {"appended_sequences",  // stacked in the Loop; then concatenated, stacked elsewhere, counted
       R"((float[2,3] x, int64 n) => (float[A,3] y, float[2,3,B] z, int64 k, float[2,3] last) {
         c = Constant<value = bool {1}>()  none_yet = SequenceEmpty()
         last, s = Loop (n, c, x, none_yet) <body = b (int64 i, bool ci, float[2,3] t, float[2,3] l)
             => (bool co, float[2,3] u, float[2,3] m) {
           u = Add(t, x)  e = Exp(u)  m = SequenceInsert(l, e)  co = Identity(ci) }>
         y = ConcatFromSequence<axis = 0>(s)  z = ConcatFromSequence<axis = -1, new_axis = 1>(s)
         k = SequenceLength(s) })",
       {{{floats({2, 3}), number(0)}},
        {{floats({2, 3}), number(1)}},
        {{floats({2, 3}), number(4)}},
        {{floats({2, 3}), number(5)}, 6}},
       {{"s@0", 1, 4, 1}}},
      {"mapped_sequences",
       R"((float[2,3] x, float[2,1] u) => (float[2,3] y) {
         s = SplitToSequence<axis = 1>(x)
         t = SequenceMap (s, u) <body = b (float[2,1] e, float[2,1] k) => (float[2,1] f) {
           g = Mul(e, k)  f = Tanh(g) }>
         y = ConcatFromSequence<axis = 1>(t) })",
       {{{floats({2, 3}), floats({2, 1})}}}},
      {"squeezed_or_not",  // a shape chooses between two ranks: the first branch is meant
       R"((float[N,3] x) => (float[3] y) {
         shape = Shape(x)  zero = Constant<value = int64 {0}>()  one = Constant<value = int64 {1}>()
         n = Gather(shape, zero)  single = Equal(n, one)  axis = Constant<value = int64[1] {0}>()
         s = If (single) <then_branch = t () => (float[3] a) { a = Squeeze(x, axis) },
                          else_branch = e () => (float[N,3] b) { b = Identity(x) }>
         y = Neg(s) })",
       {{{floats({1, 3})}}, {{floats({2, 3})}, 3}},
       {{"N", 1, 4, 1}}},
      {"iterations_apart",  // that threads share; where one or none is left, its layers
       R"((float[9,60,200] x, int64[N] which) => (float[N,60,200] y) {
         shape = Shape(which)  zero = Constant<value = int64 {0}>()  n = Gather(shape, zero)
         go = Constant<value = bool {1}>()  axis = Constant<value = int64[1] {0}>()
         none_yet = Constant<value = float[0,60,200] {}>()
         y = Loop (n, go, none_yet) <body = b (int64 i, bool ci, float[K,60,200] list)
             => (bool co, float[L,60,200] more) {
           j = Gather(which, i)  row = Gather(x, j)  s = Softmax(row)  f = Cast<to = 1>(i)  t = Add(s, f)
           u = Transpose(t)  v = Softmax(u)  w = Transpose(v)
           one = Unsqueeze(w, axis)  more = Concat<axis = 0>(list, one)  co = Identity(ci) }> })",
       {{{floats({9, 60, 200}), indices({8, 0, 3, -9, 1})}},
        {{floats({9, 60, 200}), indices({4})}},
        {{floats({9, 60, 200}), indices({2, 5})}},
        {{floats({9, 60, 200}), indices({})}},
        {{floats({9, 60, 200}), indices({1, 2, 3, 4, 9})}, 5},
        {{floats({9, 60, 200}), indices({-10})}, 5}},
       {{"N", 0, 5, 1}}},
      {"large_layers_inside",  // that threads share
       R"((float[300,210] x, bool c, int64 n) => (float[300,210] y, float[300,210] z) {
         y = If (c) <then_branch = t () => (float[300,210] a) { a = Softmax(x) },
                     else_branch = e () => (float[300,210] b) { b = Softmax<axis = 0>(x) }>
         go = Constant<value = bool {1}>()
         z = Loop (n, go, x) <body = b (int64 i, bool ci, float[300,210] before)
             => (bool co, float[300,210] after) {
           s = Softmax(before)  after = Add(s, x)  co = Identity(ci) }> })",
       {{{floats({300, 210}), flag(true), number(3)}}, {{floats({300, 210}), flag(false), number(0)}}}},
      {"unreachable",  // the branch for another rank can never have worked
       R"((float[2,3] x, bool c) => (float[2,3] y) {
         axis = Constant<value = int64[1] {0}>()
         y = If (c) <then_branch = t () => (float[2,3] a) { a = Relu(x) },
                     else_branch = e () => (float[2,3] b) { s = Squeeze(x, axis)  b = Neg(s) }> })",
       {{{floats({2, 3}), flag(true)}}, {{floats({2, 3}), flag(false)}, 3}}},
  };
}

Model import(const Net& n) {
  ImportOptions options;
  options.dims = n.dims;
  options.max_trips = n.max_trips;
  return import_model(
      without_none(parse_text(std::string("<ir_version: 9, opset_import: [\"\" : 18]> g ") + n.text)), {},
      options);
}
void add_all(GeneratedBatch& batch, bool passes) {
  for (const Net& n : nets()) {
    Model m = import(n);
    // Scans along other axes than the first exist before the passes only.
    if (passes || n.name == std::string("scan_axes")) run_passes(*m.graph, {});
    std::vector<DataSet> data;
    for (const Run& r : n.runs) data.push_back({r.inputs, {}, r.status});
    batch.add(n.name, std::move(m.graph), std::move(data));
  }
}

TEST(Control, Avx512) {
  GeneratedBatch batch;
  add_all(batch, true);
  expect_good(batch.run(target("avx512")));
}
TEST(Control, Aarch64WithoutPasses) {
  GeneratedBatch batch;
  add_all(batch, false);
  expect_good(batch.run(target("aarch64")));
}
TEST(Control, Avx2WithSanitizers) {
  for (const bool passes : {false, true}) {
    GeneratedBatch batch;
    add_all(batch, passes);
    expect_good(batch.run(target("avx2"), {.sanitize = true}));
  }
}
TEST(Control, Clang) {
  GeneratedBatch batch;
  add_all(batch, true);
  expect_good(batch.run(target("avx512"), {.clang = true}), "clang");
}

// "Loop 3 pool" of each If, Loop and Scan: how many threads share its iterations, and whether it takes a
// pool.
std::vector<std::string> shared(const char* name, int threads) {
  for (const Net& n : nets()) {
    if (std::string_view(n.name) != name) continue;
    const Model m = import(n);
    run_passes(*m.graph, {});
    separate_outputs(*m.graph, {});
    WeightStore store;
    std::vector<std::string> found;
    for (const Layer& l : make_plan(*m.graph, target("avx512"), {}, store, threads).layers) {
      if (l.kernel != "control") continue;
      const bool pool = std::any_of(l.parameters.begin(), l.parameters.end(),
                                    [](const Parameter& p) { return p.kind == Parameter::Kind::kPool; });
      found.push_back(fmt::format("{} {}{}", l.node->op->name, l.shares, pool ? " pool" : ""));
    }
    return found;
  }
  return {};
}
TEST(Control, WhatThreadsShare) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(shared("iterations_apart", 3), Texts{"Loop 3 pool"});
  EXPECT_EQ(shared("iterations_apart", 1), Texts{"Loop 1"});
  EXPECT_EQ(shared("large_layers_inside", 2), (Texts{"If 1 pool", "Loop 1 pool"}));
  EXPECT_EQ(shared("sizes_in_a_loop", 2), Texts{"Loop 1"});  // too small
}
TEST(Control, Threads) {
  GeneratedBatch batch;
  add_all(batch, true);
  expect_good(batch.run(target("avx512"), {.threads = 3}), "avx512");
  expect_good(batch.run(target("aarch64"), {.threads = 2}), "aarch64");
}

}  // namespace
}  // namespace sinter
