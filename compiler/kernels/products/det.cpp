// Det and Inverse: every matrix is copied to scratch as doubles and eliminated there (runtime/sinter/det.h).
#include "emit/expr_text.h"
#include "emit/layer.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "Det" && n.op->domain[0] == 0;
}
bool accepts_inverse(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "Inverse" && std::string_view(n.op->domain) == "com.microsoft";
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& s = n.inputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const Dim& side = s.back();
  if (side.hi() > 1 << 14) refuse("matrices of up to {} rows are not supported", side.text());
  w.include("sinter/det.h");
  w.include("sinter/half.h");
  w.summary(fmt::format("Determinants of {}", text(s)));
  const std::string x = w.input(0);
  const std::string m = w.scratch("m", "double", std::max<int64_t>((side * side).hi(), 1));
  PlainOutput out(w, t);
  const std::string size = w.dim(side * side);
  w.out.put(loop_text("i", w.dim(product(s, 0, s.size() - 2))));
  w.out.line("for (std::int64_t k = 0; k < {}; ++k) {}[k] = static_cast<double>({});", size, m,
             load_text(t, fmt::format("{}[i * {} + k]", x, size)));
  std::string det = fmt::format("sinter::determinant({}, {})", m, w.dim(side));
  if (t != DType::kF64) det = fmt::format("static_cast<float>({})", det);
  w.out.line("{}[i] = {};", out.pointer(), store_text(t, det));
  w.out.line("}}");
  out.finish();
}

void emit_inverse(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& s = n.inputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const Dim& side = s.back();
  if (side.hi() > 1 << 14) refuse("matrices of up to {} rows are not supported", side.text());
  w.include("sinter/det.h");
  w.include("sinter/half.h");
  w.summary(fmt::format("Inverses of {}", text(s)));
  const std::string x = w.input(0);
  const int64_t most = std::max<int64_t>((side * side).hi(), 1);
  const std::string m = w.scratch("m", "double", most), inverse = w.scratch("inverse", "double", most);
  PlainOutput out(w, t);
  const std::string size = w.dim(side * side);
  w.out.put(loop_text("i", w.dim(product(s, 0, s.size() - 2))));
  w.out.line("for (std::int64_t k = 0; k < {}; ++k) {}[k] = static_cast<double>({});", size, m,
             load_text(t, fmt::format("{}[i * {} + k]", x, size)));
  w.out.line("sinter::invert({}, {}, {});", m, w.dim(side), inverse);
  const std::string element =
      t == DType::kF64 ? inverse + "[k]" : fmt::format("static_cast<float>({}[k])", inverse);
  w.out.line("for (std::int64_t k = 0; k < {0}; ++k) {1}[i * {0} + k] = {2};", size, out.pointer(),
             store_text(t, element));
  w.out.line("}}");
  out.finish();
}

}  // namespace

const std::vector<Kernel>& kernels_det() {
  static const std::vector<Kernel> table = {
      {"det", "determinants by elimination", accepts, emit, {.work = Work::kLoops}},
      {"inverse", "inverses by elimination", accepts_inverse, emit_inverse, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
