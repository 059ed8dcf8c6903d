// Outputs that are inputs, constants or one another: each keeps the name that the model has given it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "driver/options.h"
#include "program.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

class Outputs : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_.path() / name).string(); }
  TemporaryFolder folder_;
};

struct Case {
  const char* graph;
  std::vector<std::string> names, members;  // of the outputs
  std::vector<double> first;                // elements, where x is 1, 2
};

TEST_F(Outputs, KeepTheirNames) {
  const Case cases[] = {
      {"g (float[2] x) => (float[2] y, float[2] x) { y = Neg(x) }", {"y", "x"}, {"y", "x"}, {-1, 1}},
      {"g (float[2] x) => (float[2] x, float[2] x) { y = Neg(x) }", {"x", "x"}, {"x", "x_2"}, {1, 1}},
      {"g (float[2] x) => (float[2] y, float[2] c, float[2] c, float[2] z, float[2] y)\n"
       "<float[2] c = {7, 8}> { y = Neg(x) z = Abs(y) }",
       {"y", "c", "c", "z", "y"},
       {"y", "c", "c_2", "z", "y_2"},
       {-1, 7, 7, 1, -1}},
      {"g (float[N] x) => (float[N] y, float[N] x_copy, float[N] z, float[N] x)\n"
       "{ y = Identity(x) x_copy = Neg(x) z = Identity(y) }",
       {"y", "x_copy", "z", "x"},
       {"y", "x_copy", "z", "x"},
       {1, -1, 1, 1}},
  };
  write_tensor_pb(path("x.pb"), Tensor::of(std::vector<float>{1, 2}, {2}), "");
  for (const Case& c : cases) {
    save_text(c.graph, path("m.onnx"));
    std::filesystem::remove_all(path("kept"));
    std::vector<std::string> arguments = {"run",        path("m.onnx"), "--in",
                                          path("x.pb"), "--keep",       path("kept")};
    // By their names, the last of them first.
    for (size_t i = c.names.size(); i-- > 0;)
      if (std::count(c.names.begin(), c.names.end(), c.names[i]) == 1)
        arguments.insert(arguments.end(),
                         {"--out", fmt::format("{}={}", c.names[i], path(fmt::format("{}.npy", i)))});
    for (size_t i = 0; i < c.names.size(); ++i)
      if (std::count(c.names.begin(), c.names.end(), c.names[i]) > 1)
        arguments.insert(arguments.end(),
                         {"--out", fmt::format("{}={}", c.names[i], path(fmt::format("{}.npy", i)))});
    const Finished ran = sinter_program(arguments);
    ASSERT_EQ(ran.code, 0) << c.graph << "\n" << ran.output;
    const auto map = nlohmann::json::parse(contents(path("kept/m.map")));
    for (size_t i = 0; i < c.names.size(); ++i) {
      EXPECT_EQ(map.at("outputs").at(i).at("name"), c.names[i]) << c.graph;
      EXPECT_EQ(map.at("outputs").at(i).at("member"), c.members[i]) << c.graph;
      EXPECT_EQ(read_tensor_file(path(fmt::format("{}.npy", i))).real(0), c.first[i]) << c.graph << " " << i;
    }
  }
  // The last of them, compared and printed.
  expect({"verify", path("m.onnx"), "--in", path("x.pb")}, 0, "4 outputs as expected");
  const Finished printed = sinter_program({"run", path("m.onnx"), "--in", path("x.pb")});
  for (const char* name : {"y", "x_copy", "z", "x"})
    EXPECT_NE(printed.output.find(std::string(name) + " float32[2]: "), std::string::npos) << printed.output;
}

}  // namespace
}  // namespace sinter
