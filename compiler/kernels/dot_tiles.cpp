#include "kernels/dot_tiles.h"

#include <algorithm>
#include <cmath>

#include "ops/contraction.h"

namespace sinter {

int64_t offset_of(const Node& n, const Target& t) {
  const bool is_signed = n.inputs[0]->type.dtype == DType::kI8,
             x86 = !t.aarch64 && t.isa != std::string_view("scalar");
  return x_zero_of(n) + (is_signed == x86 ? (x86 ? 128 : -128) : 0);
}

int dot_tile(const Target& t, int vectors) {
  if (t.isa != std::string_view("neon")) return t.tile(vectors);
  return vectors == 1 ? 12 : vectors == 2 ? 8 : vectors == 3 ? 6 : 4;
}

std::string words(LayerWriter& w, const std::string& name, const std::vector<int32_t>& v,
                  const std::string& comment) {
  return w.weights(name, "std::int32_t", v.data(), v.size() * sizeof(int32_t), comment);
}

double most_of(const Node& n, size_t out) {
  const Tensor& w = *n.inputs[1]->data;
  const bool is_signed = n.inputs[0]->type.dtype == DType::kI8;
  const double low = (is_signed ? -128 : 0) - static_cast<double>(x_zero_of(n)), high = low + 255,
               x = std::max(std::abs(low), std::abs(high));
  std::vector<double> sums(static_cast<size_t>(w.dim(out)), 0);
  int64_t inner = 1;
  for (size_t a = out + 1; a < w.shape().size(); ++a) inner *= w.dim(a);
  for (int64_t i = 0; i < w.size(); ++i)
    sums[static_cast<size_t>(i / inner % w.dim(out))] += std::abs(w.as<int8_t>()[i]) * x;
  if (n.anchor_inputs > 2 && n.inputs[2])
    for (int64_t c = 0; c < w.dim(out); ++c)
      sums[static_cast<size_t>(c)] += std::abs(static_cast<double>(n.inputs[2]->data->as<int32_t>()[c]));
  return *std::max_element(sums.begin(), sums.end());
}

void store_tile(LayerWriter& w, const Sums& sums, const std::string& channel, const IndexText& index,
                const AddressText& to) {
  const Epilogue& e = sums.epilogue();
  const auto unrolled = [&](const char* variable, const char* end) {
    w.out.line("SINTER_UNROLL");
    w.out.line("for (int {0} = 0; {0} < {1}; ++{0}) {{", variable, end);
  };
  const std::string lanes = "const int lanes = o == kVectors - 1 ? last.value : kLanes;";
  const std::string at = channel + " + o * kLanes", sum = sums.text("sum.a[t][o]");
  if (e.bytes()) {
    // All values first: stores of bytes may alias the operands, which would be loaded again for each pixel.
    w.out.line("f32v value[kPixels][kVectors];");
    unrolled("o", "kVectors");
    w.out.line("[[maybe_unused]] {}", lanes);
    unrolled("t", "kPixels");
    const std::string value = e.steps(sum, index("t", at), "lanes", w.out);
    w.out.line("value[t][o] = {};", value);
    w.out.line("}}");
    w.out.line("}}");
    unrolled("t", "kPixels");
    w.out.line("store_rounded<{}, last.value>({}, value[t], {});", cpp_name(e.dtype()), to("t"),
               sums.range());
    w.out.line("}}");
    return;
  }
  unrolled("t", "kPixels");
  unrolled("o", "kVectors");
  w.out.line("{}", lanes);
  if (e.has_lanes()) {
    const std::string value = e.vector(sum, index("t", at), "lanes", w.out);
    w.out.line("store_lanes({} + o * kLanes, {}, lanes);", to("t"), value);
  } else {
    w.out.line("std::int32_t sums[kLanes];");
    w.out.line("store(sums, sum.a[t][o]);");
    w.out.line("for (int l = 0; l < lanes; ++l) {{");
    const std::string value = e.scalar("sums[l]", index("t", at + " + l"), w.out);
    w.out.line("*({} + o * kLanes + l) = {};", to("t"), store_text(e.dtype(), value));
    w.out.line("}}");
  }
  w.out.line("}}");
  w.out.line("}}");
}

}  // namespace sinter
