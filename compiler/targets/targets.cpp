// The table of targets, and which of them this machine is.
#include <map>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

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
#if defined(__x86_64__)
struct Core {
  unsigned family = 0, model = 0;
};
Core host_core() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  return {(a >> 8 & 15) + (a >> 20 & 255), (a >> 4 & 15) | (a >> 12 & 0xf0)};
}
// Zen 5 with whole 512-bit units: family 1Ah, but for Strix Point (models 2xh) and Krackan Point (6xh), whose
// units are half as wide.
bool is_wide_zen5() {
  const Core c = host_core();
  return __builtin_cpu_is("amd") && c.family == 0x1a && c.model >> 4 != 2 && c.model >> 4 != 6;
}
// Servers of Cascade Lake, Cooper Lake (model 55h) and Ice Lake (6Ah, 6Ch); the others of Intel's processors
// with VNNI have one 512-bit unit, or are Sapphire Rapids and later.
bool is_cascade_lake() {
  const Core c = host_core();
  return __builtin_cpu_is("intel") && c.family == 6 &&
         (c.model == 0x55 || c.model == 0x6a || c.model == 0x6c);
}
#endif

// Whether a row that this machine executes was made for cores like its own.
bool suits_host([[maybe_unused]] const Target& t) {
#if defined(__x86_64__)
  if (std::string_view(t.name) == "zen5") return is_wide_zen5();
  if (std::string_view(t.name) == "cascadelake") return is_cascade_lake();
  if (std::string_view(t.name).substr(0, 14) == "sapphirerapids")
    return __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512bf16");
#endif
  return true;
}

#if defined(__x86_64__)
// Whether the processor has AMX with bfloat16 and Linux lets processes use it (runtime/sinter/amx.h).
bool has_tile_matrices() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kBfloat16) == 0 || (d & kTiles) == 0) return false;
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}
#endif
}  // namespace

bool host_can_run(const Target& t) {
  const std::string isa = t.isa;
#if defined(__x86_64__)
  if (t.tile_matrices && !has_tile_matrices()) return false;
  if (isa == "avx512")
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && (!t.dot_products || __builtin_cpu_supports("avx512vnni"));
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "sse42") return __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__) && defined(__linux__)
  if (isa == "neon") {
    const unsigned long has = getauxval(AT_HWCAP), also = getauxval(AT_HWCAP2);
    return (!t.dot_products || (has & HWCAP_ASIMDDP)) && (!t.halves || (has & HWCAP_ASIMDHP)) &&
           (!t.byte_matrices || (also & HWCAP2_I8MM));
  }
#endif
  return isa == "scalar";
}

const Target* find_target(const std::string& name) {
  if (name == "host") {
    // aarch64 rows are listed from specific to general; the general one is right on every board. Cooper Lake
    // has Sapphire Rapids' bfloat16: its own row comes first.
    for (const char* best : {"sapphirerapids-amx", "cascadelake", "sapphirerapids", "zen5", "avx512vnni",
                             "avx512", "avx2", "x86-64-v2", "aarch64", "scalar"})
      if (const Target* t = find_target(best); t && host_can_run(*t) && suits_host(*t)) return t;
  }
  for (const Target* t : all_targets())
    if (name == t->name) return t;
  return nullptr;
}

const Target& in_halves(const Target& t) {
  static const std::map<std::string_view, Target> table = [] {
    std::map<std::string_view, Target> rows;
    for (const Target* row : all_targets())
      if (row->halves) {
        Target& of = rows.emplace(row->name, *row).first->second;
        of.lanes = 2 * row->lanes;
        of.of_halves = true;
      }
    return rows;
  }();
  return table.at(t.name);
}

}  // namespace sinter
