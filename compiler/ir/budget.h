// Budget: what import and passes, each of them, may spend on their own account before the model ever runs.
//
// A few bytes of a model may name endless work: constants of gigabytes, sums over 10^20 products, Loops in
// Loops whose types are a fixpoint each. Two accounts put an end to it. Both grow with what the model itself
// brings, so that honest models never meet them.
//
// - Folding: steps of computing (one is a few nanoseconds) and bytes of what has been computed and is alive.
//   A node that would exceed it isn't folded and is left for the run.
// - Inference: steps of finding types and extents. Where it ends, the model is refused.
//
// The budget in use is the thread's: evaluation and the arithmetic of extents lie deep below whoever began
// them. Where none is in use (verify, tests of single operators) nothing is counted.
#pragma once
#include <cstdint>

#include "ir/error.h"

namespace sinter {

// More work than the budget in use allows.
struct OverBudget : Refusal {
  using Refusal::Refusal;
};

class Budget {
 public:
  static constexpr double kFoldingSteps = 1 << 28;  // and per byte of the model's tensors:
  static constexpr double kFoldingStepsPerByte = 256;
  static constexpr double kFoldedBytes = 96 << 20;
  static constexpr double kFoldedBytesPerByte = 16;
  static constexpr double kImportedBytes = 16
                                           << 20;  // of what import folds, and of sparse tensors made dense
  static constexpr double kInferenceSteps = 1 << 29;  // and per node of the model:
  static constexpr double kInferenceStepsPerNode = 1 << 14;
  static constexpr double kStepsOfNode = 2048;  // to infer a node, whatever it is
  static constexpr double kStepsOfEvaluation = 512;

  void add_tensor(double bytes);  // the model brings a tensor
  void add_nodes(double count);   // the model has nodes

  // Take what is wanted, or refuse and take nothing.
  void fold(double steps);
  void infer(double steps);
  // Whether so many bytes of folded constants may be alive at once.
  bool may_hold(double bytes) const { return bytes <= folded_bytes_; }

  double tensor_bytes() const { return tensor_bytes_; }
  double folding_spent() const { return folding_spent_; }
  double inference_spent() const { return inference_spent_; }

  // While it lives, the thread's work counts against `budget`.
  class Use {
   public:
    explicit Use(Budget& budget);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Budget* before_;
  };
  static Budget* in_use();

 private:
  double folding_ = kFoldingSteps, folded_bytes_ = kFoldedBytes, inference_ = kInferenceSteps;
  double tensor_bytes_ = 0, folding_spent_ = 0, inference_spent_ = 0;
};

// Of the budget in use, if any.
void spend_folding(double steps);
void spend_inference(double steps);

}  // namespace sinter
