// Several models as one bundle: each computes the bits that its own bundle does, in one arena, with equal
// weights once.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "program.h"

namespace sinter {
namespace {

// A backbone that both have, and a head of its own each; `see` also hands out the backbone's result.
constexpr const char* kBackbone =
    "  t0 = Conv<pads = [1,1,1,1]>(image, stem)  t1 = Relu(t0)  t2 = Conv<pads = [1,1,1,1]>(t1, body)\n";
const std::string kSee =
    std::string("g (float[1,3,16,16] image) => (float[1,8,16,16] features, float[1,4] scores) {\n") +
    kBackbone +
    "  features = Relu(t2)  p = GlobalAveragePool(features)  f = Flatten(p)\n"
    "  s = MatMul(f, see_head)  scores = Softmax(s) }";
const std::string kFind = std::string("g (float[1,3,16,16] image) => (float[1,16,16,2] boxes) {\n") +
                          kBackbone +
                          "  u = Relu(t2)  v = Conv(u, find_head)  boxes = Transpose<perm = [0,2,3,1]>(v) }";
// Reads what `see` has left.
const std::string kTell =
    "g (float[1,8,16,16] input, float[1,8] bias) => (float[1,8] mood) {\n"
    "  p = GlobalMaxPool(input)  f = Flatten(p)  b = Add(f, bias)  c = MatMul(b, tell)  mood = Tanh(c) }";

const std::map<std::string, std::vector<int64_t>> kShapes = {{"stem", {8, 3, 3, 3}},
                                                             {"body", {8, 8, 3, 3}},
                                                             {"see_head", {8, 4}},
                                                             {"find_head", {2, 8, 1, 1}},
                                                             {"tell", {8, 8}}};

class PipelineTest : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }

  // Weights of one name are the same in all models.
  void save_net(const std::string& name, const std::string& text) {
    onnx::ModelProto proto = parse_text("<ir_version: 8, opset_import: [\"\" : 17]>\n" + text);
    for (const auto& [weight, shape] : kShapes) {
      if (text.find(weight) == std::string::npos) continue;
      std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(weight)));
      std::uniform_real_distribution<float> uniform(-0.3f, 0.3f);
      auto& w = *proto.mutable_graph()->add_initializer();
      w.set_name(weight);
      w.set_data_type(1);
      int64_t count = 1;
      for (const int64_t d : shape) w.add_dims(d), count *= d;
      for (int64_t i = 0; i < count; ++i) w.add_float_data(uniform(random));
    }
    save(proto, path(name + ".onnx"));
  }
  void save_nets() {
    save_net("see", kSee);
    save_net("find", kFind);
    save_net("tell", kTell);
  }

  void compile(std::vector<std::string> line) {
    line.insert(line.begin(), "compile");
    expect(line, 0, "");
  }

  // Builds main.cpp with all bundles of the folder `net`, under AddressSanitizer; it ends with 0.
  void expect_program(const std::string& text, const std::vector<std::string>& flags = {}) {
    put(path("main.cpp"), text);
    std::vector<std::string> build = {"c++", "-std=c++17", "-O1", "-mavx2", "-mfma", "-fsanitize=address"};
    build.insert(build.end(), flags.begin(), flags.end());
    build.push_back("-I" + path("net"));
    for (const auto& [file, bytes] : files_of(path("net")))
      if (file.find('/') == std::string::npos && !file.ends_with("_main.cpp") &&
          (file.ends_with(".cpp") || file.ends_with(".S")))
        build.push_back(path("net/" + file));
    build.insert(build.end(), {path("main.cpp"), "-o", path("program")});
    const Finished built = run_process(build, true);
    ASSERT_EQ(built.code, 0) << built.output;
    const Finished ran = run_process({path("program")}, true);
    EXPECT_EQ(ran.code, 0) << ran.output;
  }

  nlohmann::json map_of(const std::string& bundle) {
    return nlohmann::json::parse(contents(path("net/" + bundle + ".map")));
  }

  TemporaryFolder folder_;
};

constexpr const char* kPrologue = R"(
#include <cstdio>
#include <cstring>
#include "eye.h"
static float noise(unsigned& s) { s = s * 1664525u + 1013904223u; return float(s >> 8) / float(1 << 24) - 0.5f; }
template <class T> static void fill(T& data, unsigned seed) { for (float& x : data) x = noise(seed); }
static float image[3 * 16 * 16], bias[8], features[8 * 256], scores[4], boxes[512], mood[8];
static float features2[8 * 256], scores2[4], boxes2[512], mood2[8];
template <class T> static bool same(const T& a, const T& b) { return std::memcmp(a, b, sizeof a) == 0; }
)";

TEST_F(PipelineTest, EachComputesTheBitsOfItsOwnBundle) {
  save_nets();
  for (const char* net : {"see", "find", "tell"})
    compile({path(std::string(net) + ".onnx"), "-o", path("net"), "--target", "avx2"});
  compile({path("see.onnx"), path("find.onnx"), path("tell.onnx"), "--name", "eye", "-o", path("net"),
           "--target", "avx2"});
  expect_program(std::string(kPrologue) + R"(
#include "see.h"
#include "find.h"
#include "tell.h"
constexpr long max(long a, long b) { return a > b ? a : b; }
static_assert(EYE_ARENA_BYTES == max(max(SEE_ARENA_BYTES, FIND_ARENA_BYTES), TELL_ARENA_BYTES), "");
static_assert(EYE_SEE_ARENA_BYTES == SEE_ARENA_BYTES, "");
alignas(64) static unsigned char arena[EYE_ARENA_BYTES];
int main() {
  for (unsigned k = 0; k < 3; ++k) {
    fill(image, k), fill(bias, k + 9);
    const see_inputs si = {image}; see_outputs so = {features, scores};
    const find_inputs fi = {image}; find_outputs fo = {boxes};
    const tell_inputs ti = {features, bias}; tell_outputs to = {mood};
    std::memset(arena, 0xff, sizeof arena);
    if (see_run(&si, &so, arena) || find_run(&fi, &fo, arena) || tell_run(&ti, &to, arena)) return 1;
    std::memset(arena, 0xff, sizeof arena);
    const eye_see_inputs esi = {image}; eye_see_outputs eso = {features2, scores2};
    const eye_find_inputs efi = {image}; eye_find_outputs efo = {boxes2};
    const eye_tell_inputs eti = {features2, bias}; eye_tell_outputs eto = {mood2};
    if (eye_find_run(&efi, &efo, arena) != EYE_FIND_OK || eye_see_run(&esi, &eso, arena) || eye_tell_run(&eti, &eto, arena)) return 2;
    if (!same(features, features2) || !same(scores, scores2) || !same(boxes, boxes2) || !same(mood, mood2)) return 3;
    if (eye_see_run(nullptr, &eso, arena) != EYE_SEE_E_NULL || eye_tell_run(&eti, &eto, arena + 8) != EYE_TELL_E_ALIGN) return 4;
    if (std::strcmp(eye_error(2), eye_tell_error(2)) != 0) return 5;
  }
}
)");
  // The backbone's weights lie there once.
  const int64_t see = map_of("see")["weights_bytes"], find = map_of("find")["weights_bytes"],
                tell = map_of("tell")["weights_bytes"], all = map_of("eye")["weights_bytes"];
  EXPECT_LT(all, see + tell + find - 4 * 8 * 8 * 9) << see << " " << find << " " << tell;
  EXPECT_GE(all, see + tell);
  EXPECT_EQ(map_of("eye")["models"].size(), 3u);
}

TEST_F(PipelineTest, TheSameFilesEachTime) {
  save_nets();
  std::map<std::string, std::string> first;
  for (const char* folder : {"one", "two"}) {
    compile({path("see.onnx"), "spot=" + path("find.onnx"), "--name", "eye", "-o", path(folder), "--alive",
             "see:features"});
    if (first.empty())
      first = files_of(path(folder));
    else
      EXPECT_EQ(first, files_of(path(folder)));
  }
  EXPECT_TRUE(first.count("eye_part_spot.cpp"));
  EXPECT_NE(first.at("eye.cpp").find("sinter compile see.onnx spot=find.onnx"), std::string::npos)
      << first.at("eye.cpp");
  // What the older bundle had goes with it.
  compile({path("see.onnx"), path("find.onnx"), "--name", "eye", "-o", path("two")});
  EXPECT_FALSE(files_of(path("two")).count("eye_part_spot.cpp"));
  compile({path("see.onnx"), "--name", "eye", "-o", path("two")});
  EXPECT_FALSE(files_of(path("two")).count("eye_part_see.cpp"));
}

// The features stay where `see` has written them, whatever runs in between and how often.
TEST_F(PipelineTest, AliveTensorsOutliveRuns) {
  save_nets();
  for (const char* net : {"see", "tell"})
    compile({path(std::string(net) + ".onnx"), "-o", path("net"), "--target", "avx2"});
  for (const char* weights : {"embed", "file"}) {
    compile({path("see.onnx"), path("find.onnx"), path("tell.onnx"), "--name", "eye", "-o", path("net"),
             "--target", "avx2", "--alive", "see:features=tell:input", "--alive", "see:scores", "--weights",
             weights});
    const bool file = weights == std::string("file");
    expect_program(std::string(kPrologue) + "#define WEIGHTS_PATH \"" + path("net/eye.weights") + "\"\n" + R"(
#include "see.h"
#include "tell.h"
alignas(64) static unsigned char arena[EYE_ARENA_BYTES], weights[EYE_WEIGHTS_BYTES];
#ifdef IN_FILE
#define W , weights
#else
#define W
#endif
int main() {
  std::FILE* f = std::fopen(WEIGHTS_PATH, "rb");
  if (!f || std::fread(weights, 1, sizeof weights, f) != sizeof weights) return 9;
  std::fclose(f);
  for (unsigned k = 0; k < 2; ++k) {
    fill(image, k), fill(bias, k + 9);
    const see_inputs si = {image}; see_outputs so = {features, scores};
    const tell_inputs ti = {features, bias}; tell_outputs to = {mood};
    std::memset(arena, 0xff, sizeof arena);
    if (see_run(&si, &so, arena) || tell_run(&ti, &to, arena)) return 1;
    std::memset(arena, 0xff, sizeof arena);
    const eye_see_inputs esi = {image}; eye_see_outputs eso = {};
    const eye_find_inputs efi = {image}; eye_find_outputs efo = {boxes2};
    const eye_tell_inputs eti = {bias}; eye_tell_outputs eto = {mood2};
    if (eye_see_run(&esi, &eso, arena W)) return 2;
    for (int turn = 0; turn < 2; ++turn) {
      if (eye_find_run(&efi, &efo, arena W) || eye_tell_run(&eti, &eto, arena W)) return 3;
      if (!same(mood, mood2)) return 4;
      if (std::memcmp(eso.features, features, sizeof features) != 0 || std::memcmp(eso.scores, scores, sizeof scores) != 0) return 5;
    }
    if (eye_tell_run(&eti, &eto, nullptr W) != EYE_TELL_E_NULL) return 6;
  }
}
)",
                   file ? std::vector<std::string>{"-DIN_FILE"} : std::vector<std::string>{});
  }
  const nlohmann::json map = map_of("eye");
  const int64_t kept = 4 * 8 * 256 + 64;
  int64_t most = 0;
  for (const auto& m : map["models"]) most = std::max(most, m["arena_bytes"].get<int64_t>());
  EXPECT_EQ(map["arena_bytes"], kept + most);
  ASSERT_EQ(map["lasting"].size(), 2u);
  EXPECT_EQ(map["lasting"][0]["read_as"][0]["input"], "input");
}

// Extents that are free: what the reader is told, the caller says.
TEST_F(PipelineTest, AliveTensorsOfFreeExtents) {
  save_net("up", "g (float[N,2] x) => (float[N,2] y) { y = Neg(x) }");
  save_net("down", "g (float[M,2] a, float[M,2] b) => (float[M,2] c) { c = Add(a, b) }");
  compile({path("up.onnx"), path("down.onnx"), "--name", "eye", "-o", path("net"), "--target", "avx2",
           "--dim", "up:N<=4", "--dim", "down:M<=6", "--alive", "up:y=down:b"});
  expect_program(R"(#include "eye.h"
alignas(64) static unsigned char arena[EYE_ARENA_BYTES];
static_assert(EYE_UP_N_MAX == 4 && EYE_DOWN_M_MAX == 6, "");
int main() {
  float x[8] = {1, 2, 3, 4, 5, 6}, c[12] = {};
  const eye_up_inputs ui = {x, {3, 2}}; eye_up_outputs uo = {};
  if (eye_up_run(&ui, &uo, arena) || uo.y_dims[0] != 3 || uo.y[5] != -6) return 1;
  eye_down_inputs di = {x, {3, 2}, {uo.y_dims[0], 2}}; eye_down_outputs out = {c, {}};
  if (eye_down_run(&di, &out, arena) || out.c_dims[0] != 3) return 2;
  for (float v : c) if (v != 0) return 3;
  di.b_dims[0] = 2;
  return eye_down_run(&di, &out, arena) == EYE_DOWN_E_DIM ? 0 : 4;
}
)");
}

// One model twice, for other extents: its weights lie there once.
TEST_F(PipelineTest, OneModelTwice) {
  save_net(
      "net",
      "g (float[N,8] x, float[8] b) => (float[N,8] y) { c = MatMul(x, tell)  d = Add(c, b)  y = Tanh(d) }");
  compile({path("net.onnx"), "-o", path("net"), "--dim", "N=1"});
  compile({"one=" + path("net.onnx"), "many=" + path("net.onnx"), "--name", "eye", "-o", path("net"), "--dim",
           "one:N=1", "--dim", "many:N<=8", "--const", "one:b=0"});
  EXPECT_LE(map_of("eye")["weights_bytes"], map_of("net")["weights_bytes"].get<int64_t>() + 256);
}

TEST_F(PipelineTest, VerifyTakesEachAsAPartOfIt) {
  save_nets();
  save_net("again",  // a body finds its weights behind those of the other models
           "g (float[1,8] x, int64 n) => (float[1,8] y) { y = Loop(n, , x) <b = body (int64 i, bool c, "
           "float[1,8] s) => "
           "(bool d, float[1,8] t) { d = Identity(c)  m = MatMul(s, tell)  t = Tanh(m) }> }");
  save_net("carry", "g (float[4] x, float[4] h) => (float[4] y, float[4] hn) { hn = Add(x, h)  y = Neg(h) }");
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--weights", "c"},
        {"--target", "cortex-a76", "--threads", "2", "--weights", "file"}}) {
    std::vector<std::string> line = {
        "verify", path("see.onnx"), path("tell.onnx"),         path("carry.onnx"), "--name",
        "eye",    "--alive",        "see:features=tell:input", "--state",          "carry:hn=h"};
    line.insert(line.end(), more.begin(), more.end());
    const Finished f = sinter_program(line);
    EXPECT_EQ(f.code, 0) << f.output;
    for (const char* said : {"eye_see: ", "eye_tell: ", "eye_carry: ", "2 outputs as expected"})
      EXPECT_NE(f.output.find(said), std::string::npos) << f.output;
  }
}

// The library shows what is called from outside.
TEST_F(PipelineTest, ASharedLibrary) {
  save_nets();
  compile({path("see.onnx"), path("find.onnx"), "--name", "eye", "-o", path("net")});
  expect({"build", path("net")}, 0, "libeye.so");
  const Finished f = run_process({"nm", "-D", "--defined-only", path("net/libeye.so")}, true);
  for (const char* name : {" eye_see_run\n", " eye_find_run\n", " eye_find_error\n", " eye_error\n"})
    EXPECT_NE(f.output.find(name), std::string::npos) << name << f.output;
  expect({"run", "--bundle", path("net")}, 2, "a bundle of 2 models");
}

TEST_F(PipelineTest, WhatIsRefused) {
  save_nets();
  save_net("free", "g (float[N,2] x) => (float[N,2] y) { y = Neg(x) }");
  save_net("free_x", "g (float[N,2] y) => (float[N,2] z) { z = Neg(y) }");
  save_net("odd", "g (float[1,2] x) => (float[1,2] free_y) { free_y = Neg(x) }");
  const struct {
    std::vector<std::string> line;
    int code;
    const char* said;
  } cases[] = {
      {{"see", "find"}, 2, "several models need --name"},
      {{"see", "find", "--name", "for"}, 2, "not fit to be a prefix of C names"},
      {{"see", "see", "--name", "eye"}, 2, "two models are called see: give one another name, as NAME="},
      {{"see", "find", "--name", "eye", "--dim", "N=1"},
       2,
       "--dim \"N=1\": of several models, say which one: \"see:N=1\" or \"find:N=1\""},
      {{"see", "find", "--name", "eye", "--only", "sea:scores"}, 2, "did you mean \"see\"?"},
      {{"see", "find", "--name", "eye", "--only", "see:score"}, 3, "see.onnx: "},
      {{"see", "free", "--name", "eye"}, 3, "free.onnx: the dim \"N\""},
      {{"see", "find", "--name", "eye", "--state", "see:scores=image"}, 3, "see.onnx: --state"},
      {{"see", "find", "--name", "eye", "--alive", "see"}, 2, "of several models, say which one"},
      {{"see", "find", "--name", "eye", "--alive", "see:boxes"},
       3,
       "see has no output \"boxes\"; its outputs are \"features\" or \"scores\""},
      {{"see", "tell", "--name", "eye", "--alive", "see:features=input"}, 2, "say which one"},
      {{"see", "tell", "--name", "eye", "--alive", "see:features=tell:inputs"},
       3,
       "tell has no input \"inputs\"; did you mean \"input\"?"},
      {{"see", "tell", "--name", "eye", "--alive", "see:scores=tell:input"},
       3,
       "the output is float32[1,4], the input float32[1,8,16,16]"},
      {{"tell", "see", "--name", "eye", "--alive", "see:features=tell:input"}, 3, "tell runs before see"},
      {{"see", "tell", "--name", "eye", "--alive", "see:features=see:image"}, 3, "is a state (--state)"},
      {{"see", "tell", "--name", "eye", "--alive", "see:features=tell:input", "--alive",
        "see:features=tell:input"},
       3,
       "named twice"},
      {{"see", "find", "--name", "eye", "--max-ram", "1K"}, 3, "eye: the arena takes"},
      {{"free", "free_x", "--name", "eye", "--dim", "free:N<=2", "--dim", "free_x:N<=2"}, 0, ""},
      {{"see", "--alive", "see:features"}, 2, "--alive is for several models"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> line = {"compile", "-o", path("net")};
    bool options = false;
    for (const std::string& word : c.line) {
      options = options || word[0] == '-';
      line.push_back(options ? word : path(word + ".onnx"));
    }
    expect(line, c.code, c.said);
  }
  for (const char* command : {"run", "inspect", "bench"})
    expect({command, path("see.onnx"), path("find.onnx")}, 2,
           "sinter compile and sinter verify take several");
  // A file's name that is none of C stands in front of its options all the same.
  save_net("free-y", "g (float[N,2] x) => (float[N,2] y) { y = Neg(x) }");
  expect({"compile", path("free-y.onnx"), path("see.onnx"), "--name", "eye", "-o", path("eye"), "--dim",
          "free-y:N=1"},
         0, "eye_free_y: ");
  expect({"compile", path("free-y.onnx"), path("see.onnx"), "--name", "eye", "-o", path("eye"), "--dim",
          "free_y:N=1"},
         0, "eye_free_y: ");
  // Names of C that two models would share.
  expect({"compile", "a=" + path("odd.onnx"), "a_x=" + path("odd.onnx"), "A=" + path("odd.onnx"), "--name",
          "eye", "-o", path("net")},
         3, "two macros");
}

}  // namespace
}  // namespace sinter
