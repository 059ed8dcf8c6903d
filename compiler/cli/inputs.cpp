#include "cli/inputs.h"

#include <random>

#include "cli/errors.h"
#include "cli/image.h"
#include "ir/error.h"

namespace sinter {

InputFiles read_inputs(const std::vector<DeclaredInput>& inputs, const std::vector<std::string>& in_options,
                       const std::vector<std::string>& image_options, const std::filesystem::path& folder) {
  InputFiles out;
  for (const DeclaredInput& d : inputs) out.names.push_back(d.name);
  out.files = pair_files(in_options, out.names, "input");
  std::vector<ImageOptions> images;
  for (const std::string& text : image_options) images.push_back(parse_image_options(text, out.names));
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string& file = out.files[i];
    if (file.empty())
      throw UsageError(fmt::format("no --in for the input {}", sinter::quoted(inputs[i].name)));
    if (!is_image_file(file)) {
      out.tensors.push_back(read_tensor_file(file));
      file = std::filesystem::absolute(file).string();
      continue;
    }
    ImageOptions o;
    for (const ImageOptions& given : images)
      if (given.input.empty() || given.input == inputs[i].name) o = given;
    out.tensors.push_back(image_tensor(file, inputs[i], o));
    file = (folder / fmt::format("input_{}.pb", i)).string();
    write_tensor_pb(file, out.tensors.back(), inputs[i].name);
  }
  return out;
}

std::string random_input(const Value& v, const std::filesystem::path& folder, size_t i) {
  std::vector<int64_t> shape;
  for (const Dim& d : v.type.shape) shape.push_back(d.hi());
  Tensor t(v.type.dtype, shape);
  std::mt19937 random(static_cast<uint32_t>(i + 1));
  for (int64_t k = 0; k < t.size(); ++k) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    if (is_float(t.dtype()))
      t.set_real(k, 2 * u - 1);
    else
      t.set_integer(k, static_cast<int64_t>(2 * u));
  }
  const std::filesystem::path file = folder / fmt::format("input_{}.pb", i);
  write_tensor_pb(file, t, v.name);
  return file.string();
}

std::string type_text(const Tensor& t) {
  return std::string(name_of(t.dtype())) + text(Shape(t.shape().begin(), t.shape().end()));
}

}  // namespace sinter
