#include "cli/inputs.h"

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

std::string type_text(const Tensor& t) {
  return std::string(name_of(t.dtype())) + text(Shape(t.shape().begin(), t.shape().end()));
}

}  // namespace sinter
