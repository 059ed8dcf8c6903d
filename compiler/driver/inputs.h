// The files that --in and --image name, read and paired with a model's inputs.
#pragma once
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "driver/options.h"
#include "plan/state.h"

namespace sinter {

struct InputFiles {
  std::vector<DeclaredInput> inputs;  // those that are needed, in order
  std::vector<Tensor> tensors;        // what each takes
  std::vector<std::string> files;     // absolute paths of .npy or .pb files with the same contents
};

// Reads a file for each input that is needed (others may have one, which is left alone); pictures are
// converted and written to `folder`. UsageError where an input has no file, a file can't be read or has
// another element type or shape than is declared.
// With several `steps`, a file is what runtime/sinter/runner.h says, and `tensors` are those of the first
// one.
// An image option that names a picture's file is one of `in_options`.
InputFiles read_inputs(const std::vector<DeclaredInput>& inputs, std::vector<std::string> in_options,
                       std::vector<std::string> image_options, const std::filesystem::path& folder,
                       int steps = 1);

// Whether options of --in and --image name files.
bool name_files(const std::vector<std::string>& in_options, const std::vector<std::string>& image_options);

// Random numbers that any model takes: floats in [-1, 1), integers 0 or 1, which are valid indices of most
// tables.
Tensor random_tensor(DType, const std::vector<int64_t>& shape, std::mt19937&);

// Random bytes, 0 to 255: a frame.
Tensor random_bytes(const std::vector<int64_t>& shape, std::mt19937&);

// Writes a seeded random tensor for the i-th input, of its greatest extents, to a file in `folder`, whose
// path it returns: floats in [-1, 1), integers 0 or 1; where --dim bounds the elements, the greatest; a
// frame's are any.
std::string random_input(const Value& v, const std::filesystem::path& folder, size_t i);

// What inference tells of a graph's inputs, but for those of states.
std::vector<DeclaredInput> inferred_inputs(const Graph& g, const StatePlan& states = {});

// Holds files' contents against inputs: types, numbers of axes, extents and those that must be equal.
// UsageError with the input, what it takes and what was given.
void check_inputs(const std::vector<DeclaredInput>& inputs, const std::vector<Tensor>& tensors);

// One tensor's text for messages: "float32[1,3,224,224]".
std::string type_text(const Tensor& t);

}  // namespace sinter
