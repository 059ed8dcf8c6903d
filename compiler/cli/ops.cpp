// sinter ops: the operators, from the table that import uses.
#include "cli/command.h"
#include "cli/errors.h"
#include "ops/op.h"

namespace sinter {

std::function<int()> declare_ops(CLI::App&) {
  return [] {
    size_t count = 0;
    for (const Op* op : all_ops()) {
      if (op->domain == std::string_view("sinter")) continue;
      ++count;
      const std::string domain = *op->domain ? std::string(op->domain) + "." : "";
      if (*op->note)
        fmt::print("{:<32} {}\n", domain + op->name, op->note);
      else
        fmt::print("{}{}\n", domain, op->name);
    }
    fmt::print("{} operators\n", count);
    return kExitOk;
  };
}

}  // namespace sinter
