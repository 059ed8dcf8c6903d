// Runs generated code: graphs become bundles, bundles one program, and what it writes is compared with the
// interpreter.
//
//   GeneratedBatch batch;
//   batch.add("softmax", std::move(graph), {{x}});
//   expect_good(batch.run(*find_target("avx512")));
//
// The models are compiled with all warnings as errors, several to a translation unit, since the headers of a
// processor's instructions take longer than most models. The program gives each run an arena filled with
// garbage and checks that no byte beside the arena and the outputs has changed, nor how floats are computed
// with (subnormals.h). The objects must hold no allocation, no input or output and no mutable globals, and no
// function of them may use more than 16 KiB of stack. A model that crashes takes no other one with it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "plan/decision.h"
#include "targets/target.h"

namespace sinter {

struct DataSet {
  std::vector<Tensor> inputs;    // in order of graph.inputs
  std::vector<Tensor> expected;  // empty: what evaluate() says of the graph as given
  int status = 0;                // what the run must return; with another code than 0 nothing is compared
};

// |got - want| <= relative * |want| + of_max * max|want|; bits must match for integers and bool. Negative:
// by dtype (float32 1e-4 and 1e-5, float64 1e-9, float16 2e-3, bfloat16 1.6e-2).
struct Tolerance {
  double relative = -1, of_max = -1;
};

struct BuildOptions {
  bool sanitize = false;  // AddressSanitizer and UndefinedBehaviorSanitizer
  bool clang = false;     // clang++ instead of g++; not for aarch64
  std::string flags = "-O1";
  bool warnings_as_errors = true;
  bool run = true;  // else only compiled and its objects checked
  // More than 1: each model runs alone and on a pool, and the results must be the same bits.
  int threads = 1;
  int64_t cache = 0;  // bytes of cache that strips are made for; 0: the target's
  // Models per translation unit; what is wrong in a unit of several is found by compiling its models alone.
  // 0: several, but two units where there are two models.
  size_t together = 0;
};

struct Result {
  std::string name;
  std::string refused;  // why no code was generated; empty where it was
  std::string error;    // the first thing that is wrong: compilation, objects, status, guards or values
  std::string skipped;  // why nothing was run on this machine
  // Not built. Unless SINTER_TEST_THOROUGH is set (./dev test --all), a third of a batch is under sanitizers,
  // with clang, and for processors other than this one: of three neighbours in the table of targets each
  // takes another third.
  bool left_out = false;
  bool good() const { return refused.empty() && error.empty() && skipped.empty(); }
};

class GeneratedBatch {
 public:
  // `graph` is typed and may have been through any passes; a DataSet that is only inputs converts.
  // `decisions` of its nodes hold before any is made.
  void add(const std::string& name, std::unique_ptr<Graph> graph, std::vector<DataSet> data_sets,
           Tolerance tolerance = {}, Decisions decisions = {});
  // The bundles are made anew for each call, so one batch serves several targets.
  std::vector<Result> run(const Target& target, const BuildOptions& options = {});
  size_t size() const { return models_.size(); }

 private:
  std::vector<Result> run_whole(const Target& target, const BuildOptions& options);
  // Only the models that are chosen, by their places; the others are left out.
  std::vector<Result> run_some(const std::vector<bool>& chosen, const Target& target,
                               const BuildOptions& options);
  struct Model {
    std::string name;
    std::unique_ptr<Graph> graph;
    std::vector<DataSet> data;
    Tolerance tolerance;
    Decisions decisions;
  };
  std::vector<Model> models_;
};

// The decisions of a graph's nodes as those of its clone's.
Decisions carried(const Decisions& decisions, const Graph& from, const Graph& to);

// Every result is good; skips the running test, saying why, where nothing could be run.
void expect_good(const std::vector<Result>& results, const std::string& what = "");

// Why this machine cannot build and run code for the target; empty where it can.
std::string cannot_run(const Target& target, const BuildOptions& options = {});

// What an object of net code must not have: its first symbol that allocates, reads or writes files, throws or
// is mutable data. Empty where there is none.
std::string forbidden_symbol(const std::string& object, const Target& target);
// The greatest stack frame of a .su file (-fstack-usage), in bytes; frames of unbounded size count as 2^62.
int64_t greatest_frame(const std::string& su_file);

// The first difference between two tensors; empty where there is none.
std::string difference(const Tensor& got, const Tensor& want, Tolerance tolerance = {});

}  // namespace sinter
