// Convolutions and matrix products as textbook loops: any element type, either layout, weights that are
// computed at run time. What the tiled kernels do not take ends here, so it is right before it is fast.
// 16-bit floats are summed in float, and int16 and bytes in int32 where the node says so (attribute
// `integer`).
#include "emit/epilogue.h"
#include "ops/op.h"
#include "ops/products/contraction.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool numeric(const Node& n) {
  for (size_t i = 0; i < n.anchor_inputs; ++i)
    if (const Value* v = n.inputs[i]; v && !(is_float(v->type.dtype) || is_integer(v->type.dtype)))
      return false;
  return true;
}

bool accepts_conv(const Node& n, const Context&) {
  const std::string_view op = n.op->name;
  return (op == "Conv" || op == "ConvTranspose") && n.op->domain[0] == 0 && numeric(n);
}

std::string loop(const std::string& v, const std::string& end) {
  return fmt::format("for (std::int64_t {0} = 0; {0} < {1}; ++{0}) {{", v, end);
}

// The row-major offset of (index...) in `shape`.
std::string offset(LayerWriter& w, const Shape& shape, const std::vector<std::string>& index) {
  std::string at;
  for (size_t a = 0; a < shape.size(); ++a)
    at = at.empty() ? index[a] : fmt::format("({} * {} + {})", at, w.dim(shape[a]), index[a]);
  return at.empty() ? "0" : at;
}

std::vector<std::string> data_index(const Node& n, const std::string& batch, const std::string& channel,
                                    const std::vector<std::string>& spatial) {
  std::vector<std::string> i{batch};
  if (!is_channels_last(n.attributes)) i.push_back(channel);
  i.insert(i.end(), spatial.begin(), spatial.end());
  if (is_channels_last(n.attributes)) i.push_back(channel);
  return i;
}

// What products are made and summed in.
DType sum_type(const Node& n) {
  const DType t = n.inputs[0]->type.dtype;
  return sums_integers(n) ? DType::kI32 : t;
}
// An element of input `i`, of the products' type; of bytes less their zero point.
std::string factor(const Node& n, size_t i, const std::string& element) {
  const std::string v = load_text(n.inputs[i]->type.dtype, element);
  if (!sums_integers(n)) return v;
  const int64_t zero = i == 0 ? x_zero_of(n) : 0;
  return zero == 0 ? fmt::format("std::int32_t{{{}}}", v)
                   : fmt::format("(std::int32_t{{{}}} - ({}))", v, zero);
}

std::string typed_zero(DType t) { return fmt::format("static_cast<{}>(0)", compute_type(t)); }

void store(LayerWriter& w, const Epilogue& e, DType t, const std::string& y, const Shape& shape,
           const std::vector<std::string>& index) {
  const std::string value = e.scalar("sum", index, w.out);
  w.out.line("{}[{}] = {};", y, offset(w, shape, index), store_text(e.empty() ? t : e.dtype(), value));
}

void emit_conv(LayerWriter& w) {
  const Node& n = w.node;
  const bool transposed = std::string_view(n.op->name) == "ConvTranspose";
  const Window window = window_of(n);
  const Shape& xs = n.inputs[0]->type.shape;
  const Shape& ws = n.inputs[1]->type.shape;
  const Shape& ys = n.outputs[0]->type.shape;
  const DType t = sum_type(n);
  const int64_t groups = n.attributes.integer("group", 1);
  const Dim in_channels = channels_of(n.attributes, xs), out_channels = channels_of(n.attributes, ys);
  const Dim group_in = exact_div(in_channels, Dim(groups)), group_out = exact_div(out_channels, Dim(groups));
  w.include("sinter/dims.h");
  w.include("sinter/scalar.h");
  w.flops(exact_div(product(transposed ? xs : ys) * product(ws) * Dim(2), ws[0]));
  const std::string x = w.input(0), k = w.input(1), b = n.anchor_inputs > 2 && n.inputs[2] ? w.input(2) : "";
  const Epilogue e(w, ys);
  w.summary(fmt::format("{} of {} as plain loops{}", n.op->name, name_of(t), e.summary()));
  const std::string y = w.output(0);
  const bool last = is_channels_last(n.attributes);
  const size_t rank = window.rank();
  std::vector<std::string> o, taps, in;
  w.out.put(loop("n", w.dim(xs[0])));
  if (!last) w.out.put(loop("m", w.dim(out_channels)));
  for (size_t a = 0; a < rank; ++a) {
    o.push_back(fmt::format("o{}", a));
    taps.push_back(fmt::format("k{}", a));
    in.push_back(fmt::format("i{}", a));
    w.out.put(loop(o[a], w.dim(window.out[a])));
  }
  if (last) w.out.put(loop("m", w.dim(out_channels)));
  w.out.line("{} sum = {};", compute_type(t), b.empty() ? typed_zero(t) : load_text(t, b + "[m]"));
  const std::string first_channel =
      groups == 1 ? "0" : fmt::format("m / {} * {}", w.dim(group_out), w.dim(group_in));
  for (size_t a = 0; a < rank; ++a) {
    w.out.put(loop(taps[a], std::to_string(window.kernel[a])));
    if (transposed) {
      w.out.line("const std::int64_t t{0} = o{0} + {1} - k{0} * {2};", a, w.dim(window.pads_begin[a]),
                 window.dilations[a]);
      w.out.line("const std::int64_t i{0} = t{0} / {1};", a, window.strides[a]);
      w.out.line("if (t{0} < 0 || t{0} % {1} != 0 || i{0} >= {2}) continue;", a, window.strides[a],
                 w.dim(window.in[a]));
    } else {
      w.out.line("const std::int64_t i{0} = o{0} * {1} + k{0} * {2} - {3};", a, window.strides[a],
                 window.dilations[a], w.dim(window.pads_begin[a]));
      w.out.line("if (i{0} < 0 || i{0} >= {1}) continue;", a, w.dim(window.in[a]));
    }
  }
  w.out.put(loop("q", w.dim(group_in)));
  std::vector<std::string> weight =
      transposed ? std::vector<std::string>{fmt::format("({} + q)", first_channel),
                                            groups == 1 ? "m" : fmt::format("m % {}", w.dim(group_out))}
                 : std::vector<std::string>{"m", "q"};
  weight.insert(weight.end(), taps.begin(), taps.end());
  const std::string from =
      x + "[" + offset(w, xs, data_index(n, "n", fmt::format("({} + q)", first_channel), in)) + "]";
  w.out.line("sum = sinter::add(sum, sinter::mul({}, {}));", factor(n, 0, from),
             factor(n, 1, k + "[" + offset(w, ws, weight) + "]"));
  for (size_t a = 0; a < rank + 1; ++a) w.out.line("}}");
  store(w, e, t, y, ys, data_index(n, "n", "m", o));
  for (size_t a = 0; a < rank + 2; ++a) w.out.line("}}");
}

bool accepts_product(const Node& n, const Context&) {
  const std::string_view op = n.op->name;
  return (op == "MatMul" || op == "Gemm") && n.op->domain[0] == 0 && numeric(n);
}

void emit_product(LayerWriter& w) {
  const Node& n = w.node;
  const bool gemm = std::string_view(n.op->name) == "Gemm";
  const bool ta = gemm && n.attributes.integer("transA", 0) != 0,
             tb = gemm && n.attributes.integer("transB", 0) != 0;
  const Shape& as = n.inputs[0]->type.shape;
  const Shape& bs = n.inputs[1]->type.shape;
  const Shape& ys = n.outputs[0]->type.shape;
  const DType t = sum_type(n);
  w.include("sinter/dims.h");
  w.include("sinter/scalar.h");
  const Dim k = ta ? as[0] : as.back();
  w.flops(product(ys) * k * Dim(2));
  const std::string a = w.input(0), b = w.input(1);
  const bool has_c = gemm && n.anchor_inputs > 2 && n.inputs[2] && n.attributes.real("beta", 1) != 0;
  const Strided c = has_c ? broadcast(w, w.input(2), *n.inputs[2], ys) : Strided{};
  const Epilogue e(w, ys);
  w.summary(fmt::format("{} of {} as plain loops{}", n.op->name, name_of(t), e.summary()));
  const std::string y = w.output(0);
  std::vector<std::string> index;
  for (size_t d = 0; d < ys.size(); ++d) {
    index.push_back(fmt::format("i{}", d));
    w.out.put(loop(index.back(), w.dim(ys[d])));
  }
  // The result's axes are the batch, then rows and columns, each missing where its operand is a vector.
  const bool row = as.size() == 1, column = bs.size() == 1;
  const size_t batch = ys.size() - (row ? 0 : 1) - (column ? 0 : 1);
  const std::string i = row ? "0" : index[batch], j = column ? "0" : index.back();
  auto element = [&](const Shape& s, const std::string& r, const std::string& q) {
    std::vector<std::string> at;
    const size_t own = s.size() >= 2 ? s.size() - 2 : 0;
    for (size_t d = 0; d < own; ++d) {
      const size_t axis = batch - own + d;
      at.push_back(s[d].is(1) ? "0"
                   : s[d] == ys[axis] || s[d].lo() > 1
                       ? index[axis]
                       : fmt::format("({} == 1 ? 0 : {})", w.dim(s[d]), index[axis]));
    }
    if (s.size() == 1)
      at.push_back(&s == &as ? q : r);
    else
      at.push_back(r), at.push_back(q);
    return offset(w, s, at);
  };
  w.out.line("{} sum = {};", compute_type(t), typed_zero(t));
  w.out.put(loop("k", w.dim(k)));
  w.out.line("sum = sinter::add(sum, sinter::mul({}, {}));",
             factor(n, 0, a + "[" + (ta ? element(as, "k", i) : element(as, i, "k")) + "]"),
             factor(n, 1, b + "[" + (tb ? element(bs, j, "k") : element(bs, "k", j)) + "]"));
  w.out.line("}}");
  auto scale = [&](const std::string& v, float by) -> std::string {
    if (by == 1) return v;
    if (is_float(t))
      return fmt::format("sinter::mul({}, static_cast<{}>({}))", v, compute_type(t), float_literal(by));
    return fmt::format("sinter::cast_to<{}>(static_cast<double>({}) * {})", cpp_name(t), v, by);
  };
  if (gemm && n.attributes.real("alpha", 1) != 1)
    w.out.line("sum = {};", scale("sum", n.attributes.real("alpha", 1)));
  if (has_c) {
    std::string at;
    for (size_t d = 0; d < 2; ++d)
      if (!c.strides[d].is(0))
        at += fmt::format("{}{} * {}", at.empty() ? "" : " + ", index[d], w.dim(c.strides[d]));
    at = c.pointer + "[" + (at.empty() ? "0" : at);
    w.out.line("sum = sinter::add(sum, {});", scale(load_text(t, at + "]"), n.attributes.real("beta", 1)));
  }
  store(w, e, t, y, ys, index);
  for (size_t d = 0; d < ys.size(); ++d) w.out.line("}}");
}

}  // namespace

const std::vector<Kernel>& kernels_plain() {
  static const std::vector<Kernel> table = {
      {"conv_plain",
       "convolutions of any type and layout as plain loops",
       accepts_conv,
       emit_conv,
       {.work = Work::kLoops}},
      {"product_plain",
       "matrix products of any type as plain loops",
       accepts_product,
       emit_product,
       {.work = Work::kLoops}},
  };
  return table;
}

}  // namespace sinter
