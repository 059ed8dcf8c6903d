// Transpose: axis d of the output is axis perm[d] of the input; without perm the axes are reversed.
#include "ops/movement/movement.h"

namespace sinter {
namespace {

std::vector<int64_t> permutation(const Attributes& attributes, int64_t rank) {
  if (attributes.has("perm")) return attributes.integers("perm");
  std::vector<int64_t> reversed;
  for (int64_t d = rank; d-- > 0;) reversed.push_back(d);
  return reversed;
}

void infer(Inference& x) {
  const std::vector<int64_t> perm = permutation(x.attributes(), x.rank(0));
  std::vector<bool> seen(x.shape(0).size(), false);
  bool valid = perm.size() == seen.size();
  Shape out;
  for (size_t d = 0; valid && d < perm.size(); ++d) {
    valid = perm[d] >= 0 && perm[d] < x.rank(0) && !seen[static_cast<size_t>(perm[d])];
    if (!valid) break;
    seen[static_cast<size_t>(perm[d])] = true;
    out.push_back(x.shape(0)[static_cast<size_t>(perm[d])]);
  }
  x.require(valid, fmt::format("perm is no permutation of the axes of {}", text(x.shape(0))));
  x.set(0, x.dtype(0), std::move(out));
  propagate_moved(x, {0});
}

void eval(Evaluation& e) {
  const std::vector<int64_t> dense = row_major_strides(e.in[0].shape());
  std::vector<int64_t> strides;
  for (int64_t p : permutation(e.attributes(), e.in[0].rank()))
    strides.push_back(dense[static_cast<size_t>(p)]);
  copy_strided(e.in[0], 0, strides, e.out[0]);
}

}  // namespace

const std::vector<Op>& ops_transpose() {
  static const std::vector<Op> table = {{.name = "Transpose", .infer = infer, .eval = eval}};
  return table;
}

}  // namespace sinter
