// LinearAttention: the recurrence step by step. A head's state lies in scratch as [keys][values]; every loop
// that touches it runs along the values, which are contiguous.
#include <cmath>

#include "emit/expr_text.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "LinearAttention" && n.op->domain[0] == 0 && !n.epilogue;
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Attributes& a = n.attributes;
  const DType t = n.inputs[0]->type.dtype;
  const std::string type = compute_type(t);
  const int64_t heads = a.integer("q_num_heads", 1), kv = a.integer("kv_num_heads", 1), group = heads / kv;
  const Shape& q = n.inputs[0]->type.shape;
  const int64_t dk = q[2].value() / heads, dv = n.inputs[2]->type.shape[2].value() / kv;
  const bool decays = n.input(4) != nullptr, corrects = n.input(5) != nullptr;
  w.include("sinter/scalar.h");
  w.flops(q[0] * q[1] * Dim(dk * dv * (2 * heads + (corrects ? 4 : 2) * kv)));
  w.summary(fmt::format("LinearAttention of {} heads, {} states of {} x {}", heads, kv, dk, dv));
  const std::string queries = w.input(0), keys = w.input(1), values = w.input(2);
  const std::string past = n.input(3) ? w.input(3) : "", decay = decays ? w.input(4) : "",
                    beta = corrects ? w.input(5) : "";
  const std::string y = w.output(0), present = n.has_output(1) ? w.output(1) : "";
  const std::string state = w.scratch("state", type, std::max<int64_t>(dk * dv, 1)),
                    value = w.scratch("value", type, std::max<int64_t>(dv, 1));
  const auto zero = fmt::format("static_cast<{}>(0)", type);
  const DType of_state = n.input(3) ? n.inputs[3]->type.dtype : t;
  // A past of another type is read and stored through the queries' compute type.
  const auto converted = [&](const std::string& v) { return fmt::format("static_cast<{}>({})", type, v); };
  w.out.put(loop_text("b", w.dim(q[0])));
  w.out.put(loop_text("h", std::to_string(kv)));
  w.out.line("for (std::int64_t i = 0; i < {}; ++i) {}[i] = {};", dk * dv, state,
             past.empty() ? zero
                          : converted(load_text(
                                of_state, fmt::format("{}[(b * {} + h) * {} + i]", past, kv, dk * dv))));
  w.out.put(loop_text("t", w.dim(q[1])));
  w.out.line("const std::int64_t row = b * ({}) + t, at = row * {} + h;", w.dim(q[1]), kv);
  const auto state_loops = [&](const std::string& before, const std::string& line) {
    w.out.put(loop_text("d", std::to_string(dk)));
    if (!before.empty()) w.out.put(before);
    w.out.line("for (std::int64_t m = 0; m < {}; ++m) {}", dv, line);
    w.out.line("}}");
  };
  const std::string cell = fmt::format("{}[d * {} + m]", state, dv);
  if (decays) {
    const int64_t each = n.inputs[4]->type.shape[2].value() / kv;
    const std::string g = load_text(t, fmt::format("{}[at * {} + {}]", decay, each, each == 1 ? "0" : "d"));
    state_loops(fmt::format("const {} factor = std::exp({});", type, g), cell + " *= factor;");
  }
  const std::string key =
      fmt::format("const {} key = {};", type, load_text(t, fmt::format("{}[at * {} + d]", keys, dk)));
  w.out.line("for (std::int64_t m = 0; m < {}; ++m) {}[m] = {};", dv, value,
             load_text(t, fmt::format("{}[at * {} + m]", values, dv)));
  if (corrects) {
    state_loops(key, fmt::format("{}[m] -= key * {};", value, cell));
    const bool single = n.inputs[5]->type.shape[2].is(1);
    w.out.line("const {} rate = {};", type, load_text(t, fmt::format("{}[{}]", beta, single ? "row" : "at")));
    w.out.line("for (std::int64_t m = 0; m < {}; ++m) {}[m] *= rate;", dv, value);
  }
  state_loops(key, fmt::format("{} += key * {}[m];", cell, value));
  w.out.line("for (std::int64_t g = h * {0}; g < (h + 1) * {0}; ++g) {{", group);
  w.out.line("for (std::int64_t m = 0; m < {}; ++m) {}[m] = {};", dv, value, zero);
  state_loops(fmt::format("const {} query = {};", type,
                          load_text(t, fmt::format("{}[(row * {} + g) * {} + d]", queries, heads, dk))),
              fmt::format("{}[m] += query * {};", value, cell));
  const float given = a.real("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(dk)) : static_cast<double>(given);
  const std::string factor = type == "double" ? fmt::format("{:.17g}", scale)
                                              : float_literal(static_cast<double>(static_cast<float>(scale)));
  w.out.line("for (std::int64_t m = 0; m < {}; ++m) {}[(row * {} + g) * {} + m] = {};", dv, y, heads, dv,
             store_text(t, fmt::format("{}[m] * {}", value, factor)));
  w.out.line("}}");
  w.out.line("}}");
  if (!present.empty()) {
    const std::string narrow =
        of_state == DType::kF64 ? state + "[i]" : fmt::format("static_cast<float>({}[i])", state);
    w.out.line("for (std::int64_t i = 0; i < {0}; ++i) {1}[(b * {2} + h) * {0} + i] = {3};", dk * dv, present,
               kv, store_text(of_state, narrow));
  }
  w.out.line("}}");
  w.out.line("}}");
}

}  // namespace

const std::vector<Kernel>& kernels_linear_attention() {
  static const std::vector<Kernel> table = {{"linear_attention",
                                             "LinearAttention, all update rules, step by step",
                                             accepts,
                                             emit,
                                             {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
