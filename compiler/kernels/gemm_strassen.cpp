// Products with constant weights by Strassen's seven products of quarters (runtime/sinter/strassen.h):
// MatMul, Gemm and pointwise convolutions whose rows, inner extent and columns are large enough.
//
// The rows are cut into groups; of each, the sums over its quarters go to scratch that stays in the
// second-level cache. Then for each panel of the columns' first half the seven products run one after the
// other, each over all register tiles of the rows' upper half or all seven a tile (StrassenChoice); what
// later products build on is kept in scratch, and four of them finish a quarter of the result by the
// epilogue. The pass allow_strassen marks the layers whose sums may be rearranged so (not with --exact).
#include "emit/epilogue.h"
#include "kernels/strassen.h"
#include "kernels/tiles.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Target& t) { return choose_strassen(n, t).has_value(); }

class Writer {
 public:
  Writer(LayerWriter& w, const StrassenChoice& choice)
      : w_(w), n_(w.node), p_(*row_product(n_)), choice_(choice), epilogue_(w, n_.outputs[0]->type.shape) {}

  void emit() {
    const Shape& out = n_.outputs[0]->type.shape;
    SINTER_CHECK(epilogue_.can_merge(0, out.size() - 2), "the epilogue's rows must be one column");
    const int lanes = w_.target.lanes;
    w_.include("sinter/strassen.h");
    w_.flops(Dim(2 * p_.rows * p_.k * p_.n));
    w_.summary(
        fmt::format("{} [{}, {}] x [{}, {}] by Strassen, groups of {} rows, error {:.1g} of the largest{}",
                    n_.op->name, p_.rows, p_.k, p_.k, p_.n, choice_.rows + (choice_.larger ? 1 : 0),
                    choice_.error, epilogue_.summary()));
    panels_ = panels_of(w_.target, p_.n / 2, choice_.height);
    x_ = w_.input(0);
    weights_ =
        w_.weights("w",
                   pack_panels(panels_, lanes, p_.n / 2, 7 * (p_.k / 2),
                               [&](int64_t i, int64_t j) {
                                 const int64_t half = p_.k / 2;
                                 return strassen_weights(p_, i % half, j)[static_cast<size_t>(i / half)];
                               }),
                   fmt::format("[7 products][{}][{}], in panels of {} columns", p_.k / 2, p_.n / 2,
                               panels_.vectors * lanes));
    if (n_.anchor_inputs > 2 && n_.inputs[2])
      bias_ = w_.weights("bias", packed_bias(), fmt::format("[{}]", p_.n));
    y_ = w_.output(0);
    body();
  }

 private:
  // Both halves with room for a whole last vector.
  std::vector<float> packed_bias() const {
    const Tensor& c = *n_.inputs[2]->data;
    const float beta = std::string_view(n_.op->name) == "Gemm" ? n_.attributes.real("beta", 1) : 1;
    std::vector<float> bias(static_cast<size_t>(p_.n + w_.target.lanes));
    for (int64_t j = 0; j < p_.n; ++j)
      bias[static_cast<size_t>(j)] = beta == 0 ? 0 : beta * c.as<float>()[c.size() == 1 ? 0 : j];
    return bias;
  }

  void body() {
    const int64_t k = p_.k, height = choice_.height;
    const LayerWriter::Turns groups =
        by_groups() ? w_.open_parts(std::to_string(choice_.groups)) : LayerWriter::Turns{"0", ""};
    const std::string s = w_.scratch_of_part("s", "float", 2 * height * k);
    open_group(groups);
    w_.out.line("const float* const below = upper + (rows - {}) * {};", height, k);
    const LayerWriter::Turns rows =
        by_groups() ? LayerWriter::Turns{"0", ""} : w_.open_parts(std::to_string(height));
    if (rows.first == "0")
      w_.out.line("strassen_sums(upper, below, {1}, {2}, {3}, {0}, {0} + {4});", s, height, k / 2, k,
                  height * k);
    else
      w_.out.line(
          "strassen_sums(upper + {1} * {4}, below + {1} * {4}, {2} - {1}, {3}, {4}, {0} + {1} * {4}, {0} + "
          "{5} + "
          "{1} * {4});",
          s, rows.first, rows.end, k / 2, k, height * k);
    if (!by_groups()) w_.close_parts();
    w_.out.line("// the left factors, in the order of the steps");
    w_.out.line(
        "const float* const factors[7] = {{upper, upper + {1}, {0} + {1}, {0} + {2}, below + {1}, {0}, {0} + "
        "{3}}};",
        s, k / 2, height * k, height * k + k / 2);
    const LayerWriter::Turns panels =
        by_groups() ? LayerWriter::Turns{"0", ""} : w_.open_parts(std::to_string(panel_count(panels_)));
    kept_ = w_.scratch_of_part("kept", "float", 3 * plane());
    panel();
    emit_panels(w_, panels_, 7 * (k / 2), weights_, "0", panels);
    if (!by_groups()) w_.close_parts();
    w_.out.line("}}");
    if (by_groups()) w_.close_parts();
  }

  bool by_groups() const { return choice_.groups >= w_.threads; }

  // The loop over groups, or the only one: its rows are `rows` ones from `first`.
  void open_group(const LayerWriter::Turns& groups) {
    const StrassenChoice& c = choice_;
    w_.out.line("for (std::int64_t group = {}; group < {}; ++group) {{", groups.first,
                groups.end.empty() ? std::to_string(c.groups) : groups.end);
    if (c.larger > 0)
      w_.out.line(
          "const std::int64_t first = group * {0} + sinter::min_of(group, std::int64_t{{{1}}}), rows = group "
          "< {1} ? {2} : {0};",
          c.rows, c.larger, c.rows + 1);
    else
      w_.out.line("const std::int64_t first = group * {0}, rows = {0};", c.rows);
    if (c.larger > 0) w_.include("sinter/dims.h");
    w_.out.line("const float* const upper = {} + first * {};", x_, p_.k);
  }

  void panel() {
    const int64_t half = p_.k / 2;
    w_.out.line("// `vectors` vectors of columns from c and from c + {}, the last one with `last` columns",
                p_.n / 2);
    w_.out.line(
        "const auto panel = [&](auto vectors, auto last, std::int64_t c, const float* wp) "
        "__attribute__((always_inline)) {{");
    w_.out.line("constexpr int kVectors = vectors.value;");
    const int rows = w_.target.tile(panels_.vectors);
    const int64_t tiles = (choice_.height + rows - 1) / rows;
    const int step = floats_ahead(w_.target, panels_.vectors, tiles);
    if (step > 0) w_.out.line("Ahead<{}> ahead{{wp + {} * kVectors * kLanes}};", step, half);
    const std::string kept = kept_ + (choice_.by_products ? " + i * (kVectors * kLanes)" : "");
    w_.out.line(
        "const auto product = [&](auto pixels, std::int64_t i, int q) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kRows = pixels.value;");
    w_.out.line("const StrassenStep step = kStrassenSteps[q];");
    w_.out.line("Tile<kVectors, kRows> sum;");
    w_.out.line("strassen_start(sum, {}, {}, step);", kept, plane());
    w_.out.line("{}(sum, factors[q] + i * {}, {}, wp + q * ({} * kVectors * kLanes), {}{});",
                mac_word(w_.target), p_.k, p_.k, half, half, step > 0 ? ", RowOf<kVectors>(), ahead" : "");
    w_.out.line("strassen_keep(sum, {}, {}, step);", kept, plane());
    w_.out.line("if (step.result < 0) return;");
    quarter();
    w_.out.put("};");
    const std::string each = "for (int q = 0; q < 7; ++q)", call = "product(Int<{T}>(), {x}, q);";
    if (choice_.by_products) w_.out.line("{} {{", each);
    emit_tiles(w_, "0", std::to_string(choice_.height), Dim(choice_.height), rows, "i",
               choice_.by_products ? call : each + " " + call);
    if (choice_.by_products) w_.out.line("}}");
    w_.out.put("};");
  }

  // Floats of the sums that one product keeps.
  int64_t plane() const {
    const int64_t rows = choice_.by_products ? choice_.height : w_.target.tile(panels_.vectors);
    return rows * panels_.vectors * w_.target.lanes;
  }

  // Stores the sums of a tile of one quarter of the group's result.
  void quarter() {
    const StrassenChoice& c = choice_;
    const std::string row = "row + t", column = "column + o * kLanes";
    w_.out.line("const std::int64_t row = first + i + (step.result >= 2 ? rows - {} : 0);", c.height);
    w_.out.line("const std::int64_t column = c + (step.result % 2 == 1 ? {} : 0);", p_.n / 2);
    // Rows in the middle are in both halves; the upper one stores them.
    if (c.skips())
      w_.out.line("const std::int64_t known = step.result >= 2 ? {} - rows - i : 0;", 2 * c.height);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int t = 0; t < kRows; ++t) {{");
    if (c.skips()) w_.out.line("if (t < known) continue;");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o) {{");
    w_.out.line("const int lanes = o == kVectors - 1 ? last.value : kLanes;");
    std::vector<std::string> index(n_.outputs[0]->type.shape.size(), "0");
    index[index.size() - 2] = row;
    index[index.size() - 1] = column;
    const std::string sum =
        bias_.empty() ? "sum.a[t][o]" : fmt::format("add(sum.a[t][o], load({} + {}))", bias_, column);
    const std::string value = epilogue_.vector(sum, index, "lanes", w_.out);
    w_.out.line("store_lanes({} + ({}) * {} + {}, {}, lanes);", y_, row, w_.dim(output_pitch(n_)), column,
                value);
    w_.out.line("}}");
    w_.out.line("}}");
  }

  LayerWriter& w_;
  const Node& n_;
  RowProduct p_;
  StrassenChoice choice_;
  Epilogue epilogue_;
  Panels panels_;
  std::string x_, y_, weights_, bias_, kept_;
};

void emit(LayerWriter& w) { Writer(w, *choose_strassen(w.node, w.target)).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_gemm_strassen() {
  static const std::vector<Kernel> table = {
      {"gemm_strassen", "products with constant weights by Strassen's seven products of quarters", accepts,
       emit, true}};
  return table;
}

}  // namespace sinter
