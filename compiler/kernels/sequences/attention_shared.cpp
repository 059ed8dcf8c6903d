// What the kernels for Attention share: where heads lie, caches, masks and bounds of keys.
#include "kernels/sequences/attention_shared.h"

#include "ops/sequences/stored_rows.h"

namespace sinter {

bool is_stored(const Node& n, size_t input) {
  return n.op->domain[0] != '\0' && n.inputs[input]->type.dtype != DType::kF32;
}

bool reads_types(const Node& n, DType type) {
  const bool stored = n.op == find_op("sinter", "cached_attention");
  if (!(stored || n.op == find_op("", "Attention")) || n.epilogue) return false;
  return n.inputs[kQ]->type.dtype == type &&
         (stored || (n.inputs[kK]->type.dtype == type && n.inputs[kV]->type.dtype == type));
}

std::string factor_text(LayerWriter& w, const Dim& d) {
  const std::string text = w.dim(d);
  return text.find(' ') == std::string::npos && text.find('-') == std::string::npos ? text : "(" + text + ")";
}

std::string Heads::at(const std::string& b, const std::string& h) const {
  return fmt::format("{} + {} * {} + {} * {}", pointer, b, batch, h, head);
}

Heads heads_of(LayerWriter& w, const std::string& pointer, HeadLayout layout, const Dim& heads,
               const Dim& positions, const Dim& elements) {
  const bool heads_first = layout == HeadLayout::kHeadsFirst;
  const Dim row = heads_first ? elements : heads * elements;
  return {pointer, factor_text(w, heads * positions * elements),
          factor_text(w, heads_first ? positions * elements : elements), factor_text(w, row),
          row.is_static() ? row.value() : 0};
}

namespace {
// Past and new rows of `input` one behind the other in `to`.
void emit_cache(LayerWriter& w, const AttentionForm& f, const std::string& to, size_t past, const Heads& now,
                const Dim& elements) {
  const std::string heads = factor_text(w, f.kv_heads), e = factor_text(w, elements);
  w.include("sinter/copy.h");
  w.out.line("for (std::int64_t b = 0; b < {}; ++b) {{", w.dim(f.batch));
  w.out.line("for (std::int64_t c = 0; c < {}; ++c) {{", heads);
  w.out.line("auto* const to = {} + (b * {} + c) * {};", to, heads, factor_text(w, f.total * elements));
  if (w.node.input(past)) {
    const std::string size = factor_text(w, f.past * elements);
    w.out.line("sinter::copy(to, {} + (b * {} + c) * {}, {});", w.input(past), heads, size, size);
  }
  w.out.line("for (std::int64_t j = 0; j < {}; ++j) {{", w.dim(f.kv_length));
  w.out.line("sinter::copy(to + ({} + j) * {}, {} + j * {}, {});", factor_text(w, f.past), e,
             now.at("b", "c"), now.position, e);
  w.out.line("}}");
  w.out.line("}}");
  w.out.line("}}");
}
}  // namespace

namespace {
// What a row takes in its own elements: those of a head, and a scale where they are bytes.
Dim row_of(const LayerWriter& w, size_t input, const Dim& head) {
  return w.node.inputs[input]->type.dtype == DType::kI8 ? head + Dim(kScaleBytes) : head;
}
}  // namespace

AttentionTensors emit_attention_start(LayerWriter& w, const AttentionForm& f) {
  AttentionTensors t;
  t.q = heads_of(w, w.input(kQ), f.q, f.q_heads, f.q_length, f.head);
  t.k = heads_of(w, w.input(kK), f.k, f.kv_heads, f.kv_length, row_of(w, kK, f.head));
  t.v = heads_of(w, w.input(kV), f.v, f.kv_heads, f.kv_length, row_of(w, kV, f.v_head));
  t.y = heads_of(w, w.output(kY), f.y, f.q_heads, f.q_length, f.v_head);
  if (w.node.input(kValidKeys)) {
    w.include("sinter/status.h");
    w.can_fail();
    w.out.line("for (std::int64_t b = 0; b < {}; ++b) {{", w.dim(f.batch));
    w.out.line("if ({0}[b] < 0 || {0}[b] > {1}) return sinter::kIndexError;", w.input(kValidKeys),
               w.dim(f.total));
    w.out.line("}}");
  }
  const auto cache = [&](size_t output, size_t past, size_t input, Heads& heads, const Dim& elements,
                         const char* name) {
    const bool has_past = w.node.input(past) != nullptr, wanted = w.node.has_output(output);
    if (!has_past && !wanted) return;
    const std::string to = wanted ? w.output(output)
                                  : w.scratch(name, std::string(cpp_name(w.node.inputs[input]->type.dtype)),
                                              (f.batch * f.kv_heads * f.total * elements).hi());
    emit_cache(w, f, to, past, heads, elements);
    if (has_past) heads = heads_of(w, to, HeadLayout::kHeadsFirst, f.kv_heads, f.total, elements);
  };
  cache(kPresentKey, kPastKey, kK, t.k, f.head, "present_key");
  cache(kPresentValue, kPastValue, kV, t.v, f.v_head, "present_value");
  return t;
}

void emit_attention_keys(LayerWriter& w, const AttentionForm& f) {
  w.include("sinter/dims.h");
  const Value* mask = w.node.input(kMask);
  std::string keys = w.dim(f.total);
  if (mask && !(mask->type.shape.back() == f.total))
    keys = fmt::format("sinter::min_of(std::int64_t{{{}}}, std::int64_t{{{}}})", keys,
                       w.dim(mask->type.shape.back()));
  if (w.node.input(kValidKeys))
    keys = fmt::format("sinter::min_of({}[b], std::int64_t{{{}}})", w.input(kValidKeys), keys);
  w.out.line("const std::int64_t keys = {};", keys);
  if (!f.causal && f.left < 0 && f.right < 0) return;
  w.out.line("const std::int64_t offset = {};  // of query 0 among the keys",
             w.node.input(kValidKeys)
                 ? fmt::format("{}[b] - {}", w.input(kValidKeys), factor_text(w, f.q_length))
                 : w.dim(f.past));
}

std::string mask_row(LayerWriter& w, const AttentionForm& f, const std::string& query) {
  const Value* mask = w.node.input(kMask);
  if (!mask) return "";
  const Shape& m = mask->type.shape;
  const Shape full{f.batch, f.q_heads, f.q_length, f.total};
  const char* names[] = {"b", "h", "", ""};
  std::string text = w.input(kMask);
  Dim each = m.back();
  for (size_t a = m.size() - 1; a-- > 0;) {
    const size_t axis = 4 - m.size() + a;
    const std::string index = axis == 2 ? query : names[axis];
    if (!m[a].is(1)) {
      const bool open = !(m[a] == full[axis]) && m[a].lo() <= 1;  // 1 or all, known at run time
      text += open ? fmt::format(" + ({} == 1 ? 0 : {} * {})", w.dim(m[a]), index, factor_text(w, each))
                   : fmt::format(" + {} * {}", index, factor_text(w, each));
    }
    each = each * m[a];
  }
  return text;
}

std::string first_key(const AttentionForm& f, const std::string& i) {
  return f.left < 0 ? "" : fmt::format("({} + offset - {})", i, f.left);
}
std::string last_key(const AttentionForm& f, const std::string& i) {
  if (!f.causal && f.right < 0) return "";
  const int64_t ahead = f.causal || f.right == 0 ? 0 : f.right;
  return fmt::format("({} + offset + {})", i, ahead + 1);
}

}  // namespace sinter
