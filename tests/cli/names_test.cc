// Names are the model's and may be anything: no name may break out of what is generated, and two names that
// look alike as identifiers stay two.
#include <gtest/gtest.h>

#include "driver/options.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

std::vector<std::string> hostile_names() {
  std::vector<std::string> names = {"\"; #include <nothing>\n",
                                    "*/ int x; /*",
                                    "?\?/\n#error trigraph",
                                    "\\",
                                    "// \\\n",
                                    "x86-64 \xc3\xa9\xe2\x82\xac",
                                    "\xff\xfe broken utf-8",
                                    "%s%n",
                                    "{}{0}",
                                    "</script>",
                                    "9lives",
                                    "a=b",
                                    "sinter::f32v",
                                    "__reserved",
                                    "$PATH",
                                    "`id`"};
  // Words of C++, of the C library and of the code around.
  for (const char* word : {"for",    "class", "in",    "out",           "arena",  "a",     "w",    "i",
                           "x",      "y0",    "N",     "NAN",           "std",    "exp",   "main", "call",
                           "status", "dims",  "m_run", "M_ARENA_BYTES", "kLanes", "splat", "Tile", "import"})
    names.push_back(word);
  names.push_back(std::string(10000, 'x'));
  names.push_back(std::string(10000, 'x') + "z");  // differs behind what any identifier keeps
  return names;
}

// For each name a chain y = -(x * w * v) of its own, in which input, output, weights, nodes and the free dim
// are called by it.
onnx::ModelProto hostile_model(const std::vector<std::string>& all) {
  const onnx::ModelProto one = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[D,2] x) => (float[D,2] y)\n"
      "<float[2] w = {1, 1}, float[2,2] v = {1, 0, 0, 1}> { a = Mul(x, w) b = MatMul(a, v) y = Neg(b) }");
  onnx::ModelProto m = one;
  m.mutable_graph()->Clear();
  m.mutable_graph()->set_name(all[0]);
  for (const std::string& name : all) {
    onnx::GraphProto g = one.graph();
    auto rename = [&](std::string* s) { *s = name + (*s == "x" ? "" : *s); };
    auto dim = [](onnx::ValueInfoProto* v) {
      return v->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
    };
    rename(g.mutable_input(0)->mutable_name());
    rename(g.mutable_output(0)->mutable_name());
    dim(g.mutable_input(0))->set_dim_param(name);
    dim(g.mutable_output(0))->set_dim_param(name);
    for (auto& t : *g.mutable_initializer()) rename(t.mutable_name());
    for (auto& n : *g.mutable_node()) {
      n.set_name(name);
      for (auto& s : *n.mutable_input()) rename(&s);
      for (auto& s : *n.mutable_output()) rename(&s);
    }
    g.clear_name();
    m.mutable_graph()->MergeFrom(g);
  }
  m.mutable_graph()->set_name(all[0]);
  return m;
}

TEST(HostileNames, CompileCleanAndRun) {
  const TemporaryFolder folder;
  auto path = [&](const std::string& f) { return (folder.path() / f).string(); };
  const std::vector<std::string> names = hostile_names();
  save(hostile_model(names), path("m.onnx"));
  std::vector<std::string> arguments = {"compile", path("m.onnx"), "-o", path("out"), "--trace"};
  for (const std::string& name : names) arguments.push_back("--dim=" + name + "<=3");
  const Finished compiled = sinter_program(arguments);
  ASSERT_EQ(compiled.code, 0) << compiled.output.substr(0, 3000);
  std::vector<std::string> compilers = {"c++"};
  if (!find_program("clang++-14").empty()) compilers.push_back("clang++-14");
  for (const std::string& compiler : compilers)
    for (const char* file : {"out/m.cpp", "out/m_main.cpp"}) {
      const Finished built =
          run_process({compiler, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion",
                       "-Wtrigraphs", "-Werror", "-I" + path("out"), path(file)},
                      true);
      EXPECT_EQ(built.code, 0) << built.output.substr(0, 3000);
    }
  arguments = {"run", "--bundle", path("out")};
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string file = path(fmt::format("x{}.pb", i));
    const float v = static_cast<float>(i) + 0.5f;
    write_tensor_pb(file, Tensor::of(std::vector<float>{v, 1, 2, v}, {2, 2}), "");
    arguments.insert(arguments.end(), {"--in", file, "--out", path(fmt::format("y{}.npy", i))});
  }
  const Finished ran = sinter_program(arguments);
  ASSERT_EQ(ran.code, 0) << ran.output.substr(0, 3000);
  for (size_t i = 0; i < names.size(); ++i) {
    const double v = -static_cast<double>(i) - 0.5;
    EXPECT_EQ(read_tensor_file(path(fmt::format("y{}.npy", i))).reals(), (std::vector<double>{v, -1, -2, v}))
        << names[i].substr(0, 40);
  }
}

// Names that become the same identifier.
TEST(CollidingNames, StayApart) {
  const TemporaryFolder folder;
  auto path = [&](const char* f) { return (folder.path() / f).string(); };
  onnx::ModelProto m = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] p, float[2] q, float[2] r) => (float[2] s, "
      "float[2] t)\n"
      "{ s = Sub(p, q) t = Sub(s, r) }");
  const char* const names[] = {"a.b", "a/b", "a_b_2"};
  auto* g = m.mutable_graph();
  for (int i = 0; i < 3; ++i) g->mutable_input(i)->set_name(names[i]);
  g->mutable_node(0)->set_input(0, names[0]);
  g->mutable_node(0)->set_input(1, names[1]);
  g->mutable_node(1)->set_input(1, names[2]);
  for (auto& n : *g->mutable_node()) n.set_name("a b");
  save(m, path("m.onnx"));
  std::vector<std::string> arguments = {"run", path("m.onnx")};
  for (const float v : {100.f, 10.f, 1.f}) {
    const std::string file = path("i") + std::to_string(static_cast<int>(v)) + ".pb";
    write_tensor_pb(file, Tensor::of(std::vector<float>{v, v}, {2}), "");
    arguments.insert(arguments.end(), {"--in", file});
  }
  expect(arguments, 0, "s float32[2]: 90 90");
  expect(arguments, 0, "t float32[2]: 89 89");
}

}  // namespace
}  // namespace sinter
