// What sinter/runner.h declares: reads arguments and files, runs the net, writes outputs, times and traces.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sinter/half.h"
#include "sinter/runner.h"
#include "sinter/runner_board.h"
#include "sinter/status.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace runner {

using Clock = std::chrono::steady_clock;

inline double microseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

inline std::int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

inline void dump(RunnerTrace& t, int layer, const char* value, const void* data, int type, int rank,
                 const std::int64_t* dims, std::int64_t pitch) {
  const std::vector<std::int64_t> shape(dims, dims + rank);
  const ElementType* e = element_type(type);
  const std::int64_t n = tensor_file::count(shape);
  const std::size_t length = std::strlen(value);
  if (!e || n < 0) {
    t.failed = true;
    return;
  }
  const std::int32_t head[] = {layer, type, rank, static_cast<std::int32_t>(length)};
  const auto put = [&](const void* p, std::size_t size) {
    if (size > 0 && std::fwrite(p, 1, size, t.file) != size) t.failed = true;
  };
  put(head, sizeof head);
  put(shape.data(), shape.size() * sizeof(std::int64_t));
  put(value, length);
  const std::int64_t run = rank > 0 ? dims[rank - 1] : 1;
  if (n == 0 || run == pitch) return put(data, static_cast<std::size_t>(n * e->bytes));
  for (std::int64_t i = 0; i < n / run; ++i)
    put(static_cast<const char*>(data) + i * pitch * e->bytes, static_cast<std::size_t>(run * e->bytes));
}

// The callback of a net compiled with --trace.
SINTER_RUNNER void on_layer(void* context, int layer, const char* value, const void* data, int type, int rank,
                            const std::int64_t* dims, std::int64_t pitch) {
  RunnerTrace& t = *static_cast<RunnerTrace*>(context);
  if (t.file) return dump(t, layer, value, data, type, rank, dims, pitch);
  const auto i = static_cast<std::size_t>(layer);
  if (t.now.size() <= i) t.now.resize(i + 1, 0.0);
  const std::int64_t now = nanoseconds();
  t.now[i] += static_cast<double>(now - t.last) / 1e3;
  t.last = now;
}

struct Arguments {
  std::vector<std::string> in, out;  // one per tensor; empty: none
  std::string weights, json, trace, cores, seed;
  int repeat = 0, steps = 1;
};

// Gives `text`, NAME=FILE or FILE, to its tensor. NAME is a member of the struct or a name of the model.
inline bool assign(const std::vector<RunnerTensor>& tensors, std::vector<std::string>& files,
                   const std::string& text) {
  for (const bool member : {true, false})
    for (std::size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1))
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (text.compare(0, at, member ? tensors[i].member : tensors[i].name) == 0) {
          files[i] = text.substr(at + 1);
          return true;
        }
  for (std::string& f : files)
    if (f.empty()) {
      f = text;
      return true;
    }
  return false;
}

inline std::string usage(const RunnerNet& net) {
  std::string s = std::string("usage: ") + net.name + " --in [NAME=]FILE... [--out [NAME=]FILE...]" +
                  (net.weights_in_file ? " --weights FILE" : "") + " [--steps N]" +
                  (net.seed ? " [--seed N]" : "") + " [--repeat N] [--json FILE]" +
                  " [--cores big|little|LIST]" + (net.traced ? " [--trace FILE]" : "") + "\n";
  for (const auto* list : {&net.inputs, &net.outputs})
    for (const RunnerTensor& t : *list) {
      s += std::string(list == &net.inputs ? "  input  " : "  output ") + t.name + " " +
           element_type(t.type)->name + "[";
      for (std::size_t i = 0; i < t.extents.size(); ++i) {
        const RunnerExtent& e = t.extents[i];
        s += (i ? "," : "") + std::to_string(e.lo) + (e.lo == e.hi ? "" : ".." + std::to_string(e.hi));
      }
      s += "]\n";
    }
  return s;
}

inline bool parse(const RunnerNet& net, int argc, char** argv, Arguments& a) {
  a.in.resize(net.inputs.size());
  a.out.resize(net.outputs.size());
  // Tensors that are named come first, so that the others fill what is left.
  for (const bool named : {true, false})
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string option = argv[i], value = argv[i + 1];
      const bool in = option == "--in";
      if (!in && option != "--out") continue;
      const auto& tensors = in ? net.inputs : net.outputs;
      std::vector<std::string> full(tensors.size(), "taken");
      if (assign(tensors, full, value) != named) continue;
      if (!assign(tensors, in ? a.in : a.out, value)) {
        std::fprintf(stderr, "%s: more %s files than %ss\n", net.name, option.c_str(),
                     in ? "input" : "output");
        return false;
      }
    }
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc) return false;
    if (option == "--in" || option == "--out") continue;
    if (option == "--weights")
      a.weights = argv[i + 1];
    else if (option == "--json")
      a.json = argv[i + 1];
    else if (option == "--cores")
      a.cores = argv[i + 1];
    else if (option == "--seed")
      a.seed = argv[i + 1];
    else if (option == "--trace" && net.traced)
      a.trace = argv[i + 1];
    else if (option == "--repeat")
      a.repeat = std::atoi(argv[i + 1]);
    else if (option == "--steps")
      a.steps = std::atoi(argv[i + 1]);
    else
      return false;
  }
  for (std::size_t i = 0; i < a.in.size(); ++i)
    if (a.in[i].empty()) {
      std::fprintf(stderr, "%s: no file for the input %s\n", net.name, net.inputs[i].name);
      return false;
    }
  return a.weights.empty() != net.weights_in_file && a.repeat >= 0 && a.steps > 0;
}

// Compares what was read for an input with what the net takes.
inline std::string misfit(const RunnerTensor& t, const std::string& path, const TensorFile& out) {
  std::string want = std::string(element_type(t.type)->name) + "[";
  bool fits = out.type->onnx == t.type && out.dims.size() == t.extents.size();
  for (std::size_t i = 0; i < t.extents.size(); ++i) {
    const RunnerExtent& e = t.extents[i];
    want += (i ? "," : "") + std::to_string(e.lo) + (e.lo == e.hi ? "" : ".." + std::to_string(e.hi));
    fits = fits && out.dims[i] >= e.lo && out.dims[i] <= e.hi;
  }
  if (fits) return "";
  return path + " is " + out.type->name + tensor_file::shape_text(out.dims) + ", but the input " + t.name +
         " is " + want + "]";
}

// Where the name of a file has the number of the step; npos where it has none.
inline std::size_t number_in(const std::string& path) {
  const std::size_t at = path.rfind('%'), folder = path.rfind('/');
  return at == std::string::npos || (folder != std::string::npos && at < folder) ? std::string::npos : at;
}
inline std::string file_of_step(std::string path, int step, int steps) {
  if (const std::size_t at = number_in(path); steps > 1 && at != std::string::npos)
    path.replace(at, 1, std::to_string(step));
  return path;
}

// Reads what an input is given in a step. `rows` has what one file holds for all of them.
inline std::string load(const RunnerTensor& t, const std::string& path, int step, int steps, TensorFile& rows,
                        TensorFile& out) {
  const bool each = steps == 1 || number_in(path) != std::string::npos;
  const std::string file = file_of_step(path, step, steps);
  if (each || step == 0) {
    // Twelve bytes an element are the most that a typed field of a .pb takes, with its key.
    const std::int64_t limit = (each ? 1 : steps) * (t.max_bytes * 12 + (std::int64_t{1} << 20));
    TensorFile& to = each ? out : rows;
    to = TensorFile();
    std::string problem = read_tensor(file, limit, to);
    if (!problem.empty()) return problem;
  }
  if (!each) {
    const bool row = rows.dims.size() == t.extents.size() + 1 && rows.dims[0] == steps;
    out.type = rows.type;
    out.dims.assign(rows.dims.begin() + (row ? 1 : 0), rows.dims.end());
    const std::int64_t bytes = tensor_file::count(out.dims) * rows.type->bytes;
    if (!out.data.allocate(bytes)) return "not enough memory";
    if (bytes > 0)
      std::memcpy(out.data.data(), rows.data.data() + (row ? step * bytes : 0),
                  static_cast<std::size_t>(bytes));
  }
  return misfit(t, file, out);
}

inline double value_of(const TensorFile& t, std::int64_t i) {
  const unsigned char* p = t.data.data() + i * t.type->bytes;
  const auto as = [p](auto v) {
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  switch (t.type->onnx) {
    case 1: return static_cast<double>(as(float{}));
    case 11: return as(double{});
    case 10: return static_cast<double>(to_float(as(half{})));
    case 16: return static_cast<double>(to_float(as(bfloat16{})));
    case 3:
    case 22:
    case 26: return static_cast<double>(as(std::int8_t{}));
    case 4: return static_cast<double>(as(std::uint16_t{}));
    case 5: return static_cast<double>(as(std::int16_t{}));
    case 6: return static_cast<double>(as(std::int32_t{}));
    case 7: return static_cast<double>(as(std::int64_t{}));
    case 12: return static_cast<double>(as(std::uint32_t{}));
    case 13: return static_cast<double>(as(std::uint64_t{}));
    default: return static_cast<double>(*p);
  }
}

inline void print(const RunnerTensor& t, const TensorFile& f, const std::string& path) {
  std::printf("%s %s%s", t.name, f.type->name, tensor_file::shape_text(f.dims).c_str());
  if (!path.empty()) {
    std::printf(" -> %s\n", path.c_str());
    return;
  }
  const std::int64_t n = tensor_file::count(f.dims);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(n, 16); ++i)
    std::printf("%s%.7g", i ? " " : ": ", value_of(f, i));
  std::printf(n > 16 ? " ...\n" : "\n");
}

// Extents that do not fit together: what each input was given.
inline void tell_extents(const RunnerNet& net, const RunnerCall& call) {
  for (std::size_t i = 0; i < net.inputs.size(); ++i)
    std::fprintf(stderr, "%s: the input %s was given %s\n", net.name, net.inputs[i].name,
                 tensor_file::shape_text(call.inputs[i].dims).c_str());
}

inline int run_once(const RunnerNet& net, RunnerCall& call) {
  RunnerTrace& t = call.trace;
  std::fill(t.now.begin(), t.now.end(), 0.0);
  t.last = nanoseconds();
  const int code = net.run(call);
  if (code != 0) std::fprintf(stderr, "%s: error %d: %s\n", net.name, code, net.error(code));
  if (code == kDimError) tell_extents(net, call);
  return code;
}

// Where a simulator begins and ends to count: the last run, in a program built with SINTER_REGION_MARKS. They
// are unallocated hints, which real processors pass over.
inline void begin_region(bool last) {
#if defined(SINTER_REGION_MARKS) && defined(__aarch64__)
  if (last) __asm__ volatile("hint #112" ::: "memory");
#endif
  (void)last;
}
inline void end_region(bool last) {
#if defined(SINTER_REGION_MARKS) && defined(__aarch64__)
  if (last) __asm__ volatile("hint #113" ::: "memory");
#endif
  (void)last;
}

// Of a list of microseconds.
struct RunTimes {
  double least, median;
};
inline RunTimes times_of(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  return {us[0], (us[us.size() / 2] + us[(us.size() - 1) / 2]) / 2};
}

// Runs `times` times more and adds what each took. With states, each is the last step again: it finds what
// was there before that.
inline bool measure(const RunnerNet& net, RunnerCall& call, int times, std::vector<double>& us) {
  for (int i = 0; i < times; ++i) {
    if (net.reset)
      std::memcpy(call.state.data(), call.before.data(), static_cast<std::size_t>(net.state_bytes));
    const Clock::time_point start = Clock::now();
    begin_region(i + 1 == times);
    if (run_once(net, call) != 0) return false;
    end_region(i + 1 == times);
    us.push_back(microseconds(start, Clock::now()));
    RunnerTrace& t = call.trace;
    if (t.best.size() < t.now.size()) t.best.resize(t.now.size(), 1e300);
    for (std::size_t k = 0; k < t.now.size(); ++k) t.best[k] = std::min(t.best[k], t.now[k]);
  }
  return true;
}

// A number of all outputs, their extents and bytes (FNV-1a), in hex.
inline std::string checksum(const RunnerCall& call) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](const void* data, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  };
  for (const TensorFile& t : call.outputs) {
    add(t.dims.data(), static_cast<std::int64_t>(t.dims.size() * sizeof t.dims[0]));
    add(t.data.data(), tensor_file::count(t.dims) * t.type->bytes);
  }
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

inline bool repeat(const RunnerNet& net, RunnerCall& call, const Arguments& a, const std::string& cores) {
  std::vector<double> us;
  const BoardState board;
  if (!measure(net, call, a.repeat, us)) return false;
  const RunTimes t = times_of(us);
  if (a.json.empty()) {
    std::printf("%d runs: %.2f us at least, median %.2f us\n", a.repeat, t.least, t.median);
    return true;
  }
  std::FILE* f = std::fopen(a.json.c_str(), "w");
  if (!f) return false;
  std::fprintf(f, "{\"runs\": %d, \"min_us\": %.3f, \"median_us\": %.3f", a.repeat, t.least, t.median);
  if (!cores.empty()) std::fprintf(f, ", \"cores\": \"%s\"", cores.c_str());
  std::fprintf(f, ", \"checksum\": \"%s\"%s", checksum(call).c_str(), board.json().c_str());
  std::fprintf(f, ", \"layers_us\": [");
  for (std::size_t k = 0; k < call.trace.best.size(); ++k)
    std::fprintf(f, "%s%.3f", k ? ", " : "", call.trace.best[k]);
  std::fprintf(f, "]}\n");
  return std::fclose(f) == 0;
}

// Says what is wrong with a file, if anything is.
inline bool complain(const RunnerNet& net, const std::string& problem) {
  if (!problem.empty()) std::fprintf(stderr, "%s: %s\n", net.name, problem.c_str());
  return !problem.empty();
}

inline bool load_inputs(const RunnerNet& net, const Arguments& a, int step, std::vector<TensorFile>& rows,
                        RunnerCall& call) {
  for (std::size_t i = 0; i < net.inputs.size(); ++i)
    if (complain(net, load(net.inputs[i], a.in[i], step, a.steps, rows[i], call.inputs[i]))) return false;
  return true;
}

inline bool prepare(const RunnerNet& net, const Arguments& a, RunnerCall& call, int& code) {
  code = 2;
  if (net.weights_in_file) {
    std::string bytes;
    const std::string problem = tensor_file::slurp(a.weights, net.weights_bytes, bytes);
    if (!problem.empty() || static_cast<std::int64_t>(bytes.size()) != net.weights_bytes) {
      std::fprintf(stderr, "%s: %s %s\n", net.name, a.weights.c_str(),
                   problem.empty() ? "does not have this net's weights" : problem.c_str());
      return false;
    }
    if (call.weights.allocate(net.weights_bytes) && !bytes.empty())
      std::memcpy(call.weights.data(), bytes.data(), bytes.size());
  }
  code = 6;
  bool ok = call.arena.allocate(net.arena_bytes) && (!net.weights_in_file || call.weights.data());
  // What is read before it was written shows: NaN as a float, -1 as an integer.
  if (ok) std::memset(call.arena.data(), 0xff, static_cast<std::size_t>(net.arena_bytes));
  if (ok && net.reset) {
    ok = call.state.allocate(net.state_bytes) && call.before.allocate(net.state_bytes);
    if (ok) std::memset(call.state.data(), 0xff, static_cast<std::size_t>(net.state_bytes));
    if (ok) net.reset(call.state.data());
    if (ok && !a.seed.empty()) net.seed(call.state.data(), std::strtoull(a.seed.c_str(), nullptr, 10));
  }
  for (const RunnerTensor& t : net.outputs) {
    call.outputs.emplace_back();
    TensorFile& out = call.outputs.back();
    out.type = element_type(t.type);
    for (const RunnerExtent& e : t.extents) out.dims.push_back(e.lo);
    ok = ok && out.data.allocate(t.max_bytes);
  }
  if (!ok) std::fprintf(stderr, "%s: not enough memory\n", net.name);
  return ok;
}

// One run, with its trace where one is wanted; the exit code.
inline int run_traced(const RunnerNet& net, RunnerCall& call, const std::string& trace) {
  std::FILE*& file = call.trace.file;
  if (!trace.empty()) {
    file = std::fopen(trace.c_str(), "wb");
    if (!file || std::fwrite("SNTRACE1", 1, 8, file) != 8)
      return complain(net, trace + " can't be written") ? 2 : 0;
  }
  const int code = run_once(net, call);
  if (file) {
    const bool failed = std::fclose(file) != 0 || call.trace.failed;
    file = nullptr;
    if (failed) return complain(net, trace + " can't be written") ? 2 : 0;
  }
  return code == 0 ? 0 : 6;
}

// Puts a step's result behind those of the steps before it.
inline std::string append(const RunnerTensor& t, const TensorFile& out, int step, int steps,
                          TensorFile& rows) {
  const std::int64_t bytes = tensor_file::count(out.dims) * out.type->bytes;
  if (step == 0) {
    rows.type = out.type;
    rows.dims = out.dims;
    rows.dims.insert(rows.dims.begin(), steps);
    if (!rows.data.allocate(bytes * steps)) return "not enough memory";
  }
  if (!std::equal(out.dims.begin(), out.dims.end(), rows.dims.begin() + 1, rows.dims.end()))
    return std::string("the output ") + t.name + " has other extents in step " + std::to_string(step) +
           ": give a file for each step, with % for its number";
  if (bytes > 0)
    std::memcpy(rows.data.data() + step * bytes, out.data.data(), static_cast<std::size_t>(bytes));
  return "";
}

// Writes or prints what a step has made; outputs of one file for all steps with the last one.
inline bool store(const RunnerNet& net, const Arguments& a, int step, std::vector<TensorFile>& rows,
                  const RunnerCall& call) {
  for (std::size_t i = 0; i < net.outputs.size(); ++i) {
    const RunnerTensor& t = net.outputs[i];
    const bool each = a.steps == 1 || a.out[i].empty() || number_in(a.out[i]) != std::string::npos;
    if (!each && complain(net, append(t, call.outputs[i], step, a.steps, rows[i]))) return false;
    if (!each && step + 1 < a.steps) continue;
    const TensorFile& out = each ? call.outputs[i] : rows[i];
    const std::string path = file_of_step(a.out[i], step, a.steps);
    if (!path.empty() && complain(net, write_tensor(path, t.name, *out.type, out.dims, out.data.data())))
      return false;
    if (a.steps > 1 && each) std::printf("%d: ", step);
    print(t, out, path);
  }
  return true;
}

inline int run_program(const RunnerNet& net, int argc, char** argv) {
  Arguments a;
  if (!parse(net, argc, argv, a)) {
    std::fputs(usage(net).c_str(), stderr);
    return 2;
  }
  if (!a.seed.empty() && !net.seed && complain(net, "--seed: it wasn't compiled with --random state"))
    return 2;
  std::string cores;
  if (!a.cores.empty() && complain(net, run_on_cores(a.cores, cores))) return 7;
  RunnerCall call;
  std::vector<TensorFile> in_rows(net.inputs.size()), out_rows(net.outputs.size());
  call.inputs.resize(net.inputs.size());
  if (!load_inputs(net, a, 0, in_rows, call)) return 2;
  int code = 0;
  if (!prepare(net, a, call, code)) return code;
  for (int step = 0; step < a.steps; ++step) {
    if (step > 0 && !load_inputs(net, a, step, in_rows, call)) return 2;
    if (net.reset && step + 1 == a.steps)
      std::memcpy(call.before.data(), call.state.data(), static_cast<std::size_t>(net.state_bytes));
    const std::string trace = a.trace.empty() ? "" : file_of_step(a.trace, step, a.steps);
    if (const int failed = run_traced(net, call, trace); failed != 0) return failed;
    if (!store(net, a, step, out_rows, call)) return 2;
  }
  if (a.repeat > 0 && !repeat(net, call, a, cores)) return 6;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  std::fprintf(stderr, "%s: standard output can't be written\n", net.name);
  return 2;
}

}  // namespace runner

SINTER_RUNNER int runner_main(const RunnerNet& net, int argc, char** argv) {
  try {
    return runner::run_program(net, argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: not enough memory\n", net.name);
    return 6;
  }
}

}  // namespace sinter
