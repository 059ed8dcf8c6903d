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
  for (const Target* t : all_targets())
    j["targets"].push_back({{"name", t->name},
                            {"what", t->what},
                            {"boards", t->boards},
                            {"aarch64", t->aarch64},
                            {"float16", t->halves},
                            {"runs_here", host_can_run(*t)}});
  return j.dump(1) + "\n";
}

}  // namespace

std::function<int()> declare_targets(CLI::App& app) {
  auto json = std::make_shared<std::string>();
  app.add_option("--json", *json, "write the table to this file, with what this machine can execute");
  return [json] {
    for (const Target* t : all_targets()) fmt::print("{:<14} {:<44} {}\n", t->name, t->what, t->boards);
    fmt::print("{:<14} {}\n", "host", fmt::format("this machine: {}", find_target("host")->name));
    if (!json->empty()) write_output_file(*json, targets_json());
    return kExitOk;
  };
}

}  // namespace sinter
