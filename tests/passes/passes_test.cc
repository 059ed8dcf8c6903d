// Every pass proved on small models: golden text before and after, equal values before and after.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Proof {
  const char* name;
  std::vector<std::string> passes;
  const char* signature;  // "(inputs) => (outputs)" of the model
  const char* nodes;
  double tolerance = 0;  // relative to the largest output; 0: the same numbers
};

std::ostream& operator<<(std::ostream& out, const Proof& p) { return out << p.name; }

const Proof kProofs[] = {
    // ---- fold_constants
    {"fold_weights",
     {"fold_constants"},
     "(float[N,4] x, float[4] w_a, float[4] w_b) => (float[N,4] y)",
     "s = Mul(w_a, w_b)  r = Exp(s)  y = Add(x, r)"},
    {"fold_shape_arithmetic",
     {"fold_constants"},
     "(float[N,4,6] x) => (float[M,K] y)",
     "s = Shape(x)  zero = Constant<value = int64[1] {0}>()  n = Gather(s, zero)"
     "minus = Constant<value = int64[1] {-1}>()  t = Concat<axis = 0>(n, minus)  y = Reshape(x, t)"},
    {"shrink_uniform",
     {"fold_constants"},
     "(float[N,3,4] x) => (float[N,3,4] y)",
     "s = Constant<value = int64[2] {3, 4}>()  c = ConstantOfShape<value = float[1] {2.5}>(s)  y = Mul(x, "
     "c)"},
    // ---- remove_identity
    {"identities",
     {"remove_identity"},
     "(float[N,4] x) => (float[N,4] y)",
     "a = Identity(x)  b = Cast<to = 1>(a)  c = Transpose<perm = [0, 1]>(b)"
     "one = Constant<value = float {1.0}>()  d = Mul(c, one)  zero = Constant<value = float {0.0}>()"
     "e = Add(zero, d)  f = Relu(e)  y = Identity(f)"},
    {"identity_of_input_stays", {"remove_identity"}, "(float[N,4] x) => (float[N,4] y)", "y = Identity(x)"},
    {"not_identities",
     {"remove_identity"},
     "(float[N,4] x) => (float[N,4] y, float[N,4] z)",
     "s = Constant<value = int64[1] {-1}>()  e = Constant<value = int64[1] {-9}>()"
     "a = Constant<value = int64[1] {1}>()  k = Constant<value = int64[1] {-1}>()"
     "r = Slice(x, s, e, a, k)  y = Relu(r)  p = Constant<value = int64[4] {0, 1, 0, -1}>()  q = Pad(x, p)"
     "z = Relu(q)"},
    {"view_chains",
     {"remove_identity"},
     "(float[N,4,6] x) => (float[N,24] y, float[N,4,6] z)",
     "s = Constant<value = int64[3] {-1, 2, 12}>()  a = Reshape(x, s)  b = Flatten<axis = 1>(a)  y = Relu(b)"
     "t = Constant<value = int64[3] {-1, 4, 6}>()  c = Reshape(a, t)  z = Sigmoid(c)"},
    {"transpose_chains",
     {"remove_identity"},
     "(float[N,4,6] x) => (float[N,4,6] y, float[6,N,4] z)",
     "a = Transpose<perm = [0, 2, 1]>(x)  b = Transpose<perm = [0, 2, 1]>(a)  y = Relu(b)"
     "c = Transpose<perm = [1, 0, 2]>(a)  z = Relu(c)"},
    {"transpose_is_reshape",
     {"remove_identity"},
     "(float[N,1,6] x) => (float[N,6,1] y)",
     "a = Transpose<perm = [0, 2, 1]>(x)  y = Relu(a)"},
    {"transpose_undone_behind_a_view",
     {"remove_identity"},
     "(float[N,5,7,12] x, float[3,4,N] u) => (float[N,5,7,3,4] y, float[N,5,7,4,3] z, float[12,N] v)",
     "a = Transpose<perm = [0, 3, 1, 2]>(x)  s = Constant<value = int64[6] {-1, 3, 1, 4, 5, 7}>()"
     "b = Reshape(a, s)  c = Transpose<perm = [2, 0, 4, 5, 1, 3]>(b)  t = Constant<value = int64[1] {0}>()"
     "d = Squeeze(c, t)  y = Relu(d)"
     "e = Transpose<perm = [2, 0, 4, 5, 3, 1]>(b)  f = Squeeze(e, t)  z = Relu(f)"
     "g = Transpose<perm = [2, 0, 1]>(u)  k = Constant<value = int64[2] {-1, 12}>()  h = Reshape(g, k)"
     "w = Transpose<perm = [1, 0]>(h)  v = Relu(w)"},
    {"gather_of_the_only_one",
     {"remove_identity"},
     "(float[1,N,6] x) => (float[N,6] y, float[1,N,6] z)",
     "zero = Constant<value = int64 {0}>()  zeros = Constant<value = int64[1] {0}>()"
     "a = Gather<axis = -3>(x, zero)  y = Relu(a)  b = Gather(x, zeros)  z = Relu(b)"},
    {"parts_that_are_joined_again",
     {"remove_identity"},
     "(float[N,3,8] x) => (float[N,3,12] y, float[N,3,8] z, float[N,3,8] u)",
     "s0 = Constant<value = int64[1] {0}>()  s3 = Constant<value = int64[1] {3}>()"
     "s5 = Constant<value = int64[1] {5}>()  s8 = Constant<value = int64[1] {8}>()"
     "axis = Constant<value = int64[1] {2}>()  a = Slice(x, s0, s3, axis)  b = Slice(x, s3, s8, axis)"
     "sizes = Constant<value = int64[2] {4, 4}>()  c, d = Split<axis = 2>(x, sizes)  e = Relu(c)"
     "y = Concat<axis = 2>(e, a, b)  f = Concat<axis = 2>(d, c)  z = Relu(f)"
     "g = Concat<axis = -1>(c, d)  u = Relu(g)"},
    // ---- merge_common
    {"merge_common",
     {"merge_common"},
     "(float[N,4] x, float[4] w_a) => (float[N,4] y, float[N,4] z)",
     "a = Add(x, w_a)  b = Add(x, w_a)  c = Relu(a)  d = Sigmoid(b)  y = Mul(c, d)  dead = Relu(x)  z = "
     "Mul(c, d)"},
    // ---- widen_floats
    {"widen_layers",
     {"widen_floats", "remove_identity"},
     "(float16[N,2,4,4] x, float16[3,2,3,3] w_k, float16[3,1,1] w_b) => (float16[N,3] y, float16[N,3,4,4] a, "
     "bool[N,3,4,4] z)",
     "t = Identity(x)  c = Conv<pads = [1, 1, 1, 1]>(t, w_k)  a = Add(c, w_b)  r = Relu(a)"
     "f = Cast<to = 1>(r)  h = Cast<to = 10>(f)  z = IsNaN(h)  m = GlobalAveragePool(r)  "
     "s = Constant<value = int64[2] {0, -1}>()  y = Reshape(m, s)",
     2e-3},
    {"widen_past_roundings",
     {"widen_floats", "remove_identity"},
     "(float[N,4] x, float16[4] w_a) => (float16[N,4] y, float[N,4] z)",
     "h = Cast<to = 10>(x)  a = Mul(h, w_a)  y = Tanh(a)  z = Cast<to = 1>(h)",
     2e-3},
    {"widen_leaves_movement",
     {"widen_floats"},
     "(float16[N,2,4] x) => (float16[N,4,2] y, float[N,2,4] z)",
     "y = Transpose<perm = [0, 2, 1]>(x)  z = Cast<to = 1>(x)"},
    // ---- fuse_layernorm
    {"layernorm",
     {"fuse_layernorm"},
     "(float[N,5,8] x, float[8] w_s, float[8] w_b) => (float[N,5,8] y)",
     "ax = Constant<value = int64[1] {-1}>()  eps = Constant<value = float {0.00001}>()  two = "
     "Constant<value = float {2.0}>()  m = ReduceMean(x, ax)  d = Sub(x, m)  p = Pow(d, two)  v = "
     "ReduceMean(p, ax)"
     "e = Add(v, eps)  s = Sqrt(e)  q = Div(d, s)  a = Mul(q, w_s)  y = Add(a, w_b)",
     1e-5},
    {"layernorm_bare",
     {"fuse_layernorm"},
     "(float[N,5,8] x) => (float[N,5,8] y)",
     "ax = Constant<value = int64[1] {-1}>()  eps = Constant<value = float {0.00001}>()  m = ReduceMean(x, "
     "ax)  d = Sub(x, m)  p = Mul(d, d)  v = ReduceMean(p, ax)"
     "e = Add(eps, v)  s = Sqrt(e)  r = Reciprocal(s)  y = Mul(r, d)",
     1e-5},
    {"rmsnorm",
     {"fuse_layernorm"},
     "(float[N,5,8] x, float[8] w_s) => (float[N,5,8] y)",
     "ax = Constant<value = int64[1] {-1}>()  eps = Constant<value = float {0.00001}>()  two = "
     "Constant<value = float {2.0}>()  p = Pow(x, two)  v = ReduceMean(p, ax)"
     "e = Add(v, eps)  s = Sqrt(e)  r = Reciprocal(s)  q = Mul(x, r)  y = Mul(w_s, q)",
     1e-5},
    {"rmsnorm_by_one_over",
     {"fuse_layernorm"},
     "(float[N,5,8] x, float[8] w_s) => (float[N,5,8] y)",
     "ax = Constant<value = int64[1] {-1}>()  eps = Constant<value = float {0.00001}>()  two = "
     "Constant<value = float {2.0}>()  one = Constant<value = float {1.0}>()  p = Pow(x, two)"
     "v = ReduceMean(p, ax)  e = Add(v, eps)  s = Sqrt(e)  r = Div(one, s)  q = Mul(x, r)  y = Mul(q, w_s)",
     1e-5},
    {"not_layernorm",
     {"fuse_layernorm"},
     "(float[N,8,8] x) => (float[N,8,8] y, float[N,8,8] d)",
     "ax = Constant<value = int64[1] {-1}>()  eps = Constant<value = float {0.00001}>()  two = "
     "Constant<value = float {2.0}>()  first = Constant<value = int64[1] {1}>()  m = ReduceMean(x, first)  d "
     "= Sub(x, m)  p = Pow(d, two)"
     "v = ReduceMean(p, first)  e = Add(v, eps)  s = Sqrt(e)  y = Div(d, s)",
     1e-5},
    // ---- lower_composites
    {"loss_likelihood",
     {"lower_composites"},
     "(float[N,4,3] x, int64[N,3] t, float[4] w_c) => (float y)",
     "y = NegativeLogLikelihoodLoss<ignore_index = 2>(x, t, w_c)",
     1e-5},
    {"loss_cross_entropy",
     {"lower_composites"},
     "(float[N,4,3] x, int64[N,3] t) => (float[N,3] y, float[N,4,3] z)",
     "y, z = SoftmaxCrossEntropyLoss<reduction = \"none\">(x, t)",
     1e-5},
    {"gemm_flags",
     {"lower_composites"},
     "(float[N,4] x, float[3,4] w_b, float[3] w_c) => (float[N,3] y)",
     "y = Gemm<alpha = 0.5, beta = 2.0, transB = 1>(x, w_b, w_c)",
     1e-6},
    // ---- lower_einsum
    {"einsum_heads_out",
     {"lower_einsum", "fold_constants"},
     "(float[1,5,4,3] x, float[4,3,6] w_w) => (float[1,5,6] y)",
     "y = Einsum<equation = \"abcd,cde->abe\">(x, w_w)",
     1e-5},
    {"einsum_keys_first",
     {"lower_einsum"},
     "(float[2,5,3,4] k, float[2,6,3,4] q) => (float[2,3,6,5] y)",
     "y = Einsum<equation = \"aecd,abcd->acbe\">(k, q)",
     1e-5},
    {"einsum_turned_result",
     {"lower_einsum"},
     "(float[2,3,6,5] p, float[2,5,3,4] v) => (float[2,6,3,4] y)",
     "y = Einsum<equation = \"acbe,aecd->abcd\">(p, v)",
     1e-5},
    {"einsum_vector",
     {"lower_einsum"},
     "(float[3,4] m, float[4] v) => (float[3] y)",
     "y = Einsum<equation = \"ij,j\">(m, v)",
     1e-5},
    {"einsum_stays",
     {"lower_einsum"},
     "(float[3,3] d, float[3,4] e, float[N,4] f, float[4,N] g, float[3] u, float[4] v)"
     " => (float[3,4] y0, float[N,N] y1, float[3,4] y2, float[3] y3)",
     "y0 = Einsum<equation = \"ii,ij->ij\">(d, e)  y1 = Einsum<equation = \"ij,jk\">(f, g)"
     "y2 = Einsum<equation = \"i,j->ij\">(u, v)  y3 = Einsum<equation = \"ij,jk->i\">(d, e)",
     1e-5},
    // ---- fold_batchnorm
    {"batchnorm_conv",
     {"fold_batchnorm"},
     "(float[N,4,5,5] x, float[6,2,3,3] w_w, float[6] w_s, float[6] w_b, float[6] w_m, float[6] w_var)"
     " => (float[N,6,5,5] y)",
     "a = Conv<group = 2, pads = [1, 1, 1, 1]>(x, w_w)  b = BatchNormalization(a, w_s, w_b, w_m, w_var)  y = "
     "Relu(b)",
     1e-5},
    {"batchnorm_depthwise",
     {"fold_batchnorm"},
     "(float[N,4,5,5] x, float[4,1,3,3] w_w, float[4] w_c, float[4] w_s, float[4] w_b, float[4] w_m, "
     "float[4] w_var)"
     " => (float[N,4,3,3] y)",
     "a = Conv<group = 4>(x, w_w, w_c)  y = BatchNormalization(a, w_s, w_b, w_m, w_var)",
     1e-5},
    {"batchnorm_conv_transpose",
     {"fold_batchnorm"},
     "(float[N,4,3,3] x, float[4,3,2,2] w_w, float[6] w_s, float[6] w_b, float[6] w_m, float[6] w_var)"
     " => (float[N,6,6,6] y)",
     "a = ConvTranspose<group = 2, strides = [2, 2]>(x, w_w)  y = BatchNormalization(a, w_s, w_b, w_m, "
     "w_var)",
     1e-5},
    {"batchnorm_gemm",
     {"lower_composites", "fold_batchnorm"},
     "(float[N,4] x, float[3,4] w_w, float[3] w_c, float[3] w_s, float[3] w_b, float[3] w_m, float[3] w_var)"
     " => (float[N,3] y)",
     "a = Gemm<transB = 1>(x, w_w, w_c)  y = BatchNormalization(a, w_s, w_b, w_m, w_var)",
     1e-5},
    {"scale_chain",
     {"fold_batchnorm"},
     "(float[N,2,4,4] x, float[3,2,1,1] w_w, float[3,1,1] w_a, float[1,3,1,1] w_b) => (float[N,3,4,4] y)",
     "c = Conv(x, w_w)  two = Constant<value = float {2.0}>()  d = Mul(c, w_a)  e = Sub(w_b, d)  f = Div(e, "
     "two)"
     "y = Relu(f)",
     1e-5},
    {"batchnorm_alone",
     {"fold_batchnorm"},
     "(float[N,3,4,4] x, float[3] w_s, float[3] w_b, float[3] w_m, float[3] w_var) => (float[N,3,4,4] y)",
     "r = Relu(x)  y = BatchNormalization(r, w_s, w_b, w_m, w_var)",
     1e-5},
    {"batchnorm_used_twice",
     {"fold_batchnorm"},
     "(float[N,2,4,4] x, float[3,2,1,1] w_w, float[3] w_s, float[3] w_b, float[3] w_m, float[3] w_var)"
     " => (float[N,3,4,4] y, float[N,3,4,4] z)",
     "c = Conv(x, w_w)  y = BatchNormalization(c, w_s, w_b, w_m, w_var)  z = Relu(c)",
     1e-5},
    // ---- fold_pad
    {"pad_conv",
     {"fold_pad"},
     "(float[N,2,5,5] x, float[3,2,3,3] w_w) => (float[N,3,4,3] y)",
     "p = Constant<value = int64[8] {0, 0, 1, 2, 0, 0, 3, 0}>()  a = Pad(x, p)  y = Conv<strides = [2, "
     "2]>(a, w_w)",
     1e-6},
    {"pad_pools",
     {"fold_pad"},
     "(float[N,2,5,5] x) => (float[N,2,5,5] y, float[N,2,5,5] z, float[N,2,5,5] k)",
     "p = Constant<value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}>()  r = Relu(x)  a = Pad(r, p)  b = Pad(x, p)"
     "y = MaxPool<kernel_shape = [3, 3]>(a)  z = AveragePool<kernel_shape = [3, 3]>(b)"
     "k = MaxPool<kernel_shape = [3, 3]>(b)",
     1e-6},
    // ---- fold_crop
    {"crop_transposed",
     {"fold_crop"},
     "(float[N,2,5,H] x, float[2,3,3,4] w_w, float[3] w_b) => (float[N,3,8,K] y)",
     "s = Constant<value = int64[2] {1, 2}>()  e = Constant<value = int64[2] {9, -1}>()"
     "a = Constant<value = int64[2] {2, 3}>()  f = Constant<value = int64[1] {-8}>()"
     "l = Constant<value = int64[1] {100}>()  h = Constant<value = int64[1] {2}>()"
     "c = ConvTranspose<strides = [2, 2], pads = [0, 0, 1, 1]>(x, w_w, w_b)"
     "d = Slice(c, s, e, a)  y = Slice(d, f, l, h)",
     1e-6},
    {"crop_output_shape",  // one more at the end than the sums reach
     {"fold_crop"},
     "(float[N,2,5,6] x, float[2,3,3,3] w_w) => (float[N,3,10,12] y)",
     "s = Constant<value = int64[2] {1, 1}>()  e = Constant<value = int64[2] {11, 13}>()"
     "a = Constant<value = int64[2] {2, 3}>()"
     "c = ConvTranspose<strides = [2, 2], output_shape = [12, 14], auto_pad = \"VALID\">(x, w_w)"
     "y = Slice(c, s, e, a)",
     1e-6},
    {"crop_left_alone",  // a step, a user more, more than the kernel's extent, channels
     {"fold_crop"},
     "(float[N,2,5,6] x, float[2,3,3,4] w_w)"
     " => (float[N,3,5,14] p, float[N,3,11,12] q, float[N,3,11,14] r, float[N,3,8,14] t, float[N,1,11,14] u)",
     "z = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()"
     "two = Constant<value = int64[1] {2}>()  ten = Constant<value = int64[1] {10}>()"
     "three = Constant<value = int64[1] {3}>()  far = Constant<value = int64[1] {99}>()"
     "c = ConvTranspose<strides = [2, 2]>(x, w_w)  p = Slice(c, z, ten, two, two)"
     "r = ConvTranspose<strides = [2, 2]>(x, w_w)  q = Slice(r, two, far, three)"
     "d = ConvTranspose<strides = [2, 2]>(x, w_w)  t = Slice(d, three, far, two)"
     "f = ConvTranspose<strides = [2, 2]>(x, w_w)  u = Slice(f, one, two, one)",
     1e-6},
    // ---- choose_layout
    {"layout_chain",
     {"choose_layout", "remove_identity_again"},
     "(float[N,3,8,8] x, float[4,3,3,3] w_w, float[5,4,3,3] w_v, float[4] w_b) => (float[N,5,1,1] y)",
     "a = Conv<pads = [1, 1, 1, 1]>(x, w_w, w_b)  b = Relu(a)  c = MaxPool<kernel_shape = [2, 2], strides = "
     "[2, 2]>(b)"
     "d = Conv(c, w_v)  e = Sigmoid(d)  y = GlobalAveragePool(e)",
     1e-5},
    {"layout_residual",
     {"choose_layout", "remove_identity_again"},
     "(float[N,4,6,6] x, float[4,4,3,3] w_w, float[4,1,1] w_s, float[1,4,1,1] w_t) => (float[N,4,6,6] y)",
     "a = Conv<pads = [1, 1, 1, 1]>(x, w_w)  b = Mul(a, w_s)  c = Add(b, x)  d = PRelu(c, w_s)"
     "e = Conv<pads = [1, 1, 1, 1]>(d, w_w)  f = Add(e, d)  y = Sub(w_t, f)",
     1e-5},
    {"layout_axes",
     {"choose_layout", "remove_identity_again"},
     "(float[N,4,6,6] x, float[4,4,1,1] w_w) => (float[N,4,6,7] y, float[N,2,6,6] z, float[N,4] m, "
     "int64[N,1,6,6] k)",
     "a = Conv(x, w_w)  b = Relu(a)  c = Concat<axis = 1>(a, b)  d = Softmax<axis = 1>(c)  s, t = Split<axis "
     "= 1, num_outputs = 2>(d)"
     "u = Add(s, t)  p = Constant<value = int64[8] {0, 0, 0, 1, 0, 0, 0, 0}>()  q = Pad(u, p)  v = Conv(q, "
     "w_w)  y = Relu(v)"
     "one = Constant<value = int64[1] {1}>()  three = Constant<value = int64[1] {3}>()"
     "w = Slice(a, one, three, one)  z = Conv(w, w_w2)  w_w2 = Slice(w_w, zero, two, one2)"
     "zero = Constant<value = int64[2] {0, 0}>()  two = Constant<value = int64[2] {2, 2}>()  one2 = "
     "Constant<value = int64[2] {0, 1}>()"
     "axes = Constant<value = int64[2] {2, 3}>()  m = ReduceMean<keepdims = 0>(a, axes)  k = ArgMax<axis = "
     "1>(a)",
     1e-5},
    {"layout_classifier",
     {"choose_layout", "sink_transposes", "remove_identity_again"},
     "(float[N,2,6,6] x, float[3,2,3,3] w_w, float[48,5] w_f, float[5] w_c) => (float[N,5] y)",
     "a = Conv(x, w_w)  b = Relu(a)  c = Flatten(b)  y = Gemm(c, w_f, w_c)",
     1e-5},
    {"layout_squeeze_excite",
     {"choose_layout", "sink_transposes", "remove_identity_again"},
     "(float[N,4,6,6] x, float[4,4,1,1] w_w) => (float[N,4,6,6] y)",
     "a = Conv(x, w_w)  b = GlobalAveragePool(a)  c = Conv(b, w_w)  d = Sigmoid(c)  e = Mul(a, d)  y = "
     "Conv(e, w_w)",
     1e-5},
    {"layout_resize",
     {"choose_layout", "remove_identity_again"},
     "(float[N,2,4,4] x, float[3,2,1,1] w_w, float[5,3,1,1] w_v) => (float[N,5,8,8] y)",
     "a = Conv(x, w_w)  s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()"
     "b = Resize<mode = \"linear\">(a, , s)  c = Relu(b)  y = Conv(c, w_v)",
     1e-5},
    {"layout_channel_shuffle",
     {"choose_layout", "sink_transposes", "remove_identity_again"},
     "(float[N,4,3,3] x, float[6,4,1,1] w_w, float[2,6,1,1] w_v) => (float[N,2,3,3] y)",
     "a = Conv(x, w_w)  s = Constant<value = int64[5] {0, 2, 3, 3, 3}>()  b = Reshape(a, s)"
     "c = Transpose<perm = [0, 2, 1, 3, 4]>(b)  t = Constant<value = int64[4] {0, 6, 3, 3}>()  d = "
     "Reshape(c, t)"
     "y = Conv(d, w_v)",
     1e-5},
    {"layout_tokens",
     {"choose_layout", "sink_transposes", "remove_identity_again"},
     "(float[N,3,8,8] x, float[6,3,4,4] w_w) => (float[N,4,6] y)",
     "a = Conv<strides = [4, 4]>(x, w_w)  s = Constant<value = int64[3] {0, 6, -1}>()  b = Reshape(a, s)"
     "c = Transpose<perm = [0, 2, 1]>(b)  y = Softmax(c)",
     1e-5},
    {"layout_one_dimension",
     {"choose_layout", "remove_identity_again"},
     "(float[N,2,9] x, float[3,2,3] w_w, float[3,2,3] w_u) => (float[N,2,9] y)",
     "a = Conv(x, w_w)  b = Relu(a)  y = ConvTranspose(b, w_u)",
     1e-5},
    // ---- sink_transposes
    {"sink_through_elementwise",
     {"sink_transposes", "remove_identity_again"},
     "(float[N,4,6] x, float[6,4] w_a) => (float[N,4,6] y)",
     "a = Transpose<perm = [0, 2, 1]>(x)  b = Add(a, w_a)  c = Sigmoid(b)  y = Transpose<perm = [0, 2, "
     "1]>(c)"},
    {"sink_below_reduction",
     {"sink_transposes", "remove_identity_again"},
     "(float[N,4,6,8] x) => (float[N,1,6,4] y)",
     "a = Transpose<perm = [0, 3, 2, 1]>(x)  axes = Constant<value = int64[1] {1}>()  y = ReduceMax(a, "
     "axes)"},
    {"sink_stays_where_it_is_cheap",
     {"sink_transposes", "remove_identity_again"},
     "(float[N,4,6] x, float[N,6,4] z) => (float[N,6,4] y, float[N,4,6] k)",
     "a = Transpose<perm = [0, 2, 1]>(x)  y = Add(a, z)  k = Relu(x)"},
    {"sink_keeps_elementwise_with_its_anchor",
     {"sink_transposes", "fuse_epilogue"},
     "(float[N,4,6] x, float[6,5] w_w) => (float[N,5,4] y)",
     "a = MatMul(x, w_w)  b = Relu(a)  y = Transpose<perm = [0, 2, 1]>(b)",
     1e-6},
    {"sink_through_pixels",
     {"choose_layout", "sink_transposes", "remove_identity_again"},
     "(float[1,7,4,6] x, float[1,7,4,6] t, float[1,6,1,1] w_w, float[1,6,1,3] w_v) => (float[1,1,4,7] y, "
     "float[1,1,4,5] z)",
     "s = Sigmoid(x)  a = Transpose<perm = [0, 3, 2, 1]>(s)  y = Conv(a, w_w)"
     "b = Transpose<perm = [0, 3, 2, 1]>(t)  z = Conv(b, w_v)",
     1e-6},
    // ---- sink_reshapes
    {"sink_reshape_not_possible",
     {"sink_reshapes", "remove_identity_again", "fuse_epilogue"},
     "(float[N,4] x, float[4,6] w_w, float[3] w_b, float[N,2,3] r) => (float[N,2,3] y)",
     "a = MatMul(x, w_w)  s = Constant<value = int64[3] {-1, 2, 3}>()  b = Reshape(a, s)  c = Add(b, w_b)"
     "d = Sigmoid(c)  e = Mul(c, d)  y = Add(e, r)",
     1e-6},
    {"sink_reshape_tensordot",
     {"sink_reshapes", "remove_identity_again", "fuse_epilogue"},
     "(float[N,5,4] x, float[4,6] w_w, float[6] w_b, float[N,5,6] r) => (float[N,5,6] y)",
     "s = Constant<value = int64[2] {-1, 4}>()  a = Reshape(x, s)  b = MatMul(a, w_w)"
     "t = Constant<value = int64[3] {-1, 5, 6}>()  c = Reshape(b, t)  d = Add(w_b, c)  e = Tanh(d)  y = "
     "Mul(e, r)",
     1e-6},
    // ---- fusion
    {"epilogue_conv",
     {"fuse_epilogue"},
     "(float[N,3,4,4] x, float[N,5,4,4] r, float[5,3,1,1] w_w, float[5] w_b, float[5,1,1] w_s) => "
     "(float[N,5,4,4] y)",
     "a = Conv(x, w_w, w_b)  b = Mul(a, w_s)  c = Sigmoid(b)  d = Mul(b, c)  e = Add(r, d)  y = Relu(e)",
     1e-5},
    {"epilogue_of_the_later",
     {"fuse_epilogue"},
     "(float[N,3,4,4] x, float[5,3,1,1] w_w, float[5,3,1,1] w_v) => (float[N,5,4,4] y)",
     "a = Conv(x, w_w)  b = Conv(x, w_v)  c = Add(a, b)  y = Relu(c)",
     1e-5},
    {"epilogue_must_not_grow",
     {"fuse_epilogue"},
     "(float[N,4] x, float[4,5] w_w, float[3,N,5] r) => (float[3,N,5] y, float[N,5] z)",
     "a = MatMul(x, w_w)  y = Add(a, r)  b = MatMul(x, w_w)  c = Relu(b)  z = Softmax(c)",
     1e-5},
    {"epilogue_keeps_outputs",
     {"fuse_epilogue"},
     "(float[N,4] x, float[4,5] w_w) => (float[N,5] y, float[N,5] z)",
     "y = MatMul(x, w_w)  z = Relu(y)"},
    {"epilogue_in_vectors_only",
     {"fuse_epilogue", "fuse_elementwise"},
     "(float[N,4] x, float[4,5] w_w) => (int64[N,5] y)",
     "a = MatMul(x, w_w)  b = Tanh(a)  c = Asin(b)  d = Floor(c)  y = Cast<to = 7>(d)"},
    {"elementwise_region",
     {"fuse_elementwise"},
     "(float[N,4] x, float[N,4] z, float[4] w_a) => (float[N,4] y, float[N,4] k)",
     "a = Add(x, w_a)  b = Tanh(a)  c = Mul(b, z)  half = Constant<value = float {0.5}>()  d = Mul(c, half)"
     "e = Exp(d)  y = Div(d, e)  k = Relu(z)",
     1e-6},
    {"elementwise_keeps_small_values",
     {"fuse_elementwise"},
     "(float[N,1] x, float[N,64] z) => (float[N,64] y)",
     "a = Exp(x)  b = Mul(a, z)  y = Relu(b)"},
    {"elementwise_shape_arithmetic",
     {"fuse_elementwise"},
     "(float[N,4] x, float[2] z) => (float[M,2] y)",
     "s = Shape(x)  i = Constant<value = int64[1] {0}>()  n = Gather(s, i)  two = Constant<value = int64[1] "
     "{2}>()"
     "m = Mul(n, two)  t = Concat<axis = 0>(m, two)  y = Expand(z, t)"},
    {"epilogue_quantized_twice",
     {"lower_ops", "fold_constants", "remove_identity", "choose_layout", "fuse_epilogue", "simplify_expr"},
     "(float[N,3,5,5] x, float[4,3,1,1] w_w) => (float[N,4,5,5] y)",
     "s = Constant<value = float {0.125}>()  z = Constant<value = int8 {3}>()  a = Conv(x, w_w)"
     "b = QuantizeLinear(a, s, z)  c = DequantizeLinear(b, s, z)  d = Relu(c)  e = QuantizeLinear(d, s, z)"
     "y = DequantizeLinear(e, s, z)"},
    {"epilogue_ends_before_integers",
     {"lower_ops", "fold_constants", "remove_identity", "choose_layout", "fuse_epilogue", "simplify_expr"},
     "(float[N,3,5,5] x, float[4,3,1,1] w_w) => (int8[N,4,5,5] y)",
     "s = Constant<value = float {0.125}>()  z = Constant<value = int8 {3}>()  a = Conv(x, w_w)"
     "b = Relu(a)  y = QuantizeLinear(b, s, z)"},
    {"quantized_by_other_steps",
     {"lower_ops", "fold_constants", "fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "s = Constant<value = float {0.125}>()  t = Constant<value = float {0.3}>()  z = Constant<value = uint8 "
     "{3}>()"
     "a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  c = QuantizeLinear(b, t, z)"
     "y = DequantizeLinear(c, t, z)"},
    // ---- simplify_expr
    {"simplify_gelu_erf",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "r = Constant<value = float {1.41421354}>()  one = Constant<value = float {1.0}>()  half = "
     "Constant<value = float {0.5}>()  a = Div(x, r)  b = Erf(a)  d = Add(b, one)  e = Mul(x, d)  y = Mul(e, "
     "half)",
     2e-6},
    {"simplify_gelu_erf_half_first",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "r = Constant<value = float {0.707106769}>()  one = Constant<value = float {1.0}>()  half = "
     "Constant<value = float {0.5}>()  h = Mul(half, x)  a = Mul(x, r)  b = Erf(a)  d = Add(one, b)  y = "
     "Mul(h, d)",
     2e-6},
    {"simplify_gelu_tanh_pow",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "k = Constant<value = float {0.7978845608}>()  q = Constant<value = float {0.044715}>()  three = "
     "Constant<value = float {3.0}>()  one = Constant<value = float {1.0}>()  half = Constant<value = float "
     "{0.5}>()  p = Pow(x, three)  a = Mul(p, q)  b = Add(x, a)  d = Mul(b, k)  e = Tanh(d)  f = Add(e, one) "
     " g = Mul(x, half)  y = Mul(g, f)",
     2e-6},
    {"simplify_gelu_tanh_square",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "k = Constant<value = float {0.7978845608}>()  q = Constant<value = float {0.044715}>()  one = "
     "Constant<value = float {1.0}>()  half = Constant<value = float {0.5}>()  s = Mul(x, x)  a = Mul(q, s)  "
     "b = Add(one, a)  m = Mul(k, x)  d = Mul(m, b)  e = Tanh(d)  f = Add(one, e)  g = Mul(half, x)  y = "
     "Mul(g, f)",
     2e-6},
    {"simplify_not_gelu",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "r = Constant<value = float {1.5}>()  one = Constant<value = float {1.0}>()  half = Constant<value = "
     "float {0.5}>()  a = Div(x, r)  b = Erf(a)  d = Add(b, one)  e = Mul(x, d)  y = Mul(e, half)",
     2e-6},
    {"simplify_silu",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "s = Sigmoid(x)  y = Mul(s, x)",
     2e-6},
    {"simplify_mish",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "s = Softplus(x)  t = Tanh(s)  y = Mul(x, t)",
     2e-6},
    {"simplify_hard_swish_sigmoid",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "s = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x)  y = Mul(x, s)",
     2e-6},
    {"simplify_hard_swish_clip_div",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "three = Constant<value = float {3.0}>()  zero = Constant<value = float {0.0}>()  six = Constant<value "
     "= float {6.0}>()  a = Add(x, three)  b = Clip(a, zero, six)  d = Mul(x, b)  y = Div(d, six)",
     2e-6},
    {"simplify_hard_swish_div_first",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "three = Constant<value = float {3.0}>()  zero = Constant<value = float {0.0}>()  six = Constant<value "
     "= float {6.0}>()  a = Add(three, x)  b = Clip(a, zero, six)  d = Div(b, six)  y = Mul(d, x)",
     2e-6},
    {"simplify_relu6_min_max",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "zero = Constant<value = float {0.0}>()  six = Constant<value = float {6.0}>()  a = Max(x, zero)  y = "
     "Min(a, six)",
     2e-6},
    {"simplify_max_min_crossed",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "one = Constant<value = float {1.0}>()  two = Constant<value = float {2.0}>()  a = Max(x, two)  y = "
     "Min(a, one)",
     2e-6},
    {"simplify_constants_multiply",
     {"fuse_elementwise", "simplify_expr"},
     "(float[N,40] x) => (float[N,40] y)",
     "a = Constant<value = float {3.0}>()  b = Constant<value = float {0.5}>()  d = Constant<value = float "
     "{4.0}>()  e = Mul(x, a)  f = Mul(b, e)  g = Div(f, d)  h = Neg(g)  y = Add(x, h)",
     2e-6},
    // ---- allow_flush
    {"flush_layers",
     {"fuse_epilogue", "fuse_elementwise", "simplify_expr", "allow_flush"},
     "(float[N,6] x, float[6,4] w_a, float[N,4] t, double[N,6] d, double[6,4] w_d) => "
     "(float[N,4] y, float[N,4] z, bool[N,4] u, float[N,2] v, double[N,4] s)",
     "a = MatMul(x, w_a)  y = Sigmoid(a)  b = MatMul(x, w_a)  c = Div(t, b)  z = Relu(c)  e = MatMul(x, w_a)"
     "zero = Constant<value = float {0.0}>()  u = Greater(e, zero)  f = MatMul(x, w_a)  g = Log(f)"
     "h = Softmax(g)  i, v = Split<axis = 1, num_outputs = 2>(h)  s = MatMul(d, w_d)"},
    {"flush_arithmetic",
     {"fuse_elementwise", "simplify_expr", "allow_flush"},
     "(float[N,6] x, float[N,6] t) => (float[N,6] y, float[N,6] z, float[N,6] n, float[N,6] m)",
     "a = Mul(x, t)  b = Sub(a, x)  y = Sigmoid(b)  c = Mul(x, t)  d = Sqrt(c)  z = Add(d, t)"
     "w = Constant<value = float[6] {1, 2, 3, 4, 5, 6}>()  n = LayerNormalization<epsilon = 0.0>(x, w, w)"
     "m = LayerNormalization(x, w, w)"},
    // ---- everything
    {"all_resnet_block",
     {"all"},
     "(float[N,3,8,8] x, float[8,3,3,3] w_1, float[8,8,3,3] w_2, float[8,3,1,1] w_3, float[8] w_s, float[8] "
     "w_b,"
     " float[8] w_m, float[8] w_var, float[10,8] w_f, float[10] w_c) => (float[N,10] y)",
     "a = Conv<pads = [1, 1, 1, 1]>(x, w_1)  b = BatchNormalization(a, w_s, w_b, w_m, w_var)  c = Relu(b)"
     "d = Conv<pads = [1, 1, 1, 1]>(c, w_2)  e = BatchNormalization(d, w_s, w_b, w_m, w_var)"
     "f = Conv(x, w_3)  g = BatchNormalization(f, w_s, w_b, w_m, w_var)  h = Add(e, g)  i = Relu(h)"
     "j = GlobalAveragePool(i)  k = Flatten(j)  y = Gemm<transB = 1>(k, w_f, w_c)",
     1e-4},
};

class PassProof : public testing::TestWithParam<Proof> {};

TEST_P(PassProof, SameTextAndValues) {
  const Proof& p = GetParam();
  const std::string model =
      std::string("<ir_version: 8, opset_import: [\"\" : 18]> g ") + p.signature + " { " + p.nodes + " }";
  const std::unique_ptr<Graph> before = graph_of(model);
  const std::unique_ptr<Graph> after = before->clone();
  run_only(*after, p.passes);
  std::string passes;
  for (const std::string& s : p.passes) passes += (passes.empty() ? "" : ", ") + s;
  expect_golden(p.name, text(*before) + "-- " + passes + "\n" + text(*after));
  expect_same_values(*before, *after, p.tolerance, {1, 3});
}

INSTANTIATE_TEST_SUITE_P(All, PassProof, testing::ValuesIn(kProofs),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sinter
