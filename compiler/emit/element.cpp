#include "emit/element.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "ir/error.h"
#include "sinter/half.h"

namespace sinter {

const Element& element_of(Halves h) {
  static const Element rows[] = {
      {Halves::kNone, DType::kF32, "float", "float", 4, {}},
      {Halves::kStored, DType::kF16, "float", "auto", 4, {}},
      {Halves::kComputed,
       DType::kF16,
       "sinter::half",
       "sinter::half",
       2,
       {{"Chains", "HalfChains"},
        {"ShortRow", "HalfRow"},
        {"Tile", "HalfTile"},
        {"chains_of", "chains_of_halves"},
        {"f32v", "f16v"},
        {"kLanes", "kHalfLanes"},
        {"load", "load<f16v>"},
        {"load_lanes", "load_lanes<f16v>"},
        {"load_start", "load_half_start"},
        {"splat", "splat<f16v>"},
        {"zero", "zero<f16v>"}}},
  };
  for (const Element& e : rows)
    if (e.halves == h) return e;
  SINTER_CHECK(false, "no such element");
}

namespace {
bool is_part(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); }
}  // namespace

std::string Element::spelled(const std::string& text) const {
  if (halves == Halves::kNone) return text;
  static constexpr std::string_view kNull = "static_cast<const ";
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {  // words of people
      const size_t line = std::min(text.find('\n', i), text.size());
      out.append(text, i, line - i);
      i = line;
      continue;
    }
    if (!is_part(text[i])) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_part(text[end])) ++end;
    const std::string_view word(text.data() + i, end - i);
    const bool pointer = word == "float" && end < text.size() && text[end] == '*',
               null =
                   pointer && i >= kNull.size() && text.compare(i - kNull.size(), kNull.size(), kNull) == 0;
    const char* other = pointer ? (null ? name : pointer_to) : nullptr;
    for (const auto& [of_floats, own] : words)
      if (word == of_floats) other = own;
    if (other)
      out += other;
    else
      out += word;
    i = end;
  }
  return out;
}

std::string Element::header(const std::string& of_floats) const {
  if (is_half() && of_floats == "sinter/mac.h") return "sinter/mac_half.h";
  if (is_half() && of_floats == "sinter/math.h") return "sinter/math_half.h";
  return of_floats;
}

std::vector<uint16_t> Element::packed(const std::vector<float>& numbers) const {
  std::vector<uint16_t> bits;
  bits.reserve(numbers.size());
  for (const float x : numbers) bits.push_back(to_half(x).bits);
  return bits;
}

}  // namespace sinter
