// The text of If, Loop and Scan: the calls of their bodies' layers inside an `if` or a `for`.
//
// A Loop or Scan carries each value by three pointers: where it is now (at first the initial value, which is
// only read), where the iteration writes the next one, and the buffer after that. Rows of results are written
// in place. Extents that only the run knows are variables; what leaves its bound ends the run with an error
// before anything is written outside of a buffer.
//
// Iterations that threads share (plan/control.cpp) are ranges of a loop for each, whose calls use the
// thread's own piece of the arena.
#include <algorithm>

#include "emit/calls.h"
#include "ir/error.h"
#include "ops/control/bodies.h"

namespace sinter {
namespace {

using Kind = Parameter::Kind;

// What the texts below call variables of their own.
constexpr const char* kVariables[] = {"a",    "across", "arenas", "end_turn",  "first_turn", "floats",
                                      "go",   "holds",  "inside", "iteration", "own",        "part",
                                      "pool", "status", "trips",  "w"};

class ControlText {
 public:
  ControlText(const Layer& layer, const std::vector<Plan>& bodies, const Functions& functions)
      : layer_(layer), n_(*layer.node), bodies_(bodies), functions_(functions) {
    rename();
  }

  Layer write() {
    for (const Value* v : n_.outputs)
      for (const Dim& d : v->type.shape)
        if (const Parameter* count = count_of(d)) counts_.insert(count->name);
    for (const std::string& name : counts_) p_.line("*{} = 0;", name);
    if (n_.op->name == std::string_view("If"))
      branches();
    else
      loop();
    p_.line("return 0;");
    layer_.body = p_.text();
    return std::move(layer_);
  }

 private:
  // Variables are called like the model's values; not like a symbol or one another.
  void rename() {
    for (const char* word : kVariables) names_.reserve(word);
    for (const SymbolPtr& s : symbols()) {
      names_.reserve(variable(*s));
      names_.reserve("next_" + variable(*s));
    }
    for (Parameter& p : layer_.parameters)
      if (p.kind != Kind::kSymbol && !is_base(p)) p.name = names_.unique(p.name);
  }
  const std::vector<SymbolPtr>& symbols() const { return n_.bodies[0]->symbols->all(); }
  static bool is_base(const Parameter& p) {
    return !p.value && (p.kind == Kind::kScratch || p.kind == Kind::kWeights || p.kind == Kind::kPool);
  }

  std::string pointer(const Value* v) const {
    for (const Parameter& p : layer_.parameters)
      if (p.value == v && p.kind != Kind::kScratch) return p.name;
    SINTER_CHECK(false, "a control layer lacks a parameter");
    return "";
  }
  // The parameter by which the layer reports the extent; null where the extent is not its own.
  const Parameter* count_of(const Dim& d) const {
    for (const Parameter& p : layer_.parameters)
      if (p.kind == Kind::kCount && Dim(p.symbol) == d) return &p;
    return nullptr;
  }
  // An outer extent, as it is known by now.
  std::string outer(const Dim& d) const {
    return d.cpp([&](const Symbol& s) {
      for (const Parameter& p : layer_.parameters)
        if (p.kind == Kind::kCount && p.symbol.get() == &s) return "*" + p.name;
      return variable(s);
    });
  }

  void begin(Calls& calls) const {
    for (const Parameter& p : layer_.parameters)
      if (p.kind == Kind::kSymbol) calls.define(*p.symbol);
  }
  void body(Calls& calls, const Plan& plan) {
    calls.declare_counts();
    calls.checks();
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      calls.choose_floats(i, i + 1);
      calls.call(i);
    }
    calls.restore_floats();
  }

  // ---- If

  void branches() {
    p_.line("if (*{}) {{", pointer(n_.inputs[0]));
    branch(0);
    p_.line("}} else {{");
    branch(1);
    p_.line("}}");
  }
  void branch(size_t k) {
    const Graph& g = *n_.bodies[k];
    if (!g.unreachable.empty()) {
      p_.comment(printable(g.unreachable));
      p_.line("return sinter::kDimError;");
      return;
    }
    Frame frame{g, bodies_[k], {}, {}, false, ""};
    for (size_t i = 0; i < g.inputs.size(); ++i) frame.inputs.push_back(pointer(n_.inputs[i + 1]));
    for (const Value* v : n_.outputs) frame.outputs.push_back(pointer(v));
    Calls calls(p_, frame, functions_);
    begin(calls);
    body(calls, bodies_[k]);
    std::set<const Parameter*> reported;
    for (size_t i = 0; i < n_.outputs.size(); ++i)
      for (size_t d = 0; d < n_.outputs[i]->type.shape.size(); ++d) {
        const Parameter* count = count_of(n_.outputs[i]->type.shape[d]);
        if (count && reported.insert(count).second)
          p_.line("*{} = {};", count->name, Calls::cpp(g.outputs[i]->type.shape[d]));
      }
  }

  // ---- Loop and Scan

  struct State {
    const Value *in, *out, *result, *initial;  // body input, body output, node's output and input
    std::string now, next, then;               // variables
    bool steady;                               // its shape stays
  };
  struct Moving {  // an extent that the iterations change
    SymbolPtr symbol;
    Dim first, next;
    int64_t most;  // at the end
  };

  void loop() {
    form_ = loop_form(n_);
    const Graph& g = *n_.bodies[0];
    find_states(g);
    find_moving(g);
    const bool steady = form_.scan || is_true(*g.outputs[0]);
    std::string trips = "INT64_MAX";
    if (form_.scan)
      trips = Calls::cpp(n_.inputs[form_.states]->type.shape[0]);
    else if (n_.inputs[0])
      trips = "*" + pointer(n_.inputs[0]);
    p_.line("const std::int64_t trips = {};", trips);
    if (!steady) p_.line("bool go = {};", n_.inputs[1] ? "*" + pointer(n_.inputs[1]) : "true");
    if (steady && !form_.scan && n_.inputs[1] && !is_true(*n_.inputs[1]))
      p_.line("const bool go = *{};", pointer(n_.inputs[1])), starts_ = true;
    for (const State& s : states_) declare(s, steady);
    for (const Moving& m : moving_)
      p_.line("std::int64_t {} = {};", variable(*m.symbol), Calls::cpp(m.first));
    if (!form_.scan && g.has_uses(g.inputs[1]))
      p_.line("const bool holds = true;  // the condition, as an iteration finds it");
    if (layer_.shares > 1) return shared_iterations(g);
    p_.line("std::int64_t iteration = 0;");
    p_.line("for (; iteration < trips{}; ++iteration) {{", steady && !starts_ ? "" : " && go");
    iteration(g, steady);
    p_.line("}}");
    finish();
  }
  void shared_iterations(const Graph& g) {
    p_.comment("Each thread takes some iterations; where they are fewer, it takes parts of their layers.");
    p_.line("const sinter_pool* const across = trips < {} ? nullptr : pool;", layer_.shares);
    p_.line("if (const int status = sinter::run_parts_until_failure<{}>(across, trips, [=](", layer_.shares);
    p_.line(
        "    std::int64_t first_turn, std::int64_t end_turn, [[maybe_unused]] std::int64_t part) -> int {{");
    for (const Parameter& p : layer_.parameters)
      if (p.kind == Kind::kScratch)
        p_.line("unsigned char* const a = {} + part * {};", p.name, p.bytes / layer_.shares);
    p_.line("[[maybe_unused]] const sinter_pool* const inside = across == nullptr ? pool : nullptr;");
    p_.line("for (std::int64_t iteration = first_turn; iteration < end_turn; ++iteration) {{");
    iteration(g, true);
    p_.line("}}");
    p_.line("return 0;");
    p_.line("}}); status != 0) return status;");
  }

  void find_states(const Graph& g) {
    size_t buffer = 0;
    std::vector<const Parameter*> buffers;
    for (const Parameter& p : layer_.parameters)
      if (p.kind == Kind::kScratch && p.value) buffers.push_back(&p);
    for (size_t k = 0; k < form_.states; ++k) {
      State s{g.inputs[form_.first + k],
              g.outputs[form_.body_output(k)],
              n_.outputs[k],
              n_.inputs[form_.first + k],
              "",
              "",
              "",
              false};
      s.steady = s.out->type.shape == s.result->type.shape;
      const std::string name = identifier(s.in->name);
      s.now = names_.unique(name);
      s.next = names_.unique(name + "_next");
      s.then = names_.unique(name + "_then");
      first_buffer_.push_back(s.steady ? pointer(s.result) : buffers.at(buffer++)->name);
      second_buffer_.push_back(buffers.at(buffer++)->name);
      states_.push_back(s);
    }
  }

  void find_moving(const Graph&) {
    for (const State& s : states_)
      for (size_t d = 0; d < s.in->type.shape.size(); ++d) {
        std::vector<SymbolPtr> symbols;
        s.in->type.shape[d].collect_symbols(symbols);
        if (symbols.size() != 1 || !(Dim(symbols[0]) == s.in->type.shape[d])) continue;
        if (s.in->type.shape[d] == s.initial->type.shape[d]) continue;
        moving_.push_back(
            {symbols[0], s.initial->type.shape[d], s.out->type.shape[d], s.result->type.shape[d].hi()});
      }
  }

  void declare(const State& s, bool steady) {
    const size_t k = static_cast<size_t>(&s - states_.data());
    const std::string type(cpp_name(s.in->type.dtype));
    p_.line("const {}* {} = {};", type, s.now, pointer(s.initial));
    p_.line("{}* {} = {};", type, s.next, first_buffer_[k]);
    p_.line("{}* {} = {};", type, s.then, second_buffer_[k]);
    // So that the last iteration writes to the output itself.
    if (steady && s.steady) p_.line("if (trips > 0 && trips % 2 == 0) std::swap({}, {});", s.next, s.then);
  }

  // `base` + index * elements of a row.
  std::string row(const std::string& base, const std::string& index, const Dim& elements) const {
    if (elements.is(0)) return base;
    return fmt::format("{} + {}{}", base, index, elements.is(1) ? "" : " * (" + outer(elements) + ")");
  }
  std::string index_of(const char* attribute, size_t i) const {
    const std::vector<int64_t> back = n_.attributes.integers(attribute);
    return i < back.size() && back[i] != 0 ? "(trips - 1 - iteration)" : "iteration";
  }

  Frame frame(const Graph& g, bool steady) const {
    Frame f{g, bodies_[0], {}, {}, false, "", layer_.shares > 1 ? "inside" : "pool"};
    if (!form_.scan) f.inputs = {"&iteration", "&holds"};
    for (const State& s : states_) f.inputs.push_back(s.now);
    for (size_t i = 0; i < form_.scanned; ++i) {
      const Value* v = n_.inputs[form_.states + i];
      f.inputs.push_back(row(pointer(v), index_of("scan_input_directions", i), product(v->type.shape, 1)));
    }
    for (size_t i = f.inputs.size(); i < n_.inputs.size(); ++i) f.inputs.push_back(pointer(n_.inputs[i]));
    if (!form_.scan) f.outputs.push_back(steady ? "nullptr" : "&go");
    for (const State& s : states_) f.outputs.push_back(s.next);
    for (size_t r = 0; r < form_.results; ++r) {
      const Value* v = n_.outputs[form_.states + r];
      f.outputs.push_back(row(pointer(v), index_of("scan_output_directions", r), product(v->type.shape, 1)));
    }
    return f;
  }

  void iteration(const Graph& g, bool steady) {
    if (!form_.scan) limit_trips(g, steady);
    for (const Moving& m : moving_)
      if (m.symbol->range.hi < m.most)
        p_.line("if ({} > {}) return sinter::kCapacityError;", variable(*m.symbol), m.symbol->range.hi);
    const Frame f = frame(g, steady);
    Calls calls(p_, f, functions_);
    begin(calls);
    if (!form_.scan)
      for (const Dim& d : g.inputs[0]->elements) {
        std::vector<SymbolPtr> symbols;
        d.collect_symbols(symbols);
        for (const SymbolPtr& s : symbols) {
          p_.line("[[maybe_unused]] const std::int64_t {} = iteration;", variable(*s));
          calls.define(*s);
        }
      }
    for (const Moving& m : moving_) calls.define(*m.symbol);
    body(calls, bodies_[0]);
    report_rows(g);
    for (size_t i = 0; i < moving_.size(); ++i)
      p_.line("const std::int64_t {} = {};", next_extent(i), Calls::cpp(moving_[i].next));
    for (size_t i = 0; i < moving_.size(); ++i) {
      p_.line("if ({0} < 0 || {0} > {1}) return sinter::kCapacityError;", next_extent(i), moving_[i].most);
      p_.line("{} = {};", variable(*moving_[i].symbol), next_extent(i));
    }
    for (const State& s : states_) {
      p_.line("{} = {};", s.now, s.next);
      p_.line("std::swap({}, {});", s.next, s.then);
    }
  }
  // What only the run ends goes on no longer than is planned, and makes no more rows than there is place for.
  void limit_trips(const Graph& g, bool steady) {
    int64_t most = Interval::kUnbounded;
    const std::vector<Dim>& numbers = g.inputs[0]->elements;
    const bool given = !n_.inputs[0] || n_.inputs[0]->data || !n_.inputs[0]->elements.empty();
    if (numbers.size() == 1 && numbers[0].hi() != Interval::kUnbounded && !(steady && given))
      most = numbers[0].hi() + 1;
    if (form_.results > 0) {
      const Dim& rows = n_.outputs[form_.states]->type.shape[0];
      if (count_of(rows))
        most = std::min(most, rows.hi());
      else if (!steady)
        p_.line("if (iteration >= {}) return sinter::kLoopError;", outer(rows));
    }
    if (most != Interval::kUnbounded) p_.line("if (iteration >= {}) return sinter::kLoopError;", most);
  }
  std::string next_extent(size_t i) const { return "next_" + variable(*moving_[i].symbol); }

  // Extents of rows that only an iteration knows: the first tells, all others must be alike.
  void report_rows(const Graph& g) {
    for (size_t r = 0; r < form_.results; ++r) {
      const size_t out = form_.states + r;
      const Value& row = *g.outputs[form_.body_output(out)];
      for (size_t d = 0; d < row.type.shape.size(); ++d) {
        const Parameter* count = count_of(n_.outputs[out]->type.shape[d + 1]);
        if (!count) continue;
        const std::string extent = Calls::cpp(row.type.shape[d]);
        p_.line("if (iteration > 0 && *{} != {}) return sinter::kDimError;", count->name, extent);
        p_.line("*{} = {};", count->name, extent);
      }
    }
  }

  void finish() {
    for (const State& s : states_) {
      Dim elements(1);
      for (const Dim& d : s.in->type.shape) elements = elements * d;
      p_.line("if ({0} != {1}) sinter::copy({1}, {0}, {2});", s.now, pointer(s.result), Calls::cpp(elements));
      for (size_t d = 0; d < s.in->type.shape.size(); ++d)
        if (const Parameter* count = count_of(s.result->type.shape[d]))
          p_.line("*{} = {};", count->name, Calls::cpp(s.in->type.shape[d]));
    }
    if (form_.results == 0) return;
    if (const Parameter* count = count_of(n_.outputs[form_.states]->type.shape[0]); count && !form_.scan)
      p_.line("*{} = iteration;", count->name);
  }

  Layer layer_;
  const Node& n_;
  const std::vector<Plan>& bodies_;
  const Functions& functions_;
  Printer p_;
  Names names_;
  std::set<std::string> counts_;
  LoopForm form_;
  std::vector<State> states_;
  std::vector<std::string> first_buffer_, second_buffer_;
  std::vector<Moving> moving_;
  bool starts_ = false;  // the initial condition counts, and no iteration changes it
};

}  // namespace

Layer written_control(const Layer& layer, const std::vector<Plan>& bodies, const Functions& functions) {
  return ControlText(layer, bodies, functions).write();
}

}  // namespace sinter
