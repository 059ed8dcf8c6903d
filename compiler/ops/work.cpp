// What a node costs to evaluate, in the steps of a Budget: about its operands' and results' elements, and for
// the operators below more. An upper bound from shapes (and from regions, whose size only the data tell);
// products that run in blocks count as a part of a step each.
#include "ops/work.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/budget.h"
#include "ops/products/einsum.h"

namespace sinter {
namespace {

using Inputs = std::vector<Tensor>;
using Shapes = std::vector<std::vector<int64_t>>;  // of outputs

struct Case {
  const Node& node;
  const Inputs& in;
  const Shapes& out;

  bool has(size_t i) const { return i < in.size() && in[i]; }
  double size(size_t i) const { return has(i) ? static_cast<double>(in[i].size()) : 0; }
  double extent(size_t i, int64_t axis) const {  // from the end where negative
    if (!has(i)) return 1;
    if (axis < 0) axis += in[i].rank();
    return axis < 0 || axis >= in[i].rank() ? 1 : static_cast<double>(in[i].dim(axis));
  }
  double result() const {
    double n = 0;
    for (const auto& shape : out) {
      double elements = 1;
      for (int64_t d : shape) elements *= static_cast<double>(d);
      n = std::max(n, elements);
    }
    return n;
  }
  double number(const char* name, int64_t fallback) const {
    return static_cast<double>(node.attributes.integer(name, fallback));
  }
};

double of_matmul(const Case& c) { return c.result() * c.extent(0, -1) / 8; }
double of_gemm(const Case& c) { return c.result() * c.extent(0, c.number("transA", 0) != 0 ? 0 : 1) / 8; }
double of_conv(const Case& c) { return c.result() * c.size(1) / std::max(1.0, c.extent(1, 0)) / 2; }
double of_conv_transpose(const Case& c) { return c.size(0) * c.size(1) / std::max(1.0, c.extent(1, 0)) / 2; }
double of_deform_conv(const Case& c) { return of_conv(c) * 8 + c.size(2) * c.extent(0, 1) * 4; }
double of_det(const Case& c) { return c.size(0) * c.extent(0, -1); }
double of_nms(const Case& c) {
  const double n = c.extent(0, 1), most = c.has(2) ? std::max(0.0, c.in[2].real(0)) : 0;
  return c.size(1) * (32 + std::min(n, most));
}

// With a ratio of 0 a region takes as many samples as it has pixels.
double of_roi_align(const Case& c) {
  const double ratio = c.number("sampling_ratio", 0), height = c.number("output_height", 1),
               width = c.number("output_width", 1), channels = c.extent(0, 1);
  if (ratio > 0) return c.result() * ratio * ratio * 4;
  const double scale = std::fabs(static_cast<double>(c.node.attributes.real("spatial_scale", 1)));
  double samples = 0;
  for (int64_t r = 0; c.has(1) && r + 3 < c.in[1].size(); r += 4) {
    const auto length = [&](int64_t k) {
      return std::fabs(c.in[1].real(r + k + 2) - c.in[1].real(r + k)) * scale;
    };
    samples += (length(0) + width) * (length(1) + height);
  }
  return samples * channels * 4;
}
double of_max_roi_pool(const Case& c) {
  const auto bins = c.node.attributes.integers("pooled_shape", {1, 1});
  double pixels = c.extent(1, 0) * c.extent(0, 1);
  for (size_t d = 0; d < 2 && d < bins.size(); ++d)
    pixels *= c.extent(0, static_cast<int64_t>(d) + 2) + 2 * static_cast<double>(bins[d]);
  return pixels * 2;
}

double of_pool(const Case& c) {
  double taps = 1;
  const auto kernel = c.node.attributes.integers("kernel_shape");
  for (size_t d = 0; d < kernel.size(); ++d) taps *= std::min(static_cast<double>(kernel[d]), c.size(0));
  return c.result() * taps * 2;
}
double of_lrn(const Case& c) { return c.size(0) * std::min(c.number("size", 1), c.extent(0, 1)); }

// One product for each point of the space of all labels.
double of_einsum(const Case& c) {
  std::vector<int64_t> ranks;
  for (const Tensor& t : c.in) ranks.push_back(t.rank());
  const Einsum q = parse_einsum(c.node.attributes.text("equation", ""), ranks);
  std::map<int, double> extents;
  for (size_t i = 0; i < q.operands.size(); ++i)
    for (size_t d = 0; d < q.operands[i].size(); ++d) {
      double& e = extents[q.operands[i][d]];
      e = std::max(e, static_cast<double>(c.in[i].dim(static_cast<int64_t>(d))));
    }
  double points = static_cast<double>(c.in.size());
  for (const auto& [label, extent] : extents) points *= extent;
  return points;
}

double of_recurrent(const Case& c) { return c.extent(0, 0) * c.extent(0, 1) * (c.size(1) + c.size(2)) / 4; }
double of_attention(const Case& c) {
  double keys = c.extent(1, -2);
  for (size_t i = 3; i < c.in.size(); ++i)  // a past among the others
    if (c.has(i) && c.in[i].rank() == 4) keys += c.extent(i, 2);
  return (c.size(0) + c.result()) * keys / 2;
}
double of_linear_attention(const Case& c) { return (c.size(0) + c.size(1)) * c.extent(2, -1) * 4; }

// Axes are resized one after the other, in doubles.
double of_resize(const Case& c) {
  double widest = 16;
  for (size_t d = 0; c.has(0) && !c.out.empty() && d < c.out[0].size(); ++d)
    widest *= std::max(c.extent(0, static_cast<int64_t>(d)), static_cast<double>(c.out[0][d]));
  return widest;
}

double of_dft(const Case& c) {
  const auto axis = c.has(2) ? c.in[2].integer(0) : int64_t{-2};
  const double length = c.has(1) ? c.in[1].real(0) : std::max(2.0, c.extent(0, axis) * 2);
  return (c.size(0) / std::max(1.0, c.extent(0, axis)) + 1) * length * (length + 32);
}
double of_stft(const Case& c) {
  const double length = c.has(3) ? c.in[3].real(0) : c.has(2) ? c.size(2) : c.extent(0, 1);
  return c.result() * (length + 32) * 2;
}

double of_sort(const Case& c) { return c.size(0) * 2 * std::log2(c.size(0) + 2); }
double of_squeeze_excite(const Case& c) {
  double weights = 0;
  for (size_t i = 1; i < c.in.size(); ++i) weights += c.size(i);
  return weights * c.extent(0, 0);
}

double elements_of(const Attribute& a) {
  if (const auto* t = std::get_if<Tensor>(&a)) return static_cast<double>(t->size());
  if (const auto* v = std::get_if<std::vector<int64_t>>(&a)) return static_cast<double>(v->size());
  if (const auto* v = std::get_if<std::vector<float>>(&a)) return static_cast<double>(v->size());
  return 1;
}
// Tables that each element or row is held against.
double of_tables(const Case& c) {
  double tables = 0;
  for (const auto& [name, value] : c.node.attributes.all()) tables += elements_of(value);
  return (c.size(0) + 1) * tables * (1 + c.number("max_skip_count", 0));
}

using Steps = double (*)(const Case&);
const std::map<std::string_view, Steps>& table() {
  static const std::map<std::string_view, Steps> t = {
      {"MatMul", of_matmul},
      {"MatMulInteger", of_matmul},
      {"product_of_codes", of_matmul},
      {"Gemm", of_gemm},
      {"Conv", of_conv},
      {"ConvInteger", of_conv},
      {"ConvTranspose", of_conv_transpose},
      {"DeformConv", of_deform_conv},
      {"Det", of_det},
      {"NonMaxSuppression", of_nms},
      {"RoiAlign", of_roi_align},
      {"MaxRoiPool", of_max_roi_pool},
      {"MaxPool", of_pool},
      {"AveragePool", of_pool},
      {"LpPool", of_pool},
      {"LRN", of_lrn},
      {"Einsum", of_einsum},
      {"LSTM", of_recurrent},
      {"GRU", of_recurrent},
      {"RNN", of_recurrent},
      {"Attention", of_attention},
      {"LinearAttention", of_linear_attention},
      {"Resize", of_resize},
      {"DFT", of_dft},
      {"STFT", of_stft},
      {"TopK", of_sort},
      {"Unique", of_sort},
      {"squeeze_excite", of_squeeze_excite},
      {"GridSample", [](const Case& c) { return c.result() * 64; }},
      {"TfIdfVectorizer", of_tables},
  };
  return t;
}

}  // namespace

double steps_of(const Node& node, const std::vector<Tensor>& in,
                const std::vector<std::vector<int64_t>>& out) {
  const Case c{node, in, out};
  double steps = Budget::kStepsOfEvaluation;
  for (size_t i = 0; i < in.size(); ++i) steps += c.size(i);
  for (const auto& shape : out) {
    double elements = 1;
    for (int64_t d : shape) elements *= static_cast<double>(d);
    steps += elements;
  }
  if (node.op->expr) steps += c.result() * static_cast<double>(in.size());
  if (node.op->domain == std::string_view("ai.onnx.ml")) steps += of_tables(c);
  const auto found = table().find(node.op->name);
  if (found != table().end() && node.op->eval) steps += found->second(c);
  return steps;
}

}  // namespace sinter
