// RotaryEmbedding: a row of a head at a time. Halves are turned in vectors of floats, interleaved pairs and
// other types one by one. The angles may be those of the whole batch, and one for each element of a pair.
#include "emit/expr_text.h"
#include "kernels/nest.h"
#include "kernels/sequences/attention_shared.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "RotaryEmbedding" && n.op->domain[0] == 0 && !n.epilogue;
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& s = n.inputs[0]->type.shape;
  const DType t = n.inputs[0]->type.dtype;
  const bool flat = s.size() == 3, interleaved = n.attributes.integer("interleaved", 0) != 0;
  const Dim heads = flat ? Dim(n.attributes.integer("num_heads", 1)) : s[1], length = s[flat ? 1 : 2];
  const int64_t head = flat ? s[2].value() / heads.value() : s[3].value();
  const int64_t given = n.attributes.integer("rotary_embedding_dim", 0), turned = given == 0 ? head : given;
  const int64_t half = turned / 2;
  const bool vectors = t == DType::kF32 && !interleaved && half >= w.target.lanes && w.target.lanes > 1;
  w.include("sinter/scalar.h");
  w.flops(product(s) * Dim(3));
  w.summary(fmt::format("RotaryEmbedding of {} heads of {}{}", heads.text(), head,
                        interleaved ? ", interleaved" : ""));
  const HeadLayout layout = flat ? HeadLayout::kPositionsFirst : HeadLayout::kHeadsFirst;
  const Heads x = heads_of(w, w.input(0), layout, heads, length, Dim(head)),
              y = heads_of(w, w.output(0), layout, heads, length, Dim(head));
  const bool looked_up = n.input(3) != nullptr, full = n.attributes.integer("full_angles", 0) != 0;
  if (looked_up) {
    w.include("sinter/status.h");
    w.can_fail();
  } else {
    w.may_overwrite(0);
  }
  w.out.put(loop_text("b", w.dim(s[0])));
  w.out.put(loop_text("i", w.dim(length)));
  if (looked_up) {
    w.out.line("const std::int64_t position = {}[b * {} + i];", w.input(3), factor_text(w, length));
    w.out.line("if (position < 0 || position >= {}) return sinter::kIndexError;",
               w.dim(n.inputs[1]->type.shape[0]));
  }
  const auto angles = [&](const char* name, size_t input) {
    const bool shared = n.inputs[input]->type.shape[0].is(1);  // by all of the batch
    const std::string row = looked_up ? "position"
                            : shared  ? "i"
                                      : fmt::format("(b * {} + i)", factor_text(w, length));
    w.out.line("const auto* const {} = {} + {} * {};", name, w.input(input), row, full ? turned : half);
  };
  angles("cosines", 1);
  angles("sines", 2);
  w.out.put(loop_text("h", w.dim(heads)));
  w.out.line("const auto* const from = {} + i * {};", x.at("b", "h"), x.position);
  w.out.line("auto* const to = {} + i * {};", y.at("b", "h"), y.position);
  w.out.line("std::int64_t j = 0;");
  if (vectors) {
    w.out.line("for (; j + kLanes <= {}; j += kLanes) {{", half);
    w.out.line("const f32v a = load(from + j), c = load(from + j + {});", half);
    w.out.line("const f32v cosine = load(cosines + j), sine = load(sines + j);");
    if (full)
      w.out.line("const f32v cosine2 = load(cosines + j + {0}), sine2 = load(sines + j + {0});", half);
    w.out.line("store(to + j, fnma(sine, c, mul(cosine, a)));");
    w.out.line("store(to + j + {0}, fma(sine{1}, a, mul(cosine{1}, c)));", half, full ? "2" : "");
    w.out.line("}}");
  }
  if (!vectors || half % w.target.lanes != 0) {
    const std::string first = interleaved ? "2 * j" : "j",
                      second = interleaved ? "2 * j + 1" : fmt::format("j + {}", half);
    const std::string type = compute_type(t);
    w.out.line("for (; j < {}; ++j) {{", half);
    w.out.line("const {} a = {}, c = {};", type, load_text(t, "from[" + first + "]"),
               load_text(t, "from[" + second + "]"));
    const auto load_angles = [&](const char* suffix, const std::string& at) {
      w.out.line("const {0} cosine{1} = {2}, sine{1} = {3};", type, suffix,
                 load_text(t, "cosines[" + at + "]"), load_text(t, "sines[" + at + "]"));
    };
    load_angles("", full ? first : "j");
    if (full) load_angles("2", second);
    w.out.line("to[{}] = {};", first, store_text(t, "cosine * a - sine * c"));
    w.out.line("to[{}] = {};", second,
               store_text(t, full ? "sine2 * a + cosine2 * c" : "sine * a + cosine * c"));
    w.out.line("}}");
  }
  if (turned < head) w.out.line("for (std::int64_t e = {0}; e < {1}; ++e) to[e] = from[e];", turned, head);
  for (int i = 0; i < 3; ++i) w.out.line("}}");
  if (looked_up) w.out.line("return 0;");
}

}  // namespace

const std::vector<Kernel>& kernels_rotary() {
  static const std::vector<Kernel> table = {
      {"rotary", "RotaryEmbedding, both ways to pair elements", accepts, emit}};
  return table;
}

}  // namespace sinter
