// Products of rows with constant weights for the tests of the kernels that run them: MatMul, Gemm, pointwise
// Conv.
#pragma once
#include <string_view>

#include "emit/sheet.h"

namespace sinter {

struct RowProductCase {
  const char* op;
  Shape x;  // as the node has it
  int64_t n;
  bool transposed, bias;
  int64_t bytes;  // of scratch that the kernel may take; 0: as many as the target likes
};

// The case as a node with weights that are all of `type`; `limit` is the part of its Decision that limits the
// scratch.
inline Node* add_row_product(Sheet& s, const RowProductCase& c, unsigned seed, Limit& (*limit)(Decision&),
                             DType type = DType::kF32) {
  const int64_t k = c.x.back().value();
  const bool conv = std::string_view(c.op) == "Conv";
  const Ints shape = conv ? Ints{c.n, k, 1, 1} : c.transposed ? Ints{c.n, k} : Ints{k, c.n};
  const Tensor weights = random_constant(DType::kF32, shape, seed);
  std::vector<Arg> args{floats(c.x), constant(weights.converted(type).converted(DType::kF32))};
  if (c.bias) args.push_back(constant(random_constant(DType::kF32, {c.n}, seed + 1)));
  AttributeList a;
  if (conv) a.push_back({"channels_last", int64_t{1}});
  if (std::string_view(c.op) == "Gemm")
    a = {{"transB", int64_t{c.transposed}}, {"alpha", 0.5f}, {"beta", -1.5f}};
  Node* n = s.add(c.op, args, a);
  if (c.bytes > 0) limit(s.decide(n)).bytes = c.bytes;
  return n;
}

// acc with an operand of the result's shape and one of a row, as fuse_epilogue makes it, behind the last
// node.
inline void add_row_epilogue(Sheet& s) {
  using E = Expr;
  const Shape y = s.graph().nodes.back()->outputs[0]->type.shape;
  const ExprPtr sum = E::call("add", {E::accumulator(DType::kF32), E::input(0, DType::kF32)});
  s.epilogue(E::call("relu", {E::call("mul", {sum, E::input(1, DType::kF32)})}),
             {floats(y), floats({y.back()})});
}

}  // namespace sinter
