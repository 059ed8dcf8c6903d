// ONNX's backend tests as Debian's libonnx-testdata ships them: where they are, how to load and compare them.
//
// A test is a folder with model.onnx and test_data_set_K/{input,output}_J.pb.
#pragma once
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/onnx.h"
#include "ir/error.h"
#include "ops/op.h"

namespace sinter {

namespace suite {

namespace fs = std::filesystem;

// SINTER_ONNX_TESTDATA names another folder of the same form, such as a newer ONNX's data.
inline fs::path root() {
  const char* other = std::getenv("SINTER_ONNX_TESTDATA");
  return other ? other : "/usr/share/libonnx-testdata/data";
}

// The tests of a category (node, simple, pytorch-converted, pytorch-operator), by name; none where the
// package isn't installed.
inline std::vector<std::string> tests(const std::string& category) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root() / category, error))
    if (fs::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

struct DataSet {
  std::vector<Tensor> inputs, outputs;
};

// Files PREFIX_0.pb, PREFIX_1.pb, ... of a folder.
inline std::vector<Tensor> load(const fs::path& folder, const std::string& prefix) {
  std::vector<Tensor> out;
  for (int i = 0; fs::exists(folder / (prefix + "_" + std::to_string(i) + ".pb")); ++i)
    out.push_back(read_tensor_pb(folder / (prefix + "_" + std::to_string(i) + ".pb")));
  return out;
}

inline std::vector<DataSet> data_sets(const fs::path& test) {
  std::vector<DataSet> out;
  for (int k = 0; fs::exists(test / ("test_data_set_" + std::to_string(k))); ++k) {
    const fs::path folder = test / ("test_data_set_" + std::to_string(k));
    out.push_back({load(folder, "input"), load(folder, "output")});
  }
  return out;
}

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};
// Two steps of a short float are more than 1e-3.
inline Tolerance widened(Tolerance t, DType dtype) {
  if (dtype == DType::kF16) t.relative = std::max(t.relative, 2.0 / 1024);
  if (dtype == DType::kBF16) t.relative = std::max(t.relative, 2.0 / 128);
  return t;
}

// What differs first, or an empty string. dtype and shape are exact; NaN equals NaN; infinities and integers
// are exact.
inline std::string difference(const Tensor& got, const Tensor& want, Tolerance tolerance = {}) {
  auto type = [](const Tensor& t) {
    return std::string(name_of(t.dtype())) + text(Shape(t.shape().begin(), t.shape().end()));
  };
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return type(got) + " instead of " + type(want);
  tolerance = widened(tolerance, got.dtype());
  const bool real = is_float(got.dtype());
  const bool known = real || is_integer(got.dtype()) || got.dtype() == DType::kBool;
  if (!known) return got.same_bits(want) ? "" : "other bits";
  for (int64_t i = 0; i < got.size(); ++i) {
    bool equal;
    if (real) {
      const double g = got.real(i), w = want.real(i);
      equal = std::isnan(g) || std::isnan(w) ? std::isnan(g) && std::isnan(w)
              : std::isinf(g) || std::isinf(w)
                  ? g == w
                  : std::abs(g - w) <= tolerance.absolute + tolerance.relative * std::abs(w);
    } else {
      equal = got.integer(i) == want.integer(i);
    }
    if (!equal) return fmt::format("element {} is {} instead of {}", i, got.real(i), want.real(i));
  }
  return "";
}

// `t` as `dtype`: some test data keep bfloat16 as the uint16 of its bits.
inline Tensor stored_as(const Tensor& t, DType dtype) {
  if (t.dtype() != DType::kU16 || dtype != DType::kBF16) return t;
  Tensor out(dtype, t.shape());
  std::copy(t.as<uint16_t>(), t.as<uint16_t>() + t.size(), reinterpret_cast<uint16_t*>(out.mutable_data()));
  return out;
}

// Graph inputs of a data set: the k-th file is the k-th input, initializers among the inputs included.
inline std::map<std::string, std::vector<int64_t>> shapes(const std::vector<std::string>& names,
                                                          const std::vector<Tensor>& inputs) {
  std::map<std::string, std::vector<int64_t>> out;
  for (size_t i = 0; i < std::min(names.size(), inputs.size()); ++i) out[names[i]] = inputs[i].shape();
  return out;
}

// Names of the graph's inputs in file order; initializers' too, since test data may give them.
inline std::vector<std::string> input_names(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  onnx::ModelProto proto;
  proto.ParseFromIstream(&stream);
  std::vector<std::string> names;
  for (const auto& i : proto.graph().input()) names.push_back(i.name());
  return names;
}

// Inputs or outputs that aren't tensors (sequences, optionals) or hold strings.
inline std::string unreadable(const fs::path& test) {
  try {
    data_sets(test);
    return "";
  } catch (const Refusal& r) {
    return r.what();
  }
}

inline std::string join(const Refusal& r) {
  std::string s;
  for (const std::string& p : r.problems) s += (s.empty() ? "" : "; ") + p;
  return s;
}

// Tests whose stored data are at fault, and why.
inline const std::map<std::string, std::string>& broken_data() {
  static const std::map<std::string, std::string> table = {
      {"test_cast_FLOAT_to_BFLOAT16", "its data are cut off, not rounded to nearest"},
      {"test_resize_downsample_scales_linear_align_corners",
       "its output is 2.4 pixels wide; we take the 2 it has"},
      {"test_resize_downsample_scales_cubic_align_corners",
       "its output is 3.2 pixels wide; we take the 3 it has"},
      {"test_castlike_FLOAT_to_BFLOAT16", "input like has another shape than the model says"},
      {"test_castlike_BFLOAT16_to_FLOAT", "input like has another shape than the model says"},
      {"test_castlike_FLOAT_to_BFLOAT16_expanded", "input like has another shape than the model says"},
      {"test_castlike_BFLOAT16_to_FLOAT_expanded", "input like has another shape than the model says"},
      {"test_bernoulli", "its data are another generator's random numbers"},
      {"test_bernoulli_double", "its data are another generator's random numbers"},
      {"test_bernoulli_seed", "its data are another generator's random numbers"},
      {"test_bernoulli_expanded", "its data are another generator's random numbers"},
      {"test_bernoulli_double_expanded", "its data are another generator's random numbers"},
      {"test_bernoulli_seed_expanded", "its data are another generator's random numbers"},
  };
  return table;
}

// Whether a model is refused because an operator wants an input's value before the model runs.
inline bool value_needed(const Refusal& r) {
  const std::string all = join(r);
  for (const char* sign :
       {"only known at run time", "not known before the model runs", "known at compile time", "--const"})
    if (all.find(sign) != std::string::npos) return true;
  return false;
}

// Some operators want an input's value at compile time. The suite has them all as inputs: where `use`, called
// with the imported model, or the import refuses for that reason, they are given as constants: first all but
// input 0, then all. The Model that `use` took.
inline Model import_as_needed(
    const fs::path& file, const std::vector<std::string>& names, const std::vector<Tensor>& inputs,
    const std::function<void(const Model&)>& use = [](const Model&) {}) {
  ImportOptions options;
  options.input_shapes = shapes(names, inputs);
  for (size_t attempt = 0;; ++attempt) {
    try {
      Model m = import_model(file, options);
      use(m);
      return m;
    } catch (const Refusal& r) {
      if (!value_needed(r) || attempt == 2) throw;
      for (size_t i = 1 - attempt; i < std::min(names.size(), inputs.size()); ++i)
        options.constants[names[i]] = inputs[i];
    }
  }
}

}  // namespace suite
}  // namespace sinter
