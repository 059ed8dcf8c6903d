// --threads: any number of them makes the same bits, so it has the algorithms of one thread, also where the
// arena's budget decides (plan/budget.cpp): scratch of more threads is a larger budget.
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

struct Net {
  int kernel, in, out, size;
};

// Two convolutions whose scratch for Winograd is most of the arena.
std::string text_of(const Net& n) {
  const int p = n.kernel / 2;
  const auto conv = [&](const char* x, const char* w) {
    return fmt::format("Conv<pads=[{0},{0},{0},{0}]>({1}, {2})\n", p, x, w);
  };
  return fmt::format(
             "g (float[1,{0},{3},{3}] x) => (float[1,{1},{3},{3}] y)\n"
             "<int64[4] s = {{{1},{0},{2},{2}}}, int64[4] t = {{{1},{1},{2},{2}}}> {{\n"
             "v = ConstantOfShape<value=float[1]{{0.01}}>(s)\n"
             "w = ConstantOfShape<value=float[1]{{0.02}}>(t)\n",
             n.in, n.out, n.kernel, n.size) +
         "a = " + conv("x", "v") + "b = Relu(a)\nc = " + conv("b", "w") + "y = Relu(c)\n}";
}

// The tiles of the layers in turn.
std::vector<std::string> tiles_in(const std::string& code) {
  std::vector<std::string> tiles;
  const std::regex winograd("by Winograd F\\([0-9x]+, [0-9x]+\\)");
  for (auto i = std::sregex_iterator(code.begin(), code.end(), winograd); i != std::sregex_iterator(); ++i)
    tiles.push_back(i->str());
  return tiles;
}

TEST(Threads, HaveTheAlgorithmsOfOne) {
  const TemporaryFolder folder;
  const std::string model = folder.path() / "m.onnx", bundle = folder.path() / "net";
  for (const Net& n : {Net{5, 12, 24, 16}, {5, 8, 16, 16}, {5, 32, 24, 16}, {3, 32, 64, 16}}) {
    save_text(text_of(n), model);
    for (const char* target : {"cascadelake", "avx512", "cortex-a76"}) {
      std::vector<std::string> one;
      for (const char* threads : {"1", "2", "4"}) {
        expect({"compile", model, "--target", target, "--threads", threads, "--fast-weights", "-o", bundle},
               0, "m: ");
        const std::vector<std::string> tiles = tiles_in(contents(bundle + "/m.cpp"));
        EXPECT_FALSE(tiles.empty());
        if (one.empty()) one = tiles;
        EXPECT_EQ(tiles, one) << target << ", " << threads << " threads, " << n.in << " channels";
      }
    }
  }
}

TEST(Threads, MakeTheBitsOfOne) {
  const TemporaryFolder folder;
  const std::string model = folder.path() / "m.onnx", x = folder.path() / "x.npy",
                    y = folder.path() / "y.npy";
  save_text(text_of({5, 12, 24, 16}), model);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> v(12 * 16 * 16);
  for (float& f : v) f = number(random);
  const Tensor t = Tensor::of(v, {1, 12, 16, 16});
  ASSERT_EQ(write_tensor(x, "x", *element_type(onnx_of(t.dtype())), t.shape(),
                         reinterpret_cast<const unsigned char*>(t.data())),
            "");
  std::string one;
  for (const char* threads : {"1", "2", "3"}) {
    expect({"run", model, "--threads", threads, "--fast-weights", "--in", x, "--out", y}, 0, "");
    const std::string bits = contents(y);
    if (one.empty()) one = bits;
    EXPECT_EQ(bits, one) << threads;
  }
}

}  // namespace
}  // namespace sinter
