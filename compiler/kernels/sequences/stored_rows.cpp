// rows_to_bytes: a call of runtime/sinter/stored_rows.h for each row.
#include "ops/sequences/stored_rows.h"

#include "kernels/sequences/attention_shared.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return n.op->name == std::string_view("rows_to_bytes") && !n.epilogue;
}

void emit(LayerWriter& w) {
  const Shape& shape = w.node.inputs[0]->type.shape;
  for (const char* header : {"sinter/mac.h", "sinter/stored_rows.h"}) w.include(header);
  w.summary(fmt::format("{} as rows of bytes", text(w.node.inputs[0]->type)));
  const std::string n = factor_text(w, shape.back()), rows = w.dim(product(shape, 0, shape.size() - 1));
  w.out.line("for (std::int64_t r = 0; r < {}; ++r)", rows);
  w.out.line("store_row({} + r * {}, {}, {} + r * ({} + {}));", w.input(0), n, n, w.output(0), n,
             kScaleBytes);
}

}  // namespace

const std::vector<Kernel>& kernels_stored_rows() {
  static const std::vector<Kernel> table = {
      {"rows_to_bytes", "a cache's new rows as bytes with a scale", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
