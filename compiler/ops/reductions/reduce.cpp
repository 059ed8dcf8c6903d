// The ten reductions: one row {first value, step, last touch} each, over any set of axes.
//
// Floats accumulate in double and round once; integers wrap as two's complement, except that ReduceMean and
// ReduceL2 divide and take the root of what was summed and truncate. Over an empty set they give ONNX's
// identities: 0 for sums, 1 for products, the least and the greatest value for Max and Min, -inf for the
// logarithms; a mean of nothing is NaN, 0 for integers. NaN wins in Max and Min.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/movement/movement.h"
#include "ops/op.h"

namespace sinter {
namespace {

enum class Kind { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };
constexpr std::pair<std::string_view, Kind> kKinds[] = {
    {"ReduceSum", Kind::kSum},
    {"ReduceMean", Kind::kMean},
    {"ReduceMax", Kind::kMax},
    {"ReduceMin", Kind::kMin},
    {"ReduceProd", Kind::kProd},
    {"ReduceL1", Kind::kL1},
    {"ReduceL2", Kind::kL2},
    {"ReduceLogSum", Kind::kLogSum},
    {"ReduceLogSumExp", Kind::kLogSumExp},
    {"ReduceSumSquare", Kind::kSumSquare},
};
Kind kind_of(const Node& n) {
  for (const auto& [name, kind] : kKinds)
    if (name == n.op->name) return kind;
  bug(__FILE__, __LINE__, "not a reduction");
}

bool allowed(Kind k, DType t) {
  if (is_float(t)) return true;
  if (k == Kind::kLogSum || k == Kind::kLogSumExp) return false;
  const bool wide = t == DType::kI32 || t == DType::kI64 || t == DType::kU32 || t == DType::kU64;
  const bool narrow = t == DType::kI8 || t == DType::kU8 || t == DType::kBool;
  return wide || ((k == Kind::kMax || k == Kind::kMin) && narrow);
}

// --- inference

// The axes as a mask over the rank, given their numbers; refuses what is out of range or named twice.
std::vector<bool> mask_of(const Inference& x, const std::vector<int64_t>& axes) {
  std::vector<bool> mask(x.shape(0).size(), false);
  for (int64_t a : axes) {
    const size_t i = static_cast<size_t>(x.check_axis(a, x.rank(0)));
    x.require(!mask[i], fmt::format("axis {} is named twice", a));
    mask[i] = true;
  }
  return mask;
}
// Which axes are reduced. Axes that are computed at run time are fine where the result does not depend on
// them: all of them, or all extents 1.
// nullopt: the run tells.
std::optional<std::vector<bool>> reduced_axes(const Inference& x, bool keepdims) {
  const size_t rank = x.shape(0).size();
  const std::vector<bool> all(rank, true), none(rank, false);
  const bool noop = x.attributes().integer("noop_with_empty_axes", 0) != 0;
  if (own_inputs(x) < 2 || !x.has(1)) return noop ? none : all;
  x.require(x.dtype(1) == DType::kI64, "axes are not int64");
  x.require(x.rank(1) == 1, "axes are not a list");
  if (const auto axes = x.integers(1)) return axes->empty() ? (noop ? none : all) : mask_of(x, *axes);
  const Dim& count = x.shape(1)[0];
  if (count.is(static_cast<int64_t>(rank)) && count.lo() > 0) return all;
  const bool ones = std::all_of(x.shape(0).begin(), x.shape(0).end(), [](const Dim& d) { return d.is(1); });
  if (ones && keepdims && count.lo() > 0) return all;
  return std::nullopt;
}

// The shape where only the number of axes is known: each extent is one of the input's, or 1.
Shape reduced_by_data(Inference& x, bool keepdims) {
  const Shape& in = x.shape(0);
  const int64_t count = operand_length(x, 1, "axes");
  x.require(count <= x.rank(0), fmt::format("{} axes for {}", count, text(in)));
  Shape out;
  Dim most(1);
  for (size_t a = 0; a < in.size(); ++a) {
    most = max(most, in[a]);
    if (keepdims) out.push_back(x.operand_extent(fmt::format("axis{}", a), max(in[a], 1).hi()));
  }
  for (int64_t a = 0; !keepdims && a < x.rank(0) - count; ++a)
    out.push_back(x.operand_extent(fmt::format("axis{}", a), most.hi()));
  return out;
}

// Contents where a small integer tensor is reduced to one element.
void propagate(Inference& x, Kind kind) {
  const bool known = kind == Kind::kSum || kind == Kind::kProd || kind == Kind::kMax || kind == Kind::kMin;
  if (!known || !is_integer(x.dtype(0)) || !product(x.out[0].type.shape).is(1)) return;
  auto e = x.elements(0);
  if (!e || e->empty() || e->size() > static_cast<size_t>(Fact::kMaxElements)) return;
  // Numbers before symbols, so that max(2, N, 3) becomes max(3, N).
  std::stable_partition(e->begin(), e->end(), [](const Dim& d) { return d.is_static(); });
  Dim d = (*e)[0];
  for (size_t i = 1; i < e->size(); ++i) {
    const Dim& next = (*e)[i];
    if (kind == Kind::kSum) d = d + next;
    if (kind == Kind::kProd) d = d * next;
    if (kind == Kind::kMax) d = max(d, next);
    if (kind == Kind::kMin) d = min(d, next);
  }
  x.out[0].elements = {d};
}

void infer(Inference& x) {
  const Kind kind = kind_of(x.node);
  x.require(allowed(kind, x.dtype(0)), fmt::format("not defined for {}", name_of(x.dtype(0))));
  const bool keepdims = x.attributes().integer("keepdims", 1) != 0;
  const auto mask = reduced_axes(x, keepdims);
  if (!mask) return x.set(0, x.dtype(0), reduced_by_data(x, keepdims));
  Shape s;
  for (size_t i = 0; i < mask->size(); ++i) {
    if (!(*mask)[i])
      s.push_back(x.shape(0)[i]);
    else if (keepdims)
      s.push_back(1);
  }
  x.set(0, x.dtype(0), std::move(s));
  propagate(x, kind);
}

// --- evaluation, with accumulators of type A: double, int64_t or uint64_t

template <class A>
A first(Kind k, A least, A greatest) {
  switch (k) {
    case Kind::kProd: return A{1};
    case Kind::kMax: return least;
    case Kind::kMin: return greatest;
    default: return A{0};
  }
}
template <class A>
A step(Kind k, A acc, A x, A top) {
  using W = std::conditional_t<std::is_same_v<A, int64_t>, uint64_t, A>;  // where wrapping is defined
  const W a = static_cast<W>(acc), v = static_cast<W>(x);
  switch (k) {
    case Kind::kProd: return static_cast<A>(a * v);
    case Kind::kMax: return x > acc || x != x ? x : acc;
    case Kind::kMin: return x < acc || x != x ? x : acc;
    case Kind::kL1: return static_cast<A>(x < A{0} ? a - v : a + v);
    case Kind::kL2:
    case Kind::kSumSquare: return static_cast<A>(a + v * v);
    case Kind::kLogSumExp:
      if constexpr (std::is_floating_point_v<A>) return acc + std::exp(x - (std::isinf(top) ? A{0} : top));
      return acc;
    default: return static_cast<A>(a + v);
  }
}
template <class A>
A last(Kind k, A acc, A top, int64_t n) {
  if constexpr (std::is_floating_point_v<A>) {
    switch (k) {
      case Kind::kMean: return acc / static_cast<A>(n);
      case Kind::kL2: return std::sqrt(acc);
      case Kind::kLogSum: return std::log(acc);
      case Kind::kLogSumExp: return std::log(acc) + (std::isinf(top) ? A{0} : top);
      default: return acc;
    }
  } else {
    if (k == Kind::kMean) return n == 0 ? A{0} : acc / static_cast<A>(n);
    if (k == Kind::kL2) return static_cast<A>(std::sqrt(static_cast<double>(acc)));
    return acc;
  }
}

// Where the elements go: neighbouring axes that are all reduced or all kept are walked as one.
struct Walk {
  std::vector<int64_t> extents, out_strides;  // stride 0: reduced
};
Walk walk_of(const Tensor& in, const std::vector<bool>& mask) {
  Walk w;
  std::vector<bool> reduced;
  for (size_t i = 0; i < mask.size(); ++i) {
    const int64_t d = in.shape()[i];
    if (d == 1) continue;
    if (!w.extents.empty() && reduced.back() == mask[i]) {
      w.extents.back() *= d;
    } else {
      w.extents.push_back(d);
      reduced.push_back(mask[i]);
    }
  }
  if (w.extents.empty()) {
    w.extents = {1};
    reduced = {true};
  }
  w.out_strides.resize(w.extents.size());
  for (size_t i = w.extents.size(), stride = 1; i-- > 0;) {
    w.out_strides[i] = reduced[i] ? 0 : static_cast<int64_t>(stride);
    if (!reduced[i]) stride *= static_cast<size_t>(w.extents[i]);
  }
  return w;
}
// Calls f(from, to) for every element in order: its index and the output's.
template <class F>
void for_each_element(const Walk& w, int64_t size, F f) {
  const size_t inner = w.extents.size() - 1;
  std::vector<int64_t> index(inner, 0);
  int64_t to = 0;
  for (int64_t from = 0; from < size; from += w.extents[inner]) {
    for (int64_t i = 0; i < w.extents[inner]; ++i) f(from + i, to + i * w.out_strides[inner]);
    for (size_t d = inner; d-- > 0;) {
      to += w.out_strides[d];
      if (++index[d] < w.extents[d]) break;
      to -= w.out_strides[d] * w.extents[d];
      index[d] = 0;
    }
  }
}

template <class T>
auto widen(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return static_cast<double>(to_float(v));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(v);
  else if constexpr (std::is_signed_v<T> || std::is_same_v<T, bool>)
    return static_cast<int64_t>(v);
  else
    return static_cast<uint64_t>(v);
}
template <class T, class A>
T narrow(A v) {
  if constexpr (std::is_same_v<T, half>)
    return to_half(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(static_cast<float>(v));
  else
    return static_cast<T>(v);
}
// The least and greatest value of T in its accumulator's type: the identities of Max and Min.
template <class T>
auto range_of() {
  using A = decltype(widen(T{}));
  if constexpr (std::is_floating_point_v<A>)
    return std::pair<A, A>(-std::numeric_limits<A>::infinity(), std::numeric_limits<A>::infinity());
  else
    return std::pair<A, A>(widen(std::numeric_limits<T>::min()), widen(std::numeric_limits<T>::max()));
}

template <class T>
void reduce(Kind kind, const Tensor& in, Tensor& out, const std::vector<bool>& mask) {
  using A = decltype(widen(T{}));
  const auto [least, greatest] = range_of<T>();
  const Walk w = walk_of(in, mask);
  const T* x = in.as<T>();
  const size_t n = static_cast<size_t>(out.size());
  std::vector<A> top(kind == Kind::kLogSumExp ? n : 0, least);
  if (kind == Kind::kLogSumExp)
    for_each_element(w, in.size(), [&](int64_t from, int64_t to) {
      A& t = top[static_cast<size_t>(to)];
      t = step(Kind::kMax, t, widen(x[from]), A{});
    });
  std::vector<A> acc(n, first(kind, least, greatest));
  for_each_element(w, in.size(), [&](int64_t from, int64_t to) {
    const size_t i = static_cast<size_t>(to);
    acc[i] = step(kind, acc[i], widen(x[from]), top.empty() ? A{} : top[i]);
  });
  int64_t count = 1;
  for (size_t i = 0; i < mask.size(); ++i) count *= mask[i] ? in.shape()[i] : 1;
  for (size_t i = 0; i < n; ++i)
    out.as<T>()[i] = narrow<T>(last(kind, acc[i], top.empty() ? A{} : top[i], count));
}

void eval(Evaluation& e) {
  const Tensor& in = e.in[0];
  const bool noop = e.attributes().integer("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> axes;
  if (e.has(1)) axes = e.in[1].integers();
  std::vector<bool> mask(in.shape().size(), axes.empty() && !noop);
  for (int64_t a : axes) mask[static_cast<size_t>(a < 0 ? a + in.rank() : a)] = true;
  with_type(in.dtype(), [&](auto tag) { reduce<decltype(tag)>(kind_of(e.node), in, e.out[0], mask); });
}

}  // namespace

const std::vector<Op>& ops_reduce() {
  static const std::vector<Op> table = [] {
    std::vector<Op> t;
    for (const auto& [name, kind] : kKinds)
      t.push_back({.name = name.data(), .max_inputs = 2, .infer = infer, .eval = eval});
    return t;
  }();
  return table;
}

}  // namespace sinter
