#include "kernels/products/direct_ways.h"

#include <cmath>

#include "kernels/convolutions/winograd_choice.h"
#include "kernels/products/tiles.h"
#include "ops/op.h"
#include "ops/products/row_product.h"
#include "targets/target.h"

namespace sinter {
namespace {

// A picture's planes: of its few channels the taps are gathered.
double cycles_of_planes(const Node& n, const Target& t) {
  const Tensor& weight = *n.inputs[1]->data;
  const double vectors = std::ceil(static_cast<double>(weight.dim(0)) / t.lanes);
  double pixels = 1;
  for (const Dim& d : window_of(n).out) pixels *= static_cast<double>(likely_extent(d));
  return static_cast<double>(weight.size() / weight.dim(0)) * pixels * vectors * 1.1 / t.speed.fma;
}

}  // namespace

std::vector<Candidate> direct_ways(const Node& n, const Context& context, double share) {
  const Target& t = context.target;
  const Freedom& f = n.freedom;
  if (f.winograd == 0 && !f.strassen && !f.tile_matrices) return {};
  Candidate c{.text = "direct"};
  if (context.of(n).reads_nchw)
    c.cycles = cycles_of_planes(n, t);
  else if (f.winograd > 0 && may_use_winograd(n))
    c.cycles = direct_cycles(n, context, share);
  else if (const auto p = f.tile_matrices ? amx_product(n) : row_product(n))
    c.cycles = plain_cycles(*p, t, context.of(n).weights.near);
  else
    return {};
  const Tensor& weight = *n.inputs[1]->data;
  const bool is_conv = std::string_view(n.op->name) == "Conv";
  c.weight_bytes = is_conv
                       ? weight.size() / weight.dim(0) * round_up(weight.dim(0), t.lanes) * t.element_bytes()
                       : weight.size() * t.element_bytes();
  return {c};
}

std::vector<Candidate> direct_ways(const Node& n, const Context& context) {
  return direct_ways(n, context, 1);
}

}  // namespace sinter
