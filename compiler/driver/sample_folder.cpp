#include "driver/sample_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/image.h"
#include "driver/inputs.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

bool is_sample_file(const fs::path& p) {
  return p.extension() == ".npy" || p.extension() == ".pb" || is_image_file(p.string());
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ec;
  for (fs::directory_iterator i(folder, ec), end; !ec && i != end; i.increment(ec))
    paths.push_back(i->path());
  if (ec) throw UsageError(fmt::format("--data {}: {}", sinter::quoted(folder.string()), ec.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

Tensor read_sample(const fs::path& file, const DeclaredInput& input, const std::vector<FrameWords>& images) {
  if (!is_image_file(file.string())) {
    const Tensor t = read_tensor_file(file.string());
    return input.frame ? as_frame(t, *input.frame) : t;
  }
  if (input.frame) return image_frame(file.string(), *input.frame);
  return image_tensor(file.string(), input, words_of_input(images, input.name));
}

// The file of one input in a sample's folder; empty where there is none.
fs::path file_of(const fs::path& folder, const DeclaredInput& input) {
  for (const std::string& stem : {fmt::format("input_{}", input.index), input.name})
    for (const char* end : {".npy", ".pb", ".png", ".jpg", ".jpeg"})
      if (std::error_code ec;
          stem.find('/') == std::string::npos && fs::is_regular_file(folder / (stem + end), ec))
        return folder / (stem + end);
  return {};
}

bool is_sample_folder(const fs::path& folder, const std::vector<DeclaredInput>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](const DeclaredInput& d) { return !file_of(folder, d).empty(); });
}

// A tensor of several rows as the samples that it holds.
std::vector<Tensor> split_rows(const Tensor& t, const DeclaredInput& d) {
  if (!d.has_shape || d.extents.empty() || t.rank() != static_cast<int64_t>(d.extents.size())) return {t};
  const bool fixed = d.extents[0].lo == d.extents[0].hi;
  const int64_t rows = fixed ? d.extents[0].lo : 1;
  if (rows < 1 || t.dim(0) == rows || t.dim(0) % rows != 0) return {t};
  std::vector<Tensor> pieces;
  std::vector<int64_t> shape = t.shape();
  shape[0] = rows;
  const int64_t bytes = t.bytes() / (t.dim(0) / rows);
  for (int64_t k = 0; k < t.dim(0) / rows; ++k) {
    pieces.emplace_back(t.dtype(), shape);
    std::memcpy(pieces.back().mutable_data(), t.data() + k * bytes, static_cast<size_t>(bytes));
  }
  return pieces;
}

}  // namespace

std::vector<std::vector<Tensor>> samples_in(const std::string& folder,
                                            const std::vector<DeclaredInput>& inputs,
                                            const std::vector<std::string>& image_options) {
  std::vector<std::string> names;
  names.reserve(inputs.size());
  for (const DeclaredInput& d : inputs) names.push_back(d.name);
  std::vector<FrameWords> images;
  images.reserve(image_options.size());
  for (const std::string& text : image_options) images.push_back(parse_frame_words("--image", text, names));

  std::vector<fs::path> folders, files;
  std::error_code ec;
  for (const fs::path& p : sorted_entries(folder)) {
    if (fs::is_directory(p, ec) && is_sample_folder(p, inputs)) folders.push_back(p);
    if (fs::is_regular_file(p, ec) && is_sample_file(p)) files.push_back(p);
  }
  if (folders.empty() && inputs.size() > 1 && is_sample_folder(folder, inputs)) folders.emplace_back(folder);
  std::vector<std::vector<Tensor>> samples;
  for (const fs::path& f : folders) {
    samples.emplace_back();
    for (const DeclaredInput& d : inputs) samples.back().push_back(read_sample(file_of(f, d), d, images));
  }
  if (folders.empty() && inputs.size() == 1)
    for (const fs::path& f : files)
      for (Tensor& t : split_rows(read_sample(f, inputs[0], images), inputs[0]))
        samples.push_back({std::move(t)});
  if (samples.empty())
    throw UsageError(fmt::format(
        "--data {} holds no sample: {}", sinter::quoted(folder),
        inputs.size() == 1 ? "put .npy, .pb, .png or .jpg files there"
                           : "put a folder for each there, with files input_0.npy, input_1.npy and so on"));
  for (const auto& s : samples) check_inputs(inputs, s);
  return samples;
}

}  // namespace sinter
