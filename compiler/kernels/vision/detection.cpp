// NonMaxSuppression, RoiAlign, MaxRoiPool and DeformConv: calls of runtime/sinter/nms.h, roi.h and
// deform_conv.h.
#include "emit/expr_text.h"
#include "kernels/movement/copies.h"
#include "kernels/nest.h"
#include "ops/movement/movement.h"
#include "ops/windows/window.h"
#include "sinter/nms.h"

namespace sinter {
namespace {

bool accepts_op(const Node& n, std::string_view name) {
  return n.op->domain[0] == '\0' && n.op->name == name;
}

// ---- NonMaxSuppression

bool accepts_nms(const Node& n, const Context&) {
  if (!accepts_op(n, "NonMaxSuppression") || n.epilogue) return false;
  const Dim& count = n.outputs[0]->type.shape[0];
  return count.is(0) || own_count(n, count);
}
// The one number of input i as text: a literal where it is constant.
std::string number(LayerWriter& w, size_t i) {
  const Value* v = w.node.inputs[i];
  if (v->data && v->type.dtype == DType::kF32) return float_literal(v->data->real(0));
  if (const auto known = contents(v)) return w.dim((*known)[0]);
  return w.input(i) + "[0]";
}
// `kept`: how many rows it writes. Threads take classes, each with rows of its own to fill, where the output
// has room for all that could be kept: it has, unless the user bounds it.
void emit_suppression(LayerWriter& w, const std::string& at, const std::string& by, const std::string& rows) {
  const Node& n = w.node;
  const Shape& scores = n.inputs[1]->type.shape;
  const Dim classes = scores[0] * scores[1], &boxes = scores[2];
  const auto most = contents(n.inputs[2]);
  const int64_t each = most ? std::min((*most)[0].hi(), boxes.hi()) : boxes.hi();
  const bool apart = n.outputs[0]->type.shape[0].hi() >= classes.hi() * each;
  w.flops(product(scores) * Dim(2));  // compared with the threshold and with one another
  const LayerWriter::Turns turns = w.open_parts(apart ? w.dim(classes) : "1");
  const std::string keys = w.scratch_of_part("keys", "std::int32_t", nms_keys(boxes.hi())),
                    edges = w.scratch_of_part("edges", "float",
                                              std::max<int64_t>(nms_edges(boxes.hi(), each), 1)),
                    count = w.dim(boxes);
  const bool parts = turns.first != "0";
  if (parts)
    w.out.line("sinter::non_max_suppression_apart({}, {}, {}, {}, options, {}, {}, {{{}, {}}}, {});", at, by,
               w.dim(scores[1]), count, turns.first, turns.end, keys, edges, rows);
  w.close_parts();
  if (parts)
    w.out.line("const std::int64_t kept = sinter::nms_close_up({}, {}, options, {});", w.dim(classes), count,
               rows);
  else
    w.out.line(
        "const std::int64_t kept = sinter::non_max_suppression({}, {}, {}, {}, {}, options, {{{}, {}}}, {});",
        at, by, w.dim(scores[0]), w.dim(scores[1]), count, keys, edges, rows);
}
void emit_nms(LayerWriter& w) {
  const Node& n = w.node;
  const Shape &boxes = n.inputs[0]->type.shape, &scores = n.inputs[1]->type.shape;
  const Dim& count = n.outputs[0]->type.shape[0];
  w.summary(fmt::format("NonMaxSuppression of boxes {} by scores {}", text(boxes), text(scores)));
  if (count.is(0)) {
    w.out.line("// Nothing is ever kept.");
    return;
  }
  w.include("sinter/nms.h");
  const std::string at = w.input(0), by = w.input(1);
  w.out.line("sinter::NmsOptions options;");
  w.out.line("options.center = {};", n.attributes.integer("center_point_box", 0) != 0);
  w.out.line("options.most = {};", number(w, 2));
  if (n.input(3)) w.out.line("options.overlap = {};", number(w, 3));
  if (n.input(4)) {
    w.out.line("options.has_least_score = true;");
    w.out.line("options.least_score = {};", number(w, 4));
  }
  const std::string rows = w.output(0), report = w.count(count);
  w.out.line("options.room = {};", count.hi());
  emit_suppression(w, at, by, rows);
  w.include("sinter/status.h");
  w.can_fail();
  w.out.line("if (kept < 0) return sinter::kCapacityError;");
  w.out.line("*{} = kept;", report);
  w.out.line("return sinter::kOk;");
}

// ---- RoiAlign, MaxRoiPool

void declare_geometry(LayerWriter& w, size_t image = 0) {
  const Shape &x = w.node.inputs[image]->type.shape, &y = w.node.outputs[0]->type.shape;
  const bool last = w.node.attributes.integer("channels_last", 0) != 0;
  const size_t height = last ? 1 : 2, channels = last ? 3 : 1;
  w.include("sinter/roi.h");
  w.include("sinter/status.h");
  w.can_fail();
  w.out.line("const sinter::RoiGeometry geometry{{{}, {}, {}, {}, {}, {}, {}, {}}};", w.dim(x[0]),
             w.dim(x[channels]), w.dim(x[height]), w.dim(x[height + 1]), w.dim(y[height]),
             w.dim(y[height + 1]),
             float_literal(static_cast<double>(w.node.attributes.real("spatial_scale", 1))), last);
}
// What rows of bins are summed with: vectors of channels where they lie beside each other.
std::string align_sum(LayerWriter& w, size_t image) {
  const Attributes& a = w.node.attributes;
  const bool lanes = a.integer("channels_last", 0) != 0 && a.text("mode", "avg") == "avg" &&
                     w.node.inputs[image]->type.dtype == DType::kF32 && w.target.lanes > 1;
  if (!lanes) return "sinter::roi_detail::SumBins()";
  w.include("sinter/roi_lanes.h");
  return "RoiLanes()";
}
// The arguments of sinter::roi_align_rows behind the rows.
std::string align_options(const Attributes& a) {
  return fmt::format("{}, {}, {}", a.integer("sampling_ratio", 0),
                     a.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
                     a.text("mode", "avg") == "max");
}
Dim align_flops(const Node& n, const Dim& results) {
  const int64_t ratio = n.attributes.integer("sampling_ratio", 0);
  return results * Dim(8 * std::max<int64_t>(ratio * ratio, 1));
}
void emit_roi_align(LayerWriter& w) {
  const Node& n = w.node;
  const Attributes& a = n.attributes;
  const std::string mode = a.text("mode", "avg");
  w.summary(fmt::format("RoiAlign ({}) of {} to {}", mode, text(n.inputs[0]->type.shape),
                        text(n.outputs[0]->type.shape)));
  w.flops(align_flops(n, product(n.outputs[0]->type.shape)));
  const std::string x = w.input(0), regions = w.input(1), images = w.input(2);
  PlainOutput y(w, n.inputs[0]->type.dtype);
  declare_geometry(w);
  const Dim& count = n.inputs[1]->type.shape[0];
  w.out.line("if (!sinter::images_exist({}, {}, geometry.batches)) return sinter::kIndexError;", images,
             w.dim(count));
  const LayerWriter::Turns turns = w.open_parts(w.dim(count * Dim(a.integer("output_height", 1))));
  w.out.line("sinter::roi_align_rows({}, geometry, {}, {}, {}, {}, {}, {}, {});", x, regions, images,
             turns.first, turns.end, align_options(a), y.pointer(), align_sum(w, 0));
  w.close_parts();
  y.finish();
  w.out.line("return sinter::kOk;");
}

// Each region is computed where its row lies.
bool accepts_roi_rows(const Node& n, const Context&) {
  return n.op->name == std::string_view("roi_rows") && n.op->domain == std::string_view("sinter") &&
         !n.epilogue;
}
// What y holds beside the regions' rows: input 0, or one element throughout. Then, of regions whose rows
// ascend, a thread fills the rows in front of those that it computes: gap(r) are the ones in front of region
// r.
void begin_rows(LayerWriter& w, const std::string& rows, const std::string& y) {
  const Node& n = w.node;
  const Shape& data = n.outputs[0]->type.shape;
  const std::string all = w.dim(product(data)), regions = w.dim(n.inputs[1]->type.shape[0]);
  w.include("sinter/copy.h");
  const Tensor* fill = n.attributes.tensor("fill");
  if (!fill) {
    const std::string x = w.input(0);
    w.may_overwrite(0);
    w.out.line("if ({1} != {0}) sinter::copy({1}, {0}, {2});", x, y, all);
    return;
  }
  const std::string element = element_literal(*fill, 0), block = w.dim(product(data, 1));
  w.out.line("if (!apart) sinter::fill({}, {}, {});", y, all, element);
  w.out.line("const auto gap = [=](std::int64_t r) {{");
  w.out.line("const std::int64_t from = r > 0 ? {}[r - 1] + 1 : 0, to = r < {} ? {}[r] : {};", rows, regions,
             rows, w.dim(data[0]));
  w.out.line("sinter::fill({} + from * {}, (to - from) * {}, {});", y, block, block, element);
  w.out.line("}};");
}
void emit_roi_rows(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& data = n.outputs[0]->type.shape;
  const Dim& regions = n.inputs[1]->type.shape[0];
  const bool filled = n.attributes.has("fill");
  w.summary(fmt::format("RoiAlign of {} into rows of {}{}", text(n.inputs[2]->type.shape), text(data),
                        filled ? ", the others filled" : ""));
  w.flops(align_flops(n, regions * product(data, 1)));
  w.include("sinter/index.h");
  const std::string rows = w.input(1), image = w.input(2), at = w.input(3), images = w.input(4),
                    y = w.output(0), count = w.dim(regions);
  declare_geometry(w, 2);
  w.out.line("if (!sinter::images_exist({}, {}, geometry.batches)) return sinter::kIndexError;", images,
             count);
  w.out.line("if (!sinter::are_inside({}, {}, {})) return sinter::kIndexError;", rows, count, w.dim(data[0]));
  w.out.line("[[maybe_unused]] const bool apart = {1} > 0 && sinter::are_ascending({0}, {1});", rows, count);
  begin_rows(w, rows, y);
  w.out.line("const auto place = [=](std::int64_t r) {{ return sinter::index_of({}[r], {}); }};", rows,
             w.dim(data[0]));
  const int64_t height = n.attributes.integer("output_height", 1);
  const std::string bins = w.dim(regions * Dim(height));
  const LayerWriter::Turns turns = w.open_parts(bins);
  std::string first = turns.first, end = turns.end;
  if (first != "0") {
    // Where regions may be of one row, of which the last one counts, the first thread takes all.
    w.out.line("const std::int64_t first = apart ? {0} : 0, end = apart ? {1} : {0} > 0 ? 0 : {2};", first,
               end, bins);
    first = "first", end = "end";
  }
  if (filled && turns.first == "0") {
    w.out.line("for (std::int64_t r = 0; apart && r <= {}; ++r) gap(r);", count);
  } else if (filled) {
    w.out.line("if (apart && first < end) {{");
    w.out.line("for (std::int64_t r = (first + {0}) / {1}; r < (end + {0}) / {1}; ++r) gap(r);", height - 1,
               height);
    w.out.line("if (end == {}) gap({});", bins, count);
    w.out.line("}}");
  }
  w.out.line("sinter::roi_align_rows({}, geometry, {}, {}, {}, {}, {}, {}, {}, place);", image, at, images,
             first, end, align_options(n.attributes), y, align_sum(w, 2));
  w.close_parts();
  w.out.line("return sinter::kOk;");
}
void emit_max_roi_pool(LayerWriter& w) {
  const Node& n = w.node;
  w.summary(
      fmt::format("MaxRoiPool of {} to {}", text(n.inputs[0]->type.shape), text(n.outputs[0]->type.shape)));
  const std::string x = w.input(0), regions = w.input(1);
  PlainOutput y(w, n.inputs[0]->type.dtype);
  declare_geometry(w);
  w.out.line("const bool inside = sinter::max_roi_pool({}, geometry, {}, {}, {});", x, regions,
             w.dim(n.inputs[1]->type.shape[0]), y.pointer());
  w.out.line("if (!inside) return sinter::kIndexError;");
  y.finish();
  w.out.line("return sinter::kOk;");
}

// ---- DeformConv

bool accepts_deform(const Node& n, const Context&) {
  if (!accepts_op(n, "DeformConv")) return false;
  const Shape &x = n.inputs[0]->type.shape, &f = n.inputs[1]->type.shape;
  return window_of(n.attributes, WindowKind::kConv,
                   n.attributes.integers("kernel_shape", {f[2].value(), f[3].value()}),
                   Shape(x.begin() + 2, x.end()))
      .has_static_pads();
}
void emit_deform(LayerWriter& w) {
  const Node& n = w.node;
  const Shape &x = n.inputs[0]->type.shape, &f = n.inputs[1]->type.shape, &y = n.outputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const Window window = window_of(n.attributes, WindowKind::kConv,
                                  n.attributes.integers("kernel_shape", {f[2].value(), f[3].value()}),
                                  Shape(x.begin() + 2, x.end()));
  const size_t own = n.epilogue ? n.anchor_inputs : n.inputs.size();
  const auto optional = [&](size_t i) -> std::string {
    return i < own && n.input(i) ? w.input(i) : fmt::format("static_cast<const {}*>(nullptr)", cpp_name(t));
  };
  w.include("sinter/deform_conv.h");
  w.summary(
      fmt::format("DeformConv {}x{} of {} to {}", window.kernel[0], window.kernel[1], text(x), text(y)));
  const Dim length = f[1] * f[2] * f[3];
  w.flops(product(y) * length * Dim(2));
  const std::string image = w.input(0), filters = w.input(1), offset = w.input(2);
  PlainOutput out(w, t);
  const std::string column =
      w.scratch("column", t == DType::kF64 ? "double" : "float", (x[1] * f[2] * f[3]).hi());
  w.out.line("const sinter::DeformGeometry geometry{{");
  w.out.line("    {}, {}, {}, {}, {}, {}, {},", w.dim(x[0]), w.dim(x[1]), w.dim(x[2]), w.dim(x[3]),
             w.dim(f[0]), n.attributes.integer("group", 1), n.attributes.integer("offset_group", 1));
  w.out.line("    {{{}, {}}}, {{{}, {}}}, {{{}, {}}}, {{{}, {}}}, {{{}, {}}}}};", window.kernel[0],
             window.kernel[1], window.strides[0], window.strides[1], window.dilations[0], window.dilations[1],
             w.dim(window.pads_begin[0]), w.dim(window.pads_begin[1]), w.dim(y[2]), w.dim(y[3]));
  w.out.line("sinter::deform_conv({}, {}, {}, {}, {}, geometry, {}, {});", image, filters, offset,
             optional(3), optional(4), column, out.pointer());
  out.finish();
}

}  // namespace

const std::vector<Kernel>& kernels_detection() {
  static const std::vector<Kernel> table = {
      {"non_max_suppression",
       "NonMaxSuppression by a tree of greatest scores per class",
       accepts_nms,
       emit_nms,
       {.work = Work::kLoops}},
      {"roi_align",
       "RoiAlign",
       [](const Node& n, const Context&) { return accepts_op(n, "RoiAlign"); },
       emit_roi_align,
       {.work = Work::kLoops}},
      {"roi_rows", "RoiAlign into rows of a tensor", accepts_roi_rows, emit_roi_rows, {.work = Work::kLoops}},
      {"max_roi_pool",
       "MaxRoiPool",
       [](const Node& n, const Context&) { return accepts_op(n, "MaxRoiPool"); },
       emit_max_roi_pool,
       {.work = Work::kLoops}},
      {"deform_conv",
       "DeformConv: one sampled column a position",
       accepts_deform,
       emit_deform,
       {.work = Work::kLoops}},
  };
  return table;
}

}  // namespace sinter
