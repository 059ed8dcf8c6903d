// The table of all kernels: kernels.def's files put together, in its order.
#include "emit/layer.h"

namespace sinter {

#define KERNELS(file) const std::vector<Kernel>& kernels_##file();
#include "kernels/kernels.def"
#undef KERNELS

const std::vector<const Kernel*>& all_kernels() {
  static const std::vector<const Kernel*> table = [] {
    std::vector<const Kernel*> t;
#define KERNELS(file) \
  for (const Kernel& k : kernels_##file()) t.push_back(&k);
#include "kernels/kernels.def"
#undef KERNELS
    return t;
  }();
  return table;
}

}  // namespace sinter
