// integer_products: products of dequantised tensors are computed as the integers that they stand for.
//
// DequantizeLinear of bytes and of constant weights in front of a
// Conv, MatMul or Gemm becomes a product with the attribute `integer` (ops/products/contraction.h), behind
// which the sums are scaled: sum((x - x0) * sx * w * sw) = sum((x - x0) * w) * (sx * sw). The integers are
// exact; what the model rounds in every product and sum is rounded twice here, in the scale and in the bias.
// Where the result goes through one activation into a QuantizeLinear, the steps of that are part of the
// scale: the division would be an operation more an element. Products of ConvInteger and its kin, which
// lowering writes with int16, become products of bytes where their operands are that; of matrices also with a
// zero point of x that the run finds, whose share is taken off the sums.
//
// A weight's zero point is taken off now, so that it must leave -128 to 127. What doesn't fit (scales for
// each channel of x, operands that the run makes) stays a product of floats.
#include <cmath>

#include "ops/products/contraction.h"
#include "passes/passes.h"
#include "passes/quantised.h"

namespace sinter {
namespace {

// Bytes less a zero point, and what they are multiplied by.
struct Activations {
  Value* bytes;
  int64_t zero;
  double scale;
};
struct Weights {
  Tensor bytes;               // int8, the zero point taken off
  std::vector<double> scale;  // one, or one for each output channel
};

class Rewriter {
 public:
  Rewriter(Graph& g, const Order& order) : g_(g), order_(order) {}

  bool fuse(Node* n) {
    if (is_op(n, "Conv") && !sums_integers(*n)) return product_of_floats(n, 0, false);
    if (is_op(n, "MatMul") && !sums_integers(*n)) return is_of_rows(*n) && product_of_floats(n, 1, false);
    if (is_op(n, "Gemm") && n->attributes.integer("transA", 0) == 0 && n->attributes.real("alpha", 1) == 1 &&
        n->attributes.real("beta", 1) == 1)
      return product_of_floats(n, n->attributes.integer("transB", 0) ? 0 : 1,
                               n->attributes.integer("transB", 0) != 0);
    return (is_op(n, "Conv") || is_op(n, "MatMul")) && product_of_words(n);
  }

 private:
  // Rows by a matrix: what kernels of bytes multiply.
  static bool is_of_rows(const Node& matmul) {
    return matmul.inputs[0]->type.shape.size() >= 2 && matmul.inputs[1]->type.shape.size() == 2;
  }

  // The factors of `dequantize` nodes: one zero point and one positive scale for all.
  static std::optional<Activations> activations(const Value* v) {
    const auto steps = dequantized_steps(v->producer);
    return steps ? std::optional(Activations{v->producer->inputs[0], steps->zero, steps->scale})
                 : std::nullopt;
  }

  // Of a constant tensor whose axis `out` counts the output channels.
  static std::optional<Weights> weights(const Value* v, size_t out) {
    const Node* n = v->producer;
    if (n && is_op(n, "Transpose") && transpose_perm(*n) == std::vector<int64_t>{1, 0}) {
      auto w = weights(n->inputs[0], 1 - out);
      if (w) w->bytes = evaluate(*n, {w->bytes})[0];
      return w;
    }
    if (!is_ours(n, "dequantize") || !is_bytes(n->inputs[0])) return std::nullopt;
    const Tensor w = constant_of(n->inputs[0]), scale = constant_of(n->inputs[1]),
                 zero = n->input(2) ? constant_of(n->inputs[2]) : Tensor::scalar(0.0f);
    if (!w || !scale || !zero || w.size() == 0) return std::nullopt;
    const int64_t channels = w.dim(out);
    // One for all, or one for each channel: an axis `channels` at the place of `out`, counted from the last.
    const auto repeats = [&](const Tensor& p) {
      if (p.size() == 1) return true;
      const size_t behind = w.shape().size() - 1 - out;
      return p.size() == channels && p.shape().size() > behind &&
             p.dim(p.shape().size() - 1 - behind) == channels;
    };
    if (!repeats(scale) || !repeats(zero)) return std::nullopt;
    Weights r;
    for (int64_t c = 0; c < scale.size(); ++c) r.scale.push_back(scale.real(c));
    int64_t inner = 1;
    for (size_t a = out + 1; a < w.shape().size(); ++a) inner *= w.dim(a);
    r.bytes = Tensor(DType::kI8, w.shape());
    for (int64_t i = 0; i < w.size(); ++i) {
      const double q =
          static_cast<double>(w.integer(i)) - zero.real(zero.size() == 1 ? 0 : i / inner % channels);
      if (q < -128 || q > 127) return std::nullopt;
      r.bytes.set_integer(i, static_cast<int64_t>(q));
    }
    return r;
  }

  // No sum of `depth` products wraps.
  static bool holds_sums(int64_t depth) { return depth < (int64_t{1} << 31) / (255 * 128) - 1; }

  bool product_of_floats(Node* n, size_t out, bool transposed) {
    const auto x = activations(n->inputs[0]);
    if (!x || n->outputs[0]->type.dtype != DType::kF32) return false;
    const auto w = weights(n->inputs[1], out);
    if (!w || !holds_sums(w->bytes.size() / w->bytes.dim(out))) return false;
    const bool conv = is_op(n, "Conv");
    const int64_t channels = w->bytes.dim(out);
    const Tensor bias = n->input(2) ? constant_of(n->inputs[2]) : Tensor();
    if (n->input(2) && !bias) return false;
    const Tail tail = quantiser_behind(n);
    // Scales against the product: [M, 1, ..] for Conv, [N] for matrices. So is Conv's bias; Gemm's broadcasts
    // as it does there, along either axis.
    std::vector<int64_t> shape{channels};
    if (conv) shape.insert(shape.end(), n->inputs[1]->type.shape.size() - 2, 1);
    Tensor factor(DType::kF32, shape);
    for (int64_t c = 0; c < channels; ++c) {
      factor.set_real(c, x->scale * w->scale[w->scale.size() == 1 ? 0 : static_cast<size_t>(c)] / tail.scale);
      if (!is_scale(factor.real(c))) return false;
    }
    Tensor offset;
    if (bias) offset = Tensor(DType::kF32, conv ? shape : bias.shape());
    for (int64_t i = 0; i < (bias ? bias.size() : 0); ++i) {
      offset.set_real(i, bias.real(i) / tail.scale);
      if (!std::isfinite(offset.real(i))) return false;
    }
    Value* const bytes =
        g_.add_constant(n->name + "/weights", transposed ? w->bytes.transposed({1, 0}) : w->bytes);
    Attributes attributes;
    if (conv) attributes = n->attributes;
    attributes.set("integer", int64_t{1});
    attributes.set("x_zero", x->zero);
    Value* y = add(n, conv ? "Conv" : "MatMul", "sums", {x->bytes, bytes}, attributes);
    Attributes to_float;
    to_float.set("to", static_cast<int64_t>(onnx_of(DType::kF32)));
    y = add(n, "Cast", "real", {y}, to_float);
    y = add(n, "Mul", "scaled", {y, g_.add_constant(n->name + "/scale", factor)});
    if (bias) y = add(n, "Add", "biased", {y, g_.add_constant(n->name + "/bias", offset)});
    y->type = n->outputs[0]->type;
    if (tail.quantise)
      rescale(n, tail, y);
    else
      bypass(g_, n->outputs[0], y);
    return true;
  }

  // The activation (or none) and the `quantize` node that alone use n's result.
  struct Tail {
    Node* activation = nullptr;
    Node* quantise = nullptr;
    double scale = 1;
  };
  Tail quantiser_behind(const Node* n) const {
    Tail t;
    Node* user = only_user(g_, order_, n);
    if (user && (is_op(user, "Relu") || is_bounded(*user))) {
      t.activation = user;
      user = only_user(g_, order_, user);
    }
    const auto steps = quantized_steps(user);
    if (!steps) return {};
    t.quantise = user;
    t.scale = steps->scale;
    return t;
  }
  static bool is_bounded(const Node& n) {
    return is_op(&n, "Clip") && (!n.input(1) || number_of(n.inputs[1])) &&
           (!n.input(2) || number_of(n.inputs[2]));
  }

  // Activation and quantiser once more, for y, which is in units of the quantiser's steps.
  void rescale(Node* n, const Tail& t, Value* y) {
    if (t.activation) {
      std::vector<Value*> in{y};
      for (size_t i = 1; i < t.activation->inputs.size(); ++i)
        in.push_back(!t.activation->inputs[i]
                         ? nullptr
                         : g_.add_constant(t.activation->name + "/bound",
                                           Tensor::scalar(static_cast<float>(
                                               *number_of(t.activation->inputs[i]) / t.scale))));
      y = add(n, t.activation->op->name, "activation", in);
      add_sources(*y->producer, *t.activation);
    }
    Node* q = t.quantise;
    g_.set_input(q, 0, y);
    g_.set_input(q, 1, g_.add_constant(q->name + "/one", Tensor::scalar(1.0f)));
  }

  // Conv or MatMul of int16 that were bytes.
  bool product_of_words(Node* n) {
    const size_t out = is_op(n, "Conv") ? 0 : 1;
    if (!sums_integers(*n) || n->inputs[0]->type.dtype != DType::kI16) return false;
    if (is_op(n, "MatMul") && !is_of_rows(*n)) return false;
    if (n->input(2) && !n->inputs[2]->data) return false;
    const auto x = bytes_of(n->inputs[0]);
    const auto computed = x ? std::nullopt : bytes_with_zero(n);
    if (!x && !computed) return false;
    const Tensor words = constant_of(n->inputs[1]);
    if (!words || words.size() == 0 || !holds_sums(words.size() / words.dim(out))) return false;
    for (int64_t i = 0; i < words.size(); ++i)
      if (words.integer(i) < -128 || words.integer(i) > 127) return false;
    Value* const bytes = g_.add_constant(n->name + "/weights", words.converted(DType::kI8));
    if (computed) return take_off(n, *computed, words, bytes), true;
    g_.set_input(n, 0, x->bytes);
    g_.set_input(n, 1, bytes);
    n->attributes.set("x_zero", x->zero);
    return true;
  }

  // Bytes less a zero point that the run finds, as DynamicQuantizeLinear does.
  struct Computed {
    Value *bytes, *zero;
  };
  static std::optional<Computed> bytes_with_zero(const Node* matmul) {
    const Node* n = matmul->inputs[0]->producer;
    if (!is_op(matmul, "MatMul") || !n || !is_op(n, "Sub")) return std::nullopt;
    Value* of[2];
    for (size_t i : {0, 1}) {
      const Node* cast = n->inputs[i]->producer;
      if (!cast || !is_op(cast, "Cast") || !is_bytes(cast->inputs[0]) || cast->inputs[0]->data)
        return std::nullopt;
      of[i] = cast->inputs[0];
    }
    const Shape &x = of[0]->type.shape, &zero = of[1]->type.shape;
    if (zero.size() > x.size() || (!zero.empty() && !zero.back().is(1))) return std::nullopt;
    return Computed{of[0], of[1]};
  }

  // sum((x - zero) * w) = sum(x * w) - zero * sum(w): one zero point for all rows, or one each.
  void take_off(Node* n, const Computed& x, const Tensor& words, Value* bytes) {
    Attributes to_sums, to_int;
    to_sums.set("integer", int64_t{1});
    to_int.set("to", static_cast<int64_t>(onnx_of(DType::kI32)));
    const int64_t columns = words.dim(1);
    Tensor columns_sums(DType::kI32, {columns});
    for (int64_t i = 0; i < words.size(); ++i)
      columns_sums.set_integer(i % columns, columns_sums.integer(i % columns) + words.integer(i));
    Value* sums = add(n, "MatMul", "sums", {x.bytes, bytes}, to_sums);
    Value* share = add(n, "Mul", "share",
                       {add(n, "Cast", "zero", {x.zero}, to_int),
                        g_.add_constant(n->name + "/columns", std::move(columns_sums))});
    Value* y = add(n, "Sub", "less_zero", {sums, share});
    y->type = n->outputs[0]->type;
    bypass(g_, n->outputs[0], y);
  }

  // int16 of bytes, less a constant or not.
  static std::optional<Activations> bytes_of(const Value* v) {
    const Node* n = v->producer;
    int64_t zero = 0;
    if (n && is_op(n, "Sub")) {
      const auto z = number_of(n->inputs[1]);
      if (!z || n->inputs[1]->type.shape.size() > n->inputs[0]->type.shape.size()) return std::nullopt;
      zero = std::lround(*z);
      n = n->inputs[0]->producer;
    }
    if (!n || !is_op(n, "Cast") || !is_bytes(n->inputs[0]) || n->inputs[0]->data) return std::nullopt;
    return Activations{n->inputs[0], zero, 1};
  }

  // The result of a new node in front of what used `n`.
  Value* add(Node* n, const char* op, const char* name, std::vector<Value*> in,
             const Attributes& attributes = {}) {
    Value* out = g_.add_value(fmt::format("{}/{}", n->name, name), {});
    Node* made = g_.add_node(find_op("", op), out->name, std::move(in), {out}, n);
    made->attributes = attributes;
    made->sources = n->sources;
    infer(g_, *made);
    return out;
  }

  Graph& g_;
  const Order& order_;
};

}  // namespace

bool integer_products(Graph& g, const PassOptions& options) {
  return options.byte_products && !options.exact && fuse_each<Rewriter>(g);
}

}  // namespace sinter
