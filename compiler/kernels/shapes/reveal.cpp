// reveal: the elements of an operand become symbols of the run.
#include "emit/layer.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "reveal" && std::string_view(n.op->domain) == "sinter" &&
         !n.epilogue;
}

// What the user bounds (--dim INPUT<=MAX) is planned for that many.
void check_elements(LayerWriter& w, const std::string& x) {
  const Attributes& a = w.node.attributes;
  const std::vector<int64_t> open = a.integers("open"), least = a.integers("least"),
                             most = a.integers("most");
  for (size_t k = 0; k < open.size(); ++k) {
    if (!open[k] || !(Interval{least[k], most[k]}).bounded()) continue;
    w.out.line("if ({0}[{1}] < {2} || {0}[{1}] > {3}) return sinter::kCapacityError;", x, k, least[k],
               most[k]);
  }
}

// Code generation bounds a symbol's expressions by 64 bits: elements beyond 2^31 are refused. What is
// computed of data has a range from inference, and memory is planned for it: beyond it is beyond capacity.
void emit(LayerWriter& w) {
  const Value& v = *w.node.outputs[0];
  const std::vector<int64_t> range = w.node.attributes.integers("range");
  w.include("sinter/status.h");
  w.can_fail();
  w.summary(fmt::format("{} elements of an operand that decides extents", v.elements.size()));
  const std::string x = w.input(0), y = w.output(0);
  w.out.line("constexpr std::int64_t least = {}, most = {};", range.empty() ? -(int64_t{1} << 31) : range[0],
             range.empty() ? int64_t{1} << 31 : range[1]);
  w.out.line("for (int i = 0; i < {}; ++i) {{", v.elements.size());
  w.out.line("if ({0}[i] < least || {0}[i] > most) return sinter::{1};", x,
             range.empty() ? "kDimError" : "kCapacityError");
  w.out.line("{}[i] = {}[i];", y, x);
  w.out.line("}}");
  if (range.empty()) check_elements(w, x);
  for (size_t k = 0; k < v.elements.size(); ++k)
    if (!v.elements[k].is_static()) w.out.line("*{} = {}[{}];", w.count(v.elements[k]), x, k);
  w.out.line("return 0;");
}

}  // namespace

const std::vector<Kernel>& kernels_reveal() {
  static const std::vector<Kernel> table = {
      {"reveal", "operands that are run-time inputs and decide extents", accepts, emit}};
  return table;
}

}  // namespace sinter
