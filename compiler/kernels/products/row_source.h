// RowSource: where the rows of a product come from, and the loops over them.
//
// A convolution on channels-last tensors and a product of matrices are the same nest whatever the type of
// their elements: for each row of the result and each tile of its pixels, sums of products of a few runs of
// the input. A RowSource owns what that nest is made of: the one long row where nothing distinguishes the
// pixels, the edges of a row, the ring of padded rows that does without them, row tiles (a strip's few rows),
// and the work items that threads share. The kernel writes a tile's sums.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "emit/epilogue.h"
#include "kernels/products/finish_tile.h"
#include "kernels/products/tiles.h"
#include "kernels/windows/rows.h"

namespace sinter {

// The rows of the node's first input, as a window over its axes but the last. Pixels lie `x_pixel` and
// `y_pixel` elements apart.
struct RowShape {
  Window window;
  Dim batch, x_pixel, y_pixel;
  bool batch_axis = true;  // the result's first axis is the batch, not one of the window's
};
RowShape picture_rows(const LayerWriter&);  // of a convolution on channels-last tensors
RowShape matrix_rows(const LayerWriter&);   // of a product by one matrix: a pointwise convolution

class PaddedRows;

class RowSource {
 public:
  RowSource(LayerWriter&, const Epilogue&, RowShape);
  ~RowSource();

  const Rows& rows() const { return rows_; }
  const Window& window() const { return window_; }  // the flattened one where flat()
  // Whether all pixels are one long row.
  bool flat() const { return flat_; }
  // Pixels of a row that no edge interrupts.
  const Dim& interior() const { return interior_; }
  // The index variables of the result's axes for an Epilogue.
  std::vector<std::string> index(const std::string& ox, const std::string& channel) const;
  // By which the tile of pixels from ox is finished: `channel` is the number of the panel's first one in `y`.
  TileTexts texts(const std::string& y, const std::string& channel) const;
  // Whether some pixels of a row are edges: they are written one by one.
  bool has_edges() const;

  // Copies the rows under a kernel, with padding at both ends, to a ring, where rows of at most `longest`
  // pixels of so many channels have edges and the ring stays near. None of their pixels are edges then.
  // `copy`: the word of the runtime that does it; `fill`: a text of type `type`, which the ring has.
  void pad(DType type, int64_t channels, int64_t longest, const std::string& fill,
           const std::string& copy = "sinter::copy");
  bool is_padded() const { return padded_ != nullptr; }

  // Opens the layer's work items: rows; where all pixels are one row, some of its tiles; where these are few,
  // or a thread would have more than its share of rows, panels (not where there are groups).
  void open(const Panels&, int tile_pixels, bool grouped);
  void close() { w_.close_parts(); }
  // Register tiles that an item has; no value: unknown, or those of a strip.
  std::optional<int64_t> tiles_of_item() const;
  // What emit_panels is to do of the panels.
  LayerWriter::Turns panel_turns() const;
  // Whether each tile's pixels are finished before the next ones': where all weights stay near beside a
  // tile's rows, `bytes` of both. Sums are so short then that the stores would take the time: a panel's are a
  // line of each pixel, which is not in the first-level cache; all panels' of a tile are one run.
  bool panels_within_tiles(int64_t bytes) const;

  // Writes the loops: over rows, in each of them `row`, and over the row's tiles, which are calls of lambdas
  // that `tile` writes the inside of: kPixels pixels from ox; of an edge, one, with the taps first to before
  // end. `within`: the panels are inside.
  void each_tile(const std::string& x, bool within, const std::function<void()>& row,
                 const std::function<void(bool edge)>& tile);
  // The address of a run that begins with input pixel `ix` of the row under the kernel, or in the ring with
  // the first tap of ox.
  std::string run_at(const std::string& x, const std::string& ix) const;

 private:
  bool in_parts() const { return turns_.first != "0"; }
  bool panels_share_better() const;
  std::string begin() const;
  std::string end() const;
  void tile_calls();

  LayerWriter& w_;
  const size_t axes_;  // of the window before it is flattened
  const bool batch_axis_;
  bool flat_ = false, flat_batch_ = false, by_tiles_ = false, by_panels_ = false, strip_ = false;
  Window window_;
  Rows rows_;
  std::unique_ptr<PaddedRows> padded_;
  Dim interior_;
  std::optional<Dim> columns_;  // of a row, where it is flattened
  Panels panels_;
  int tile_pixels_ = 0;
  LayerWriter::Turns turns_;
};

}  // namespace sinter
