#include "plan/tuning.h"

#include <algorithm>

#include "import/sha256.h"
#include "ir/error.h"
#include "ops/op.h"
#include "ops/products/row_product.h"
#include "ops/windows/window.h"
#include "plan/strips.h"

namespace sinter {
namespace {

constexpr const char *kStrassen = "strassen", *kStrassenTwice = "strassen 2", *kAmx = "amx";
// "winograd M": the square tile of M outputs along an axis, or a line of them.
constexpr std::string_view kWinograd = "winograd ";

// M of the choice, 0 where it is another.
int64_t winograd_tile(const std::string& choice) {
  if (choice.size() != kWinograd.size() + 1 || choice.compare(0, kWinograd.size(), kWinograd) != 0) return 0;
  const char m = choice.back();
  return m >= '2' && m <= '7' ? m - '0' : 0;
}

std::string integers_text(const std::vector<int64_t>& values) {
  std::string s;
  for (const int64_t v : values) s += (s.empty() ? "" : ",") + std::to_string(v);
  return "[" + s + "]";
}

std::string layer_text(const Node& n) {
  std::string s = n.op->name;
  for (const char* a : {"kernel_shape", "strides", "dilations", "pads", "perm"})
    if (n.attributes.has(a)) s += fmt::format(" {} {}", a, integers_text(n.attributes.integers(a)));
  const Value &x = *n.inputs[0], &y = *n.outputs[0];
  if (n.attributes.integer("group", 1) > 1) s += fmt::format(" group {}", n.attributes.integer("group", 1));
  return fmt::format("{} {}{} -> {}", s, name_of(x.type.dtype), text(x.type.shape), text(y.type.shape));
}

}  // namespace

bool is_tuning_choice(const std::string& choice) {
  return choice == "direct" || choice == "strips" || choice == "apart" || choice == kStrassen ||
         choice == kStrassenTwice || choice == kAmx || winograd_tile(choice) > 0;
}

std::string kernel_table_version() {
  std::string s;
  for (const Kernel* k : all_kernels()) s += fmt::format("{}: {}\n", k->name, k->what);
  return sha256_hex(s).substr(0, 16);
}

std::string tuning_layer(const std::vector<const Node*>& layers) {
  std::string s;
  for (const Node* n : layers) s += (s.empty() ? "" : "; ") + layer_text(*n);
  return s;
}

std::vector<TuningCandidate> tuning_candidates(const Plan& plan) {
  std::vector<TuningCandidate> out;
  const auto add = [&](std::string layer, std::vector<std::string> choices) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& c) { return c.layer == layer; });
    if (!known) out.push_back({std::move(layer), std::move(choices)});
  };
  for (size_t i = 0; i < plan.layers.size();) {
    const size_t end = behind_strips(plan, i);
    std::vector<const Node*> nodes;
    for (size_t k = i; k < end; ++k) nodes.push_back(plan.layers[k].node);
    if (plan.decisions->of(*nodes[0]).row_tile) add(tuning_layer(nodes), {"strips", "apart"});
    for (const Node* n : nodes) {
      std::vector<std::string> products = {"direct"};
      const Decision& d = plan.decisions->of(*n);
      const bool whole = plan.decisions->is_whole(*n);
      if (n->freedom.winograd > 0 && d.winograd.allowed &&
          (may_use_winograd(*n) || may_use_winograd_along_rows(*n))) {
        int64_t known = 1;
        for (const int64_t positions : {4, 6, 8}) {
          const int64_t m = most_winograd_outputs(*n, positions);
          if (m > known) products.push_back(fmt::format("{}{}", kWinograd, m));
          known = std::max(known, m);
        }
      }
      const bool strassen = n->freedom.strassen && d.strassen.allowed && whole;
      if (strassen && may_use_strassen(*n)) products.push_back(kStrassen);
      if (strassen && may_use_strassen_twice(*n)) products.push_back(kStrassenTwice);
      if (n->freedom.tile_matrices && d.tile_matrices.allowed) products.push_back(kAmx);
      if (products.size() > 1) add(tuning_layer({n}), products);
    }
    i = end;
  }
  return out;
}

void apply_tuning(const Graph& g, const Tuning& tuning, Decisions& decisions) {
  if (tuning.empty()) return;
  for (const auto& n : g.nodes) {
    const Freedom& f = n->freedom;
    if (f.winograd == 0 && !f.strassen && !f.tile_matrices) continue;
    const auto row = tuning.find(tuning_layer({n.get()}));
    if (row == tuning.end()) continue;
    const std::string& choice = row->second;
    Decision& d = decisions.change(*n);
    d.strassen.tuned = d.strassen.allowed = choice == kStrassen || choice == kStrassenTwice;
    if (choice == kStrassen) d.strassen.levels = 1;
    d.tile_matrices.tuned = d.tile_matrices.allowed = choice == kAmx;
    const int64_t tile = winograd_tile(choice);
    d.winograd.tile = tile == 0 ? WinogradLimit::kNoTile : tile;
  }
}

}  // namespace sinter
