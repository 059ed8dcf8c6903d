// What may be said of a model, by a command line or by a program that links the driver.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/frame_words.h"
#include "import/onnx.h"
#include "targets/target.h"

namespace sinter {

// Takes what somebody should know besides a result: warnings, notes, what --print-after shows. Whole lines.
using Say = std::function<void(const std::string& lines)>;

constexpr int kMostThreads = 64;

struct ModelOptions {
  std::string model;  // path
  std::string target = "host";
  std::vector<std::string> dims, constants, only, states, initial, pre, post;  // as given
  std::string name;
  int threads = 1;
  int64_t max_trips = INT64_MAX;  // of Loops that only the run ends
  std::string weights = "embed";
  std::string cache = "f32";                  // or "f16", "int8": what caches in the state are stored as
  std::string random = "fixed";               // or "state"
  std::string custom_ops;                     // path; empty: none
  std::string max_ram, max_stack, max_flash;  // sizes as given; empty: no limit
  std::string tuning;                         // path; empty: none
  std::string max_weights;                    // "1.5x" or a size; empty: the usual budget
  bool exact = false, small_weights = false, fast_weights = false, trace = false;
  bool price_weights = false;  // finds what larger budgets of weights are worth a look (for sinter inspect)
  bool fp16 = false;           // layers compute in halves where the target does
  double fp16_error = 1e-2;    // the most that a layer of halves may be off, of its largest result
  std::vector<std::string> keep_f32;  // names of nodes that don't
  std::vector<std::string> data;      // folders with input_0.pb ...: samples
  std::string stop_after;
  std::vector<std::string> print_after, skip_pass;
  bool verify_each = false, time_passes = false;
  Say say = [](const std::string&) {};
};

// "8M", "8MB", "8 MiB" -> 8388608; K, M and G are powers of 1024. UsageError where it is no size.
int64_t parse_size(const std::string& option, const std::string& text);
// The most bytes that packed weights may take where the model stores `stored` bytes of them: 1.5 times, twice
// below 4 MiB, or what --max-weights, --small-weights or --fast-weights say. UsageError where that is neither
// a size nor a factor.
int64_t weight_budget(const ModelOptions& o, int64_t stored);
// NAME=4, "NAME<=8", NAME=64..640 or NAME=64..640:32.
DimOption parse_dim(const std::string& text);
const Target& target_of(const ModelOptions& o);

// What a model file says of an input that has no initializer or is a state, before anything is inferred.
struct DeclaredInput {
  static constexpr size_t kInNoFile = SIZE_MAX;
  std::string name;
  DType dtype = DType::kUndefined;
  bool has_shape = false;
  struct Extent {
    int64_t lo = 1, hi = -1, step = 1;  // hi -1: free
    std::string text{};                 // as the model or inference tells it; equal ones are equal in a run
    bool maybe_empty = false;           // import decides whether it may be 0
  };
  std::vector<Extent> extents;  // with the --dim options applied
  size_t index = 0;             // among the model's inputs without an initializer; of others kInNoFile
  const DimOption* elements = nullptr;  // --dim INPUT<=MAX
  bool needed = true;                   // by the outputs of --only
  std::optional<FrameWords> frame{};    // --pre: the caller gives a camera's frame, rows of bytes
};
// Inputs in the model's order, without those in ImportOptions::constants. Empty where the file can't be
// parsed: import will say why.
std::vector<DeclaredInput> declared_inputs(const std::string& model, const ImportOptions& options);

// The names of all inputs, also of those that have an initializer; of outputs; in the model's order.
std::vector<std::string> declared_names(const std::string& model);
std::vector<std::string> declared_outputs(const std::string& model);

// Options as import takes them: dims parsed, constants read from their files or values; with --only, the
// outputs that are states are wanted as well.
ImportOptions import_options(const ModelOptions& o);

// Reads a .npy or .pb file. UsageError where it can't be read.
Tensor read_tensor_file(const std::string& path);

// Pairs NAME=FILE and FILE options with tensors: result[i] is tensor i's file, empty where it has none. A
// file without a known name belongs to the first tensor that no option names.
std::vector<std::string> pair_files(const std::vector<std::string>& options,
                                    const std::vector<std::string>& names, const std::string& what);

}  // namespace sinter
