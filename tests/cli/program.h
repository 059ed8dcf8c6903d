// The sinter executable under test, and folders and models for it.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "driver/process.h"
#include "model_text.h"

namespace sinter {

inline Finished sinter_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SINTER_EXECUTABLE);
  return run_process(arguments, true);
}

// Command lines must end with that code and say that, in one of their lines.
inline void expect(const std::vector<std::string>& arguments, int code, const std::string& said) {
  const Finished f = sinter_program(arguments);
  std::string line;
  for (const std::string& a : arguments) line += " " + a.substr(0, 80);
  EXPECT_EQ(f.code, code) << "sinter" << line << "\n" << f.output;
  EXPECT_NE(f.output.find(said), std::string::npos) << "sinter" << line << "\n"
                                                    << f.output << "\nwanted: " << said;
}

// The program of a bundle m in a folder (`run --keep`), built as `program` with sanitizers and run; where it
// doesn't build, what the compiler said.
inline Finished run_sanitized(const std::string& net, const std::string& program,
                              const std::vector<std::string>& arguments) {
  std::vector<std::string> build = {"c++",
                                    "-std=c++17",
                                    "-O1",
                                    "-fsanitize=address,undefined",
                                    "-march=native",
                                    "-I" + net,
                                    net + "/m.cpp",
                                    net + "/m_main.cpp",
                                    "-o",
                                    program};
  if (std::filesystem::exists(net + "/m_weights.S")) build.push_back(net + "/m_weights.S");
  if (const Finished built = run_process(build, true); built.code != 0) return built;
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_process(words, true);
}

inline void save(const onnx::ModelProto& model, const std::filesystem::path& file) {
  std::ofstream f(file, std::ios::binary);
  ASSERT_TRUE(model.SerializeToOstream(&f));
}
// `graph` in ONNX's text form, of opset 17.
inline void save_text(const std::string& graph, const std::filesystem::path& file) {
  save(parse_text("<ir_version: 8, opset_import: [\"\" : 17]>\n" + graph), file);
}

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream f(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(f), {});
}
inline void put(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// Every file below a folder, by its path there.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& e : std::filesystem::recursive_directory_iterator(dir))
    if (e.is_regular_file()) files[std::filesystem::relative(e.path(), dir).string()] = contents(e.path());
  return files;
}

}  // namespace sinter
