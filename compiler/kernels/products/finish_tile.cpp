#include "kernels/products/finish_tile.h"

namespace sinter {
namespace {

// Opens a loop of constant length over a tile's pixels or vectors.
void open_unrolled(LayerWriter& w, const char* variable, const std::string& end) {
  w.out.line("SINTER_UNROLL");
  w.out.line("for (int {0} = 0; {0} < {1}; ++{0}) {{", variable, end);
}

// All values first: stores of bytes may alias the operands, which would be loaded again for each pixel.
void store_bytes(LayerWriter& w, const Sums& sums, const TileTexts& t) {
  const Epilogue& e = sums.epilogue();
  w.out.line("f32v value[{}][kVectors];", t.rows);
  open_unrolled(w, "o", "kVectors");
  w.out.line("[[maybe_unused]] const int lanes = o == kVectors - 1 ? {} : kLanes;", t.last);
  open_unrolled(w, "t", t.rows);
  const std::string value = e.steps(t.sum, t.index("t", t.channel + " + o * kLanes"), "lanes", w.out);
  w.out.line("value[t][o] = {};", value);
  w.out.line("}}");
  w.out.line("}}");
  open_unrolled(w, "t", t.rows);
  w.out.line("store_rounded<{}, {}>({}, value[t], {});", cpp_name(e.dtype()), t.last, t.to("t"),
             sums.range());
  w.out.line("}}");
}

}  // namespace

void finish_tile(LayerWriter& w, const Epilogue& e, const TileTexts& t) {
  const std::string at = t.channel + " + o * kLanes";
  open_unrolled(w, "t", t.rows);
  open_unrolled(w, "o", "kVectors");
  w.out.line("const int lanes = o == kVectors - 1 ? {} : kLanes;", t.last);
  if (e.has_vector() || e.has_lanes()) {
    const std::string value = e.vector(t.sum, t.index("t", at), "lanes", w.out);
    w.out.line("store_lanes({} + o * kLanes, {}, lanes);", t.to("t"), value);
  } else {
    w.out.line("std::int32_t sums[kLanes];");
    w.out.line("store(sums, {});", t.sum);
    w.out.line("for (int l = 0; l < lanes; ++l) {{");
    const std::string value = e.scalar("sums[l]", t.index("t", at + " + l"), w.out);
    w.out.line("*({} + o * kLanes + l) = {};", t.to("t"), store_text(e.dtype(), value));
    w.out.line("}}");
  }
  w.out.line("}}");
  w.out.line("}}");
}

void finish_tile(LayerWriter& w, const Sums& sums, TileTexts texts) {
  texts.sum = sums.text(texts.sum);
  if (sums.epilogue().bytes())
    store_bytes(w, sums, texts);
  else
    finish_tile(w, sums.epilogue(), texts);
}

}  // namespace sinter
