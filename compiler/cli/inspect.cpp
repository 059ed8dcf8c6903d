// sinter inspect: what a model becomes: its layers with shapes, work and kernels, and where its tensors lie.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/compile.h"
#include "driver/errors.h"
#include "driver/output_file.h"
#include "emit/code.h"
#include "ir/error.h"
#include "ops/op.h"
#include "plan/cost.h"
#include "report/report.h"

namespace sinter {
namespace {

struct Options : ModelOptions {
  std::string html, json;
};

std::string where(const Plan& plan, const Value* v) {
  const auto it = plan.places.find(v);
  if (it == plan.places.end()) return "-";
  if (it->second.kind != Place::Kind::kArena) return where_text(plan, it->second);
  return fmt::format("{}..{}", it->second.offset, it->second.offset + it->second.bytes);
}

const Value* first_output(const Layer& l) {
  for (const Value* v : l.node->outputs)
    if (v) return v;
  return nullptr;
}

std::string cut(const std::string& s, size_t n) { return s.size() <= n ? s : s.substr(0, n - 3) + "..."; }

// With --fp16: what a layer computes in, and what halves cost it or would.
std::string precision(const Node& n) {
  const Freedom& f = n.freedom;
  std::string s = f.halves == Halves::kComputed ? "float16"
                  : f.halves == Halves::kStored ? "float32 of float16 tensors"
                                                : "float32";
  if (f.half_error >= 0)
    s += fmt::format(", {} {:.2g} of its largest result",
                     f.halves == Halves::kNone ? "in halves it would be off by" : "off by", f.half_error);
  if (const std::string why = n.attributes.text("no_halves", ""); !why.empty()) s += ", " + why;
  return s;
}
bool uses_halves(const Compiled& c) {
  return std::any_of(c.graph->nodes.begin(), c.graph->nodes.end(), [](const auto& n) {
    return n->freedom.halves != Halves::kNone || n->freedom.half_error >= 0;
  });
}
// What an output is off, as --fp16 measured it; empty where it did not.
std::string output_error(const Compiled& c, size_t i) {
  const std::vector<double>& e = c.options.half_errors;
  return i < e.size() && e[i] >= 0 ? fmt::format("off by {:.2g} of its largest", e[i]) : "";
}

// The branches of an If that end the run with an error, and why.
void print_unreachable(const Node& n) {
  for (size_t k = 0; k < n.bodies.size(); ++k)
    if (const std::string& why = n.bodies[k]->unreachable; !why.empty())
      fmt::print("      its {} branch is an error of the run: {}\n", k == 0 ? "then" : "else", why);
}

void print_table(const Compiled& c, const std::vector<WeightPrice>& prices) {
  const StatePlan& states = c.plan.states;
  for (const Member& m : input_members(*c.graph, states))
    fmt::print("input  {} {}\n", sinter::quoted(m.model_name), text(m.value->type));
  for (const Member& m : output_members(*c.graph, states)) {
    const std::string off = output_error(c, m.index);
    fmt::print("output {} {}{}\n", sinter::quoted(m.model_name), text(m.value->type),
               off.empty() ? "" : ", " + off);
  }
  for (const State& s : states.states) {
    const std::string begins = beginning(*c.graph, s);
    fmt::print("state  {} {} <- {}, {}{}\n", sinter::quoted(s.link.input_name),
               text(c.graph->inputs[s.link.input]->type), sinter::quoted(s.link.output_name), text(states, s),
               begins.empty() ? "" : ", " + begins);
  }
  fmt::print("\n{:>4}  {:<34} {:<18} {:<26} {:>9} {:>9} {:<10} {:>10}  {}\n", "#", "layer", "kernel",
             "output", "MFLOP", "us", "waits for", "weights", "arena");
  const CoreSpeed& machine = c.target->speed;
  const std::vector<LayerCost> costs = layer_costs(c.plan, *c.target);
  double flops = 0, cycles = 0;
  const bool halves = uses_halves(c);
  for (size_t i = 0; i < c.plan.layers.size(); ++i) {
    const Layer& l = c.plan.layers[i];
    const Value* out = first_output(l);
    flops += l.flops;
    cycles += costs[i].cycles;
    fmt::print("{:>4}  {:<34} {:<18} {:<26} {:>9.3f} {:>9.1f} {:<10} {:>10}  {}\n", i, cut(l.function, 34),
               cut(l.kernel, 18), out ? cut(text(out->type.shape), 26) : "", l.flops / 1e6,
               costs[i].cycles / machine.mhz, text(costs[i].bound()), costs[i].weight_bytes,
               out ? where(c.plan, out) : "");
    fmt::print("      {}\n", l.summary);
    if (halves) fmt::print("      {}\n", precision(*l.node));
    // What pass fuse_attention says of a Softmax that it left.
    if (const std::string why = l.node->attributes.text("no_attention", ""); !why.empty())
      fmt::print("      no attention: {}\n", why);
    print_unreachable(*l.node);
  }
  fmt::print("\n{} layers for {}, {:.3f} MFLOP\n", c.plan.layers.size(), c.target->name, flops / 1e6);
  fmt::print("arena    {:>12} bytes; {} are alive at once at most\n", c.plan.arena_bytes, c.plan.live_bytes);
  if (!states.empty()) fmt::print("state    {:>12} bytes\n", states.bytes);
  fmt::print("weights  {:>12} bytes\n", weights_bytes(c.weights));
  fmt::print(
      "modelled {:>12.3f} ms on one core of {} MHz, {:.2f} Mcycles; boards take 1.15 to 2 times as long\n",
      cycles / machine.mhz / 1e3, machine.mhz, cycles / 1e6);
  const std::vector<std::string> changes = advice(c, costs, prices);
  if (!changes.empty()) fmt::print("\nWhat would help most:\n");
  for (const std::string& change : changes) fmt::print("  {}\n", change);
  if (!prices.empty()) fmt::print("\nWhat more flash for the weights would buy (modelled):\n");
  for (const WeightPrice& p : prices) fmt::print("  {}\n", text(p, *c.target, cycles));
}

}  // namespace

std::function<int()> declare_inspect(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o);
  app.add_option(
      "--html", o->html,
      "write a page to look at: the layers as a graph, their modelled time, memory over time, a roofline");
  app.add_option(
      "--json", o->json,
      "write the layers, their memory, modelled time and what else could compute them to this file");
  return [o] {
    o->price_weights = true;
    const ImportOptions import = import_options(*o);
    const Compiled c = compile_model(*o, import);
    const std::vector<WeightPrice> prices = weight_prices(c, *o, import);
    print_table(c, prices);
    if (o->html.empty() && o->json.empty()) return kExitOk;
    const nlohmann::ordered_json report = report_of(c, prices);
    if (!o->html.empty()) write_output_file(o->html, report_page(report));
    if (!o->json.empty()) write_output_file(o->json, report_text(report));
    return kExitOk;
  };
}

}  // namespace sinter
