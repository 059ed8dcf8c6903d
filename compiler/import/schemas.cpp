// What ONNX's schemas say of a node, whatever the version: that its operator is there, and its attributes.
#include <algorithm>
#include <sstream>
#include <string_view>

#include "import/importer.h"
#include "ir/error.h"

namespace sinter {

namespace {

struct Schema {
  std::string_view name;
  int64_t first;  // opset
  std::string_view attributes;
};
constexpr Schema kSchemas[] = {
#define SCHEMA(name, first, attributes) {#name, first, attributes},
#include "import/schemas.def"
#undef SCHEMA
};

bool holds(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

void check_schema(const onnx::NodeProto& n, int64_t opset) {
  const auto schema = std::find_if(std::begin(kSchemas), std::end(kSchemas),
                                   [&](const Schema& s) { return s.name == n.op_type(); });
  if (schema == std::end(kSchemas)) return;  // no operator of that name: who looks it up will say so
  if (schema->first > opset)
    refuse("{} came with opset {}, but the model names opset {}", n.op_type(), schema->first, opset);
  for (const auto& a : n.attribute())
    if (a.name().empty() || a.name().find(' ') != std::string::npos || !holds(schema->attributes, a.name()))
      refuse("{} has no attribute {}", n.op_type(), sinter::quoted(a.name()));
}

}  // namespace sinter
