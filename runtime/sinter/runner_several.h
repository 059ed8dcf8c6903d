// The program around several nets that share an arena: its first argument is the name of the net that runs,
// the others are those of sinter/runner.h.
#pragma once
#include "sinter/runner.h"

namespace sinter {
namespace runner {

// A tensor that the net finds in the arena, or leaves there, `offset` bytes from its beginning.
inline void put(RunnerCall& c, std::size_t input, std::int64_t offset) {
  const TensorFile& t = c.inputs[input];
  const std::int64_t bytes = tensor_file::count(t.dims) * t.type->bytes;
  if (bytes > 0) std::memcpy(c.arena.data() + offset, t.data.data(), static_cast<std::size_t>(bytes));
}
inline void take(RunnerCall& c, std::size_t output, std::int64_t offset) {
  TensorFile& t = c.outputs[output];
  const std::int64_t bytes = tensor_file::count(t.dims) * t.type->bytes;
  if (bytes > 0) std::memcpy(t.data.data(), c.arena.data() + offset, static_cast<std::size_t>(bytes));
}

}  // namespace runner

// By "A" as well as by "NAME_A", where all names have "NAME_" in front.
inline int runner_main(const std::vector<RunnerNet>& nets, const char* prefix, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  for (const RunnerNet& net : nets)
    if (word == net.name || std::string(prefix) + word == net.name)
      return runner_main(net, argc - 1, argv + 1);
  std::string names;
  for (const RunnerNet& net : nets) names += std::string(names.empty() ? "" : ", ") + net.name;
  std::fprintf(stderr, "which model? The first argument is one of %s\n", names.c_str());
  return 2;
}

}  // namespace sinter
