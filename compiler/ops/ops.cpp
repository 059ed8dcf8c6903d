// The table of all operators: ops.def's files put together, sorted by domain and name.
#include <algorithm>

#include "ops/op.h"

namespace sinter {

#define OPS(file) const std::vector<Op>& ops_##file();
#include "ops/ops.def"
#undef OPS

const std::vector<const Op*>& all_ops() {
  static const std::vector<const Op*> table = [] {
    std::vector<const Op*> t;
#define OPS(file) \
  for (const Op& op : ops_##file()) t.push_back(&op);
#include "ops/ops.def"
#undef OPS
    auto key = [](const Op* o) { return std::pair(std::string_view(o->domain), std::string_view(o->name)); };
    std::sort(t.begin(), t.end(), [&](const Op* a, const Op* b) { return key(a) < key(b); });
    for (size_t i = 1; i < t.size(); ++i)
      SINTER_CHECK(key(t[i - 1]) != key(t[i]), "two operators of one name");
    return t;
  }();
  return table;
}

const Op* find_op(std::string_view domain, std::string_view name) {
  for (const Op* op : all_ops())
    if (op->name == name && op->domain == domain) return op;
  return nullptr;
}

}  // namespace sinter
