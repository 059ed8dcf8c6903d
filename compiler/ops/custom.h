// Custom operators: a user's C functions as operators of a model (--custom-ops FILE.json).
//
// docs/custom-ops.md describes the file: a list of objects, each with an operator's domain and name, its
// inputs, outputs and attributes, how the outputs' shapes and types follow from the inputs, and the C
// function with its sources. Unknown keys are refused.
#pragma once
#include <filesystem>
#include <functional>
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

// How evaluation computes such a node from now on (driver/custom_meaning.cpp); null: it refuses to, as at
// first.
void set_custom_meaning(std::function<void(Evaluation&)> meaning);

}  // namespace sinter
