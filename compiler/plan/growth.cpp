#include "plan/growth.h"

#include <algorithm>
#include <map>

#include "ir/error.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool is_state(const StateLinks& links, const Graph& g, const Value* v) {
  return std::any_of(links.begin(), links.end(), [&](const StateLink& l) { return g.inputs[l.input] == v; });
}

SymbolPtr symbol_of(const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  return symbols.size() == 1 && Dim(symbols[0]) == d ? symbols[0] : nullptr;
}

// What the step is where nothing but `x` (an extent; null: a number) bounds it: all other extents of inputs
// are large then.
constexpr int64_t kLarge = int64_t{1} << 40;
Dim bounded_by(const Growth& growth, const Symbol* x) {
  return growth.step.substitute(
      [&](const SymbolPtr& s) { return s.get() == x || s == growth.rows ? Dim(s) : Dim(kLarge); });
}

// By how much a state grows: a number or an input's extent. Where other extents may make it less (what
// GroupQueryAttention is told to be the total), it must be that in each run.
bool find_step(const Graph& g, const StateLinks& links, Growth& growth) {
  if (const Dim number = bounded_by(growth, nullptr); number.is_static() && number.value() < kLarge) {
    growth.step = number;
    growth.next = Dim(growth.rows) + number;
    return number.value() > 0;
  }
  for (const Value* v : g.inputs) {
    if (is_state(links, g, v)) continue;
    for (size_t d = 0; d < v->type.shape.size(); ++d) {
      const Dim& extent = v->type.shape[d];
      const SymbolPtr symbol = symbol_of(extent);
      if (!symbol || symbol == growth.rows || !(bounded_by(growth, symbol.get()) == extent)) continue;
      growth.told = v;
      growth.told_axis = d;
      growth.step = extent;
      growth.next = Dim(growth.rows) + extent;
      return true;
    }
  }
  return false;
}

// `symbol` becomes `extent` wherever a shape or the elements of a small tensor have it.
void put_extent(Graph& g, const SymbolPtr& symbol, const Dim& extent) {
  const auto put = [&](Dim& d) {
    d = d.substitute([&](const SymbolPtr& s) { return s == symbol ? extent : Dim(s); });
  };
  for (const auto& v : g.values) {
    for (Dim& d : v->type.shape) put(d);
    for (Dim& d : v->elements) put(d);
  }
  for (Check& c : g.checks) put(c.a), put(c.b);
  std::erase_if(g.checks, [](const Check& c) { return c.a == c.b; });
  for (const auto& n : g.nodes)
    for (const auto& body : n->bodies) put_extent(*body, symbol, extent);
}

// The extent of an input that the caller alone tells: a symbol of its own, which no state has.
bool is_callers(const Graph& g, const StateLinks& links, const SymbolPtr& symbol) {
  bool found = false;
  for (const Value* v : g.inputs)
    for (const Dim& d : v->type.shape) {
      std::vector<SymbolPtr> symbols;
      d.collect_symbols(symbols);
      if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) continue;
      if (is_state(links, g, v) || symbol_of(d) != symbol) return false;
      found = true;
    }
  return found && !symbol->from_data;
}

// Exporters know no sums of extents: a mask over old and new rows has a length of its own in the model. Where
// it is broadcast with the rows after the run it can only be that, or 1. It becomes that, so that the layers
// behind it know; a mask of one column for all rows has the extent 1 in the model.
void find_lengths(Graph& g, const StateLinks& links, const Growth& growth) {
  for (;;) {
    SymbolPtr length;
    for (const Check& c : g.checks)
      for (const auto& [rows, other] : {std::pair(&c.a, &c.b), std::pair(&c.b, &c.a)})
        if (const SymbolPtr s = symbol_of(*other);
            c.or_one && s && *rows == growth.next && is_callers(g, links, s))
          length = s;
    if (!length) return;
    put_extent(g, length, growth.next);
  }
}

}  // namespace

std::optional<Growth> growth_of(const Graph& g, const StateLinks& links, const StateLink& l) {
  const Shape &in = g.inputs[l.input]->type.shape, &out = g.outputs[l.output]->type.shape;
  if (in.size() != out.size()) return std::nullopt;
  std::optional<Growth> found;
  for (size_t d = 0; d < in.size(); ++d) {
    if (in[d] == out[d]) continue;
    if (found) return std::nullopt;
    found = {d, symbol_of(in[d]), out[d], out[d] - in[d]};
  }
  if (!found || !found->rows || found->rows->from_data || found->rows->range.lo > 0) return std::nullopt;
  return find_step(g, links, *found) ? found : std::nullopt;
}

void count_rows(Graph& g, StateLinks& links) {
  std::vector<Growth> all;
  std::map<const Symbol*, std::vector<std::string>> grown;
  for (const StateLink& l : links) {
    const std::optional<Growth> growth = growth_of(g, links, l);
    if (!growth) continue;
    find_lengths(g, links, *growth);
    if (const Dim& made = g.outputs[l.output]->type.shape[growth->axis]; !(made == growth->next))
      g.checks.push_back({made, growth->next, false,
                          fmt::format("the rows that {} grows by", sinter::quoted(l.input_name))});
    grown[growth->rows.get()].push_back(l.input_name);
    if (std::none_of(all.begin(), all.end(), [&](const Growth& o) { return o.rows == growth->rows; }))
      all.push_back(*growth);
  }
  for (const Growth& growth : all) {
    const std::string& name = growth.rows->name;
    Value* rows = g.add_value(name, {DType::kI64, {Dim(1)}});
    rows->origin = rows->name;
    rows->elements = {Dim(growth.rows)};
    Value* step = nullptr;
    if (growth.step.is_static()) {
      step = g.add_constant(name + "/step", Tensor::of(std::vector<int64_t>{growth.step.value()}));
    } else {
      step = g.add_value(name + "/step", {});
      auto* told = const_cast<Value*>(growth.told);
      Value* shape = g.add_value(name + "/shape", {});
      infer(g, *g.add_node(find_op("", "Shape"), shape->name, {told}, {shape}));
      Value* axis = g.add_constant(name + "/axis",
                                   Tensor::of(std::vector<int64_t>{static_cast<int64_t>(growth.told_axis)}));
      infer(g, *g.add_node(find_op("", "Gather"), step->name, {shape, axis}, {step}));
    }
    Value* next = g.add_value(name + "/next", {});
    infer(g, *g.add_node(find_op("", "Add"), next->name, {rows, step}, {next}));
    next->origin = next->name;
    g.inputs.push_back(rows);
    g.outputs.push_back(next);
    links.push_back(
        {g.outputs.size() - 1, g.inputs.size() - 1, next->name, rows->name, grown[growth.rows.get()]});
  }
}

std::optional<RowCount> row_count(const Graph& g, const StateLink& l) {
  const std::vector<Dim>&rows = g.inputs[l.input]->elements, &next = g.outputs[l.output]->elements;
  if (rows.size() != 1 || next.size() != 1 || !symbol_of(rows[0])) return std::nullopt;
  return RowCount{symbol_of(rows[0]), next[0]};
}

}  // namespace sinter
