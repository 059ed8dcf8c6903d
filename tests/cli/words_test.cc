// No name from a model is a word that code around it needs: every identifier of the runtime headers, every
// keyword of C and C++ and every macro of the standard headers as the name of a node, of an input, of an
// output and of a free extent.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "cli/options.h"
#include "emit/runtime_files.h"
#include "program.h"

namespace sinter {
namespace {

constexpr const char* kKeywords =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t "
    "class compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend "
    "goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
    "protected public register reinterpret_cast requires return short signed sizeof static static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid typename union "
    "unsigned using virtual void volatile wchar_t while xor xor_eq restrict typeof typeof_unqual final "
    "override import module main std sinter size_t int8_t uint8_t int64_t uint16_t ptrdiff_t printf memcpy "
    "malloc abs exp sqrt y0 time read write index div signal";

std::vector<std::string> identifiers(const std::string& text) {
  static const std::regex word("[A-Za-z_][A-Za-z_0-9]*");
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) found.push_back(i->str());
  return found;
}

// Names of the macros that a compiler defines by itself and that the standard headers leave behind.
std::vector<std::string> macros(const std::string& compiler, const std::string& standard,
                                const std::vector<std::string>& headers, const std::string& file) {
  std::string text;
  for (const std::string& h : headers)
    text += "#if __has_include(<" + h + ">)\n#include <" + h + ">\n#endif\n";
  put(file, text);
  const Finished f = run_process({compiler, "-std=" + standard, "-dM", "-E", file}, true);
  EXPECT_EQ(f.code, 0) << f.output.substr(0, 1000);
  static const std::regex definition("#define ([A-Za-z_][A-Za-z_0-9]*)");
  std::vector<std::string> found;
  for (std::sregex_iterator i(f.output.begin(), f.output.end(), definition), end; i != end; ++i)
    found.push_back((*i)[1].str());
  return found;
}

const std::vector<std::string> kHeadersOfC = {
    "assert.h",  "complex.h", "ctype.h",    "errno.h",  "fenv.h",    "float.h",    "inttypes.h",
    "iso646.h",  "limits.h",  "locale.h",   "math.h",   "setjmp.h",  "signal.h",   "stdarg.h",
    "stdbool.h", "stddef.h",  "stdalign.h", "stdint.h", "stdio.h",   "stdlib.h",   "string.h",
    "time.h",    "uchar.h",   "wchar.h",    "unistd.h", "pthread.h", "sys/stat.h", "stdnoreturn.h"};
const std::vector<std::string> kHeadersOfCpp = {
    "algorithm", "atomic",  "cassert", "cctype",   "cerrno",  "cfenv",      "cfloat",    "chrono",
    "cinttypes", "climits", "cmath",   "complex",  "csetjmp", "csignal",    "cstdarg",   "cstddef",
    "cstdio",    "cstdlib", "cstring", "ctime",    "cuchar",  "cwchar",     "iostream",  "random",
    "string",    "thread",  "vector",  "unistd.h", "sched.h", "sys/stat.h", "sys/mman.h"};

// By what the words are as identifiers, once each: two names that become one would test the counting of
// names.
std::vector<std::string> all_words(const std::string& scratch) {
  std::vector<std::string> words = identifiers(kKeywords);
  for (const auto& [name, text] : runtime_files())
    for (std::string& w : identifiers(text)) words.push_back(std::move(w));
  for (const char* standard : {"gnu++17", "gnu++20"})
    for (std::string& w : macros("c++", standard, kHeadersOfCpp, scratch + "/m.cpp")) words.push_back(w);
  for (std::string& w : macros("cc", "gnu11", kHeadersOfC, scratch + "/m.c")) words.push_back(w);
  std::set<std::string> seen;
  std::vector<std::string> once;
  for (const std::string& w : words)
    if (seen.insert(w).second && w.size() <= 40) once.push_back(w);
  return once;
}

// For each word an input of that name whose extent is called by it, and a node of that name, all nodes
// different; outputs are the words with a `y` before. The last values come from operators of many kinds, so
// that a function's name that hides a word of the runtime is noticed.
onnx::ModelProto words_model(const std::vector<std::string>& words) {
  const onnx::ModelProto one = parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[D] x) => (float[D] y)\n"
      "<float c = {1}> { y = Mul(x, c) }");
  onnx::ModelProto m = one;
  m.mutable_graph()->Clear();
  m.mutable_graph()->set_name("words");
  float k = 1;
  for (const std::string& w : words) {
    onnx::GraphProto g = one.graph();
    const auto dim = [](onnx::ValueInfoProto* v) {
      return v->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
    };
    g.mutable_input(0)->set_name(w);
    g.mutable_output(0)->set_name(w + ".y");
    dim(g.mutable_input(0))->set_dim_param(w);
    dim(g.mutable_output(0))->set_dim_param(w);
    g.mutable_initializer(0)->set_name(w + ".c");
    g.mutable_initializer(0)->set_float_data(0, k += 0.5f);
    onnx::NodeProto& n = *g.mutable_node(0);
    n.set_name(w);
    n.set_input(0, w), n.set_input(1, w + ".c"), n.set_output(0, w + ".y");
    g.clear_name();
    m.mutable_graph()->MergeFrom(g);
  }
  return m;
}

// Operators of many kinds, for the words of the runtime that their layers are written with.
constexpr const char* kKinds = R"(kinds (float[2,8,12,12] image, float[N,32] rows, float[2,6,16] steps,
    float[3,40] line, float[1,1,3,4] boxes, uint8[4,32] bytes) => (float[a,b,c,d] o0, float[a,b,c,d] o1, float[a,b] o2,
    float[a,b,c] o3, float[a,b,c,d] o4, float[a,b,c] o5, float[a,b] o6, int64[a,b] o7, float[a,b,c,d] o8,
    float[a,b] o9, float[a,b,c] o10, int64[a,b] o11, int64[a,b] o12, float[a,b] o13, float[a,b,c,d] o14,
    float[a,b,c,d] o15, float[a,b] o16, float[a,b] o17, float[a,b,c,d] o18, float[a,b,c] o19)
  <float[16,8,3,3] filter, float[8,1,3,3] each, float[32,24] weights, float[1,64,16] lstm_w, float[1,64,16] lstm_r,
   float[16] one, float[8] eight, int64[1] three = {3}, int64[2] picked = {1, 0}, uint8[32,24] byte_weights,
   float scale = {0.5}, uint8 zero = {0}, float[4] twice = {1, 1, 2.5, 2.5}, int64 axis = {1}>
  {
    c0 = Conv <pads = [1, 1, 1, 1]> (image, filter)
    o0 = Relu(c0)
    o1 = Conv <group = 8, pads = [1, 1, 1, 1], strides = [2, 2]> (image, each)
    g = MatMul(rows, weights)
    o2 = Sigmoid(g)
    turned = Transpose <perm = [0, 2, 1]> (steps)
    scores = MatMul(steps, turned)
    soft = Softmax(scores)
    o3 = MatMul(soft, steps)
    hidden, h, c = LSTM <hidden_size = 16> (steps, lstm_w, lstm_r)
    o4 = Tanh(hidden)
    o5 = LayerNormalization(steps, one)
    o6, o7 = TopK <axis = 1> (line, three)
    o8 = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (image)
    o9 = ReduceMean <axes = [1]> (steps)
    o10 = Einsum <equation = "bij,bkj->bik"> (steps, steps)
    o11 = ArgMax <axis = 1> (line)
    o12 = NonZero(line)
    o13 = Gather(line, picked)
    o14 = Resize <mode = "linear"> (image, none, twice)
    o15 = InstanceNormalization(image, eight, eight)
    q = QLinearMatMul(bytes, scale, zero, byte_weights, scale, zero, scale, zero)
    o16 = DequantizeLinear(q, scale, zero)
    o17 = CumSum(line, axis)
    o18 = AveragePool <kernel_shape = [2, 2]> (image)
    o19 = Mod <fmod = 1> (steps, one)
  })";

// What functions are called in a bundle's map, control layers' inner ones left out.
std::vector<std::string> functions_of(const std::string& map) {
  std::vector<std::string> names;
  for (const auto& l : nlohmann::json::parse(contents(map)).at("layers"))
    names.push_back(l.at("function").get<std::string>());
  return names;
}

Finished check_syntax(const std::string& compiler, const std::string& folder, const std::string& file) {
  return run_process({compiler, "-std=gnu++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                      "-Wno-unused-function", "-I" + folder, folder + "/" + file},
                     true);
}

struct Way {
  const char *target, *compiler;
};
const Way kWays[] = {{"scalar", "c++"}, {"avx2", "c++"}, {"aarch64", "aarch64-linux-gnu-g++"}};

class Words : public testing::TestWithParam<Way> {
 protected:
  std::string path(const std::string& f) const { return (folder_.path() / f).string(); }
  const TemporaryFolder folder_;
};

// All words at once: the bundle compiles, as C++ and its header as C behind all headers of C.
TEST_P(Words, NameAnything) {
  const Way& way = GetParam();
  if (find_program(way.compiler).empty()) GTEST_SKIP() << "no " << way.compiler;
  const std::vector<std::string> words = all_words(folder_.path().string());
  ASSERT_GT(words.size(), 2000u);
  save(words_model(words), path("m.onnx"));
  std::vector<std::string> arguments = {"compile", path("m.onnx"), "-o", path("out"), "--target", way.target};
  for (const std::string& w : words) arguments.push_back("--dim=" + w + "<=3");
  const Finished compiled = sinter_program(arguments);
  ASSERT_EQ(compiled.code, 0) << compiled.output.substr(0, 3000);
  const std::vector<std::string> functions = functions_of(path("out/m.map"));
  EXPECT_EQ(functions.size(), words.size());

  std::string c;
  for (const std::string& h : kHeadersOfC) c += "#include <" + h + ">\n";
  put(path("out/all.c"), c + "#include \"m.h\"\n");
  std::string cpp;
  for (const std::string& h : kHeadersOfCpp) cpp += "#include <" + h + ">\n";
  put(path("out/all.cpp"), cpp + "#include \"m.h\"\n#include \"m.cpp\"\n");
  for (const char* file : {"m.cpp", "all.cpp"}) {
    const Finished built = check_syntax(way.compiler, path("out"), file);
    EXPECT_EQ(built.code, 0) << file << "\n" << built.output.substr(0, 3000);
  }
  const Finished header = run_process(
      {"cc", "-std=gnu11", "-fsyntax-only", "-Werror", "-I" + path("out"), path("out/all.c")}, true);
  EXPECT_EQ(header.code, 0) << header.output.substr(0, 3000);

  // Declared in front of layers of other kinds, these functions hide nothing that the layers need.
  save(without_none(parse_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]>\n") + kKinds)),
       path("k.onnx"));
  const Finished kinds = sinter_program(
      {"compile", path("k.onnx"), "-o", path("kinds"), "--target", way.target, "--dim", "N<=8"});
  ASSERT_EQ(kinds.code, 0) << kinds.output.substr(0, 3000);
  std::string code = contents(path("kinds/k.cpp"));
  const std::string opening = "namespace k_layers {\n";
  const size_t at = code.find(opening);
  ASSERT_NE(at, std::string::npos);
  std::string declarations;
  for (const std::string& f : functions) declarations += "static void " + f + "();\n";
  put(path("kinds/hiding.cpp"), code.insert(at + opening.size(), declarations));
  const Finished hiding = check_syntax(way.compiler, path("kinds"), "hiding.cpp");
  EXPECT_EQ(hiding.code, 0) << hiding.output.substr(0, 3000);
}

INSTANTIATE_TEST_SUITE_P(Targets, Words, testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.target); });

// Values of a Loop become variables of the function that calls the layers of its body.
TEST(LoopWords, AreVariablesOrAvoided) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& f) { return (folder.path() / f).string(); };
  std::string states, results, inputs, outputs, nodes, carried;
  int count = 0;
  const std::vector<std::string> words = {
      "a",      "w",      "trips",  "go",     "iteration", "holds",    "status", "pool", "part", "own",
      "floats", "arena",  "inside", "N",      "dim_count", "copy",     "sinter", "std",  "int",  "in",
      "Chains", "min_of", "body",   "body_2", "swap",      "m_layers", "true",   "NAN"};
  while (count < static_cast<int>(words.size())) {
    const std::string k = std::to_string(count++), comma = count > 1 ? ", " : "";
    inputs += comma + "float[4] i" + k;
    outputs += comma + "float[4] o" + k;
    nodes += comma + "i" + k;
    results += comma + "o" + k;
    carried += ", float[4] s" + k;
    states += ", float[4] t" + k;
  }
  std::string body;
  for (int k = 0; k < count; ++k) body += fmt::format("t{0} = Sin(s{0}) ", k);
  onnx::ModelProto m = parse_text("<ir_version: 8, opset_import: [\"\" : 17]> g (int64 n, " + inputs +
                                  ") => (" + outputs + ")\n<bool yes = {1}> { " + results +
                                  " = Loop(n, yes, " + nodes + ") <body = b (int64 turn, bool on" + carried +
                                  ") => (bool still" + states + ") { still = Identity(on) " + body + "}> }");
  // What the text form has no names for.
  onnx::GraphProto& b = *m.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  for (int k = 0; k < count; ++k) {
    const std::string& word = words[static_cast<size_t>(k)];
    b.mutable_input(k + 2)->set_name(word);
    for (auto& n : *b.mutable_node())
      if (n.input(0) == "s" + std::to_string(k)) n.set_input(0, word), n.set_name(word);
  }
  save(m, path("m.onnx"));
  std::vector<std::string> arguments = {"run", path("m.onnx"), "--name", "m"};
  write_tensor_pb(path("n.pb"), Tensor::scalar(int64_t{2}), "");
  arguments.insert(arguments.end(), {"--in", path("n.pb")});
  for (int k = 0; k < count; ++k) {
    const std::string file = path(fmt::format("i{}.pb", k));
    write_tensor_pb(file, Tensor::of(std::vector<float>(4, static_cast<float>(k)), {4}), "");
    arguments.insert(arguments.end(), {"--in", file, "--out", path(fmt::format("o{}.npy", k))});
  }
  const Finished ran = sinter_program(arguments);
  ASSERT_EQ(ran.code, 0) << ran.output.substr(0, 3000);
  for (int k = 0; k < count; ++k)
    EXPECT_NEAR(read_tensor_file(path(fmt::format("o{}.npy", k))).real(0), std::sin(std::sin(k)), 1e-5)
        << words[static_cast<size_t>(k)];
}

// Files that would be in somebody's way get a letter in front, and nobody may ask for them.
TEST(FileWords, HideNoHeader) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& f) { return (folder.path() / f).string(); };
  for (const char* name : {"math", "string", "features", "limits", "test", "time", "co_await"}) {
    save_text("g (float[2] x) => (float[2] y) { y = Sin(x) }", path(std::string(name) + ".onnx"));
    const std::string model = path(std::string(name) + ".onnx"), out = path(name);
    expect({"compile", model, "-o", out}, 0, std::string("n_") + name + ": 1 layers");
    const Finished built = run_process({"c++", "-std=c++17", "-fsyntax-only", "-I" + out,
                                        out + "/n_" + name + "_main.cpp", out + "/n_" + name + ".cpp"},
                                       true);
    EXPECT_EQ(built.code, 0) << built.output.substr(0, 1000);
    expect({"compile", model, "-o", out, "--name", name}, 2, std::string("n_") + name + " would");
  }
}

// Members that are made for extents are names as well.
TEST(MemberWords, ExtentsDontMeetInputs) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& f) { return (folder.path() / f).string(); };
  save_text(
      "g (float[2] x_dims, float[N] x, float[M] x_dims_2) => (float[N] y, float[2] y_dims) "
      "{ y = Sin(x) y_dims = Cos(x_dims) z = Sin(x_dims_2) }",
      path("m.onnx"));
  expect({"compile", path("m.onnx"), "-o", path("out"), "--dim", "N<=3", "--dim", "M<=3"}, 0, "m: 2 layers");
  const Finished built =
      run_process({"c++", "-std=c++17", "-fsyntax-only", "-I" + path("out"), path("out/m.cpp")}, true);
  EXPECT_EQ(built.code, 0) << built.output.substr(0, 1000);
}

}  // namespace
}  // namespace sinter
