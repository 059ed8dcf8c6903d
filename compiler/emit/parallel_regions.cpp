// The text of parallel regions (plan/parallel_regions.h): a function that calls the region's layers, which
// each thread runs with a pool that is itself alone. Its pieces of the scratch are such that what a layer
// adds for a part leads into that part's own one (Plan::Share).
#include "emit/parallel_regions.h"

namespace sinter {

void write_region(Printer& p, Calls& calls, const Plan& plan, size_t first, size_t end) {
  calls.begin_share(first, end);
  p.line("// each thread takes its rows through these {} layers", end - first);
  p.line(
      "if (const int status = sinter::run_shares<{}>(pool, [=](const sinter_pool* own, [[maybe_unused]] "
      "std::int64_t part) -> int {{",
      plan.layers[first].row_parts->starts.size() - 1);
  for (size_t i = first; i < end; ++i) {
    calls.choose_floats(i, i + 1);
    calls.call(i);
  }
  calls.end_share();
  p.put("return 0;");
  p.line("}}); status != 0) {};", calls.returning("status"));
}

}  // namespace sinter
