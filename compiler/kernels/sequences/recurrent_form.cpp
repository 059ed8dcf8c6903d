// What the kernels of recurrent layers share: activations as text, strides of rows, the check of lengths.
#include "kernels/sequences/recurrent_form.h"

#include "emit/expr_text.h"

namespace sinter {

void emit_activation(LayerWriter& w, const Recurrence& r, const GateActivation& a, const std::string& name,
                     const std::string& value, const std::string& type, bool clips) {
  using Kind = GateActivation::Kind;
  const bool vector = type == "f32v";
  const auto number = [&](float v) {
    const std::string literal = float_literal(static_cast<double>(v));
    return vector ? literal : type == "float" ? literal : fmt::format("static_cast<{}>({})", type, literal);
  };
  const std::string in = name + "_in", alpha = number(a.alpha), beta = number(a.beta);
  const std::string word = vector ? "" : "sinter::";
  const auto wide = [&](const std::string& v) { return vector ? fmt::format("splat({})", v) : v; };
  w.out.line("const {} {} = {};", type, in,
             r.clips && clips
                 ? fmt::format("{}clamp({}, {}, {})", word, value, number(-r.clip), number(r.clip))
                 : value);
  std::string f;
  switch (a.kind) {
    case Kind::kRelu: f = fmt::format("{}relu({})", word, in); break;
    case Kind::kTanh: f = fmt::format("{}tanh({})", word, in); break;
    case Kind::kSigmoid: f = fmt::format("{}sigmoid({})", word, in); break;
    case Kind::kSoftsign: f = fmt::format("{}softsign({})", word, in); break;
    case Kind::kSoftplus: f = fmt::format("{}softplus({})", word, in); break;
    case Kind::kLeakyRelu: f = fmt::format("{}leaky_relu({}, {})", word, in, alpha); break;
    case Kind::kElu: f = fmt::format("{}elu({}, {})", word, in, alpha); break;
    case Kind::kHardSigmoid: f = fmt::format("{}hard_sigmoid({}, {}, {})", word, in, alpha, beta); break;
    case Kind::kAffine:
      f = fmt::format("{0}add({0}mul({1}, {2}), {3})", word, in, wide(alpha), wide(beta));
      break;
    case Kind::kScaledTanh:
      f = fmt::format("{0}mul({0}tanh({0}mul({1}, {2})), {3})", word, in, wide(beta), wide(alpha));
      break;
    case Kind::kThresholdedRelu:
      f = vector ? fmt::format("select(ge({0}, splat({1})), {0}, zero())", in, alpha)
                 : fmt::format("{0} >= {1} ? {0} : {2}", in, alpha, number(0));
      break;
  }
  w.out.line("const {} {} = {};", type, name, f);
}

RowStrides row_strides(LayerWriter& w, const Recurrence& r) {
  const Dim d(r.directions);
  RowStrides s;
  s.x_step = w.dim(r.batch_first ? r.inputs : r.batch * r.inputs);
  s.x_row = w.dim(r.batch_first ? r.steps * r.inputs : r.inputs);
  s.y_step = w.dim(r.batch_first ? d * r.hidden : d * r.batch * r.hidden);
  s.y_row = w.dim(r.batch_first ? r.steps * d * r.hidden : r.hidden);
  s.y_direction = w.dim(r.batch_first ? r.hidden : r.batch * r.hidden);
  s.state_row = w.dim(r.batch_first ? d * r.hidden : r.hidden);
  s.state_direction = s.y_direction;
  const auto whole = [](std::string& text) {
    if (text.find(' ') != std::string::npos || text.find('-') != std::string::npos) text = "(" + text + ")";
  };
  for (std::string* text :
       {&s.x_step, &s.x_row, &s.y_step, &s.y_row, &s.y_direction, &s.state_row, &s.state_direction})
    whole(*text);
  return s;
}

void emit_length_check(LayerWriter& w, const Recurrence& r) {
  if (!w.node.input(4)) return;
  w.include("sinter/status.h");
  w.can_fail();
  w.out.line("for (std::int64_t n = 0; n < {}; ++n) {{", w.dim(r.batch));
  w.out.line("if ({0}[n] < 0 || {0}[n] > {1}) return sinter::kIndexError;", w.input(4), w.dim(r.steps));
  w.out.line("}}");
}

}  // namespace sinter
