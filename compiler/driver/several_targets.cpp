#include "driver/several_targets.h"

#include <algorithm>

#include "driver/errors.h"
#include "emit/dispatch.h"
#include "ir/error.h"

namespace sinter {

bool names_several(const std::string& target) { return target.find(',') != std::string::npos; }

std::vector<const Target*> targets_of(const std::string& list) {
  std::vector<const Target*> targets;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    ModelOptions one;
    one.target = list.substr(at, end - at);
    const Target& t = target_of(one);
    if (std::count(targets.begin(), targets.end(), &t) > 0)
      throw UsageError(fmt::format("--target {}: {} is named twice", sinter::quoted(list), t.name));
    targets.push_back(&t);
    at = end + 1;
  }
  return told_apart(std::move(targets));
}

CompiledTargets compile_for_targets(const ModelOptions& o, const ImportOptions& import) {
  CompiledTargets all;
  const std::vector<const Target*> targets = targets_of(o.target);
  all.name = bundle_name(o);
  std::string list;
  for (const Target* t : targets) list += (list.empty() ? "" : ",") + std::string(t->name);
  for (const Target* t : targets) {
    ModelOptions one = o;
    one.target = t->name;
    Compiled& c = all.targets.emplace_back(compile_part(one, import));
    c.options.command = banner_command(o, banner_file(o.model), list, all.name);
    all.target_weights.push_back(weights_bytes(c.weights));
    all.arena_bytes = std::max(all.arena_bytes, c.plan.arena_bytes);
  }
  std::vector<PipelineModel> models;
  for (Compiled& c : all.targets) models.push_back({*c.graph, c.plan, *c.target, c.weights, c.options});
  all.files = make_dispatched(models, all.name, all.weights);
  return all;
}

}  // namespace sinter
