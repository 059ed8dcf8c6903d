// The epilogue of an anchor's kernel: the text of Node::epilogue for one element or one vector of the result.
//
// A kernel walks its output with one index variable an axis and asks for the finished text where the sums are
// ready. Operands are broadcast against the output; along the last axis an operand is contiguous or repeated.
#pragma once
#include <string>
#include <vector>

#include "emit/byte_steps.h"
#include "emit/expr_text.h"
#include "emit/loops.h"

namespace sinter {

class Epilogue {
 public:
  // Declares the operands as parameters of the layer. `out_shape`: the anchor's result, row-major.
  Epilogue(LayerWriter& w, const Shape& out_shape);

  bool empty() const { return !expr_; }
  DType dtype() const;  // of the stored result
  // Whether vector() may be used: f32 all through (also with no epilogue).
  bool has_vector() const;
  // Whether vector() may be used for a result of any type: floats, or small integers in lanes of floats.
  bool has_lanes() const;
  // Whether integers are added to the sums before they become floats.
  bool adds_to_sums() const { return expr_ && sinter::adds_to_sums(*expr_); }
  // Whether every operand is walked by one stride when the axes [first, last] of the output count as one.
  bool can_merge(size_t first, size_t last) const;

  // The finished vector for the sums `acc` (an f32v) at `index` (C++ text for each axis, the last one the
  // first of the lanes). `lanes`: C++ text of how many lanes count, empty for all. Shared parts go to `out`
  // as lines first.
  std::string vector(const std::string& acc, const std::vector<std::string>& index, const std::string& lanes,
                     Printer& out) const;
  // Lines that ask for what vector() will read of tensors that other layers made, of a panel's channels from
  // `index` on: for the beginning of a tile, where its products take long enough. Nothing where nothing is
  // read, or the processor foresees it (CoreSpeed::asks_ahead).
  void ask_ahead(const std::vector<std::string>& index, Printer& out) const;
  // The same for each t of a tile of `rows` (C++ text).
  void ask_for_rows(const char* rows, const std::vector<std::string>& index, Printer& out) const;
  bool asks_ahead() const;
  // Where the result is bytes that store_rounded (runtime/sinter/dot.h) stores: its bounds, else null; and
  // the vector to hand to it, as vector().
  const ByteSteps* bytes() const { return bytes_ ? &*bytes_ : nullptr; }
  // A bound of |steps()| where the sums are at most `sums`.
  double most_steps(double sums) const;
  std::string steps(const std::string& acc, const std::vector<std::string>& index, const std::string& lanes,
                    Printer& out) const;
  // The same as vector() for one element of any type, by the words of simd_*.h (lane) or scalar.h.
  std::string scalar(const std::string& acc, const std::vector<std::string>& index, Printer& out,
                     TextMode mode = TextMode::kScalar) const;
  // For a summary: " + relu" or nothing.
  std::string summary() const;

 private:
  std::string lanes_of(const ExprPtr& e, const std::string& acc, const std::vector<std::string>& index,
                       const std::string& lanes, Printer& out) const;
  std::string address(size_t k, const std::vector<std::string>& index) const;
  bool is_asked_for(size_t k) const;
  LayerWriter& w_;
  double most(int operand) const;  // the greatest magnitude of a constant operand, infinity of others
  ExprPtr expr_;
  std::optional<ByteSteps> bytes_;
  DType plain_;
  std::vector<Strided> operands_;
  std::vector<const Value*> values_;  // of the operands
  Shape shape_;
};

}  // namespace sinter
