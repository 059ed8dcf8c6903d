// sinter verify: the built model against the meaning of the model as imported, layer by layer.
//
// The bundle is built with --trace and dumps what every layer wrote. evaluate() computes the same values from
// the graph before any pass. Value::origin and perm say which value of the model a layer's output is, and
// with which order of axes. A layer is at fault if its output differs and none of its inputs does.
//
// What is near enough: driver/difference.h.
//
// The greatest of nearly equal numbers, or which of them pass a threshold, is decided by their rounding, and
// all that follows differs with it. Where the built model's integers are just what its own inputs to that
// node lead to, and these agree, the meaning takes them over, and what follows is compared with that choice.
//
// With --state, the cases are steps of one stream, in one run of the program, and the meaning carries its own
// states from step to step. Stored outputs count where the stored states are those that were carried there.
//
// Of several models each is verified as the part of their bundle that it is: the runner runs that one, and
// puts what it reads of another's into the arena.
//
// A custom operator means what its C function computes (driver/custom_meaning.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/build.h"
#include "driver/compile.h"
#include "driver/custom_meaning.h"
#include "driver/difference.h"
#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/inputs.h"
#include "driver/machine.h"
#include "driver/output_file.h"
#include "driver/pipeline.h"
#include "driver/process.h"
#include "driver/state_names.h"
#include "driver/trace_file.h"
#include "ir/error.h"
#include "ops/op.h"
#include "plan/plan.h"
#include "report/verified.h"
#include "sinter/runner.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Options : ModelOptions, Tolerance {
  std::vector<std::string> in, images;
  std::string on, html;
  uint32_t seed = 1;
  VerifiedReport* page = nullptr;  // --html
  SeveralModels several;
  const Pipeline* pipeline = nullptr;  // of which the model is number `part`
  size_t part = 0;
  std::vector<StateName> names;  // of `states`
};

struct Case {
  std::string name;
  std::vector<Tensor> inputs, outputs;  // outputs: expected ones, may be empty
  std::vector<std::string> files;
  std::map<std::string, Tensor> states{};  // by input: what is stored of those that the caller doesn't give
};

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inv(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inv[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inv;
}

std::pair<int, std::string> traced_as(size_t layer, const Value& v) {
  return {static_cast<int>(layer), std::string(v.name.c_str())};
}

// Gives what the layers wrote the model's order of axes.
void restore_axes(const Compiled& c, Traced& traced) {
  for (size_t i = 0; i < c.plan.layers.size(); ++i)
    for (const Value* v : c.plan.layers[i].node->outputs) {
      if (!v || v->origin.empty() || v->perm.empty()) continue;
      const auto got = traced.find(traced_as(i, *v));
      if (got != traced.end()) got->second = got->second.transposed(inverse(v->perm));
    }
}

// What layer i wrote as its output `v`; null where the model has no such value.
const Tensor* written_by(size_t i, const Value* v, const Traced& traced) {
  if (!v || v->origin.empty()) return nullptr;
  const auto got = traced.find(traced_as(i, *v));
  return got == traced.end() ? nullptr : &got->second;
}

// By their names in the model.
using Values = std::map<std::string, Tensor>;
using Written = std::map<std::string, const Tensor*>;

Written written_values(const Compiled& c, const Traced& traced, const Case& data) {
  Written values;
  for (size_t i = 0; i < data.inputs.size(); ++i) values[c.imported->inputs[i]->name] = &data.inputs[i];
  for (size_t i = 0; i < c.plan.layers.size(); ++i)
    for (const Value* v : c.plan.layers[i].node->outputs)
      if (const Tensor* t = written_by(i, v, traced)) values.emplace(v->origin, t);
  return values;
}

// What the built model holds of the model's values: it leaves out views and what is fused into a layer, which
// follow from what it wrote.
class Built {
 public:
  Built(Written written, const Values& reference, const Options& o)
      : written_(std::move(written)), reference_(reference), options_(o) {}

  // Its integers instead of `meant`, those of `v`, where rounding alone tells them apart.
  std::optional<Tensor> other_choice(const Value& v, const Tensor& meant) const {
    const auto got = written_.find(v.name);
    if (is_float(meant.dtype()) || got == written_.end() || compare(*got->second, meant, options_).ok())
      return std::nullopt;
    const std::optional<Tensor> made = computed(v, 0);
    return made && made->same_bits(*got->second) ? made : std::nullopt;
  }

 private:
  static constexpr int kDeepest = 16;

  // A value from what agrees with the reference; nothing where that doesn't.
  std::optional<Tensor> computed(const Value& v, int depth) const {
    const Node* n = v.producer;
    if (!n || depth > kDeepest) return std::nullopt;
    std::vector<Tensor> inputs;
    for (const Value* x : n->inputs) {
      std::optional<Tensor> t = !x ? Tensor() : x->data ? *x->data : held(*x, depth);
      if (!t) return std::nullopt;
      inputs.push_back(std::move(*t));
    }
    const auto k = std::find(n->outputs.begin(), n->outputs.end(), &v) - n->outputs.begin();
    return evaluate(*n, std::move(inputs))[static_cast<size_t>(k)];
  }
  std::optional<Tensor> held(const Value& v, int depth) const {
    const auto w = written_.find(v.name);
    const auto r = reference_.find(v.name);
    if (w == written_.end() || r == reference_.end()) return computed(v, depth + 1);
    const Tensor& t = *w->second;
    const bool agree = t.dtype() == r->second.dtype() && compare(t, r->second, options_).ok();
    return agree ? std::optional<Tensor>(t) : std::nullopt;
  }

  const Written written_;
  const Values& reference_;
  const Options& options_;
};

// What the model means by these inputs: its outputs; into `reference` the values that `wanted` names.
std::vector<Tensor> meaning(const Compiled& c, const Case& data, Written written, const Options& o,
                            Values& reference) {
  const Built built(std::move(written), reference, o);
  std::set<std::string> wanted;
  for (const auto& v : c.graph->values) wanted.insert(v->origin);
  for (const Value* v : c.imported->inputs) wanted.insert(v->name);
  return evaluate(*c.imported, data.inputs, [&](const Value& v, Tensor& t) {
    if (!wanted.count(v.name)) return;
    if (std::optional<Tensor> other = built.other_choice(v, t)) {
      fmt::print("{} ({}) chooses otherwise among numbers that agree\n", sinter::quoted(v.name),
                 v.producer->op->name);
      t = std::move(*other);
    }
    reference[v.name] = t;
  });
}

// With --fp16, the greatest operand of a layer that adds: where terms cancel, their errors do not.
double scale_of_sum(const Layer& l, const Values& reference, const Options& o) {
  static const std::set<std::string_view> kSums = {"elementwise", "Add",         "Sub",
                                                   "Sum",         "Mean",        "ReduceMean",
                                                   "ReduceSum",   "AveragePool", "GlobalAveragePool"};
  double largest = 0;
  if (!o.fp16 || kSums.count(l.node->op->name) == 0) return largest;
  for (const Parameter& p : l.parameters) {
    const auto r = p.kind == Parameter::Kind::kInput ? reference.find(p.value->origin) : reference.end();
    if (r == reference.end() || !is_float(r->second.dtype())) continue;
    for (int64_t i = 0; i < r->second.size(); ++i)
      if (const double x = std::abs(r->second.real(i)); std::isfinite(x)) largest = std::max(largest, x);
  }
  return largest;
}

// Compares every traced value that the model knows; prints the first layer at fault. True: no difference.
bool check_layers(const Compiled& c, const Traced& traced, const Values& reference, const Options& o) {
  std::map<const Value*, bool> wrong;
  size_t compared = 0;
  std::string others;  // layers of which nothing was
  double worst = 0;
  bool reported = false;
  for (size_t i = 0; i < c.plan.layers.size(); ++i) {
    const Layer& l = c.plan.layers[i];
    bool inputs_wrong = false, known = false;
    for (const Parameter& p : l.parameters)
      if (p.kind == Parameter::Kind::kInput && wrong[root_of(p.value)]) inputs_wrong = true;
    for (const Value* v : l.node->outputs) {
      const Tensor* got = written_by(i, v, traced);
      if (!got) continue;
      const auto want = reference.find(v->origin);
      if (want == reference.end()) continue;
      const Difference d = compare(*got, want->second, o, scale_of_sum(l, reference, o));
      known = true;
      if (o.page) o.page->add_layer(l.function, v->origin, d, want->second.shape());
      if (d.ok()) worst = std::max(worst, d.ratio);
      wrong[v] = !d.ok();
      if (d.ok() || inputs_wrong || reported) continue;
      reported = true;
      fmt::print("layer {} {} ({}): {}\n", i, l.function, l.kernel, l.summary);
      for (const std::string& s : l.node->sources) fmt::print("  node    {}\n", s);
      for (const Parameter& p : l.parameters)
        if (p.kind == Parameter::Kind::kInput)
          fmt::print("  input   {} {}\n", sinter::quoted(p.value->name), text(p.value->type));
      fmt::print("  output  {} {}\n", sinter::quoted(v->origin), type_text(want->second));
      fmt::print("  differs {}\n", text(d, want->second.shape()));
    }
    compared += known;
    if (!known) others += (others.empty() ? " (all but " : ", ") + l.function;
  }
  if (!reported)
    fmt::print("{} of {} layers compared{}, the worst at {:.3g} of the tolerance\n", compared,
               c.plan.layers.size(), others + (others.empty() ? "" : ")"), worst);
  return !reported;
}

bool check_outputs(const Graph& g, const std::vector<Tensor>& got, const std::vector<Tensor>& want,
                   const char* whose, const Options& o) {
  bool ok = true;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    if (!want[i] || !got[i]) continue;
    const Difference d = compare(got[i], want[i], o);
    if (o.page) o.page->add_output(g.outputs[i]->name, whose, d, want[i].shape());
    if (d.ok() && got[i].dtype() == want[i].dtype()) continue;
    ok = false;
    fmt::print("output {} differs from {}: {}\n", sinter::quoted(g.outputs[i]->name), whose,
               text(d, want[i].shape()));
  }
  return ok;
}

Tensor random_tensor(const DeclaredInput& d, std::mt19937& random) {
  std::vector<int64_t> shape;
  for (const auto& e : d.extents)
    shape.push_back(e.hi < 0 ? 1 : std::min(e.hi / e.step * e.step, std::max(e.lo, 4 * e.step)));
  if (d.frame) return random_bytes(shape, random);
  if (!d.elements) return random_tensor(d.dtype, shape, random);
  Tensor t(d.dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    t.set_integer(i, d.elements->lo +
                         static_cast<int64_t>(u * static_cast<double>(d.elements->hi - d.elements->lo + 1)));
  }
  return t;
}

// `outputs`: which of the model's. Frames are written to `scratch`, where case `number` has files of its own.
Case load_case(const Options& o, const fs::path& folder, const std::vector<DeclaredInput>& inputs,
               const std::vector<size_t>& outputs, const fs::path& scratch, size_t number) {
  Case c;
  if (!o.names.empty())
    for (const DeclaredInput& d : declared_inputs(o.model, import_options(o)))
      if (const fs::path file = folder / fmt::format("input_{}.pb", d.index); fs::exists(file))
        c.states[d.name] = read_tensor_file(file.string());
  c.name = folder.string();
  for (const DeclaredInput& d : inputs) {
    const fs::path file = folder / fmt::format("input_{}.pb", d.index);
    c.inputs.push_back(read_tensor_file(file.string()));
    c.files.push_back(fs::absolute(file).string());
    if (!d.frame) continue;
    c.inputs.back() = as_frame(c.inputs.back(), *d.frame);
    c.files.back() = (scratch / fmt::format("frame_{}_{}.pb", number, d.index)).string();
    write_tensor_pb(c.files.back(), c.inputs.back(), d.name);
  }
  check_inputs(inputs, c.inputs);
  for (const size_t i : outputs) {
    const fs::path file = folder / fmt::format("output_{}.pb", i);
    std::error_code ec;
    c.outputs.push_back(fs::exists(file, ec) ? read_tensor_file(file.string()) : Tensor());
  }
  return c;
}

std::vector<Case> cases_of(const Options& o, const std::vector<DeclaredInput>& inputs,
                           const fs::path& folder) {
  std::vector<Case> cases;
  std::vector<size_t> outputs;
  const std::vector<std::string> names = declared_outputs(o.model);
  for (size_t i = 0; o.post.empty() && i < names.size(); ++i)  // stored are the model's own outputs
    if (o.only.empty() || std::count(o.only.begin(), o.only.end(), names[i])) outputs.push_back(i);
  std::vector<DeclaredInput> needed = inputs;
  std::erase_if(needed, [](const DeclaredInput& d) { return !d.needed; });
  for (const std::string& d : o.data) cases.push_back(load_case(o, d, needed, outputs, folder, cases.size()));
  if (name_files(o.in, o.images)) {
    InputFiles f = read_inputs(inputs, o.in, o.images, folder);
    cases.push_back({"the given inputs", std::move(f.tensors), {}, std::move(f.files)});
  }
  if (!cases.empty()) return cases;
  constexpr size_t kSteps = 4;  // of a stream: every slot of most rings is read and written
  std::mt19937 random(o.seed);
  while (cases.size() < (o.names.empty() ? 1 : kSteps)) {
    Case& c = cases.emplace_back();
    c.name = fmt::format("random inputs, seed {}", o.seed);
    for (size_t i = 0; i < needed.size(); ++i) {
      if (size_of(needed[i].dtype) == 0)
        throw Refusal(fmt::format("input {}: no random values of its type", sinter::quoted(needed[i].name)));
      c.inputs.push_back(random_tensor(needed[i], random));
      const fs::path file = folder / fmt::format("random_{}_{}.pb", cases.size(), i);
      write_tensor_pb(file, c.inputs.back(), needed[i].name);
      c.files.push_back(file.string());
    }
  }
  return cases;
}

bool same_shapes(const Case& a, const Case& b) {
  for (size_t i = 0; i < a.inputs.size(); ++i)
    if (a.inputs[i].shape() != b.inputs[i].shape()) return false;
  return true;
}

void widen_tolerance(Options& o, const Graph& g) {
  double least = o.fp16 ? 2 * o.fp16_error : o.cache == "int8" ? 0.05 : o.cache == "f16" ? 2e-3 : 0;
  for (const auto& v : g.values) {
    if (v->type.dtype == DType::kF16) least = std::max(least, 0.02);
    if (v->type.dtype == DType::kBF16) least = std::max(least, 0.1);
  }
  // Products that may round their rows to bytes, a block at a time: an error of 1 in 254 of each.
  for (const auto& n : g.nodes)
    if (n->op->name == std::string_view("MatMulNBits") && n->attributes.integer("accuracy_level", 0) == 4)
      least = std::max(least, 0.03);
  o.rtol = std::max(o.rtol, least);
  o.atol = std::max(o.atol, least);
}

// What a run left: the outputs that the caller takes (others are empty) and the trace.
struct Left {
  std::vector<Tensor> outputs;
  Traced traced;
};

// Runs the built program once, with a step for each of the cases.
std::vector<Left> run_traced(const Compiled& c, Machine& machine, const fs::path& program,
                             const std::vector<const Case*>& cases, const fs::path& folder) {
  const auto steps = static_cast<int>(cases.size());
  const auto in_folder = [&](const std::string& name, int step) {
    return runner::file_of_step((folder / name).string(), step, steps);
  };
  ProgramRun r;
  r.steps = steps;
  r.trace = (folder / "trace_%").string();
  if (!c.options.bundle.empty()) r.model = c.options.name;
  if (c.options.weights_in_file)
    r.weights = (folder / "bundle" / (file_prefix(c.options) + ".weights")).string();
  for (size_t i = 0; i < cases[0]->files.size(); ++i) {
    const std::string name = fmt::format("in_{}_%.pb", i);
    for (int k = 0; steps > 1 && k < steps; ++k)
      write_tensor_pb(in_folder(name, k), cases[static_cast<size_t>(k)]->inputs[i], "");
    r.in.push_back({"", steps > 1 ? (folder / name).string() : cases[0]->files[i]});
  }
  const std::vector<Member> outs = output_members(*c.graph, c.plan.states);
  for (const Member& m : outs) r.out.push_back({"", (folder / fmt::format("out_{}_%.pb", m.index)).string()});
  machine.execute(program, r);
  std::vector<Left> left;
  for (int k = 0; k < steps; ++k) {
    Left& l = left.emplace_back();
    l.outputs.resize(c.imported->outputs.size());
    for (const Member& m : outs)
      l.outputs[m.index] = read_tensor_pb(in_folder(fmt::format("out_{}_%.pb", m.index), k));
    l.traced = read_trace(in_folder("trace_%", k));
    restore_axes(c, l.traced);
  }
  return left;
}

// The states as the meaning has them before a step, by link.
class Carried {
 public:
  Carried(const Compiled& c, const Case& first) : states_(c.plan.states.states) {
    std::map<const Symbol*, int64_t> extents;
    size_t next = 0;
    for (size_t i = 0; i < c.imported->inputs.size(); ++i) {
      if (c.plan.states.of_input(i)) continue;
      const Shape& shape = c.imported->inputs[i]->type.shape;
      const std::vector<int64_t>& given = first.inputs[next++].shape();
      for (size_t d = 0; d < shape.size(); ++d) {
        std::vector<SymbolPtr> symbols;
        shape[d].collect_symbols(symbols);
        if (symbols.size() == 1 && Dim(symbols[0]) == shape[d]) extents[symbols[0].get()] = given[d];
      }
    }
    for (const State& s : states_) {
      const Value& input = *c.imported->inputs[s.link.input];
      const TensorType& type = input.type;
      if (input.initial) {
        values_.push_back(*input.initial);
        continue;
      }
      std::vector<int64_t> shape;
      for (const Dim& d : type.shape)
        shape.push_back(d.evaluate([&](const Symbol& symbol) {
          const auto at = extents.find(&symbol);
          return at == extents.end() ? symbol.range.lo : at->second;
        }));
      values_.emplace_back(type.dtype, shape);
    }
  }

  // The case with all inputs of the graph.
  Case whole(const Graph& g, const Case& data) const {
    Case c = data;
    for (size_t i = 0; i < g.inputs.size(); ++i)
      for (size_t k = 0; k < states_.size(); ++k)
        if (states_[k].link.input == i)
          c.inputs.insert(c.inputs.begin() + static_cast<std::ptrdiff_t>(i), values_[k]);
    return c;
  }
  // Whether what the case has stored of the states agrees with these.
  bool agrees(const Case& data, const Options& o) const {
    size_t found = 0;
    for (size_t k = 0; k < states_.size(); ++k) {
      const StateLink& link = states_[k].link;
      const auto at = data.states.find(link.piece ? link.piece->of : link.input_name);
      if (at == data.states.end()) continue;  // a count of rows is in no file
      if (link.piece && at->second.shape() != link.piece->whole) return false;
      const Tensor stored =
          link.piece ? cut(at->second, *link.piece).reshaped(values_[k].shape()) : at->second;
      if (!compare(stored, values_[k], o).ok()) return false;
      ++found;
    }
    return states_.empty() || found > 0;
  }
  void step(const std::vector<Tensor>& outputs) {
    for (size_t k = 0; k < states_.size(); ++k) values_[k] = outputs[states_[k].link.output];
  }

 private:
  const std::vector<State>& states_;
  std::vector<Tensor> values_;
};

// Compares what a case's run left with what it means. `carried` goes one step on.
bool check_case(const Compiled& c, const Case& given, const Left& left, Carried& carried, const Options& o) {
  const bool stored_states = carried.agrees(given, o);
  const Case data = carried.whole(*c.imported, given);
  Values reference;
  const std::vector<Tensor> results = meaning(c, data, written_values(c, left.traced, data), o, reference);
  carried.step(results);
  const bool layers = check_layers(c, left.traced, reference, o);
  const bool outputs = check_outputs(*c.imported, left.outputs, results, "the model's meaning", o);
  const bool compared = stored_states && !given.outputs.empty();
  const bool stored =
      !compared || check_outputs(*c.imported, left.outputs, given.outputs, "the stored output", o);
  if (layers && outputs && stored)
    fmt::print("{} outputs as expected{}\n", output_members(*c.graph, c.plan.states).size(),
               given.outputs.empty() ? ""
               : compared            ? ", also as stored"
                                     : "; the stored ones are of other states");
  return layers && outputs && stored;
}

// The model with its trace, alone or as a part of the bundle of several.
Compiled compile_traced(const Options& o, const ImportOptions& import) {
  if (!o.pipeline) {
    ModelOptions traced = o;
    traced.trace = true;
    return compile_model(traced, import, true);
  }
  Pipeline p = *o.pipeline;
  for (ModelOptions& each : p.options) each.trace = true;
  std::vector<ImportOptions> imports = import_options(p);
  imports[o.part] = import;
  CompiledPipeline all = compile_pipeline(p, imports, true);
  Compiled c = std::move(all.models[o.part]);
  c.files = std::move(all.files);
  return c;
}

// Builds the model for the cases' shapes and checks each of them.
bool verify_group(Options o, ImportOptions import, const std::vector<DeclaredInput>& declared,
                  const std::vector<const Case*>& cases, bool shapes_from_data) {
  size_t next = 0;
  for (const DeclaredInput& d : declared)
    if (d.needed && shapes_from_data) import.input_shapes[d.name] = cases[0]->inputs[next++].shape();
  const Compiled c = compile_traced(o, import);
  for (const Case* data : cases) check_inputs(inferred_inputs(*c.graph, c.plan.states), data->inputs);
  widen_tolerance(o, *c.imported);
  if (o.page) o.page->begin(c, o);
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "bundle", program = folder.path() / "program";
  write_bundle(c.files, dir);
  const Toolchain tc = toolchain_for(*c.target, !is_elsewhere(o.on));
  const std::unique_ptr<Machine> machine = machine_of(o.on, tc, o.say);
  build_program(dir, file_prefix(c.options), tc, folder.path(), program);
  const CustomMeaning custom(*c.target, tc, *machine, folder.path() / "custom");
  bool ok = true;
  Carried carried(c, *cases[0]);
  std::vector<std::vector<const Case*>> runs;  // a stream is one
  for (const Case* data : cases) {
    if (runs.empty() || o.names.empty()) runs.emplace_back();
    runs.back().push_back(data);
  }
  for (const auto& steps : runs) {
    const std::vector<Left> left = run_traced(c, *machine, program, steps, folder.path());
    for (size_t k = 0; k < steps.size(); ++k) {
      const std::string name = steps[k]->name + (o.names.empty() ? "" : fmt::format(", step {}", k));
      fmt::print("{}:\n", name);
      if (o.page) o.page->add_case(name);
      ok = check_case(c, *steps[k], left[k], carried, o) && ok;
    }
  }
  return ok;
}

int verify(const Options& given) {
  Options o = given;
  VerifiedReport page;
  if (!o.html.empty()) {
    require_page_libraries();
    o.page = &page;
  }
  const ImportOptions import = import_options(o);
  o.names = state_names(o, import);
  const std::vector<DeclaredInput> declared = caller_inputs(o, import);
  if (declared_inputs(o.model, import).empty()) import_model(fs::path(o.model), import);
  const TemporaryFolder folder;
  const std::vector<Case> cases = cases_of(o, declared, folder.path());
  const bool shapes_from_data = !o.data.empty() || name_files(o.in, o.images);
  std::vector<std::vector<const Case*>> groups;
  for (const Case& c : cases) {
    auto it = std::find_if(groups.begin(), groups.end(),
                           [&](const auto& g) { return !o.names.empty() || same_shapes(*g[0], c); });
    if (it == groups.end()) it = groups.emplace(groups.end());
    it->push_back(&c);
  }
  bool ok = true;
  for (const auto& group : groups) ok = verify_group(o, import, declared, group, shapes_from_data) && ok;
  if (o.page) write_output_file(o.html, report_page(page.report()));
  return ok ? kExitOk : kExitDifference;
}

int verify_several(const Options& given) {
  if (!given.in.empty() || !given.images.empty())
    throw UsageError("--in and --image are for one model; of several, give --data MODEL:DIR");
  if (!given.html.empty()) throw UsageError("--html is for one model");
  const Pipeline p = pipeline_of(given, given.several.models, given.several.alive);
  int code = kExitOk;
  for (size_t i = 0; i < p.names.size(); ++i) {
    Options o = given;
    static_cast<ModelOptions&>(o) = p.options[i];
    o.pipeline = &p;
    o.part = i;
    fmt::print("{}: ", p.options[i].name);
    if (const int found = verify(o); found != kExitOk) code = found;
  }
  return code;
}

}  // namespace

std::function<int()> declare_verify(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o, true, &o->several);
  app.add_option("--in", o->in, "[NAME=]FILE for the next input, instead of --data")->allow_extra_args(false);
  app.add_option("--image", o->images, "how a picture becomes an input, as for sinter run")
      ->allow_extra_args(false);
  app.add_option("--seed", o->seed, "of the random inputs where no data are given");
  app.add_option("--rtol", o->rtol, "tolerance relative to each element")->capture_default_str();
  app.add_option("--atol", o->atol, "tolerance relative to the tensor's greatest element")
      ->capture_default_str();
  app.add_option("--html", o->html,
                 "write a page to look at, as sinter inspect does: with each layer's error in its tolerance");
  add_on_option(app, o->on);
  return [o, &app] {
    require_target(app, o->on);
    if (o->several.models.size() > 1) return verify_several(*o);
    if (!o->several.alive.empty()) throw UsageError("--alive is for several models");
    return verify(*o);
  };
}

}  // namespace sinter
