// The first convolution of a net, of a picture that comes as planes of up to 4 channels (attribute `planar`,
// plan/in_place.cpp), by Winograd's filtering along its rows: F(M, R) at N = M + R - 1 positions, whose sums
// run over the kernel's rows and the channels. Along a stride of 2, pairs of pixels are one of twice the
// channels, so that a kernel of 7 taps has R = 4: of 147 products an output 67 are left with 8 positions.
//
// Rows of the result are cut into groups. The rows of the picture that a group reads are transformed,
// [position] [tile][row][channel, phase], so that what an output row sums at a position is one run; groups
// share rows, which are transformed again. Then, for each register tile, the sums at all positions are made
// with the words of mac.h, transformed back and finished by the epilogue while they are in the first-level
// cache.
//
// The model of cycles chooses the number of positions, or a direct convolution. The error is measured, as
// that of the filtering along both axes (kernels/convolutions/winograd.h). Where halves are computed the
// picture is transformed in floats, rounded once; of halves up to 6 positions are of use.
#include <algorithm>
#include <cmath>

#include "emit/epilogue.h"
#include "kernels/convolutions/winograd_choice.h"
#include "kernels/products/panel_weights.h"
#include "kernels/windows/rows.h"
#include "ops/op.h"
#include "targets/target.h"

namespace sinter {
namespace {

// A layer, and a tile of it along its rows.
struct Planes {
  explicit Planes(const Node& n) : window(window_of(n)), weight(*n.inputs[1]->data) {
    channels = weight.dim(1);
    step = window.strides[1];
    taps = (window.kernel[1] + step - 1) / step;
    run = channels * step;
  }
  // Products of a sum.
  int64_t depth() const { return window.kernel[0] * run; }
  // Of `rows` rows of the result: the rows of the picture that they read, and floats of a tile's at a
  // position, not a whole number of times the cache's sets.
  int64_t picture_rows(int64_t rows) const { return (rows - 1) * window.strides[0] + window.kernel[0]; }
  int64_t pitch(int64_t rows) const { return (picture_rows(rows) * run + 16) / 32 * 32 + 16; }
  int64_t tiles(int64_t outputs) const { return (window.out[1].value() + outputs - 1) / outputs; }
  // [out][depth][taps], the products of a sum in the order of the transformed inputs.
  std::vector<float> lines() const;

  Window window;
  const Tensor& weight;  // [out][channels][kernel]
  int64_t channels, step, taps;
  int64_t run;  // numbers of a row, or of two neighbouring ones where the stride is 2
};

std::vector<float> Planes::lines() const {
  const int64_t out = weight.dim(0), height = window.kernel[0], width = window.kernel[1];
  std::vector<float> lines(static_cast<size_t>(out * depth() * taps));
  const float* from = weight.as<float>();
  for (int64_t o = 0; o < out; ++o)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x, ++from)
          lines[static_cast<size_t>((o * depth() + y * run + c * step + x % step) * taps + x / step)] = *from;
  return lines;
}

struct RowTiles {
  WinogradTile tile;
  int64_t group = 0;  // rows
  double error = 0;
};

// Rows of the result whose transformed inputs take a part of the second-level cache; all that a strip asks
// for at once, where that is possible.
int64_t rows_of_group(const Decision& d, const Target& t, const Planes& p, const WinogradTile& tile) {
  const int64_t outputs = tile.along.outputs, tiles = p.tiles(outputs);
  int64_t rows = p.window.out[0].value();
  if (d.row_tile && d.row_tile->writes_rows)
    rows =
        std::min(rows, d.row_tile->bytes / (t.element_bytes() * p.window.out[1].value() * p.weight.dim(0)));
  const int64_t allowed = std::min(t.speed.l2 / 3, d.winograd.bytes / 3 * 2);
  const int64_t each = 4 * (tiles * tile.positions() + (tiles - 1) * outputs + tile.positions());
  int64_t most = 1;
  while (most < rows && each * p.pitch(most + 1) <= allowed) ++most;
  const int64_t groups = (rows + most - 1) / most;
  return (rows + groups - 1) / groups;
}

// Cycles of a row of the result. Loads, stores and arithmetic of the transforms are counted as for both axes
// (kernels/convolutions/winograd_choice.cpp); numbers that become columns go to lines far from each other.
double modelled(const Target& t, const Planes& p, const RowTiles& c) {
  const CoreSpeed& m = t.speed;
  const auto positions = static_cast<double>(c.tile.positions()), rows = static_cast<double>(c.group),
             tiles = static_cast<double>(p.tiles(c.tile.along.outputs));
  const double arithmetic = winograd_arithmetic(c.tile.along);
  const double vectors = std::ceil(static_cast<double>(p.weight.dim(0)) / t.lanes);
  const double inputs = static_cast<double>(p.picture_rows(c.group)) / rows;  // rows of the picture
  const double sums = positions * tiles * static_cast<double>(p.depth()) * vectors * 1.1 / m.fma;
  const double back = tiles * vectors * positions * (2 + arithmetic) / m.ops;
  const int float_lanes = t.lanes * t.element_bytes() / 4;
  const double forward =
      tiles * inputs * static_cast<double>(p.run) / float_lanes * positions * (2 + arithmetic) / m.ops;
  const double columns =
      inputs * static_cast<double>(p.channels * p.window.in[1].value()) * 4 / static_cast<double>(p.step);
  return sums + back + forward + columns;
}

// How many numbers of positions there are to choose from, each with its modelled cycles.
std::vector<Candidate> ways(const Node& n, const Context& context) {
  const Target& t = context.target;
  const Decision& d = context.of(n);
  const int64_t most = most_winograd(n, d), tuned = d.winograd.tile;
  const Planes p(n);
  std::vector<Candidate> all;
  for (const int positions : {8, 6, 4}) {
    const int64_t outputs = positions - p.taps + 1;
    if (outputs < 2 || outputs > most || (tuned != 0 && outputs != tuned)) continue;
    if (t.of_halves && (positions > 6 || p.depth() > TileSums::kOneBlock)) continue;
    RowTiles c{{{1, 1, 1}, {static_cast<int>(outputs), static_cast<int>(p.taps), 1}}};
    c.group = rows_of_group(d, t, p, c.tile);
    all.push_back(
        {.way = c,
         .text = fmt::format("{} outputs of a row, groups of {} rows", outputs, c.group),
         .cycles = modelled(t, p, c) * static_cast<double>(p.window.out[0].value()),
         .weight_bytes = positions * p.depth() * round_up(p.weight.dim(0), t.lanes) * t.element_bytes(),
         .tuned = tuned != 0,
         .measured = false});
  }
  return all;
}

void measure(const Node& n, const Context& context, Candidate& c) {
  auto choice = std::any_cast<RowTiles>(c.way);
  const Planes p(n);
  const bool halves = context.target.of_halves;
  const int block = halves ? static_cast<int>(p.depth()) : 0;
  const std::string key =
      fmt::format("rows {} {}{}", choice.tile.along.outputs, p.depth(), halves ? " halves" : "");
  c.error = context.decisions.error(p.weight.data(), key, [&] {
    return winograd_error(p.lines().data(), p.weight.dim(0), p.depth(), choice.tile, false, block);
  });
  choice.error = c.error;
  c.way = choice;
  if (!(c.error <= (halves ? kMaxWinogradErrorOfHalves : kMaxWinogradError))) c.forbid_error();
}

bool accepts(const Node& n, const Context& c) {
  return c.of(n).reads_nchw && most_winograd(n, c.of(n)) >= 2 && may_use_winograd_along_rows(n) &&
         (!n.epilogue || has_vector_text(*n.epilogue, element_type(n)));
}

class Writer {
 public:
  explicit Writer(LayerWriter& w)
      : w_(w),
        n_(w.node),
        p_(n_),
        choice_(w.way<RowTiles>()),
        epilogue_(w, n_.outputs[0]->type.shape),
        rows_{w, p_.window, n_.inputs[0]->type.shape[0], Dim(p_.channels), w.pixel_stride()} {}

  void emit() {
    w_.include("sinter/winograd_planes.h");
    if (w_.element.is_half()) w_.include("sinter/mac.h");
    w_.include("sinter/dims.h");
    w_.flops(product(n_.outputs[0]->type.shape) *
             Dim(2 * p_.window.kernel[0] * p_.window.kernel[1] * p_.channels));
    const int64_t outputs = choice_.tile.along.outputs;
    share_rows();
    tiles_ = p_.tiles(outputs);
    pitch_ = p_.pitch(choice_.group);
    // A line apart beyond their size, so that a tile's positions fall into different sets.
    plane_ = tiles_ * pitch_ + 16;
    panels_ = panels_of(w_.target, p_.weight.dim(0), tiles_);
    size_ = static_cast<int>(std::min<int64_t>(w_.target.tile(panels_.vectors), tiles_));
    sum_plane_ = size_ * panels_.vectors * w_.target.lanes + 16;
    w_.summary(summary());
    x_ = w_.input(0);
    pack();
    y_ = w_.output(0);
    open_groups();
    w_.out.line("const std::int64_t rows = sinter::min_of(std::int64_t{{{}}}, {} - first);", choice_.group,
                end_);
    v_ = w_.scratch_of_part("v", "float", choice_.tile.positions() * plane_);
    const std::string columns =
        w_.floats_of_part("columns", ((tiles_ - 1) * outputs + choice_.tile.positions()) * pitch_);
    sums_ = w_.scratch_of_part("s", "float", choice_.tile.positions() * sum_plane_);
    inputs(columns);
    products();
    close_groups();
  }

 private:
  std::string summary() const {
    const Window& w = p_.window;
    return fmt::format(
        "Conv {}x{}, stride {}x{}, {} -> {} channels, from planes, by Winograd F({}, {}) along {}, {} rows "
        "at a "
        "time, error {:.1g} of the largest{}",
        w.kernel[0], w.kernel[1], w.strides[0], w.strides[1], p_.channels, p_.weight.dim(0),
        choice_.tile.along.outputs, p_.taps, p_.step == 2 ? "pairs of pixels" : "the row", choice_.group,
        choice_.error, epilogue_.summary());
  }

  void pack() {
    const int64_t out = p_.weight.dim(0), positions = choice_.tile.positions(), depth = p_.depth();
    const std::vector<float> lines = p_.lines();
    std::vector<float> u(static_cast<size_t>(positions * depth * out));
    std::vector<double> one(static_cast<size_t>(positions));
    const WinogradWeights weights(choice_.tile);
    for (int64_t o = 0; o < out; ++o)
      for (int64_t k = 0; k < depth; ++k) {
        weights.transform(lines.data() + (o * depth + k) * p_.taps, one.data());
        for (int64_t i = 0; i < positions; ++i)
          u[static_cast<size_t>((i * depth + k) * out + o)] = static_cast<float>(one[static_cast<size_t>(i)]);
      }
    weights_.emplace(w_, panels_, positions * depth);
    weights_->add_group(out, [&](int64_t k, int64_t o) { return u[static_cast<size_t>(k * out + o)]; });
    weights_->store("w",
                    fmt::format("[{} channels][{} positions][{} rows of {}], in panels of {}", out, positions,
                                p_.window.kernel[0], p_.run, panels_.vectors * w_.target.lanes));
    bias_ = padded_bias(w_, out);
  }

  // Groups are what threads share, but for those of a strip: as many for each.
  void share_rows() {
    if (w_.threads == 1 || w_.decision.row_tile) return;
    const int64_t rows = p_.window.out[0].value(),
                  groups = round_up((rows + choice_.group - 1) / choice_.group, w_.threads);
    choice_.group = (rows + groups - 1) / groups;
  }

  // The loop over groups of rows from `first` on: those of a strip, or of all pictures.
  void open_groups() {
    const std::string height = w_.dim(p_.window.out[0]);
    if (const auto strip = w_.strip()) {
      end_ = strip->end;
      rows_.y_base = strip->y_base;
      w_.out.line("for (std::int64_t first = {}; first < {}; first += {}) {{", strip->first, end_,
                  choice_.group);
      return;
    }
    end_ = height;
    in_parts_ = true;
    const int64_t count = (p_.window.out[0].value() + choice_.group - 1) / choice_.group;
    const LayerWriter::Turns turns = w_.open_parts(w_.dim(rows_.batch * Dim(count)));
    w_.out.line("for (std::int64_t turn = {}; turn < {}; ++turn) {{", turns.first, turns.end);
    if (rows_.batch.is(1)) {
      w_.out.line("const std::int64_t first = turn * {};", choice_.group);
    } else {
      w_.out.line("const std::int64_t n = turn / {}, first = turn % {} * {};", count, count, choice_.group);
    }
  }
  void close_groups() {
    w_.out.line("}}");
    if (in_parts_) w_.close_parts();
  }

  void inputs(const std::string& columns) {
    const Window& w = p_.window;
    const std::string height = w_.dim(w.in[0]), width = w_.dim(w.in[1]);
    w_.out.line("// the rows of the picture that the group reads");
    w_.out.line(
        "winograd_planes<{}, {}, {}>({}{}, {}, {}, {}, first * {} - {}, -{}, (rows - 1) * {} + {}, {}, {}, "
        "{}, {}, "
        "{});",
        choice_.tile.positions(), choice_.tile.along.outputs, p_.step, x_,
        rows_.batch.is(1) ? "" : fmt::format(" + n * ({} * {} * {})", p_.channels, height, width), height,
        width, p_.channels, w.strides[0], w_.dim(w.pads_begin[0]), w_.dim(w.pads_begin[1]), w.strides[0],
        w.kernel[0], tiles_, columns, v_, plane_, pitch_);
  }

  void products() {
    open_panel(w_);
    weights_->declare_row();
    w_.out.line("for (std::int64_t o0 = first; o0 < first + rows; ++o0) {{");
    w_.out.line("const float* const run = {} + (o0 - first) * {};", v_, p_.window.strides[0] * p_.run);
    w_.out.line("const auto tile = [&](auto pixels, std::int64_t t) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kPixels = pixels.value;");
    // A function of its own: beside the transforms g++ 12 leaves sums of some tiles in memory.
    w_.out.line("const auto products = [&]() __attribute__((noinline)) {{");
    w_.out.line("for (std::int64_t k = 0; k < {}; ++k) {{", choice_.tile.positions());
    w_.out.line("Tile<kVectors, kPixels> sum;");
    w_.out.line("tile_bias(sum, static_cast<const float*>(nullptr));");
    w_.out.line("{}(sum, run + k * {} + t * {}, {}, wp + k * ({} * {}), {}{});", mac_word(w_.target), plane_,
                pitch_, pitch_, p_.depth(), weights_->row(), p_.depth(), weights_->row_argument());
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int i = 0; i < kPixels; ++i) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line(
        "for (int o = 0; o < kVectors; ++o) store({} + k * {} + (i * kVectors + o) * kLanes, sum.a[i][o]);",
        sums_, sum_plane_);
    w_.out.line("}}");
    w_.out.line("}}");
    w_.out.put("};");
    w_.out.line("products();");
    outputs();
    w_.out.put("};");
    emit_tiles(w_, "0", std::to_string(tiles_), Dim(tiles_), size_, "t", "tile(Int<{T}>(), {x});");
    w_.out.line("}}");
    w_.out.put("};");
    weights_->emit();
  }

  // Of the register tile from t on.
  void outputs() {
    const int64_t outputs = choice_.tile.along.outputs;
    w_.out.line("for (int i = 0; i < kPixels; ++i) {{");
    w_.out.line("const std::int64_t ox = (t + i) * {};", outputs);
    w_.out.line("const auto finish = [&](std::int64_t o, auto valid) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int lanes = valid.value;");
    w_.out.line("const std::int64_t oc = c + o * kLanes;");
    if (!bias_.empty()) w_.out.line("const f32v b = load({} + oc);", bias_);
    const std::string width = w_.dim(p_.window.out[1]);
    w_.out.line(
        "winograd_output<1, {}, 1, {}, 1, 1>({} + (i * kVectors + o) * kLanes, {}, 1, "
        "sinter::min_of(std::int64_t{{{}}}, {} - ox), [&](int, int j, f32v sum) "
        "__attribute__((always_inline)) {{",
        outputs, p_.taps, sums_, sum_plane_, outputs, width);
    const std::string value =
        epilogue_.vector(bias_.empty() ? "sum" : "add(sum, b)", rows_.index("ox + j", "oc"), "lanes", w_.out);
    w_.out.line("store_lanes({} + {} + oc, {}, lanes);", y_, rows_.output_offset("ox + j"), value);
    w_.out.line("}});");
    w_.out.put("};");
    finish_vectors(w_);
    w_.out.line("}}");
  }

  LayerWriter& w_;
  const Node& n_;
  const Planes p_;
  RowTiles choice_;
  Epilogue epilogue_;
  Rows rows_;
  Panels panels_;
  std::optional<PanelWeights> weights_;
  int64_t tiles_ = 0, pitch_ = 0, plane_ = 0, sum_plane_ = 0;
  int size_ = 0;  // tiles of a register tile
  bool in_parts_ = false;
  std::string x_, y_, v_, sums_, bias_, end_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_conv_planes_winograd() {
  static const std::vector<Kernel> table = {
      {"conv_planes_winograd",
       "convolution of a picture's planes, by Winograd's filtering along the rows",
       accepts,
       emit,
       {.writes_apart = true, .rows = true, .algorithm = Algorithm::kWinograd, .work = Work::kProducts},
       ways,
       measure}};
  return table;
}

}  // namespace sinter
