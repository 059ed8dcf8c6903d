#include "fuzz/chain.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "emit/bundle.h"
#include "import/onnx.h"
#include "ir/error.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "plan/steps.h"

namespace sinter::fuzz {
namespace {

[[noreturn]] void finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::fflush(nullptr);
  std::abort();
}

// Dims that stay free get the range [1, hi], as --dim "NAME<=hi" would give it.
ImportOptions bounded(const Graph& g, int64_t hi) {
  ImportOptions options;
  std::set<std::string> named;
  for (const Value* v : g.inputs)
    for (const Dim& d : v->type.shape) {
      std::vector<SymbolPtr> symbols;
      d.collect_symbols(symbols);
      for (const SymbolPtr& s : symbols)
        if (s->range.hi == Interval::kUnbounded && named.insert(s->name).second)
          options.dims.push_back({s->name, 1, hi, 1});
    }
  return options;
}

std::unique_ptr<Graph> import_bounded(const onnx::ModelProto& model, int64_t hi) {
  std::unique_ptr<Graph> g = std::move(import_model(model, {}).graph);
  const ImportOptions options = bounded(*g, hi);
  if (!options.dims.empty()) g = std::move(import_model(model, {}, options).graph);
  return g;
}

// Whether evaluation takes little time and memory: no loops, and every tensor is small.
bool is_small(const Graph& g) {
  constexpr int64_t kElements = 4096;
  for (const auto& n : g.nodes)
    if (!n->bodies.empty()) return false;
  for (const auto& v : g.values) {
    double size = 1;
    for (const Dim& d : v->type.shape) size *= static_cast<double>(d.hi());
    if (size > kElements) return false;
  }
  return g.nodes.size() <= 64;
}

// Small integers with negative ones among them: hostile as indices, harmless as numbers.
std::vector<Tensor> inputs_of(const Graph& g, uint32_t choice) {
  std::vector<Tensor> out;
  for (const Value* v : g.inputs) {
    std::vector<int64_t> shape;
    for (const Dim& d : v->type.shape)
      shape.push_back(d.evaluate([&](const Symbol& s) { return choice & 1 ? s.range.lo : s.range.hi; }));
    Tensor t(v->type.dtype, shape);
    const bool numbers = is_float(t.dtype()) || is_integer(t.dtype()) || t.dtype() == DType::kBool;
    for (int64_t i = 0; numbers && i < t.size(); ++i)
      t.set_real(i, static_cast<double>((choice + static_cast<uint64_t>(i) * 7) % 11) - 4);
    out.push_back(std::move(t));
  }
  return out;
}

// Evaluation may refuse what depends on the data.
void try_evaluate(const Graph& g, uint32_t choice) {
  if (!is_small(g)) return;
  try {
    evaluate(g, inputs_of(g, choice));
  } catch (const Refusal& r) {
    if (r.problems.empty()) finding("a Refusal of an evaluation without a problem");
  }
}

// `text` without comments and literals, as a C++ compiler sees it.
std::string code_of(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto until = [&](std::string_view end) { return std::min(text.find(end, i + 2), text.size()); };
    if (text.compare(i, 2, "//") == 0) {
      i = until("\n");
      out += '\n';
    } else if (text.compare(i, 2, "/*") == 0) {
      i = until("*/") + 1;
      out += ' ';
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !std::isalnum(text[i - 1])))) {
      const char quote = text[i];
      for (++i; i < text.size() && text[i] != quote && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
      out += "\"\"";
    } else {
      out += text[i];
    }
  }
  return out;
}

// Names of hostile models (mutate.cc) hold an #error behind all that could end a comment or a literal.
void check_code(const std::map<std::string, std::string>& files) {
  for (const auto& [name, text] : files) {
    const bool code = name.find('/') == std::string::npos && (name.ends_with(".h") || name.ends_with(".cpp"));
    if (!code) continue;
    for (const unsigned char c : text)
      if ((c < 0x20 && c != '\n') || c >= 0x7f) finding(name + " has a byte that is no plain text");
    if (code_of(text).find("#error") != std::string::npos)
      finding("a name of the model became code in " + name);
  }
}

const Target& target_of(uint32_t choice) {
  static const char* const kNames[] = {"avx512", "avx2", "x86-64-v2", "scalar", "cortex-a53", "cortex-a76"};
  return *find_target(kNames[choice % std::size(kNames)]);
}

constexpr int64_t kCache = 4096;  // so small that little pictures go in strips

size_t make(Graph& g, const Target& target) {
  Decisions decisions;
  run_steps(g, {target, {}, kCache}, decisions);
  for (;;) {
    WeightStore weights;
    const Plan plan = make_plan(g, target, decisions, weights);
    if (limit_scratch(g, plan, decisions)) continue;
    BundleOptions options;
    options.name = "net";
    options.model_file = "model.onnx";
    options.model_hash = std::string(64, '0');
    check_code(make_bundle(g, plan, target, weights, options));
    return plan.layers.size();
  }
}

Outcome compile_or_refuse(const onnx::ModelProto& model, uint32_t choice) {
  const std::unique_ptr<Graph> g = import_bounded(model, choice % 7 == 0 ? 1000 : 4);
  g->verify();
  if (choice % 4 == 0) try_evaluate(*g, choice);
  PassOptions options;
  options.exact = choice % 5 == 0;
  options.channels_last = choice % 3 != 0;
  options.byte_products = choice % 2 != 0;
  PassHooks hooks;
  hooks.verify_each = true;
  if (choice % 11 == 0) hooks.stop_after = "lower_ops";
  run_passes(*g, options, hooks);
  if (choice % 4 == 0) try_evaluate(*g, choice);
  Outcome o;
  o.layers = make(*g, target_of(choice / 4));
  return o;
}

}  // namespace

Outcome compile(const onnx::ModelProto& model, uint32_t choice) {
  BugContext context;
  context.set("in a fuzz target");
  try {
    return compile_or_refuse(model, choice);
  } catch (const Refusal& r) {
    if (r.problems.empty() || r.problems[0].empty()) finding("a Refusal without a problem");
    for (const std::string& p : r.problems)
      if (p.rfind("the model can't be imported: ", 0) == 0) finding("no Refusal of ours: " + p);
    return {r.problems[0], 0};
  } catch (const std::exception& e) {
    finding(std::string("an exception: ") + e.what());
  }
}

uint32_t choice_of(const std::string& bytes) {
  uint32_t h = 2166136261u;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

bool parse(const std::string& bytes, onnx::ModelProto& model) {
  if (bytes.size() > kMaxBytes) return false;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(200);  // as import does
  return model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

}  // namespace sinter::fuzz
