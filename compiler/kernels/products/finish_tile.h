// What becomes of a register tile of sums: the epilogue, and its results stored as floats or bytes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "emit/epilogue.h"

namespace sinter {

// What the sums of a layer become, and how they are written down until then.
class Sums {
 public:
  // `most`: what no sum exceeds.
  Sums(const LayerWriter& w, const Epilogue& e, double most)
      : epilogue_(e),
        most_(most),
        small_(w.target.isa == std::string_view("neon") && most < 4194304 && !e.adds_to_sums() &&
               (e.bytes() || e.has_lanes())) {}

  // To be added to the biases.
  int64_t shift() const { return small_ ? kSmallSum : 0; }
  std::string text(const std::string& sum) const { return small_ ? "small_sums(" + sum + ")" : sum; }
  std::string range() const {
    const ByteSteps& b = *epilogue_.bytes();
    return fmt::format("{{{}, {}, {}, {}}}", b.zero, b.low, b.high,
                       epilogue_.most_steps(most_) < 32000 ? "true" : "false");
  }
  const Epilogue& epilogue() const { return epilogue_; }

 private:
  static constexpr int64_t kSmallSum = 0x4b400000;  // as in runtime/sinter/dot.h
  const Epilogue& epilogue_;
  double most_;
  bool small_;
};

// The texts by which a tile is finished: kPixels rows of kVectors vectors of sums.
using IndexText =
    std::function<std::vector<std::string>(const std::string& pixel, const std::string& channel)>;
using AddressText = std::function<std::string(const std::string& pixel)>;
struct TileTexts {
  std::string channel;  // the number of the panel's first one
  IndexText index;      // of an element
  AddressText to;       // of a pixel's first channel
  std::string sum = "sum.a[t][o]", rows = "kPixels", last = "last.value";
};
void finish_tile(LayerWriter& w, const Epilogue& e, const TileTexts& texts);
// The same of sums of integers.
void finish_tile(LayerWriter& w, const Sums& sums, TileTexts texts);

}  // namespace sinter
