#include "plan/parallel_regions.h"

#include <algorithm>

namespace sinter {
namespace {

// Whether threads can run the layer for themselves: in rows, with scratch of their own, and without counts
// that the layers behind it need.
bool can_share(const Plan& plan, size_t layer) {
  const Layer& l = plan.layers[layer];
  return l.row_parts && !plan.decision(layer).row_tile &&
         std::all_of(l.parameters.begin(), l.parameters.end(), [](const Parameter& p) {
           return p.kind != Parameter::Kind::kCount &&
                  (p.kind != Parameter::Kind::kScratch || p.more_parts > 0);
         });
}

// Whether all that `reader` reads of what the layer `writer` writes are its own rows.
bool reads_own_rows(const Layer& reader, const Layer& writer, const Views& views) {
  const std::vector<const Value*>& alike = reader.row_parts->alike;
  for (const Parameter& in : reader.parameters)
    for (const Parameter& out : writer.parameters) {
      if (in.kind != Parameter::Kind::kInput || out.kind != Parameter::Kind::kOutput) continue;
      if (views.host(in.value) != views.host(out.value)) continue;
      if (in.value != out.value || std::find(alike.begin(), alike.end(), in.value) == alike.end())
        return false;
    }
  return true;
}

bool can_follow(const Plan& plan, size_t first, size_t next, const Views& views) {
  const Layer& l = plan.layers[next];
  if (!can_share(plan, next) || l.row_parts->starts != plan.layers[first].row_parts->starts) return false;
  for (size_t i = first; i < next; ++i)
    if (!reads_own_rows(l, plan.layers[i], views)) return false;
  return true;
}

}  // namespace

void find_regions(Plan& plan, const Views& views) {
  for (size_t i = 0, end = 0; i < plan.layers.size(); i = end) {
    end = i + 1;
    if (!can_share(plan, i)) continue;
    while (end < plan.layers.size() && can_follow(plan, i, end, views)) ++end;
    plan.layers[i].region = end - i;
  }
}

}  // namespace sinter
