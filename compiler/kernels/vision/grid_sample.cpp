// GridSample and AffineGrid: calls of runtime/sinter/grid_sample.h, one an image.
#include "emit/layer.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

constexpr int64_t kPositions = 32;  // of GridLanes in sinter/grid_lanes.h

bool accepts_sample(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "GridSample" && n.op->domain[0] == 0;
}
bool accepts_affine(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "AffineGrid" && n.op->domain[0] == 0;
}

// "const std::int64_t dims[2] = {H, W};"
void declare_dims(LayerWriter& w, const Shape& s, size_t first, size_t count) {
  std::string list;
  for (size_t d = 0; d < count; ++d) list += (d ? ", " : "") + w.dim(s[first + d]);
  w.out.line("const std::int64_t dims[{}] = {{{}}};", count, list);
}

void emit_sample(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& image = n.inputs[0]->type.shape;
  const Shape& grid = n.inputs[1]->type.shape;
  const size_t axes = image.size() - 2;
  const std::string mode = n.attributes.text("mode", "linear"),
                    padding = n.attributes.text("padding_mode", "zeros");
  const int width = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  w.include("sinter/grid_sample.h");
  w.summary(fmt::format("GridSample {} at {}, {}, {}", text(image), text(grid), mode, padding));
  int64_t taps = 1;
  for (size_t d = 0; d < axes; ++d) taps *= width;
  w.flops(product(n.outputs[0]->type.shape) * Dim(2 * taps));
  const std::string x = w.input(0), g = w.input(1);
  PlainOutput out(w, n.inputs[0]->type.dtype);
  declare_dims(w, image, 2, axes);
  // With its channels side by side, an image is read by whole vectors.
  const DType t = n.inputs[0]->type.dtype;
  std::string lanes;
  if (t == DType::kF32 && element_type(n) == t && w.target.lanes > 1 && image[1].hi() >= w.target.lanes) {
    w.include("sinter/grid_lanes.h");
    lanes = fmt::format(", GridLanes{{{}, {}}}", w.scratch("turned", "float", product(image, 1).hi()),
                        w.scratch("results", "float", (image[1] * kPositions).hi()));
  }
  const Dim positions = product(grid, 1, grid.size() - 1);
  const std::string plane = w.dim(product(image, 1)), spots = w.dim(positions), channels = w.dim(image[1]);
  w.out.put(loop_text("n", w.dim(image[0])));
  w.out.line("sinter::grid_sample<{}>({} + n * {}, {} + n * {}, {} + n * {}, {}, dims,", width, x, plane, g,
             w.dim(positions * Dim(static_cast<int64_t>(axes))), out.pointer(), w.dim(image[1] * positions),
             channels);
  w.out.line("                       {}, {}, sinter::GridPadding::{}{});", spots,
             n.attributes.integer("align_corners", 0) != 0,
             padding == "border"       ? "kBorder"
             : padding == "reflection" ? "kReflection"
                                       : "kZeros",
             lanes);
  w.out.line("}}");
  out.finish();
}

void emit_affine(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& s = n.outputs[0]->type.shape;
  w.include("sinter/grid_sample.h");
  w.summary(fmt::format("AffineGrid {}", text(s)));
  const std::string theta = w.input(0);
  PlainOutput out(w, n.inputs[0]->type.dtype);
  declare_dims(w, s, 1, s.size() - 2);
  w.out.line("sinter::affine_grid({}, {}, {}, dims, {});", theta, out.pointer(), w.dim(s[0]),
             n.attributes.integer("align_corners", 0) != 0);
  out.finish();
}

}  // namespace

const std::vector<Kernel>& kernels_grid_sample() {
  static const std::vector<Kernel> table = {
      {"grid_sample",
       "an image read at the positions of a grid",
       accepts_sample,
       emit_sample,
       {.work = Work::kLoops}},
      {"affine_grid", "positions from affine maps", accepts_affine, emit_affine, {.work = Work::kLoops}},
  };
  return table;
}

}  // namespace sinter
