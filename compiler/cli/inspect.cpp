// sinter inspect: what a model becomes: its layers with shapes, work and kernels, and where its tensors lie.
#include <algorithm>
#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/compile.h"
#include "driver/errors.h"
#include "driver/output_file.h"
#include "emit/code.h"
#include "ir/error.h"
#include "ops/op.h"

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

int64_t weight_bytes(const Layer& l) {
  int64_t n = 0;
  for (const Parameter& p : l.parameters)
    if (p.kind == Parameter::Kind::kWeights) n += p.bytes;
  return n;
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

void print_table(const Compiled& c) {
  const StatePlan& states = c.plan.states;
  for (const Member& m : input_members(*c.graph, states))
    fmt::print("input  {} {}\n", sinter::quoted(m.model_name), text(m.value->type));
  for (const Member& m : output_members(*c.graph, states)) {
    const std::string off = output_error(c, m.index);
    fmt::print("output {} {}{}\n", sinter::quoted(m.model_name), text(m.value->type),
               off.empty() ? "" : ", " + off);
  }
  for (const State& s : states.states)
    fmt::print("state  {} {} <- {}, {}\n", sinter::quoted(s.link.input_name),
               text(c.graph->inputs[s.link.input]->type), sinter::quoted(s.link.output_name),
               text(states, s));
  fmt::print("\n{:>4}  {:<34} {:<18} {:<26} {:>9} {:>10}  {}\n", "#", "layer", "kernel", "output", "MFLOP",
             "weights", "arena");
  double flops = 0;
  const bool halves = uses_halves(c);
  for (size_t i = 0; i < c.plan.layers.size(); ++i) {
    const Layer& l = c.plan.layers[i];
    const Value* out = first_output(l);
    flops += l.flops;
    fmt::print("{:>4}  {:<34} {:<18} {:<26} {:>9.3f} {:>10}  {}\n", i, cut(l.function, 34), cut(l.kernel, 18),
               out ? cut(text(out->type.shape), 26) : "", l.flops / 1e6, weight_bytes(l),
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
}

// A rectangle of the memory plan: bytes over layers.
struct Block {
  std::string label;
  size_t first, last;
  int64_t offset, bytes;
  bool scratch;
};

std::vector<Block> blocks_of(const Plan& plan) {
  std::vector<Block> blocks;
  std::map<const Value*, size_t> by_value;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    size_t scratch = 0;
    for (const Parameter& p : plan.layers[i].parameters) {
      if (p.kind == Parameter::Kind::kScratch) {
        blocks.push_back(
            {plan.layers[i].function + ": " + p.name, i, i, plan.scratch[i][scratch++], p.bytes, true});
        continue;
      }
      if (p.kind != Parameter::Kind::kInput && p.kind != Parameter::Kind::kOutput) continue;
      const Value* v = p.value;
      while (v->producer && is_view(*v->producer)) v = v->producer->inputs[0];
      const auto place = plan.places.find(v);
      if (place == plan.places.end() || place->second.kind != Place::Kind::kArena) continue;
      const auto [it, fresh] = by_value.try_emplace(v, blocks.size());
      if (fresh)
        blocks.push_back(
            {v->name + " " + text(v->type), i, i, place->second.offset, place->second.bytes, false});
      else
        blocks[it->second].last = i;
    }
  }
  return blocks;
}

std::string escaped(const std::string& s) {
  std::string out;
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' || u < 0x20 || u >= 0x7f)
      out += fmt::format("&#{};", u < 0x20 ? 0xfffd : static_cast<int>(u));
    else
      out += c;
  }
  return out;
}

std::string html_page(const Compiled& c) {
  const Plan& plan = c.plan;
  const double width = 1200, height = 600;
  const double dx = width / static_cast<double>(std::max<size_t>(plan.layers.size(), 1));
  const double dy = height / static_cast<double>(std::max<int64_t>(plan.arena_bytes, 1));
  std::string s = fmt::format(
      "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{0}: memory plan</title>\n"
      "<style>body{{font:14px sans-serif;margin:2em}}rect{{stroke:#fff;stroke-width:.5}}"
      "rect:hover{{stroke:#000;stroke-width:2}}table{{border-collapse:collapse}}"
      "td,th{{padding:2px 10px;text-align:left;border-bottom:1px solid #ddd}}</style></head><body>\n"
      "<h1>{0}</h1><p>{1} layers for {2}; arena {3} bytes, {4} alive at once at most; weights {5} "
      "bytes.</p>\n"
      "<p>Left to right: the layers in order of execution. Bottom to top: the arena's bytes. A box is a "
      "tensor "
      "from the layer that writes it to the last that reads it; gray ones are a layer's scratch.</p>\n"
      "<svg width=\"{6}\" height=\"{7}\" viewBox=\"0 0 {6} {7}\" style=\"background:#f4f4f4\">\n",
      escaped(c.options.name), plan.layers.size(), c.target->name, plan.arena_bytes, plan.live_bytes,
      weights_bytes(c.weights), width, height);
  int hue = 0;
  for (const Block& b : blocks_of(plan)) {
    hue = (hue + 47) % 360;
    s += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"><title>{}: {} bytes "
        "at {}, "
        "layers {} to {}</title></rect>\n",
        static_cast<double>(b.first) * dx, height - static_cast<double>(b.offset + b.bytes) * dy,
        static_cast<double>(b.last - b.first + 1) * dx, static_cast<double>(b.bytes) * dy,
        b.scratch ? "#bbb" : fmt::format("hsl({},60%,65%)", hue), escaped(sinter::quoted(b.label)), b.bytes,
        b.offset, b.first, b.last);
  }
  s += "</svg>\n";
  for (size_t i = 0; i < c.graph->outputs.size(); ++i)
    if (const std::string off = output_error(c, i); !off.empty())
      s += fmt::format("<p>Output {}: {}</p>\n", escaped(sinter::quoted(outside_name(*c.graph->outputs[i]))),
                       off);
  s += "<table><tr><th>#</th><th>layer</th><th>what</th><th>kernel</th><th>output</th><th>MFLOP</th>"
       "<th>weights</th><th>arena</th>";
  const bool halves = uses_halves(c);
  s += halves ? "<th>computes</th></tr>\n" : "</tr>\n";
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Layer& l = plan.layers[i];
    const Value* out = first_output(l);
    s += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td><td>{}</td><td>{}</td>{}</"
        "tr>\n",
        i, escaped(l.function), escaped(l.summary), escaped(l.kernel), out ? escaped(text(out->type)) : "",
        l.flops / 1e6, weight_bytes(l), out ? where(plan, out) : "",
        halves ? "<td>" + escaped(precision(*l.node)) + "</td>" : "");
  }
  return s + "</table></body></html>\n";
}

}  // namespace

std::function<int()> declare_inspect(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_model_options(app, *o);
  app.add_option("--html", o->html, "write the memory plan as a picture, with the table, to this file");
  app.add_option("--json", o->json, "write the layers and their memory to this file");
  return [o] {
    const Compiled c = compile_model(*o, import_options(*o));
    print_table(c);
    if (!o->html.empty()) write_output_file(o->html, html_page(c));
    if (!o->json.empty()) write_output_file(o->json, c.files.at(c.options.name + ".map"));
    return kExitOk;
  };
}

}  // namespace sinter
