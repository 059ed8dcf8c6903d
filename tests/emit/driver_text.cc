#include "emit/driver_text.h"

#include "emit/bundle.h"
#include "emit/code.h"
#include "emit/printer.h"

namespace sinter {
namespace {

// It is host code of the test: it may allocate and read files. Tensors in its files are: rank,
// extents, bytes (int64 each), data.
const char* const kDriverHead = R"(
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

#if defined(__SANITIZE_ADDRESS__)
#define DRIVER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DRIVER_SANITIZED 1
#endif
#endif
#if defined(DRIVER_SANITIZED)
constexpr size_t kGuard = 0;  // AddressSanitizer has its own
#else
constexpr size_t kGuard = 256;
#endif

// Bytes between guards, filled with garbage. `shift` moves them off the 64-byte boundary.
struct Guarded {
  size_t size, shift;
  void* block = nullptr;
  Guarded(int64_t bytes, size_t shifted) : size(static_cast<size_t>(bytes)), shift(shifted) {
    if (posix_memalign(&block, 64, kGuard + shift + size + kGuard + (size + shift == 0)) != 0) std::abort();
    std::memset(block, 0xCD, kGuard + shift + size + kGuard);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { std::free(block); }
  unsigned char* data() { return static_cast<unsigned char*>(block) + kGuard + shift; }
  bool intact() const {
    const unsigned char* p = static_cast<const unsigned char*>(block);
    for (size_t i = 0; i < kGuard + shift; ++i)
      if (p[i] != 0xCD) return false;
    for (size_t i = kGuard + shift + size; i < kGuard + shift + size + kGuard; ++i)
      if (p[i] != 0xCD) return false;
    return true;
  }
};

struct Input {
  std::vector<int64_t> dims;
  Guarded* bytes = nullptr;
  std::string copy;
  ~Input() { delete bytes; }
};

struct Files {
  std::ifstream in;
  std::ofstream out;
  int64_t integer() {
    int64_t v = 0;
    in.read(reinterpret_cast<char*>(&v), 8);
    return v;
  }
  void tensor(Input& t, size_t element) {
    for (int64_t rank = integer(); rank > 0; --rank) t.dims.push_back(integer());
    const int64_t bytes = integer();
    t.bytes = new Guarded(bytes, element);
    t.copy.resize(static_cast<size_t>(bytes));
    in.read(&t.copy[0], bytes);
    if (bytes > 0) std::memcpy(t.bytes->data(), t.copy.data(), t.copy.size());
  }
  void put(int64_t v) { out.write(reinterpret_cast<const char*>(&v), 8); }
};

// How this thread computes with floats, without what has happened so far.
unsigned float_mode() {
#if defined(__SSE__)
  return __builtin_ia32_stmxcsr() & ~0x3fu;
#else
  return 0;
#endif
}

bool same(Input& t) { return t.copy.empty() || std::memcmp(t.bytes->data(), t.copy.data(), t.copy.size()) == 0; }

)";

}  // namespace

// The driver's function for one model: all its data sets.
std::string driver_case(const Graph& g, const std::string& id, size_t data_sets, bool threads) {
  Printer p;
  p.line("[[maybe_unused]] void run_{}(Files& f) {{", id);
  p.line("for (int set = 0; set < {}; ++set) {{", data_sets);
  p.line("{0}_inputs in{{}};", id);
  p.line("{0}_outputs out{{}};", id);
  const auto ins = members_of(g.inputs), outs = members_of(g.outputs);
  for (size_t i = 0; i < ins.size(); ++i) {
    const Member& m = ins[i];
    p.line("Input x{};", i);
    p.line("f.tensor(x{}, sizeof *in.{});", i, m.name);
    p.line("in.{0} = static_cast<decltype(in.{0})>(static_cast<const void*>(x{1}.bytes->data()));", m.name,
           i);
    if (m.dynamic)
      p.line("for (size_t d = 0; d < x{0}.dims.size(); ++d) in.{1}_dims[d] = x{0}.dims[d];", i, m.name);
  }
  // The names of the macros as the header makes them.
  Names macros;
  for (const char* taken : {"ARENA_BYTES", "WEIGHTS_BYTES", "STACK_BYTES"}) macros.reserve(taken);
  for (const Member& m : ins) macros.unique(upper(m.name) + "_MAX_BYTES");
  for (size_t i = 0; i < outs.size(); ++i) {
    const Member& m = outs[i];
    p.line("Guarded y{}({}_{}, sizeof *out.{});", i, upper(id), macros.unique(upper(m.name) + "_MAX_BYTES"),
           m.name);
    p.line("out.{0} = static_cast<decltype(out.{0})>(static_cast<void*>(y{1}.data()));", m.name, i);
  }
  p.line("Guarded arena({}_ARENA_BYTES, 0);", upper(id));
  std::string intact = "arena.intact()";
  if (threads) {
    p.line("static sinter::ThreadPool pool({}_THREADS);", upper(id));
    // What a run leaves alone must be the same before both.
    for (size_t i = 0; i < outs.size(); ++i) p.line("std::memset(y{0}.data(), 0x5a, y{0}.size);", i);
    p.line("{}_run(&in, &out, arena.data(), nullptr);", id);
    for (size_t i = 0; i < outs.size(); ++i) {
      p.line("const std::vector<unsigned char> alone{0}(y{0}.data(), y{0}.data() + y{0}.size);", i);
      p.line("std::memset(y{0}.data(), 0x5a, y{0}.size);", i);
      intact += fmt::format(" && std::equal(alone{0}.begin(), alone{0}.end(), y{0}.data())", i);
    }
  }
  p.line("const unsigned mode = float_mode();");
  p.line("f.put({}_run(&in, &out, arena.data(){}));", id, threads ? ", pool.pool()" : "");
  for (size_t i = 0; i < ins.size(); ++i) intact += fmt::format(" && x{0}.bytes->intact() && same(x{0})", i);
  for (size_t i = 0; i < outs.size(); ++i) intact += fmt::format(" && y{}.intact()", i);
  p.line("f.put({} ? float_mode() == mode : 2);", intact);
  for (size_t i = 0; i < outs.size(); ++i) {
    const Member& m = outs[i];
    const Shape& s = m.value->type.shape;
    p.line("f.put({});", s.size());
    for (size_t d = 0; d < s.size(); ++d)
      p.line("f.put({});", m.dynamic ? fmt::format("out.{}_dims[{}]", m.name, d) : s[d].text());
    p.line("f.put(static_cast<int64_t>(y{}.size));", i);
    p.line(
        "f.out.write(reinterpret_cast<const char*>(y{0}.data()), static_cast<std::streamsize>(y{0}.size));",
        i);
  }
  p.line("}}");
  p.line("}}");
  return p.text();
}

std::string driver_text(const std::vector<std::string>& ids, const std::string& cases, bool threads) {
  std::string s = threads ? "#include <algorithm>\n#include \"sinter/thread_pool.h\"\n" : "";
  for (const std::string& id : ids) s += fmt::format("#include \"{}.h\"\n", id);
  s += kDriverHead + cases;
  s += "}  // namespace\n\nint main(int argc, char** argv) {\n  if (argc != 4) return 2;\n  Files f;\n"
       "  f.in.open(argv[2], std::ios::binary);\n  f.out.open(argv[3], std::ios::binary);\n"
       "  const std::string model = argv[1];\n";
  for (const std::string& id : ids) s += fmt::format("  if (model == \"{0}\") run_{0}(f);\n", id);
  return s + "  f.out.close();\n  return f.in && f.out ? 0 : 3;\n}\n";
}

}  // namespace sinter
