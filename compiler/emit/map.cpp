// NAME.map: what the plan says, as JSON (docs/generated-code.md has the fields).
#include "emit/map.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "emit/code.h"
#include "emit/interface.h"
#include "ops/op.h"
#include "plan/views.h"

namespace sinter {
namespace {

// The layers inside a control layer: one list a body.
nlohmann::ordered_json inner_layers(const std::vector<Plan>& bodies) {
  using nlohmann::ordered_json;
  ordered_json lists = ordered_json::array();
  for (const Plan& plan : bodies) {
    ordered_json list = ordered_json::array();
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      const Layer& l = plan.layers[i];
      ordered_json e;
      e["function"] = l.function;
      e["kernel"] = l.kernel;
      e["summary"] = l.summary;
      e["nodes"] = l.node->sources;
      e["flops"] = l.flops;
      if (!plan.bodies[i].empty()) e["bodies"] = inner_layers(plan.bodies[i]);
      list.push_back(e);
    }
    lists.push_back(list);
  }
  return lists;
}

constexpr double kMostError = 1e9;  // JSON has no infinity

using nlohmann::ordered_json;

ordered_json tensor(const Value* v) {
  ordered_json t;
  t["name"] = v->name;
  t["dtype"] = name_of(v->type.dtype);
  ordered_json shape = ordered_json::array();
  for (const Dim& d : v->type.shape) {
    if (d.is_static())
      shape.push_back(d.value());
    else
      shape.push_back({{"expr", d.text()}, {"min", d.lo()}, {"max", d.hi()}});
  }
  t["shape"] = shape;
  return t;
}

// The member of NAME_inputs or NAME_outputs in whose buffer a Value lies; empty: in none.
std::string member_at(const Graph& g, const Plan& plan, const Place& place) {
  const bool input = place.kind == Place::Kind::kInput;
  if (!input && place.kind != Place::Kind::kOutput) return "";
  for (const Member& m : input ? input_members(g, plan.states) : output_members(g, plan.states))
    if (m.index == place.index) return m.name;
  return "";
}

// Whether two Values of a layer lie in the same memory: in the arena, or as an input and an output that are
// one state, updated in place.
bool lie_together(const Plan& plan, const Place& old, const Place& fresh) {
  if (old.kind == Place::Kind::kArena && fresh.kind == Place::Kind::kArena) return old.offset == fresh.offset;
  if (old.kind != Place::Kind::kInput || fresh.kind != Place::Kind::kOutput) return false;
  const State *read = plan.states.of_input(old.index), *written = plan.states.of_output(fresh.index);
  return read && written && read->ring == written->ring && plan.states.rings[read->ring].slots == 1;
}

// Where a layer writes some elements of what lies there already: the Value of these; else null.
const Value* scattered(const Plan& plan, const Node& n) {
  const std::string_view op = n.op->name;
  const size_t updates = op == "TensorScatter" ? 1 : op == "ScatterElements" || op == "ScatterND" ? 2 : 0;
  if (updates == 0 || n.op->domain[0] != '\0' || !n.input(updates)) return nullptr;
  const auto old = plan.places.find(n.inputs[0]), fresh = plan.places.find(n.outputs[0]);
  if (old == plan.places.end() || fresh == plan.places.end()) return nullptr;
  return lie_together(plan, old->second, fresh->second) ? n.inputs[updates] : nullptr;
}

// The tensors that a caller sees, and the states.
void add_tensors(ordered_json& j, const Graph& g, const Plan& plan, const BundleOptions& o) {
  for (const bool input : {true, false})
    for (const Member& m : input ? input_members(g, plan.states) : output_members(g, plan.states)) {
      ordered_json t = tensor(m.value);
      t["name"] = m.model_name;
      t["member"] = m.name;  // in NAME_inputs or NAME_outputs
      t["bytes"] = max_bytes(*m.value);
      if (const auto frame = o.frames.find(m.model_name); input && frame != o.frames.end())
        t["frame"] = {{"words", frame->second.words},
                      {"array", {frame->second.rows, frame->second.width, frame->second.pixel_bytes}}};
      if (const auto names = o.class_names.find(m.model_name); !input && names != o.class_names.end())
        t["names"] = names->second;
      if (const size_t i = m.index; !input && i < o.half_errors.size() && o.half_errors[i] >= 0)
        t["half_error"] = std::min(o.half_errors[i], kMostError);
      j[input ? "inputs" : "outputs"].push_back(t);
    }
  if (!plan.states.empty()) j["state_bytes"] = plan.states.bytes;
  for (const State& s : plan.states.states) {
    const StateRing& ring = plan.states.rings[s.ring];
    ordered_json t = tensor(g.inputs[s.link.input]);
    t["name"] = s.link.input_name;
    t["output"] = s.link.output_name;
    t["form"] = text(plan.states, s);
    if (const std::string begins = beginning(g, s); !begins.empty()) t["initial"] = begins;
    t["offset"] = ring.offset;
    t["slots"] = ring.slots;
    t["slot_bytes"] = ring.slot_bytes;
    if (ring.window) t["window"] = {{"rows", ring.window->rows}, {"room", ring.window->room}};
    j["states"].push_back(t);
  }
}

void add_layers(ordered_json& j, const Graph& g, const Plan& plan) {
  const Views views(g, *plan.decisions);
  j["layers"] = ordered_json::array();
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Layer& l = plan.layers[i];
    ordered_json e;
    e["index"] = i;
    e["function"] = l.function;
    e["kernel"] = l.kernel;
    e["summary"] = l.summary;
    e["nodes"] = l.node->sources;
    e["flops"] = l.flops;
    if (const Freedom& f = l.node->freedom; f.halves != Halves::kNone || f.half_error >= 0) {
      e["halves"] = f.halves == Halves::kComputed ? "computed"
                    : f.halves == Halves::kStored ? "stored"
                                                  : "none";
      if (f.half_error >= 0) e["half_error"] = std::min(f.half_error, kMostError);
      if (const std::string why = l.node->attributes.text("no_halves", ""); !why.empty())
        e["no_halves"] = why;
    }
    e["tensors"] = ordered_json::array();
    for (const Parameter& q : l.parameters) {
      if (q.kind != Parameter::Kind::kInput && q.kind != Parameter::Kind::kOutput) continue;
      auto it = plan.places.find(q.value);
      if (it == plan.places.end()) continue;
      ordered_json t = tensor(q.value);
      t["role"] = q.kind == Parameter::Kind::kInput ? "read" : "write";
      t["where"] = where_text(plan, it->second);
      if (it->second.kind == Place::Kind::kArena) t["offset"] = it->second.offset;
      if (const std::string member = member_at(g, plan, it->second); !member.empty()) t["member"] = member;
      t["bytes"] = max_bytes(*q.value);
      if (const Value* some = scattered(plan, *l.node); some && q.kind == Parameter::Kind::kOutput)
        t["written_bytes"] = max_bytes(*some);
      // A view, or a part of a Concat: its bytes are some of this tensor's.
      if (const Value* host = views.host(q.value); host != q.value)
        t["inside"] = {{"name", host->name}, {"bytes", max_bytes(*host)}};
      e["tensors"].push_back(t);
    }
    if (!plan.bodies[i].empty()) e["bodies"] = inner_layers(plan.bodies[i]);
    j["layers"].push_back(e);
  }
}

void add_net(ordered_json& j, const BundlePart& b) {
  add_tensors(j, b.graph, b.plan, b.options);
  add_layers(j, b.graph, b.plan);
}

// Names may be no UTF-8.
std::string text_of(const ordered_json& j) {
  return j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void add_settings(ordered_json& j, int64_t weights, const BundleOptions& o,
                  const std::vector<std::string>& files) {
  j["weights_bytes"] = weights;
  j["weights"] = o.weights_in_file ? "file" : o.weights_in_c ? "c" : "embed";
  j["threads"] = o.threads;
  j["trace"] = o.trace;
  j["files"] = files;
}

}  // namespace

namespace {

// What stands in front of a net's tensors.
ordered_json head_of(const BundlePart& b, const WeightStore& store, const std::vector<std::string>& files) {
  ordered_json j;
  j["name"] = b.options.name;
  j["model"] = {{"file", b.options.model_file}, {"sha256", b.options.model_hash}};
  j["target"] = b.target.name;
  j["arena_bytes"] = b.plan.arena_bytes;
  j["live_bytes"] = b.plan.live_bytes;
  add_settings(j, weights_bytes(store), b.options, files);
  return j;
}

}  // namespace

std::string map_text(const BundlePart& b, const WeightStore& store, const std::vector<std::string>& files) {
  ordered_json j = head_of(b, store, files);
  add_net(j, b);
  return text_of(j);
}

std::string map_text(const BundlePart& face, const std::vector<BundlePart>& parts, const WeightStore& store,
                     const std::vector<std::string>& files) {
  ordered_json j = head_of(face, store, files);
  add_tensors(j, face.graph, face.plan, face.options);
  for (const BundlePart& b : parts) {
    ordered_json e;
    e["target"] = b.target.name;
    e["arena_bytes"] = b.plan.arena_bytes;
    e["live_bytes"] = b.plan.live_bytes;
    add_layers(e, b.graph, b.plan);
    j["targets"].push_back(e);
  }
  return text_of(j);
}

std::string map_text(const SharedMemory& shared, const std::vector<BundlePart>& parts,
                     const WeightStore& store, const std::vector<std::string>& files) {
  ordered_json j;
  j["name"] = shared.name;
  j["target"] = parts[0].target.name;
  j["arena_bytes"] = shared.arena_bytes;
  add_settings(j, weights_bytes(store), parts[0].options, files);
  for (const LastingTensor& t : shared.lasting) {
    ordered_json e;
    e["model"] = parts[t.model].options.name;
    e["output"] = t.output;
    e["offset"] = t.offset;
    e["bytes"] = t.bytes;
    e["read_as"] = ordered_json::array();
    for (const auto& [model, input] : t.readers)
      e["read_as"].push_back({{"model", parts[model].options.name}, {"input", input}});
    j["lasting"].push_back(e);
  }
  for (const BundlePart& b : parts) {
    ordered_json e;
    e["name"] = b.options.name;
    e["model"] = {{"file", b.options.model_file}, {"sha256", b.options.model_hash}};
    e["target"] = b.target.name;
    e["arena_from"] = b.options.arena_from;  // offsets below count from there
    e["arena_bytes"] = b.plan.arena_bytes;
    e["live_bytes"] = b.plan.live_bytes;
    add_net(e, b);
    j["models"].push_back(e);
  }
  return text_of(j);
}

}  // namespace sinter
