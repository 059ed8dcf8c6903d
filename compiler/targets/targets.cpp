// The table of targets, that of features, and which row this machine is.
#include <map>
#include <string_view>

#include "targets/target.h"
#include "targets/this_machine.h"

namespace sinter {

const std::vector<Target>& targets_aarch64();
const std::vector<Target>& targets_x86();
const std::vector<Target>& targets_scalar();

const std::vector<const Target*>& all_targets() {
  static const std::vector<const Target*> table = [] {
    std::vector<const Target*> t;
    for (const auto* family : {&targets_aarch64(), &targets_x86(), &targets_scalar()})
      for (const Target& row : *family) t.push_back(&row);
    return t;
  }();
  return table;
}

const std::vector<FeatureRow>& feature_table() {
  static const std::vector<FeatureRow> rows = {
      {&Features::dot_products, "dot products", "dot_products", has_dot_products},
      {&Features::byte_matrices, "matrices of bytes", "byte_matrices", has_byte_matrices},
      {&Features::halves, "halves", "float16", has_half_arithmetic},
      {&Features::tile_matrices, "tile matrices of bfloat16", "tile_matrices", has_tile_matrices},
  };
  return rows;
}

bool host_can_run(const Target& t) {
  if (!t.runs_here()) return false;
  for (const FeatureRow& f : feature_table())
    if (t.features.*f.member && !f.runs_here()) return false;
  return true;
}

namespace {
const Target* host() {
  const Target* best = nullptr;
  for (const Target* t : all_targets())
    if (t->is_host && host_can_run(*t) && t->is_host() && (!best || t->lanes >= best->lanes)) best = t;
  return best;
}
}  // namespace

const Target* find_target(const std::string& name) {
  if (name == "host") return host();
  for (const Target* t : all_targets())
    if (name == t->name) return t;
  return nullptr;
}

const Target& in_halves(const Target& t) {
  static const std::map<std::string_view, Target> table = [] {
    std::map<std::string_view, Target> rows;
    for (const Target* row : all_targets())
      if (row->features.halves) {
        Target& of = rows.emplace(row->name, *row).first->second;
        of.lanes = 2 * row->lanes;
        of.of_halves = true;
      }
    return rows;
  }();
  return table.at(t.name);
}

}  // namespace sinter
