// The tables of a measurement: layers and nets, with a column for each number of threads. sinter bench prints
// them, and the programs that it exports do.
#pragma once
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace sinter {
namespace runner {

struct LayerTimes {
  std::string function, kernel;
  double flops = 0, bytes = 0;
  std::vector<double> us;  // by number of threads; 0: part of the next one's
};

struct NetTimes {
  int threads;
  double least_us, median_us;
  int runs;
};

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
inline std::string
printed(const char* format, ...) {
  char text[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

inline std::string threads_text(int n) { return std::to_string(n) + (n == 1 ? " thread" : " threads"); }

// A row each layer: its time, its share of all, operations and bytes a second. With several numbers of
// threads a time for each, the rates of the first, and how many times as fast the last is. Of layers that are
// timed with the next, operations and bytes are the next one's.
inline std::string layer_table(const std::vector<int>& threads, const std::vector<LayerTimes>& layers) {
  std::string s;
  if (threads.size() > 1) {
    s += printed("%4s  %-34s %-18s ", "#", "layer", "kernel");
    for (const int n : threads) s += printed("%13s", threads_text(n).c_str());
    s += "   share                                times as fast\n";
  }
  double sum = 0, flops = 0, bytes = 0;
  for (const LayerTimes& l : layers) sum += l.us[0];
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerTimes& l = layers[i];
    s += printed("%4zu  %-34.34s %-18.18s ", i, l.function.c_str(), l.kernel.c_str());
    flops += l.flops, bytes += l.bytes;
    const double t = l.us[0];
    if (t <= 0) {
      s += "with the next\n";
      continue;
    }
    for (const double us : l.us) s += us > 0 ? printed("%10.2f us", us) : printed("%13s", "-");
    s += printed(" %5.1f %% %8.2f GFLOP/s %7.2f GB/s", 100 * t / sum, flops / t / 1e3, bytes / t / 1e3);
    if (threads.size() > 1) s += l.us.back() > 0 ? printed(" %7.2f", t / l.us.back()) : printed(" %7s", "-");
    s += "\n";
    flops = bytes = 0;
  }
  return s;
}

// A line each number of threads.
inline std::string net_lines(const std::vector<NetTimes>& nets) {
  std::string s;
  for (const NetTimes& n : nets) {
    if (nets.size() > 1) s += printed("%-10s ", threads_text(n.threads).c_str());
    s += printed("min %.2f us, median %.2f us of %d runs", n.least_us, n.median_us, n.runs);
    if (&n != &nets[0])
      s += printed(", %.2f times as fast as %s", nets[0].median_us / n.median_us,
                   threads_text(nets[0].threads).c_str());
    s += "\n";
  }
  return s;
}

// How the machine was, of what it tells: 0 and -1 are unknown.
struct BoardFigures {
  long khz = 0, most_khz = 0, millidegrees = 0;
  int throttled = -1;
};
inline std::string board_lines(const BoardFigures& b) {
  std::string s;
  if (b.khz > 0) {
    s += printed("the core ran at %ld MHz", b.khz / 1000);
    if (b.most_khz > b.khz)
      s += printed(" of %ld: throttled, or its governor holds it back", b.most_khz / 1000);
    s += "\n";
  }
  if (b.millidegrees > 0)
    s += printed("the hottest place has %.1f degrees\n", static_cast<double>(b.millidegrees) / 1e3);
  if (b.throttled == 1) s += "the cores are held back, by heat or by a weak supply: the times say little\n";
  if (b.throttled == 0) s += "nothing holds the cores back\n";
  return s;
}

}  // namespace runner
}  // namespace sinter
