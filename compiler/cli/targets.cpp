// sinter targets: the processors, and which of them this machine is.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "driver/errors.h"
#include "driver/output_file.h"
#include "ir/error.h"
#include "targets/target.h"

namespace sinter {
namespace {

std::string targets_json() {
  nlohmann::ordered_json j;
  j["host"] = find_target("host")->name;
  for (const Target* t : all_targets()) {
    nlohmann::ordered_json row = {
        {"name", t->name}, {"what", t->what}, {"boards", t->boards}, {"aarch64", t->aarch64}};
    for (const FeatureRow& f : feature_table()) row[f.json] = t->features.*f.member;
    row["runs_here"] = host_can_run(*t);
    j["targets"].push_back(row);
  }
  return j.dump(1) + "\n";
}

// The table of docs/targets.md and README.md.
void print_markdown() {
  fmt::print(
      "| board | `--target` | computes with | floats in a register x registers |\n|---|---|---|---|\n");
  for (const Target* t : all_targets()) {
    std::string with = t->spelt;
    for (const FeatureRow& f : feature_table())
      if (t->features.*f.member) with += std::string(", ") + f.spelt;
    fmt::print("| {} | `{}` | {} | {} x {} |\n", t->boards, t->name, with, t->lanes, t->registers);
  }
}

}  // namespace

std::function<int()> declare_targets(CLI::App& app) {
  auto json = std::make_shared<std::string>();
  app.add_option("--json", *json, "write the table to this file, with what this machine can execute");
  auto markdown = std::make_shared<bool>(false);
  app.add_flag("--markdown", *markdown, "print the table as the documentation has it");
  return [json, markdown] {
    if (*markdown) {
      print_markdown();
      return kExitOk;
    }
    for (const Target* t : all_targets()) fmt::print("{:<14} {:<44} {}\n", t->name, t->what, t->boards);
    fmt::print("{:<14} {}\n", "host", fmt::format("this machine: {}", find_target("host")->name));
    if (!json->empty()) write_output_file(*json, targets_json());
    return kExitOk;
  };
}

}  // namespace sinter
