// NAME.map against the promises about memory: live_bytes recomputed from the tensors that it lists, the arena
// within 15 % and 64 KiB of them, and no two tensors alive at once over each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "program.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

// A tensor of the arena, views counted as what they show.
struct Range {
  int64_t begin = 0, bytes = 0;  // begin: -1 where only parts of it are listed
  size_t first = 0, last = 0;    // layers
};

std::map<std::string, Range> ranges_of(const nlohmann::json& map) {
  std::map<std::string, Range> ranges;
  for (const auto& layer : map["layers"])
    for (const auto& t : layer["tensors"]) {
      if (t["where"] != "arena") continue;
      const bool inside = t.contains("inside");
      const std::string name = inside ? t["inside"]["name"] : t["name"];
      const size_t i = layer["index"];
      const auto [it, fresh] = ranges.try_emplace(name, Range{-1, 0, i, i});
      Range& r = it->second;
      r.bytes = inside ? t["inside"]["bytes"] : t["bytes"];
      if (!inside) r.begin = t["offset"];
      r.last = i;
    }
  return ranges;
}

void check_map(const nlohmann::json& map) {
  const auto ranges = ranges_of(map);
  int64_t live = 0;
  for (size_t i = 0; i < map["layers"].size(); ++i) {
    int64_t sum = 0;
    for (const auto& [name, r] : ranges) sum += r.first <= i && i <= r.last ? r.bytes : 0;
    live = std::max(live, sum);
  }
  EXPECT_EQ(map["live_bytes"].get<int64_t>(), live);
  const int64_t arena = map["arena_bytes"];
  // Tile matrices may have 1.5 MB for the parts of their operands.
  const bool tiles = std::any_of(map["layers"].begin(), map["layers"].end(),
                                 [](const nlohmann::json& l) { return l["kernel"] == "gemm_amx"; });
  EXPECT_LE(static_cast<double>(arena), 1.15 * static_cast<double>(live) + 65536 + (tiles ? 3 << 19 : 0));
  for (auto a = ranges.begin(); a != ranges.end(); ++a) {
    if (a->second.begin < 0) continue;
    EXPECT_LE(a->second.begin + a->second.bytes, arena) << a->first;
    for (auto b = std::next(a); b != ranges.end(); ++b) {
      const Range &x = a->second, &y = b->second;
      // A layer may write its output over an input that it is the last to read.
      const bool together = x.first < y.last && y.first < x.last && x.first != y.last;
      const bool apart = y.begin < 0 || x.begin + x.bytes <= y.begin || y.begin + y.bytes <= x.begin;
      EXPECT_TRUE(!together || apart) << a->first << " and " << b->first << " share bytes";
    }
  }
}

struct Compilation {
  std::string model;
  std::vector<std::string> options;
};

// The project's own networks.
std::vector<Compilation> compilations() {
  const fs::path source = SINTER_SOURCE_DIR;
  return {{source / "examples/digits/digits.onnx", {"--dim", "N<=32"}},
          {source / "examples/digits/digits.onnx", {"--dim", "N<=3", "--target", "scalar"}},
          {source / "examples/segmentation/segmentation.onnx", {}},
          {source / "examples/detection/detection.onnx", {}},
          {source / "examples/audio/denoise.onnx", {}},
          {source / "examples/embedding/embedding.onnx", {"--dim", "N<=16", "--dim", "L<=32"}},
          {source / "examples/chat/chat.onnx",
           {"--dim", "batch_size=1", "--dim", "sequence_length<=16", "--dim", "past_sequence_length=0..128",
            "--dim", "total_sequence_length<=128", "--state", "present.*=past_key_values.*"}},
          {source / "generated/models/block.onnx", {}},
          {source / "generated/models/mlp.onnx", {"--dim", "N<=8"}}};
}

TEST(Map, TellsTheMemory) {
  const TemporaryFolder folder;
  size_t count = 0;
  for (const Compilation& c : compilations()) {
    SCOPED_TRACE(c.model);
    const fs::path dir = folder.path() / std::to_string(count++);
    std::vector<std::string> arguments = {"compile", c.model, "-o", dir.string(), "--name", "net"};
    arguments.insert(arguments.end(), c.options.begin(), c.options.end());
    const Finished f = sinter_program(arguments);
    ASSERT_EQ(f.code, 0) << f.output;
    check_map(nlohmann::json::parse(contents(dir / "net.map")));
  }
}

}  // namespace
}  // namespace sinter
