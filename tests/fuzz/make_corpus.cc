// The seeds and the dictionary of the fuzzers, from what is there anyway: small models of the given folders.
//
//   make_corpus OUT FOLDER...    writes OUT/seeds/NNNN.onnx and OUT/words.dict
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fuzz/chain.h"
#include "fuzz/mutate.h"

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const fs::path out = argv[1];
  fs::remove_all(out);
  fs::create_directories(out / "seeds");
  std::set<std::string> seeds;  // by content: equal ones once, in the same order on every machine
  for (int i = 2; i < argc; ++i) {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(argv[i], error)) {
      if (!entry.is_regular_file() || entry.path().extension() != ".onnx") continue;
      if (entry.file_size() > sinter::fuzz::kMaxBytes) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      onnx::ModelProto model;
      if (sinter::fuzz::parse(bytes, model)) seeds.insert(bytes);
    }
  }
  size_t k = 0;
  for (const std::string& bytes : seeds) {
    char name[32];
    std::snprintf(name, sizeof name, "%04zu.onnx", k++);
    std::ofstream(out / "seeds" / name, std::ios::binary) << bytes;
  }
  std::ofstream dictionary(out / "words.dict");
  for (const std::string& word : sinter::fuzz::words()) dictionary << '"' << word << "\"\n";
  std::printf("%zu models, %zu words\n", seeds.size(), sinter::fuzz::words().size());
  return seeds.empty() ? 1 : 0;
}
