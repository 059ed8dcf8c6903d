// LRN: x / (bias + alpha / size * sum of the squares of the `size` channels around)^beta.
//
// Channels are an outer axis: vectors run over the positions behind it. Channels are the last axis: vectors
// run over the channels whose window is whole, the others are single elements. Other types: in double.
#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/nest.h"
#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "LRN" && n.op->domain[0] == 0 && is_float(n.inputs[0]->type.dtype);
}

struct Rule {
  int64_t below, above;
  double weight, bias, beta;
};
Rule rule_of(const Node& n) {
  // No tensor has 2^40 channels: a larger size only changes the weight.
  const int64_t size = n.attributes.integer("size", 1), near = std::min(size, int64_t{1} << 40),
                below = (near - 1) / 2;
  return {below, near - 1 - below,
          static_cast<double>(n.attributes.real("alpha", 1e-4f)) / static_cast<double>(size),
          static_cast<double>(n.attributes.real("bias", 1)),
          static_cast<double>(n.attributes.real("beta", 0.75f))};
}

// x / base^beta in the words of vectors (splat) or single floats.
std::string divided(const std::string& x, double beta, bool vector) {
  if (beta == 1) return fmt::format("div({}, base)", x);
  if (beta == 0.5) return fmt::format("div({}, sqrt(base))", x);
  if (beta == 0.75) return fmt::format("div({}, mul(sqrt(base), sqrt(sqrt(base))))", x);
  return fmt::format("div({}, pow(base, {}))", x,
                     vector ? "splat(" + float_literal(beta) + ")" : float_literal(beta));
}
std::string base_text(const Rule& r, bool vector) {
  auto splat = [&](double v) { return vector ? "splat(" + float_literal(v) + ")" : float_literal(v); };
  return fmt::format("fma(sum, {}, {})", splat(r.weight), splat(r.bias));
}

// The loop over the channels around `c` that exist.
void open_window(LayerWriter& w, const Rule& r, const std::string& channels) {
  w.include("sinter/dims.h");
  w.out.line("const std::int64_t first = sinter::max_of(c - {}, std::int64_t{{0}});", r.below);
  w.out.line("const std::int64_t end = sinter::min_of(c + {}, std::int64_t{{{}}});", r.above + 1, channels);
}

void emit_outer(LayerWriter& w, const Rule& r) {  // [N][C][positions]
  const Node& n = w.node;
  const Shape& s = n.inputs[0]->type.shape;
  const std::string x = w.input(0);
  const Epilogue epilogue(w, s);
  const std::string y = w.output(0), channels = w.dim(s[1]);
  const bool merged = s.size() <= 3 || epilogue.can_merge(2, s.size() - 1);
  const size_t last = s.size() - 1;
  // Without merging, the axes between the channels and the last one are loops.
  const Dim positions = s.size() == 2 ? Dim(1) : merged ? product(s, 2) : s[last];
  w.out.put(loop_text("n", w.dim(s[0])));
  w.out.put(loop_text("c", channels));
  open_window(w, r, channels);
  std::vector<std::string> index(s.size(), "0");
  index[0] = "n";
  index[1] = "c";
  std::string row = "0";
  size_t loops = 2;
  for (size_t a = 2; a < last && !merged; ++a, ++loops) {
    index[a] = fmt::format("i{}", a);
    w.out.put(loop_text(index[a], w.dim(s[a])));
    row = plus(times(row, w.dim(s[a])), index[a]);
  }
  const std::string plane = w.dim(product(s, 2)), inside = times(row, w.dim(positions));
  w.out.line("const float* const from = {};", plus(plus(x, times(times("n", channels), plane)), inside));
  w.out.line("float* const to = {};", plus(plus(y, times(plus(times("n", channels), "c"), plane)), inside));
  w.out.line("std::int64_t i = 0;");
  if (s.size() > 2) index[last] = "i";
  for (const bool vector : {true, false}) {
    const char* type = vector ? "f32v" : "float";
    if (vector)
      w.out.line("for (; i + kLanes <= {}; i += kLanes) {{", w.dim(positions));
    else
      w.out.line("for (; i < {}; ++i) {{", w.dim(positions));
    w.out.line("{} sum = {};", type, vector ? "zero()" : "0.0f");
    w.out.line("for (std::int64_t k = first; k < end; ++k) {{");
    const std::string at = plus(times("k", plane), "i");
    w.out.line("const {} e = {};", type,
               vector ? fmt::format("load(from + {})", at) : fmt::format("from[{}]", at));
    w.out.line("sum = fma(e, e, sum);");
    w.out.line("}}");
    w.out.line("const {} base = {};", type, base_text(r, vector));
    const std::string own = plus(times("c", plane), "i");
    w.out.line(
        "const {} v = {};", type,
        divided(vector ? fmt::format("load(from + {})", own) : fmt::format("from[{}]", own), r.beta, vector));
    if (vector)
      w.out.line("store(to + i, {});", epilogue.vector("v", index, "", w.out));
    else
      w.out.line("to[i] = {};", epilogue.scalar("v", index, w.out, TextMode::kLane));
    w.out.line("}}");
  }
  for (size_t i = 0; i < loops; ++i) w.out.line("}}");
}

void emit_last(LayerWriter& w, const Rule& r) {  // [positions][C]
  const Node& n = w.node;
  const Shape& s = n.inputs[0]->type.shape;
  const std::string x = w.input(0);
  const Epilogue epilogue(w, s);
  const std::string y = w.output(0), channels = w.dim(s.back());
  std::vector<std::string> index;
  std::string row = "0";
  for (size_t a = 0; a + 1 < s.size(); ++a) {
    index.push_back(fmt::format("i{}", a));
    w.out.put(loop_text(index[a], w.dim(s[a])));
    row = plus(times(row, w.dim(s[a])), index[a]);
  }
  index.push_back("c");
  w.out.line("const float* const from = {};", plus(x, times(row, channels)));
  w.out.line("float* const to = {};", plus(y, times(row, channels)));
  w.out.line("const auto single = [&](std::int64_t c) {{");
  open_window(w, r, channels);
  w.out.line("float sum = 0.0f;");
  w.out.line("for (std::int64_t k = first; k < end; ++k) sum = fma(from[k], from[k], sum);");
  w.out.line("const float base = {};", base_text(r, false));
  w.out.line("const float v = {};", divided("from[c]", r.beta, false));
  w.out.line("to[c] = {};", epilogue.scalar("v", index, w.out, TextMode::kLane));
  w.out.put("};");
  w.out.line("std::int64_t c = 0;");
  w.out.line("for (; c < {0} && c < {1}; ++c) single(c);", r.below, channels);
  w.out.line("for (; c + kLanes + {} <= {}; c += kLanes) {{", r.above, channels);
  w.out.line("f32v sum = zero();");
  w.out.line("for (std::int64_t k = c - {}; k <= c + {}; ++k) {{", r.below, r.above);
  w.out.line("const f32v e = load(from + k);");
  w.out.line("sum = fma(e, e, sum);");
  w.out.line("}}");
  w.out.line("const f32v base = {};", base_text(r, true));
  w.out.line("const f32v v = {};", divided("load(from + c)", r.beta, true));
  w.out.line("store(to + c, {});", epilogue.vector("v", index, "", w.out));
  w.out.line("}}");
  w.out.line("for (; c < {}; ++c) single(c);", channels);
  for (size_t a = 0; a + 1 < s.size(); ++a) w.out.line("}}");
}

void emit_plain(LayerWriter& w, const Rule& r) {
  const Node& n = w.node;
  const Shape& s = n.inputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  w.include("sinter/scalar.h");
  const std::string x = w.input(0);
  PlainOutput output(w, t);
  const size_t axis = is_channels_last(n.attributes) ? s.size() - 1 : 1;
  const std::string channels = w.dim(s[axis]), inner = w.dim(product(s, axis + 1));
  w.out.put(loop_text("o", w.dim(product(s, 0, axis))));
  w.out.put(loop_text("c", channels));
  open_window(w, r, channels);
  w.out.put(loop_text("i", inner));
  const std::string line = times("o", times(channels, inner));
  auto element = [&](const std::string& k) {
    return fmt::format("static_cast<double>({})",
                       load_text(t, fmt::format("{}[{}]", x, plus(plus(line, times(k, inner)), "i"))));
  };
  w.out.line("double sum = 0.0;");
  w.out.line("for (std::int64_t k = first; k < end; ++k) sum += {0} * {0};", element("k"));
  const auto number = [](double v) { return literal(*Expr::constant(v, DType::kF64)); };
  w.out.line("const double v = {} / std::pow({} + {} * sum, {});", element("c"), number(r.bias),
             number(r.weight), number(r.beta));
  w.out.line("{}[{}] = {};", output.pointer(), plus(plus(line, times("c", inner)), "i"),
             store_text(t, t == DType::kF64 ? "v" : "static_cast<float>(v)"));
  w.out.line("}}");
  w.out.line("}}");
  w.out.line("}}");
  output.finish();
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Rule r = rule_of(n);
  w.summary(fmt::format("LRN over {} channels{}", r.below + r.above + 1,
                        n.epilogue ? ", then " + text(*n.epilogue) : ""));
  w.flops(product(n.inputs[0]->type.shape) * Dim(2 * (r.below + r.above + 1) + 4));
  if (n.inputs[0]->type.dtype != DType::kF32 || !vector_epilogue(n)) return emit_plain(w, r);
  w.include("sinter/math.h");
  if (is_channels_last(n.attributes))
    emit_last(w, r);
  else
    emit_outer(w, r);
}

}  // namespace

const std::vector<Kernel>& kernels_lrn() {
  static const std::vector<Kernel> table = {
      {"lrn", "local response normalisation over channels", accepts, emit}};
  return table;
}

}  // namespace sinter
