#include "plan/state.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/error.h"
#include "plan/growth.h"
#include "plan/parallel_regions.h"
#include "plan/plan.h"
#include "plan/strips.h"
#include "plan/views.h"

namespace sinter {

bool StatePlan::turns() const {
  return std::any_of(rings.begin(), rings.end(), [](const StateRing& r) { return r.slots > 1; });
}

const State* StatePlan::of_input(size_t input) const {
  for (const State& s : states)
    if (s.link.input == input) return &s;
  return nullptr;
}

const State* StatePlan::of_output(size_t output) const {
  for (const State& s : states)
    if (s.link.output == output) return &s;
  return nullptr;
}

const State* StatePlan::random() const {
  for (const State& s : states)
    if (s.link.random) return &s;
  return nullptr;
}

std::string text(const StatePlan& plan, const State& s) {
  const StateRing& ring = plan.rings[s.ring];
  if (s.kept && ring.slots == 1) return "kept as it is";
  if (ring.window)
    return fmt::format("{} rows that slide in a buffer of {}", ring.window->rows, ring.window->room);
  if (ring.slots == 1) return "updated in place";
  return fmt::format("slot {} of {} in turn", s.place, ring.slots);
}

namespace {

std::string name_of_link(const StateLink& l) {
  return fmt::format("--state {}", sinter::quoted(l.output_name + "=" + l.input_name));
}

std::set<const Symbol*> symbols_of(const Shape& shape) {
  std::vector<SymbolPtr> list;
  for (const Dim& d : shape) d.collect_symbols(list);
  std::set<const Symbol*> symbols;
  for (const SymbolPtr& s : list) symbols.insert(s.get());
  return symbols;
}

bool is_state_input(const StateLinks& links, size_t input) {
  return std::any_of(links.begin(), links.end(), [&](const StateLink& l) { return l.input == input; });
}

// The extent, where it is one that would grow if it could be 0; else null.
SymbolPtr rows_from_nothing(const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  const bool plain = symbols.size() == 1 && Dim(symbols[0]) == d && !symbols[0]->from_data;
  return plain && symbols[0]->range.lo > 0 ? symbols[0] : nullptr;
}

// The first thing that is wrong with a link; empty: nothing.
std::string problem_of(const Graph& g, const StateLinks& links, const StateLink& l,
                       const std::set<const Symbol*>& told) {
  const TensorType &out = g.outputs[l.output]->type, &in = g.inputs[l.input]->type;
  std::string both = fmt::format("{}: the output is {}, the input {}", name_of_link(l), text(out), text(in));
  if (out.dtype != in.dtype || out.shape.size() != in.shape.size()) return both;
  const std::optional<Growth> growth = growth_of(g, links, l);
  for (size_t d = 0; d < in.shape.size(); ++d) {
    if (out.shape[d] == in.shape[d] || (growth && growth->axis == d)) continue;
    const SymbolPtr rows = rows_from_nothing(in.shape[d]);
    if (rows && symbols_of({out.shape[d]}).count(rows.get()))
      return fmt::format("{}; a state that grows along axis {} begins with no rows: give --dim {}", both, d,
                         sinter::quoted(rows->name + "=0..MAX"));
    std::string options;
    for (const Shape* shape : {&in.shape, &out.shape}) {
      std::vector<SymbolPtr> symbols;
      (*shape)[d].collect_symbols(symbols);
      for (const SymbolPtr& s : symbols)
        if (const std::string option = "--dim " + sinter::quoted(s->name + "=VALUE");
            !s->from_data && options.find(option) == std::string::npos)
          options += (options.empty() ? "" : " and ") + option;
    }
    return fmt::format("{}; axis {} must stay as it is{}", both, d,
                       options.empty() ? "" : ": fix it with " + options);
  }
  std::vector<SymbolPtr> symbols;
  for (const Dim& d : in.shape) d.collect_symbols(symbols);
  for (const SymbolPtr& s : symbols)
    if (!told.count(s.get()))
      return fmt::format("{}: no input that stays tells the extent {} ({}): fix it with --dim {}",
                         name_of_link(l), sinter::quoted(s->name), s->origin,
                         sinter::quoted(s->name + "=VALUE"));
  return "";
}

}  // namespace

void check_states(const Graph& g, const StateLinks& links) {
  std::set<const Symbol*> told;
  for (size_t i = 0; i < g.inputs.size(); ++i)
    if (!is_state_input(links, i)) told.merge(symbols_of(g.inputs[i]->type.shape));
  // A count is put into the graph of what grows.
  std::map<const Symbol*, Dim> grown;
  std::vector<std::string> problems;
  for (const StateLink& l : links)
    if (const std::optional<Growth> growth = growth_of(g, links, l)) {
      told.insert(growth->rows.get());
      const Dim& next = grown.emplace(growth->rows.get(), growth->next).first->second;
      if (!(next == growth->next))
        problems.push_back(fmt::format("{}: {} becomes {} here and {} in another state", name_of_link(l),
                                       growth->rows->name, growth->next.text(), next.text()));
    }
  for (const StateLink& l : links)
    if (std::string p = problem_of(g, links, l, told); !p.empty()) problems.push_back(std::move(p));
  if (!problems.empty()) throw Refusal(std::move(problems));
}

namespace {

// The first thing that is wrong with what a state begins with; empty: nothing.
std::string problem_of_initial(const Graph& g, const StateLinks& links, const StateLink& l) {
  const Value& in = *g.inputs[l.input];
  const std::vector<int64_t>& shape = in.initial->shape();
  const std::string both =
      fmt::format("{}: it begins with {}{}, the input is {}", name_of_link(l), name_of(in.initial->dtype()),
                  text(Shape(shape.begin(), shape.end())), text(in.type));
  if (const std::optional<Growth> growth = growth_of(g, links, l))
    return shape[growth->axis] == 0
               ? ""
               : fmt::format("{}; a state that grows begins with no rows: let a run write these", both);
  for (size_t d = 0; d < shape.size(); ++d)
    if (!(in.type.shape[d] == Dim(shape[d]))) return fmt::format("{}; fix the extents with --dim", both);
  return "";
}

bool is_zero(const Tensor& t) {
  return std::all_of(t.data(), t.data() + t.bytes(), [](auto byte) { return byte == decltype(byte){}; });
}

}  // namespace

void check_initial(Graph& g, const StateLinks& links) {
  std::vector<std::string> problems;
  for (const StateLink& l : links) {
    std::optional<Tensor>& initial = g.inputs[l.input]->initial;
    if (!initial) continue;
    if (std::string p = problem_of_initial(g, links, l); !p.empty()) problems.push_back(std::move(p));
    if (is_zero(*initial)) initial.reset();
  }
  if (!problems.empty()) throw Refusal(std::move(problems));
}

std::string beginning(const Graph& g, const State& s) {
  const std::optional<Tensor>& t = g.inputs[s.link.input]->initial;
  if (!t) return "";
  if (!t->is_uniform() || g.inputs[s.link.input]->type.dtype != t->dtype())
    return "begins with values of its own";
  return fmt::format("begins with {:.7g}", t->real(0));
}

std::vector<std::optional<size_t>> passed_on(const Graph& g, const StateLinks& links) {
  std::vector<std::optional<size_t>> shows(links.size());
  std::set<size_t> taken;
  for (const bool own : {true, false})  // a state that is kept comes before one that hands its value on
    for (size_t k = 0; k < links.size(); ++k) {
      if (shows[k]) continue;
      const Value* root = root_of(g.outputs[links[k].output]);
      for (size_t t = 0; t < links.size(); ++t) {
        const Value* in = g.inputs[links[t].input];
        if ((t == k) != own || in != root || taken.count(t)) continue;
        const TensorType &from = in->type, &to = g.inputs[links[k].input]->type;
        if (from.dtype != to.dtype || !(product(from.shape) == product(to.shape))) continue;
        shows[k] = t;
        taken.insert(t);
      }
    }
  return shows;
}

namespace {

// The bytes of a Value within its host, where they are one run whose place is known; else all of the host.
struct Run {
  bool all = true;
  int64_t begin = 0, end = 0;
};

// Whether no layer needs what `old` holds once `fresh`, or some of it, is written.
class Overwriting {
 public:
  Overwriting(const Graph& g, const Plan& plan) : plan_(plan), views_(g, *plan.decisions) {
    for (size_t i = 0, end = 0; i < plan.layers.size(); i = end) {
      end = std::max(behind_strips(plan, i), behind_region(plan, i));
      for (size_t k = i; k < end; ++k) spans_.push_back({i, end - 1});
    }
  }

  bool allowed(const Value* old, const Value* fresh) const {
    const Value *from = views_.host(old), *to = views_.host(fresh);
    for (size_t w = 0; w < plan_.layers.size(); ++w)
      for (const Parameter& write : plan_.layers[w].parameters) {
        if (write.kind != Parameter::Kind::kOutput || views_.host(write.value) != to) continue;
        for (size_t r = 0; r < plan_.layers.size(); ++r) {
          if (spans_[r].second < spans_[w].first) continue;
          for (const Parameter& read : plan_.layers[r].parameters)
            if (read.kind == Parameter::Kind::kInput && views_.host(read.value) == from &&
                !apart(read.value, write.value) && !(r == w && replaces(w, read.value, write.value)))
              return false;
        }
      }
    return true;
  }

 private:
  Run run_of(const Value* v) const {
    const View view = views_.of(v);
    const Dim count = product(v->type.shape);
    if (!view.shift.is_static() || !count.is_static() || plan_.decisions->has_gaps(*v)) return {};
    const auto size = static_cast<int64_t>(size_of(v->type.dtype));
    return {false, view.shift.value() * size, (view.shift.value() + count.value()) * size};
  }
  bool apart(const Value* a, const Value* b) const {
    const Run x = run_of(a), y = run_of(b);
    return !x.all && !y.all && (x.end <= y.begin || y.end <= x.begin);
  }
  // Whether the layer may write `fresh` over `old`, element by element.
  bool replaces(size_t layer, const Value* old, const Value* fresh) const {
    const Layer& l = plan_.layers[layer];
    if (spans_[layer].first != spans_[layer].second || l.node->outputs[0] != fresh) return false;
    if (std::find(l.may_overwrite.begin(), l.may_overwrite.end(), old) == l.may_overwrite.end()) return false;
    if (plan_.decisions->has_gaps(*old) || plan_.decisions->has_gaps(*fresh)) return false;
    const View from = views_.of(old), to = views_.of(fresh);
    return from.shift == to.shift && size_of(old->type.dtype) == size_of(fresh->type.dtype) &&
           product(old->type.shape) == product(fresh->type.shape);
  }

  const Plan& plan_;
  const Views views_;
  std::vector<std::pair<size_t, size_t>> spans_;  // by layer: the first and last that run with it
};

int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

StatePlan plan_states(const Graph& g, const Plan& plan, const StateLinks& links) {
  StatePlan out;
  if (links.empty()) return out;
  const std::vector<std::optional<size_t>> shows = passed_on(g, links);
  const Overwriting overwriting(g, plan);
  std::set<size_t> shown;
  for (const auto& s : shows)
    if (s) shown.insert(*s);
  std::set<const Symbol*> seen;  // extents that counts tell, and those that are remembered
  for (const StateLink& l : links)
    if (const std::optional<RowCount> count = row_count(g, l)) seen.insert(count->rows.get());
  for (const StateLink& l : links) {
    std::vector<SymbolPtr> symbols;
    for (const Dim& d : g.inputs[l.input]->type.shape) d.collect_symbols(symbols);
    for (const SymbolPtr& s : symbols)
      if (seen.insert(s.get()).second) out.extents.push_back(s);
  }
  // The links of each ring in order: the slot of one is that of the next one a run before. A line begins with
  // the link whose input no output shows; what is left then are circles.
  std::vector<bool> placed(links.size(), false);
  size_t windows = 0;
  out.states.resize(links.size());
  for (const bool lines : {true, false})
    for (size_t first = 0; first < links.size(); ++first) {
      if (placed[first] || (lines && shown.count(first))) continue;
      StateRing ring;
      size_t last = first;
      int64_t count = 0;
      for (std::optional<size_t> k = first; k && !placed[*k]; k = shows[*k]) {
        placed[*k] = true;
        out.states[*k] = {links[*k], out.rings.size(), count++, shows[*k] == *k};
        ring.slot_bytes = std::max(ring.slot_bytes, rounded(bound_bytes(*g.inputs[links[*k].input])));
        last = *k;
      }
      ring.window = window_of(g, *plan.decisions, links[first]);
      if (ring.window) {
        ring.window->word = 1 + out.extents.size() + windows++;
        ring.slot_bytes = rounded(ring.window->room * ring.window->row_bytes);
      }
      const bool over = ring.window || !lines ||
                        (!links[first].random &&
                         overwriting.allowed(g.inputs[links[first].input], g.outputs[links[last].output]));
      ring.slots = count + (over ? 0 : 1);
      out.rings.push_back(ring);
    }
  if (out.turns() || !out.extents.empty() || windows > 0)
    out.bytes = rounded(8 * static_cast<int64_t>(1 + out.extents.size() + windows));
  for (StateRing& ring : out.rings) {
    ring.offset = out.bytes;
    out.bytes += ring.slots * ring.slot_bytes;
  }
  return out;
}

}  // namespace sinter
