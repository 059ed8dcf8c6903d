#include "driver/inputs.h"

#include <algorithm>
#include <map>
#include <random>

#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/image.h"
#include "ir/error.h"
#include "sinter/runner.h"
#include "sinter/seeded.h"

namespace sinter {

namespace {

std::string extents_text(const DeclaredInput& d) {
  if (!d.has_shape) return "";
  std::string s = "[";
  for (const auto& e : d.extents) {
    const bool fixed = e.lo == e.hi;
    s += (s.size() > 1 ? "," : "") + (fixed ? std::to_string(e.lo) : e.text.empty() ? "?" : e.text);
    if (!fixed && e.hi >= 0) s += fmt::format(" ({}..{})", e.lo, e.hi);
  }
  return s + "]";
}

[[noreturn]] void misfit(const DeclaredInput& d, const Tensor& t, const std::string& why) {
  throw UsageError(fmt::format("the input {} takes {}{}, its file has {}{}", sinter::quoted(d.name),
                               name_of(d.dtype), extents_text(d), type_text(t), why));
}

bool is_outside(const DeclaredInput::Extent& e, int64_t given) {
  if (e.maybe_empty && given == 0) return false;
  if (e.lo == e.hi) return given != e.lo;
  return e.hi >= 0 && (given < e.lo || given > e.hi || given % e.step != 0);
}

// The files of the inputs that are needed. Files that no name pairs belong to these in order, or to all
// inputs where there are more files than are needed.
std::vector<std::string> needed_files(const std::vector<DeclaredInput>& inputs,
                                      const std::vector<std::string>& options) {
  std::vector<std::string> all, needed;
  for (const DeclaredInput& d : inputs) {
    all.push_back(d.name);
    if (d.needed) needed.push_back(d.name);
  }
  const bool names_others = std::any_of(options.begin(), options.end(), [&](const std::string& o) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const DeclaredInput& d) { return !d.needed && o.rfind(d.name + "=", 0) == 0; });
  });
  if (options.size() <= needed.size() && !names_others) return pair_files(options, needed, "input");
  std::vector<std::string> files = pair_files(options, all, "input"), out;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].needed) out.push_back(files[i]);
  return out;
}

// Whether a file holds a row for each step.
bool has_rows(const Tensor& t, const DeclaredInput& d, int steps) {
  return steps > 1 && d.has_shape && t.shape().size() == d.extents.size() + 1 && t.shape()[0] == steps;
}
Tensor first_row(const Tensor& t) {
  Tensor row(t.dtype(), std::vector<int64_t>(t.shape().begin() + 1, t.shape().end()));
  std::copy_n(t.data(), row.bytes(), row.mutable_data());
  return row;
}

}  // namespace

std::vector<DeclaredInput> inferred_inputs(const Graph& g, const StatePlan& states) {
  std::vector<DeclaredInput> out;
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    if (states.of_input(i)) continue;
    const Value* v = g.inputs[i];
    DeclaredInput d;
    d.name = v->name;
    d.dtype = v->type.dtype;
    d.has_shape = true;
    d.index = out.size();
    for (const Dim& e : v->type.shape)
      d.extents.push_back(
          {std::max<int64_t>(e.lo(), 0), e.hi() == Interval::kUnbounded ? -1 : e.hi(), 1, e.text(), false});
    out.push_back(std::move(d));
  }
  return out;
}

void check_inputs(const std::vector<DeclaredInput>& inputs, const std::vector<Tensor>& tensors) {
  struct Seen {
    int64_t extent;
    std::string where;
  };
  std::map<std::string, Seen> seen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeclaredInput& d = inputs[i];
    const Tensor& t = tensors[i];
    if (t.dtype() != d.dtype) misfit(d, t, "");
    if (!d.has_shape) continue;
    if (t.shape().size() != d.extents.size()) misfit(d, t, "");
    for (size_t a = 0; a < d.extents.size(); ++a) {
      const DeclaredInput::Extent& e = d.extents[a];
      const int64_t given = t.shape()[a];
      if (is_outside(e, given)) misfit(d, t, fmt::format(": axis {} is {}", a, given));
      if (e.text.empty() || e.lo == e.hi) continue;
      const auto first =
          seen.emplace(e.text, Seen{given, fmt::format("{} axis {}", sinter::quoted(d.name), a)}).first;
      if (first->second.extent != given)
        misfit(d, t,
               fmt::format(": axis {} is {}, but {} is {} by {}", a, given, e.text, first->second.extent,
                           first->second.where));
    }
  }
}

namespace {

// A frame's file that holds it as arrays do ([height, width, channels]): a file in `folder` has its rows.
void take_array(const FrameWords& words, size_t i, const std::filesystem::path& folder, int steps,
                InputFiles& out) {
  const bool each = steps > 1 && runner::number_in(out.files[i]) != std::string::npos;
  if (as_frame(out.tensors[i], words).shape() == out.tensors[i].shape()) return;
  const std::string given = out.files[i];
  out.files[i] = (folder / fmt::format("input_{}{}.pb", i, each ? "_%" : "")).string();
  for (int step = 0; step < (each ? steps : 1); ++step) {
    const Tensor t = as_frame(read_tensor_file(runner::file_of_step(given, step, steps)), words);
    write_tensor_pb(runner::file_of_step(out.files[i], step, steps), t, "");
    if (step == 0) out.tensors[i] = t;
  }
}

// --image PICTURE.png or --image NAME=PICTURE.png is --in of that file; the others are words.
void part_pictures(std::vector<std::string>& words, std::vector<std::string>& files) {
  std::vector<std::string> rest;
  for (const std::string& option : words) (is_image_file(option) ? files : rest).push_back(option);
  words = std::move(rest);
}

// Of a frame, --pre says how it becomes the input.
void check_words(const FrameWords& w, const std::vector<DeclaredInput>& inputs, const std::string& option) {
  for (const DeclaredInput& d : inputs)
    if (d.frame && d.name == w.input)
      throw UsageError(fmt::format("--image {}: the input {} is a frame, of which --pre says all",
                                   sinter::quoted(option), sinter::quoted(d.name)));
}

}  // namespace

InputFiles read_inputs(const std::vector<DeclaredInput>& inputs, std::vector<std::string> in_options,
                       std::vector<std::string> image_options, const std::filesystem::path& folder,
                       int steps) {
  InputFiles out;
  part_pictures(image_options, in_options);
  out.files = needed_files(inputs, in_options);
  std::vector<std::string> names;
  for (const DeclaredInput& d : inputs) {
    if (!d.needed) continue;
    out.inputs.push_back(d);
    names.push_back(d.name);
  }
  std::vector<FrameWords> images;
  images.reserve(image_options.size());
  for (const std::string& text : image_options) {
    images.push_back(parse_frame_words("--image", text, names));
    check_words(images.back(), out.inputs, text);
  }
  for (size_t i = 0; i < out.inputs.size(); ++i) {
    const DeclaredInput& d = out.inputs[i];
    std::string& file = out.files[i];
    if (file.empty()) throw UsageError(fmt::format("no --in for the input {}", sinter::quoted(d.name)));
    if (!is_image_file(file)) {
      const Tensor t = read_tensor_file(runner::file_of_step(file, 0, steps));
      out.tensors.push_back(has_rows(t, d, steps) ? first_row(t) : t);
      file = std::filesystem::absolute(file).string();
      if (d.frame) take_array(*d.frame, i, folder, steps, out);
      continue;
    }
    const bool each = steps > 1 && runner::number_in(file) != std::string::npos;
    const std::string pictures = file;
    file = (folder / fmt::format("input_{}{}.pb", i, each ? "_%" : "")).string();
    for (int step = 0; step < (each ? steps : 1); ++step) {
      const std::string picture = runner::file_of_step(pictures, step, steps);
      const Tensor t =
          d.frame ? image_frame(picture, *d.frame) : image_tensor(picture, d, words_of_input(images, d.name));
      write_tensor_pb(runner::file_of_step(file, step, steps), t, d.name);
      if (step == 0) out.tensors.push_back(t);
    }
  }
  check_inputs(out.inputs, out.tensors);
  return out;
}

bool name_files(const std::vector<std::string>& in_options, const std::vector<std::string>& image_options) {
  return !in_options.empty() || std::any_of(image_options.begin(), image_options.end(), is_image_file);
}

Tensor random_tensor(DType dtype, const std::vector<int64_t>& shape, std::mt19937& random) {
  Tensor t(dtype, shape);
  for (int64_t k = 0; k < t.size(); ++k) {
    if (is_float(dtype))
      t.set_real(k, seeded::real(random));
    else
      t.set_integer(k, seeded::integer(random));
  }
  return t;
}

Tensor random_bytes(const std::vector<int64_t>& shape, std::mt19937& random) {
  Tensor t(DType::kU8, shape);
  for (int64_t k = 0; k < t.size(); ++k) t.as<uint8_t>()[k] = seeded::byte(random);
  return t;
}

std::string random_input(const Value& v, const std::filesystem::path& folder, size_t i) {
  std::vector<int64_t> shape;
  for (const Dim& d : v.type.shape) shape.push_back(d.hi());
  std::mt19937 random = seeded::of_input(i);
  Tensor t = is_frame(v) ? random_bytes(shape, random) : random_tensor(v.type.dtype, shape, random);
  for (int64_t k = 0; v.range && k < t.size(); ++k) t.set_real(k, v.range->hi);  // --dim INPUT<=MAX
  const std::filesystem::path file = folder / fmt::format("input_{}.pb", i);
  write_tensor_pb(file, t, v.name);
  return file.string();
}

std::string type_text(const Tensor& t) {
  return std::string(name_of(t.dtype())) + text(Shape(t.shape().begin(), t.shape().end()));
}

}  // namespace sinter
