#include "kernels/windows/rows.h"

namespace sinter {
namespace {
std::string times(const std::string& a, int64_t b) { return b == 1 ? a : fmt::format("{} * {}", a, b); }
std::string minus(const std::string& a, const std::string& b) {
  return b == "0" ? a : fmt::format("{} - {}", a, b);
}
std::string ceil_quotient(const std::string& a, int64_t b) {
  return b == 1 ? a : fmt::format("sinter::ceil_div({}, {})", a, b);
}
}  // namespace

bool Rows::take_strip(const std::optional<Dim>& columns) {
  const std::optional<LayerWriter::Strip> strip = w.strip();
  if (!strip) return false;
  // Rows as pixels of the one long row.
  const auto number = [&](const std::string& row) {
    return !columns || row.empty() ? row : row + " * " + w.dim(*columns);
  };
  turns = {number(strip->first), number(strip->end)};
  x_base = number(strip->x_base);
  y_base = number(strip->y_base);
  return true;
}

void Rows::open() {
  w.include("sinter/dims.h");
  LayerWriter::Turns outermost = turns;
  auto loop = [&](const std::string& v, const Dim& extent) {
    if (outermost.end.empty()) outermost = {"0", w.dim(extent)};
    w.out.line("for (std::int64_t {0} = {1}; {0} < {2}; ++{0}) {{", v, outermost.first, outermost.end);
    outermost = {};
  };
  if (!batch.is(1)) loop("n", batch);
  for (size_t a = 0; a < last(); ++a) {
    loop(fmt::format("o{}", a), window.out[a]);
    const std::string base =
        minus(times(fmt::format("o{}", a), window.strides[a]), w.dim(window.pads_begin[a]));
    const int64_t d = window.dilations[a];
    if (window.kernel[a] == 1 && window.pads_begin[a].is(0)) continue;
    w.out.line("const std::int64_t i{} = {};", a, base);
    w.out.line("const std::int64_t k{0}_first = i{0} < 0 ? {1} : 0;", a,
               d == 1 ? fmt::format("-i{}", a) : fmt::format("({} - i{}) / {}", d - 1, a, d));
    w.out.line("const std::int64_t k{0}_last = sinter::min_of({1}, {2});", a,
               fmt::format("std::int64_t{{{}}}", window.kernel[a]),
               ceil_quotient(fmt::format("{} - i{}", w.dim(window.in[a]), a), d));
  }
}

void Rows::close() {
  for (size_t a = 0; a < last(); ++a) w.out.line("}}");
  if (!batch.is(1)) w.out.line("}}");
}

void Rows::open_taps(Printer& out) const {
  for (size_t a = 0; a < last(); ++a) {
    if (window.kernel[a] == 1 && window.pads_begin[a].is(0)) continue;
    out.line("for (std::int64_t k{0} = k{0}_first; k{0} < k{0}_last; ++k{0}) {{", a);
  }
}
void Rows::close_taps(Printer& out) const {
  for (size_t a = 0; a < last(); ++a)
    if (!(window.kernel[a] == 1 && window.pads_begin[a].is(0))) out.line("}}");
}

std::string Rows::input_offset(const std::string& ix) const {
  return fmt::format("{} * {}", position_from(batch.is(1) ? "" : "n", ix), w.dim(in_channels));
}

std::string Rows::planar_offset(const std::string& channel, const std::string& ix) const {
  const std::string plane = batch.is(1) ? channel : fmt::format("(n * {} + {})", w.dim(in_channels), channel);
  return position_from(plane, ix);
}

std::string Rows::position_from(std::string at, const std::string& ix) const {
  for (size_t a = 0; a <= last(); ++a) {
    std::string here = ix;
    if (a < last()) {
      const bool single = window.kernel[a] == 1 && window.pads_begin[a].is(0);
      here = single ? times(fmt::format("o{}", a), window.strides[a])
                    : fmt::format("i{0} + {1}", a, times(fmt::format("k{}", a), window.dilations[a]));
    }
    if (a == 0 && !x_base.empty()) here += " - " + x_base;
    at = at.empty() ? "(" + here + ")" : fmt::format("({} * {} + {})", at, w.dim(window.in[a]), here);
  }
  return at;
}

std::string Rows::output_offset(const std::string& ox) const {
  std::string at = batch.is(1) ? "" : "n";
  for (size_t a = 0; a <= last(); ++a) {
    std::string here = a < last() ? fmt::format("o{}", a) : ox;
    if (a == 0 && !y_base.empty()) here = fmt::format("({} - {})", here, y_base);
    at = at.empty() ? "(" + here + ")" : fmt::format("({} * {} + {})", at, w.dim(window.out[a]), here);
  }
  return fmt::format("{} * {}", at, w.dim(out_channels));
}

std::string Rows::tap(const std::string& kw) const {
  std::string at;
  for (size_t a = 0; a <= last(); ++a) {
    const bool single = a < last() && window.kernel[a] == 1 && window.pads_begin[a].is(0);
    const std::string here = a < last() ? (single ? "0" : fmt::format("k{}", a)) : kw;
    if (at.empty())
      at = here;
    else if (at == "0")
      at = here;
    else
      at = fmt::format("({} * {} + {})", at, window.kernel[a], here);
  }
  return at;
}

std::vector<std::string> Rows::index(const std::string& ox, const std::string& channel) const {
  std::vector<std::string> i{batch.is(1) ? "0" : "n"};
  for (size_t a = 0; a < last(); ++a) i.push_back(fmt::format("o{}", a));
  i.push_back(ox);
  i.push_back(channel);
  return i;
}

Dim Rows::interior_begin() const { return min(ceildiv(pad(), Dim(stride())), out_width()); }
Dim Rows::interior_end() const {
  const Dim room = width() + pad() - Dim((kernel() - 1) * dilation() + 1);
  return max(interior_begin(), min(out_width(), floordiv(room, Dim(stride())) + 1));
}
std::string Rows::position(const std::string& ox) const { return minus(times(ox, stride()), w.dim(pad())); }
std::string Rows::first_tap(const std::string& ox) const {
  return fmt::format("sinter::max_of(std::int64_t{{0}}, {})",
                     ceil_quotient(fmt::format("{} - {}", w.dim(pad()), times(ox, stride())), dilation()));
}
std::string Rows::last_tap(const std::string& ox) const {
  const std::string room = fmt::format("{} + {} - {}", w.dim(width()), w.dim(pad()), times(ox, stride()));
  return fmt::format("sinter::min_of(std::int64_t{{{}}}, {})", kernel(), ceil_quotient(room, dilation()));
}

Window flattened(const Window& window, const Dim& batch, bool with_batch) {
  Window f;
  f.kernel = f.strides = f.dilations = {1};
  f.pads_begin = f.pads_end = {Dim(0)};
  f.in = f.out = {product(window.in) * (with_batch ? batch : Dim(1))};
  return f;
}

}  // namespace sinter
