// Sum, Mean, Max and Min take any number of operands, thousands in a hostile file. As one expression they
// would be a tree as deep as that and a function of as many parameters. Beyond kMostOperands they become a
// chain of nodes that take the operands in the same order, so that every sum rounds as before.
#include "import/upgrade.h"

namespace sinter {
namespace {

constexpr size_t kMostOperands = 16;

}  // namespace

void shorten_operands(Rewrite& r) {
  Draft& d = r.node;
  const bool mean = d.op == "Mean";
  if (!d.domain.empty() || d.inputs.size() <= kMostOperands) return;
  if (!mean && d.op != "Sum" && d.op != "Max" && d.op != "Min") return;
  for (const Value* v : d.inputs)
    if (!v) return;  // an absent operand is refused as it stands
  const std::string op = mean ? "Sum" : d.op;
  const std::vector<Value*> all = d.inputs;
  std::vector<Value*> part{all[0]};
  for (size_t i = 1; i < all.size(); ++i) {
    if (part.size() == kMostOperands) part = {r.before(op, std::move(part))};
    part.push_back(all[i]);
  }
  if (mean) {
    Value* sum = r.before("Sum", std::move(part));
    d.op = "Div";
    d.inputs = {sum, r.constant_like(static_cast<float>(all.size()), all[0], "count")};
  } else {
    d.inputs = std::move(part);
  }
}

}  // namespace sinter
