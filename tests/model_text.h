// Models for tests, written in ONNX's text form:
//
//   Model m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
//     g (float[N,4] x) => (float[N,4] y) { y = Relu(x) })");
#pragma once
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <string>

#include "import/onnx.h"
#include "ir/error.h"

namespace sinter {

inline onnx::ModelProto parse_text(const std::string& text) {
  onnx::ModelProto proto;
  const auto status = onnx::OnnxParser::Parse(proto, text.c_str());
  if (!status.IsOK()) throw Refusal("the test's text is broken: " + status.ErrorMessage());
  return proto;
}

inline Model import_text(const std::string& text, const ImportOptions& options = {}) {
  return import_model(parse_text(text), {}, options);
}

// The text form has no absent argument in front of others: the main graph's nodes write it as `none`.
inline onnx::ModelProto without_none(onnx::ModelProto proto) {
  for (onnx::NodeProto& n : *proto.mutable_graph()->mutable_node())
    for (std::string& i : *n.mutable_input())
      if (i == "none") i.clear();
  return proto;
}

// All lines of the Refusal that f() throws, or "accepted".
template <class F>
std::string refusal_of(F f) {
  try {
    f();
  } catch (const Refusal& r) {
    std::string all;
    for (const std::string& p : r.problems) all += (all.empty() ? "" : "\n") + p;
    return all;
  }
  return "accepted";
}

}  // namespace sinter
