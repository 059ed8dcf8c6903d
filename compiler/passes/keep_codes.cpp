// keep_codes: constant matrices that are stored as integers of 2 to 8 bits stay so where floats are
// multiplied by them and where their rows are looked up.
//
// A matrix is one of integers behind `dequantize` (blocks along the summed axis, channels, or one scale), or
// behind a Cast with or without a Sub of a zero point and a Mul by a scale, and perhaps a Transpose. MatMul
// and Gemm by it become product_of_codes, a Gather of its rows rows_of_codes (ops/products/codes.h); both
// read one set of constants, so that a table that is looked up and multiplied by is stored once. A matrix
// that something else reads, too, is stored as floats for that anyway and becomes floats for all.
//
// --exact: only float32 that nothing rounds on the way, and the rows of a product stay floats whatever its
// accuracy_level (attribute `floats`). Rows that are bytes themselves are left to integer_products; where the
// target has no products of bytes they are floats by floats.
#include <cmath>
#include <map>

#include "ops/products/codes.h"
#include "ops/products/contraction.h"
#include "passes/passes.h"
#include "passes/quantised.h"

namespace sinter {
namespace {

bool is_code_type(DType t) { return t == DType::kI8 || t == DType::kU8 || is_packed(t); }
bool is_cast(const Node* n) { return n && is_op(n, "Cast"); }
bool is_transpose(const Node* n) {
  return n && is_op(n, "Transpose") && transpose_perm(*n) == std::vector<int64_t>{1, 0};
}
// Between float types: what it rounds isn't kept.
bool is_float_cast(const Node* n) {
  return is_cast(n) && is_float(n->inputs[0]->type.dtype) && is_float(n->outputs[0]->type.dtype);
}

// A scale or zero point for each index of a matrix of integers, or for each block of indices.
struct Grid {
  Tensor t;  // of at most two axes; empty: `all`
  double all = 0;
  int64_t block[2] = {1, 1};
  int64_t extent(size_t axis) const {
    const int64_t missing = 2 - t.rank();
    return !t || static_cast<int64_t>(axis) < missing ? 1 : t.dim(static_cast<int64_t>(axis) - missing);
  }
  double at(int64_t i, int64_t j) const {
    if (!t) return all;
    return t.real((extent(0) == 1 ? 0 : i / block[0]) * extent(1) + (extent(1) == 1 ? 0 : j / block[1]));
  }
};

// Of an operand that broadcasts against the integers. Lowering writes blocks as a Gather of the same index
// again and again.
std::optional<Grid> grid_of(const Value* v) {
  Grid g;
  const Node* n = v->producer;
  if (is_cast(n) && v->type.dtype == DType::kF32) n = n->inputs[0]->producer;  // numbers stay what they are
  if (n && is_op(n, "Gather") && n->inputs[1]->data && n->inputs[1]->data->rank() == 1) {
    g.t = constant_of(n->inputs[0]);
    const Tensor& at = *n->inputs[1]->data;
    int64_t block = 0;
    while (block < at.size() && at.integer(block) == 0) ++block;
    for (int64_t i = 0; i < at.size(); ++i)
      if (at.integer(i) != i / block) return std::nullopt;
    if (!g.t || g.t.rank() != 2) return std::nullopt;
    const int64_t axis = n->attributes.integer("axis", 0);
    g.block[axis < 0 ? axis + 2 : axis] = block;
    return g;
  }
  g.t = constant_of(v);
  if (!g.t || g.t.rank() > 2) return std::nullopt;
  return g;
}

// The type in which the model has the contents.
DType stored_type(const Value* v) {
  while (v->producer && !v->data &&
         (is_cast(v->producer) || is_op(v->producer, "Gather") || is_op(v->producer, "Reshape")))
    v = v->producer->inputs[0];
  return v->type.dtype;
}

struct Matrix {
  const Node* last;  // what makes floats of it
  Tensor integers;
  Grid scale, zero;
  DType scales;  // the type they have in the model
};

// The float matrix that `n` makes of constant integers.
std::optional<Matrix> matrix_of(const Node* n) {
  if (!n || n->outputs[0]->type.shape.size() != 2) return std::nullopt;
  Matrix m{n, {}, {{}, 1}, {{}, 0}, DType::kF32};
  const Value *q = nullptr, *scale = nullptr, *zero = nullptr;
  if (is_ours(n, "dequantize")) {
    q = n->inputs[0], scale = n->inputs[1], zero = n->input(2);
  } else {
    if (is_op(n, "Mul")) {
      const bool second = is_cast(n->inputs[1]->producer) || is_op(n->inputs[1]->producer, "Sub");
      scale = n->inputs[second ? 0 : 1];
      n = n->inputs[second ? 1 : 0]->producer;
    }
    if (n && is_op(n, "Sub")) zero = n->inputs[1], n = n->inputs[0]->producer;
    if (!is_cast(n)) return std::nullopt;
    q = n->inputs[0];
  }
  if (!is_code_type(q->type.dtype) || q->type.shape.size() != 2 ||
      !(q->type.shape == m.last->outputs[0]->type.shape))
    return std::nullopt;
  m.integers = constant_of(q);
  const auto scales = scale ? grid_of(scale) : m.scale, zeros = zero ? grid_of(zero) : m.zero;
  if (!m.integers || !scales || !zeros) return std::nullopt;
  m.scale = *scales, m.zero = *zeros;
  if (scale) m.scales = stored_type(scale);
  return m;
}

class Keeper {
 public:
  Keeper(Graph& g, const Order&, bool exact = false) : g_(g), exact_(exact) {}

  bool fuse(Node* n) {
    const bool gather = is_op(n, "Gather"), gemm = is_op(n, "Gemm");
    if (!gather && !gemm && !is_op(n, "MatMul")) return false;
    const size_t input = gather ? 0 : 1;
    bool turned = false;
    const Value* v = n->inputs[input];
    const Node* maker = v->producer;
    for (; is_transpose(maker) || (is_float_cast(maker) && !exact_); maker = maker->inputs[0]->producer)
      turned ^= is_transpose(maker);
    const auto m = matrix_of(maker);
    if (!m || !is_use(*n, v, turned)) return false;
    const size_t summed = summed_axis(*n, turned);
    if (!only_coded(m->last->outputs[0], false, summed)) return false;
    const Coded& coded = coded_of(*m, summed);
    if (coded.parts.empty()) return false;
    Value* y = gather
                   ? add(n, find_op("sinter", "rows_of_codes"), n->inputs[1], coded)
                   : add(n, find_op("sinter", "product_of_codes"), cast(n, n->inputs[0], DType::kF32), coded);
    y = cast(n, y, n->outputs[0]->type.dtype);
    if (gemm && n->input(2)) y = add(n, find_op("", "Add"), {y, n->inputs[2]});
    y->type = n->outputs[0]->type;
    bypass(g_, n->outputs[0], y);
    return true;
  }

 private:
  // The axis of the integers that a product sums over, or that a looked up row has.
  static size_t summed_axis(const Node& n, bool turned) {
    if (is_op(&n, "Gather")) return 1;
    const bool transposed = is_op(&n, "Gemm") && n.attributes.integer("transB", 0) != 0;
    return transposed != turned ? 1 : 0;
  }

  // Whether the node reads v, the matrix or its transpose, as codes can be read.
  bool is_use(const Node& n, const Value* v, bool turned) const {
    if (!n.has_output(0)) return false;
    if (is_op(&n, "Gather"))
      return n.inputs[0] == v && !turned && n.attributes.integer("axis", 0) == 0 && n.inputs[1] != v;
    if (!is_op(&n, "MatMul") && !is_op(&n, "Gemm")) return false;
    const Value* x = n.inputs[0];
    if (n.inputs[1] != v || x == v || sums_integers(n) || !is_half_or_single(x) || x->type.shape.size() < 2)
      return false;
    if (is_ours(x->producer, "dequantize") && !x->producer->inputs[0]->data) return false;
    if (!is_op(&n, "Gemm")) return true;
    return n.input(2) != v && n.attributes.integer("transA", 0) == 0 && n.attributes.real("alpha", 1) == 1 &&
           (!n.input(2) || n.attributes.real("beta", 1) == 1);
  }
  bool is_half_or_single(const Value* v) const {
    return exact_ ? v->type.dtype == DType::kF32 : is_float(v->type.dtype) && v->type.dtype != DType::kF64;
  }

  // Whether all that is made of the floats can be made of the codes, along the same axis.
  bool only_coded(const Value* v, bool turned, size_t summed) const {
    if (g_.is_output(v)) return false;
    for (const Node* u : v->users) {
      if (!u->has_output(0) || !g_.has_uses(u->outputs[0])) continue;  // replaced
      if (is_transpose(u) || is_float_cast(u)) {
        if (!only_coded(u->outputs[0], turned != is_transpose(u), summed)) return false;
      } else if (!is_use(*u, v, turned) || summed_axis(*u, turned) != summed) {
        return false;
      }
    }
    return true;
  }

  // What a matrix has become: codes, scales and perhaps zero points. No parts: its scales change along the
  // summed axis otherwise than in blocks.
  struct Coded {
    CodeForm form;
    std::vector<Value*> parts;
  };
  const Coded& coded_of(const Matrix& m, size_t summed) {
    const auto [at, fresh] = made_.try_emplace(m.last);
    if (fresh) at->second = make_codes(m, summed);
    return at->second;
  }

  // The result of a new node in front of n.
  Value* add(Node* n, const Op* op, std::vector<Value*> in, const Attributes& attributes = {}) {
    Value* out = g_.add_value(fmt::format("{}/{}", n->name, op->name), {});
    Node* made = g_.add_node(op, out->name, std::move(in), {out}, n);
    made->attributes = attributes;
    made->sources = n->sources;
    infer(g_, *made);
    return out;
  }
  Value* add(Node* n, const Op* op, Value* x, const Coded& c) {
    std::vector<Value*> in{x};
    in.insert(in.end(), c.parts.begin(), c.parts.end());
    return add(n, op, std::move(in), attributes_of(c.form));
  }
  Value* cast(Node* n, Value* v, DType to) {
    if (v->type.dtype == to) return v;
    Attributes a;
    a.set("to", static_cast<int64_t>(onnx_of(to)));
    return add(n, find_op("", "Cast"), {v}, a);
  }

  static std::optional<int64_t> block_along(const Grid& g, size_t axis, int64_t extent) {
    if (g.extent(axis) == 1) return extent;
    if (g.block[axis] > 1 && g.block[axis] % 16 == 0) return g.block[axis];
    return std::nullopt;
  }

  Coded make_codes(const Matrix& m, size_t summed) {
    const int64_t k = m.integers.dim(static_cast<int64_t>(summed)),
                  n = m.integers.dim(1 - static_cast<int64_t>(summed));
    const auto scales = block_along(m.scale, summed, k), zeros = block_along(m.zero, summed, k);
    constexpr int64_t kLeast = 16;  // shorter rows are not worth a block
    if (!scales || !zeros || k < kLeast || n < 1) return {};
    if (*scales != *zeros && *scales < k && *zeros < k) return {};
    const DType t = m.integers.dtype();
    const int64_t bits = bits_of(t), flip = is_signed(t) ? int64_t{1} << (bits - 1) : 0, each = 8 / bits,
                  block = std::min(*scales, *zeros) < k ? std::min(*scales, *zeros)
                                                        : (k + each - 1) / each * each;
    CodeForm f{n, k, bits, block, 0};
    const auto of = [&](int64_t row, int64_t i) { return summed == 1 ? row * k + i : i * n + row; };
    const auto value = [&](const Grid& g, int64_t row, int64_t b) {
      return summed == 1 ? g.at(row, b * block) : g.at(b * block, row);
    };
    Tensor codes(DType::kU8, {n, f.row_bytes()}), scale(DType::kF32, {n, f.blocks()}),
        zero(DType::kF32, {n, f.blocks()});
    bool one_zero = true, are_codes = true;
    for (int64_t row = 0; row < n; ++row) {
      uint8_t* to = codes.as<uint8_t>() + row * f.row_bytes();
      for (int64_t i = 0; i < k; ++i)
        to[i / each] |= static_cast<uint8_t>((m.integers.integer(of(row, i)) + flip) << (i % each * bits));
      for (int64_t b = 0; b < f.blocks(); ++b) {
        scale.set_real(row * f.blocks() + b, value(m.scale, row, b));
        const double z = value(m.zero, row, b) + static_cast<double>(flip);
        zero.set_real(row * f.blocks() + b, z);
        one_zero &= z == zero.real(0);
        are_codes &= z >= 0 && z < static_cast<double>(int64_t{1} << bits) && z == std::floor(z);
      }
    }
    f.zero = zero.real(0);
    const std::string& name = m.last->name;
    std::vector<Value*> parts{
        g_.add_constant(name + "/codes", codes),
        g_.add_constant(name + "/scales", is_stored_float(m.scales) ? scale.converted(m.scales) : scale)};
    if (!one_zero) parts.push_back(g_.add_constant(name + "/zeros", are_codes ? packed(zero, f) : zero));
    return {f, std::move(parts)};
  }

  static Tensor packed(const Tensor& zero, const CodeForm& f) {
    Tensor bytes(DType::kU8, {f.n, f.zero_row_bytes()});
    const int64_t each = 8 / f.bits;
    for (int64_t row = 0; row < f.n; ++row)
      for (int64_t b = 0; b < f.blocks(); ++b)
        bytes.as<uint8_t>()[row * f.zero_row_bytes() + b / each] |=
            static_cast<uint8_t>(zero.integer(row * f.blocks() + b) << (b % each * f.bits));
    return bytes;
  }

  Graph& g_;
  const bool exact_;
  std::map<const Node*, Coded> made_;  // by what made floats of the integers
};

struct ExactKeeper : Keeper {
  ExactKeeper(Graph& g, const Order& order) : Keeper(g, order, true) {}
};

}  // namespace

bool keep_codes(Graph& g, const PassOptions& options) {
  if (!options.exact) return fuse_each<Keeper>(g);
  const bool changed = fuse_each<ExactKeeper>(g);
  for (const auto& n : g.nodes)
    if (is_of_codes(*n, "product_of_codes")) {
      n->attributes.erase("accuracy_level");
      n->attributes.set("floats", int64_t{1});
    }
  return changed;
}

}  // namespace sinter
