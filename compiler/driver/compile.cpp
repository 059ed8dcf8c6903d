#include "driver/compile.h"

#include <algorithm>

#include "driver/answers.h"
#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/samples.h"
#include "driver/state_names.h"
#include "driver/tuning_file.h"
#include "emit/printer.h"
#include "ir/error.h"
#include "ir/nearest.h"
#include "ir/words.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/random_stream.h"
#include "plan/emitted.h"
#include "plan/growth.h"
#include "plan/steps.h"
#include "plan/strips.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::string plain(const std::string& s) {
  const bool ok = !s.empty() && s.size() < 200 && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-.,=/:+@").find(c) != std::string_view::npos;
  });
  return ok ? s : sinter::quoted(s);
}

// NAME=FILE with the file's name alone.
std::string without_folders(const std::string& option) {
  const size_t slash = option.rfind('/'), equal = option.find('=');
  const bool path = slash != std::string::npos && equal != std::string::npos && slash > equal;
  return plain(path ? option.substr(0, equal + 1) + option.substr(slash + 1) : option);
}

}  // namespace

std::string bundle_name(const ModelOptions& o) {
  const std::string given = o.name.empty() ? fs::path(o.model).stem().string() : o.name;
  const std::string name = identifier(given);
  std::string free = is_reserved_file(name) ? "n_" + name : name;
  if (o.name.empty() || free == o.name) return free;
  throw UsageError(name == o.name
                       ? fmt::format("--name {0}: {0}.h is a header of the system, or {0} a target of CMake; "
                                     "{1} would do",
                                     name, free)
                       : fmt::format("--name {}: not fit to be a prefix of C names; {} would be",
                                     sinter::quoted(o.name), free));
}

std::string banner_text(const std::string& text) { return plain(text); }
std::string banner_file(const std::string& path) { return plain(fs::path(path).filename().string()); }

std::string banner_command(const ModelOptions& o, const std::string& models, const std::string& target,
                           const std::string& name) {
  std::string s = models + " --target " + target + " --name " + name;
  for (const std::string& d : o.dims) s += " --dim " + plain(d);
  for (const std::string& c : o.constants) s += " --const " + without_folders(c);
  if (o.max_trips != INT64_MAX) s += fmt::format(" --max-trips {}", o.max_trips);
  for (const std::string& n : o.only) s += " --only " + plain(n);
  for (const std::string& n : o.states) s += " --state " + plain(n);
  for (const std::string& n : o.initial) s += " --state-init " + without_folders(n);
  if (o.cache != "f32") s += " --cache " + o.cache;
  if (o.random != "fixed") s += " --random " + o.random;
  for (const std::string& w : o.pre) s += " --pre " + plain(w);
  for (const std::string& w : o.post) s += " --post " + plain(w);
  if (o.weights != "embed") s += " --weights " + o.weights;
  if (!o.custom_ops.empty()) s += " --custom-ops " + plain(fs::path(o.custom_ops).filename().string());
  if (!o.tuning.empty())
    s += fmt::format(" --tuning {} (sha256 {})", plain(fs::path(o.tuning).filename().string()),
                     tuning_file_hash(o.tuning).substr(0, 16));
  if (o.exact) s += " --exact";
  if (o.small_weights) s += " --small-weights";
  if (o.fast_weights) s += " --fast-weights";
  if (!o.max_weights.empty()) s += " --max-weights " + plain(o.max_weights);
  if (o.fp16) s += " --fp16";
  if (o.fp16 && o.fp16_error != 1e-2) s += fmt::format(" --fp16-error {}", o.fp16_error);
  for (const std::string& n : o.keep_f32) s += " --keep-f32 " + plain(n);
  if (o.threads > 1) s += " --threads " + std::to_string(o.threads);
  if (o.trace) s += " --trace";
  return s;
}

namespace {

void refuse_free_dims(const Graph& g) {
  std::vector<std::string> problems;
  std::vector<const Symbol*> seen;
  for (const Value* v : g.inputs)
    for (const Dim& d : v->type.shape) {
      std::vector<SymbolPtr> symbols;
      d.collect_symbols(symbols);
      for (const SymbolPtr& s : symbols) {
        if (s->range.hi != Interval::kUnbounded || std::count(seen.begin(), seen.end(), s.get())) continue;
        seen.push_back(s.get());
        problems.push_back(
            fmt::format("the dim {} ({}) is free: fix it with --dim {}=VALUE, or bound it with "
                        "--dim \"{}<=MAX\"",
                        sinter::quoted(s->name), s->origin, s->name, s->name));
      }
    }
  if (!problems.empty()) throw Refusal(std::move(problems));
}

PassHooks hooks_of(const ModelOptions& o) {
  PassHooks h;
  h.stop_after = o.stop_after;
  h.print_after = o.print_after;
  h.skip.insert(o.skip_pass.begin(), o.skip_pass.end());
  h.verify_each = o.verify_each;
  h.time = o.time_passes;
  h.print = o.say;
  std::vector<std::string> named = o.print_after;
  named.insert(named.end(), o.skip_pass.begin(), o.skip_pass.end());
  if (!o.stop_after.empty()) named.push_back(o.stop_after);
  std::vector<std::string> passes;
  for (const Pass& p : all_passes()) passes.emplace_back(p.name);
  for (const Step& step : all_steps()) passes.emplace_back(step.name);
  for (const std::string& n : named)
    if (std::find(passes.begin(), passes.end(), n) == passes.end())
      throw UsageError(fmt::format("there is no pass {}; see sinter passes{}", sinter::quoted(n),
                                   did_you_mean(n, passes)));
  return h;
}

// The hooks without what they say of the planner's steps.
PassHooks of_passes(PassHooks h) {
  for (const Step& step : all_steps()) {
    h.skip.erase(step.name);
    std::erase(h.print_after, step.name);
    if (h.stop_after == step.name) h.stop_after.clear();
  }
  return h;
}

void plan_once(Compiled& c, int threads, bool spend, Emitted* emitted = nullptr) {
  if (!emitted) c.weights = WeightStore();
  c.plan = make_plan(*c.graph, *c.target, c.decisions, c.weights, threads, spend, emitted);
}

// Plans for one thread, until the arena keeps its budget and the packed weights theirs.
void plan_model(Compiled& c, int64_t most_weights, bool asked, const Say& say) {
  const auto excess = [&] { return weights_bytes(c.weights) - most_weights; };
  c.weights = WeightStore();
  Emitted emitted;
  for (;;) {
    plan_once(c, 1, true, &emitted);
    if (!shrink_weights(*c.graph, c.plan, excess(), c.decisions) &&
        !drop_half_weights(*c.graph, c.plan, c.decisions) && !limit_scratch(*c.graph, c.plan, c.decisions))
      break;
    read_pieces(*c.graph, *c.target, c.decisions);
    place_concats(*c.graph, *c.target, c.decisions);
  }
  if (asked && excess() > 0)
    say(fmt::format(
        "sinter: warning: the weights take {} bytes as they are packed, {} more than the budget\n",
        weights_bytes(c.weights), excess()));
}

// Plans the same algorithms, which one thread's budget has left, for several: any number makes the same bits.
void share_plan(Compiled& c, const ModelOptions& o, int64_t max_ram) {
  share_strips(*c.graph, *c.target, c.decisions, o.threads);
  if (!o.small_weights) store_weight_parts(*c.graph, *c.target, o.threads, c.decisions);
  plan_once(c, o.threads, true);
  if (c.plan.arena_bytes > max_ram) plan_once(c, o.threads, false);
}

bool has_half_constants(const Graph& g) {
  return std::any_of(g.values.begin(), g.values.end(),
                     [](const auto& v) {
                       return v->data && is_float(v->type.dtype) && size_of(v->type.dtype) == 2;
                     }) ||
         std::any_of(g.nodes.begin(), g.nodes.end(), [](const auto& n) {
           return std::any_of(n->bodies.begin(), n->bodies.end(),
                              [](const auto& b) { return has_half_constants(*b); });
         });
}

// --fp16: the samples with which the pass measures, and the nodes that it must leave.
void compute_halves(const ModelOptions& o, const ImportOptions& import, const Target& target, const Graph& g,
                    PassOptions& passes) {
  for (const std::string& name : o.keep_f32)
    if (std::none_of(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n->name == name; }))
      throw UsageError(fmt::format("--keep-f32 {}: the model has no such node", sinter::quoted(name)));
  if (!o.fp16) return;
  if (!target.features.halves)
    o.say(fmt::format(
        "sinter: note: {} has no arithmetic of halves: --fp16 stores the weights of products in 16 bits "
        "there, and computes float32; `sinter targets` lists those that have\n",
        target.name));
  passes.halves = target.features.halves;
  passes.half_weights = !target.features.halves;
  passes.half_error = o.fp16_error;
  passes.keep_f32.insert(o.keep_f32.begin(), o.keep_f32.end());
  passes.samples = samples_of(o, import, g);
}

// What --fp16 measured, as far as somebody should know of it.
void say_what_stays(const Graph& g, const PassOptions& passes, const Say& say) {
  const HalfReport& report = *passes.half_report;
  if (!report.unmeasured.empty())
    say(
        fmt::format("sinter: warning: --fp16: the layers' errors can't be measured ({}); give a sample with "
                    "--data, and compare with sinter verify\n",
                    report.unmeasured));
  std::string names;
  int count = 0, for_outputs = 0;
  for (const auto& n : g.nodes) {
    const bool own = n->freedom.half_error > passes.half_error;
    if (!own && !n->attributes.has("no_halves")) continue;
    for_outputs += !own;
    if (++count <= 8)
      names += fmt::format("{}{} ({:.2g})", names.empty() ? "" : ", ", label(*n), n->freedom.half_error);
  }
  if (count > 0)
    say(fmt::format(
        "sinter: note: --fp16: {} layers stay in float32, {} of an error in halves above "
        "{}, {} whose errors reach an output: {}{}\n",
        count, count - for_outputs, passes.half_error, for_outputs, names, count > 8 ? " ..." : ""));
}

// What the bundle is called and says of itself.
BundleOptions bundle_options(const ModelOptions& o, const Target& target) {
  BundleOptions b;
  b.name = bundle_name(o);
  b.model_file = banner_file(o.model);
  b.command = banner_command(o, b.model_file, target.name, b.name);
  b.weights_in_file = o.weights == "file";
  b.weights_in_c = o.weights == "c";
  b.trace = o.trace;
  b.threads = o.threads;
  if (!o.max_stack.empty()) b.max_stack = parse_size("--max-stack", o.max_stack);
  return b;
}

// The file becomes the graph as the model means it, every extent bounded; which outputs are the next run's
// inputs.
StateLinks read_model(const ModelOptions& o, const ImportOptions& import, Compiled& c) {
  const std::vector<FrameWords> frames = frames_of(o, import);
  const std::vector<AnswerWords> answers = answers_of(o);
  Model model = import_model(fs::path(o.model), with_pictures(o, import, frames));
  for (const std::string& w : model.warnings) o.say(fmt::format("sinter: warning: {}: {}\n", o.model, w));
  c.graph = std::move(model.graph);
  c.options.class_names = std::move(model.class_names);
  c.options.model_hash = model.sha256;
  refuse_free_dims(*c.graph);
  StateLinks states = state_links(*c.graph, o, import);
  check_states(*c.graph, states);
  check_initial(*c.graph, states);
  split_states(*c.graph, states);
  count_rows(*c.graph, states);
  if (o.random == "state" && draw_from_stream(*c.graph))  // in front of all others in the buffer
    states.insert(states.begin(), {c.graph->outputs.size() - 1,
                                   c.graph->inputs.size() - 1,
                                   c.graph->outputs.back()->name,
                                   c.graph->inputs.back()->name,
                                   {},
                                   true});
  else if (o.random == "state")
    o.say(fmt::format("sinter: warning: {}: --random state: nothing in the model is random\n", o.model));
  add_frames(*c.graph, frames);
  add_answers(*c.graph, answers, frames, o, states);
  for (const FrameWords& w : frames)
    c.options.frames[w.input] = {text(w), frame_text(w), w.rows(), w.width, layout_of(*w.format).bytes};
  c.stored_weights = constant_bytes(*c.graph);
  return states;
}

// The passes; the bytes that packed weights may take.
int64_t rewrite_graph(const ModelOptions& o, const ImportOptions& import, const PassHooks& hooks,
                      Compiled& c) {
  c.half_weights = !o.fast_weights && (o.fp16 || has_half_constants(*c.graph));
  PassOptions passes;
  passes.exact = o.exact;
  passes.tile_matrices = c.target->features.tile_matrices;
  // Winograd's floats may be faster where no instruction sums products of bytes, but they take many times as
  // much.
  passes.byte_products = c.target->features.dot_products || !o.fast_weights;
  HalfReport report;
  passes.half_report = &report;
  compute_halves(o, import, *c.target, *c.graph, passes);
  run_passes(*c.graph, passes, of_passes(hooks));
  if (o.fp16) say_what_stays(*c.graph, passes, o.say);
  c.options.half_errors = report.outputs;
  return weight_budget(o, c.stored_weights);
}

// The steps: how each layer is computed, and where its tensors lie beside others.
void decide_layers(const ModelOptions& o, const Tuning& tuning, const StateLinks& states, int64_t budget,
                   const PassHooks& hooks, Compiled& c) {
  run_steps(*c.graph,
            {*c.target, tuning, 0, o.small_weights, c.half_weights, budget, states, o.cache,
             o.price_weights ? &c.larger_budgets : nullptr},
            c.decisions, hooks);
}

// Every layer's text and packed weights, and a place for every tensor.
void plan_memory(const ModelOptions& o, int64_t budget, Compiled& c) {
  const int64_t max_ram = o.max_ram.empty() ? INT64_MAX : parse_size("--max-ram", o.max_ram);
  plan_model(c, budget, o.small_weights || !o.max_weights.empty(), o.say);
  if (o.threads > 1) share_plan(c, o, max_ram);
  if (c.plan.arena_bytes > max_ram)
    refuse("the arena takes {} bytes, --max-ram allows {}; at least {} are alive at once", c.plan.arena_bytes,
           max_ram, c.plan.live_bytes);
}

Compiled compile_without_files(const ModelOptions& o, const ImportOptions& import, const Tuning& tuning,
                               bool keep_imported) {
  if (o.threads < 1 || o.threads > kMostThreads)
    throw UsageError(fmt::format("--threads: 1 to {}", kMostThreads));
  const PassHooks hooks = hooks_of(o);
  Compiled c;
  c.target = &target_of(o);
  c.import = import;
  c.options = bundle_options(o, *c.target);
  const StateLinks states = read_model(o, import, c);
  if (keep_imported) c.imported = c.graph->clone();
  const int64_t budget = rewrite_graph(o, import, hooks, c);
  decide_layers(o, tuning, states, budget, hooks, c);
  plan_memory(o, budget, c);
  c.plan.states = plan_states(*c.graph, c.plan, states);
  return c;
}

}  // namespace

Compiled compile_model(const ModelOptions& o, const ImportOptions& import, bool keep_imported) {
  return compile_tuned(o, import, read_tuning(o.tuning, target_of(o), o.say), keep_imported);
}

Compiled compile_tuned(const ModelOptions& o, const ImportOptions& import, const Tuning& tuning,
                       bool keep_imported) {
  Compiled c = compile_without_files(o, import, tuning, keep_imported);
  c.files = make_bundle(*c.graph, c.plan, *c.target, c.weights, c.options);
  return c;
}

Compiled compile_part(const ModelOptions& o, const ImportOptions& import, bool keep_imported) {
  return compile_without_files(o, import, read_tuning(o.tuning, target_of(o), o.say), keep_imported);
}

std::vector<std::string> input_names(const Graph& g) {
  std::vector<std::string> names;
  for (const Value* v : g.inputs) names.push_back(v->name);
  return names;
}
std::vector<std::string> output_names(const Graph& g) {
  std::vector<std::string> names;
  for (const Value* v : g.outputs) names.push_back(outside_name(*v));
  return names;
}

}  // namespace sinter
