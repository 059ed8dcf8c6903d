#include "emit/generated.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "emit/bundle.h"
#include "emit/code.h"
#include "emit/driver_text.h"
#include "ops/op.h"
#include "plan/strips.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& p) {
  std::ifstream f(p, std::ios::binary);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

std::string first_lines(const std::string& s, size_t limit = 1500) {
  return s.size() <= limit ? s : s.substr(0, limit) + " ...";
}

bool has_tool(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

// A folder of its own under the system's temporary one; removed unless something went wrong in it.
struct Folder {
  fs::path path;
  bool keep = false;
  Folder() {
    std::string name = (fs::temp_directory_path() / "sinter_generated_XXXXXX").string();
    if (!mkdtemp(name.data())) refuse("no temporary folder can be made");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!keep && !std::getenv("SINTER_KEEP")) fs::remove_all(path, ignored);
  }
};

// Runs shell commands in a folder, two at a time; the exit status of each.
std::vector<int> run_all(const fs::path& folder, const std::vector<std::string>& commands) {
  std::vector<int> status(commands.size(), -1);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < commands.size(); i = next++)
      status[i] = std::system(fmt::format("cd '{}' && {}", folder.string(), commands[i]).c_str());
  };
  std::thread other(work);
  work();
  other.join();
  return status;
}

struct Compiler {
  std::string command, nm, launcher;  // launcher: what runs a program of the target
};

Compiler compiler_for(const Target& t, const BuildOptions& o) {
  Compiler c;
  std::string flags = t.cxx_flags;
  if (t.aarch64) {
    c.command = "aarch64-linux-gnu-g++ -static";
    c.nm = "aarch64-linux-gnu-nm";
    c.launcher = "qemu-aarch64-static ";
  } else {
    c.command = o.clang ? "clang++-14" : "g++";
    c.nm = "nm";
  }
  if (has_tool("ccache")) c.command = "ccache " + c.command;
  if (!o.clang) flags += std::string(" ") + t.gcc_flags;
  c.command += " -std=c++17 -I. " + o.flags + " " + flags + " -fno-math-errno -fno-trapping-math";
  if (o.sanitize)  // they find the same without optimisation, which takes as long again
    c.command += " -O0 -fsanitize=address,undefined -fno-sanitize-recover=all";
  else
    c.command += " -fstack-usage";
  return c;
}

}  // namespace

std::string cannot_run(const Target& t, const BuildOptions& o) {
  if (t.aarch64) {
    if (o.clang || o.sanitize) return "aarch64 code is only built with g++ and without sanitizers here";
    if (!has_tool("aarch64-linux-gnu-g++")) return "aarch64-linux-gnu-g++ is missing";
    if (!has_tool("qemu-aarch64-static")) return "qemu-aarch64-static is missing";
    return "";
  }
  if (!has_tool(o.clang ? "clang++-14" : "g++")) return "the compiler is missing";
  if (!host_can_run(t)) return fmt::format("this machine cannot execute {} code", t.name);
  return "";
}

std::string forbidden_symbol(const std::string& object, const Target& target) {
  const std::string list = object + ".nm";
  const Compiler c = compiler_for(target, {});
  if (std::system(fmt::format("{} '{}' > '{}' 2>&1", c.nm, object, list).c_str()) != 0)
    return "nm fails on " + object;
  std::ifstream f(list);
  static const char* const kNames[] = {"malloc", "calloc", "realloc",  "free",       "_Zn",    "_Zd",
                                       "printf", "puts",   "putchar",  "fopen",      "read",   "write",
                                       "fwrite", "fread",  "_ZSt",     "_ZNSt",      "abort",  "exit",
                                       "scanf",  "__cxa",  "alloca",   "_Unwind",    "time",   "getenv",
                                       "__tls",  "rand",   "pthread_", "__gxx_pers", "posix_", "open"};
  for (std::string line; std::getline(f, line);) {
    std::istringstream words(line);
    std::string first, kind, name;
    words >> first;
    if (first.size() == 1)
      kind = first;
    else
      words >> kind;
    words >> name;
    if (kind.find_first_of("BbDdCGgSs") == 0) return "mutable data " + name;
    if (kind != "U") continue;
    for (const char* word : kNames)
      if (name.rfind(word, 0) == 0) return "calls " + name;
  }
  return "";
}

int64_t greatest_frame(const std::string& su_file) {
  std::ifstream f(su_file);
  int64_t most = 0;
  for (std::string line; std::getline(f, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    most = std::max(most, static_cast<int64_t>(std::atoll(line.c_str() + tab + 1)));
    const std::string kind = line.substr(line.rfind('\t') + 1);  // names may hold the word, too
    if (kind.find("dynamic") != std::string::npos && kind.find("bounded") == std::string::npos)
      most = int64_t{1} << 62;
  }
  return most;
}

std::string difference(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  if (got.dtype() != want.dtype())
    return fmt::format("dtype {} instead of {}", name_of(got.dtype()), name_of(want.dtype()));
  if (got.shape() != want.shape())
    return fmt::format("shape {} instead of {}", text(Shape(got.shape().begin(), got.shape().end())),
                       text(Shape(want.shape().begin(), want.shape().end())));
  if (!is_float(want.dtype())) {
    for (int64_t i = 0; i < want.size(); ++i)
      if (got.integer(i) != want.integer(i))
        return fmt::format("element {} is {} instead of {}", i, got.integer(i), want.integer(i));
    return "";
  }
  const DType t = want.dtype();
  const double base = t == DType::kF64 ? 1e-9 : t == DType::kF16 ? 2e-3 : t == DType::kBF16 ? 1.6e-2 : 1e-4;
  const double relative = tolerance.relative < 0 ? base : tolerance.relative,
               of_max = tolerance.of_max < 0 ? (t == DType::kF32 ? 1e-5 : base) : tolerance.of_max;
  double top = 0;
  for (int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.real(i))) top = std::max(top, std::fabs(want.real(i)));
  int64_t worst = -1;
  double excess = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double a = got.real(i), b = want.real(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double over = std::isfinite(a) && std::isfinite(b)
                            ? std::fabs(a - b) - relative * std::fabs(b) - of_max * top
                            : std::numeric_limits<double>::infinity();
    if (over > excess) excess = over, worst = i;
  }
  if (worst < 0) return "";
  return fmt::format("element {} of {} is {} instead of {} (largest {})", worst, want.size(), got.real(worst),
                     want.real(worst), top);
}

void GeneratedBatch::add(const std::string& name, std::unique_ptr<Graph> graph,
                         std::vector<DataSet> data_sets, Tolerance tolerance, Decisions decisions) {
  for (DataSet& d : data_sets)
    if (d.expected.empty() && d.status == 0) d.expected = evaluate(*graph, d.inputs);
  models_.push_back({name, std::move(graph), std::move(data_sets), tolerance, std::move(decisions)});
}

namespace {

void put(std::ostream& f, int64_t v) { f.write(reinterpret_cast<const char*>(&v), 8); }
void put(std::ostream& f, const Tensor& t) {
  put(f, t.rank());
  for (int64_t d : t.shape()) put(f, d);
  put(f, t.bytes());
  f.write(reinterpret_cast<const char*>(t.data()), t.bytes());
}
int64_t take(std::istream& f) {
  int64_t v = -1;
  f.read(reinterpret_cast<char*>(&v), 8);
  return v;
}

std::string check_outputs(const fs::path& file, const Graph& g, const std::vector<DataSet>& data,
                          Tolerance tolerance) {
  std::ifstream f(file, std::ios::binary);
  for (size_t set = 0; set < data.size(); ++set) {
    const std::string where = data.size() > 1 ? fmt::format("data set {}: ", set) : "";
    const int64_t status = take(f), intact = take(f);
    if (status != data[set].status)
      return fmt::format("{}status {} instead of {}", where, status, data[set].status);
    if (intact == 0) return where + "left another mode of floats than it found";
    if (intact != 1) return where + "wrote outside the outputs and the arena";
    for (size_t i = 0; i < g.outputs.size(); ++i) {
      std::vector<int64_t> dims(static_cast<size_t>(std::max<int64_t>(take(f), 0)));
      for (int64_t& d : dims) d = take(f);
      const int64_t bytes = take(f);
      std::string content(static_cast<size_t>(std::max<int64_t>(bytes, 0)), '\0');
      f.read(content.data(), static_cast<std::streamsize>(content.size()));
      if (!f) return where + "the program's file is too short";
      if (status != 0) continue;
      const Tensor& want = data[set].expected[i];
      const std::string output = fmt::format("{}output {} ({}): ", where, i, g.outputs[i]->name);
      if (dims != want.shape())
        return fmt::format("{}shape {} instead of {}", output, text(Shape(dims.begin(), dims.end())),
                           text(Shape(want.shape().begin(), want.shape().end())));
      if (want.bytes() > bytes) return output + "larger than its bound";
      Tensor got(g.outputs[i]->type.dtype, dims);
      if (got.bytes() > 0) std::memcpy(got.mutable_data(), content.data(), static_cast<size_t>(got.bytes()));
      const std::string what = difference(got, want, tolerance);
      if (!what.empty()) return output + what;
    }
  }
  return "";
}

// A translation unit's files are named after its models: u0_39, or u5 for one.
std::string unit_name(const std::vector<size_t>& models) {
  return models.size() == 1 ? fmt::format("u{}", models[0])
                            : fmt::format("u{}_{}", models.front(), models.back());
}

// Of so many, those at every `stride`-th place from `first` on.
std::vector<bool> every(size_t stride, size_t first, size_t count) {
  std::vector<bool> chosen(count);
  for (size_t i = first; i < count; i += stride) chosen[i] = true;
  return chosen;
}

// Two units at least, which are compiled at the same time.
size_t most_together(size_t models) {
  constexpr size_t kMost = 12;
  return std::min(kMost, (models + 1) / 2);
}

// Compiles models, one or several to a translation unit, and looks at the objects.
struct UnitCompiler {
  const fs::path& folder;
  const Compiler& c;
  const Target& target;
  const BuildOptions& o;

  // For each unit what is wrong with it, empty where nothing is. Leaves UNIT.o and UNIT_weights.o.
  std::vector<std::string> compile(const std::vector<std::vector<size_t>>& units) const {
    std::vector<std::string> commands, problems;
    const char* warnings = o.warnings_as_errors ? " -Wall -Wextra -Wconversion -Werror" : " -Wall -Wextra";
    for (const std::vector<size_t>& unit : units) {
      const std::string name = unit_name(unit);
      std::ofstream code(folder / (name + ".cpp")), weights(folder / (name + "_weights.S"));
      for (size_t i : unit) {
        code << "#include \"m" << i << ".cpp\"\n";
        weights << "#include \"m" << i << "_weights.S\"\n";
      }
      commands.push_back(
          fmt::format("{0}{1} -c {2}.cpp -o {2}.o > {2}.log 2>&1 && {0} -c {2}_weights.S -o "
                      "{2}_weights.o >> {2}.log 2>&1",
                      c.command, warnings, name));
    }
    const std::vector<int> status = run_all(folder, commands);
    for (size_t u = 0; u < units.size(); ++u) {
      const std::string object = (folder / unit_name(units[u])).string();
      if (status[u] != 0)
        problems.push_back("does not compile: " + first_lines(read_file(object + ".log")));
      else if (!o.sanitize && forbidden_symbol(object + ".o", target) != "")
        problems.push_back(forbidden_symbol(object + ".o", target));
      else if (!o.sanitize && greatest_frame(object + ".su") > 16384)
        problems.push_back(fmt::format("a stack frame of {} bytes", greatest_frame(object + ".su")));
      else
        problems.emplace_back();
    }
    return problems;
  }
};

}  // namespace

Decisions carried(const Decisions& decisions, const Graph& from, const Graph& to) {
  Decisions d;
  for (size_t i = 0; i < from.nodes.size(); ++i) d.change(*to.nodes[i]) = decisions.of(*from.nodes[i]);
  return d;
}

std::vector<Result> GeneratedBatch::run(const Target& target, const BuildOptions& o) {
  if (models_.size() < 2 || std::getenv("SINTER_TEST_THOROUGH")) return run_whole(target, o);
  if (o.sanitize || o.clang) return run_some(every(3, 0, models_.size()), target, o);
  if (std::string_view(target.isa) == find_target("host")->isa) return run_whole(target, o);
  const std::vector<const Target*>& table = all_targets();
  const auto row = static_cast<size_t>(std::find(table.begin(), table.end(), &target) - table.begin());
  return run_some(every(3, row % 3, models_.size()), target, o);
}

std::vector<Result> GeneratedBatch::run_some(const std::vector<bool>& chosen, const Target& target,
                                             const BuildOptions& o) {
  std::vector<Model> all;
  all.swap(models_);
  std::vector<size_t> places;
  for (size_t i = 0; i < all.size(); ++i)
    if (chosen[i]) places.push_back(i), models_.push_back(std::move(all[i]));
  std::vector<Result> some = run_whole(target, o), results(all.size());
  const std::string skipped = some.empty() ? "" : some[0].skipped;
  for (size_t k = 0; k < places.size(); ++k) {
    results[places[k]] = std::move(some[k]);
    all[places[k]] = std::move(models_[k]);
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (!chosen[i]) results[i] = {all[i].name, "", "", skipped, true};
  models_.swap(all);
  return results;
}

std::vector<Result> GeneratedBatch::run_whole(const Target& target, const BuildOptions& o) {
  std::vector<Result> results;
  for (const Model& m : models_) results.push_back({m.name, "", "", o.run ? cannot_run(target, o) : ""});
  if (results.empty() || !results[0].skipped.empty()) return results;
  Folder folder;
  const Compiler c = compiler_for(target, o);
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<std::string> ids, objects;
  std::vector<std::vector<size_t>> units(1);  // models that share a translation unit
  const size_t together = o.together > 0 ? o.together : most_together(models_.size());
  for (size_t i = 0; i < models_.size(); ++i) {
    const std::string id = fmt::format("m{}", i);
    graphs.push_back(models_[i].graph->clone());
    if (units.back().size() >= together) units.emplace_back();
    try {
      Graph& g = *graphs[i];
      Decisions decisions = carried(models_[i].decisions, *models_[i].graph, g);
      separate_outputs(g, decisions);
      read_pieces(g, target, decisions);
      place_concats(g, target, decisions);
      read_planes(g, target, decisions);
      make_strips(g, target, decisions, o.cache);
      share_strips(g, target, decisions, o.threads, o.cache);
      WeightStore store;
      const Plan plan = make_plan(g, target, decisions, store, o.threads);
      BundleOptions b;
      b.name = id;
      b.model_file = "test.onnx";
      b.model_hash = std::string(64, '0');
      b.command = "test.onnx";
      b.threads = o.threads;
      write_bundle(make_bundle(*graphs[i], plan, target, store, b), folder.path);
    } catch (const Refusal& r) {
      for (const std::string& p : r.problems)
        results[i].refused += (results[i].refused.empty() ? "" : "\n") + p;
      continue;
    }
    units.back().push_back(i);
  }
  if (units.back().empty()) units.pop_back();
  const UnitCompiler compiler{folder.path, c, target, o};
  const std::vector<std::string> problems = compiler.compile(units);
  // A unit of several models with a problem: its models once more, each alone.
  std::vector<std::vector<size_t>> good, alone;
  for (size_t u = 0; u < units.size(); ++u) {
    if (problems[u].empty())
      good.push_back(units[u]);
    else if (units[u].size() == 1)
      results[units[u][0]].error = problems[u];
    else
      for (size_t i : units[u]) alone.push_back({i});
  }
  const std::vector<std::string> single = compiler.compile(alone);
  for (size_t u = 0; u < alone.size(); ++u) {
    results[alone[u][0]].error = single[u];
    if (single[u].empty()) good.push_back(alone[u]);
  }
  for (size_t u = 0; u < units.size(); ++u)
    if (!problems[u].empty() && units[u].size() > 1 &&
        std::all_of(units[u].begin(), units[u].end(), [&](size_t i) { return results[i].error.empty(); }))
      results[units[u][0]].error = "models that are good alone are not good in one unit: " + problems[u];
  std::string cases;
  for (const std::vector<size_t>& unit : good) {
    objects.push_back(unit_name(unit));
    for (size_t i : unit) ids.push_back(fmt::format("m{}", i));
    for (size_t i : unit)
      cases += driver_case(*graphs[i], fmt::format("m{}", i), models_[i].data.size(), o.threads > 1);
  }
  auto finish = [&] {
    for (Result& r : results)
      if (!r.error.empty()) {
        r.error += " [" + folder.path.string() + "]";
        folder.keep = true;
      }
    return results;
  };
  if (!o.run || ids.empty()) return finish();

  std::ofstream(folder.path / "driver.cpp") << driver_text(ids, cases, o.threads > 1);
  std::string link = c.command + " -O0 driver.cpp";  // not the code under test: quick to compile counts
  for (const std::string& object : objects) link += fmt::format(" {0}.o {0}_weights.o", object);
  const int linked = run_all(folder.path, {link + " -o driver > driver.log 2>&1"})[0];
  std::vector<std::string> runs;
  for (const std::string& id : ids) {
    std::ofstream f(folder.path / (id + ".in"), std::ios::binary);
    for (const DataSet& d : models_[std::stoul(id.substr(1))].data)
      for (const Tensor& t : d.inputs) put(f, t);
    runs.push_back(fmt::format("{1}./driver {0} {0}.in {0}.out > {0}.log 2>&1", id, c.launcher));
  }
  std::vector<int> ran;
  if (linked == 0) ran = run_all(folder.path, runs);
  for (size_t k = 0; k < ids.size(); ++k) {
    const size_t i = std::stoul(ids[k].substr(1));
    if (!results[i].error.empty()) continue;
    if (linked != 0)
      results[i].error = "the driver does not build: " + first_lines(read_file(folder.path / "driver.log"));
    else if (ran[k] != 0)
      results[i].error = fmt::format("the program ends with status {}: {}", ran[k],
                                     first_lines(read_file(folder.path / (ids[k] + ".log"))));
    else
      results[i].error =
          check_outputs(folder.path / (ids[k] + ".out"), *graphs[i], models_[i].data, models_[i].tolerance);
  }
  return finish();
}

void expect_good(const std::vector<Result>& results, const std::string& what) {
  for (const Result& r : results) {
    if (!r.skipped.empty()) GTEST_SKIP() << what << ": " << r.skipped;
    EXPECT_EQ(r.refused, "") << what << " " << r.name << ": refused";
    EXPECT_EQ(r.error, "") << what << " " << r.name;
  }
}

}  // namespace sinter
