// NAME.h, NAME.map, NAME.cmake and the weights: everything of a bundle but the code (emit/code.cpp) and the
// runner (emit/runner.cpp).
#include "emit/bundle.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "emit/class_names.h"
#include "emit/code.h"
#include "emit/state.h"
#include "ir/error.h"
#include "ops/op.h"
#include "plan/views.h"

namespace sinter {

std::string upper(std::string s) {
  for (char& c : s) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return s;
}

namespace {

// `is_state` tells values that have no member, by their number.
template <class F>
std::vector<Member> members_but(const std::vector<Value*>& values, F is_state) {
  std::vector<Member> m;
  std::set<std::string> taken;
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_state(i)) continue;
    const Value* v = values[i];
    const std::string of_model = outside_name(*v), plain = identifier(of_model);
    const bool dynamic = !is_static(v->type.shape);
    std::string name = plain;
    for (int k = 2; taken.count(name) || (dynamic && taken.count(name + "_dims")); ++k)
      name = fmt::format("{}_{}", plain, k);
    taken.insert(name);
    if (dynamic) taken.insert(name + "_dims");
    m.push_back({i, v, of_model, name, dynamic});
  }
  return m;
}

}  // namespace

std::vector<Member> members_of(const std::vector<Value*>& values) {
  return members_but(values, [](size_t) { return false; });
}
std::vector<Member> input_members(const Graph& g, const StatePlan& states) {
  return members_but(g.inputs, [&](size_t i) { return states.of_input(i) != nullptr; });
}
std::vector<Member> output_members(const Graph& g, const StatePlan& states) {
  return members_but(g.outputs, [&](size_t i) { return states.of_output(i) != nullptr; });
}

// Floats that C has not are handed over as their bits.
std::string c_type(DType t) {
  if (is_stored_float(t)) return size_of(t) == 2 ? "uint16_t" : "uint8_t";
  std::string s(cpp_name(t));
  return s.rfind("std::", 0) == 0 ? s.substr(5) : s;
}

const char* where_text(const Plan& plan, const Place& place) {
  switch (place.kind) {
    case Place::Kind::kInput: return plan.states.of_input(place.index) ? "state" : "input";
    case Place::Kind::kOutput: return plan.states.of_output(place.index) ? "state" : "output";
    case Place::Kind::kWeights: return "weights";
    case Place::Kind::kArena: break;
  }
  return "arena";
}

namespace {

// The member of NAME_inputs or NAME_outputs in whose buffer a Value lies; empty: in none.
std::string member_at(const Graph& g, const Plan& plan, const Place& place) {
  const bool input = place.kind == Place::Kind::kInput;
  if (!input && place.kind != Place::Kind::kOutput) return "";
  for (const Member& m : input ? input_members(g, plan.states) : output_members(g, plan.states))
    if (m.index == place.index) return m.name;
  return "";
}

// Whether two Values of a layer lie in the same memory: in the arena, or as an input and an output that are
// one state, updated in place.
bool lie_together(const Plan& plan, const Place& old, const Place& fresh) {
  if (old.kind == Place::Kind::kArena && fresh.kind == Place::Kind::kArena) return old.offset == fresh.offset;
  if (old.kind != Place::Kind::kInput || fresh.kind != Place::Kind::kOutput) return false;
  const State *read = plan.states.of_input(old.index), *written = plan.states.of_output(fresh.index);
  return read && written && read->ring == written->ring && plan.states.rings[read->ring].slots == 1;
}

// Where a layer writes some elements of what lies there already: the Value of these; else null.
const Value* scattered(const Plan& plan, const Node& n) {
  const std::string_view op = n.op->name;
  const size_t updates = op == "TensorScatter" ? 1 : op == "ScatterElements" || op == "ScatterND" ? 2 : 0;
  if (updates == 0 || n.op->domain[0] != '\0' || !n.input(updates)) return nullptr;
  const auto old = plan.places.find(n.inputs[0]), fresh = plan.places.find(n.outputs[0]);
  if (old == plan.places.end() || fresh == plan.places.end()) return nullptr;
  return lie_together(plan, old->second, fresh->second) ? n.inputs[updates] : nullptr;
}

}  // namespace

int64_t weights_bytes(const WeightStore& store) {
  return store.size() + (store.size() == 0 ? 0 : static_cast<int64_t>(sizeof(uint64_t)));
}

std::string weights_symbol(const BundleOptions& o) {
  return fmt::format("{}_weights_{:016x}", o.name, o.weights_tag);
}

namespace {

// A number that other bytes have not, FNV-1a over words of eight; it tells compiles apart, no more.
uint64_t number_of(std::string_view bytes) {
  uint64_t hash = 14695981039346656037ull;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(bytes.size() - i, 8));
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 29;
  }
  return (hash ^ bytes.size()) * 1099511628211ull;
}

// The blobs, and behind them the tag, lowest byte first.
std::string weights_file(const WeightStore& store, const BundleOptions& o) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(weights_bytes(store)));
  bytes = store.bytes();
  for (int i = 0; i < 8 && !store.bytes().empty(); ++i)
    bytes += static_cast<char>(o.weights_tag >> (8 * i) & 0xff);
  return bytes;
}

int64_t max_bytes(const Value& v) {
  return product(v.type.shape).hi() * static_cast<int64_t>(size_of(v.type.dtype));
}

void describe(Printer& p, const Member& m, bool input) {
  const Value& v = *m.value;
  std::string bounds;
  for (const Dim& d : v.type.shape)
    if (!d.is_static())
      bounds += fmt::format("{}{} in {}..{}", bounds.empty() ? "; " : ", ", d.text(),
                            std::max<int64_t>(d.lo(), 0), d.hi());
  const char* bits = v.type.dtype == DType::kF16    ? " (IEEE 754 binary16 bits)"
                     : v.type.dtype == DType::kBF16 ? " (bfloat16 bits)"
                     : is_small_float(v.type.dtype) ? " (the bits of one a byte)"
                                                    : "";
  p.comment(fmt::format("{} {}{}, row-major{}", sinter::quoted(m.model_name), text(v.type), bits, bounds));
  p.line("{}{}* {};", input ? "const " : "", c_type(v.type.dtype), m.name);
  if (m.dynamic) {
    p.comment(input ? "its extents, set by the caller" : "its extents, set by the run");
    p.line("int64_t {}_dims[{}];", m.name, std::max<size_t>(v.type.shape.size(), 1));
  }
}

// The range of each extent that inputs or outputs leave free.
void declare_extents(Printer& p, const Graph& g, const std::string& up, Names& macros) {
  std::vector<SymbolPtr> symbols;
  for (const auto* list : {&g.inputs, &g.outputs})
    for (const Value* v : *list)
      for (const Dim& d : v->type.shape) d.collect_symbols(symbols);
  std::set<const Symbol*> seen;
  for (const SymbolPtr& s : symbols) {
    if (!seen.insert(s.get()).second) continue;
    if (seen.size() == 1) p.comment("The least and the greatest of each extent that is free.");
    const std::string name = macros.unique(upper(identifier(s->name)));
    p.line("#define {}_{}_MIN INT64_C({})", up, name, s->range.lo);
    p.line("#define {}_{}_MAX INT64_C({})", up, name, s->range.hi);
  }
}

// Other headers of the net have another `interface`; the code compares.
std::string header(const Graph& g, const Plan& plan, const Target& target, const WeightStore& store,
                   const BundleOptions& o) {
  Printer p;
  const std::string up = upper(o.name);
  p.comment(fmt::format("Generated by sinter from {} (sha256 {}) for {}. Do not edit.", o.model_file,
                        o.model_hash.substr(0, 16), target.name));
  p.blank();
  p.line("#pragma once");
  p.line("#include <stdbool.h>");
  p.line("#include <stdint.h>");
  if (o.threads > 1) {
    p.blank();
    p.line("#include \"sinter/pool.h\"");
  }
  p.blank();
  p.put("#ifdef __cplusplus\nextern \"C\" {\n#endif");
  p.blank();
  p.comment(
      "Scratch memory of one run: 64-byte aligned, one for each thread that runs the model, reusable at "
      "once.");
  p.line("#define {}_ARENA_BYTES INT64_C({})", up, plan.arena_bytes);
  p.comment("Size of the weights.");
  p.line("#define {}_WEIGHTS_BYTES INT64_C({})", up, weights_bytes(store));
  if (o.threads > 1) {
    p.comment("The threads that a run can make use of.");
    p.line("#define {}_THREADS {}", up, o.threads);
  }
  p.comment("The stack that a run takes at most.");
  p.line("#define {}_STACK_BYTES INT64_C({})", up, o.max_stack);
  declare_state(p, g, plan.states, o);
  const auto ins = input_members(g, plan.states), outs = output_members(g, plan.states);
  if (!ins.empty() || !outs.empty()) p.comment("The most bytes that a tensor can take.");
  Names macros;
  for (const char* taken : {"ARENA_BYTES", "WEIGHTS_BYTES", "STACK_BYTES", "THREADS"}) macros.reserve(taken);
  for (const auto* list : {&ins, &outs})
    for (const Member& m : *list)
      p.line("#define {}_{} INT64_C({})", up, macros.unique(upper(m.name) + "_MAX_BYTES"),
             max_bytes(*m.value));
  declare_extents(p, g, up, macros);
  p.comment("This file's own number: the code of another compile doesn't go with it.");
  p.line("#define {}_INTERFACE UINT64_C(0x{:016x})", up, o.interface);
  p.blank();
  p.line("typedef struct {}_inputs {{", o.name);
  for (const Member& m : ins) describe(p, m, true);
  if (ins.empty()) p.line("int unused;");
  p.line("}} {}_inputs;", o.name);
  p.blank();
  p.line("typedef struct {}_outputs {{", o.name);
  for (const Member& m : outs) describe(p, m, false);
  if (outs.empty()) p.line("int unused;");
  p.line("}} {}_outputs;", o.name);
  p.blank();
  p.comment(fmt::format("What {}_run returns; {}_error gives the sentence.", o.name, o.name));
  p.put("enum {");
  const char* const codes[] = {"OK",      "E_NULL", "E_ALIGN",  "E_DIM",    "E_CAPACITY",
                               "E_INDEX", "E_LOOP", "E_CUSTOM", "E_TARGET", "E_WEIGHTS"};
  for (int i = 0; i < 10; ++i) p.line("{}_{} = {},", up, codes[i], i);
  p.put("};");
  p.blank();
  if (o.trace) {
    p.comment(
        "Called after each layer: its number, the value's name, the tensor it wrote, the element type as "
        "ONNX "
        "numbers it, the extents, and how many elements lie from the first of one run of the last axis to "
        "the "
        "first of the next: as many as the last axis has, or more where others lie between them.");
    p.line(
        "typedef void (*{}_trace)(void* context, int layer, const char* value, const void* data, int dtype, "
        "int rank, const int64_t* dims, int64_t pitch);",
        o.name);
    p.blank();
  }
  p.comment(fmt::format(
      "Runs the model once. Re-entrant: several threads may run it at once, each with an arena of its own. "
      "Touches nothing but the outputs{} and the arena, allocates nothing.",
      plan.states.empty() ? "" : ", the state"));
  if (o.threads > 1)
    p.comment("pool: the threads it runs on, or null for the calling one alone; the results are the same.");
  p.line("int {0}_run(const {0}_inputs* in, {0}_outputs* out, void* arena{1}{2}{3}{4});", o.name,
         state_parameter(plan.states), o.weights_in_file ? ", const void* weights" : "",
         o.threads > 1 ? ", const sinter_pool* pool" : "",
         o.trace ? fmt::format(", {}_trace trace, void* context", o.name) : "");
  declare_reset(p, plan.states, o);
  p.line("const char* {}_error(int code);", o.name);
  p.blank();
  declare_class_names(p, outs, o);
  p.put("#ifdef __cplusplus\n}  // extern \"C\"\n#endif");
  return p.text();
}

// The layers inside a control layer: one list a body.
nlohmann::ordered_json inner_layers(const std::vector<Plan>& bodies) {
  using nlohmann::ordered_json;
  ordered_json lists = ordered_json::array();
  for (const Plan& plan : bodies) {
    ordered_json list = ordered_json::array();
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      const Layer& l = plan.layers[i];
      ordered_json e;
      e["function"] = l.function;
      e["kernel"] = l.kernel;
      e["summary"] = l.summary;
      e["nodes"] = l.node->sources;
      e["flops"] = l.flops;
      if (!plan.bodies[i].empty()) e["bodies"] = inner_layers(plan.bodies[i]);
      list.push_back(e);
    }
    lists.push_back(list);
  }
  return lists;
}

constexpr double kMostError = 1e9;  // JSON has no infinity

std::string map_json(const Graph& g, const Plan& plan, const Target& target, const WeightStore& store,
                     const BundleOptions& o, const std::vector<std::string>& files) {
  using nlohmann::ordered_json;
  ordered_json j;
  auto tensor = [](const Value* v) {
    ordered_json t;
    t["name"] = v->name;
    t["dtype"] = name_of(v->type.dtype);
    ordered_json shape = ordered_json::array();
    for (const Dim& d : v->type.shape) {
      if (d.is_static())
        shape.push_back(d.value());
      else
        shape.push_back({{"expr", d.text()}, {"min", d.lo()}, {"max", d.hi()}});
    }
    t["shape"] = shape;
    return t;
  };
  j["name"] = o.name;
  j["model"] = {{"file", o.model_file}, {"sha256", o.model_hash}};
  j["target"] = target.name;
  j["arena_bytes"] = plan.arena_bytes;
  j["live_bytes"] = plan.live_bytes;
  j["weights_bytes"] = weights_bytes(store);
  j["weights"] = o.weights_in_file ? "file" : "embed";
  j["threads"] = o.threads;
  j["trace"] = o.trace;
  j["files"] = files;
  for (const bool input : {true, false})
    for (const Member& m : input ? input_members(g, plan.states) : output_members(g, plan.states)) {
      ordered_json t = tensor(m.value);
      t["name"] = m.model_name;
      t["member"] = m.name;  // in NAME_inputs or NAME_outputs
      t["bytes"] = max_bytes(*m.value);
      if (const auto names = o.class_names.find(m.model_name); !input && names != o.class_names.end())
        t["names"] = names->second;
      if (const size_t i = m.index; !input && i < o.half_errors.size() && o.half_errors[i] >= 0)
        t["half_error"] = std::min(o.half_errors[i], kMostError);
      j[input ? "inputs" : "outputs"].push_back(t);
    }
  if (!plan.states.empty()) j["state_bytes"] = plan.states.bytes;
  for (const State& s : plan.states.states) {
    const StateRing& ring = plan.states.rings[s.ring];
    ordered_json t = tensor(g.inputs[s.link.input]);
    t["name"] = s.link.input_name;
    t["output"] = s.link.output_name;
    t["form"] = text(plan.states, s);
    t["offset"] = ring.offset;
    t["slots"] = ring.slots;
    t["slot_bytes"] = ring.slot_bytes;
    j["states"].push_back(t);
  }
  const Views views(g, *plan.decisions);
  j["layers"] = ordered_json::array();
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Layer& l = plan.layers[i];
    ordered_json e;
    e["index"] = i;
    e["function"] = l.function;
    e["kernel"] = l.kernel;
    e["summary"] = l.summary;
    e["nodes"] = l.node->sources;
    e["flops"] = l.flops;
    if (const Freedom& f = l.node->freedom; f.halves != Halves::kNone || f.half_error >= 0) {
      e["halves"] = f.halves == Halves::kComputed ? "computed"
                    : f.halves == Halves::kStored ? "stored"
                                                  : "none";
      if (f.half_error >= 0) e["half_error"] = std::min(f.half_error, kMostError);
      if (const std::string why = l.node->attributes.text("no_halves", ""); !why.empty())
        e["no_halves"] = why;
    }
    e["tensors"] = ordered_json::array();
    for (const Parameter& q : l.parameters) {
      if (q.kind != Parameter::Kind::kInput && q.kind != Parameter::Kind::kOutput) continue;
      auto it = plan.places.find(q.value);
      if (it == plan.places.end()) continue;
      ordered_json t = tensor(q.value);
      t["role"] = q.kind == Parameter::Kind::kInput ? "read" : "write";
      t["where"] = where_text(plan, it->second);
      if (it->second.kind == Place::Kind::kArena) t["offset"] = it->second.offset;
      if (const std::string member = member_at(g, plan, it->second); !member.empty()) t["member"] = member;
      t["bytes"] = max_bytes(*q.value);
      if (const Value* some = scattered(plan, *l.node); some && q.kind == Parameter::Kind::kOutput)
        t["written_bytes"] = max_bytes(*some);
      // A view, or a part of a Concat: its bytes are some of this tensor's.
      if (const Value* host = views.host(q.value); host != q.value)
        t["inside"] = {{"name", host->name}, {"bytes", max_bytes(*host)}};
      e["tensors"].push_back(t);
    }
    if (!plan.bodies[i].empty()) e["bodies"] = inner_layers(plan.bodies[i]);
    j["layers"].push_back(e);
  }
  return j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";  // names may be no UTF-8
}

// NAME.cmake, for CMake from 3.16 on. Files are listed by name: no folder of the bundle's is ever a pattern.
std::string cmake_text(const Target& target, const BundleOptions& o,
                       const std::map<std::string, std::string>& files) {
  const auto list = [](std::string flags) {
    std::replace(flags.begin(), flags.end(), ' ', ';');
    return flags;
  };
  const std::string machine = list(target.cxx_flags), gcc = list(target.gcc_flags);
  std::string sources;
  for (const auto& [name, text] : files)
    if ((name.ends_with(".cpp") || name.ends_with(".S")) && name.find('/') == std::string::npos &&
        name != o.name + "_main.cpp")
      sources += fmt::format("\n  \"${{CMAKE_CURRENT_LIST_DIR}}/{}\"", name);
  std::string text = fmt::format(
      "# Generated by sinter: adds the library target `{0}`. From CMake 3.16 on.\n"
      "enable_language(CXX)\n"
      "enable_language(ASM)\n"
      "add_library({0} STATIC{1})\n"
      "target_include_directories({0} PUBLIC \"${{CMAKE_CURRENT_LIST_DIR}}\")\n"
      "target_compile_features({0} PUBLIC cxx_std_17)\n"
      "target_compile_options({0} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O2;-fno-math-errno;-fno-trapping-math> "
      "{2}$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-tree-vectorize{3}>)\n",
      o.name, sources,
      machine.empty() ? "" : fmt::format("$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:{}> ", machine),
      gcc.empty() ? "" : ";" + gcc);
  if (!o.weights_in_file)
    text += fmt::format(
        "set_source_files_properties(\"${{CMAKE_CURRENT_LIST_DIR}}/{0}_weights.S\" PROPERTIES "
        "OBJECT_DEPENDS\n"
        "  \"${{CMAKE_CURRENT_LIST_DIR}}/{0}.weights\")\n",
        o.name);
  return text;
}

std::string weights_s(const BundleOptions& o) {
  return fmt::format(
      "// Generated by sinter: the weights as an object, 64-byte aligned.\n"
      "    .section .rodata\n"
      "    .balign 64\n"
      "    .globl {0}_weights\n"
      "    .globl {1}  // what the code of the same compile asks for\n"
      "{0}_weights:\n"
      "{1}:\n"
      "    .incbin \"{0}.weights\"\n"
      "    .byte 0\n"
      "    .section .note.GNU-stack,\"\",%progbits\n",
      o.name, weights_symbol(o));
}

void collect_files(const Plan& plan, std::map<std::string, std::string>& files) {
  for (const Layer& l : plan.layers) files.insert(l.files.begin(), l.files.end());
  for (const auto& bodies : plan.bodies)
    for (const Plan& body : bodies) collect_files(body, files);
}

// What custom operators bring along: their files, and a unit NAME_part… for each source, so that whoever
// compiles NAME*.cpp compiles them. Declared first, the functions have C linkage in C sources too.
void add_custom(std::map<std::string, std::string>& files, const Plan& plan, const BundleOptions& o) {
  std::map<std::string, std::string> custom;
  collect_files(plan, custom);
  std::string declarations;
  for (const auto& [name, text] : custom)
    if (name.find('/') == std::string::npos) declarations += fmt::format("#include \"{}\"\n", name);
  int count = 0;
  for (const auto& [name, text] : custom)
    if (name.rfind("custom/", 0) == 0 &&
        (name.ends_with(".c") || name.ends_with(".cc") || name.ends_with(".cpp")))
      files[fmt::format("{}_part_custom{}.cpp", o.name, count++)] =
          fmt::format("// Generated by sinter: compiles a source of a custom operator.\n{}#include \"{}\"\n",
                      declarations, name);
  files.merge(custom);
}

// The runtime headers that the includes of `text` reach.
void add_runtime(std::map<std::string, std::string>& files, const std::string& text) {
  size_t at = 0;
  while ((at = text.find("#include \"", at)) != std::string::npos) {
    at += 10;
    const std::string name = text.substr(at, text.find('"', at) - at);
    auto it = runtime_files().find(name);
    if (it == runtime_files().end()) it = runtime_files().find("sinter/" + name);
    if (it == runtime_files().end() || files.count(it->first)) continue;
    files[it->first] = it->second;
    add_runtime(files, it->second);
  }
}

}  // namespace

std::map<std::string, std::string> make_bundle(const Graph& g, const Plan& plan, const Target& target,
                                               const WeightStore& store, const BundleOptions& given) {
  std::map<std::string, std::string> files;
  BundleOptions o = given;
  o.weights_end = static_cast<int64_t>(store.bytes().size());
  o.weights_tag = number_of(store.bytes());
  o.interface = number_of(header(g, plan, target, store, o));
  files[o.name + ".h"] = header(g, plan, target, store, o);
  for (auto& [name, text] : code_files(g, plan, target, o)) files[name] = std::move(text);
  files[o.name + "_main.cpp"] = runner_main(g, plan, o);
  files[o.name + ".weights"] = weights_file(store, o);
  if (!o.weights_in_file) files[o.name + "_weights.S"] = weights_s(o);
  add_custom(files, plan, o);
  files[o.name + ".cmake"] = cmake_text(target, o, files);
  std::map<std::string, std::string> headers;
  for (const auto& [name, text] : files)
    if (name.ends_with(".cpp") || name.ends_with(".h")) add_runtime(headers, text);
  files.merge(headers);
  std::vector<std::string> names = {o.name + ".map"};
  for (const auto& [name, text] : files) names.push_back(name);
  std::sort(names.begin(), names.end());
  files[o.name + ".map"] = map_json(g, plan, target, store, o, names);
  return files;
}

}  // namespace sinter
