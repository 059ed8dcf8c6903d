#include "emit/state.h"

#include <algorithm>

#include "emit/code.h"
#include "ir/error.h"
#include "plan/growth.h"

namespace sinter {

std::string state_parameter(const StatePlan& plan) { return plan.empty() ? "" : ", void* state"; }

void declare_state(Printer& p, const Graph& g, const StatePlan& plan, const BundleOptions& o) {
  if (plan.empty()) return;
  p.comment(fmt::format(
      "What a stream of runs carries on: 64-byte aligned, one for each stream. It is given to {0}_reset once "
      "(bytes of zeros will do as well) and then to each run of the stream.",
      o.name));
  for (const State& s : plan.states)
    p.comment(fmt::format("  {} <- {} {}: {}", sinter::quoted(s.link.input_name),
                          sinter::quoted(s.link.output_name), text(g.inputs[s.link.input]->type),
                          text(plan, s)));
  p.line("#define {}_STATE_BYTES INT64_C({})", upper(o.name), plan.bytes);
}

void declare_reset(Printer& p, const StatePlan& plan, const BundleOptions& o) {
  if (plan.empty()) return;
  p.comment("Begins a stream: the next run with this state finds zeros.");
  p.line("void {}_reset(void* state);", o.name);
  if (!plan.random()) return;
  p.comment(
      fmt::format("The stream's random numbers are those of the seed from the next run on, as if it were its "
                  "first; after {}_reset they are those of seed 0. Nothing else of the state changes.",
                  o.name));
  p.line("void {}_seed(void* state, uint64_t seed);", o.name);
}

void write_reset(Printer& p, const StatePlan& plan, const BundleOptions& o) {
  if (plan.empty()) return;
  p.line("extern \"C\" void {}_reset(void* state) {{", o.name);
  p.line("if (state != nullptr) std::memset(state, 0, {}_STATE_BYTES);", upper(o.name));
  p.line("}}");
  p.blank();
  const State* random = plan.random();
  if (!random) return;
  const StateRing& ring = plan.rings[random->ring];
  p.line("extern \"C\" void {}_seed(void* state, uint64_t seed) {{", o.name);
  p.line("if (state == nullptr) return;");
  p.line("const uint64_t stream[] = {{seed, 0}};  // no runs before");
  for (int64_t slot = 0; slot < ring.slots; ++slot)
    p.line("std::memcpy(static_cast<unsigned char*>(state) + {}, stream, sizeof stream);",
           ring.offset + slot * ring.slot_bytes);
  p.line("}}");
  p.blank();
}

std::string capacity_text(const Graph& g, const StatePlan& plan) {
  constexpr size_t kNamed = 2;  // the others are those of further layers
  std::string s;
  for (const State& state : plan.states) {
    const std::optional<RowCount> count = row_count(g, state.link);
    if (!count) continue;
    const std::vector<std::string>& caches = state.link.grown;
    std::string names;
    for (size_t i = 0; i < std::min(caches.size(), kNamed); ++i)
      names += (i == 0 ? "" : ", ") + sinter::quoted(caches[i]);
    if (caches.size() > kNamed) names += fmt::format(" and {} more", caches.size() - kNamed);
    s += fmt::format(
        "{}the cache {} has room for {} rows, and this run's are too many (compile with a greater --dim {})",
        s.empty() ? "" : "; ", names, count->rows->range.hi, sinter::quoted(count->rows->name + "=0..MAX"));
  }
  return s;
}

void begin_state(Printer& p, const StatePlan& plan) {
  if (plan.empty()) return;
  p.line("unsigned char* const s = static_cast<unsigned char*>(state);");
  if (plan.turns())
    p.line("const std::int64_t turn = *sinter::at<std::int64_t>(s, 0);  // runs before this one");
}

namespace {

// The caller's number for an extent, where an input has just that one.
std::string given(const Symbol& s, const std::vector<Member>& inputs) {
  for (const Member& m : inputs)
    for (size_t d = 0; d < m.value->type.shape.size(); ++d) {
      std::vector<SymbolPtr> symbols;
      m.value->type.shape[d].collect_symbols(symbols);
      if (symbols.size() == 1 && symbols[0].get() == &s && m.value->type.shape[d] == Dim(symbols[0]))
        return fmt::format("in->{}_dims[{}]", m.name, d);
    }
  SINTER_CHECK(false, "no input tells by how much a state grows");
  return "";
}

}  // namespace

void define_rows(Printer& p, const Graph& g, const StatePlan& plan, const std::vector<Member>& inputs,
                 const std::string& error, const std::function<void(const Symbol&)>& define) {
  for (const State& s : plan.states) {
    const std::optional<RowCount> count = row_count(g, s.link);
    if (!count) continue;
    const Symbol& rows = *count->rows;
    const std::string name = variable(rows);
    p.line("const std::int64_t {} = *{};  // rows until now", name, state_pointer(g, plan, s, false));
    p.line("if ({0} < 0 || {0} > {1}) return {2}DIM;", name, rows.range.hi, error);
    define(rows);
    std::string in_range;  // else the extent itself is wrong
    std::vector<SymbolPtr> symbols;
    count->next.collect_symbols(symbols);
    for (const SymbolPtr& x : symbols)
      if (x.get() != &rows)
        in_range += fmt::format("{0} >= {1} && {0} <= {2} && ", given(*x, inputs), x->range.lo, x->range.hi);
    const std::string next =
        count->next.cpp([&](const Symbol& x) { return &x == &rows ? name : given(x, inputs); });
    p.line("if ({}{} > {}) return {}CAPACITY;", in_range, next, rows.range.hi, error);
  }
}

void check_state_extents(Printer& p, const StatePlan& plan, const std::string& error) {
  for (size_t i = 0; i < plan.extents.size(); ++i)
    p.line(
        "if (const std::int64_t before = *sinter::at<std::int64_t>(s, {}); before != 0 && before != {} + 1) "
        "return {};",
        8 * (i + 1), variable(*plan.extents[i]), error);
}

void end_state(Printer& p, const StatePlan& plan) {
  if (plan.turns()) p.line("*sinter::at<std::int64_t>(s, 0) = turn + 1;");
  for (size_t i = 0; i < plan.extents.size(); ++i)
    p.line("*sinter::at<std::int64_t>(s, {}) = {} + 1;", 8 * (i + 1), variable(*plan.extents[i]));
}

std::string state_pointer(const Graph& g, const StatePlan& plan, const State& s, bool written) {
  const StateRing& ring = plan.rings[s.ring];
  const std::string type = c_type(g.inputs[s.link.input]->type.dtype);
  if (ring.slots == 1) return fmt::format("sinter::at<{}>(s, {})", type, ring.offset);
  const int64_t ahead = s.place + (written ? 1 : 0);
  return fmt::format("sinter::at<{}>(s, {} + {} % {} * {})", type, ring.offset,
                     ahead == 0 ? "turn" : fmt::format("(turn + {})", ahead), ring.slots, ring.slot_bytes);
}

}  // namespace sinter
