#include "plan/emitted.h"

#include <map>

namespace sinter {

std::vector<const Value*> Emitted::inputs_of(const Node& n) { return {n.inputs.begin(), n.inputs.end()}; }

std::vector<Dim> Emitted::strides_of(const Node& n, const Decisions& decisions) {
  std::vector<Dim> strides;
  const auto add = [&](const Value* v) {
    strides.push_back(v && decisions.has_gaps(*v) ? decisions.pixel_stride(*v) : Dim(0));
  };
  for (const Value* v : n.inputs) add(v);
  for (const PicturePiece& piece : picture_pieces(decisions, n)) add(piece.value);
  return strides;
}

const Layer* Emitted::find(const Node& n, const Decisions& decisions, const std::string& function) const {
  const auto at = entries_.find(&n);
  if (at == entries_.end()) return nullptr;
  const Entry& e = at->second;
  const bool same = e.layer.function == function && e.decision == decisions.of(n) &&
                    e.inputs == inputs_of(n) && e.strides == strides_of(n, decisions);
  return same ? &e.layer : nullptr;
}

void Emitted::keep(const Node& n, const Decisions& decisions, const Layer& layer) {
  entries_.insert_or_assign(&n, Entry{decisions.of(n), inputs_of(n), strides_of(n, decisions), layer});
}

namespace {

// Calls f(parameter) for the weights of all layers, in the order in which layers are written.
template <class Layers, class F>
void for_each_weight(Layers& plan, const F& f) {
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    for (auto& body : plan.bodies[i]) for_each_weight(body, f);
    for (auto& p : plan.layers[i].parameters)
      if (p.kind == Parameter::Kind::kWeights) f(p);
  }
}

}  // namespace

int64_t weight_bytes(const Plan& plan) {
  std::map<std::pair<int64_t, int64_t>, bool> known;
  int64_t end = 0;
  for_each_weight(plan, [&](const Parameter& p) {
    if (known.try_emplace({p.offset, p.bytes}, true).second) end = WeightStore::behind(end, p.bytes);
  });
  return end;
}

WeightStore compact(Plan& plan, const WeightStore& from) {
  WeightStore to;
  for_each_weight(plan, [&](Parameter& p) {
    p.offset = to.add(from.bytes().data() + p.offset, static_cast<size_t>(p.bytes));
  });
  return to;
}

}  // namespace sinter
