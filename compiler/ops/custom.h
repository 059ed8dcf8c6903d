// Custom operators: a user's C functions as operators of a model (--custom-ops FILE.json).
//
// The file is a list of objects:
//
//   [{"domain": "com.example", "op": "Scale", "inputs": ["x", "bias?"], "outputs": ["y"],
//     "attributes": {"alpha": 1.0, "mode": "linear", "sizes": [1, 2]},
//     "shape": "same(0)",           or the extents: ["x[0]", "2 * x[1] + 1", "sizes"], one such for each
//     output "dtype": "same(0)",           or "float32" …, one for each output "function": "scale", "header":
//     "scale.h", "sources": ["scale.c"]}]
//
// An input whose name ends in "?" may be absent. Attributes are given with their defaults, which also say
// their types: integer, float, string, or a list of integers or of floats. Extents are integers or
// expressions over extents of inputs (NAME[AXIS]) and integer attributes, with + - * / (rounding down),
// parentheses, and min(a, b), max(a, b), ceildiv(a, b). Paths are relative to the file. Unknown keys are
// refused.
//
// The function is int scale(const sinter_tensor* inputs, const sinter_tensor* outputs[, const
// scale_attributes* attributes]), see runtime/sinter/custom.h; scale_custom.h, part of the bundle, declares
// it and its attributes. Sources are compiled as C++; the function has C linkage in either case.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/op.h"

namespace sinter {

struct CustomOp : Op {
  struct Output {
    std::string shape;                 // "same(0)"; empty: `extents` counts
    std::vector<std::string> extents;  // expressions
    std::string dtype;                 // "same(0)", "float32"
  };
  std::string op_domain, op_name, function, header;  // header: name within the bundle, may be empty
  std::vector<std::string> input_names;              // without "?"
  std::vector<Output> results;
  std::map<std::string, Attribute> defaults;  // every attribute, by name
  std::map<std::string, std::string> files;   // name within the bundle -> text: header and sources
};

// The operators of one file. They must outlive every graph that uses them.
class CustomOps {
 public:
  // Throws a Refusal with all problems of the file.
  explicit CustomOps(const std::filesystem::path& json);
  // For ImportOptions::custom_op. Null where the file has no such operator.
  const Op* find(const std::string& domain, const std::string& name) const;

 private:
  std::vector<std::unique_ptr<CustomOp>> ops_;
};

// The node's custom operator; null where it is one of ours.
const CustomOp* custom_op_of(const Node&);

}  // namespace sinter
