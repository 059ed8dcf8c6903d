// Operators of object detection: NonMaxSuppression, RoiAlign, MaxRoiPool.
//
// Boxes and regions come with the data, so the work is irregular: eval and generated code share
// runtime/sinter/nms.h and runtime/sinter/roi.h.
#include <cstring>

#include "ops/elementwise/float_types.h"
#include "ops/movement/movement.h"
#include "sinter/nms.h"
#include "sinter/roi.h"

namespace sinter {
namespace {

void require_one_number(Inference& x, size_t i, DType t, const std::string& what) {
  if (!x.has(i)) return;
  x.require(x.dtype(i) == t, fmt::format("its {} is {}", what, name_of(x.dtype(i))));
  x.require(x.rank(i) <= 1, fmt::format("its {} is not one number", what));
  if (x.rank(i) == 1) x.require_equal(x.shape(i)[0], 1, "elements of " + what);
}

// NonMaxSuppression (opset 11): boxes [batches, n, 4], scores [batches, classes, n] and how many boxes a
// class may keep give rows (batch, class, box), as many as the data say.
void infer_nms(Inference& x) {
  x.require(x.dtype(0) == DType::kF32 && x.dtype(1) == DType::kF32, "only for float32");
  x.require(x.rank(0) == 3, fmt::format("boxes of shape {}", text(x.shape(0))));
  x.require(x.rank(1) == 3, fmt::format("scores of shape {}", text(x.shape(1))));
  x.require_equal(x.shape(0)[2], 4, "coordinates of a box");
  const Dim batches = x.require_equal(x.shape(0)[0], x.shape(1)[0], "batch of boxes and scores");
  const Dim boxes = x.require_equal(x.shape(0)[1], x.shape(1)[2], "number of boxes and scores");
  require_one_number(x, 2, DType::kI64, "max_output_boxes_per_class");
  require_one_number(x, 3, DType::kF32, "iou_threshold");
  require_one_number(x, 4, DType::kF32, "score_threshold");
  const int64_t center = x.attributes().integer("center_point_box", 0);
  x.require(center == 0 || center == 1, fmt::format("its center_point_box is {}", center));
  Dim most = x.has(2) ? boxes : Dim(0);
  if (const auto known = x.elements(2); known && known->size() == 1) most = min(boxes, max((*known)[0], 0));
  x.set(0, DType::kI64, {data_count(x, 0, batches * x.shape(1)[1] * most), Dim(3)});
}

void eval_nms(Evaluation& e) {
  const Tensor &boxes = e.in[0], &scores = e.in[1];
  NmsOptions o;
  o.center = e.attributes().integer("center_point_box", 0) != 0;
  o.most = e.has(2) ? e.in[2].integer(0) : 0;
  o.overlap = e.has(3) ? e.in[3].as<float>()[0] : 0.0f;
  o.has_least_score = e.has(4);
  o.least_score = e.has(4) ? e.in[4].as<float>()[0] : 0.0f;
  const int64_t n = boxes.dim(1), kept = std::max<int64_t>(std::min(o.most, n), 0);
  std::vector<int64_t> rows(static_cast<size_t>(3 * scores.dim(0) * scores.dim(1) * kept));
  std::vector<int32_t> keys(static_cast<size_t>(nms_keys(n)));
  std::vector<float> edges(static_cast<size_t>(nms_edges(n, o.most)));
  const int64_t count = non_max_suppression(boxes.as<float>(), scores.as<float>(), scores.dim(0),
                                            scores.dim(1), n, o, {keys.data(), edges.data()}, rows.data());
  rows.resize(static_cast<size_t>(3 * count));
  e.out[0] = Tensor::of(rows).reshaped({count, 3});
}

// Inputs `first` on: [batches, channels, height, width] and `regions` [n, columns].
void require_image_and_regions(Inference& x, size_t first, int64_t columns) {
  const size_t regions = first + 1;
  x.require(is_float(x.dtype(first)), "only for floats");
  x.require(x.dtype(regions) == x.dtype(first), "its regions have another type than the image");
  x.require(x.rank(first) == 4, fmt::format("an image of shape {}", text(x.shape(first))));
  x.require(x.rank(regions) == 2, fmt::format("regions of shape {}", text(x.shape(regions))));
  x.require_equal(x.shape(regions)[1], columns, "numbers of a region");
}
int64_t bins_of(const Inference& x, const char* name, int64_t bins) {
  x.require(bins >= 1 && bins <= 1 << 20, fmt::format("its {} holds {}", name, bins));
  return bins;
}

// RoiAlign (opset 22): regions [n, 4] as (x, y, x, y) and their images [n] give [n, channels, output_height,
// output_width]. With the attribute `channels_last`, of the image and of what comes out, the channels are the
// last axis. The image is input `first`. The output's shape.
Shape roi_align_shape(Inference& x, size_t first) {
  require_image_and_regions(x, first, 4);
  x.require(x.dtype(first + 2) == DType::kI64, "its batch_indices are not int64");
  x.require(x.rank(first + 2) == 1, fmt::format("batch_indices of shape {}", text(x.shape(first + 2))));
  const Dim count =
      x.require_equal(x.shape(first + 1)[0], x.shape(first + 2)[0], "number of regions and batch_indices");
  const Attributes& a = x.attributes();
  const std::string mode = a.text("mode", "avg"),
                    where = a.text("coordinate_transformation_mode", "half_pixel");
  x.require(mode == "avg" || mode == "max", fmt::format("its mode is {}", sinter::quoted(mode)));
  x.require(where == "half_pixel" || where == "output_half_pixel",
            fmt::format("its coordinate_transformation_mode is {}", sinter::quoted(where)));
  const int64_t ratio = a.integer("sampling_ratio", 0);
  x.require(ratio >= 0 && ratio <= 1 << 20, fmt::format("its sampling_ratio is {}", ratio));
  a.real("spatial_scale", 1);
  const Dim rows = bins_of(x, "output_height", a.integer("output_height", 1)),
            columns = bins_of(x, "output_width", a.integer("output_width", 1));
  if (a.integer("channels_last", 0) != 0) return {count, rows, columns, x.shape(first)[3]};
  return {count, x.shape(first)[1], rows, columns};
}
void infer_roi_align(Inference& x) { x.set(0, x.dtype(0), roi_align_shape(x, 0)); }

RoiGeometry geometry(const Tensor& image, const std::vector<int64_t>& out, const Attributes& a) {
  const bool last = a.integer("channels_last", 0) != 0;
  const size_t height = last ? 1 : 2, channels = last ? 3 : 1;
  return {image.dim(0), image.shape()[channels], image.shape()[height],      image.shape()[height + 1],
          out[height],  out[height + 1],         a.real("spatial_scale", 1), last};
}

// The aligned regions of image, regions and batch_indices, which are the inputs from `first` on.
void align_regions(Evaluation& e, size_t first, Tensor& out) {
  const Attributes& a = e.attributes();
  const RoiGeometry g = geometry(e.in[first], out.shape(), a);
  with_float(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (!roi_align(e.in[first].as<T>(), g, e.in[first + 1].as<T>(), e.in[first + 2].as<int64_t>(),
                   e.in[first + 1].dim(0), a.integer("sampling_ratio", 0),
                   a.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
                   a.text("mode", "avg") == "max", out.as<T>()))
      e.fail("a batch index is outside the image's batch");
  });
}
void eval_roi_align(Evaluation& e) { align_regions(e, 0, e.out[0]); }

// roi_rows: RoiAlign of the inputs from 2 on, its result [n, ...] put into the rows [n] (input 1) of a copy
// of input 0. Made of ScatterND(data, rows, RoiAlign(...)), the way detectors share one tensor between the
// levels of their pyramid; attributes are RoiAlign's. With the attribute `fill` (one element), input 0 is the
// shape int64[4] of a tensor that is full of it.
void infer_roi_rows(Inference& x) {
  const Tensor* fill = x.attributes().tensor("fill");
  const DType type = fill ? fill->dtype() : x.dtype(0);
  x.require(type == x.dtype(2) && x.dtype(1) == DType::kI64 && x.rank(1) == 1, "its operands' types");
  const Shape made = roi_align_shape(x, 2), data = fill ? known_elements(x, 0, "shape") : x.shape(0);
  x.require(data.size() == 4, fmt::format("data of shape {}", text(data)));
  x.require_equal(x.shape(1)[0], made[0], "number of rows and regions");
  for (size_t d = 1; d < 4; ++d)
    x.require_equal(data[d], made[d], fmt::format("axis {} of data and regions", d));
  x.set(0, type, data);
}
void eval_roi_rows(Evaluation& e) {
  Tensor& y = e.out[0];
  if (const Tensor* fill = e.attributes().tensor("fill"))
    fill_with(y, *fill, 0);
  else
    std::memcpy(y.mutable_data(), e.in[0].data(), static_cast<size_t>(y.bytes()));
  std::vector<int64_t> shape = y.shape();
  shape[0] = e.in[1].size();
  Tensor made(y.dtype(), shape);
  if (made.size() > 0) align_regions(e, 2, made);
  const int64_t rows = y.dim(0), block = rows > 0 ? y.bytes() / rows : 0;
  for (int64_t r = 0; r < shape[0]; ++r) {
    const int64_t row = e.in[1].integer(r), at = row < 0 ? row + rows : row;
    if (at < 0 || at >= rows) e.fail(fmt::format("row {} of {}", row, rows));
    std::memcpy(y.mutable_data() + at * block, made.data() + r * block, static_cast<size_t>(block));
  }
}

// MaxRoiPool (opset 22): regions [n, 5] as (image, x, y, x, y) give [n, channels, pooled_shape...].
void infer_max_roi_pool(Inference& x) {
  require_image_and_regions(x, 0, 5);
  const std::vector<int64_t> bins = x.attributes().integers("pooled_shape");
  x.require(bins.size() == 2, fmt::format("its pooled_shape has {} entries", bins.size()));
  x.attributes().real("spatial_scale", 1);
  x.set(0, x.dtype(0),
        {x.shape(1)[0], x.shape(0)[1], bins_of(x, "pooled_shape", bins[0]),
         bins_of(x, "pooled_shape", bins[1])});
}

void eval_max_roi_pool(Evaluation& e) {
  const RoiGeometry g = geometry(e.in[0], e.out[0].shape(), e.attributes());
  with_float(e.in[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (!max_roi_pool(e.in[0].as<T>(), g, e.in[1].as<T>(), e.in[1].dim(0), e.out[0].as<T>()))
      e.fail("a region's image is outside the batch");
  });
}

}  // namespace

const std::vector<Op>& ops_detection() {
  static const std::vector<Op> table = {
      {.name = "NonMaxSuppression", .min_inputs = 2, .max_inputs = 5, .infer = infer_nms, .eval = eval_nms},
      {.name = "RoiAlign",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_roi_align,
       .eval = eval_roi_align},
      {.name = "roi_rows",
       .domain = "sinter",
       .min_inputs = 5,
       .max_inputs = 5,
       .infer = infer_roi_rows,
       .eval = eval_roi_rows,
       .note = "RoiAlign into rows of a tensor; made by passes fuse_regions and fill_regions"},
      {.name = "MaxRoiPool",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_max_roi_pool,
       .eval = eval_max_roi_pool},
  };
  return table;
}

}  // namespace sinter
