// No name from a model is a word that code around it needs: every identifier of the runtime headers, every
// keyword of C and C++ and every macro of the standard headers as the name of a node, of an input, of an
// output and of a free extent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "driver/options.h"
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
  const auto in_word = [](unsigned char c) { return c == '_' || std::isalnum(c); };
  std::vector<std::string> found;
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = std::find_if(at, text.end(), in_word);
    at = std::find_if_not(begin, text.end(), in_word);
    if (begin != at && !std::isdigit(static_cast<unsigned char>(*begin))) found.emplace_back(begin, at);
  }
  return found;
}

// The text without what follows // in its lines: the runtime headers have no other comments.
std::string without_comments(const std::string& text) {
  std::string rest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rest += line.substr(0, line.find("//")) + "\n";
  return rest;
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
  std::vector<std::string> found;
  std::istringstream lines(f.output);
  for (std::string define, name; lines >> define >> name; std::getline(lines, define))
    found.push_back(name.substr(0, name.find('(')));
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

// Without a small letter, or with an underscore at an end or two in a row: identifier() has a rule for each
// of these forms, so that a sample of them is enough.
bool is_of_one_rule(const std::string& w) {
  return w[0] == '_' || w.back() == '_' || w.find("__") != std::string::npos ||
         std::none_of(w.begin(), w.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Once each.
std::vector<std::string> all_words(const std::string& scratch) {
  std::vector<std::string> words = identifiers(kKeywords);
  for (const auto& [name, text] : runtime_files())
    for (std::string& w : identifiers(without_comments(text))) words.push_back(std::move(w));
  for (const char* standard : {"gnu++17", "gnu++20"})
    for (std::string& w : macros("c++", standard, kHeadersOfCpp, scratch + "/m.cpp")) words.push_back(w);
  for (std::string& w : macros("cc", "gnu11", kHeadersOfC, scratch + "/m.c")) words.push_back(w);
  std::set<std::string> seen;
  std::vector<std::string> once;
  size_t ruled = 0;
  for (const std::string& w : words)
    if (w.size() <= 40 && (!is_of_one_rule(w) || ruled++ % 50 == 0) && seen.insert(w).second)
      once.push_back(w);
  return once;
}

// Every fourth: variables for extents have a prefix.
bool has_extent(const std::string& word) { return word.size() % 4 == 0; }

// For each word an input and a node of that name, all nodes different; an extent may be called so too.
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
    for (onnx::ValueInfoProto* v : {g.mutable_input(0), g.mutable_output(0)})
      if (has_extent(w))
        dim(v)->set_dim_param(w);
      else
        dim(v)->set_dim_value(3);
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
    float[a,b,c] o9, float[a,b,c] o10, int64[a,b] o11, int64[a,b] o12, float[a,b] o13, float[a,b,c,d] o14,
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
  const auto read = nlohmann::json::parse(contents(map));
  for (const auto& l : read.at("layers")) names.push_back(l.at("function").get<std::string>());
  return names;
}

Finished check_syntax(const std::string& compiler, const std::string& folder, const std::string& file) {
  return run_process({compiler, "-std=gnu++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                      "-Wno-unused-function", "-I" + folder, folder + "/" + file},
                     true);
}

// Gives the values that the text only declares contents: tensors of small numbers.
onnx::ModelProto with_weights(onnx::ModelProto m) {
  onnx::GraphProto& g = *m.mutable_graph();
  for (const onnx::ValueInfoProto& v : g.value_info()) {
    onnx::TensorProto& t = *g.add_initializer();
    t.set_name(v.name());
    t.set_data_type(v.type().tensor_type().elem_type());
    int64_t elements = 1;
    for (const auto& d : v.type().tensor_type().shape().dim())
      t.add_dims(d.dim_value()), elements *= d.dim_value();
    for (int64_t k = 0; k < elements; ++k)
      if (t.data_type() == onnx::TensorProto::FLOAT)
        t.add_float_data(static_cast<float>(k % 7) - 3);
      else
        t.add_int32_data(static_cast<int32_t>(k % 7));
  }
  g.clear_value_info();
  return m;
}

// All words at once: the bundle compiles as C++ behind all headers of C++, and its header as C behind all of
// C.
TEST(Words, NameAnything) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& f) { return (folder.path() / f).string(); };
  const std::vector<std::string> words = all_words(folder.path().string());
  ASSERT_GT(words.size(), 1000u);
  save(words_model(words), path("m.onnx"));
  std::vector<std::string> arguments = {"compile", path("m.onnx"), "-o", path("out"), "--target", "avx2"};
  for (const std::string& w : words)
    if (has_extent(w)) arguments.push_back("--dim=" + w + "<=3");
  const Finished compiled = sinter_program(arguments);
  ASSERT_EQ(compiled.code, 0) << compiled.output.substr(0, 3000);
  const std::vector<std::string> functions = functions_of(path("out/m.map"));
  EXPECT_EQ(functions.size(), words.size());

  std::string c, cpp;
  for (const std::string& h : kHeadersOfC) c += "#include <" + h + ">\n";
  for (const std::string& h : kHeadersOfCpp) cpp += "#include <" + h + ">\n";
  put(path("out/all.c"), c + "#include \"m.h\"\n");
  put(path("out/all.cpp"), cpp + "#include \"m.h\"\n#include \"m.cpp\"\n");
  const Finished built = check_syntax("c++", path("out"), "all.cpp");
  EXPECT_EQ(built.code, 0) << built.output.substr(0, 3000);
  const Finished header = run_process(
      {"cc", "-std=gnu11", "-fsyntax-only", "-Werror", "-I" + path("out"), path("out/all.c")}, true);
  EXPECT_EQ(header.code, 0) << header.output.substr(0, 3000);

  // Declared in front of layers of other kinds, these functions hide nothing that the layers need.
  save(with_weights(
           without_none(parse_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]>\n") + kKinds))),
       path("k.onnx"));
  std::string declarations;
  for (const std::string& f : functions) declarations += "static void " + f + "();\n";
  for (const auto& [target, compiler] : {std::pair("scalar", "c++"), std::pair("avx2", "c++"),
                                         std::pair("cortex-a76", "aarch64-linux-gnu-g++")}) {
    if (find_program(compiler).empty()) continue;
    const std::string out = path(target);
    const Finished kinds =
        sinter_program({"compile", path("k.onnx"), "-o", out, "--target", target, "--dim", "N<=8"});
    ASSERT_EQ(kinds.code, 0) << kinds.output.substr(0, 3000);
    std::string code = contents(out + "/k.cpp");
    const std::string opening = "namespace k_layers {\n";
    const size_t at = code.find(opening);
    ASSERT_NE(at, std::string::npos);
    put(out + "/hiding.cpp", code.insert(at + opening.size(), declarations));
    const Finished hiding = check_syntax(compiler, out, "hiding.cpp");
    EXPECT_EQ(hiding.code, 0) << target << "\n" << hiding.output.substr(0, 3000);
  }
}

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
  for (const char* name : {"math", "features", "limits", "test", "co_await"}) {
    save_text("g (float[2] x) => (float[2] y) { y = Sin(x) }", path(std::string(name) + ".onnx"));
    const std::string model = path(std::string(name) + ".onnx"), out = path(name);
    expect({"compile", model, "-o", out}, 0, std::string("n_") + name + ": 1 layers");
    expect({"compile", model, "-o", out, "--name", name}, 2, std::string("n_") + name + " would");
  }
  const Finished built = run_process(
      {"c++", "-std=c++17", "-fsyntax-only", "-I" + path("math"), path("math/n_math_main.cpp")}, true);
  EXPECT_EQ(built.code, 0) << built.output.substr(0, 1000);
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
