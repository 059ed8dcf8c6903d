// Reshape to extents that only the run knows: finds them, checks them and copies the elements. All other
// Reshapes are views and need no code.
#include "emit/layer.h"
#include "emit/loops.h"
#include "ops/op.h"
#include "plan/plan.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "Reshape" && n.op->domain[0] == 0 && !n.epilogue && !is_view(n) &&
         size_of(n.inputs[0]->type.dtype) > 0 && n.inputs[0]->type.dtype != DType::kComplex64 &&
         n.inputs[0]->type.dtype != DType::kComplex128;
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& in = n.inputs[0]->type.shape;
  const Shape& out = n.outputs[0]->type.shape;
  const bool allow_zero = n.attributes.integer("allowzero", 0) != 0;
  w.include("sinter/dims.h");
  w.include("sinter/status.h");
  w.can_fail();
  w.summary(fmt::format("Reshape {} to {} extents that the data tell", text(in), out.size()));
  const std::string x = w.input(0), target = w.input(1), y = w.output(0), total = w.dim(product(in));
  // `left` and `given`: elements on both sides but for the copied axes, which cancel also where they are 0.
  w.out.line("std::int64_t left = 1, given = 1;");
  if (!out.empty()) w.out.line("std::int64_t extent[{}];", out.size());
  w.out.line("int open = -1;");
  for (size_t d = 0; d < std::max(in.size(), out.size()); ++d) {
    const std::string own = d < in.size() ? w.dim(in[d]) : "";
    if (d >= out.size()) {
      w.out.line("left *= {};", own);
      continue;
    }
    w.out.line("extent[{0}] = {1}[{0}];", d, target);
    if (!allow_zero) {
      w.out.line("if (extent[{}] == 0) {{", d);
      w.out.put(d < in.size() ? fmt::format("extent[{}] = {};", d, own) : "return sinter::kDimError;");
      w.out.line("}} else {{");
    } else {
      w.out.line("{{");
    }
    if (d < in.size()) w.out.line("left *= {};", own);
    w.out.line("if (extent[{}] == -1) {{", d);
    w.out.line("if (open >= 0) return sinter::kDimError;");
    w.out.line("open = {};", d);
    w.out.line("}} else {{");
    w.out.line("if (extent[{}] < 0) return sinter::kDimError;", d);
    w.out.line("given = sinter::saturating_product(given, extent[{}]);", d);
    w.out.line("}}");
    w.out.line("}}");
  }
  w.out.line("if (open >= 0) {{");
  w.out.line("if (given == 0 || left % given != 0) return sinter::kDimError;");
  if (!out.empty()) w.out.line("extent[open] = left / given;");
  w.out.line("}}");
  w.out.line("std::int64_t count = 1;");
  for (size_t d = 0; d < out.size(); ++d)
    w.out.line("count = sinter::saturating_product(count, extent[{}]);", d);
  w.out.line("if (count != {}) return sinter::kDimError;", total);
  for (size_t d = 0; d < out.size(); ++d) {
    std::vector<SymbolPtr> symbols;
    out[d].collect_symbols(symbols);
    if (out.size() <= 1) continue;
    if (symbols.size() == 1 && symbols[0]->from_data && out[d] == Dim(symbols[0]))
      w.out.line("*{} = extent[{}];", w.count(out[d]), d);
    else
      w.out.line("if (extent[{}] != {}) return sinter::kDimError;", d, w.dim(out[d]));
  }
  w.out.line("for (std::int64_t i = 0; i < count; ++i) {}[i] = {}[i];", y, x);
  w.out.line("return 0;");
}

}  // namespace

const std::vector<Kernel>& kernels_reshape() {
  static const std::vector<Kernel> table = {
      {"reshape", "Reshape to extents that only the run knows", accepts, emit}};
  return table;
}

}  // namespace sinter
