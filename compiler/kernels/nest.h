// Nest: the loop texts that reductions, norms and softmax share.
//
// Axes are collapsed before anything is written: extents of 1 vanish, neighbours that are walked alike become
// one axis. Columns: the innermost loop of a layer that works on vectors along a contiguous axis of n floats;
// its body is a lambda that gets a number of vectors, the first column and how many lanes of a vector count.
#pragma once
#include <string>
#include <vector>

#include "emit/epilogue.h"
#include "emit/layer.h"

namespace sinter {

std::string loop_text(const std::string& variable, const std::string& end);  // "for (std::int64_t i0 = 0; …"
std::string loop_text(const std::string& variable, const LayerWriter::Turns& turns);
// "a * b + c" with the trivial cases left out.
std::string times(const std::string& a, const std::string& b);
std::string plus(const std::string& a, const std::string& b);
// The row-major offset of an index in `shape`.
std::string offset_text(LayerWriter& w, const Shape& shape, const std::vector<std::string>& index);

// Opens the lambda `name` with the parameters `vectors` (kVectors inside), `c` and `lanes`; close_columns
// ends it and writes the calls that cover n columns, `vectors` at a time.
void open_columns(LayerWriter& w, const std::string& name = "columns");
// Columns as turns of open_parts: column_turns() of them, a group of `vectors` each.
void close_columns(LayerWriter& w, const Dim& n, int vectors, const std::string& name = "columns",
                   const LayerWriter::Turns& turns = {"0", ""});
Dim column_turns(const LayerWriter& w, const Dim& n, int vectors);

// A group of neighbouring axes that is walked as one.
struct AxisGroup {
  Dim extent;
  bool marked;               // as in the mask that made it
  std::vector<size_t> axes;  // those of the tensor, without extents of 1
  Dim stride;                // elements of the tensor
};
// The axes of `shape` in order, neighbours with the same mark put together where `may_merge` lets them
// (asked with the first and last axis of what would become one group).
std::vector<AxisGroup> collapse(const Shape& shape, const std::vector<bool>& mask,
                                const std::function<bool(size_t, size_t)>& may_merge);

// Where an anchor's plain kernel stores its result, of any element type: the layer's output, or, where an
// epilogue follows, scratch that finish() sends through the epilogue.
class PlainOutput {
 public:
  PlainOutput(LayerWriter& w, DType anchor_type);
  const std::string& pointer() const { return pointer_; }
  DType dtype() const { return dtype_; }
  void finish();

 private:
  LayerWriter& w_;
  DType dtype_;
  std::string pointer_;
};
// Whether the node's epilogue, if any, runs in float vectors on a float32 anchor.
bool vector_epilogue(const Node& n);

}  // namespace sinter
