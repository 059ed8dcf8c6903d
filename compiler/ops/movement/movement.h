// Movement: what the operators that only move elements (Transpose, Slice, Expand, Gather, Pad …) share.
//
// For inference: operands that must be known, run-time inequalities as Checks, and data propagation by
// running the op's own eval on element numbers. For eval: strided and mapped copies that look at element size
// only. For the code generator: strided_read, the affine description of a movement.
#pragma once
#include <optional>
#include <vector>

#include "ops/op.h"

namespace sinter {

// out[i0, i1, …] = in[offset + sum of strides[d] * i_d], counted in elements of dense row-major tensors.
struct StridedRead {
  Dim offset;
  std::vector<Dim> strides;  // one an axis of the output; 0 where it repeats, negative where it reverses
};
// How output `output` of a movement node reads its data input, where that is affine: Transpose, Slice (any
// step), Expand, Split, Gather of one known scalar index, Identity-like views (Reshape, Flatten, Squeeze,
// Unsqueeze). nullopt: not affine, or it depends on operands whose contents are not known as Dims.
// Needs an inferred node. Where an extent may be 1 or equal (Expand), the stride contains min(1, extent - 1).
std::optional<StridedRead> strided_read(const Node& node, const Shape& in, const Shape& out,
                                        size_t output = 0);

// Contents of a value as Dims, from its constant data or by data propagation; nullopt where unknown.
std::optional<std::vector<Dim>> contents(const Value* value);

// An axis counted from the end, too, as one of [0, rank).
int64_t whole_axis(int64_t axis, size_t rank);
// One axis of a Slice, ONNX's clamping included. nullopt where the sign of a symbolic position is open.
std::optional<Dim> slice_start(const Dim& extent, const Dim& start, int64_t step);
std::optional<Dim> slice_extent(const Dim& extent, const Dim& start, const Dim& end, int64_t step);

// ---- for infer
// The inputs that are the op's own; with an epilogue, further ones are its operands.
size_t own_inputs(const Inference& x);
// Refuses: operand i, called `what` ("pads"), had to be known to compile.
[[noreturn]] void fail_unknown(const Inference& x, size_t i, const std::string& what);
std::vector<Dim> known_elements(const Inference& x, size_t i, const std::string& what);
std::vector<int64_t> known_integers(const Inference& x, size_t i, const std::string& what);
// Static length of the one-dimensional integer operand i, which has something to say of axes; refuses others,
// and such as are longer than any shape.
int64_t operand_length(const Inference& x, size_t i, const std::string& what);
void require_index_type(const Inference& x, size_t i, const std::string& what);  // int32 or int64
// a <= b must hold: proved, refused, or left as a Check.
// The extent of output 0 along `axis` that only the data decide: at most `most`, and at most what the user
// says (--dim VALUE@AXIS<=MAX, or by the symbol's name). A kernel whose symbol's bound is below `most` must
// return kCapacityError where there are more.
Dim data_count(Inference& x, size_t axis, const Dim& most);
void require_le(Inference& x, const Dim& a, const Dim& b, const std::string& what);
// Axes normalised into [0, rank), each once.
std::vector<int64_t> distinct_axes(const Inference& x, std::vector<int64_t> axes, int64_t rank);
// Contents of small integer outputs: the node's eval is run with the elements of the inputs `moved` replaced
// by their numbers; everywhere else it must read only what is known. Does nothing where that isn't so.
void propagate_moved(Inference& x, const std::vector<size_t>& moved);

// ---- for eval
// to[to_offset + i . to_strides] = from[from_offset + i . from_strides] for all i within extents. Both
// tensors have elements of the same size.
void copy_strided(const Tensor& from, int64_t from_offset, const std::vector<int64_t>& from_strides,
                  Tensor& to, int64_t to_offset, const std::vector<int64_t>& to_strides,
                  const std::vector<int64_t>& extents);
// The same into all of the dense `to`.
void copy_strided(const Tensor& from, int64_t offset, const std::vector<int64_t>& strides, Tensor& to);
// to[i0, i1, …] = from[sum of maps[d][i_d]], maps in elements.
void copy_mapped(const Tensor& from, const std::vector<std::vector<int64_t>>& maps, Tensor& to);
// Every element of `to` becomes element `index` of `from` (same dtype).
void fill_with(Tensor& to, const Tensor& from, int64_t index);

// Calls f(index, k) for every index of `shape` in row-major order, k counting from 0.
template <class F>
void for_each_index(const std::vector<int64_t>& shape, F f) {
  int64_t size = 1;
  for (int64_t d : shape) size *= d;
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t k = 0; k < size; ++k) {
    f(static_cast<const std::vector<int64_t>&>(index), k);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

// Calls f(T{}) with an unsigned type of an element's size, to move elements of any dtype.
struct Bytes16 {
  uint64_t a, b;
};
template <class F>
void with_size(size_t bytes, F f) {
  switch (bytes) {
    case 0: return;  // strings have no bytes here
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    case 16: return f(Bytes16{});
    default: bug(__FILE__, __LINE__, "with_size: no element has this size");
  }
}

}  // namespace sinter
