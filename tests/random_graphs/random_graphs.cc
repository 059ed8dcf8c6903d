// random_graphs: generates models, proves the passes on them, and runs the code that they become.
//
//   random_graphs [--graphs N] [--seed S] [--no-code] [--sanitize] [--write DIR] [--show SEED]
//
// Seeds S to S + N - 1. Each graph is evaluated before and after every pass; some twenty at a time become one
// program, twice: with the passes that every model needs only, and with all. --write puts each model with its
// inputs and outputs into a folder of its own, as ONNX's backend tests have them (onnxruntime_opinion.py
// reads that). Ends with 1 where anything differs; then the names of the seeds are on stdout.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "emit/generated.h"
#include "ir/error.h"
#include "ops/op.h"
#include "random_graphs/generate.h"

namespace {

using namespace sinter;
using namespace sinter::random_graphs;
namespace fs = std::filesystem;

struct Options {
  uint64_t seed = 1, graphs = 1000;
  bool code = true, sanitize = false, show = false;
  std::string write;
};

struct Totals {
  size_t graphs = 0, nodes = 0, programs = 0, findings = 0;
  std::map<std::string, int> rejected, refused, operators;
};

void finding(Totals& t, uint64_t seed, const std::string& what) {
  ++t.findings;
  fmt::print("FINDING seed {}: {}\n", seed, what);
  std::fflush(stdout);
}

void write_test(const fs::path& root, const Sample& s) {
  const fs::path folder = root / fmt::format("seed_{:06}", s.seed);
  fs::create_directories(folder);
  std::ofstream(folder / "model.onnx", std::ios::binary) << s.model.SerializeAsString();
  const auto g = std::move(import_model(s.model, {}, s.options).graph);
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    const fs::path set = folder / fmt::format("test_data_set_{}", k);
    fs::create_directories(set);
    for (size_t i = 0; i < s.inputs[k].size(); ++i)
      write_tensor_pb(set / fmt::format("input_{}.pb", i), s.inputs[k][i], g->inputs[i]->name);
    const std::vector<Tensor> out = evaluate(*g, s.inputs[k]);
    for (size_t i = 0; i < out.size(); ++i)
      write_tensor_pb(set / fmt::format("output_{}.pb", i), out[i], g->outputs[i]->name);
  }
}

const Target& target_of(uint64_t batch, bool sanitize) {
  static const char* const kNames[] = {"avx2", "avx512", "scalar", "x86-64-v2", "aarch64"};
  const Target& t = *find_target(kNames[batch % (sanitize ? 4 : 5)]);
  return cannot_run(t).empty() ? t : *find_target("host");
}

// Both forms of some graphs as one program.
void run_code(const std::vector<Sample>& samples, uint64_t batch, const Options& o, Totals& totals) {
  GeneratedBatch programs;
  std::map<std::string, uint64_t> seeds;
  for (const Sample& s : samples)
    for (const Passes passes : {Passes::kNeeded, Passes::kAll}) {
      try {
        auto g = graph_of(s, passes);
        const double t = output_tolerance(s, *g);
        std::vector<DataSet> sets;
        const auto as_given = std::move(import_model(s.model, {}, s.options).graph);
        for (const auto& inputs : s.inputs) sets.push_back({inputs, evaluate(*as_given, inputs), 0});
        const std::string name = fmt::format("{}_{}", s.seed, passes == Passes::kAll ? "all" : "needed");
        programs.add(name, std::move(g), std::move(sets), {0, t});
        seeds[name] = s.seed;
      } catch (const Refusal& r) {
        finding(totals, s.seed, "refused in the passes: " + r.problems[0]);
      }
    }
  BuildOptions build;
  build.sanitize = o.sanitize;
  build.together = 10;
  const Target& target = target_of(batch, o.sanitize);
  for (const Result& r : programs.run(target, build)) {
    ++totals.programs;
    if (!r.refused.empty())
      ++totals.refused[r.refused.substr(r.refused.find('(') == std::string::npos ? 0 : r.refused.find('('))];
    else if (!r.good())
      finding(totals, seeds[r.name], fmt::format("{} on {}: {}{}", r.name, target.name, r.error, r.skipped));
  }
}

void check(const Sample& s, const Options& o, Totals& totals) {
  ++totals.graphs;
  totals.nodes += static_cast<size_t>(s.model.graph().node_size());
  for (const auto& [why, n] : s.rejected) totals.rejected[why] += n;
  for (const auto& n : s.model.graph().node()) ++totals.operators[n.op_type()];
  try {
    const std::string d = check_passes(s);
    if (!d.empty()) finding(totals, s.seed, d);
    if (!o.write.empty()) write_test(o.write, s);
  } catch (const Refusal& r) {
    finding(totals, s.seed, "refused: " + r.problems[0]);
  }
}

int show(uint64_t seed) {
  const Sample s = generate(seed);
  fmt::print("{}\n", text(*import_model(s.model, {}, s.options).graph));
  fmt::print("after the passes:\n{}\n", text(*graph_of(s, Passes::kAll)));
  const std::string d = check_passes(s);
  fmt::print("{}\n", d.empty() ? "no difference" : d);
  return d.empty() ? 0 : 1;
}

void report(const Totals& t) {
  fmt::print("{} graphs, {} nodes of {} operators, {} programs, {} findings\n", t.graphs, t.nodes,
             t.operators.size(), t.programs, t.findings);
  for (const auto& [why, n] : t.refused) fmt::print("  no code for {} (x {})\n", why, n);
}

bool parse_options(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--no-code") {
      o.code = false;
    } else if (a == "--sanitize") {
      o.sanitize = true;
    } else if (i + 1 == argc) {
      return false;
    } else if (a == "--graphs") {
      o.graphs = std::stoull(argv[++i]);
    } else if (a == "--seed") {
      o.seed = std::stoull(argv[++i]);
    } else if (a == "--show") {
      o.seed = std::stoull(argv[++i]);
      o.show = true;
    } else if (a == "--write") {
      o.write = argv[++i];
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  if (!parse_options(argc, argv, o)) {
    fmt::print(stderr,
               "usage: random_graphs [--graphs N] [--seed S] [--no-code] [--sanitize] [--write DIR] [--show "
               "SEED]\n");
    return 2;
  }
  if (o.show) return show(o.seed);
  Totals totals;
  std::vector<Sample> batch;
  for (uint64_t k = 0; k < o.graphs; ++k) {
    Sample s = generate(o.seed + k);
    check(s, o, totals);
    if (o.code) batch.push_back(std::move(s));
    if (batch.size() == 20 || (k + 1 == o.graphs && !batch.empty())) {
      run_code(batch, k / 20, o, totals);
      batch.clear();
    }
    if ((k + 1) % 100 == 0) {
      fmt::print("{} graphs, {} findings\n", k + 1, totals.findings);
      std::fflush(stdout);
    }
  }
  report(totals);
  if (std::getenv("SINTER_SHOW_REJECTED"))
    for (const auto& [why, n] : totals.rejected) fmt::print("  {:5} {}\n", n, why);
  if (std::getenv("SINTER_SHOW_REJECTED"))
    for (const auto& [op, n] : totals.operators) fmt::print("  {:5} {}\n", n, op);
  return totals.findings == 0 ? 0 : 1;
}
