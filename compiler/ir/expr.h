// Expr: a scalar expression tree, the only loop-level form in the compiler.
//
// It says what happens to one element: of an elementwise layer, or in the epilogue of an anchor (Conv,
// MatMul, Pool …) after the sums are done. Leaves are the anchor's result (kAccumulator), an element of a
// Node's input (kOperand: broadcast against the output as ONNX broadcasts) and constants; inner nodes are
// calls of ScalarFns and casts. Trees are immutable and shared.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace sinter {

// A function of scalars: one row of the table in scalar_fn.cpp. Its name is the word that generated code
// calls: for every element type in runtime/sinter/scalar.h, and for whole vectors of floats in math.h where
// `vector`.
struct ScalarFn {
  const char* name;                      // "add"
  int arity;                             // 1 to 3
  bool to_bool;                          // the result is bool whatever the arguments are
  bool vector;                           // f32 lanes have it too
  double (*real)(const double*);         // on float types; null: not defined there
  int64_t (*integer)(const int64_t*);    // on signed integers and bool, result wraps; null: not defined there
  uint64_t (*natural)(const uint64_t*);  // on unsigned integers; null: `integer` serves
};
const ScalarFn* scalar_fn(std::string_view name);  // a bug where there is none
const std::vector<ScalarFn>& scalar_fns();         // the whole table

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  enum class Kind : uint8_t { kAccumulator, kOperand, kConstant, kCall, kCast };
  Kind kind;
  DType dtype;          // of the result
  int operand = 0;      // kOperand: index into Node::inputs
  double real = 0;      // kConstant of a float type
  int64_t integer = 0;  // kConstant of an integer type or bool
  const ScalarFn* fn = nullptr;
  std::vector<ExprPtr> args;

  static ExprPtr accumulator(DType);
  static ExprPtr input(int operand, DType);
  static ExprPtr constant(double, DType);
  static ExprPtr constant_integer(int64_t, DType);
  static ExprPtr call(std::string_view fn, std::vector<ExprPtr> args);  // dtype: the last argument's, or bool
  static ExprPtr cast(ExprPtr, DType);
};

std::string text(const Expr&);  // "relu(add(acc, in1))"
int node_count(const Expr&);
// The tree with each leaf replaced by f(leaf) (null: left as it is).
ExprPtr rewrite_leaves(const ExprPtr&, const std::function<ExprPtr(const Expr&)>& f);

// The value for whole tensors: `inputs[k]` for operands, `accumulator` where the tree has one. Broadcasts as
// ONNX does. Every call rounds to its dtype, as a chain of single ONNX nodes would.
Tensor evaluate(const Expr&, const std::vector<Tensor>& inputs, const Tensor* accumulator);

// The shape two or more broadcast to; refuses where they don't.
std::vector<int64_t> broadcast_shape(const std::vector<std::vector<int64_t>>& shapes);

}  // namespace sinter
