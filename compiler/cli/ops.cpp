// sinter ops: the operators, from the table that import uses, and the kernels that run them.
#include <memory>

#include "cli/command.h"
#include "cli/errors.h"
#include "emit/layer.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool is_ours(const Op& op) { return op.domain == std::string_view("sinter"); }

std::string full_name(const Op& op) { return (*op.domain ? std::string(op.domain) + "." : "") + op.name; }

void print_list() {
  size_t count = 0;
  for (const Op* op : all_ops()) {
    if (is_ours(*op)) continue;
    ++count;
    if (*op->note)
      fmt::print("{:<32} {}\n", full_name(*op), op->note);
    else
      fmt::print("{}\n", full_name(*op));
  }
  fmt::print("{} operators\n", count);
}

// "2", "1 to 3", "1 or more".
std::string counts(int lo, int hi) {
  if (hi < 0) return fmt::format("{} or more", lo);
  return lo == hi ? std::to_string(lo) : fmt::format("{} to {}", lo, hi);
}

// '|' ends a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string s;
  for (const char c : text) s += c == '|' ? "\\|" : std::string(1, c);
  return s;
}

void print_markdown() {
  size_t count = 0;
  for (const Op* op : all_ops()) count += !is_ours(*op);
  fmt::print(
      "# Operators\n\n"
      "<!-- Printed by `sinter ops --markdown`; a test compares. -->\n\n"
      "The {} operators whose types, shapes and meaning sinter knows. Import rewrites older opsets to the "
      "newest\n"
      "form, so that attributes which became inputs count as inputs here. *elementwise*: fused with its\n"
      "neighbours, any broadcast, any element type that ONNX allows it. *view*: no code and no memory. All "
      "others\n"
      "run by a kernel, or are folded where their inputs are known; a node that no kernel accepts (because "
      "of its\n"
      "element type, say) is refused with its name.\n\n"
      "| operator | inputs | outputs | kind | remarks |\n|---|---|---|---|---|\n",
      count);
  for (const Op* op : all_ops())
    if (!is_ours(*op))
      fmt::print("| {} | {} | {} | {} | {} |\n", cell(full_name(*op)), counts(op->min_inputs, op->max_inputs),
                 counts(op->min_outputs, op->max_outputs),
                 op->expr      ? "elementwise"
                 : op->is_view ? "view"
                               : "",
                 cell(op->note));
  fmt::print(
      "\n# Kernels\n\nIn order of preference: the first that accepts a node runs it.\n\n| kernel | what it "
      "is "
      "|\n|---|---|\n");
  for (const Kernel* k : all_kernels()) fmt::print("| {} | {} |\n", k->name, cell(k->what));
}

}  // namespace

std::function<int()> declare_ops(CLI::App& app) {
  auto markdown = std::make_shared<bool>(false);
  app.add_flag("--markdown", *markdown, "print docs/ops.md");
  return [markdown] {
    *markdown ? print_markdown() : print_list();
    return kExitOk;
  };
}

}  // namespace sinter
