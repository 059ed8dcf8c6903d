#include "passes/quantised.h"

#include <cmath>

namespace sinter {

bool is_ours(const Node* n, std::string_view name) {
  return n && !n->epilogue && n->op->domain == std::string_view("sinter") && n->op->name == name;
}

bool is_bytes(const Value* v) { return v->type.dtype == DType::kI8 || v->type.dtype == DType::kU8; }

Tensor constant_of(const Value* v, int depth) {
  if (v->data) return *v->data;
  const Node* n = v->producer;
  if (!n || depth > 4 || !n->bodies.empty() || n->op->impure || n->outputs.size() != 1) return {};
  std::vector<Tensor> in;
  for (const Value* i : n->inputs) {
    in.push_back(i ? constant_of(i, depth + 1) : Tensor());
    if (i && !in.back()) return {};
  }
  return evaluate(*n, std::move(in))[0];
}

std::optional<double> number_of(const Value* v) {
  const Tensor t = constant_of(v);
  return t && t.size() == 1
             ? std::optional(is_float(t.dtype()) ? t.real(0) : static_cast<double>(t.integer(0)))
             : std::nullopt;
}

bool is_scale(double s) { return s > 1e-30 && s < 1e30; }

namespace {

std::optional<Steps> steps_of(const Node* n) {
  const auto scale = number_of(n->inputs[1]), zero = n->input(2) ? number_of(n->inputs[2]) : 0.0;
  if (!scale || !is_scale(*scale) || !zero) return std::nullopt;
  return Steps{*scale, std::lround(*zero)};
}

}  // namespace

std::optional<Steps> quantized_steps(const Node* n) {
  if (!is_ours(n, "quantize") || !is_bytes(n->outputs[0]) || n->inputs[0]->type.dtype != DType::kF32)
    return std::nullopt;
  return steps_of(n);
}

std::optional<Steps> dequantized_steps(const Node* n) {
  if (!is_ours(n, "dequantize") || !is_bytes(n->inputs[0]) || n->inputs[0]->data) return std::nullopt;
  return steps_of(n);
}

}  // namespace sinter
