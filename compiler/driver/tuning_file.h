// Tuning files: what `sinter tune` measured, as JSON that `compile --tuning` reads.
//
//   { "sinter_tuning": 1, "kernels": "<version of the kernel table>",
//     "rows": [ { "target": "cortex-a72", "layer": "Conv ... float32[1,56,56,64] -> ...", "choice": "winograd
//     4",
//                 "cost": 812.5, "unit": "us" } ] }
//
// "unfinished", where it is, says of a `sinter tune` that was interrupted how far it got: { "<model, options
// and machine, hashed>": [ "<layer>", ... ] }.
//
// A row says which of a layer's choices made the whole net cheapest, and what that net cost with it.
#pragma once
#include <string>
#include <vector>

#include "driver/options.h"
#include "plan/tuning.h"
#include "targets/target.h"

namespace sinter {

struct TuningRow {
  std::string target, layer, choice;
  double cost = 0;
  std::string unit;  // us or cycles
};

// The choices of `path` for a target; none where `path` is empty. UsageError where it is no tuning file. Rows
// that were measured with other kernels than this program's are ignored, with a warning on standard error.
Tuning read_tuning(const std::string& path, const Target& target, const Say& say);
// The layers that a run of `sinter tune` was through with before it was interrupted, in order, and the rows
// that it found. `run` names the model, its options and the machine.
struct TuningProgress {
  std::string run;
  std::vector<std::string> layers;
  std::vector<TuningRow> rows;
};
// What `path` has of this run; nothing where there is no such file, or none of these kernels.
TuningProgress read_progress(const std::string& path, const std::string& run, const Target& target);
// Rows of other targets and layers that `path` has already, if it is a tuning file of these kernels, stay. As
// `finished`, nothing of the run's progress is kept but the rows.
void write_tuning(const std::string& path, const TuningProgress& progress, bool finished);
std::string tuning_file_hash(const std::string& path);  // sha256 of its bytes, hex

}  // namespace sinter
