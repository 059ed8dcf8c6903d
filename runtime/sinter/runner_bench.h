// The program that sinter bench --export makes: nets with their weights and seeded inputs inside, measured
// wherever it is started. It reads no file and needs no library.
//
//     FILE [--threads 1,2,4] [--cores big|little|LIST] [--repeat N] [--layers] [--json FILE] [NET...]
//
// Without names, all nets, one after the other. Each is there twice, as it is and with a clock that is read
// after every layer (--layers). The checksum is of all outputs: the same for any number of threads, and that
// of the bundle on the same inputs. Exit code: 0, 2 for wrong arguments, 6 if a net returned an error (the
// others are measured all the same) or memory is short, 7 where the machine has no such cores.
#pragma once
#include <climits>
#include <string>
#include <vector>

#include "sinter/runner.h"
#include "sinter/seeded.h"

namespace sinter {

// How an input is filled: by its seed, as a frame or not, or with one number.
struct BenchInput {
  std::size_t seed;
  bool frame, constant;
  double number;
};
struct BenchLayer {
  const char* function;
  const char* kernel;
  double flops, bytes;
};
struct BenchNet {
  const char* name;  // without the program's prefix
  RunnerNet plain, timed;
  std::vector<BenchInput> inputs;
  std::vector<BenchLayer> layers;
};
struct BenchProgram {
  const char* target;
  int most_threads;
  std::vector<int> threads;  // that are measured where nobody says how many
  std::vector<BenchNet> nets;
};

namespace runner {

// One element as the type has it in memory.
inline void put_number(int type, double v, unsigned char* to) {
  const auto put = [to](auto x) { std::memcpy(to, &x, sizeof x); };
  switch (type) {
    case 1: return put(static_cast<float>(v));
    case 11: return put(v);
    case 10: return put(to_half(static_cast<float>(v)));
    case 16: return put(to_bfloat16(static_cast<float>(v)));
    case 3: return put(static_cast<std::int8_t>(v));
    case 4: return put(static_cast<std::uint16_t>(v));
    case 5: return put(static_cast<std::int16_t>(v));
    case 6: return put(static_cast<std::int32_t>(v));
    case 7: return put(static_cast<std::int64_t>(v));
    case 12: return put(static_cast<std::uint32_t>(v));
    case 13: return put(static_cast<std::uint64_t>(v));
    default: return put(static_cast<std::uint8_t>(v));
  }
}

inline bool is_real(int type) { return type == 1 || type == 10 || type == 11 || type == 16; }

// An input of its greatest extents.
inline bool fill(const RunnerTensor& t, const BenchInput& how, TensorFile& out) {
  out.type = element_type(t.type);
  out.dims.clear();
  for (const RunnerExtent& e : t.extents) out.dims.push_back(e.hi);
  if (!out.data.allocate(t.max_bytes)) return false;
  std::mt19937 random = seeded::of_input(how.seed);
  for (std::int64_t i = 0; i < t.max_bytes; i += out.type->bytes) {
    const double v = how.constant      ? how.number
                     : how.frame       ? seeded::byte(random)
                     : is_real(t.type) ? seeded::real(random)
                                       : static_cast<double>(seeded::integer(random));
    put_number(t.type, v, out.data.data() + i);
  }
  return true;
}

struct BenchArguments {
  std::vector<int> threads;
  std::vector<const BenchNet*> nets;
  std::string cores, json;
  int repeat = 100;
  bool layers = false;
};

inline int bench_usage(const BenchProgram& p, const char* self, const std::string& problem) {
  std::string names;
  for (const BenchNet& n : p.nets) names += std::string(" ") + n.name;
  std::FILE* to = problem.empty() ? stdout : stderr;
  if (!problem.empty()) std::fprintf(to, "%s: %s\n", self, problem.c_str());
  std::fprintf(to,
               "usage: %s [--threads 1,2] [--cores big|little|LIST] [--repeat N] [--layers] [--json FILE] "
               "[NET...]\n"
               "  nets for %s:%s\n"
               "  --threads  at most %d\n"
               "  --layers   also the time of each layer\n",
               self, p.target, names.c_str(), p.most_threads);
  return problem.empty() ? 0 : 2;
}

// A number of threads each, in the order given; empty where the text is no such list.
inline std::vector<int> parse_counts(const std::string& text, int most) {
  std::vector<int> counts;
  const char* p = text.c_str();
  for (;; ++p) {
    char* end = nullptr;
    const long n = *p >= '0' && *p <= '9' ? std::strtol(p, &end, 10) : 0;
    if (n < 1 || n > most || std::count(counts.begin(), counts.end(), static_cast<int>(n)) > 0) return {};
    counts.push_back(static_cast<int>(n));
    p = end;
    if (*p == '\0') return counts;
    if (*p != ',') return {};
  }
}

// What is wrong with the arguments, if anything is.
inline std::string parse(const BenchProgram& p, int argc, char** argv, BenchArguments& a) {
  a.threads = p.threads;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--layers") {
      a.layers = true;
      continue;
    }
    if (option.compare(0, 2, "--") != 0) {
      const auto net =
          std::find_if(p.nets.begin(), p.nets.end(), [&](const BenchNet& n) { return option == n.name; });
      if (net == p.nets.end()) return "there is no net " + option;
      a.nets.push_back(&*net);
      continue;
    }
    const std::string value = ++i < argc ? argv[i] : "";
    if (option == "--threads") {
      a.threads = parse_counts(value, p.most_threads);
      if (a.threads.empty())
        return "--threads " + value + ": numbers from 1 to " + std::to_string(p.most_threads) +
               ", each once, with commas; more with sinter bench --export --threads";
    } else if (option == "--cores" && !value.empty()) {
      a.cores = value;
    } else if (option == "--json" && !value.empty()) {
      a.json = value;
    } else if (option == "--repeat") {
      a.repeat = std::atoi(value.c_str());
      if (a.repeat < 1) return "--repeat: at least 1";
    } else {
      return "unknown, or without its value: " + option;
    }
  }
  if (a.nets.empty())
    for (const BenchNet& n : p.nets) a.nets.push_back(&n);
  return "";
}

// What was measured of a net.
struct BenchResult {
  std::string checksum, error;  // error: of the net
  std::vector<NetTimes> times;
  std::vector<LayerTimes> layers;
};

// Runs one of a net's two forms with so many threads. False where it returned an error.
inline bool bench_run(const RunnerNet& net, const std::vector<BenchInput>& inputs, int threads, int repeats,
                      RunnerCall& call, std::vector<double>& us, std::string& error) {
  call.threads = threads;
  call.inputs.resize(net.inputs.size());
  int code = 0;
  bool ok = true;
  for (std::size_t i = 0; i < net.inputs.size(); ++i)
    ok = ok && fill(net.inputs[i], inputs[i], call.inputs[i]);
  if (!ok || !prepare(net, Arguments(), call, code)) {
    error = "not enough memory";
    return false;
  }
  if (net.reset)
    std::memcpy(call.before.data(), call.state.data(), static_cast<std::size_t>(net.state_bytes));
  if (run_once(net, call) == 0 && measure(net, call, repeats, us)) return true;
  error = "the net returned an error, which is told above";
  return false;
}

inline BenchResult bench_net(const BenchNet& n, const BenchArguments& a) {
  BenchResult r;
  for (const BenchLayer& l : n.layers)
    r.layers.push_back({l.function, l.kernel, l.flops, l.bytes, std::vector<double>(a.threads.size())});
  for (std::size_t k = 0; k < a.threads.size(); ++k) {
    RunnerCall call;
    std::vector<double> us;
    if (!bench_run(n.plain, n.inputs, a.threads[k], a.repeat, call, us, r.error)) return r;
    const RunTimes t = times_of(us);
    r.times.push_back({a.threads[k], t.least, t.median, a.repeat});
    const std::string sum = checksum(call);
    if (!r.checksum.empty() && sum != r.checksum) {
      r.error = "the outputs differ with the number of threads";
      return r;
    }
    r.checksum = sum;
    if (!a.layers) continue;
    RunnerCall timed;
    us.clear();
    if (!bench_run(n.timed, n.inputs, a.threads[k], a.repeat, timed, us, r.error)) return r;
    for (std::size_t i = 0; i < r.layers.size() && i < timed.trace.best.size(); ++i)
      r.layers[i].us[k] = timed.trace.best[i];
  }
  return r;
}

inline double flops_of(const BenchNet& n) {
  double sum = 0;
  for (const BenchLayer& l : n.layers) sum += l.flops;
  return sum;
}

// A line each net, or its layers and a line for each number of threads.
inline void print(const BenchNet& n, const BenchResult& r, const BenchArguments& a) {
  if (!r.error.empty()) {
    std::printf("%-24.24s %s\n", n.name, r.error.c_str());
    return;
  }
  if (a.layers)
    std::printf("\n%s\n%s%s", n.name, layer_table(a.threads, r.layers).c_str(), net_lines(r.times).c_str());
  std::string s = printed("%-24.24s ", n.name);
  for (const NetTimes& t : r.times) s += printed("%12.3f ms", t.median_us / 1e3);
  if (r.times.size() > 1) s += printed(" %7.2f", r.times[0].median_us / r.times.back().median_us);
  s += printed("%9.2f %10.2f  %s", flops_of(n) / r.times[0].median_us / 1e3,
               static_cast<double>(n.plain.arena_bytes) / 1048576, r.checksum.c_str());
  std::printf("%s\n", s.c_str());
  std::fflush(stdout);
}

inline void print_head(const BenchProgram& p, const BenchArguments& a, const std::string& cores) {
  std::printf("for %s, on %s%s, the median of %d runs\n", p.target, cores.empty() ? "any core" : "the cores ",
              cores.c_str(), a.repeat);
  std::string s = printed("%-24s ", "net");
  for (const int t : a.threads) s += printed("%15s", threads_text(t).c_str());
  if (a.threads.size() > 1) s += "  faster";
  std::printf("%s  GFLOP/s  arena MiB  checksum of the outputs\n", s.c_str());
}

inline std::string json_of(const BenchNet& n, const BenchResult& r) {
  std::string s = std::string("  {\"name\": \"") + n.name + "\"";
  if (!r.error.empty()) return s + ", \"error\": \"" + r.error + "\"}";
  s += printed(", \"flops\": %.0f, \"arena_bytes\": %lld, \"checksum\": \"%s\",\n   \"runs\": [", flops_of(n),
               static_cast<long long>(n.plain.arena_bytes), r.checksum.c_str());
  for (std::size_t k = 0; k < r.times.size(); ++k)
    s += printed("%s{\"threads\": %d, \"min_us\": %.3f, \"median_us\": %.3f}", k ? ", " : "",
                 r.times[k].threads, r.times[k].least_us, r.times[k].median_us);
  s += "],\n   \"layers\": [";
  for (std::size_t i = 0; i < r.layers.size(); ++i) {
    const LayerTimes& l = r.layers[i];
    s += (i ? ",\n    " : "\n    ") + ("{\"function\": \"" + l.function + "\", \"kernel\": \"" + l.kernel);
    s += printed("\", \"flops\": %.0f, \"bytes\": %.0f, \"min_us\": [", l.flops, l.bytes);
    for (std::size_t k = 0; k < l.us.size(); ++k) s += printed("%s%.3f", k ? ", " : "", l.us[k]);
    s += "]}";
  }
  return s + "]}";
}

inline int bench_program(const BenchProgram& p, int argc, char** argv) {
  const char* const self = argc > 0 ? argv[0] : "bench";
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--help") return bench_usage(p, self, "");
  BenchArguments a;
  if (const std::string problem = parse(p, argc, argv, a); !problem.empty())
    return bench_usage(p, self, problem);
  std::string cores;
  if (!a.cores.empty())
    if (const std::string problem = run_on_cores(a.cores, cores); !problem.empty()) {
      std::fprintf(stderr, "%s: %s\n", self, problem.c_str());
      return 7;
    }
  const BoardState board;
  print_head(p, a, cores);
  bool ok = true;
  std::string nets;
  for (const BenchNet* n : a.nets) {
    BenchResult r = bench_net(*n, a);
    if (!a.layers) r.layers.clear();
    print(*n, r, a);
    ok = ok && r.error.empty();
    nets += (nets.empty() ? "" : ",\n") + json_of(*n, r);
  }
  std::printf("%s", board_lines(board.figures()).c_str());
  if (const std::int64_t peak = peak_bytes(); peak > 0)
    std::printf("at most %.1f MiB of memory in use\n", static_cast<double>(peak) / 1048576);
  if (!a.json.empty()) {
    std::FILE* f = std::fopen(a.json.c_str(), "w");
    const std::string text = std::string("{\"target\": \"") + p.target +
                             "\", \"repeat\": " + std::to_string(a.repeat) + ", \"cores\": \"" + cores +
                             "\"" + board.json() + ",\n \"nets\": [\n" + nets + "\n ]}\n";
    const bool written = f && std::fwrite(text.data(), 1, text.size(), f) == text.size();
    if (f == nullptr || std::fclose(f) != 0 || !written) {
      std::fprintf(stderr, "%s: %s can't be written\n", self, a.json.c_str());
      return 2;
    }
  }
  return ok ? 0 : 6;
}

}  // namespace runner

inline int bench_main(const BenchProgram& p, int argc, char** argv) {
  try {
    return runner::bench_program(p, argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "not enough memory\n");
    return 6;
  }
}

}  // namespace sinter
