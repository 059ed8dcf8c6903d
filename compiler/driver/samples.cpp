#include "driver/samples.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/inputs.h"
#include "driver/sample_folder.h"
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
  if (is_frame(v)) return random_bytes(shape, random);
  Tensor t = random_tensor(v.type.dtype, shape, random);
  if (!v.range || is_float(v.type.dtype)) return t;
  for (int64_t i = 0; i < t.size(); ++i) {  // --dim INPUT<=MAX
    const double u = static_cast<double>(random()) / 4294967296.0,
                 count = static_cast<double>(v.range->hi) - static_cast<double>(v.range->lo) + 1;
    t.set_integer(i, v.range->lo + static_cast<int64_t>(u * count));
  }
  return t;
}

// Which of the model's inputs: --const and --only take some of them away.
size_t index_of(const Value& v, const std::vector<DeclaredInput>& declared, size_t otherwise) {
  for (const DeclaredInput& d : declared)
    if (d.name == v.name) return d.index;
  return otherwise;
}

void check_elements(const Value& v, const Tensor& t, const std::string& file) {
  if (!v.range || is_float(t.dtype())) return;
  for (int64_t i = 0; i < t.size(); ++i)
    if (const int64_t x = t.integer(i); x < v.range->lo || x > v.range->hi)
      throw UsageError(fmt::format("{}: the input {} has the element {}, which --dim bounds to {} .. {}",
                                   file, sinter::quoted(v.name), x, v.range->lo, v.range->hi));
}

std::vector<Tensor> read_sample(const std::filesystem::path& folder,
                                const std::vector<DeclaredInput>& declared, const Graph& g,
                                const std::vector<FrameWords>& frames) {
  std::vector<Tensor> sample;
  std::vector<std::string> files;
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    const Value& v = *g.inputs[i];
    // A count of rows that a state has (plan/growth.h), or a state with an initializer.
    if (index_of(v, declared, DeclaredInput::kInNoFile) == DeclaredInput::kInNoFile) {
      files.emplace_back();
      sample.push_back(v.initial ? *v.initial : Tensor(v.type.dtype, static_dims(v.type.shape)));
      continue;
    }
    files.push_back((folder / fmt::format("input_{}.pb", index_of(*g.inputs[i], declared, i))).string());
    sample.push_back(read_tensor_file(files.back()));
    for (const FrameWords& w : frames)
      if (w.input == v.name) sample.back() = as_frame(sample.back(), w);
  }
  check_inputs(inferred_inputs(g), sample);
  for (size_t i = 0; i < sample.size(); ++i) check_elements(*g.inputs[i], sample[i], files[i]);
  return sample;
}

}  // namespace

std::vector<std::vector<Tensor>> samples_of(const ModelOptions& o, const ImportOptions& import,
                                            const Graph& g) {
  std::vector<std::vector<Tensor>> samples;
  const std::vector<DeclaredInput> declared = declared_inputs(o.model, import);
  const std::vector<FrameWords> frames = frames_of(o, import);
  std::vector<DeclaredInput> inputs = with_frames(inferred_inputs(g), frames);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].index = index_of(*g.inputs[i], declared, i);
  for (const std::string& folder : o.data) {
    if (std::error_code ec; std::filesystem::exists(std::filesystem::path(folder) / "input_0.pb", ec)) {
      samples.push_back(read_sample(folder, declared, g, frames));
      continue;
    }
    for (std::vector<Tensor>& s : samples_in(folder, inputs, {})) {
      for (size_t i = 0; i < s.size(); ++i) check_elements(*g.inputs[i], s[i], folder);
      samples.push_back(std::move(s));
    }
  }
  if (!samples.empty()) return samples;
  std::mt19937 random(1);
  samples.emplace_back();
  for (const Value* v : g.inputs) samples.back().push_back(random_sample(*v, random));
  return samples;
}

}  // namespace sinter
