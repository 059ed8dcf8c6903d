// Passes: rewrites of the graph between import and plan, one file each, listed once in passes.cpp.
//
// A pass keeps what the graph computes and leaves it valid: Graph::verify() holds, types are inferred, names
// of graph inputs and outputs stay, Node::sources of what it swallows go to the node that does the work now,
// and Value::origin/perm of the values it makes say which value of the model they are. Order matters and is
// explained in the table.
#pragma once
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter {

// What compute_in_halves found beside what it did.
struct HalfReport {
  // Of each graph output, by the greatest of it, as the chosen layers make it; below 0: it is no float.
  // Empty: not measured.
  std::vector<double> outputs;
  std::string unmeasured;  // why the samples can't be evaluated
};

struct PassOptions {
  bool exact = false;  // only rewrites that keep every rounding step of the model
  bool channels_last = true;
  bool tile_matrices = false;      // the target has them
  bool halves = false;             // --fp16, and the target has their arithmetic
  bool half_weights = false;       // --fp16, and it has not
  std::set<std::string> keep_f32;  // names of nodes that compute floats all the same
  double half_error = 1e-2;        // the most that a layer of halves may be off, of its largest result
  std::vector<std::vector<Tensor>> samples;  // inputs of the graph to measure that with; none: it is not
  HalfReport* half_report = nullptr;         // null: samples that can't be evaluated are refused
  bool byte_products = false;  // products of quantised tensors are integers: not with --fast-weights alone
};

struct Pass {
  const char* name;
  const char* what;                         // one sentence, for `sinter passes`
  const char* why_here;                     // why at this place of the table
  bool (*run)(Graph&, const PassOptions&);  // true: something changed
};

const std::vector<Pass>& all_passes();  // in the order they run

struct PassHooks {
  std::string stop_after;                // name of the last pass to run; empty: all
  std::vector<std::string> print_after;  // passes after which the graph's text goes to `print`
  bool verify_each = false;    // Graph::verify() after each pass, and the graph's text in bug reports
  bool time = false;           // a line per pass with its milliseconds goes to `print`
  std::set<std::string> skip;  // passes left out
  std::function<void(const std::string&)> print = [](const std::string&) {};
  std::function<void(const Pass&, const Graph&)> after;  // called after every pass
};

// Runs the table over `graph` and the bodies inside it. Unknown pass names in `hooks` are a Refusal.
void run_passes(Graph& graph, const PassOptions& options, const PassHooks& hooks = {});

}  // namespace sinter
