// DepthToSpace (ONNX DepthToSpace-13) and SpaceToDepth (SpaceToDepth-13): blocks of channels become blocks of
// pixels and back. DCR: channel = (by * block + bx) * C' + c; CRD: channel = (c * block + by) * block + bx.
// SpaceToDepth (mode since opset 28) is the inverse of either. With the attributes channels_last and
// wide_planes = 1, which pass spread_pixel_shuffle sets, the tensor of the many pixels is [N, C, H, W] all
// the same.
#include <cstring>

#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

int64_t block_of(Inference& x) {
  const int64_t b = x.attributes().integer("blocksize", 0);
  x.require(b >= 1 && b < (int64_t{1} << 15), fmt::format("blocksize is {}", b));
  x.require(x.rank(0) == 4, fmt::format("input {} has not four axes", text(x.shape(0))));
  x.require(size_of(x.dtype(0)) > 0, "not for strings");
  return b;
}

void require_mode(const Inference& x) {
  const std::string mode = x.attributes().text("mode", "DCR");
  x.require(mode == "DCR" || mode == "CRD", fmt::format("mode is {}", sinter::quoted(mode)));
}

// The attributes that say how the tensor of the many pixels lies.
Attributes wide_of(const Attributes& a) {
  Attributes wide = a;
  if (a.integer("wide_planes", 0) != 0) wide.set("channels_last", int64_t{0});
  return wide;
}

void infer_depth_to_space(Inference& x) {
  const Attributes& a = x.attributes();
  const int64_t b = block_of(x);
  require_mode(x);
  const Dim c = channels_of(a, x.shape(0)), bb(b * b);
  x.require_equal(mod(c, bb), 0, fmt::format("channels {} modulo {}", c.text(), b * b));
  const Shape s = spatial_of(a, x.shape(0));
  x.set(0, x.dtype(0),
        with_channels(wide_of(a), x.shape(0)[0], exact_div(c, bb), {s[0] * Dim(b), s[1] * Dim(b)}));
}

void infer_space_to_depth(Inference& x) {
  const Attributes &a = x.attributes(), wide = wide_of(a);
  require_mode(x);
  const int64_t b = block_of(x);
  Shape s = spatial_of(wide, x.shape(0));
  for (Dim& d : s) {
    x.require_equal(mod(d, Dim(b)), 0, fmt::format("extent {} modulo {}", d.text(), b));
    d = exact_div(d, Dim(b));
  }
  x.set(0, x.dtype(0), with_channels(a, x.shape(0)[0], channels_of(wide, x.shape(0)) * Dim(b * b), s));
}

void eval_depth_to_space(Evaluation& e) {
  const Attributes& a = e.attributes();
  const Tensor x = channels_first(a, e.in[0]);
  const int64_t b = a.integer("blocksize", 0), n = x.dim(0), c = x.dim(1) / (b * b), h = x.dim(2),
                w = x.dim(3);
  const bool crd = a.text("mode", "DCR") == "CRD";
  const Tensor blocks =
      x.reshaped(crd ? std::vector<int64_t>{n, c, b, b, h, w} : std::vector<int64_t>{n, b, b, c, h, w});
  const Tensor y = blocks.transposed(crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3}
                                         : std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  e.out[0] = as_node_layout(wide_of(a), y.reshaped({n, c, h * b, w * b}));
}

void eval_space_to_depth(Evaluation& e) {
  const Attributes& a = e.attributes();
  const Tensor x = channels_first(wide_of(a), e.in[0]);
  const int64_t b = a.integer("blocksize", 0), n = x.dim(0), c = x.dim(1), h = x.dim(2) / b, w = x.dim(3) / b;
  const Tensor y = x.reshaped({n, c, h, b, w, b})
                       .transposed(a.text("mode", "DCR") == "CRD" ? std::vector<int64_t>{0, 1, 3, 5, 2, 4}
                                                                  : std::vector<int64_t>{0, 3, 5, 1, 2, 4});
  e.out[0] = as_node_layout(a, y.reshaped({n, c * b * b, h, w}));
}

}  // namespace

const std::vector<Op>& ops_space_depth() {
  static const std::vector<Op> table = {
      {.name = "DepthToSpace", .infer = infer_depth_to_space, .eval = eval_depth_to_space},
      {.name = "SpaceToDepth", .infer = infer_space_to_depth, .eval = eval_space_to_depth},
  };
  return table;
}

}  // namespace sinter
