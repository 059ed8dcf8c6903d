// What every fuzz target does with a model: import, passes, evaluation, plan and bundle, as `sinter compile`
// does.
//
// The model may be refused at any step, by a Refusal with a sentence that a user can read. Everything else is
// a finding and must end the process: a signal, a sanitizer's report, another exception, a Refusal that only
// wraps one, generated code that a name of the model has broken out of its comment.
#pragma once
#include <onnx/onnx_pb.h>

#include <string>

namespace sinter::fuzz {

struct Outcome {
  std::string refused;  // the first problem; empty where a bundle was made
  size_t layers = 0;    // of the bundle
};

// `choice` decides what the model does not: the target, --exact, which value a free dim is given, and whether
// the graph is evaluated before and after the passes. Equal arguments, equal outcomes.
Outcome compile(const onnx::ModelProto& model, uint32_t choice);

// A choice that follows from the model's bytes, so that a file alone reproduces a finding.
uint32_t choice_of(const std::string& bytes);

// A model in ONNX's binary form with the limits of the fuzzers: at most kMaxBytes. Whether it is one.
constexpr size_t kMaxBytes = 8192;
bool parse(const std::string& bytes, onnx::ModelProto& model);

}  // namespace sinter::fuzz
