// half_recurrence: a recurrent layer is evaluated step by step, each a layer of one step with the states of
// the step before, rounded to halves, as the kernel keeps them. Where there are two directions each step is
// evaluated for the forward and for the backward one, whose steps come in opposite orders.
#include "passes/half_recurrence.h"

#include <cmath>
#include <cstring>

#include "ops/op.h"
#include "ops/sequences/recurrent.h"

namespace sinter {
namespace {

constexpr size_t kState = 5, kCell = 6;

// `rows` of `t`'s outermost axis from `first`.
Tensor part(const Tensor& t, int64_t first, int64_t rows) {
  std::vector<int64_t> shape = t.shape();
  const int64_t bytes = t.bytes() / std::max<int64_t>(1, shape[0]);
  shape[0] = rows;
  Tensor out(t.dtype(), shape);
  std::memcpy(out.mutable_data(), t.data() + first * bytes, static_cast<size_t>(rows * bytes));
  return out;
}
void put(Tensor& to, int64_t at, const Tensor& from, int64_t index) {
  const int64_t bytes = from.bytes() / std::max<int64_t>(1, from.dim(0));
  std::memcpy(to.mutable_data() + at * bytes, from.data() + index * bytes, static_cast<size_t>(bytes));
}

Tensor rounded(const Tensor& t) { return t.converted(DType::kF16).converted(DType::kF32); }

}  // namespace

void add_noise(Tensor& t, double size, std::mt19937& random) {
  double sum = 0;
  for (int64_t i = 0; i < t.size(); ++i)
    if (const double x = t.as<float>()[i]; std::isfinite(x)) sum += x * x;
  const double scale =
      size * std::sqrt(sum / static_cast<double>(std::max<int64_t>(1, t.size()))) / 2147483648.0;
  for (int64_t i = 0; i < t.size(); ++i)
    t.as<float>()[i] += static_cast<float>(scale * (static_cast<double>(random()) - 2147483648.0));
}

std::vector<Tensor> recurrence_in_halves(const Node& n, const std::vector<Tensor>& in, double noise,
                                         std::mt19937& random) {
  const Recurrence r = recurrence_of(n);
  const int64_t steps = in[0].dim(0), batch = in[0].dim(1), hidden = in[2].dim(2);
  const bool has_cell = r.cell == Recurrence::Cell::kLstm;
  // A node of one step, whose states come from outside and are wanted. Which values they are does not matter.
  Node step;
  step.op = n.op;
  step.name = n.name;
  step.attributes = n.attributes;
  step.inputs = n.inputs;
  step.inputs.resize(std::max(n.inputs.size(), has_cell ? kCell + 1 : kState + 1), nullptr);
  step.inputs[kState] = n.inputs[0];
  if (has_cell) step.inputs[kCell] = n.inputs[0];
  Value* some = nullptr;
  for (Value* v : n.outputs)
    if (v) some = v;
  step.outputs.assign(has_cell ? 3 : 2, some);
  step.anchor_inputs = step.inputs.size();
  std::vector<Tensor> given(step.inputs.size());
  std::copy(in.begin(), in.end(), given.begin());
  const std::vector<int64_t> of_states{r.directions, batch, hidden};
  for (size_t i = kState; i <= (has_cell ? kCell : kState); ++i)
    if (!given[i]) given[i] = Tensor(DType::kF32, of_states);

  std::vector<Tensor> out{Tensor(DType::kF32, {steps, r.directions, batch, hidden}),
                          Tensor(DType::kF32, of_states)};
  if (has_cell) out.emplace_back(DType::kF32, of_states);
  for (int64_t d = 0; d < r.directions; ++d) {
    std::vector<Tensor> now = given;
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t t = r.reverse(d) ? steps - 1 - s : s;
      now[0] = part(in[0], t, 1);
      std::vector<Tensor> made = evaluate(step, now);
      if (noise > 0) add_noise(made[1], noise, random);
      now[kState] = rounded(made[1]);
      if (has_cell) now[kCell] = rounded(made[2]);
      put(out[0], t * r.directions + d, now[kState], d);
    }
    put(out[1], d, now[kState], d);
    if (has_cell) put(out[2], d, now[kCell], d);
  }
  out.resize(n.outputs.size());
  for (size_t j = 0; j < out.size(); ++j)
    if (!n.outputs[j]) out[j] = Tensor();
  return out;
}

}  // namespace sinter
