// Loop nests over strided tensors: what elementwise layers and strided copies are made of.
//
// All tensors of a nest are walked along one iteration space. Axes of extent 1 vanish, neighbouring axes
// along which every tensor is contiguous (or repeated) become one; what is left is the shortest nest that
// means the same. The innermost loop runs in vectors of floats where every tensor has stride 1 or 0 there,
// with a tail of single floats of the same text.
#pragma once
#include <string>
#include <vector>

#include "emit/expr_text.h"
#include "emit/layer.h"

namespace sinter {

struct Strided {
  std::string pointer;  // C++ name
  DType dtype = DType::kF32;
  Dim offset;                // in elements
  std::vector<Dim> strides;  // per axis of the iteration space, in elements; 0: repeated
  std::vector<Dim>
      one_or_full;  // axis extents that are 1 or the full extent, known at run time only; 0: none
};

// A Value read under the broadcast to `space`; row-major, perhaps with gaps between its pixels.
Strided broadcast(const LayerWriter&, const std::string& pointer, const Value& v, const Shape& space);
// Row-major strides of `shape`.
std::vector<Dim> dim_strides(const Shape& shape);

// Row-major strides of a Value whose pixels may have gaps between them (Decisions::pixel_stride).
std::vector<Dim> pitched_strides(const LayerWriter&, const Value&);

// The operands that `value` reads of w.node's inputs, as walked over `space`, numbered densely: the result
// refers to operands[k] as Expr::input(k). Constants of one element become literals.
struct Numbered {
  ExprPtr value;
  std::vector<Strided> operands;
  std::vector<size_t> inputs;  // which input each operand is
};
Numbered number_operands(LayerWriter& w, const ExprPtr& value, const Shape& space);

// for every index of `space`: out[..] = value(operands[..]); `value` refers to operand k as Expr::input(k).
void emit_loops(LayerWriter& w, const Shape& space, const ExprPtr& value, const Strided& out,
                const std::vector<Strided>& operands);

}  // namespace sinter
