#include "ir/budget.h"

namespace sinter {
namespace {

thread_local Budget* current = nullptr;

}  // namespace

void Budget::add_tensor(double bytes) {
  tensor_bytes_ += bytes;
  folding_ += bytes * kFoldingStepsPerByte;
  folded_bytes_ += bytes * kFoldedBytesPerByte;
}
void Budget::add_nodes(double count) {
  inference_ += count * kInferenceStepsPerNode;
  folding_ += count * kStepsOfEvaluation;
}

void Budget::fold(double steps) {
  if (!(steps <= folding_ - folding_spent_))
    throw OverBudget(fmt::format("it takes {:.3g} steps to compute, and {:.3g} are left for constants", steps,
                                 folding_ - folding_spent_));
  folding_spent_ += steps;
}

void Budget::infer(double steps) {
  if (!(steps <= inference_ - inference_spent_))
    throw OverBudget(fmt::format(
        "the model's types and extents take more than {:.3g} steps to find: it nests too many Loops "
        "or computes too long extents",
        inference_));
  inference_spent_ += steps;
}

Budget::Use::Use(Budget& budget) : before_(current) { current = &budget; }
Budget::Use::~Use() { current = before_; }
Budget* Budget::in_use() { return current; }

void spend_folding(double steps) {
  if (current) current->fold(steps);
}
void spend_inference(double steps) {
  if (current) current->infer(steps);
}

}  // namespace sinter
