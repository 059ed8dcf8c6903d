#include "kernels/products/packed_codes.h"

namespace sinter {
namespace {

// Vectors of channels in a panel, on every target: wide enough to read each number of x once for two, and
// narrow enough to keep the sums of several rows in registers.
constexpr int kPanelVectors = 2;

// f(channels in the panel, its first channel) for each panel.
template <class F>
void each_panel(const Panels& p, int lanes, F f) {
  const int64_t width = int64_t{p.vectors} * lanes;
  for (int64_t i = 0; i < p.full; ++i) f(width, i * width);
  if (p.rest) f(int64_t{p.rest - 1} * lanes + p.tail, p.full * width);
}

// The k of the code at a position of a word, counted from the lowest bits (product_of_codes.h).
int64_t code_at(int64_t position, int64_t bits) {
  const int64_t each = 8 / bits;
  return position % each * 4 + position / each;
}

std::vector<int32_t> packed_words(const Codes& c, const Panels& p, int lanes, int64_t words) {
  const CodeForm& f = c.form;
  const int64_t each = 32 / f.bits, held = f.blocks() * f.block;
  std::vector<int32_t> out;
  out.reserve(static_cast<size_t>(f.n * words + int64_t{p.vectors} * lanes));
  each_panel(p, lanes, [&](int64_t channels, int64_t first) {
    for (int64_t i = 0; i < words; ++i)
      for (int64_t row = first; row < first + channels; ++row) {
        uint32_t word = 0;
        for (int64_t position = 0; position < each; ++position)
          if (const int64_t k = i * each + code_at(position, f.bits); k < held)
            word |= static_cast<uint32_t>(c.code(row, k)) << (position * f.bits);
        out.push_back(static_cast<int32_t>(word));
      }
  });
  out.resize(out.size() + static_cast<size_t>(lanes));  // the last row's last vector is read whole
  return out;
}

// Elements [n][count] as [count][channels] in each panel, and a vector more.
template <class T, class At>
std::vector<T> packed_elements(const Panels& p, int lanes, int64_t count, At at) {
  std::vector<T> out;
  each_panel(p, lanes, [&](int64_t channels, int64_t first) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t row = first; row < first + channels; ++row) out.push_back(at(row, i));
  });
  out.resize(out.size() + static_cast<size_t>(lanes));
  return out;
}

// Floats of any width, [n][count], as they are.
std::string pack_floats(LayerWriter& w, const Panels& p, const Tensor& t, int64_t count,
                        const std::string& name, const std::string& comment) {
  w.include_storage(t.dtype());
  const auto pack = [&](auto zero) {
    using T = decltype(zero);
    const auto v = packed_elements<T>(p, w.target.lanes, count,
                                      [&](int64_t row, int64_t i) { return t.as<T>()[row * count + i]; });
    return w.weights(name, std::string(cpp_name(t.dtype())), v.data(), v.size() * sizeof(T), comment);
  };
  return size_of(t.dtype()) == 2 ? pack(uint16_t{0}) : pack(float{0});
}

}  // namespace

PackedCodes pack_codes(LayerWriter& w) {
  PackedCodes r{codes_of(w.node), {}, 0, "", "", "", "", 0};
  const CodeForm& f = r.codes.form;
  const int lanes = w.target.lanes;
  r.panels = cut_panels(f.n, kPanelVectors, lanes);
  // The last words of a row may have room behind its last block.
  const int64_t each = 32 / f.bits, block = f.blocks() == 1 ? round_up(f.block, each) : f.block;
  r.words = f.blocks() * block / each;
  r.blocks = fmt::format("CodeBlocks{{{}, {}}}", f.blocks(), block);
  const std::string in_panels = fmt::format("in panels of {} columns", r.panels.vectors * lanes);
  const std::vector<int32_t> words = packed_words(r.codes, r.panels, lanes, r.words);
  r.w = w.weights("w", "std::int32_t", words.data(), words.size() * sizeof(int32_t),
                  fmt::format("[{}][{}] codes of {} bits, {}", f.k, f.n, f.bits, in_panels));
  const std::string comment = fmt::format("[{} blocks][{}], {}", f.blocks(), f.n, in_panels);
  const auto real = [](const Tensor& t) { return t.dtype() == DType::kF64 ? t.converted(DType::kF32) : t; };
  r.scales = pack_floats(w, r.panels, real(r.codes.scales), f.blocks(), "scales", comment);
  if (r.codes.has_packed_zeros()) {
    r.blocks_of_zeros = f.zero_row_bytes();
    const auto zeros = packed_elements<uint8_t>(
        r.panels, lanes, r.blocks_of_zeros,
        [&](int64_t row, int64_t i) { return r.codes.zeros.as<uint8_t>()[row * f.zero_row_bytes() + i]; });
    r.zeros = w.weights("zeros", "std::uint8_t", zeros.data(), zeros.size(), comment);
  } else if (r.codes.zeros) {
    r.blocks_of_zeros = f.blocks();
    r.zeros = pack_floats(w, r.panels, real(r.codes.zeros), f.blocks(), "zeros", comment);
  }
  return r;
}

}  // namespace sinter
