// sinter build: a bundle as a shared library that a process loads.
#include <dlfcn.h>

#include "program.h"

namespace sinter {
namespace {

class Library : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  // Compiles `y = x * w` with these options and builds it; the library is loaded until the test ends.
  void load(const std::vector<std::string>& options) {
    save_text("g (float[N,2] x) => (float[N,2] y) <float[2] w = {3, 5}> { y = Mul(x, w) }", path("m.onnx"));
    std::vector<std::string> compile = {"compile", path("m.onnx"), "-o", path("net"), "--dim", "N<=4"};
    compile.insert(compile.end(), options.begin(), options.end());
    expect(compile, 0, "m: ");
    expect({"build", path("net")}, 0, path("net/libm.so"));
    library_ = dlopen(path("net/libm.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override {
    if (library_) dlclose(library_);
  }
  struct Inputs {
    const float* x;
    int64_t dims[2];
  };
  struct Outputs {
    float* y;
    int64_t dims[2];
  };
  TemporaryFolder folder_;
  void* library_ = nullptr;
  alignas(64) unsigned char arena_[4096];
};

TEST_F(Library, RunsTheModel) {
  load({});
  const auto run =
      reinterpret_cast<int (*)(const Inputs*, Outputs*, void*)>(dlsym(library_, "m_run"));  // NOLINT
  ASSERT_NE(run, nullptr);
  const float x[] = {1, 2, 3, 4};
  float y[8] = {};
  const Inputs in = {x, {2, 2}};
  Outputs out = {y, {}};
  ASSERT_EQ(run(&in, &out, arena_), 0);
  EXPECT_EQ(out.dims[0], 2);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{3, 10, 9, 20}));
  EXPECT_EQ(dlsym(library_, "sinter_start_pool"), nullptr);
}

TEST_F(Library, ShowsItsInterfaceAndNothingElse) {
  load({});
  const Finished symbols = run_process({"nm", "-D", "--defined-only", path("net/libm.so")}, true);
  ASSERT_EQ(symbols.code, 0) << symbols.output;
  std::istringstream lines(symbols.output);
  for (std::string address, kind, name; lines >> address >> kind >> name;)
    EXPECT_TRUE(name == "m_run" || name == "m_error" || name.rfind("m_weights", 0) == 0) << name;
}

TEST_F(Library, BringsAPoolForThreads) {
  load({"--threads", "2"});
  const auto start = reinterpret_cast<void* (*)(int)>(dlsym(library_, "sinter_start_pool"));  // NOLINT
  const auto stop = reinterpret_cast<void (*)(void*)>(dlsym(library_, "sinter_stop_pool"));   // NOLINT
  const auto run =
      reinterpret_cast<int (*)(const Inputs*, Outputs*, void*, void*)>(dlsym(library_, "m_run"));  // NOLINT
  ASSERT_TRUE(start && stop && run);
  void* pool = start(2);
  const float x[] = {1, 2};
  float y[2] = {};
  const Inputs in = {x, {1, 2}};
  Outputs out = {y, {}};
  EXPECT_EQ(run(&in, &out, arena_, pool), 0);
  EXPECT_EQ(y[1], 10);
  stop(pool);
}

TEST_F(Library, IsBuiltAgainOnlyForAnotherBundle) {
  load({});
  const auto built = std::filesystem::last_write_time(path("net/libm.so"));
  save_text("h (float[2] x) => (float[2] y) { y = Neg(x) }", path("x.onnx"));
  std::ofstream(path("x")) << "x";
  expect({"run", "--bundle", path("net"), "--in", path("x")}, 2,
         "");  // another product of the bundle is no reason
  expect({"build", path("net")}, 0, "libm.so");
  EXPECT_EQ(std::filesystem::last_write_time(path("net/libm.so")), built);
  expect({"compile", path("m.onnx"), "-o", path("net"), "--dim", "N<=3"}, 0, "m: ");
  expect({"build", path("net")}, 0, "libm.so");
  EXPECT_NE(std::filesystem::last_write_time(path("net/libm.so")), built);
}

TEST_F(Library, Refusals) {
  expect({"build", path("nothing")}, 2, "holds no bundle");
  expect({"build"}, 2, "BUNDLE is required");
  load({});
  expect({"build", path("net"), "-o", "/proc/no/lib.so"}, 3, "can't be written");
}

}  // namespace
}  // namespace sinter
