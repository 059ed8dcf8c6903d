// sinter passes: the optimisations, with the reason for each one's place.
#include <memory>

#include "cli/command.h"
#include "cli/errors.h"
#include "ir/error.h"
#include "passes/pass.h"

namespace sinter {
namespace {

void print_markdown() {
  fmt::print(
      "# Passes\n\n"
      "<!-- Printed by `sinter passes --markdown`; a test compares. -->\n\n"
      "In the order they run. `--print-after PASS` prints the graph behind one, `--skip-pass PASS` leaves it "
      "out,\n"
      "`--stop-after PASS` ends there, `--time-passes` prints how long each takes, `--verify-each` checks "
      "the "
      "graph\n"
      "after every one.\n\n"
      "| | pass | what it does | why it is there |\n|---|---|---|---|\n");
  int number = 0;
  for (const Pass& p : all_passes())
    fmt::print("| {} | {} | {} | {} |\n", ++number, p.name, p.what, p.why_here);
}

}  // namespace

std::function<int()> declare_passes(CLI::App& app) {
  auto markdown = std::make_shared<bool>(false);
  app.add_flag("--markdown", *markdown, "print docs/passes.md");
  return [markdown] {
    if (*markdown)
      print_markdown();
    else
      for (const Pass& p : all_passes())
        fmt::print("{:<20} {}\n{:<20}   {}\n", p.name, p.what, "", p.why_here);
    return kExitOk;
  };
}

}  // namespace sinter
