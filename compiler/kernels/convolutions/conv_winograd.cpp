// Winograd convolution: kernels of 3x3 to 6x6 and lines of 2 to 7 taps, stride 1 or 2, on channels-last
// floats, F(MY x MX, RY x RX) with 4, 6 or 8 positions along each axis, 1 across a line, twice as many for a
// stride of 2 (the transforms are in runtime/sinter/winograd.h).
//
// The picture's tiles are cut into groups whose transformed inputs (V) and sums (S) stay in the second-level
// cache. For a group: all its inputs are transformed; then for each panel of output channels the sums at all
// positions are made with the register tiles of mac.h, transformed back and finished by the epilogue while
// they are near. Where there are few tiles and many channels, a panel's weights at all positions don't fit
// the cache beside V. Then all tiles are one group, and the positions are outermost: a position's inputs stay
// in the first-level cache while all its weights pass once; S holds all channels. Where there are so few
// tiles that weights come from memory more slowly than they are multiplied, they are transformed then: for a
// vector of channels a column of positions at a time, whose six sums of up to four tiles are in registers.
// Of several pictures each thread takes whole ones, as many as the others.
//
// Which tile, and whether Winograd at all, is decided a layer at a time
// (kernels/convolutions/winograd_choice.h). The pass allow_winograd marks the layers that may be rearranged
// so (not with --exact).
#include <algorithm>
#include <array>
#include <limits>

#include "emit/epilogue.h"
#include "kernels/convolutions/winograd_choice.h"
#include "kernels/products/panel_weights.h"
#include "ops/op.h"
#include "targets/target.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context& c) {
  return most_winograd(n, c.of(n)) >= 2 && may_use_winograd(n) && !c.of(n).reads_nchw &&
         (!n.epilogue || has_vector_text(*n.epilogue, element_type(n)));
}

class Writer {
 public:
  Writer(LayerWriter& w, const WinogradChoice& choice)
      : w_(w),
        n_(w.node),
        l_(winograd_layer(n_)),
        window_(winograd_plane(n_)),
        choice_(choice),
        epilogue_(w, n_.outputs[0]->type.shape) {}

  void emit() {
    const int lanes = w_.target.lanes;
    const WinogradTile& tile = choice_.tile;
    const Shape& out = n_.outputs[0]->type.shape;
    tiles_y_ = ceildiv(window_.out[0], Dim(tile.down.outputs));
    tiles_x_ = ceildiv(window_.out[1], Dim(tile.along.outputs));
    share_groups();
    panels_ = panels_of(w_.target, l_.out, choice_.group);
    pitch_ = winograd_pitch(l_, w_.target);
    // Planes are a line of the cache apart beyond their size, so that a tile's positions fall into different
    // sets.
    plane_ = choice_.group * pitch_ + 64 / w_.element.bytes;
    sum_pitch_ = choice_.by_positions ? std::to_string(round_up(l_.out, lanes)) : "(kVectors * kLanes)";
    sum_plane_ = choice_.group * (choice_.by_positions ? round_up(l_.out, lanes) : panels_.vectors * lanes) +
                 64 / w_.element.bytes;
    find_parts();
    w_.include("sinter/winograd.h");
    if (w_.element.is_half()) w_.include("sinter/mac.h");
    w_.include("sinter/dims.h");
    w_.flops(product(out) * Dim(2 * l_.taps() * l_.in));
    w_.summary(fmt::format(
        "Conv {0}x{1} by Winograd F({2}x{3}, {0}x{1}){11}, {4} -> {5} channels, {6} of {7} tiles{12}, "
        "error {8:.1g} of the largest{9}{10}",
        l_.down.taps, l_.along.taps, tile.down.outputs, tile.along.outputs, l_.in, l_.out,
        choice_.by_positions ? "positions" : "groups", choice_.group, choice_.error, picture_text(),
        epilogue_.summary(), stride_text(),
        choice_.when_used ? ", weights transformed when they are used" : ""));
    if (choice_.when_used)
      pack_square();
    else
      pack();
    bias_ = padded_bias(w_, l_.out);
    y_ = w_.output(0);
    body();
  }

 private:
  // What is read for the picture's channels, in their order.
  struct Part {
    std::string x;
    int64_t channels, times, pixel;  // pixel: channels from one to the next
  };
  std::string picture_text() const {
    if (parts_.size() == 1 && parts_[0].times == 1) return "";
    std::string text;
    for (const Part& p : parts_)
      text += fmt::format("{} {} channels{}", text.empty() ? ", reads" : " and", p.channels,
                          p.times > 1 ? fmt::format(" at {} times their size", p.times) : "");
    return text;
  }
  std::string stride_text() const {
    return l_.down.stride * l_.along.stride > 1
               ? fmt::format(" of stride {}x{}", l_.down.stride, l_.along.stride)
               : "";
  }
  void find_parts() {
    for (const PicturePiece& p : picture_pieces(w_.context.decisions, n_))
      parts_.push_back({w_.read(p.value), p.channels, p.times, w_.pixel_stride(*p.value).value()});
    if (parts_.empty()) parts_.push_back({w_.input(0), l_.in, 1, w_.pixel_stride(*n_.inputs[0]).value()});
  }

  // Parts of the work are groups, at least one for each thread. Where panels are shared more evenly, a
  // group's inputs are transformed in parts, then its panels are computed in parts.
  void share_groups() {
    by_groups_ = !choice_.by_positions;
    const Dim& batch = n_.inputs[0]->type.shape[0];
    const bool whole_pictures = batch.is_static() && batch.value() % w_.threads == 0;
    if (w_.threads == 1 || choice_.by_positions || whole_pictures) return;
    const int64_t tiles = likely_extent(tiles_y_ * tiles_x_), share = (tiles + w_.threads - 1) / w_.threads;
    const Panels panels = panels_of(w_.target, l_.out, choice_.group);
    const int64_t count = panel_count(panels), most = (count + w_.threads - 1) / w_.threads;
    const double part = static_cast<double>(most) / static_cast<double>(count);
    by_groups_ = cost_of_thread(share, 1) <= 1.2 * cost_of_thread(tiles, part);
    if (!by_groups_) return;
    choice_.group = shared_group(tiles);
  }

  // Cycles of a thread's products with `part` of the weights, which it reads for each group of its tiles.
  double cost_of_thread(int64_t tiles, double part) const {
    const CoreSpeed& m = w_.target.speed;
    const WinogradTile& tile = choice_.tile;
    const double sums =
        part * panels_cost(w_.target, l_.out, tiles) * static_cast<double>(tile.positions() * l_.in) / m.fma;
    const double bytes =
        part * static_cast<double>(w_.target.element_bytes() * tile.matrices() * l_.in * l_.out);
    const int64_t groups = (tiles + choice_.group - 1) / choice_.group;
    const auto passes = static_cast<double>(groups);
    return beside_stream(sums, winograd_stream(w_.decision.weights, m, bytes, passes, w_.threads));
  }

  // Tiles of a group, at most as many as chosen: so that the thread which does most does little more than
  // its share.
  int64_t shared_group(int64_t tiles) const {
    int64_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    const int64_t fewest = round_up((tiles + choice_.group - 1) / choice_.group, w_.threads);
    for (int64_t turns = 0; turns < 4; ++turns) {
      const int64_t groups = fewest + turns * w_.threads, group = (tiles + groups - 1) / groups;
      // Each group reads the weights again.
      const double cost = busiest_thread(tiles, group) * (1 + 0.03 * static_cast<double>(turns));
      if (cost < least) least = cost, best = group;
    }
    return best;
  }
  // What the sums of the thread that has most of them cost.
  double busiest_thread(int64_t tiles, int64_t group) const {
    const int64_t count = (tiles + group - 1) / group;
    double most = 0;
    for (int64_t i = 0; i < w_.threads; ++i) {
      const int64_t first = count * i / w_.threads, end = count * (i + 1) / w_.threads;
      if (first == end) continue;
      const double whole = panels_cost(w_.target, l_.out, group),
                   last = panels_cost(w_.target, l_.out, std::min(end * group, tiles) - (end - 1) * group);
      most = std::max(most, whole * static_cast<double>(end - 1 - first) + last);
    }
    return most;
  }

  void pack() {
    const WinogradTile& tile = choice_.tile;
    const int64_t along = tile.along.matrices(), matrices = tile.matrices();
    std::vector<float> u(static_cast<size_t>(matrices * l_.in * l_.out));
    std::vector<double> one(static_cast<size_t>(tile.positions()));
    const WinogradWeights weights(tile);
    for (int64_t o = 0; o < l_.out; ++o)
      for (int64_t c = 0; c < l_.in; ++c) {
        weights.transform(l_.weight + (o * l_.in + c) * l_.taps(), one.data());
        for (int64_t m = 0; m < matrices; ++m)
          u[static_cast<size_t>((m * l_.in + c) * l_.out + o)] =
              static_cast<float>(one[static_cast<size_t>(m / along * tile.along.positions() + m % along)]);
      }
    const int64_t together = choice_.by_positions ? 1 : matrices;
    weights_.emplace(w_, panels_, together * l_.in);
    for (int64_t first = 0; first < matrices; first += together)
      weights_->add_group(l_.out, [&](int64_t k, int64_t o) {
        return u[static_cast<size_t>((first * l_.in + k) * l_.out + o)];
      });
    const std::string channels = fmt::format("[{} channels]", l_.out),
                      positions = fmt::format("[{} positions]", matrices);
    weights_->store("w", fmt::format("{}[{}], in panels of {}",
                                     choice_.by_positions ? positions + channels : channels + positions,
                                     l_.in, panels_.vectors * w_.target.lanes));
  }
  // Those that are transformed when they are used: a vector of output channels at a time.
  void pack_square() {
    const int64_t lanes = w_.target.lanes;
    std::vector<float> g(static_cast<size_t>(out_vectors() * l_.in * 9 * lanes));
    for (int64_t o = 0; o < l_.out; ++o)
      for (int64_t c = 0; c < l_.in; ++c) {
        const std::array<float, 9> one = winograd_square(l_.weight + (o * l_.in + c) * 9);
        for (int64_t tap = 0; tap < 9; ++tap)
          g[static_cast<size_t>(((o / lanes * l_.in + c) * 9 + tap) * lanes + o % lanes)] =
              one[static_cast<size_t>(tap)];
      }
    square_ =
        w_.weights("w", g, fmt::format("[{} channels][{}][3x3 taps], in panels of {}", l_.out, l_.in, lanes));
  }
  int64_t out_vectors() const { return (l_.out + w_.target.lanes - 1) / w_.target.lanes; }
  // The number of position k's matrix of weights, as text.
  std::string matrix() const {
    return choice_.tile.matrices() == choice_.tile.positions()
               ? "k"
               : fmt::format("winograd_matrix<{}>(k)", shape());
  }

  void body() {
    const Dim batch = n_.inputs[0]->type.shape[0];
    const std::string tiles = w_.dim(tiles_y_ * tiles_x_), columns = w_.dim(tiles_x_);
    open_groups(batch, tiles);
    w_.out.line("const std::int64_t count = sinter::min_of(std::int64_t{{{}}}, {} - first);", choice_.group,
                tiles);
    w_.out.line("// the group's inputs, a run of tiles in a row at a time");
    const LayerWriter::Turns inputs = by_groups_ ? LayerWriter::Turns{"0", "count"} : w_.open_parts("count");
    w_.out.line("for (std::int64_t t = {}; t < {};) {{", inputs.first, inputs.end);
    w_.out.line("const std::int64_t ty = (first + t) / {0}, tx = (first + t) % {0};", columns);
    w_.out.line("const std::int64_t run = sinter::min_of({} - t, {} - tx);", inputs.end, columns);
    int64_t channel = 0;
    for (const Part& p : parts_) {
      input_of(p, channel);
      channel += p.channels;
    }
    w_.out.line("t += run;");
    w_.out.line("}}");
    if (!by_groups_) w_.close_parts();
    const auto make_sums = [&] {
      sums_ = w_.scratch_of_part("s", "float", choice_.tile.positions() * sum_plane_);
    };
    if (choice_.by_positions) {
      make_sums();  // of all channels: parts share them
      choice_.when_used ? sums_of_squares() : sums_of_positions();
      outputs_of_tiles(columns);
    } else {
      LayerWriter::Turns panels{"0", ""};
      if (!by_groups_) panels = w_.open_parts(std::to_string(panel_count(panels_)));
      make_sums();
      panels_outermost(columns, panels);
      if (!by_groups_) w_.close_parts();
    }
    close_groups(batch);
  }

  // A loop over the groups of every picture: of picture n, the tiles from `first` on. Parts are groups, of
  // one picture or of all.
  void open_groups(const Dim& batch, const std::string& tiles) {
    const Dim groups = ceildiv(tiles_y_ * tiles_x_, Dim(choice_.group));
    const bool parted = by_groups_ && w_.threads > 1;
    if (parted && !batch.is(1)) {
      const LayerWriter::Turns turns = w_.open_parts(w_.dim(batch * groups));
      w_.out.line("for (std::int64_t turn = {}; turn < {}; ++turn) {{", turns.first, turns.end);
      w_.out.line("const std::int64_t n = turn / {0}, first = turn % {0} * {1};", w_.dim(groups),
                  choice_.group);
    } else {
      w_.open_pictures(batch);
      LayerWriter::Turns turns{"0", ""};
      if (parted) turns = w_.open_parts(w_.dim(groups));
      if (turns.first == "0")
        w_.out.line("for (std::int64_t first = 0; first < {}; first += {}) {{", tiles, choice_.group);
      else
        w_.out.line("for (std::int64_t first = {0} * {2}; first < {1} * {2}; first += {2}) {{", turns.first,
                    turns.end, choice_.group);
    }
    v_ = w_.scratch_of_part("v", "float", choice_.tile.positions() * plane_);
  }
  void close_groups(const Dim& batch) {
    const bool parted = by_groups_ && w_.threads > 1;
    w_.out.line("}}");
    if (parted) w_.close_parts();
    if (!parted || batch.is(1)) w_.close_pictures();
  }

  // Transforms the part's channels of `run` tiles from t; they are the picture's from `channel` on.
  void input_of(const Part& p, int64_t channel) {
    const WinogradTile& tile = choice_.tile;
    const std::string height = w_.dim(window_.in[0]), width = w_.dim(window_.in[1]);
    const std::string picture = n_.inputs[0]->type.shape[0].is(1) ? p.x
                                : p.times == 1
                                    ? fmt::format("{} + n * {} * {} * {}", p.x, height, width, p.pixel)
                                    : fmt::format("{} + n * ({} / {}) * ({} / {}) * {}", p.x, height, p.times,
                                                  width, p.times, p.pixel);
    w_.out.line(
        "winograd_input<{}{}>({}, {}, {}, {}, ty * {} - {}, tx * {} - {}, run, {} + t * {}{}, {}, {}{});",
        shape(), p.times == 1 ? "" : fmt::format(", {}", p.times), picture, height, width, p.channels,
        tile.down.outputs * l_.down.stride, w_.dim(window_.pads_begin[0]),
        tile.along.outputs * l_.along.stride, w_.dim(window_.pads_begin[1]), v_, pitch_,
        channel == 0 ? "" : fmt::format(" + {}", channel), plane_, pitch_,
        p.pixel == p.channels ? "" : fmt::format(", {}", p.pixel - p.channels));
  }

  void panels_outermost(const std::string& columns, const LayerWriter::Turns& panels) {
    open_panel(w_);
    // A function of its own: beside the transforms g++ 12 leaves sums of some tiles in memory.
    w_.out.line("const auto products = [&]() __attribute__((noinline)) {{");
    const int64_t size = w_.target.tile(panels_.vectors);
    // Where positions share their weights, those of the next panel are fewer reads.
    weights_->declare_row(
        (choice_.group + size - 1) / size * choice_.tile.positions() / choice_.tile.matrices(), l_.in);
    w_.out.line("for (std::int64_t k = 0; k < {}; ++k) {{", choice_.tile.positions());
    products();
    w_.out.line("}}");
    w_.out.put("};");
    w_.out.line("products();");
    outputs(columns, {"0", "count"});
    w_.out.put("};");
    weights_->emit("", panels);
  }

  // Parts are vectors of channels, whose weights lie in this order.
  void sums_of_squares() {
    constexpr int64_t kAhead = 64 << 10;  // bytes that are on their way from memory
    const LayerWriter::Turns vectors = w_.open_parts(std::to_string(out_vectors()));
    w_.out.line("for (std::int64_t o = {}; o < {}; ++o) {{", vectors.first, vectors.end);
    w_.out.line("const float* const wp = {} + o * {};", square_, 9 * l_.in * w_.target.lanes);
    w_.out.line("winograd_square_sums<{}, {}, {}, {}, {}>({}, wp, {}, {} + o * kLanes, wp + {});",
                choice_.group, plane_, pitch_, sum_plane_, sum_pitch_, v_, l_.in, sums_, kAhead / 4);
    w_.out.line("}}");
    w_.close_parts();
  }

  // Parts are positions: a part's weights lie one behind the other, so that those which are asked for ahead
  // are its own.
  void sums_of_positions() {
    const LayerWriter::Turns all{"0", ""},
        positions = w_.open_parts(std::to_string(choice_.tile.positions()));
    w_.out.line("for (std::int64_t k = {}; k < {}; ++k) {{", positions.first, positions.end);
    open_panel(w_, "const float* wp", "[[maybe_unused]] auto");
    const int64_t tile = w_.target.tile(panels_.vectors);
    weights_->declare_row((choice_.group + tile - 1) / tile, l_.in);
    products();
    w_.out.put("};");
    weights_->emit(matrix(), all);
    w_.out.line("}}");
    w_.close_parts();
  }

  // Parts are tiles.
  void outputs_of_tiles(const std::string& columns) {
    const LayerWriter::Turns all{"0", ""};
    const LayerWriter::Turns tiles = w_.open_parts("count");
    open_panel(w_, "const float*");
    outputs(columns, tiles);
    w_.out.put("};");
    emit_panels(w_, panels_, 0, "nullptr", "0", all, [](const std::string&, bool) { return "nullptr"; });
    w_.close_parts();
  }

  // The sums over input channels at position k.
  void products() {
    w_.out.line("const auto tile = [&](auto pixels, std::int64_t t) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int kPixels = pixels.value;");
    const TileSums sums(w_, l_.in, TileSums::Runs::kOne, choice_.block);
    sums.declare("kPixels", "");
    sums.add(
        fmt::format("{} + k * {} + t * {}", v_, plane_, pitch_), std::to_string(pitch_),
        choice_.by_positions ? "wp" : fmt::format("wp + {} * ({} * {})", matrix(), l_.in, weights_->row()),
        std::to_string(l_.in), weights_->mac_arguments());
    sums.end();
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int i = 0; i < kPixels; ++i) {{");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int o = 0; o < kVectors; ++o)");
    w_.out.line("  store({} + k * {} + (t + i) * {}{} + o * kLanes, sum.a[i][o]);", sums_, sum_plane_,
                sum_pitch_, choice_.by_positions ? " + c" : "");
    w_.out.line("}}");
    w_.out.put("};");
    register_tiles();
  }

  // Register tiles over the group's tiles, equal ones: one of a single pixel costs as much as three. The last
  // group may have less of them.
  void register_tiles() {
    const int size = static_cast<int>(std::min<int64_t>(w_.target.tile(panels_.vectors), choice_.group));
    const Dim tiles = tiles_y_ * tiles_x_;
    const std::string call = "tile(Int<{T}>(), {x});";
    if (!tiles.is_static()) return emit_tile_range(w_, "0", "count", size, "t", call);
    const int64_t last = tiles.value() % choice_.group;
    if (tiles.value() <= choice_.group) return emit_tiles(w_, "0", "count", tiles, size, "t", call);
    if (last == 0) return emit_tiles(w_, "0", "count", Dim(choice_.group), size, "t", call);
    if (choice_.group % size != 0) return unequal_groups(last, size, call);
    w_.out.line("std::int64_t t = 0;");
    const int64_t count = (last + size - 1) / size, base = last / count, larger = last % count;
    const int64_t first = base == size       ? count
                          : base + 1 == size ? larger
                                             : 0;  // of the last group's, whole ones
    w_.out.line("const std::int64_t whole = count == {0} ? {0} : {1};", choice_.group, first * size);
    w_.out.line("for (; t < whole; t += {0}) tile(Int<{0}>(), t);", size);
    if (larger > 0 && first == 0)
      w_.out.line("if (t < count) for (; t < {0}; t += {1}) tile(Int<{1}>(), t);", larger * (base + 1),
                  base + 1);
    if (base < size) w_.out.line("for (; t < count; t += {0}) tile(Int<{0}>(), t);", base);
  }
  void unequal_groups(int64_t last, int size, const std::string& call) {
    w_.out.line("if (count == {}) {{", choice_.group);
    emit_tiles(w_, "0", "count", Dim(choice_.group), size, "t", call);
    w_.out.line("}} else {{");
    // As many register tiles, which ask for all of the next panel's weights (declare_row).
    const int64_t count = (choice_.group + size - 1) / size;
    emit_tiles(w_, "0", "count", Dim(last), static_cast<int>((last + count - 1) / count), "t", call);
    w_.out.line("}}");
  }

  // The template arguments of the transforms.
  std::string shape() const {
    return fmt::format("{}, {}, {}, {}, {}, {}", choice_.tile.down.outputs, choice_.tile.along.outputs,
                       l_.down.taps, l_.along.taps, l_.down.stride, l_.along.stride);
  }

  // The index of a result of the tile at (oy, ox), channel `c`.
  std::vector<std::string> index(const std::string& c) const {
    std::vector<std::string> i{n_.inputs[0]->type.shape[0].is(1) ? "0" : "n", "oy + i", "ox + j", c};
    if (n_.outputs[0]->type.shape.size() == 3) i.erase(i.begin() + 1);
    return i;
  }

  void outputs(const std::string& columns, const LayerWriter::Turns& tiles) {
    const WinogradTile& tile = choice_.tile;
    const std::string height = w_.dim(window_.out[0]), width = w_.dim(window_.out[1]);
    const bool batched = !n_.inputs[0]->type.shape[0].is(1);
    w_.out.line("for (std::int64_t t = {}; t < {}; ++t) {{", tiles.first, tiles.end);
    w_.out.line("const std::int64_t oy = (first + t) / {0} * {1}, ox = (first + t) % {0} * {2};", columns,
                tile.down.outputs, tile.along.outputs);
    if (epilogue_.asks_ahead()) {
      w_.out.line("for (int i = 0; i < {}; ++i) {{", tile.down.outputs);
      w_.out.line("for (int j = 0; j < {}; ++j) {{", tile.along.outputs);
      epilogue_.ask_ahead(index("c"), w_.out);
      w_.out.line("}}");
      w_.out.line("}}");
    }
    w_.out.line("const auto finish = [&](std::int64_t o, auto valid) __attribute__((always_inline)) {{");
    w_.out.line("constexpr int lanes = valid.value;");
    w_.out.line("const std::int64_t oc = c + o * kLanes;");
    if (!bias_.empty()) w_.out.line("const f32v b = load({} + oc);", bias_);
    w_.out.line(
        "winograd_output<{}>({} + t * {} + {}, {}, {} - oy, "
        "sinter::min_of(std::int64_t{{{}}}, {} - ox), [&](int i, int j, f32v sum) "
        "__attribute__((always_inline)) {{",
        shape(), sums_, sum_pitch_, choice_.by_positions ? "oc" : "o * kLanes", sum_plane_, height,
        tile.along.outputs, width);
    const std::string value =
        epilogue_.vector(bias_.empty() ? "sum" : "add(sum, b)", index("oc"), "lanes", w_.out);
    w_.out.line("store_lanes({} + (({}oy + i) * {} + ox + j) * {} + oc, {}, lanes);", y_,
                batched ? fmt::format("n * {} + ", height) : "", width, w_.dim(w_.pixel_stride()), value);
    w_.out.line("}});");
    w_.out.put("};");
    finish_vectors(w_);
    w_.out.line("}}");
  }

  LayerWriter& w_;
  const Node& n_;
  WinogradLayer l_;
  Window window_;
  WinogradChoice choice_;
  Epilogue epilogue_;
  Panels panels_;
  Dim tiles_y_, tiles_x_;
  int64_t pitch_ = 0, plane_ = 0, sum_plane_ = 0;
  bool by_groups_ = true;
  std::optional<PanelWeights> weights_;
  std::vector<Part> parts_;
  std::string y_, v_, sums_, bias_;
  std::string square_;     // weights that are transformed when they are used
  std::string sum_pitch_;  // floats from one tile's sums to the next, as text
};

void emit(LayerWriter& w) {
  Writer(w, share_winograd(w.node, w.context, w.way<WinogradChoice>(), w.threads)).emit();
}

}  // namespace

const std::vector<Kernel>& kernels_conv_winograd() {
  static const std::vector<Kernel> table = {
      {"conv_winograd",
       "convolution of 3x3 to 6x6 taps, or 2 to 7 in a line, stride 1 or 2, "
       "channels-last, by Winograd's filtering",
       accepts,
       emit,
       {.writes_apart = true,
        .reads_parts = true,
        .reads_apart = true,
        .algorithm = Algorithm::kWinograd,
        .work = Work::kProducts},
       winograd_ways,
       measure_winograd}};
  return table;
}

}  // namespace sinter
