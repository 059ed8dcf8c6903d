// What ONNX's schemas say of a node, whatever the version: that its operator is there, and its attributes.
#include "import/schemas.h"

#include <algorithm>

#include "import/importer.h"
#include "ir/error.h"

namespace sinter {

const std::vector<Schema>& schemas() {
  static const std::vector<Schema> table = {
#define SCHEMA(name, first, attributes) {#name, first, attributes},
#include "import/schemas.def"
#undef SCHEMA
  };
  return table;
}

const Schema* find_schema(std::string_view name) {
  const auto& all = schemas();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Schema& s) { return s.name == name; });
  return it == all.end() ? nullptr : &*it;
}

const char* why_never(std::string_view domain, std::string_view op) {
  if (domain == "ai.onnx.preview.training" || domain == "ai.onnx.training") return "it trains";
  if (op == "ImageDecoder") return "pictures must be decoded before they are given";
  constexpr std::string_view text[] = {"StringConcat",   "StringNormalizer", "StringSplit", "RegexFullMatch",
                                       "CategoryMapper", "DictVectorizer",   "CastMap"};
  if (std::find(std::begin(text), std::end(text), op) != std::end(text))
    return "text and maps are not supported";
  return nullptr;
}

bool ends_at_import(std::string_view op) {
  constexpr std::string_view rewritten[] = {
      "CausalConvWithState", "ConcatFromSequence", "Constant", "Scatter", "SplitToSequence", "Upsample"};
  return std::find(std::begin(rewritten), std::end(rewritten), op) != std::end(rewritten) ||
         op.starts_with("Sequence") || op.starts_with("Optional");
}

namespace {

bool holds(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

void check_schema(const onnx::NodeProto& n, int64_t opset) {
  const Schema* schema = find_schema(n.op_type());
  if (!schema) return;  // no operator of that name: who looks it up will say so
  // ONNX Runtime has had LayerNormalization in ONNX's domain since opset 1: files that it has optimised have
  // it with the opset that they had.
  if (schema->first > opset && n.op_type() != "LayerNormalization")
    refuse("{} came with opset {}, but the model names opset {}", n.op_type(), schema->first, opset);
  for (const auto& a : n.attribute())
    if (a.name().empty() || a.name().find(' ') != std::string::npos || !holds(schema->attributes, a.name()))
      refuse("{} has no attribute {}", n.op_type(), sinter::quoted(a.name()));
}

}  // namespace sinter
