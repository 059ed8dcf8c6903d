// sinter ops: the operators, from the table that import uses, and the kernels that run them.
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "cli/command.h"
#include "driver/errors.h"
#include "emit/layer.h"
#include "import/onnx.h"
#include "import/schemas.h"
#include "import/upgrade.h"
#include "ir/error.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool is_ours(const Op& op) { return op.domain == std::string_view("sinter"); }

std::string full_name(const Op& op) { return (*op.domain ? std::string(op.domain) + "." : "") + op.name; }

// What import makes of operators of other domains than ONNX's own; they are in no table of ops.
struct Rewritten {
  std::string name;
  const char* into;
};
std::vector<Rewritten> rewritten_ops() {
  std::vector<Rewritten> list;
  for (const char* name : contrib_ops())
    list.push_back({std::string("com.microsoft.") + name, "becomes operators of ONNX when it is read"});
  list.push_back({"ai.onnx.ml.ZipMap", "its input stands for the map: the columns in the labels' order"});
  list.push_back({"ai.onnx.preview.FlexAttention", "becomes operators of ONNX when it is read"});
  return list;
}

void print_list() {
  std::map<std::string, std::string> notes;  // sorted within each domain; ONNX's own come first
  std::vector<std::string> names;
  for (const Op* op : all_ops()) {
    if (is_ours(*op)) continue;
    names.push_back(full_name(*op));
    notes[names.back()] = op->note;
  }
  for (const Rewritten& r : rewritten_ops()) {
    names.push_back(r.name);
    notes[r.name] = r.into;
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const bool other_a = a.find('.') != std::string::npos, other_b = b.find('.') != std::string::npos;
    return other_a != other_b ? other_b : a < b;
  });
  for (const std::string& name : names) {
    const std::string& note = notes[name];
    fmt::print("{}\n", note.empty() ? name : fmt::format("{:<47} {}", name, note));
  }
  fmt::print("{} operators\n", names.size());
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

// Of ONNX's backend tests, those that the operator occurs in.
struct TestResult {
  int right = 0, refused = 0, wrong = 0;
};
using TestResults = std::map<std::string, TestResult>;  // by full_name

// Lines "OPERATOR RIGHT REFUSED WRONG"; those that begin with # are comments.
TestResults read_results(const std::string& file) {
  TestResults results;
  if (file.empty()) return results;
  std::ifstream in(file);
  if (!in) refuse("{} can't be read", sinter::quoted(file));
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    TestResult r;
    if (!(words >> name >> r.right >> r.refused >> r.wrong))
      refuse("{}: not a line of results", sinter::quoted(line));
    results[name] = r;
  }
  return results;
}

std::string result_cell(const TestResults& results, const std::string& name) {
  const auto it = results.find(name);
  if (it == results.end()) return "";
  const TestResult& r = it->second;
  const int all = r.right + r.refused + r.wrong;
  std::string s = fmt::format("{} of {}", r.right, all);
  if (r.refused) s += fmt::format(", {} refused", r.refused);
  if (r.wrong) s += fmt::format(", {} wrong", r.wrong);
  return s;
}

// "7 to 28"; empty for operators of other domains.
std::string opsets(const Op& op) {
  const Schema* schema = *op.domain ? nullptr : find_schema(op.name);
  return schema ? fmt::format("{} to {}", schema->first, kNewestOpset) : "";
}

void print_operators(const TestResults& results) {
  fmt::print(
      "| operator | opsets | inputs | outputs | kind | ONNX's tests | remarks "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const Op* op : all_ops()) {
    if (is_ours(*op)) continue;
    const char* kind = op->expr ? "elementwise" : op->is_view ? "view" : op->lower ? "composite" : "";
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", cell(full_name(*op)), opsets(*op),
               counts(op->min_inputs, op->max_inputs), counts(op->min_outputs, op->max_outputs), kind,
               result_cell(results, full_name(*op)), cell(op->note));
  }
}

void print_rewritten() {
  fmt::print(
      "\n## Of other domains, gone after import\n\nBesides those of com.microsoft and ai.onnx.ml "
      "above:\n\n| operator | what becomes of it |\n|---|---|\n");
  for (const Rewritten& r : rewritten_ops()) fmt::print("| {} | {} |\n", cell(r.name), r.into);
}

// What ONNX has and all_ops() doesn't.
void print_others() {
  std::string folded;
  fmt::print("\n## Not supported\n\n| operator | why |\n|---|---|\n");
  for (const Schema& s : schemas()) {
    if (find_op("", s.name)) continue;
    if (ends_at_import(s.name)) {
      folded += (folded.empty() ? "" : ", ") + std::string(s.name);
      continue;
    }
    const char* why = why_never("", s.name);
    fmt::print("| {} | {} |\n", s.name, why ? why : "not yet");
  }
  fmt::print("| all of ai.onnx.preview.training | {} |\n", why_never("ai.onnx.preview.training", ""));
  fmt::print(
      "\n## Gone after import\n\nConstants, lists of tensors whose length is known, and what becomes other "
      "operators: {}.\n",
      folded);
}

void print_markdown(const TestResults& results) {
  size_t count = 0;
  for (const Op* op : all_ops()) count += !is_ours(*op);
  fmt::print(
      "# Operators\n\n"
      "<!-- Printed by `sinter ops --markdown --tests docs/onnx-tests.txt`; a test compares. -->\n\n"
      "The {} operators whose types, shapes and meaning sinter knows. Import rewrites older opsets to the "
      "newest\n"
      "form, so that attributes which became inputs count as inputs here. *elementwise*: fused with its\n"
      "neighbours, any broadcast, any element type that ONNX allows it. *view*: no code and no memory.\n"
      "*composite*: becomes simpler operators. All others run by a kernel, or are folded where their inputs "
      "are\n"
      "known; a node that no kernel accepts (because of its element type, say) is refused with its name.\n\n"
      "*ONNX's tests*: of its backend tests, those in which the operator occurs and that generated code "
      "gets\n"
      "right; `docs/onnx-tests.txt` says how they were run.\n\n",
      count);
  print_operators(results);
  print_rewritten();
  print_others();
  fmt::print(
      "\n# Kernels\n\nIn order of preference: the first that accepts a node runs it.\n\n| kernel | what it "
      "is "
      "|\n|---|---|\n");
  for (const Kernel* k : all_kernels()) fmt::print("| {} | {} |\n", k->name, cell(k->what));
}

}  // namespace

std::function<int()> declare_ops(CLI::App& app) {
  auto markdown = std::make_shared<bool>(false);
  auto tests = std::make_shared<std::string>();
  app.add_flag("--markdown", *markdown, "print docs/ops.md");
  app.add_option("--tests", *tests, "with --markdown: results of ONNX's tests, a line an operator")
      ->type_name("FILE");
  return [markdown, tests] {
    *markdown ? print_markdown(read_results(*tests)) : print_list();
    return kExitOk;
  };
}

}  // namespace sinter
