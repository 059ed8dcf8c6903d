#include "plan/plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "emit/runtime_files.h"
#include "ir/error.h"
#include "ops/control/bodies.h"
#include "plan/emitted.h"
#include "plan/parallel_regions.h"
#include "plan/strips.h"
#include "plan/views.h"
#include "targets/target.h"

namespace sinter {

bool is_view(const Node& n) {
  if (!n.op->is_view || n.epilogue) return false;
  if (n.inputs[0]->data) return false;  // a constant is a parameter of each layer, without a place to show
  // Extents or axes that only the run knows have to be found and checked.
  const Value* operand = n.input(1);
  return !operand || operand->data || !operand->elements.empty();
}

const Value* root_of(const Value* v) {
  while (v->producer && is_view(*v->producer)) v = v->producer->inputs[0];
  return v;
}

int64_t bound_bytes(const Value& v) {
  const Dim count = product(v.type.shape);
  if (count.hi() == Interval::kUnbounded) {
    std::vector<SymbolPtr> symbols;
    count.collect_symbols(symbols);
    std::string who, option;
    for (const SymbolPtr& s : symbols)
      if (s->range.hi == Interval::kUnbounded) {
        who += fmt::format("{}{} ({})", who.empty() ? "" : ", ", sinter::quoted(s->name), s->origin);
        if (!option.empty()) continue;
        const bool loops = s->origin.ends_with("(Loop)");
        if (s->boundable)
          option = fmt::format("; give --dim {}{}", sinter::quoted(s->name + "<=MAX"),
                               loops ? " or --max-trips N" : "");
        else if (loops)
          option = "; give --max-trips N";
        else if (s->learnable)
          option = "; declare the shapes of the model's outputs, or give the operand with --const";
        else if (!s->from_data)
          option = fmt::format("; give --dim {} or --dim {}", sinter::quoted(s->name + "<=MAX"),
                               sinter::quoted(s->name + "=VALUE"));
      }
    refuse("{}: its size {} has no upper bound, because of {}{}", sinter::quoted(v.name), text(v.type.shape),
           who.empty() ? "its expression" : who, option);
  }
  const int64_t each = static_cast<int64_t>(size_of(v.type.dtype));
  if (each == 0)
    refuse("{}: tensors of type {} are not supported in generated code", sinter::quoted(v.name),
           name_of(v.type.dtype));
  if (count.hi() > (int64_t{1} << 40) / each)
    refuse("{}: its size {} exceeds 1 TiB at the bounds", sinter::quoted(v.name), text(v.type.shape));
  return std::max<int64_t>(count.hi(), 0) * each;
}

namespace {

// One block of arena memory: a root Value with its views, or one scratch parameter.
struct Block {
  const Value* value = nullptr;
  int64_t bytes = 0;
  size_t first = 0, last = 0;  // layers, inclusive
  int64_t offset = -1;
  Block* inside = nullptr;  // shares this block's place (written over it)
  int64_t parts = 1;        // of scratch: equal pieces, one for each thread
};

class ArenaPlanner {
 public:
  // `own_scratch`: each thread's scratch shall lie in memory of its own.
  ArenaPlanner(const Graph& g, const Views& views, Plan& plan, bool own_scratch)
      : g_(g), views_(views), plan_(plan), own_scratch_(own_scratch) {}

  void run() {
    place_fixed();
    make_blocks();
    measure_live();
    overwrite();
    plan_.arena_bytes = assign([](const Block&) { return true; }, 0);
    if (own_scratch_) separate_scratch();
    finish();
  }

 private:
  void place_fixed() {
    for (size_t i = 0; i < g_.inputs.size(); ++i)
      plan_.places[g_.inputs[i]] = {Place::Kind::kInput, i, 0, bound_bytes(*g_.inputs[i]), Dim(0)};
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      const View view = views_.of(g_.outputs[i]);
      if (view.piece) continue;  // of the state that it is the next value of
      const Value* root = view.host;
      plan_.places[root] = {Place::Kind::kOutput, i, 0, bound_bytes(*g_.outputs[i]), Dim(0)};
    }
  }

  // The layers that run in turns with layer i, or in a region with it: their tensors live together.
  void find_spans() {
    for (size_t i = 0, end = 0; i < plan_.layers.size(); i = end) {
      end = std::max(behind_strips(plan_, i), behind_region(plan_, i));
      for (size_t k = i; k < end; ++k) spans_.emplace_back(i, end - 1);
    }
  }

  void make_blocks() {
    find_spans();
    // Others point into it.
    size_t most = plan_.layers.size();  // a region's scratch
    for (const Layer& layer : plan_.layers) most += layer.parameters.size();
    blocks_.reserve(most);
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      const Layer& layer = plan_.layers[i];
      const auto [begins, ends] = spans_[i];
      for (const Parameter& p : layer.parameters) {
        if (p.kind != Parameter::Kind::kOutput && p.kind != Parameter::Kind::kInput) continue;
        const Value* host = views_.host(p.value);
        if (auto it = by_value_.find(host); it != by_value_.end()) {
          it->second->last = ends;
        } else if (p.kind == Parameter::Kind::kOutput && !plan_.places.count(host)) {
          SINTER_CHECK(blocks_.size() < blocks_.capacity());
          const auto& tile = plan_.decision(i).row_tile;
          const int64_t bytes =
              tile && tile->writes_rows ? tile->bytes * tile->work_items : bound_bytes(*host);
          blocks_.push_back({host, bytes, begins, ends, -1, nullptr});
          by_value_[host] = &blocks_.back();
        }
      }
    }
    values_ = blocks_.size();
    scratch_of_.resize(plan_.layers.size());
    for (size_t i = 0, end = 0; i < plan_.layers.size(); i = end) {
      end = behind_region(plan_, i);
      if (end > i + 1)
        share_scratch(i, end);
      else
        for (const Parameter& p : plan_.layers[i].parameters)
          if (p.kind == Parameter::Kind::kScratch)
            scratch_of_[i].push_back(
                {add_scratch(p.bytes, i, p.more_parts > 0 ? p.bytes / (p.bytes - p.more_parts) : 1), 0, 0,
                 0});
    }
  }

  // A block for a layer's scratch; its number.
  size_t add_scratch(int64_t bytes, size_t layer, int64_t parts) {
    SINTER_CHECK(blocks_.size() < blocks_.capacity());
    blocks_.push_back({nullptr, bytes, spans_[layer].first, spans_[layer].second, -1, nullptr, parts});
    return blocks_.size() - 1;
  }

  // One block for the scratch of a region's layers: a piece for each part, as large as a part of the layer
  // that takes most.
  void share_scratch(size_t first, size_t end) {
    const auto parts = static_cast<int64_t>(plan_.layers[first].row_parts->starts.size()) - 1;
    int64_t most = 0;
    for (size_t i = first; i < end; ++i) {
      int64_t sum = 0;
      for (const Parameter& p : plan_.layers[i].parameters)
        if (p.kind == Parameter::Kind::kScratch) sum += p.bytes / parts;
      most = std::max(most, sum);
    }
    if (most == 0) return;
    const size_t block = add_scratch(most * parts, first, parts);
    for (size_t i = first; i < end; ++i) {
      int64_t before = 0;
      for (const Parameter& p : plan_.layers[i].parameters) {
        if (p.kind != Parameter::Kind::kScratch) continue;
        const int64_t part = p.bytes / parts;
        scratch_of_[i].push_back({block, before * parts, before, most - part});
        before += part;
      }
    }
  }

  void measure_live() {
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      int64_t sum = 0;
      for (size_t b = 0; b < values_; ++b)
        if (blocks_[b].first <= i && i <= blocks_[b].last) sum += blocks_[b].bytes;
      int64_t inside = 0;
      for (const Plan& body : plan_.bodies[i]) inside = std::max(inside, body.live_bytes);
      sum += inside;
      plan_.live_at.push_back(sum);
      plan_.live_bytes = std::max(plan_.live_bytes, sum);
    }
  }

  // A layer's output takes over the place of an input that nobody reads afterwards.
  void overwrite() {
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      const Layer& layer = plan_.layers[i];
      auto out = by_value_.find(layer.node->outputs[0]);
      if (out == by_value_.end() || out->second->first != i) continue;
      for (const Value* v : layer.may_overwrite) {
        const View view = views_.of(v);
        if (view.piece || reads_elsewhere(layer, v, view.host)) continue;
        auto in = by_value_.find(view.host);
        if (in == by_value_.end() || in->second->last != i || in->second->bytes != out->second->bytes)
          continue;
        Block* home = in->second;
        while (home->inside) home = home->inside;
        out->second->inside = home;
        home->last = std::max(home->last, out->second->last);
        break;
      }
    }
  }

  // Whether the layer reads the memory of `host` through another Value than `v`: a piece, or another shape.
  bool reads_elsewhere(const Layer& layer, const Value* v, const Value* host) const {
    return std::any_of(layer.parameters.begin(), layer.parameters.end(), [&](const Parameter& p) {
      return p.kind == Parameter::Kind::kInput && p.value != v && views_.host(p.value) == host;
    });
  }

  // Each block that is `meant` at the lowest offset from `from` on that is free for its whole life, in
  // several orders of which the best one stays; ties go to the first. The end of them all.
  int64_t assign(const std::function<bool(const Block&)>& meant, int64_t from) {
    std::vector<Block*> blocks;
    for (Block& b : blocks_)
      if (!b.inside && meant(b)) blocks.push_back(&b);
    const auto life = [](const Block* b) { return static_cast<int64_t>(b->last - b->first + 1); };
    const std::function<bool(const Block*, const Block*)> orders[] = {
        [](const Block* a, const Block* b) { return a->bytes > b->bytes; },
        [&](const Block* a, const Block* b) { return a->bytes * life(a) > b->bytes * life(b); },
        [](const Block* a, const Block* b) { return a->first < b->first; },
        [](const Block* a, const Block* b) { return a->last > b->last; },
        [&](const Block* a, const Block* b) { return life(a) > life(b); },
    };
    std::vector<int64_t> best;
    int64_t least = INT64_MAX;
    constexpr size_t kMany = 4000;  // each order takes time by the square of the blocks
    for (const auto& before : orders) {
      if (!best.empty() && blocks.size() > kMany) break;
      std::vector<Block*> order = blocks;
      std::stable_sort(order.begin(), order.end(), before);
      const int64_t bytes = place(order, from);
      if (bytes >= least) continue;
      least = bytes;
      best.clear();
      for (const Block* b : blocks) best.push_back(b->offset);
    }
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i]->offset = best[i];
    return least;
  }

  // Sets the offsets in this order; the end of the last.
  static int64_t place(const std::vector<Block*>& order, int64_t from) {
    int64_t whole = from;
    std::vector<Block*> placed;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (Block* b : order) {
      taken.clear();
      for (const Block* o : placed)
        if (o->first <= b->last && b->first <= o->last && o->bytes > 0)
          taken.emplace_back(o->offset, o->offset + o->bytes);
      std::sort(taken.begin(), taken.end());
      int64_t at = from;
      for (const auto& [begin, end] : taken) {
        if (at + b->bytes <= begin) break;
        at = std::max(at, (end + 63) / 64 * 64);
      }
      b->offset = at;
      placed.push_back(b);
      whole = std::max(whole, at + b->bytes);
    }
    return (whole + 63) / 64 * 64;
  }

  // Scratch that threads have a piece of each lies in lanes, the largest of each layer in the first one. The
  // middle of its pieces is the middle of the lane, so that one half of a lane is always the same threads'.
  // Other blocks lie behind the lanes. Not where the arena has no room for that.
  void separate_scratch() {
    std::map<size_t, std::vector<Block*>> by_layer;
    for (Block& b : blocks_)
      if (b.parts > 1) by_layer[b.first].push_back(&b);
    struct Lane {
      int64_t below = 0, above = 0;  // bytes of its middle
    };
    std::vector<Lane> lanes;
    const auto below = [](const Block& b) { return b.bytes / b.parts * (b.parts / 2); };
    for (auto& [layer, blocks] : by_layer) {
      std::stable_sort(blocks.begin(), blocks.end(),
                       [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
      lanes.resize(std::max(lanes.size(), blocks.size()));
      for (size_t i = 0; i < blocks.size(); ++i) {
        lanes[i].below = std::max(lanes[i].below, (below(*blocks[i]) + 63) / 64 * 64);
        lanes[i].above = std::max(lanes[i].above, blocks[i]->bytes - below(*blocks[i]));
      }
    }
    std::vector<int64_t> middles;
    int64_t end = 0;
    for (const Lane& l : lanes) {
      middles.push_back(end + l.below);
      end = (middles.back() + l.above + 63) / 64 * 64;
    }
    std::vector<int64_t> before;
    for (const Block& b : blocks_) before.push_back(b.offset);
    const int64_t bytes = assign([](const Block& b) { return b.parts == 1; }, end);
    if (lanes.empty() || bytes > arena_limit(plan_)) {
      for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].offset = before[i];
      return;
    }
    plan_.arena_bytes = bytes;
    for (auto& [layer, blocks] : by_layer)
      for (size_t i = 0; i < blocks.size(); ++i) blocks[i]->offset = middles[i] - below(*blocks[i]);
  }

  void finish() {
    auto offset = [](const Block* b) {
      while (b->inside) b = b->inside;
      return b->offset;
    };
    for (const auto& [v, b] : by_value_)
      plan_.places[v] = {Place::Kind::kArena, 0, offset(b), b->bytes, Dim(0)};
    for (const auto& v : g_.values) {
      const View view = views_.of(v.get());
      auto host = plan_.places.find(view.host);
      if (view.host == v.get() || host == plan_.places.end()) continue;
      Place place = host->second;
      place.shift = place.shift + view.shift;
      plan_.places[v.get()] = place;
    }
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      plan_.scratch.emplace_back();
      plan_.shares.emplace_back();
      for (const Scratch& s : scratch_of_[i]) {
        const int64_t block = blocks_[s.block].offset;
        plan_.scratch.back().push_back(block + s.offset);
        plan_.shares.back().push_back({block + s.of_share, s.step});
      }
    }
  }

  const Graph& g_;
  const Views& views_;
  Plan& plan_;
  bool own_scratch_;
  std::vector<Block> blocks_;
  size_t values_ = 0;
  std::map<const Value*, Block*> by_value_;
  struct Scratch {
    size_t block;
    int64_t offset;          // in it
    int64_t of_share, step;  // in a region: Plan::Share
  };
  std::vector<std::vector<Scratch>> scratch_of_;
  std::vector<std::pair<size_t, size_t>> spans_;  // by layer: first and last
};

// "/features/0/Conv" -> "features_0_Conv"
std::string function_name(const Node& n) { return identifier(n.name); }

// Counts that only the run knows must be found by a layer before another one, or the caller, is told them.
void check_counts(const Graph& g, const Plan& plan, std::vector<std::string>& problems) {
  std::set<const Symbol*> known;
  auto visit = [](const Shape& s, const auto& f) {
    std::vector<SymbolPtr> symbols;
    for (const Dim& d : s) d.collect_symbols(symbols);
    for (const SymbolPtr& symbol : symbols) f(symbol);
  };
  auto need = [&](const SymbolPtr& s, const std::string& who) {
    if (known.insert(s.get()).second)
      problems.push_back(
          fmt::format("{}: the extent {} ({}) is only known at run time, which is not supported here", who,
                      sinter::quoted(s->name), s->origin));
  };
  for (const Value* v : g.inputs)
    for (const Shape* told : {&v->type.shape, &v->elements})  // by elements: counts of rows (plan/growth.h)
      visit(*told, [&](const SymbolPtr& s) { known.insert(s.get()); });
  for (const Layer& l : plan.layers) {
    for (const Parameter& p : l.parameters)
      if (p.kind == Parameter::Kind::kSymbol) need(p.symbol, label(*l.node));
    for (const Parameter& p : l.parameters)
      if (p.kind == Parameter::Kind::kCount) known.insert(p.symbol.get());
  }
  for (const Value* v : g.outputs)
    visit(v->type.shape, [&](const SymbolPtr& s) { need(s, sinter::quoted(v->name)); });
}

}  // namespace

namespace {

// Whether the model's name for an output belongs to an input or to another output as well.
bool is_named_elsewhere(const Graph& g, const Value* v) {
  if (std::find(g.inputs.begin(), g.inputs.end(), v) != g.inputs.end()) return true;
  return std::count(g.outputs.begin(), g.outputs.end(), v) > 1 ||
         std::any_of(g.outputs.begin(), g.outputs.end(),
                     [&](const Value* o) { return o != v && outside_name(*o) == v->name; });
}

void separate_outputs(Graph& g, const Decisions& decisions, const StateLinks& states, size_t first) {
  const Op* copy = find_op("sinter", "copy");
  SINTER_CHECK(copy);
  std::vector<const Value*> taken;
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies) {
      // A Loop's condition that is always true needs no layer.
      const bool always =
          n->op->name == std::string_view("Loop") && !b->outputs.empty() && is_true(*b->outputs[0]);
      separate_outputs(*b, decisions, {}, always ? 1 : 0);
    }
  std::set<size_t> passed;  // outputs that stay where an input is
  const auto shows = passed_on(g, states);
  for (size_t k = 0; k < states.size(); ++k)
    if (shows[k]) passed.insert(states[k].output);
  for (size_t i = first; i < g.outputs.size(); ++i) {
    if (passed.count(i)) continue;
    Value*& out = g.outputs[i];
    const Value* root = root_of(out);
    const bool shared = std::find(taken.begin(), taken.end(), root) != taken.end();
    if (root->producer && !shared) {
      taken.push_back(root);
      continue;
    }
    Value* v = g.add_value(out->name + "_copy", out->type);
    v->origin = out->origin;
    v->perm = out->perm;
    // Not an Identity, which is a view.
    Node* n = g.add_node(copy, v->name, {out}, {v});
    n->sources = {};
    // The Value takes the output's name along, unless something else has it; see outside_name().
    if (!is_named_elsewhere(g, out)) std::swap(out->name, v->name);
    taken.push_back(v);
    out = v;
  }
  separate_members(g, decisions);
}

}  // namespace

void separate_outputs(Graph& g, const Decisions& decisions, const StateLinks& states) {
  separate_outputs(g, decisions, states, 0);
}

std::string outside_name(const Value& output) {
  // Copies that have not taken over a name are called as their Values, and stand for no node of the model.
  const Node* n = output.producer;
  const bool copied = n && n->op == find_op("sinter", "copy") && n->sources.empty() && n->name == output.name;
  return copied ? n->inputs[0]->name : output.name;
}

namespace {

// What the plans of a graph and its bodies share.
struct Planning {
  const Target& target;
  std::shared_ptr<const Decisions> decisions;
  WeightStore& store;
  Names names;
  std::vector<std::string> problems;
  int threads = 1;
  bool spend = true;
  Emitted* emitted = nullptr;
  int depth = 0;  // of bodies around the graph
  Context context() const { return {target, *decisions}; }
};

Plan plan_graph(const Graph& g, Planning& p);

// Where some Value of the graph has no bound, only what else is wrong is looked for: kernels count on bounds.
void add_layer(const Node& n, Planning& p, bool bounded, Plan& plan) {
  if (!n.bodies.empty()) {
    std::vector<Plan> bodies;
    ++p.depth;
    for (const auto& b : n.bodies) bodies.push_back(plan_graph(*b, p));
    --p.depth;
    if (!p.problems.empty()) return;
    plan.layers.push_back(control_layer(n, bodies, p.store, p.names.unique(function_name(n)), p.threads));
    plan.bodies.push_back(std::move(bodies));
    return;
  }
  const Choice choice = choose(n, p.context());
  const Kernel* k = choice.kernel();
  if (!k) {
    std::string types;
    for (const Value* v : n.inputs)
      if (v) types += (types.empty() ? "" : ", ") + text(v->type);
    refuse("no code can be generated for it on ({})", types);
  }
  if (!bounded) return;
  const std::string function = p.names.unique(function_name(n));
  plan.bodies.emplace_back();
  if (const Layer* written = p.emitted ? p.emitted->find(n, *p.decisions, function) : nullptr) {
    plan.layers.push_back(*written);
    return;
  }
  LayerWriter w(n, p.context(), p.store, function, p.threads);
  w.take(choice.candidates.front());
  k->emit(w);
  plan.layers.push_back(w.finish(k->name, k->can.algorithm));
  plan.layers.back().work = k->can.work;
  plan.layers.back().chosen_at = choice.candidates.front().cycles;
  plan.layers.back().offers = weight_offers(choice);
  if (p.emitted) p.emitted->keep(n, *p.decisions, plan.layers.back());
}

// Whether all Values have a bound; else problems.
bool check_bounds(const Graph& g, std::vector<std::string>& problems) {
  bool all = true;
  for (const auto& v : g.values) {
    if (v->data) continue;
    try {
      bound_bytes(*v);
    } catch (const Refusal& r) {
      all = false;
      if (problems.size() < 20) problems.insert(problems.end(), r.problems.begin(), r.problems.end());
    }
  }
  return all;
}

// The offsets of all weights, in the order in which layers are written.
void place_weights(Plan& plan, WeightStore& store) {
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    for (Plan& body : plan.bodies[i]) place_weights(body, store);
    for (Parameter& p : plan.layers[i].parameters)
      if (p.kind == Parameter::Kind::kWeights && p.bytes > 0)
        p.offset = store.place(p.blob);  // not all of them
  }
}

// Without check_counts: what a body does not find itself, the graph around it must know.
Plan plan_graph(const Graph& g, Planning& p) {
  Plan plan;
  plan.decisions = p.decisions;
  if (!g.unreachable.empty()) return plan;
  const Views views(g, *p.decisions);
  const bool bounded = check_bounds(g, p.problems);
  for (const auto& n : g.nodes) {
    if (views.needs_no_layer(n.get())) continue;
    try {
      add_layer(*n, p, bounded, plan);
    } catch (Refusal& r) {
      for (std::string& t : r.problems) {
        if (p.problems.size() >= 100) break;
        p.problems.push_back(t.empty() || t[0] != '"' ? label(*n) + ": " + t : t);
      }
    }
  }
  if (!p.problems.empty()) return plan;
  // Layers of bodies are called one by one (emit/control.cpp), and iterations may have an arena each.
  const bool spend = p.spend && p.depth == 0;
  if (spend) find_regions(plan, views);
  ArenaPlanner(g, views, plan, p.threads > 1 && spend && p.target.speed.asks_ahead).run();
  return plan;
}

}  // namespace

Plan make_plan(const Graph& g, const Target& target, const Decisions& decisions, WeightStore& store,
               int threads, bool spend, Emitted* emitted) {
  Planning p{target, std::make_shared<const Decisions>(decisions), store, {}, {}, threads, spend, emitted};
  for (const std::string& word : runtime_words()) p.names.reserve(word);
  Plan plan = plan_graph(g, p);
  if (p.problems.empty()) check_counts(g, plan, p.problems);
  if (!p.problems.empty()) throw Refusal(std::move(p.problems));
  store.forget_places();
  place_weights(plan, store);
  return plan;
}

}  // namespace sinter
