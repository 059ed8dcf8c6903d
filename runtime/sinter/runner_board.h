// What a program that measures asks of the machine it runs on: which cores there are, to run on some of them,
// and how fast and hot they are.
//
// All of it is what Linux tells in /sys, and only where it does: elsewhere figures are 0 or unknown, and to
// choose cores is an error.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#if defined(__linux__)
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>
#endif

#include "sinter/runner_table.h"

namespace sinter {
namespace runner {

// The first line of a file; empty where there is none.
inline std::string line_of(const std::string& path) {
  char text[256] = "";
  if (std::FILE* f = std::fopen(path.c_str(), "r")) {
    if (!std::fgets(text, sizeof text, f)) text[0] = '\0';
    std::fclose(f);
  }
  std::string line = text;
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}
inline long number_of(const std::string& path) { return std::strtol(line_of(path).c_str(), nullptr, 0); }

// The files of a folder whose names begin so.
inline std::vector<std::string> files_in(const std::string& folder, const std::string& beginning) {
  std::vector<std::string> files;
#if defined(__linux__)
  if (DIR* d = opendir(folder.c_str())) {
    while (const dirent* e = readdir(d))
      if (std::string(e->d_name).compare(0, beginning.size(), beginning) == 0)
        files.push_back(folder + "/" + e->d_name);
    closedir(d);
  }
#endif
  (void)folder, (void)beginning;
  std::sort(files.begin(), files.end());
  return files;
}

// "0-3,6" of sorted numbers.
inline std::string list_text(const std::vector<int>& cores) {
  std::string s;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t end = i + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) ++end;
    s += (s.empty() ? "" : ",") + std::to_string(cores[i]);
    if (end > i + 1) s += "-" + std::to_string(cores[end - 1]);
    i = end;
  }
  return s;
}

// The numbers of "0-3,6", sorted; none where the text is no such list.
inline std::vector<int> parse_list(const std::string& text) {
  constexpr long kMost = 4096;
  std::vector<int> cores;
  const char* p = text.c_str();
  const auto number = [&p] {
    char* end = nullptr;
    const long n = *p >= '0' && *p <= '9' ? std::strtol(p, &end, 10) : -1;
    if (n >= 0) p = end;
    return n <= kMost ? n : -1;
  };
  for (;; ++p) {
    const long from = number();
    long to = from;
    if (*p == '-') ++p, to = number();
    if (from < 0 || to < from) return {};
    for (long n = from; n <= to; ++n) cores.push_back(static_cast<int>(n));
    if (*p == '\0') break;
    if (*p != ',') return {};
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

// Cores that are alike.
struct CoreKind {
  long capacity;  // of the scheduler, or the greatest frequency in kHz; 0: the kernel doesn't tell
  std::vector<int> cores;
};

// The kinds among `usable` cores, the least first; `cpus` is /sys/devices/system/cpu.
inline std::vector<CoreKind> core_kinds(const std::string& cpus, const std::vector<int>& usable) {
  std::map<long, std::vector<int>> kinds;
  const auto sort_by = [&](const char* file) {
    kinds.clear();
    for (const int c : usable) kinds[number_of(cpus + "/cpu" + std::to_string(c) + file)].push_back(c);
    return kinds.size() > 1;
  };
  if (!sort_by("/cpu_capacity")) sort_by("/cpufreq/cpuinfo_max_freq");
  std::vector<CoreKind> sorted;
  sorted.reserve(kinds.size());
  for (const auto& [capacity, cores] : kinds) sorted.push_back({capacity, cores});
  return sorted;
}

// What messages say of the machine: "cores 0-3 (capacity 446) and 4-5 (capacity 1024)".
inline std::string text_of(const std::vector<CoreKind>& kinds) {
  std::string s = "cores ";
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    s += (i == 0 ? "" : i + 1 < kinds.size() ? ", " : " and ") + list_text(kinds[i].cores);
    if (kinds.size() > 1) s += " (capacity " + std::to_string(kinds[i].capacity) + ")";
  }
  return s;
}

// The cores that `words` mean, big, little or a list; else `problem` says why not and what there is.
inline std::vector<int> chosen_cores(const std::string& words, const std::vector<CoreKind>& kinds,
                                     std::string& problem) {
  const std::string here = "; here are " + text_of(kinds);
  if (words == "big" || words == "little") {
    if (kinds.size() > 1) return words == "big" ? kinds.back().cores : kinds.front().cores;
    problem = "--cores " + words + ": all cores are alike" + here;
    return {};
  }
  std::vector<int> cores = parse_list(words);
  if (cores.empty()) problem = "--cores " + words + ": give big, little or a list like 0,2-3" + here;
  const auto is_here = [&](int c) {
    return std::any_of(kinds.begin(), kinds.end(),
                       [c](const CoreKind& k) { return std::count(k.cores.begin(), k.cores.end(), c) > 0; });
  };
  const auto missing = std::find_if_not(cores.begin(), cores.end(), is_here);
  if (missing != cores.end())
    problem = "--cores " + words + ": there is no core " + std::to_string(*missing) + here;
  if (!problem.empty()) cores.clear();
  return cores;
}

// The cores that this process may run on.
inline std::vector<int> usable_cores() {
  std::vector<int> cores;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cores.push_back(c);
#endif
  return cores;
}

constexpr const char* kCpus = "/sys/devices/system/cpu";

// From here on this thread, and those that it starts, run on these cores alone. What is wrong, if anything
// is; `chosen` says which they are, "4-5".
inline std::string run_on_cores(const std::string& words, std::string& chosen) {
  const std::vector<int> usable = usable_cores();
  if (usable.empty()) return "--cores " + words + ": this system tells nothing of its cores";
  std::string problem;
  const std::vector<int> cores = chosen_cores(words, core_kinds(kCpus, usable), problem);
  if (!problem.empty()) return problem;
  chosen = list_text(cores);
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int c : cores) CPU_SET(c, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) return "--cores " + words + ": the system refuses";
#endif
  return "";
}

// What the kernel tells of the core that this runs on, in kHz; 0 where it doesn't.
inline long core_khz(const char* what) {
#if defined(__linux__)
  return number_of(std::string(kCpus) + "/cpu" + std::to_string(sched_getcpu()) + "/cpufreq/" + what);
#else
  (void)what;
  return 0;
#endif
}

// How often cores were slowed down for heat since the machine began (x86-64); -1 where it isn't counted.
inline long throttle_count(const std::string& cpus) {
  long sum = -1;
  for (const std::string& cpu : files_in(cpus, "cpu"))
    if (const std::string n = line_of(cpu + "/thermal_throttle/core_throttle_count"); !n.empty())
      sum = std::max(sum, 0L) + std::strtol(n.c_str(), nullptr, 10);
  return sum;
}

// Whether heat or a weak supply holds the cores back now: 1 or 0, -1 where the kernel doesn't tell. Arm's
// boards tell it by the coolers of cpufreq, a Raspberry Pi by its firmware: bits 1 to 3 are now.
inline int held_back(const std::string& thermal, const std::string& firmware) {
  int held = -1;
  for (const std::string& cooler : files_in(thermal, "cooling_device")) {
    if (line_of(cooler + "/type").find("cpufreq") == std::string::npos) continue;
    held = std::max(held, number_of(cooler + "/cur_state") > 0 ? 1 : 0);
  }
  if (const std::string bits = line_of(firmware); !bits.empty())
    held = std::max(held, (std::strtol(bits.c_str(), nullptr, 16) & 0xe) != 0 ? 1 : 0);
  return held;
}

// The hottest place that the kernel tells of, in thousandths of a degree; 0 where it tells of none.
inline long hottest(const std::string& thermal) {
  long most = 0;
  for (const std::string& zone : files_in(thermal, "thermal_zone"))
    most = std::max(most, number_of(zone + "/temp"));
  return most;
}

// The most memory that this process has had, in bytes; 0 where the system doesn't tell.
inline std::int64_t peak_bytes() {
#if defined(__linux__)
  rusage r{};
  if (getrusage(RUSAGE_SELF, &r) == 0) return std::int64_t{r.ru_maxrss} * 1024;
#endif
  return 0;
}

// What a measurement ends with: begun before it, asked after it.
class BoardState {
 public:
  BoardState() : throttles_(throttle_count(kCpus)) {}
  BoardFigures figures() const {
    constexpr const char* kThermal = "/sys/class/thermal";
    BoardFigures b;
    b.khz = core_khz("scaling_cur_freq");
    b.most_khz = core_khz("cpuinfo_max_freq");
    b.millidegrees = hottest(kThermal);
    const long now = throttle_count(kCpus);
    b.throttled = std::max(now < 0 || throttles_ < 0 ? -1
                           : now > throttles_        ? 1
                                                     : 0,
                           held_back(kThermal, "/sys/devices/platform/soc/soc:firmware/get_throttled"));
    return b;
  }
  // The same as members of a JSON object, each with a comma in front; what is unknown is left out.
  std::string json() const {
    const BoardFigures b = figures();
    std::string s;
    const auto tell = [&s](const char* name, long long n) {
      if (n > 0) s += ", \"" + std::string(name) + "\": " + std::to_string(n);
    };
    tell("khz", b.khz);
    tell("most_khz", b.most_khz);
    tell("millidegrees", b.millidegrees);
    tell("peak_bytes", peak_bytes());
    if (b.throttled >= 0) s += b.throttled == 1 ? ", \"throttled\": true" : ", \"throttled\": false";
    return s;
  }

 private:
  long throttles_;
};

}  // namespace runner
}  // namespace sinter
