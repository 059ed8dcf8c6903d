#include "driver/build.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "driver/errors.h"
#include "driver/process.h"
#include "driver/runner_object.h"
#include "emit/printer.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words(const std::string& s) {
  std::istringstream in(s);
  return {std::istream_iterator<std::string>(in), {}};
}

std::vector<std::string> host_compiler() {
  if (const char* cxx = std::getenv("CXX"); cxx && *cxx) {
    std::vector<std::string> w = words(cxx);  // "ccache g++" is usual
    if (!w.empty() && !find_program(w[0]).empty()) return w;
    throw ToolchainError(fmt::format("CXX names {}, which is no program", sinter::quoted(cxx)));
  }
  for (const char* name : {"c++", "g++", "clang++"})
    if (const std::string path = find_program(name); !path.empty()) return {path};
  throw ToolchainError("no C++ compiler: set CXX, or install g++");
}

// Whether the compiler knows these flags: others than g++ end at them, or warn.
bool takes(std::vector<std::string> compiler, const std::vector<std::string>& flags) {
  if (flags.empty()) return true;
  compiler.insert(compiler.end(), flags.begin(), flags.end());
  compiler.insert(compiler.end(), {"-Werror", "-fsyntax-only", "-x", "c++", "/dev/null"});
  return run_process(compiler, true).code == 0;
}

bool is_same_architecture(const Target& t) {
#if defined(__aarch64__)
  return t.aarch64 || std::string(t.isa) == "scalar";
#else
  return !t.aarch64;
#endif
}

// What is built of a bundle: the net's code alone, with its weights, and with the runner.
enum class Parts { kCode, kNet, kProgram };

std::vector<fs::path> sources_of(const fs::path& dir, const std::string& name, Parts parts) {
  std::vector<fs::path> sources;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string file = entry.path().filename().string();
    if (file == name + ".cpp" ||
        (parts != Parts::kCode && (file == name + "_weights.S" || file == name + "_weights.c")) ||
        (parts == Parts::kProgram && file == name + "_main.cpp") ||
        (file.rfind(name + "_part", 0) == 0 && file.ends_with(".cpp")))
      sources.push_back(entry.path());
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

// Bytes that an object takes of a program's read-only memory.
int64_t read_only_bytes(const fs::path& object) {
  std::ifstream f(object, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(f), {});
  Elf64_Ehdr head;
  if (bytes.size() < sizeof head) throw ToolchainError(object.string() + " is no object file");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
    throw ToolchainError(object.string() + " is no 64-bit ELF object");
  int64_t sum = 0;
  for (size_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    const size_t at = head.e_shoff + i * sizeof section;
    if (at + sizeof section > bytes.size()) break;
    std::memcpy(&section, bytes.data() + at, sizeof section);
    if ((section.sh_flags & SHF_ALLOC) && !(section.sh_flags & SHF_WRITE) && section.sh_type != SHT_NOBITS)
      sum += static_cast<int64_t>(section.sh_size);
  }
  return sum;
}

// What stands between quotes behind `key: `.
std::string quoted_field(const std::string& line, const std::string& key) {
  const size_t at = line.find(key + ": \"");
  if (at == std::string::npos) return "";
  const size_t from = at + key.size() + 3;
  return line.substr(from, line.find('"', from) - from);
}

// The deepest stack of any chain of calls, from g++'s call graphs with stack usage.
int64_t deepest_stack(const std::vector<fs::path>& graphs) {
  std::map<std::string, int64_t> own;
  std::map<std::string, std::set<std::string>> calls;
  for (const fs::path& g : graphs) {
    std::ifstream f(g);
    for (std::string line; std::getline(f, line);) {
      if (line.rfind("node:", 0) == 0) {
        const std::string label = quoted_field(line, "label");
        const size_t unit = label.find(" bytes (");
        if (unit == std::string::npos) continue;
        const size_t from = label.rfind("\\n", unit);
        own[quoted_field(line, "title")] =
            std::atoll(label.c_str() + (from == std::string::npos ? 0 : from + 2));
      } else if (line.rfind("edge:", 0) == 0) {
        calls[quoted_field(line, "sourcename")].insert(quoted_field(line, "targetname"));
      }
    }
  }
  std::map<std::string, int64_t> depth;
  std::set<std::string> path;
  std::function<int64_t(const std::string&)> visit = [&](const std::string& f) -> int64_t {
    if (auto it = depth.find(f); it != depth.end()) return it->second;
    if (!path.insert(f).second)
      throw ToolchainError("the generated code is recursive: its stack has no bound");
    int64_t below = 0;
    for (const std::string& callee : calls[f]) below = std::max(below, visit(callee));
    path.erase(f);
    return depth[f] = below + own[f] + 8;
  };
  int64_t deepest = 0;
  for (const auto& [f, bytes] : own) deepest = std::max(deepest, visit(f));
  return deepest;
}

struct Objects {
  std::vector<fs::path> all;
  CodeSize size;
};

Objects compile_sources(const fs::path& dir, const std::string& name, const Toolchain& tc,
                        const fs::path& folder, const std::vector<fs::path>& sources, bool measure) {
  Objects objects;
  std::vector<fs::path> code, graphs;
  std::vector<std::vector<std::string>> commands;
  std::optional<RunnerObject> runner;
  for (const fs::path& source : sources) {
    const bool c_source = source.extension() == ".c";  // the weights
    const bool assembly = c_source || source.extension() == ".S";
    const bool is_runner = source.filename() == name + "_main.cpp";
    const fs::path object = folder / (source.stem().string() + ".o");
    std::vector<std::string> c = tc.compile;
    if (c_source) {
      std::erase(c, "-std=c++17");
      c.insert(c.end(), {"-x", "c"});
    }
    if (is_runner) {
      c.push_back("-O0");  // not the net's code: quick to compile counts
      const bool is_usual = !fs::exists(dir / "sinter" / "runner_bench.h");
      if (is_usual) runner.emplace(c, dir, folder), c.push_back(kRunnerApart);
    }
    if (const std::string part = source.stem().string(), before = name + "_part_"; part.rfind(before, 0) == 0)
      if (const auto flags = tc.of_part.find(part.substr(before.size())); flags != tc.of_part.end())
        c.insert(c.end(), flags->second.begin(), flags->second.end());
    if (measure && !assembly && !is_runner) c.push_back("-fcallgraph-info=su");
    c.insert(c.end(), {"-I" + dir.string(), "-c", source.string(), "-o", object.string()});
    commands.push_back(std::move(c));
    objects.all.push_back(object);
    if (!assembly && !is_runner)
      code.push_back(object), graphs.push_back(fs::path(object).replace_extension(".ci"));
  }
  if (runner) objects.all.push_back(runner->path());
  if (runner && runner->command()) commands.push_back(*runner->command());
  const auto results = run_processes(commands, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].code != 0) {
      std::string command;
      for (const std::string& w : commands[i]) command += w + " ";
      throw ToolchainError(fmt::format("the C++ compiler failed ({}):\n{}\n{}", results[i].code, command,
                                       results[i].output.substr(0, 8000)));
    }
  if (runner) runner->keep();
  if (measure) {
    for (const fs::path& o : code) objects.size.text_bytes += read_only_bytes(o);
    for (const fs::path& g : graphs)
      if (!fs::exists(g)) throw ToolchainError("only g++ 10 and later can measure the stack");
    objects.size.stack_bytes = deepest_stack(graphs);
  }
  return objects;
}

void linked(const std::vector<std::string>& command) {
  const Finished f = run_process(command, true);
  if (f.code != 0) throw ToolchainError("linking failed:\n" + f.output.substr(0, 8000));
}

// The pool of a shared library of a net with --threads.
constexpr const char* kPoolSource = R"(#include "sinter/thread_pool.h"
extern "C" const sinter_pool* sinter_start_pool(int threads) { return (new sinter::ThreadPool(threads))->pool(); }
extern "C" void sinter_stop_pool(const sinter_pool* pool) { delete static_cast<sinter::ThreadPool*>(pool->context); }
)";

// What the target adds to the compiler's flags.
std::vector<std::string> flags_of(const Target& target, const std::vector<std::string>& compiler) {
  std::vector<std::string> flags = words(target.cxx_flags), with = compiler;
  const std::vector<std::string> gcc = words(target.gcc_flags);
  with.insert(with.end(), flags.begin(), flags.end());
  if (takes(with, gcc)) flags.insert(flags.end(), gcc.begin(), gcc.end());
  return flags;
}

Toolchain plain_toolchain(const Target& target, bool execute) {
  Toolchain tc;
  if (is_same_architecture(target)) {
    if (execute && !host_can_run(target))
      throw UsageError(fmt::format("this machine can't execute code for {}", target.name));
    tc.compile = host_compiler();
    tc.link = tc.compile;
  } else {
    const char* const cross = target.aarch64 ? "aarch64-linux-gnu-g++" : "x86_64-linux-gnu-g++";
    const char* const machine = target.aarch64 ? "qemu-aarch64" : "qemu-x86_64";
    const std::string compiler = find_program(cross);
    if (compiler.empty())
      throw ToolchainError(fmt::format("no C++ compiler for {}: install {}", target.name, cross));
    tc.compile = {compiler};
    tc.link = {compiler, "-static"};
    std::string emulator = find_program(std::string(machine) + "-static");
    if (emulator.empty()) emulator = find_program(machine);
    if (execute && emulator.empty())
      throw ToolchainError(
          fmt::format("nothing here executes code for {}: install {}", target.name, machine));
    tc.execute = {emulator};
  }
  for (const char* f : {"-std=c++17", "-O2", "-fno-math-errno", "-fno-trapping-math", "-fno-tree-vectorize"})
    tc.compile.push_back(f);
  return tc;
}

}  // namespace

Toolchain toolchain_for(const Target& target, bool execute) {
  Toolchain tc = plain_toolchain(target, execute);
  const std::vector<std::string> flags = flags_of(target, tc.compile);
  tc.compile.insert(tc.compile.end(), flags.begin(), flags.end());
  return tc;
}

Toolchain toolchain_for(const std::vector<const Target*>& targets, bool execute) {
  Toolchain tc = plain_toolchain(*targets[0], execute);
  for (const Target* t : targets) tc.of_part[identifier(t->name)] = flags_of(*t, tc.compile);
  return tc;
}

void build_program(const fs::path& dir, const std::string& name, const Toolchain& tc, const fs::path& folder,
                   const fs::path& program, CodeSize* size) {
  const Objects objects =
      compile_sources(dir, name, tc, folder, sources_of(dir, name, Parts::kProgram), size != nullptr);
  std::vector<std::string> link = tc.link;
  for (const fs::path& o : objects.all) link.push_back(o.string());
  if (fs::exists(dir / "sinter" / "thread_pool.h")) link.push_back("-pthread");
  link.insert(link.end(), {"-o", program.string()});
  linked(link);
  if (size) *size = objects.size;
}

CodeSize measure_code(const fs::path& dir, const std::string& name, const Toolchain& tc,
                      const fs::path& folder) {
  return compile_sources(dir, name, tc, folder, sources_of(dir, name, Parts::kCode), true).size;
}

void build_library(const fs::path& dir, const std::string& name, const Toolchain& given,
                   const fs::path& folder, const fs::path& library) {
  Toolchain tc = given;
  tc.compile.push_back("-fPIC");
  std::vector<fs::path> sources = sources_of(dir, name, Parts::kNet);
  const bool threads = fs::exists(dir / "sinter" / "thread_pool.h");
  if (threads) {
    sources.push_back(folder / "sinter_pool.cpp");
    std::ofstream(sources.back()) << kPoolSource;
  }
  const Objects objects = compile_sources(dir, name, tc, folder, sources, false);
  const fs::path exported = folder / "exported.map";
  std::ofstream(exported) << fmt::format(
      "{{ global: {0}_run; {0}_reset; {0}_seed; {0}_error; {0}_weights*; {0}_*_run; {0}_*_reset; {0}_*_seed; "
      "{0}_*_error; "
      "sinter_start_pool; sinter_stop_pool; local: *; }};\n",
      name);
  std::vector<std::string> link = tc.link;
  std::erase(link, "-static");
  link.insert(link.end(), {"-shared", "-Wl,-Bsymbolic", "-Wl,--version-script=" + exported.string()});
  for (const fs::path& o : objects.all) link.push_back(o.string());
  if (threads) link.push_back("-pthread");
  link.insert(link.end(), {"-o", library.string()});
  linked(link);
}

}  // namespace sinter
