// Bundle: the files that a compiled model is: NAME.h, NAME.cpp, NAME.weights, NAME_weights.S, NAME.map,
// NAME_main.cpp, NAME.cmake and the runtime headers they include. See docs/generated-code.md.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emit/bundle_folder.h"
#include "emit/runtime_files.h"
#include "ir/graph.h"
#include "plan/plan.h"

namespace sinter {

struct BundleOptions {
  std::string name;              // C++ identifier; prefix of files and functions
  std::string model_file;        // file name (no folders) for the banner
  std::string model_hash;        // sha256, hex
  std::string command;           // the options that matter, for the banner
  bool weights_in_file = false;  // --weights file: net_run takes a pointer to the mapped file
  bool weights_in_c = false;     // --weights c: they are a source of C
  int threads = 1;               // --threads: net_run takes a pool, which may be null
  bool trace = false;            // --trace: net_run calls back after each layer
  int64_t max_stack = 16384;
  std::map<std::string, std::vector<std::string>> class_names;  // of outputs: Model::class_names

  // Inputs that are camera's frames: the words that --pre has of them, and how they lie in memory.
  struct Frame {
    std::string words, layout;
    int64_t rows = 0, width = 0, pixel_bytes = 0;  // as an array has it, [rows][width][pixel_bytes]
  };
  std::map<std::string, Frame> frames;

  std::vector<double> half_errors;  // --fp16: HalfReport::outputs

  // Of one of several models that share an arena (emit/pipeline.h): the prefix of the files and of the
  // weights' symbol (empty: `name`), where its own part of the arena begins, and where the tensors lie there
  // that outlive a run, by their numbers among the graph's inputs and outputs.
  std::string bundle;
  std::string
      face;  // of one of several targets (emit/dispatch.h): the prefix of what the caller sees; else `name`
  int64_t arena_from = 0;
  std::map<size_t, int64_t> lasting_inputs, lasting_outputs;

  // Set by make_bundle. The weights' tag stands behind them, at `weights_end`, and in the name of their
  // symbol.
  int64_t weights_end = 0;
  uint64_t weights_tag = 0;
  uint64_t interface = 0;  // NAME_INTERFACE, of NAME.h's text
};

// A compiled model, as the files of a bundle are written from it.
struct BundlePart {
  const Graph& graph;
  const Plan& plan;
  const Target& target;
  BundleOptions options;
};

// An output that lies in the arena until its model runs again, and the inputs that read it there.
struct LastingTensor {
  size_t model;
  std::string output;
  std::vector<std::pair<size_t, std::string>> readers;  // a model and its input
  int64_t offset = 0, bytes = 0;
};

// What the models of one bundle have in common.
struct SharedMemory {
  std::string name;  // of the bundle
  int64_t arena_bytes = 0;
  std::vector<LastingTensor> lasting;
};

// The files by name (folders with '/'), complete; nothing is written.
std::map<std::string, std::string> make_bundle(const Graph&, const Plan&, const Target&, WeightStore&,
                                               const BundleOptions&);

// NAME_WEIGHTS_BYTES: the weights and their tag.
int64_t weights_bytes(const WeightStore&);
// What the names of the bundle's files begin with.
const std::string& file_prefix(const BundleOptions&);
// What the names of the types and codes that a caller sees begin with.
const std::string& face_prefix(const BundleOptions&);
// "net_weights_0123456789abcdef": what code and weights of the same compile call it.
std::string weights_symbol(const BundleOptions&);

// How the C face spells one input or output.
struct Member {
  size_t index;  // of Graph::inputs or outputs
  const Value* value;
  std::string model_name;  // "image:0"
  std::string name;        // the same as a member of a struct: "image_0"
  bool dynamic;            // it has a NAME_dims member
};
std::vector<Member> members_of(const std::vector<Value*>& values);
// Those that the caller gives and takes: not the states.
std::vector<Member> input_members(const Graph&, const StatePlan&);
std::vector<Member> output_members(const Graph&, const StatePlan&);

}  // namespace sinter
