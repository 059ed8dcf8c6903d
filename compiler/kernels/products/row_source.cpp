#include "kernels/products/row_source.h"

#include <algorithm>

#include "targets/target.h"

namespace sinter {

RowShape picture_rows(const LayerWriter& w) {
  const Value& x = *w.node.inputs[0];
  return {window_of(w.node), x.type.shape[0], w.pixel_stride(x), w.pixel_stride()};
}

RowShape matrix_rows(const LayerWriter& w) {
  const Shape& out = w.node.outputs[0]->type.shape;
  RowShape r{{}, Dim(1), w.pixel_stride(*w.node.inputs[0]), w.pixel_stride(), out.size() > 2};
  if (r.batch_axis) r.batch = out[0];
  r.window.in = r.window.out = Shape(out.begin() + (r.batch_axis ? 1 : 0), out.end() - 1);
  const size_t axes = r.window.out.size();
  r.window.kernel = r.window.strides = r.window.dilations = std::vector<int64_t>(axes, 1);
  r.window.pads_begin = r.window.pads_end = Shape(axes, Dim(0));
  return r;
}

// The rows of the input that one row of the output needs, with padding at both ends, as a ring in scratch:
// row iy lies in slot iy % kernel.
class PaddedRows {
 public:
  PaddedRows(LayerWriter& w, const Rows& rows, DType type, int64_t channels, std::string fill,
             std::string copy)
      : w_(w),
        rows_(rows),
        type_(cpp_name(type)),
        fill_(std::move(fill)),
        copy_(std::move(copy)),
        pixel_(channels) {
    pitch_ = ((rows.out_width().value() - 1) * rows.stride() + rows.kernel()) * pixel_;
    slots_ = two() ? rows.window.kernel[0] : 1;
  }
  static bool is_possible(const Rows& rows, int64_t channels) {
    const Window& window = rows.window;
    return window.rank() <= 2 && rows.in_channels.is(channels) && rows.out_width().is_static() &&
           rows.width().is_static() && rows.pad().is_static() &&
           std::all_of(window.dilations.begin(), window.dilations.end(), [](int64_t d) { return d == 1; });
  }
  int64_t elements() const { return slots_ * pitch_; }

  // Outside of the loops over rows.
  void declare() {
    ring_ = w_.scratch_of_part("padded", type_, elements());
    w_.include("sinter/copy.h");
    if (two()) w_.out.line("std::int64_t copied = 0;  // the row behind those in the ring");
  }
  // In the loops over rows: what is missing of this row's input.
  void fill(const std::string& x) const {
    const int64_t before = rows_.pad().value() * pixel_,
                  run = std::min(rows_.width().value() * pixel_, pitch_ - before);
    std::string at = rows_.batch.is(1) ? "0" : "n", to = ring_;
    if (two()) {
      const std::string first = single() ? row() : "i0 + k0_first",
                        end = single() ? row() + " + 1" : "i0 + k0_last";
      w_.out.line("if (o0 == {} || copied < {}) copied = {};",
                  rows_.turns.end.empty() || !rows_.batch.is(1) ? "0" : rows_.turns.first, first, first);
      w_.out.line("for (; copied < {}; ++copied) {{", end);
      to = slot("copied");
      at = fmt::format("{} * {} + copied{}", at, w_.dim(rows_.window.in[0]),
                       rows_.x_base.empty() ? "" : " - " + rows_.x_base);
    } else {
      w_.out.line("{{");
    }
    w_.out.line("{}* const to = {};", type_, to);
    w_.out.line("sinter::fill(to, {}, {});", before, fill_);
    w_.out.line("{}(to + {}, {} + ({}) * {}, {});", copy_, before, x, at, rows_.width().value() * pixel_,
                run);
    w_.out.line("sinter::fill(to + {}, {}, {});", before + run, pitch_ - before - run, fill_);
    w_.out.line("}}");
  }
  // The address of the first tap of output pixel ox, in the loops over taps.
  std::string first_tap(const std::string& ox) const {
    const std::string from = !two() ? ring_ : slot(single() ? row() : "(i0 + k0)");
    return fmt::format("{} + {} * {}", from, ox, rows_.stride() * pixel_);
  }

 private:
  bool two() const { return rows_.window.rank() == 2; }
  bool single() const { return rows_.window.kernel[0] == 1 && rows_.window.pads_begin[0].is(0); }
  std::string row() const { return fmt::format("o0 * {}", rows_.window.strides[0]); }
  std::string slot(const std::string& iy) const {
    return slots_ == 1 ? ring_ : fmt::format("{} + {} % {} * {}", ring_, iy, slots_, pitch_);
  }

  LayerWriter& w_;
  const Rows& rows_;
  const std::string type_, fill_, copy_;
  int64_t pixel_ = 0, pitch_ = 0, slots_ = 0;
  std::string ring_;
};

RowSource::RowSource(LayerWriter& w, const Epilogue& epilogue, RowShape shape)
    : w_(w),
      axes_(shape.window.rank()),
      batch_axis_(shape.batch_axis),
      flat_(shape.window.is_pointwise() &&
            epilogue.can_merge(batch_axis_ ? 1 : 0, axes_ - (batch_axis_ ? 0 : 1))),
      flat_batch_(flat_ && batch_axis_ && epilogue.can_merge(0, axes_)),
      window_(flat_ ? flattened(shape.window, shape.batch, flat_batch_) : shape.window),
      rows_{w, window_, flat_batch_ ? Dim(1) : shape.batch, shape.x_pixel, shape.y_pixel},
      interior_(rows_.interior_end() - rows_.interior_begin()) {
  if (flat_) columns_ = shape.window.out.back();
}
RowSource::~RowSource() = default;

// In the flattened case the pixel number takes the place of the last spatial axis; the others are 0.
std::vector<std::string> RowSource::index(const std::string& ox, const std::string& channel) const {
  std::vector<std::string> i(axes_ + 2, "0");
  if (!flat_) {
    i = rows_.index(ox, channel);
  } else {
    if (!rows_.batch.is(1)) i[0] = "n";
    i[axes_] = ox;
    i[axes_ + 1] = channel;
  }
  if (!batch_axis_) i.erase(i.begin());
  return i;
}

TileTexts RowSource::texts(const std::string& y, const std::string& channel) const {
  return {.channel = channel,
          .index = [this](const std::string& t, const std::string& c) { return index("ox + " + t, c); },
          .to =
              [this, y, channel](const std::string& t) {
                return fmt::format("{} + {} + {}", y, rows_.output_offset("ox + " + t), channel);
              }};
}

void RowSource::pad(DType type, int64_t channels, int64_t longest, const std::string& fill,
                    const std::string& copy) {
  if (flat_ || !PaddedRows::is_possible(rows_, channels)) return;
  const int64_t width = rows_.out_width().value();
  auto padded = std::make_unique<PaddedRows>(w_, rows_, type, channels, fill, copy);
  const int64_t bytes = padded->elements() * static_cast<int64_t>(size_of(type));
  if (interior_.value() >= width || width > longest || bytes > w_.target.speed.l1) return;
  padded_ = std::move(padded);
  interior_ = rows_.out_width();
}

bool RowSource::panels_share_better() const {
  const auto most = [&](int64_t turns) {
    const int64_t own = (turns + w_.threads - 1) / w_.threads;
    return static_cast<double>(own) / static_cast<double>(turns);
  };
  const Dim rows = rows_.outermost();
  return !strip_ && rows.is_static() && 1.05 * most(panel_count(panels_)) < most(rows.value());
}

void RowSource::open(const Panels& panels, int tile_pixels, bool grouped) {
  panels_ = panels;
  tile_pixels_ = tile_pixels;
  strip_ = rows_.take_strip(columns_);
  const bool one_row = rows_.outermost().is(1);
  by_tiles_ = one_row && flat_ && interior_.hi() >= 2 * w_.threads * tile_pixels_;
  by_panels_ = !by_tiles_ && !grouped && panels_.full > 0 && (one_row || panels_share_better());
  turns_ = w_.open_parts(w_.threads == 1 ? "1"
                         : by_tiles_     ? w_.dim(tile_count(interior_, tile_pixels_))
                         : by_panels_    ? std::to_string(panel_count(panels_))
                                         : w_.dim(rows_.outermost()));
  if (in_parts() && !one_row && !by_panels_) rows_.turns = turns_;
  if (padded_) padded_->declare();
}

std::optional<int64_t> RowSource::tiles_of_item() const {
  if (strip_) return std::nullopt;
  Dim tiles = tile_count(interior_, tile_pixels_);
  for (size_t a = 0; !flat_ && a < rows_.last(); ++a) tiles = tiles * window_.out[a];
  if (in_parts() && !by_panels_) tiles = ceildiv(tiles, Dim(w_.threads));
  if (tiles.hi() == Interval::kUnbounded) return std::nullopt;
  return tiles.hi();
}

LayerWriter::Turns RowSource::panel_turns() const {
  return in_parts() && by_panels_ ? turns_ : LayerWriter::Turns{"0", ""};
}

bool RowSource::panels_within_tiles(int64_t bytes) const {
  if (!flat_ || panel_count(panels_) < 2 || (in_parts() && !by_tiles_)) return false;
  return bytes <= w_.target.speed.reread_bytes();
}

void RowSource::each_tile(const std::string& x, bool within, const std::function<void()>& row,
                          const std::function<void(bool edge)>& tile) {
  const auto lambda = [&](bool edge) {
    w_.out.line("{}const auto {} = [&](auto pixels, std::int64_t ox{}) __attribute__((always_inline)) {{",
                within ? "" : "[[maybe_unused]] ", edge ? "edge" : "tile",
                edge ? ", std::int64_t first, std::int64_t end" : "");
    w_.out.line("constexpr int kPixels = pixels.value;");
    tile(edge);
    w_.out.put("};");
  };
  Rows(rows_).open();
  if (padded_) padded_->fill(x);
  row();
  lambda(false);
  if (has_edges()) lambda(true);
  tile_calls();
  Rows(rows_).close();
}

std::string RowSource::run_at(const std::string& x, const std::string& ix) const {
  return padded_ ? padded_->first_tap("ox") : fmt::format("{} + {}", x, rows_.input_offset(ix));
}

std::string RowSource::begin() const { return padded_ ? "0" : w_.dim(rows_.interior_begin()); }
std::string RowSource::end() const { return w_.dim(padded_ ? rows_.out_width() : rows_.interior_end()); }
bool RowSource::has_edges() const { return !(begin() == "0" && end() == w_.dim(rows_.out_width())); }

// The loops along the row.
void RowSource::tile_calls() {
  const std::string call = "tile(Int<{T}>(), {x});", width = w_.dim(rows_.out_width());
  if (has_edges()) {
    w_.out.line("std::int64_t ox = 0;");
    const std::string edge =
        fmt::format("edge(Int<1>(), ox, {}, {});", rows_.first_tap("ox"), rows_.last_tap("ox"));
    if (begin() != "0") w_.out.line("for (; ox < {}; ++ox) {}", begin(), edge);
    emit_tiles(w_, "ox", end(), interior_, tile_pixels_, "ox", call);
    if (end() != width) w_.out.line("for (; ox < {}; ++ox) {}", width, edge);
  } else if (strip_ && flat_) {
    emit_tile_range(w_, rows_.turns.first, rows_.turns.end, tile_pixels_, "ox", call);
  } else if (in_parts() && by_tiles_) {
    emit_tile_parts(w_, turns_, interior_, tile_pixels_, "ox", call);
  } else {
    emit_tiles(w_, "0", end(), interior_, tile_pixels_, "ox", call);
  }
}

}  // namespace sinter
