// The operators of ONNX's own domain, as far as import must know them whatever it makes of them.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace sinter {

struct Schema {
  std::string_view name;
  int64_t first;                // the opset of its first version
  std::string_view attributes;  // names of all its versions' attributes, between spaces
};
const std::vector<Schema>& schemas();              // by name
const Schema* find_schema(std::string_view name);  // null where ONNX has no such operator

// Why an operator will not be there, whatever the version; null for others.
const char* why_never(std::string_view domain, std::string_view op);
// Whether import itself takes the operator away: constants, lists of tensors whose length it knows, and what
// it writes as other operators.
bool ends_at_import(std::string_view op);

}  // namespace sinter
