// sinter passes: the optimisations, with the reason for each one's place.
#include <memory>

#include "cli/command.h"
#include "driver/errors.h"
#include "ir/error.h"
#include "plan/steps.h"

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
  fmt::print(
      "\n## Steps of the plan\n\n"
      "They run behind the passes and decide where layers read and write and what they run with\n"
      "(`compiler/plan/decision.h`). The same options name them; `--print-after STEP` prints what is "
      "decided, "
      "too.\n\n"
      "| | step | what it does | why it is there |\n|---|---|---|---|\n");
  number = 0;
  for (const Step& s : all_steps())
    fmt::print("| {} | {} | {}{} | {} |\n", ++number, s.name, s.what,
               s.can_skip ? "" : " It can't be skipped.", s.why_here);
}

void print_plain() {
  const auto print = [](const auto& table) {
    for (const auto& row : table)
      fmt::print("{:<20} {}\n{:<20}   {}\n", row.name, row.what, "", row.why_here);
  };
  print(all_passes());
  fmt::print("\nSteps of the plan:\n");
  print(all_steps());
}

}  // namespace

std::function<int()> declare_passes(CLI::App& app) {
  auto markdown = std::make_shared<bool>(false);
  app.add_flag("--markdown", *markdown, "print docs/passes.md");
  return [markdown] {
    if (*markdown)
      print_markdown();
    else
      print_plain();
    return kExitOk;
  };
}

}  // namespace sinter
