#include "cli/samples.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "cli/inputs.h"
#include "ir/error.h"

namespace sinter {
namespace {

// Of a free extent: enough for every layer to have something to do.
int64_t small_extent(const Symbol& s) {
  constexpr int64_t kUsual = 64;
  const int64_t step = std::max<int64_t>(1, s.step),
                most = std::min(s.range.hi, std::max(s.range.lo, kUsual));
  return std::max(most / step * step, s.range.lo);
}

Tensor random_sample(const Value& v, std::mt19937& random) {
  std::vector<int64_t> shape;
  for (const Dim& d : v.type.shape) shape.push_back(d.evaluate(small_extent));
  return random_tensor(v.type.dtype, shape, random);
}

}  // namespace

std::vector<std::vector<Tensor>> samples_of(const ModelOptions& o, const Graph& g) {
  std::vector<std::vector<Tensor>> samples;
  for (const std::string& folder : o.data) {
    samples.emplace_back();
    for (size_t i = 0; i < g.inputs.size(); ++i)
      samples.back().push_back(
          read_tensor_file((std::filesystem::path(folder) / fmt::format("input_{}.pb", i)).string()));
  }
  if (!samples.empty()) return samples;
  std::mt19937 random(1);
  samples.emplace_back();
  for (const Value* v : g.inputs) samples.back().push_back(random_sample(*v, random));
  return samples;
}

}  // namespace sinter
