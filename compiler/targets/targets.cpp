// The table of targets, and which of them this machine is.
#include <string_view>

#include "targets/target.h"

namespace sinter {

const std::vector<Target>& targets_aarch64();
const std::vector<Target>& targets_x86();
const std::vector<Target>& targets_scalar();

const std::vector<const Target*>& all_targets() {
  static const std::vector<const Target*> table = [] {
    std::vector<const Target*> t;
    for (const auto* family : {&targets_aarch64(), &targets_x86(), &targets_scalar()})
      for (const Target& row : *family) t.push_back(&row);
    return t;
  }();
  return table;
}

namespace {
// Whether a row that this machine executes was made for cores like its own.
bool suits_host([[maybe_unused]] const Target& t) {
#if defined(__x86_64__)
  if (std::string_view(t.name) == "sapphirerapids")
    return __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512bf16");
#endif
  return true;
}
}  // namespace

bool host_can_run(const Target& t) {
  const std::string isa = t.isa;
#if defined(__x86_64__)
  if (isa == "avx512")
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && (!t.dot_products || __builtin_cpu_supports("avx512vnni"));
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "sse42") return __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
  if (isa == "neon") return true;
#endif
  return isa == "scalar";
}

const Target* find_target(const std::string& name) {
  if (name == "host") {
    // aarch64 rows are listed from specific to general; the general one is right on every board.
    for (const char* best :
         {"sapphirerapids", "avx512vnni", "avx512", "avx2", "x86-64-v2", "aarch64", "scalar"})
      if (const Target* t = find_target(best); t && host_can_run(*t) && suits_host(*t)) return t;
  }
  for (const Target* t : all_targets())
    if (name == t->name) return t;
  return nullptr;
}

}  // namespace sinter
