// The program around a compiled net: reads its inputs from files, runs it, writes its outputs.
//
//     net --in [NAME=]FILE... [--out [NAME=]FILE...] [--weights FILE] [--steps N] [--seed N] [--repeat N]
//         [--json FILE] [--cores big|little|LIST] [--trace FILE]
//
// Files are .npy or .pb (ONNX TensorProto). A NAME= in front picks the tensor; a file without one belongs to
// the first tensor that has none yet. Outputs without a file are printed. --repeat runs N times more, after
// one that warms up, and --json writes what they took. --cores keeps it on some of the machine's cores
// (sinter/runner_board.h). --trace, in a net compiled with it, writes every layer's result (format: TraceFile
// below).
//
// --steps runs N times, each step with what the one before left in the states. In a file's name, % stands for
// the number of the step, from 0. --seed begins random numbers that lie in the state. An input's file without
// it holds the tensor of all steps or, with one more axis in front, a row for each; an output's takes a row
// of each step.
//
// Nothing from a file reaches the net unchecked: element type, rank and every extent's bounds are compared
// first. Exit code: 0, 2 for wrong arguments or files, 6 if the net returned an error or memory is short, 7
// where the machine has no such cores.
//
// A program of one file has all of it. Where SINTER_RUNNER_APART is defined, only what tells it of the net is
// here, and sinter/runner_program.h is an object of its own, the same for every net (driver/runner_object.h).
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "sinter/tensor.h"

#ifdef SINTER_RUNNER_APART
#define SINTER_RUNNER
#else
#define SINTER_RUNNER inline
#endif

namespace sinter {

struct RunnerExtent {
  std::int64_t lo, hi;
};

// An input or output of the net.
struct RunnerTensor {
  const char* name;    // in the model
  const char* member;  // in NAME_inputs or NAME_outputs
  int type;            // ONNX's number of the element type
  std::vector<RunnerExtent> extents;
  std::int64_t max_bytes;
};

struct RunnerCall;
struct RunnerNet {
  const char* name;
  std::vector<RunnerTensor> inputs, outputs;
  std::int64_t arena_bytes, weights_bytes;
  bool weights_in_file, traced;
  int (*run)(RunnerCall&);
  const char* (*error)(int);
  std::int64_t state_bytes = 0;  // with states: they begin when the program does
  void (*reset)(void*) = nullptr;
  void (*seed)(void*, std::uint64_t) = nullptr;  // with random numbers that differ from run to run
};

// What is written with --trace, or the time of each layer. The file: "SNTRACE1", then for each tensor the
// int32 layer, element type, rank and length of its name, int64 dims, the name, the contents.
struct RunnerTrace {
  std::FILE* file = nullptr;
  bool failed = false;
  std::vector<double> best, now;  // microseconds by layer: the least of all runs, this run
  std::int64_t last = 0;          // when the last layer ended, in nanoseconds of the steady clock
};

struct RunnerCall {
  std::vector<TensorFile> inputs, outputs;
  Buffer arena, weights, state, before;  // before: the state in front of the last step, to repeat it
  RunnerTrace trace;
  int threads = 0;  // of a net compiled with --threads; 0: as many as that said
};

// Reads the arguments, runs the net, writes what they ask for; the program's exit code.
SINTER_RUNNER int runner_main(const RunnerNet& net, int argc, char** argv);

namespace runner {
// The callback of a net compiled with --trace.
SINTER_RUNNER void on_layer(void* context, int layer, const char* value, const void* data, int type, int rank,
                            const std::int64_t* dims, std::int64_t pitch);
}  // namespace runner
}  // namespace sinter

#ifndef SINTER_RUNNER_APART
#include "sinter/runner_program.h"
#endif
