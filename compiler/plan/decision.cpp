#include "plan/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ops/op.h"

namespace sinter {

std::string text(const Decision& d) {
  std::string s;
  const auto say = [&](bool unusual, const std::string& what) {
    if (unusual) s += (s.empty() ? "" : ", ") + what;
  };
  const auto limit = [&](const Limit& l, const std::string& name) {
    say(!l.allowed, "no " + name);
    say(l.allowed && l.tuned, name + " as measured");
    say(l.allowed && l.bytes != INT64_MAX, fmt::format("{} in {} bytes", name, l.bytes));
  };
  say(d.in_place, "in place");
  say(d.pixel_stride.has_value(), fmt::format("pixel stride {}", d.pixel_stride.value_or(0)));
  say(d.reads_nchw, "reads NCHW");
  std::string pieces;
  for (const int64_t times : d.piece_times) pieces += fmt::format(" {}x", times);
  say(!pieces.empty(), "reads pieces" + pieces);
  if (const auto& r = d.row_tile) {
    say(true, fmt::format("row tile group {}", r->group));
    say(r->rows > 0, fmt::format("{} rows", r->rows));
    say(r->writes_rows, fmt::format("buffer of {} bytes", r->bytes));
    say(r->work_items > 1, fmt::format("{} work items", r->work_items));
  }
  limit(d.winograd, "Winograd");
  say(d.winograd.tile > WinogradLimit::kNoTile, fmt::format("Winograd tile {}", d.winograd.tile));
  limit(d.strassen, "Strassen");
  say(d.strassen.levels < 2, fmt::format("Strassen levels {}", d.strassen.levels));
  limit(d.tile_matrices, "tile matrices");
  const WeightDecision& w = d.weights;
  say(w.most != INT64_MAX, fmt::format("at most {} bytes of weights", w.most));
  say(w.near, "weights near");
  say(w.stay, "weights stay");
  say(w.split, "weights split");
  say(w.short_rows, "short rows");
  say(w.half, "16-bit weights");
  return s;
}

bool Decisions::has_gaps(const Value& v) const {
  return v.producer && of(*v.producer).pixel_stride.has_value();
}

Dim Decisions::pixel_stride(const Value& v) const {
  return has_gaps(v) ? Dim(*of(*v.producer).pixel_stride) : v.type.shape.back();
}

bool Decisions::reads_gaps(const Node& n) const {
  return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) { return v && has_gaps(*v); });
}

bool Decisions::is_whole(const Node& n) const {
  const Decision& d = of(n);
  return !d.reads_nchw && !d.row_tile && d.piece_times.empty();
}

std::vector<PicturePiece> picture_pieces(const Decisions& decisions, const Node& n) {
  const std::vector<int64_t>& all = decisions.of(n).piece_times;
  if (all.empty()) return {};
  const Value* picture = n.inputs[0];
  const bool joined = std::string_view(picture->producer->op->name) == "Concat";
  std::vector<PicturePiece> pieces;
  for (const int64_t times : all) {
    const Value* v = joined ? picture->producer->inputs[pieces.size()] : picture;
    const Node* resize = times > 1 ? v->producer : nullptr;
    pieces.push_back({resize ? resize->inputs[0] : v, v->type.shape.back().value(), times, resize});
  }
  return pieces;
}

}  // namespace sinter
