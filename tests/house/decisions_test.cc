// Decisions are data: the planner, the kernels and what writes layers keep them in a table of structs
// (plan/decision.h), not as attributes of nodes, and tell kernels apart by what they can do, not by their
// names.
#include "house/source_tree.h"

namespace sinter::house {
namespace {

void expect_nowhere(const char* pattern, const char* why) {
  for (const char* folder : {"compiler/plan", "compiler/kernels", "compiler/emit"})
    for (const std::string& file : files(folder, {".cpp", ".h"}))
      for (const std::string& found : all_matches(read(top() / file), pattern))
        ADD_FAILURE() << file << " has " << found << ": " << why;
}

TEST(Decisions, AreNoAttributes) {
  expect_nowhere("(attributes\\.(?:set|erase)\\()", "what is decided of a node belongs to its Decision");
}

TEST(Decisions, KernelsAreKnownByTheirAbilities) {
  expect_nowhere("((?:->|\\.)kernel [!=]= \"[^\"]*\")", "ask Kernel::can or Layer::algorithm");
  expect_nowhere("(k->name\\)? [!=]= \"[^\"]*\")", "ask Kernel::can or Layer::algorithm");
}

}  // namespace
}  // namespace sinter::house
