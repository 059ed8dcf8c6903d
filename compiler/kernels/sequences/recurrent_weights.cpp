// Orders of weights; see recurrent_weights.h.
#include "kernels/sequences/recurrent_weights.h"

#include "kernels/products/tiles.h"

namespace sinter {
namespace {

int64_t panels_of(const Recurrence& r, int lanes) { return (r.hidden.value() + lanes - 1) / lanes; }

}  // namespace

std::vector<float> pack_gates(const Recurrence& r, GateRange range, const float* weights, int64_t depth,
                              int lanes) {
  const int64_t hidden = r.hidden.value(), width = range.count * lanes;
  Panels p;
  p.vectors = static_cast<int>(range.count);
  p.full = panels_of(r, lanes);
  std::vector<float> all;
  for (int64_t d = 0; d < r.directions; ++d) {
    const float* m = weights + d * r.gates * hidden * depth;
    const auto at = [&](int64_t k, int64_t channel) {
      const int64_t gate = range.first + channel / lanes % range.count;
      const int64_t j = channel / width * lanes + channel % lanes;
      return j < hidden ? m[(gate * hidden + j) * depth + k] : 0.0f;
    };
    const std::vector<float> one = pack_panels(p, lanes, p.full * width, depth, at);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<float> pack_gate_bias(const Recurrence& r, bool recurrent, const float* bias, int lanes) {
  const int64_t hidden = r.hidden.value(), rows = r.gates * hidden;
  const bool gru_apart = r.cell == Recurrence::Cell::kGru && r.linear_before_reset;
  std::vector<float> all;
  for (int64_t d = 0; d < r.directions; ++d)
    for (int64_t p = 0; p < panels_of(r, lanes); ++p)
      for (int64_t g = 0; g < r.gates; ++g)
        for (int64_t l = 0; l < lanes; ++l) {
          const int64_t j = p * lanes + l, i = d * 2 * rows + g * hidden + j;
          const bool apart = gru_apart && g == 2;
          float v = 0;
          if (j < hidden) {
            const float of_w = bias[i], of_r = bias[rows + i];
            v = recurrent ? (apart ? of_r : 0) : apart ? of_w : of_w + of_r;
          }
          all.push_back(v);
        }
  return all;
}

std::vector<float> pack_peepholes(const Recurrence& r, const float* peepholes, int lanes) {
  const int64_t hidden = r.hidden.value();
  std::vector<float> all;
  for (int64_t d = 0; d < r.directions; ++d)
    for (int64_t g = 0; g < 3; ++g)
      for (int64_t j = 0; j < panels_of(r, lanes) * lanes; ++j)
        all.push_back(j < hidden ? peepholes[(d * 3 + g) * hidden + j] : 0.0f);
  return all;
}

}  // namespace sinter
