#include "ir/expr.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>

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

// The loops of a broadcast: extents and each argument's strides, with neighbouring axes merged where every
// argument walks them as one. The last axis is the run that is computed at a stroke.
struct Loops {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;  // [argument][axis]
};
Loops broadcast_loops(const std::vector<Tensor>& args, const std::vector<int64_t>& shape) {
  std::vector<std::vector<int64_t>> own;
  for (const Tensor& t : args) own.push_back(broadcast_strides(t.shape(), shape));
  Loops l{{1}, std::vector<std::vector<int64_t>>(args.size(), {0})};
  bool first = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    bool merge = true;
    for (size_t k = 0; k < args.size(); ++k) merge &= l.strides[k].back() == own[k][d] * shape[d];
    if (first || merge) {
      l.extents.back() *= shape[d];
      for (size_t k = 0; k < args.size(); ++k) l.strides[k].back() = own[k][d];
    } else {
      l.extents.push_back(shape[d]);
      for (size_t k = 0; k < args.size(); ++k) l.strides[k].push_back(own[k][d]);
    }
    first = false;
  }
  return l;
}

constexpr int64_t kBlock = 512;  // elements that are read, computed and stored together

template <class T>
double widen(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return static_cast<double>(to_float(v));
  else
    return static_cast<double>(v);
}
void load(const Tensor& t, int64_t at, int64_t stride, int64_t n, double* out) {
  with_type(t.dtype(), [&](auto tag) {
    const auto* p = t.as<decltype(tag)>() + at;
    for (int64_t i = 0; i < n; ++i) out[i] = widen(p[i * stride]);
  });
}
void load(const Tensor& t, int64_t at, int64_t stride, int64_t n, int64_t* out) {
  with_type(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      const T* p = t.as<T>() + at;
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<int64_t>(p[i * stride]);
    } else {
      SINTER_CHECK(false, "a float among the arguments of an integer function");
    }
  });
}
void store(Tensor& t, int64_t at, int64_t n, const double* v) {
  with_type(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* p = t.as<T>() + at;
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, half>)
        p[i] = to_half(static_cast<float>(v[i]));
      else if constexpr (std::is_same_v<T, bfloat16>)
        p[i] = to_bfloat16(static_cast<float>(v[i]));
      else if constexpr (std::is_same_v<T, bool>)
        p[i] = v[i] != 0;
      else
        p[i] = static_cast<T>(v[i]);
    }
  });
}
void store(Tensor& t, int64_t at, int64_t n, const int64_t* v) {
  with_type(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>)
      for (int64_t i = 0; i < n; ++i) t.as<T>()[at + i] = static_cast<T>(v[i]);
  });
}

// One run of a function: n elements of `out` from `at` on. V is what it computes in.
template <class V, class F>
void apply_run(const F& f, const std::vector<Tensor>& args, const std::vector<int64_t>& from,
               const Loops& loops, Tensor& out, int64_t at) {
  V x[3][kBlock], result[kBlock];
  const int64_t run = loops.extents.back();
  for (int64_t begin = 0; begin < run; begin += kBlock) {
    const int64_t n = std::min(kBlock, run - begin);
    for (size_t k = 0; k < args.size(); ++k) {
      const int64_t stride = loops.strides[k].back();
      load(args[k], from[k] + begin * stride, stride, n, x[k]);
    }
    for (int64_t i = 0; i < n; ++i) {
      const V one[3] = {x[0][i], args.size() > 1 ? x[1][i] : V{}, args.size() > 2 ? x[2][i] : V{}};
      result[i] = f(one);
    }
    store(out, at + begin, n, result);
  }
}

// The everyday functions of float32 without the way through double, to the same bits: for + - * / the double
// result rounds to what float arithmetic gives. Null: another function.
using FloatRun = void (*)(const float*, int64_t, const float*, int64_t, int64_t, float*);
template <class F>
constexpr FloatRun float_run(F) {
  return [](const float* a, int64_t da, const float* b, int64_t db, int64_t n, float* out) {
    if (da == 1 && db == 1)
      for (int64_t i = 0; i < n; ++i) out[i] = F{}(a[i], b[i]);
    else
      for (int64_t i = 0; i < n; ++i) out[i] = F{}(a[i * da], b[i * db]);
  };
}
FloatRun float_run_of(std::string_view fn) {
  if (fn == "add") return float_run([](float a, float b) { return a + b; });
  if (fn == "sub") return float_run([](float a, float b) { return a - b; });
  if (fn == "mul") return float_run([](float a, float b) { return a * b; });
  if (fn == "div") return float_run([](float a, float b) { return a / b; });
  if (fn == "relu") return float_run([](float a, float) { return a < 0 ? 0.0f : a; });
  return nullptr;
}
void apply_float_run(FloatRun f, const std::vector<Tensor>& args, const std::vector<int64_t>& from,
                     const Loops& loops, Tensor& out, int64_t at) {
  const size_t second = args.size() - 1;  // the first one again for functions of one argument
  f(args[0].as<float>() + from[0], loops.strides[0].back(), args[second].as<float>() + from[second],
    loops.strides[second].back(), loops.extents.back(), out.as<float>() + at);
}

Tensor apply_fn(const Expr& e, const std::vector<Tensor>& args) {
  const DType in = args.back().dtype();
  const ScalarFn& fn = *e.fn;
  const bool real = is_float(in), natural = is_unsigned(in) && fn.natural;
  if (real ? !fn.real : !(fn.integer || natural)) refuse("{} is not defined for {}", fn.name, name_of(in));
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& t : args) shapes.push_back(t.shape());
  Tensor out(e.dtype, broadcast_shape(shapes));
  if (out.size() == 0) return out;
  const Loops loops = broadcast_loops(args, out.shape());
  const size_t outer = loops.extents.size() - 1;
  const bool floats = e.dtype == DType::kF32 && std::all_of(args.begin(), args.end(), [](const Tensor& t) {
                        return t.dtype() == DType::kF32;
                      });
  const FloatRun quick = floats ? float_run_of(fn.name) : nullptr;
  std::vector<int64_t> index(outer, 0), from(args.size(), 0);
  for (int64_t at = 0; at < out.size(); at += loops.extents.back()) {
    if (quick)
      apply_float_run(quick, args, from, loops, out, at);
    else if (real)
      apply_run<double>(fn.real, args, from, loops, out, at);
    else if (natural)
      apply_run<int64_t>(
          [&](const int64_t* x) {
            const uint64_t u[3] = {static_cast<uint64_t>(x[0]), static_cast<uint64_t>(x[1]),
                                   static_cast<uint64_t>(x[2])};
            return static_cast<int64_t>(fn.natural(u));
          },
          args, from, loops, out, at);
    else
      apply_run<int64_t>(fn.integer, args, from, loops, out, at);
    for (size_t d = outer; d-- > 0;) {
      for (size_t k = 0; k < args.size(); ++k) from[k] += loops.strides[k][d];
      if (++index[d] < loops.extents[d]) break;
      for (size_t k = 0; k < args.size(); ++k) from[k] -= loops.strides[k][d] * loops.extents[d];
      index[d] = 0;
    }
  }
  return out;
}

// One element of a cast. Floats to integers saturate and NaN becomes 0; integers wrap; what goes to a 16-bit
// float is rounded to float first.
template <class To, class From>
To cast_element(From v) {
  if constexpr (std::is_same_v<From, half> || std::is_same_v<From, bfloat16>) {
    return cast_element<To>(to_float(v));
  } else if constexpr (std::is_same_v<To, half>) {
    return to_half(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bfloat16>) {
    return to_bfloat16(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr To lo = std::numeric_limits<To>::min(), hi = std::numeric_limits<To>::max();
    if (std::isnan(v)) return 0;
    if (v <= static_cast<From>(lo)) return lo;
    constexpr From end = static_cast<From>(hi / 2 + 1) * 2;  // the first that no longer fits
    return v >= end ? hi : static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

Tensor cast(const Tensor& t, DType to);

// Small floats pass through float; of what becomes 4 or 2 bits the low bits stay.
Tensor cast_small(const Tensor& t, DType to) {
  if (is_small_float(t.dtype())) {
    Tensor wide(DType::kF32, t.shape());
    for (int64_t i = 0; i < t.size(); ++i)
      wide.as<float>()[i] = small_to_float(t.dtype(), t.as<uint8_t>()[i]);
    return cast(wide, to);
  }
  Tensor out(to, t.shape());
  if (is_small_float(to)) {
    const Tensor from = cast(t, DType::kF32);
    for (int64_t i = 0; i < t.size(); ++i) out.as<uint8_t>()[i] = small_from_float(to, from.as<float>()[i]);
    return out;
  }
  const Tensor from = cast(t, DType::kI32);
  const int spare = 32 - bits_of(to);
  for (int64_t i = 0; i < t.size(); ++i) {
    const uint32_t top = static_cast<uint32_t>(from.as<int32_t>()[i]) << spare;
    out.as<uint8_t>()[i] = static_cast<uint8_t>(
        is_signed(to) ? static_cast<uint32_t>(static_cast<int32_t>(top) >> spare) : top >> spare);
  }
  return out;
}

Tensor cast(const Tensor& t, DType to) {
  if (is_small_float(t.dtype()) || is_small_float(to) || is_packed(to))
    return t.dtype() == to ? t : cast_small(t, to);
  Tensor out(to, t.shape());
  with_type(t.dtype(), [&](auto from_tag) {
    with_type(to, [&](auto to_tag) {
      using From = decltype(from_tag);
      using To = decltype(to_tag);
      for (int64_t i = 0; i < t.size(); ++i) out.as<To>()[i] = cast_element<To>(t.as<From>()[i]);
    });
  });
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
    case Expr::Kind::kCast: return cast(evaluate(*e.args[0], inputs, accumulator), e.dtype);
    case Expr::Kind::kCall: break;
  }
  std::vector<Tensor> args;
  for (const ExprPtr& a : e.args) args.push_back(evaluate(*a, inputs, accumulator));
  return apply_fn(e, args);
}

}  // namespace sinter
