// Convolutional nets: Conv with what follows it, pools, normalisations, resampling.
#include <cmath>

#include "random_graphs/productions.h"

namespace sinter::random_graphs {
namespace {

// [N, C, spatial...] with static channels.
bool is_image(const Item& i) {
  return is_float(i.dtype) && (i.rank() == 3 || i.rank() == 4) && i.shape[1] > 0 && i.shape[1] <= 48;
}
const Item* any_image(Builder& b) { return b.any(is_image); }
size_t spatial(const Item& i) { return i.rank() - 2; }

// The least extent of its spatial axes; of symbols, 1 may be all there is.
int64_t least(const Item& i) {
  int64_t lo = 1000;
  for (size_t d = 2; d < i.rank(); ++d) lo = std::min(lo, i.shape[d] < 0 ? int64_t{1} : i.shape[d]);
  return lo;
}

std::string activation(Builder& b, const std::string& x, DType t) {
  switch (b.below(7)) {
    case 0: return b.node("Relu", {x});
    case 1: return b.node("LeakyRelu", {x}, {{"alpha", 0.1f}});
    case 2: return b.node("Mul", {x, b.node("Sigmoid", {x})});
    case 3: return b.node("Clip", {x, b.scalar(t, 0), b.scalar(t, 6)});
    case 4: return b.node("HardSwish", {x});
    case 5: return b.node("Tanh", {x});
    default: return x;
  }
}

std::string normalisation(Builder& b, const std::string& x, DType t, int64_t channels) {
  return b.node("BatchNormalization",
                {x, b.weight(t, {channels}, 0.5, 1.5), b.weight(t, {channels}, -0.5, 0.5),
                 b.weight(t, {channels}, -0.3, 0.3), b.weight(t, {channels}, 0.5, 1.5)},
                {{"epsilon", b.chance(50) ? 1e-5f : 1e-3f}});
}

// Attributes of a window that fits into the extents.
AttributeList window(Builder& b, const Item& x, bool dilated, std::vector<int64_t>* kernel_out) {
  std::vector<int64_t> kernel, strides, dilations, pads_before, pads_after;
  for (size_t d = 0; d < spatial(x); ++d) {
    const int64_t extent = x.shape[d + 2] < 0 ? 1 : x.shape[d + 2];
    const int64_t k = b.one_of<int64_t>({1, 2, 3, 3, 3, 5});
    const int64_t dilation = dilated && b.chance(15) ? 2 : 1;
    const int64_t reach = (k - 1) * dilation + 1;
    int64_t before = b.chance(60) ? k / 2 : 0, after = b.chance(80) ? before : k / 2;
    if (extent + before + after < reach) before = after = std::max<int64_t>(k / 2, reach - extent);
    kernel.push_back(k);
    strides.push_back(b.chance(70) ? 1 : 2);
    dilations.push_back(dilation);
    pads_before.push_back(std::min(before, k - 1));
    pads_after.push_back(std::min(after, k - 1));
  }
  if (kernel_out) *kernel_out = kernel;
  AttributeList a = {{"kernel_shape", kernel}, {"strides", strides}};
  if (dilated) a.push_back({"dilations", dilations});
  if (b.chance(12) && !(dilated && dilations != std::vector<int64_t>(dilations.size(), 1))) {
    a.push_back({"auto_pad", std::string(b.chance(50) ? "SAME_UPPER" : "SAME_LOWER")});
  } else {
    std::vector<int64_t> pads = pads_before;
    pads.insert(pads.end(), pads_after.begin(), pads_after.end());
    a.push_back({"pads", pads});
  }
  return a;
}

std::string convolution(Builder& b, const Item& x, int64_t* channels) {
  std::vector<int64_t> kernel;
  AttributeList a = window(b, x, true, &kernel);
  const int64_t in = x.shape[1];
  int64_t group = 1, out = b.one_of<int64_t>({1, 2, 4, 5, 8, 16, 17, 24});
  if (b.chance(25)) {
    group = in;
    out = in * (b.chance(80) ? 1 : 2);
  } else if (in % 2 == 0 && out % 2 == 0 && b.chance(15)) {
    group = 2;
  }
  std::vector<int64_t> shape = {out, in / group};
  double taps = static_cast<double>(in / group);
  for (int64_t k : kernel) shape.push_back(k), taps *= static_cast<double>(k);
  a.push_back({"group", group});
  const double range = 1.6 / std::sqrt(taps);
  std::vector<std::string> inputs = {x.name, b.weight(x.dtype, shape, -range, range)};
  if (b.chance(60)) inputs.push_back(b.weight(x.dtype, {out}));
  if (channels) *channels = out;
  return b.node("Conv", inputs, a);
}

// Conv, perhaps BatchNormalization, perhaps a factor, a residual and an activation.
bool add_conv(Builder& b) {
  const Item* x = any_image(b);
  if (!x) return false;
  int64_t channels = 0;
  std::string y = convolution(b, *x, &channels);
  if (b.chance(45)) y = normalisation(b, y, x->dtype, channels);
  if (b.chance(15)) {
    std::vector<int64_t> factor(x->rank(), 1);
    factor[1] = channels;
    y = b.node(b.chance(50) ? "Mul" : "Add", {y, b.weight(x->dtype, factor)});
  }
  activation(b, y, x->dtype);
  return true;
}

// x + f(x), as in residual nets.
bool add_residual(Builder& b) {
  const Item* x = any_image(b);
  if (!x) return false;
  const int64_t c = x->shape[1];
  std::vector<int64_t> kernel(spatial(*x), 3), pads(2 * spatial(*x), 1), shape = {c, c};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const double range = 1 / std::sqrt(9.0 * static_cast<double>(c));
  const auto conv = [&](const std::string& from) {
    return b.node("Conv", {from, b.weight(x->dtype, shape, -range, range), b.weight(x->dtype, {c})},
                  {{"pads", pads}});
  };
  const DType type = x->dtype;
  const std::string name = x->name;
  std::string y = activation(b, normalisation(b, conv(name), type, c), type);
  if (b.chance(50)) y = normalisation(b, conv(y), type, c);
  activation(b, b.chance(50) ? b.node("Add", {y, name}) : b.node("Add", {name, y}), type);
  return true;
}

bool add_conv_transpose(Builder& b) {
  const Item* x = any_image(b);
  if (!x) return false;
  const int64_t out = b.one_of<int64_t>({1, 3, 8});
  std::vector<int64_t> shape = {x->shape[1], out}, strides, pads;
  for (size_t d = 0; d < spatial(*x); ++d) {
    shape.push_back(b.one_of<int64_t>({2, 3, 4}));
    strides.push_back(b.one_of<int64_t>({1, 2}));
  }
  for (size_t d = 0; d < 2 * spatial(*x); ++d) pads.push_back(b.one_of<int64_t>({0, 0, 1}));
  const std::string y =
      b.node("ConvTranspose", {x->name, b.weight(x->dtype, shape, -0.3, 0.3), b.weight(x->dtype, {out})},
             {{"strides", strides}, {"pads", pads}});
  if (b.chance(60)) activation(b, y, x->dtype);
  return true;
}

bool add_pool(Builder& b) {
  const Item* x = any_image(b);
  if (!x) return false;
  AttributeList a = window(b, *x, false, nullptr);
  const std::string op = b.one_of<std::string>({"MaxPool", "MaxPool", "AveragePool", "LpPool"});
  if (op == "AveragePool") a.push_back({"count_include_pad", static_cast<int64_t>(b.below(2))});
  if (op == "LpPool") a.push_back({"p", b.one_of<int64_t>({1, 2, 3})});
  if (b.chance(20)) a.push_back({"ceil_mode", int64_t{1}});
  b.node(op, {x->name}, a);
  return true;
}

bool add_global_pool(Builder& b) {
  const Item* x = any_image(b);
  if (!x) return false;
  const std::string y = b.node(b.chance(75) ? "GlobalAveragePool" : "GlobalMaxPool", {x->name});
  // Squeeze and excite: the pooled channels scale the map.
  if (b.chance(50)) {
    const int64_t c = x->shape[1];
    std::vector<int64_t> shape = {c, c};
    shape.resize(x->rank(), 1);
    const std::string gate =
        b.node("Conv", {y, b.weight(x->dtype, shape, -0.4, 0.4), b.weight(x->dtype, {c})});
    b.node("Mul", {x->name, b.node(b.chance(50) ? "Sigmoid" : "HardSigmoid", {gate})});
  }
  return true;
}

bool add_norm(Builder& b) {
  const Item* x = any_image(b);
  if (!x) return false;
  const int64_t c = x->shape[1];
  const DType t = x->dtype;
  switch (b.below(4)) {
    case 0: normalisation(b, x->name, t, c); break;
    case 1:
      b.node("InstanceNormalization", {x->name, b.weight(t, {c}, 0.5, 1.5), b.weight(t, {c})},
             {{"epsilon", 0.01f}});
      break;
    case 2: b.node("LRN", {x->name}, {{"size", b.one_of<int64_t>({1, 3, 5})}, {"alpha", 0.1f}}); break;
    default: {
      const int64_t groups = c % 2 == 0 ? 2 : 1;
      b.node("GroupNormalization", {x->name, b.weight(t, {c}, 0.5, 1.5), b.weight(t, {c})},
             {{"num_groups", groups}, {"epsilon", 0.01f}});
    }
  }
  return true;
}

bool add_resize(Builder& b) {
  const Item* x = any_image(b);
  if (!x || x->rank() != 4) return false;
  const std::string mode = b.one_of<std::string>({"nearest", "nearest", "linear", "cubic"});
  AttributeList a = {
      {"mode", mode},
      {"coordinate_transformation_mode",
       b.one_of<std::string>({"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})}};
  if (mode == "nearest")
    a.push_back({"nearest_mode", b.one_of<std::string>({"floor", "round_prefer_floor", "ceil"})});
  const float scale = b.one_of({2.0f, 2.0f, 1.5f, 3.0f, 0.5f});
  b.node("Resize", {x->name, "", b.floats({1, 1, scale, b.chance(70) ? scale : 2.0f})}, a);
  return true;
}

bool add_depth_space(Builder& b) {
  const Item* x = any_image(b);
  if (!x || x->rank() != 4) return false;
  if (x->shape[1] % 4 == 0 && b.chance(60))
    b.node("DepthToSpace", {x->name},
           {{"blocksize", int64_t{2}}, {"mode", std::string(b.chance(50) ? "DCR" : "CRD")}});
  else if (x->is_static() && x->shape[2] % 2 == 0 && x->shape[3] % 2 == 0)
    b.node("SpaceToDepth", {x->name}, {{"blocksize", int64_t{2}}});
  else
    return false;
  return true;
}

// Pad and what may take it in.
bool add_pad_conv(Builder& b) {
  const Item* x = any_image(b);
  if (!x || least(*x) < 2) return false;
  const int64_t r = static_cast<int64_t>(x->rank());
  std::vector<int64_t> pads(static_cast<size_t>(2 * r), 0);
  for (int64_t d = 2; d < r; ++d) {
    pads[static_cast<size_t>(d)] = b.between(0, 1);
    pads[static_cast<size_t>(d + r)] = b.between(0, 1);
  }
  const std::string mode = b.one_of<std::string>({"constant", "constant", "reflect", "edge"});
  const std::string y = b.node("Pad", {x->name, b.integers(pads)}, {{"mode", mode}});
  const int64_t c = x->shape[1];
  std::vector<int64_t> shape = {4, c};
  for (size_t d = 0; d < spatial(*x); ++d) shape.push_back(2);
  b.node("Conv", {y, b.weight(x->dtype, shape, -0.3, 0.3)});
  return true;
}

// A concatenation over channels, as in dense nets.
bool add_dense(Builder& b) {
  const Item* x = any_image(b);
  if (!x) return false;
  const Item* y = b.any([&](const Item& i) {
    if (i.dtype != x->dtype || i.rank() != x->rank() || i.dims[0] != x->dims[0]) return false;
    return std::equal(i.dims.begin() + 2, i.dims.end(), x->dims.begin() + 2);
  });
  if (!y || x->shape[1] + y->shape[1] > 48) return false;
  b.node("Concat", {x->name, y->name}, {{"axis", int64_t{1}}});
  return true;
}

}  // namespace

const std::vector<Production>& image_productions() {
  static const std::vector<Production> table = {{"conv", 22, add_conv},
                                                {"residual", 8, add_residual},
                                                {"conv_transpose", 3, add_conv_transpose},
                                                {"pool", 6, add_pool},
                                                {"global_pool", 3, add_global_pool},
                                                {"norm", 5, add_norm},
                                                {"resize", 4, add_resize},
                                                {"depth_space", 2, add_depth_space},
                                                {"pad_conv", 3, add_pad_conv},
                                                {"dense", 4, add_dense}};
  return table;
}

}  // namespace sinter::random_graphs
