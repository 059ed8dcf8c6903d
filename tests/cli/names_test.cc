// Names are the model's and may be anything: no name may break out of what is generated, and two names that
// look alike as identifiers stay two.
#include <gtest/gtest.h>

#include "cli/options.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

// y = -x through a chain of nodes; every name in it is made from `name`.
onnx::ModelProto chain(const std::string& name) {
  onnx::ModelProto m = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[D,2] x) => (float[D,2] y)\n"
      "<float[2] w = {1, 1}, float[2,2] v = {1, 2, 3, 4}> { a = Mul(x, w) b = MatMul(a, v) c = Sub(b, b) d = "
      "Add(a, c) y = Neg(d) }");
  auto* g = m.mutable_graph();
  g->set_name(name);
  auto rename = [&](std::string* s) { *s = name + (*s == "x" ? "" : *s); };
  rename(g->mutable_input(0)->mutable_name());
  rename(g->mutable_output(0)->mutable_name());
  g->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(
      name);
  g->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(
      name);
  for (auto& t : *g->mutable_initializer()) rename(t.mutable_name());
  for (auto& n : *g->mutable_node()) {
    n.set_name(name);
    for (auto& s : *n.mutable_input()) rename(&s);
    for (auto& s : *n.mutable_output()) rename(&s);
  }
  return m;
}

class Names : public testing::TestWithParam<const char*> {};

TEST_P(Names, CompileCleanAndRun) {
  const TemporaryFolder folder;
  auto path = [&](const char* f) { return (folder.path() / f).string(); };
  std::string name = GetParam();
  if (name == "10 kB") name = std::string(10000, 'x');
  save(chain(name), path("m.onnx"));
  const std::string dim = "--dim=" + name + "<=3";
  const Finished compiled = sinter_program({"compile", path("m.onnx"), "-o", path("out"), dim, "--trace"});
  ASSERT_EQ(compiled.code, 0) << compiled.output;
  const std::string cxx = find_program("c++").empty() ? "g++" : "c++";
  std::vector<std::string> compilers = {cxx};
  if (!find_program("clang++-14").empty()) compilers.push_back("clang++-14");
  for (const std::string& compiler : compilers)
    for (const char* file : {"out/m.cpp", "out/m_main.cpp"}) {
      const Finished built =
          run_process({compiler, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion",
                       "-Wtrigraphs", "-Werror", "-I" + path("out"), path(file)},
                      true);
      EXPECT_EQ(built.code, 0) << built.output.substr(0, 3000);
    }
  ASSERT_EQ(write_tensor(path("x.pb"), "x", *element_type(1), {1, 2},
                         reinterpret_cast<const unsigned char*>("\0\0\x80\x3f\0\0\0\x40")),
            "");
  const Finished ran =
      sinter_program({"run", "--bundle", path("out"), "--in", path("x.pb"), "--out", path("y.npy")});
  ASSERT_EQ(ran.code, 0) << ran.output.substr(0, 3000);
  EXPECT_EQ(read_tensor_file(path("y.npy")).reals(), (std::vector<double>{-1, -2}));
}

INSTANTIATE_TEST_SUITE_P(Hostile, Names,
                         testing::Values("\"; #include <nothing>\n", "*/ int x; /*", "?\?/\n#error trigraph",
                                         "\\", "for", "class", "x86-64 \xc3\xa9\xe2\x82\xac",
                                         "\xff\xfe broken utf-8", "10 kB", "in", "out", "arena", "9lives",
                                         "NAN", "a=b", "net_run", "sinter::f32v", "std", "call", "%s%n",
                                         "{}{0}", "a", "w", "x", "y0", "status", "dims", "m_run", "exp",
                                         "main", "</script>"));

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
