// sinter passes: the optimisations, with the reason for each one's place.
#include "cli/command.h"
#include "cli/errors.h"
#include "ir/error.h"
#include "passes/pass.h"

namespace sinter {

std::function<int()> declare_passes(CLI::App&) {
  return [] {
    for (const Pass& p : all_passes()) fmt::print("{:<20} {}\n{:<20}   {}\n", p.name, p.what, "", p.why_here);
    return kExitOk;
  };
}

}  // namespace sinter
