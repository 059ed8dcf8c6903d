// fuse_groupnorm and fuse_pixel_shuffle on the forms that exporters write, and on what must stay: golden text
// and equal values.
#include "passes/proof.h"

namespace sinter {
namespace {

struct Form {
  const char* name;
  const char* pass;
  const char* op;  // that the nodes become
  const char* signature;
  const char* nodes;
  bool fused = true;
};

#define GROUPS                                                                                              \
  "t = Constant<value = int64[3] {0, 3, -1}>()  s = Shape(x)  one = Constant<value = float[3] {1, 1, 1}>()" \
  "zero = Constant<value = float[3] {0, 0, 0}>()  r = Reshape(x, t)  i = InstanceNormalization(r, one, "    \
  "zero)"

const Form kForms[] = {
    {"groupnorm", "fuse_groupnorm", "GroupNormalization",
     "(float[N,6,H,4] x, float[6,1,1] w_a, float[6,1,1] w_b) => (float[N,6,H,4] y)",
     GROUPS "b = Reshape(i, s)  m = Mul(b, w_a)  y = Add(w_b, m)"},
    {"groupnorm_scales_of_groups", "fuse_groupnorm", "GroupNormalization",
     "(float[N,6,5] x, float[3] w_s, float[3] w_c, float[1,6,1] w_b) => (float[N,6,5] y)",
     "t = Constant<value = int64[3] {0, 3, -1}>()  s = Shape(x)  r = Reshape(x, t)"
     "i = InstanceNormalization<epsilon = 0.1>(r, w_s, w_c)  b = Reshape(i, s)  y = Add(b, w_b)"},
    {"groupnorm_bare", "fuse_groupnorm", "GroupNormalization", "(float[N,6,H,4] x) => (float[N,6,H,4] y)",
     GROUPS "y = Reshape(i, s)"},
    {"no_groupnorm_result_used", "fuse_groupnorm", "GroupNormalization",
     "(float[N,6,H,4] x) => (float[N,6,H,4] y, float[N,3,M] i)", GROUPS "y = Reshape(i, s)", false},
    {"no_groupnorm_split_channels", "fuse_groupnorm", "GroupNormalization",
     "(float[N,4,3,4] x) => (float[N,4,3,4] y)", GROUPS "y = Reshape(i, s)", false},
    {"groupnorm_factor_along_pixels", "fuse_groupnorm", "GroupNormalization",
     "(float[N,6,6,6] x, float[6] w_a) => (float[N,6,6,6] y)", GROUPS "b = Reshape(i, s)  y = Mul(b, w_a)"},
    {"pixel_unshuffle", "fuse_pixel_shuffle", "SpaceToDepth", "(float[N,3,4,6] x) => (float[N,12,2,3] y)",
     "s = Constant<value = int64[6] {-1, 3, 2, 2, 3, 2}>()  t = Constant<value = int64[4] {-1, 12, 2, 3}>()"
     "a = Reshape(x, s)  b = Transpose<perm = [0, 1, 3, 5, 2, 4]>(a)  y = Reshape(b, t)"},
    {"space_to_depth_blocks_first", "fuse_pixel_shuffle", "SpaceToDepth",
     "(float[N,3,4,6] x) => (float[N,12,2,3] y)",
     "s = Constant<value = int64[6] {-1, 3, 2, 2, 3, 2}>()  t = Constant<value = int64[4] {-1, 12, 2, 3}>()"
     "a = Reshape(x, s)  b = Transpose<perm = [0, 3, 5, 1, 2, 4]>(a)  y = Reshape(b, t)"},
    {"pixel_shuffle", "fuse_pixel_shuffle", "DepthToSpace", "(float[N,12,H,3] x) => (float[N,3,K,6] y)",
     "s = Constant<value = int64[6] {0, 3, 2, 2, -1, 3}>()  t = Constant<value = int64[4] {0, 3, -1, 6}>()"
     "a = Reshape(x, s)  b = Transpose<perm = [0, 1, 4, 2, 5, 3]>(a)  y = Reshape(b, t)"},
    {"depth_to_space_blocks_first", "fuse_pixel_shuffle", "DepthToSpace",
     "(float[N,12,2,3] x) => (float[N,3,4,6] y)",
     "s = Constant<value = int64[6] {-1, 2, 2, 3, 2, 3}>()  t = Constant<value = int64[4] {-1, 3, 4, 6}>()"
     "a = Reshape(x, s)  b = Transpose<perm = [0, 3, 4, 1, 5, 2]>(a)  y = Reshape(b, t)"},
    {"no_pixel_shuffle_other_blocks", "fuse_pixel_shuffle", "DepthToSpace",
     "(float[N,12,2,3] x) => (float[N,2,4,9] y)",
     "s = Constant<value = int64[6] {-1, 2, 2, 3, 2, 3}>()  t = Constant<value = int64[4] {-1, 2, 4, 9}>()"
     "a = Reshape(x, s)  b = Transpose<perm = [0, 1, 4, 2, 5, 3]>(a)  y = Reshape(b, t)",
     false},
    {"no_pixel_shuffle_windows", "fuse_pixel_shuffle", "DepthToSpace",
     "(float[N,4,4,3] x) => (float[M,2,2,3] y)",
     "s = Constant<value = int64[6] {-1, 2, 2, 2, 2, 3}>()  t = Constant<value = int64[4] {-1, 2, 2, 3}>()"
     "a = Reshape(x, s)  b = Transpose<perm = [0, 1, 3, 2, 4, 5]>(a)  y = Reshape(b, t)",
     false},
};

std::ostream& operator<<(std::ostream& out, const Form& f) { return out << f.name; }

class GroupForm : public testing::TestWithParam<Form> {};

TEST_P(GroupForm, SameTextAndValues) {
  const Form& f = GetParam();
  std::unique_ptr<Graph> folded = graph_of(model_of(f.signature, f.nodes));
  run_only(*folded, {"fold_constants"});
  // With --exact there is no norm, while what only moves is the same.
  const ProvedForm p = prove_form({f.name, f.pass, "GroupNormalization"}, std::move(folded));
  EXPECT_EQ(count_op(*p.after, f.op), f.fused ? 1u : 0u);
  expect_same_values(*p.before, *p.exact, 0, {2});
}

// Between convolutions no Transpose is left.
TEST(GroupNormalization, RunsChannelsLast) {
  const std::unique_ptr<Graph> g = graph_of(
      "<ir_version: 8, opset_import: [\"\" : 18]> g (float[N,4,5,5] x, float[6,4,1,1] w_k, float[6,1,1] w_a, "
      "float[6,1,1] w_b, float[2,6,1,1] w_l) => (float[N,2,5,5] y) { t = Constant<value = int64[3] {0, 3, "
      "-1}>()"
      " one = Constant<value = float[3] {1, 1, 1}>()  zero = Constant<value = float[3] {0, 0, 0}>()"
      " c = Conv(x, w_k)  s = Shape(c)  r = Reshape(c, t)  i = InstanceNormalization(r, one, zero)"
      " b = Reshape(i, s)  m = Mul(b, w_a)  a = Add(m, w_b)  e = Relu(a)  y = Conv(e, w_l) }");
  const std::unique_ptr<Graph> all = g->clone();
  run_only(*all, {"all"});
  EXPECT_EQ(count_op(*all, "GroupNormalization"), 1u);
  EXPECT_EQ(count_op(*all, "Transpose"), 2u) << text(*all);
  EXPECT_EQ(all->nodes.size(), 5u);
  expect_same_values(*g, *all, 1e-5, {1, 3});
}

// The many pixels are read and written as planes: no Transpose is left at that side.
TEST(PixelShuffle, ReadsAndWritesPlanes) {
  for (const char* mode : {"CRD", "DCR"}) {
    const std::string m = std::string("<blocksize = 2, mode = \"") + mode + "\">";
    const std::unique_ptr<Graph> g = graph_of(
        "<ir_version: 8, opset_import: [\"\" : 28]> g (float[N,2,6,4] x, float[8,8,3,3] w_k) => "
        "(float[N,2,6,4] y)"
        " { a = SpaceToDepth" +
        m + "(x)  c = Conv<pads = [1, 1, 1, 1]>(a, w_k)  y = DepthToSpace" + m + "(c) }");
    const std::unique_ptr<Graph> all = g->clone();
    run_only(*all, {"all"});
    EXPECT_EQ(all->nodes.size(), 3u) << text(*all);
    expect_same_values(*g, *all, 1e-6, {1, 2});
  }
}

INSTANTIATE_TEST_SUITE_P(All, GroupForm, testing::ValuesIn(kForms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sinter
