#include "ir/expr.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/error.h"

namespace sinter {
namespace {
ExprPtr make(Expr e) { return std::make_shared<const Expr>(std::move(e)); }
}  // namespace

ExprPtr Expr::accumulator(DType t) { return make({.kind = Kind::kAccumulator, .dtype = t, .args = {}}); }
ExprPtr Expr::input(int operand, DType t) {
  return make({.kind = Kind::kOperand, .dtype = t, .operand = operand, .args = {}});
}
ExprPtr Expr::constant(double v, DType t) {
  Expr e{.kind = Kind::kConstant, .dtype = t, .args = {}};
  if (is_float(t))
    e.real = v;
  else
    e.integer = static_cast<int64_t>(v);
  return make(std::move(e));
}
ExprPtr Expr::constant_integer(int64_t v, DType t) {
  Expr e{.kind = Kind::kConstant, .dtype = t, .args = {}};
  if (is_float(t))
    e.real = static_cast<double>(v);
  else
    e.integer = v;
  return make(std::move(e));
}
ExprPtr Expr::call(std::string_view name, std::vector<ExprPtr> args) {
  const ScalarFn* fn = scalar_fn(name);
  SINTER_CHECK(static_cast<int>(args.size()) == fn->arity, "wrong number of arguments");
  const DType t = fn->to_bool ? DType::kBool : args.back()->dtype;
  return make({.kind = Kind::kCall, .dtype = t, .fn = fn, .args = std::move(args)});
}
ExprPtr Expr::cast(ExprPtr x, DType to) {
  if (x->dtype == to) return x;
  return make({.kind = Kind::kCast, .dtype = to, .args = {std::move(x)}});
}

std::string text(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::kAccumulator: return "acc";
    case Expr::Kind::kOperand: return fmt::format("in{}", e.operand);
    case Expr::Kind::kConstant:
      return is_float(e.dtype) ? fmt::format("{}", static_cast<float>(e.real)) : std::to_string(e.integer);
    case Expr::Kind::kCast: return fmt::format("{}({})", name_of(e.dtype), text(*e.args[0]));
    case Expr::Kind::kCall: break;
  }
  std::string s = std::string(e.fn->name) + "(";
  for (size_t i = 0; i < e.args.size(); ++i) s += (i ? ", " : "") + text(*e.args[i]);
  return s + ")";
}

int node_count(const Expr& e) {
  int n = 1;
  for (const ExprPtr& a : e.args) n += node_count(*a);
  return n;
}

ExprPtr rewrite_leaves(const ExprPtr& root, const std::function<ExprPtr(const Expr&)>& f) {
  std::map<const Expr*, ExprPtr> done;  // shared subtrees stay shared
  std::function<ExprPtr(const ExprPtr&)> visit = [&](const ExprPtr& e) -> ExprPtr {
    if (auto it = done.find(e.get()); it != done.end()) return it->second;
    if (e->args.empty()) {
      ExprPtr r = f(*e);
      return done[e.get()] = r ? r : e;
    }
    Expr copy = *e;
    for (ExprPtr& a : copy.args) a = visit(a);
    return done[e.get()] = make(std::move(copy));
  };
  return visit(root);
}

std::vector<int64_t> broadcast_shape(const std::vector<std::vector<int64_t>>& shapes) {
  size_t rank = 0;
  for (const auto& s : shapes) rank = std::max(rank, s.size());
  std::vector<int64_t> out(rank, 1);
  for (const auto& s : shapes)
    for (size_t i = 0; i < s.size(); ++i) {
      int64_t& d = out[rank - s.size() + i];
      if (d == 1)
        d = s[i];
      else if (s[i] != 1 && s[i] != d)
        refuse("shapes do not broadcast: {} against {}", s[i], d);
    }
  return out;
}

namespace {

// Strides of a tensor of `shape` read as if it had been broadcast to `out`; 0 along repeated axes.
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& shape, const std::vector<int64_t>& out) {
  const std::vector<int64_t> own = row_major_strides(shape);
  std::vector<int64_t> s(out.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) s[out.size() - shape.size() + i] = own[i];
  return s;
}

Tensor apply_fn(const Expr& e, const std::vector<Tensor>& args) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& t : args) shapes.push_back(t.shape());
  Tensor out(e.dtype, broadcast_shape(shapes));
  std::vector<std::vector<int64_t>> strides;
  for (const Tensor& t : args) strides.push_back(broadcast_strides(t.shape(), out.shape()));
  const DType in = args.back().dtype();
  const bool real = is_float(in), natural = is_unsigned(in) && e.fn->natural;
  if (real ? !e.fn->real : !(e.fn->integer || natural))
    refuse("{} is not defined for {}", e.fn->name, name_of(in));
  std::vector<int64_t> index(out.shape().size(), 0), at(args.size(), 0);
  for (int64_t i = 0; i < out.size(); ++i) {
    double r[3] = {};
    int64_t n[3] = {};
    uint64_t u[3] = {};
    for (size_t k = 0; k < args.size(); ++k) {
      if (real)
        r[k] = args[k].real(at[k]);
      else
        n[k] = args[k].integer(at[k]), u[k] = static_cast<uint64_t>(n[k]);
    }
    if (real && e.fn->to_bool)
      out.as<bool>()[i] = e.fn->real(r) != 0;
    else if (real)
      out.set_real(i, e.fn->real(r));
    else if (e.fn->to_bool)
      out.as<bool>()[i] = natural ? e.fn->natural(u) != 0 : e.fn->integer(n) != 0;
    else
      out.set_integer(i, natural ? static_cast<int64_t>(e.fn->natural(u)) : e.fn->integer(n));
    for (size_t d = index.size(); d-- > 0;) {
      ++index[d];
      for (size_t k = 0; k < args.size(); ++k) at[k] += strides[k][d];
      if (index[d] < out.shape()[d]) break;
      for (size_t k = 0; k < args.size(); ++k) at[k] -= strides[k][d] * out.shape()[d];
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

Tensor evaluate(const Expr& e, const std::vector<Tensor>& inputs, const Tensor* accumulator) {
  switch (e.kind) {
    case Expr::Kind::kAccumulator: SINTER_CHECK(accumulator); return *accumulator;
    case Expr::Kind::kOperand: return inputs.at(static_cast<size_t>(e.operand));
    case Expr::Kind::kConstant: {
      Tensor t(e.dtype, {});
      if (is_float(e.dtype))
        t.set_real(0, e.real);
      else
        t.set_integer(0, e.integer);
      return t;
    }
    case Expr::Kind::kCast: return evaluate(*e.args[0], inputs, accumulator).converted(e.dtype);
    case Expr::Kind::kCall: break;
  }
  std::vector<Tensor> args;
  for (const ExprPtr& a : e.args) args.push_back(evaluate(*a, inputs, accumulator));
  return apply_fn(e, args);
}

}  // namespace sinter
