// Attention as textbook loops, one row of scores at a time: any float type, and the scores as an output.
#include "kernels/sequences/attention_plain.h"

#include "emit/expr_text.h"
#include "kernels/nest.h"
#include "kernels/sequences/attention_shared.h"

namespace sinter {

void emit_attention_plain(LayerWriter& w) {
  const Node& n = w.node;
  const AttentionForm f = attention_form(n);
  const DType t = n.inputs[kQ]->type.dtype, of_v = n.inputs[kV]->type.dtype;
  const std::string type = t == DType::kF64 || of_v == DType::kF64 ? "double" : "float";
  const auto typed = [&](const std::string& v) { return fmt::format("static_cast<{}>({})", type, v); };
  const auto number = [&](float v) { return typed(float_literal(static_cast<double>(v))); };
  w.include("sinter/scalar.h");
  w.include("sinter/dims.h");
  w.flops(f.batch * f.q_heads * f.q_length * f.total * (f.head + f.v_head) * Dim(2));
  w.summary(fmt::format("Attention of {} heads of {} as plain loops", f.q_heads.text(), name_of(t)));
  const AttentionTensors heads = emit_attention_start(w, f);
  const std::string line = w.scratch("line", type, std::max<int64_t>(f.total.hi(), 1));
  const std::string none = fmt::format("-std::numeric_limits<{}>::infinity()", type);
  const std::string scores = n.has_output(kScores) ? w.output(kScores) : "";
  const std::string total = factor_text(w, f.total);
  // Narrow types are stored from float.
  const auto store = [&](const std::string& to, const std::string& value) {
    const std::string narrow = t == DType::kF64 ? value : fmt::format("static_cast<float>({})", value);
    w.out.line("{} = {};", to, store_text(t, narrow));
  };
  const auto show = [&](int64_t mode, const std::string& value) {
    if (!scores.empty() && f.scores_mode == mode) store("shown[j]", value);
  };
  w.out.put(loop_text("b", w.dim(f.batch)));
  emit_attention_keys(w, f);
  w.out.put(loop_text("h", w.dim(f.q_heads)));
  const bool grouped = !(f.q_heads == f.kv_heads) && f.q_heads.is_static() && f.kv_heads.is_static();
  w.out.line("const std::int64_t c = {};",
             grouped ? fmt::format("h / {}", f.q_heads.value() / f.kv_heads.value()) : "h");
  w.out.put(loop_text("i", w.dim(f.q_length)));
  if (!scores.empty())
    w.out.line("auto* const shown = {} + ((b * {} + h) * {} + i) * {};", scores, factor_text(w, f.q_heads),
               factor_text(w, f.q_length), total);
  w.out.line("{0} top = {1}, sum = {2};", type, none, typed("0"));
  // Scores.
  w.out.put(loop_text("j", total));
  w.out.line("{} score = {};", type, typed("0"));
  w.out.put(loop_text("e", w.dim(f.head)));
  const auto element = [&](const Heads& x, const std::string& head, const std::string& position, DType of) {
    return typed(load_text(of, fmt::format("({} + {} * {})[e]", x.at("b", head), position, x.position)));
  };
  w.out.line("score += {} * {};", element(heads.q, "h", "i", t), element(heads.k, "c", "j", t));
  w.out.line("}}");
  w.out.line("score *= {};", f.scale != f.scale
                                 ? fmt::format("{} / std::sqrt({})", typed("1"), typed(w.dim(f.head)))
                                 : (type == "double" ? fmt::format("{:.17g}", f.scale)
                                                     : number(static_cast<float>(f.scale))));
  show(0, "score");
  if (f.softcap > 0) w.out.line("score = std::tanh(score / {0}) * {0};", number(f.softcap));
  show(1, "score");
  const std::string first = first_key(f, "i"), last = last_key(f, "i");
  std::string allowed = "j < keys";
  if (!first.empty()) allowed += fmt::format(" && j >= {}", first);
  if (!last.empty()) allowed += fmt::format(" && j < {}", last);
  if (const Value* mask = n.input(kMask)) {
    const DType of = mask->type.dtype;
    const std::string at = fmt::format("({})[j]", mask_row(w, f, "i"));
    if (of == DType::kBool) {
      w.out.line("if (!({}) || !{}) score = {};", allowed, at, none);
    } else {
      w.out.line("const {0} added = {1} ? {2} : {3};", type, allowed, typed(load_text(of, at)), none);
      w.out.line("score = added == {0} ? {0} : score + added;", none);
    }
  } else {
    w.out.line("if (!({})) score = {};", allowed, none);
  }
  show(2, "score");
  w.out.line("{}[j] = score;", line);
  w.out.line("if (score > top || score != score) top = score;");
  w.out.line("}}");
  // Softmax.
  w.out.put(loop_text("j", total));
  w.out.line("{0}[j] = {0}[j] == {1} ? {2} : std::exp({0}[j] - top);", line, none, typed("0"));
  w.out.line("sum += {}[j];", line);
  w.out.line("}}");
  w.out.put(loop_text("j", total));
  w.out.line("{0}[j] = {1}{0}[j] / sum;", line,
             f.masked_rows_are_zero ? fmt::format("top == {} ? {} : ", none, typed("0")) : "");
  show(3, line + "[j]");
  w.out.line("}}");
  // Values.
  w.out.put(loop_text("e", w.dim(f.v_head)));
  w.out.line("{} value = {};", type, typed("0"));
  w.out.put(loop_text("j", total));
  w.out.line("value += {}[j] * {};", line, element(heads.v, "c", "j", of_v));
  w.out.line("}}");
  store(fmt::format("({} + i * {})[e]", heads.y.at("b", "h"), heads.y.position), "value");
  w.out.line("}}");
  for (int i = 0; i < 3; ++i) w.out.line("}}");
  if (n.input(kValidKeys)) w.out.line("return 0;");
}

}  // namespace sinter
