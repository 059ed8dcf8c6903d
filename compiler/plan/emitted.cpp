#include "plan/emitted.h"

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

}  // namespace sinter
