// sinter targets: the processors, and which of them this machine is.
#include "cli/command.h"
#include "cli/errors.h"
#include "ir/error.h"
#include "targets/target.h"

namespace sinter {

std::function<int()> declare_targets(CLI::App&) {
  return [] {
    for (const Target* t : all_targets()) fmt::print("{:<14} {:<44} {}\n", t->name, t->what, t->boards);
    fmt::print("{:<14} {}\n", "host", fmt::format("this machine: {}", find_target("host")->name));
    return kExitOk;
  };
}

}  // namespace sinter
