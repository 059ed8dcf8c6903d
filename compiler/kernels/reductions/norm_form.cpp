// The operators of normalisation as one form: see norm_form.h.
#include "kernels/reductions/norm_form.h"

#include <algorithm>

#include "kernels/nest.h"
#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

// Strides of an operand that broadcasts to `space`, row-major.
std::vector<Dim> strides_in(const Shape& own, const Shape& space) {
  std::vector<Dim> strides(space.size(), Dim(0));
  const std::vector<Dim> s = dim_strides(own);
  for (size_t i = 0; i < own.size(); ++i)
    if (!own[i].is(1)) strides[space.size() - own.size() + i] = s[i];
  return strides;
}
// Whether 1 or the full extent is open for some axis: then plain strides would not do.
bool open_broadcast(const Shape& own, const Shape& space) {
  for (size_t i = 0; i < own.size(); ++i)
    if (!own[i].is(1) && !(own[i] == space[space.size() - own.size() + i]) && own[i].lo() <= 1) return true;
  return false;
}

bool is_zero_or_one(const Dim& d) { return d.is(0) || d.is(1); }

}  // namespace

bool subtracts_mean(Factor f) { return f == Factor::kDeviation || f == Factor::kPlainDeviation; }

Dim reduced_count(const Norm& norm) {
  Dim count(1);
  for (const NormAxis& a : norm.axes)
    if (a.reduced) count = count * a.extent;
  return count;
}

bool has_unit_operands(const Norm& norm) {
  return is_zero_or_one(norm.axes.back().scale) && is_zero_or_one(norm.axes.back().bias);
}

bool reduces_columns(const Norm& norm) {
  const auto reduced = [](const NormAxis& a) { return a.reduced; };
  const auto first = std::find_if(norm.axes.begin(), norm.axes.end(), reduced),
             behind = std::find_if_not(first, norm.axes.end(), reduced);
  if (first == norm.axes.end() || behind == norm.axes.end() || behind + 1 != norm.axes.end()) return false;
  return has_unit_operands(norm) && std::all_of(norm.axes.begin(), behind, [](const NormAxis& a) {
           return a.scale.is(0) && a.bias.is(0);
         });
}

bool runs_in_vectors(const Node& n, const Norm& norm) {
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (n.inputs[i] && n.inputs[i]->type.dtype != element_type(n) && (!n.epilogue || i < n.anchor_inputs) &&
        !(i > 0 && n.inputs[i]->type.dtype == DType::kF32))
      return false;
  for (const int o : {norm.mean_output, norm.factor_output})
    if (o >= 0 && n.outputs[static_cast<size_t>(o)]->type.dtype != DType::kF32) return false;
  return n.has_output(0) && vector_epilogue(n);
}

std::string vector_factor(const Norm& norm, const std::string& squares, const std::string& count) {
  const std::string mean_square = fmt::format("div({}, splat({}))", squares, count);
  switch (norm.factor) {
    case Factor::kDeviation:
    case Factor::kRms:
      return fmt::format("div(splat(1.0f), sqrt(add({}, splat({}))))", mean_square,
                         float_literal(norm.epsilon));
    case Factor::kPlainDeviation:
      return fmt::format("div(splat(1.0f), add(sqrt({}), splat(1e-9f)))", mean_square);
    case Factor::kL1: return fmt::format("select(eq({0}, zero()), zero(), div(splat(1.0f), {0}))", squares);
    case Factor::kL2:
      return fmt::format("select(eq({0}, zero()), zero(), div(splat(1.0f), sqrt({0})))", squares);
  }
  return "";
}

std::string float_text(LayerWriter& w, const Dim& d) {
  return d.is_static() ? float_literal(static_cast<double>(d.value()))
                       : fmt::format("static_cast<float>({})", w.dim(d));
}

std::vector<std::string> output_index(LayerWriter& w, const Norm& norm,
                                      const std::vector<std::string>& index) {
  std::vector<std::string> out(w.node.outputs[0]->type.shape.size(), "0");
  for (size_t a = 0; a < norm.axes.size(); ++a) {
    const NormAxis& axis = norm.axes[a];
    out[axis.out] = plus(out[axis.out], times(index[a], w.dim(axis.factor)));
  }
  return out;
}

std::optional<Norm> norm_of(const Node& n) {
  if (n.op->domain[0] != 0 || !n.input(0) || !is_float(n.inputs[0]->type.dtype)) return std::nullopt;
  const std::string_view op = n.op->name;
  const Shape& shape = n.inputs[0]->type.shape;
  const size_t rank = shape.size(), own = n.epilogue ? n.anchor_inputs : n.inputs.size();
  Norm r;
  for (size_t i = 0; i < rank; ++i)
    r.axes.push_back({.extent = shape[i], .scale = Dim(0), .bias = Dim(0), .out = i});
  r.epsilon = static_cast<double>(n.attributes.real("epsilon", 1e-5f));
  const auto normal = [&](int64_t axis) {
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  };
  if (op == "LayerNormalization" || op == "RMSNormalization") {
    for (size_t i = normal(n.attributes.integer("axis", -1)); i < rank; ++i) r.axes[i].reduced = true;
    if (op == "RMSNormalization") r.factor = Factor::kRms;
    for (size_t i = 1; i < own; ++i) {
      if (!n.inputs[i]) continue;
      const Shape& s = n.inputs[i]->type.shape;
      if (open_broadcast(s, shape)) return std::nullopt;
      (i == 1 ? r.scale : r.bias) = static_cast<int>(i);
      const std::vector<Dim> strides = strides_in(s, shape);
      for (size_t a = 0; a < rank; ++a) (i == 1 ? r.axes[a].scale : r.axes[a].bias) = strides[a];
    }
    if (n.has_output(1)) r.mean_output = 1;
    if (n.has_output(2)) r.factor_output = 2;
    return r;
  }
  if (op == "InstanceNormalization" || op == "GroupNormalization") {
    const bool group = op == "GroupNormalization";
    const size_t channels = is_channels_last(n.attributes) ? rank - 1 : 1;
    for (size_t i = 1; i < rank; ++i) r.axes[i].reduced = i != channels || group;
    r.axes[channels].scale = r.axes[channels].bias = Dim(1);
    r.scale = 1;
    r.bias = 2;
    if (group) {  // the channels are two axes: groups, and those of a group
      const Dim groups(n.attributes.integer("num_groups", 1)), each = exact_div(shape[channels], groups);
      r.axes[channels].extent = each;
      r.axes.insert(r.axes.begin() + static_cast<std::ptrdiff_t>(channels),
                    NormAxis{.extent = groups, .scale = each, .bias = each, .out = channels, .factor = each});
    }
    return r;
  }
  if (op == "MeanVarianceNormalization") {
    for (int64_t a : n.attributes.integers("axes", {0, 2, 3})) r.axes[normal(a)].reduced = true;
    r.factor = Factor::kPlainDeviation;
    return r;
  }
  if (op == "LpNormalization") {
    r.axes[normal(n.attributes.integer("axis", -1))].reduced = true;
    r.factor = n.attributes.integer("p", 2) == 1 ? Factor::kL1 : Factor::kL2;
    return r;
  }
  return std::nullopt;
}

void merge_axes(Norm& norm, const Epilogue& epilogue) {
  std::vector<NormAxis> merged;
  for (const NormAxis& a : norm.axes) {
    if (a.extent.is(1)) continue;
    if (!merged.empty()) {
      NormAxis& last = merged.back();
      const bool strides = last.scale == a.scale * a.extent && last.bias == a.bias * a.extent;
      const bool index = epilogue.empty() || (last.out != a.out && last.factor.is(1) && a.factor.is(1) &&
                                              epilogue.can_merge(last.out, a.out));
      if (last.reduced == a.reduced && strides && index) {
        last = {last.extent * a.extent, a.reduced, a.scale, a.bias, a.out, a.factor};
        continue;
      }
    }
    merged.push_back(a);
  }
  norm.axes = std::move(merged);
}

}  // namespace sinter
