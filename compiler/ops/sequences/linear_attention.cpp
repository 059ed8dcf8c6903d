// LinearAttention (ONNX opset 27): attention without softmax, as a recurrence over a state of [keys, values]
// a head.
//
// At every position the state decays (`gated`: by exp(g), one number a head or one a row), what it already
// gives for the key is taken off the value (`delta`: beta times the difference is what is written), the outer
// product of key and value is added, and each query that shares the head reads its row. All is computed in
// float, or in double where the queries are.
#include <cmath>

#include "ops/op.h"
#include "ops/products/contraction.h"

namespace sinter {
namespace {

bool gates(const Attributes& a) {
  const std::string rule = a.text("update_rule", "gated_delta");
  return rule == "gated" || rule == "gated_delta";
}
bool corrects(const Attributes& a) {
  const std::string rule = a.text("update_rule", "gated_delta");
  return rule == "delta" || rule == "gated_delta";
}

void infer_linear(Inference& x) {
  const Attributes& a = x.attributes();
  const DType t = x.dtype(0);
  x.require(is_float(t), fmt::format("not defined for {}", name_of(t)));
  for (size_t i : {1u, 2u, 4u, 5u})
    if (x.has(i))
      x.require(x.dtype(i) == t, fmt::format("inputs of types {} and {}", name_of(t), name_of(x.dtype(i))));
  if (x.has(3)) x.require(is_float(x.dtype(3)), "past_state is not of floats");
  const std::string rule = a.text("update_rule", "gated_delta");
  x.require(rule == "linear" || gates(a) || corrects(a),
            fmt::format("update_rule is {}", sinter::quoted(rule)));
  x.require(x.has(4) == gates(a),
            fmt::format("decay and update_rule {} do not go together", sinter::quoted(rule)));
  x.require(x.has(5) == corrects(a),
            fmt::format("beta and update_rule {} do not go together", sinter::quoted(rule)));
  const int64_t heads = a.integer("q_num_heads", 0), kv = a.integer("kv_num_heads", 0);
  x.require(heads > 0 && kv > 0 && heads % kv == 0,
            fmt::format("{} heads of queries for {} of keys", heads, kv));
  for (size_t i : {0u, 1u, 2u, 4u, 5u})
    if (x.has(i)) x.require(x.rank(i) == 3, fmt::format("input {} is {}", i, text(x.shape(i))));
  const Shape& q = x.shape(0);
  const auto part = [&](size_t i, int64_t n) {
    const Dim& d = x.shape(i)[2];
    x.require(d.is_static() && d.value() % n == 0, fmt::format("{} elements for {} heads", d.text(), n));
    return Dim(d.value() / n);
  };
  const Dim of_key = part(0, heads), of_value = part(2, kv);
  x.require(of_key.value() > 0, "keys have no elements");
  x.require_equal(part(1, kv), of_key, "elements of queries and keys");
  for (size_t i : {1u, 2u, 4u, 5u})
    if (x.has(i))
      for (size_t d : {0u, 1u})
        x.require_equal(x.shape(i)[d], q[d], fmt::format("axis {} of input {}", d, i));
  if (x.has(4)) {
    const Dim& d = x.shape(4)[2];
    x.require(d.is(kv) || d.is(kv * of_key.value()), fmt::format("{} decays for {} heads", d.text(), kv));
  }
  if (x.has(5)) {
    const Dim& d = x.shape(5)[2];
    x.require(d.is(kv) || d.is(1), fmt::format("{} rates for {} heads", d.text(), kv));
  }
  const Shape state{q[0], Dim(kv), of_key, of_value};
  if (x.has(3)) {
    x.require(x.rank(3) == 4, fmt::format("past_state is {}", text(x.shape(3))));
    for (size_t d = 0; d < 4; ++d)
      x.require_equal(x.shape(3)[d], state[d], fmt::format("axis {} of past_state", d));
  }
  x.set(0, t, {q[0], q[1], Dim(heads) * of_value});
  if (x.out.size() > 1 && x.out[1].present) x.set(1, x.has(3) ? x.dtype(3) : t, state);
}

void eval_linear(Evaluation& e) {
  const Attributes& a = e.attributes();
  const int64_t heads = a.integer("q_num_heads", 1), kv = a.integer("kv_num_heads", 1), group = heads / kv;
  const Tensor &q = e.in[0], &k = e.in[1], &v = e.in[2];
  const int64_t batch = q.dim(0), steps = q.dim(1), dk = q.dim(2) / heads, dv = v.dim(2) / kv;
  const float given = a.real("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(dk)) : static_cast<double>(given);
  Tensor y(q.dtype(), {batch, steps, heads * dv}),
      state(e.has(3) ? e.in[3].dtype() : q.dtype(), {batch, kv, dk, dv});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < kv; ++h) {
      std::vector<double> s(static_cast<size_t>(dk * dv), 0), value(static_cast<size_t>(dv));
      const int64_t at = (b * kv + h) * dk * dv;
      if (e.has(3))
        for (int64_t i = 0; i < dk * dv; ++i) s[static_cast<size_t>(i)] = e.in[3].real(at + i);
      for (int64_t t = 0; t < steps; ++t) {
        const int64_t row = b * steps + t;
        const auto key = [&](int64_t d) { return k.real((row * kv + h) * dk + d); };
        if (e.has(4)) {
          const int64_t each = e.in[4].dim(2) / kv;  // 1 or dk numbers a head
          for (int64_t i = 0; i < dk * dv; ++i)
            s[static_cast<size_t>(i)] *=
                std::exp(e.in[4].real((row * kv + h) * each + (each == 1 ? 0 : i / dv)));
        }
        for (int64_t m = 0; m < dv; ++m) {
          double now = v.real((row * kv + h) * dv + m);
          if (e.has(5)) {
            double known = 0;
            for (int64_t d = 0; d < dk; ++d) known += s[static_cast<size_t>(d * dv + m)] * key(d);
            now = e.in[5].real(e.in[5].dim(2) == 1 ? row : row * kv + h) * (now - known);
          }
          value[static_cast<size_t>(m)] = now;
        }
        for (int64_t i = 0; i < dk * dv; ++i)
          s[static_cast<size_t>(i)] += key(i / dv) * value[static_cast<size_t>(i % dv)];
        for (int64_t g = h * group; g < (h + 1) * group; ++g)
          for (int64_t m = 0; m < dv; ++m) {
            double sum = 0;
            for (int64_t d = 0; d < dk; ++d)
              sum += q.real((row * heads + g) * dk + d) * s[static_cast<size_t>(d * dv + m)];
            y.set_real((row * heads + g) * dv + m, scale * sum);
          }
      }
      for (int64_t i = 0; i < dk * dv; ++i) state.set_real(at + i, s[static_cast<size_t>(i)]);
    }
  e.out[0] = y;
  if (e.node.has_output(1)) e.out[1] = state;
}

}  // namespace

const std::vector<Op>& ops_linear_attention() {
  static const std::vector<Op> table = {{.name = "LinearAttention",
                                         .min_inputs = 3,
                                         .max_inputs = 6,
                                         .max_outputs = 2,
                                         .infer = infer_linear,
                                         .eval = eval_linear}};
  return table;
}

}  // namespace sinter
