#include "emit/state.h"

#include <algorithm>

#include "emit/calls.h"
#include "emit/code.h"
#include "ir/error.h"
#include "plan/growth.h"

namespace sinter {

std::string state_parameter(const StatePlan& plan) { return plan.empty() ? "" : ", void* state"; }

namespace {

bool begins_with_zeros(const Graph& g, const StatePlan& plan) {
  return std::none_of(plan.states.begin(), plan.states.end(),
                      [&](const State& s) { return g.inputs[s.link.input]->initial.has_value(); });
}

}  // namespace

void declare_state(Printer& p, const Graph& g, const StatePlan& plan, const BundleOptions& o) {
  if (plan.empty()) return;
  p.comment(fmt::format(
      "What a stream of runs carries on: 64-byte aligned, one for each stream. It is given to {0}_reset once"
      "{1} and then to each run of the stream.",
      o.name, begins_with_zeros(g, plan) ? " (bytes of zeros will do as well)" : ""));
  for (const State& s : plan.states) {
    const std::string begins = beginning(g, s);
    p.comment(fmt::format("  {} <- {} {}: {}{}", sinter::quoted(s.link.input_name),
                          sinter::quoted(s.link.output_name), text(g.inputs[s.link.input]->type),
                          text(plan, s), begins.empty() ? "" : ", " + begins));
  }
  p.line("#define {}_STATE_BYTES INT64_C({})", upper(o.name), plan.bytes);
}

void declare_reset(Printer& p, const Graph& g, const StatePlan& plan, const BundleOptions& o) {
  if (plan.empty()) return;
  p.comment(begins_with_zeros(g, plan)
                ? "Begins a stream: the next run with this state finds zeros."
                : "Begins a stream: the next run with this state finds what each begins with.");
  p.line("void {}_reset(void* state);", o.name);
  if (!plan.random()) return;
  p.comment(
      fmt::format("The stream's random numbers are those of the seed from the next run on, as if it were its "
                  "first; after {}_reset they are those of seed 0. Nothing else of the state changes.",
                  o.name));
  p.line("void {}_seed(void* state, uint64_t seed);", o.name);
}

namespace {

// The bits of an element, as a number of C++.
std::string bits_of(const Tensor& t, int64_t i) {
  const size_t size = size_of(t.dtype());
  uint64_t bits = 0;
  for (size_t k = size; k-- > 0;)
    bits =
        bits << 8 | static_cast<uint8_t>(t.data()[i * static_cast<int64_t>(size) + static_cast<int64_t>(k)]);
  return size == 8 ? fmt::format("UINT64_C({:#x})", bits) : fmt::format("{:#x}", bits);
}

// Writes what a state begins with to the slot that its first run reads.
void write_initial(Printer& p, const Tensor& t, int64_t offset) {
  const size_t size = size_of(t.dtype());
  const int64_t count = t.size();
  std::vector<std::string> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(bits_of(t, i));
  p.line("{{");
  p.line("unsigned char* const to = static_cast<unsigned char*>(state) + {};", offset);
  if (t.is_uniform()) {
    p.line("const std::uint{}_t bits = {};", 8 * size, all[0]);
    p.line("for (std::int64_t i = 0; i < {0}; ++i) std::memcpy(to + {1} * i, &bits, {1});", count, size);
  } else {
    p.line("static const std::uint{}_t bits[] = {{", 8 * size);
    constexpr int64_t kOnLine = 8;
    for (int64_t i = 0; i < count; i += kOnLine) {
      std::string line;
      for (int64_t k = i; k < std::min(i + kOnLine, count); ++k) line += all[static_cast<size_t>(k)] + ", ";
      line.pop_back();
      p.line("{}", line);
    }
    p.line("}};");
    p.line("std::memcpy(to, bits, sizeof bits);");
  }
  p.line("}}");
}

struct Beginning {
  std::string name;
  int64_t offset;
  const Tensor* values;
  bool operator==(const Beginning& o) const { return offset == o.offset && values->same_bits(*o.values); }
};

// The states with a value of their own.
std::vector<Beginning> beginnings(const BundlePart& b) {
  std::vector<Beginning> all;
  for (const State& s : b.plan.states.states) {
    const StateRing& ring = b.plan.states.rings[s.ring];
    if (const auto& t = b.graph.inputs[s.link.input]->initial)
      all.push_back({s.link.input_name, ring.offset + s.place % ring.slots * ring.slot_bytes, &*t});
  }
  return all;
}

void write_beginnings(Printer& p, const std::vector<Beginning>& all) {
  for (const Beginning& b : all) {
    p.comment(sinter::quoted(b.name));
    write_initial(p, *b.values, b.offset);
  }
}

}  // namespace

void write_reset(Printer& p, const std::vector<BundlePart>& parts, const std::string& running,
                 const BundleOptions& o) {
  const StatePlan& plan = parts[0].plan.states;
  if (plan.empty()) return;
  p.line("extern \"C\" void {}_reset(void* state) {{", o.name);
  if (begins_with_zeros(parts[0].graph, plan)) {
    p.line("if (state != nullptr) std::memset(state, 0, {}_STATE_BYTES);", upper(o.name));
  } else {
    p.line("if (state == nullptr) return;");
    p.line("std::memset(state, 0, {}_STATE_BYTES);", upper(o.name));
    const std::vector<Beginning> first = beginnings(parts[0]);
    if (std::all_of(parts.begin(), parts.end(), [&](const auto& b) { return beginnings(b) == first; })) {
      write_beginnings(p, first);
    } else {
      p.line("const int part = {};", running);
      for (size_t i = 0; i < parts.size(); ++i) {
        p.line("if (part == {}) {{", i + 1);
        write_beginnings(p, beginnings(parts[i]));
        p.line("}}");
      }
    }
  }
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

namespace {

std::string rows_before(const StateWindow& w) {
  return fmt::format("sinter::at<std::int64_t>(s, {})", 8 * w.word);
}

}  // namespace

void begin_windows(Printer& p, const Graph& g, const StatePlan& plan, const std::string& error) {
  for (const State& s : plan.states) {
    const StateRing& ring = plan.rings[s.ring];
    if (!ring.window) continue;
    const StateWindow& w = *ring.window;
    const std::string first = fmt::format("first_{}", s.ring);
    p.line("std::int64_t {} = *{};  // rows in front of {}'s", first, rows_before(w),
           printable(s.link.input_name));
    p.line("if ({0} < 0 || {0} > {1}) return {2}DIM;", first, w.room - w.rows, error);
    p.line("if ({} + {} > {}) {{", first, Calls::cpp(Dim(w.rows) + w.step), w.room);
    p.line("std::memmove(s + {0}, s + {0} + {1} * {2}, {3});", ring.offset, first, w.row_bytes,
           w.rows * w.row_bytes);
    p.line("*{} = {} = 0;", rows_before(w), first);
    p.line("}}");
    const std::string type = c_type(g.inputs[s.link.input]->type.dtype);
    p.line("{0}* const window_{1} = sinter::at<{0}>(s, {2} + {3} * {4});", type, s.ring, ring.offset, first,
           w.row_bytes);
  }
}

void end_state(Printer& p, const StatePlan& plan) {
  if (plan.turns()) p.line("*sinter::at<std::int64_t>(s, 0) = turn + 1;");
  for (size_t i = 0; i < plan.extents.size(); ++i)
    p.line("*sinter::at<std::int64_t>(s, {}) = {} + 1;", 8 * (i + 1), variable(*plan.extents[i]));
  for (const StateRing& r : plan.rings)
    if (r.window) p.line("*{} += {};", rows_before(*r.window), Calls::cpp(r.window->step));
}

std::string state_pointer(const Graph& g, const StatePlan& plan, const State& s, bool written) {
  const StateRing& ring = plan.rings[s.ring];
  const std::string type = c_type(g.inputs[s.link.input]->type.dtype);
  if (ring.window) return fmt::format("window_{}", s.ring);
  if (ring.slots == 1) return fmt::format("sinter::at<{}>(s, {})", type, ring.offset);
  const int64_t ahead = s.place + (written ? 1 : 0);
  return fmt::format("sinter::at<{}>(s, {} + {} % {} * {})", type, ring.offset,
                     ahead == 0 ? "turn" : fmt::format("(turn + {})", ahead), ring.slots, ring.slot_bytes);
}

}  // namespace sinter
