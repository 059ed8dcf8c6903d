// dynamic: movements and reductions whose axes, positions or repeats are operands that only the run knows.
//
// All tensors are dense and row-major, of at most 12 axes. Nothing here is fast; everything is checked: a
// function that returns an int returns kOk, or the Status that the layer returns.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sinter/half.h"
#include "sinter/status.h"

namespace sinter {

constexpr int kMaxAxes = 12;

// Marks the axes named by `axes` (negative ones count from the end); each may be named once.
template <class I>
inline int mark_axes(const I* axes, std::int64_t count, std::int64_t rank, bool* marked) {
  for (std::int64_t a = 0; a < rank; ++a) marked[a] = false;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t given = static_cast<std::int64_t>(axes[k]), axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank || marked[axis]) return kIndexError;
    marked[axis] = true;
  }
  return kOk;
}

// The k-th axis that `axes` names; null: the first ones in order.
template <class I>
inline std::int64_t named_axis(const I* axes, std::int64_t k, std::int64_t rank) {
  if (axes == nullptr) return k;
  const std::int64_t given = static_cast<std::int64_t>(axes[k]);
  return given < 0 ? given + rank : given;
}
// Whether they are axes of the tensor, each named once.
template <class I>
inline int check_axes(const I* axes, std::int64_t count, std::int64_t rank) {
  bool marked[kMaxAxes + 1] = {};
  if (axes != nullptr)
    if (const int status = mark_axes(axes, count, rank, marked); status != kOk) return status;
  return count > rank ? kIndexError : kOk;
}

// ---- movement: along each axis, which element of the input an element of the output is

enum class AxisRule : unsigned char { kStep, kConstant, kEdge, kReflect, kWrap };

// Element i of the output's axis is element first + i * step of the input's axis; where that lies outside of
// the `rows` elements from `crop` on, the rule says what it is. kConstant: the fill.
struct MovedAxis {
  std::int64_t extent = 1, out = 1, first = 0, step = 1;
  std::int64_t crop = 0, rows = 1;
  AxisRule rule = AxisRule::kStep;
};

// The position in the input's axis; -1: the fill.
inline std::int64_t source_of(const MovedAxis& a, std::int64_t i) {
  const std::int64_t at = a.first + i * a.step;
  if (a.rule == AxisRule::kStep) return at;
  const std::int64_t row = at - a.crop;
  if (row >= 0 && row < a.rows) return at;
  if (a.rule == AxisRule::kConstant) return -1;
  if (a.rule == AxisRule::kEdge) return a.crop + (row < 0 ? 0 : a.rows - 1);
  const std::int64_t period = a.rule == AxisRule::kWrap ? a.rows : (a.rows > 1 ? 2 * (a.rows - 1) : 1);
  const std::int64_t r = (row % period + period) % period;
  return a.crop + (a.rule == AxisRule::kWrap || r < a.rows ? r : period - r);
}

template <class T>
inline void move_axes(const T* x, T* y, const MovedAxis* axes, int rank, T fill) {
  std::int64_t stride[kMaxAxes + 1], index[kMaxAxes + 1], total = 1, step = 1;
  for (int a = rank - 1; a >= 0; --a) {
    stride[a] = step;
    step *= axes[a].extent;
    total *= axes[a].out;
    index[a] = 0;
  }
  for (std::int64_t k = 0; k < total; ++k) {
    std::int64_t at = 0;
    bool inside = true;
    for (int a = 0; a < rank; ++a) {
      const std::int64_t s = source_of(axes[a], index[a]);
      inside = inside && s >= 0;
      at += s * stride[a];
    }
    y[k] = inside ? x[at] : fill;
    for (int a = rank - 1; a >= 0 && ++index[a] == axes[a].out; --a) index[a] = 0;
  }
}

// Slice (ONNX opset 13): positions are clamped as Python's are. `axes` null: the first ones; `steps` null: 1.
template <class I>
inline int slice_axes(MovedAxis* moved, std::int64_t rank, const I* starts, const I* ends, const I* axes,
                      const I* steps, std::int64_t count) {
  if (const int status = check_axes(axes, count, rank); status != kOk) return status;
  for (std::int64_t k = 0; k < count; ++k) {
    MovedAxis& a = moved[named_axis(axes, k, rank)];
    const std::int64_t n = a.extent, step = steps != nullptr ? static_cast<std::int64_t>(steps[k]) : 1;
    if (step == 0) return kDimError;
    const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    std::int64_t from = static_cast<std::int64_t>(starts[k]), to = static_cast<std::int64_t>(ends[k]);
    if (from < 0) from += n;
    if (to < 0) to = to < -n - 1 ? low : to + n;
    from = from < low ? low : from > high ? high : from;
    to = to < low ? low : to > high ? high : to;
    if (step > 0)
      a.out = to > from ? (to - from - 1) / step + 1 : 0;
    else
      a.out = from > to ? (from - to - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1 : 0;
    a.first = from;
    a.step = a.out > 1 ? step : 0;
  }
  return kOk;
}

// Pad (ONNX opset 21): pads[k] rows in front of the k-th axis named, pads[k + count] behind; negative ones
// crop. `axes` null: all.
template <class I>
inline int pad_axes(MovedAxis* moved, std::int64_t rank, const std::int64_t* pads, const I* axes,
                    std::int64_t count, AxisRule rule) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (const int status = check_axes(axes, count, rank); status != kOk) return status;
  for (std::int64_t k = 0; k < count; ++k) {
    MovedAxis& a = moved[named_axis(axes, k, rank)];
    const std::int64_t front = pads[k], behind = pads[k + count];
    if (front < -most || front > most || behind < -most || behind > most) return kDimError;
    a.crop = front < 0 ? -front : 0;
    a.rows = a.extent - a.crop - (behind < 0 ? -behind : 0);
    a.out = a.extent + front + behind;
    a.first = -front;
    a.rule = rule;
    if (a.out < 0 || (rule != AxisRule::kConstant && a.rows < 1 && a.out > 0)) return kDimError;
  }
  return kOk;
}

// ---- reductions

enum class Reduction : unsigned char {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kSumSquare
};

namespace detail {

template <class T>
using ReduceWide = std::conditional_t<
    std::is_same_v<T, half> || std::is_same_v<T, bfloat16> || std::is_floating_point_v<T>, double,
    std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t, std::uint64_t>>;

template <class T>
inline ReduceWide<T> reduce_widen(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return static_cast<double>(to_float(v));
  else
    return static_cast<ReduceWide<T>>(v);
}
template <class T>
inline T reduce_narrow(ReduceWide<T> v) {
  if constexpr (std::is_same_v<T, half>)
    return to_half(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, bool>)
    return v != 0;
  else
    return static_cast<T>(v);
}
template <class T>
inline ReduceWide<T> reduce_extreme(bool least) {
  using A = ReduceWide<T>;
  if constexpr (std::is_floating_point_v<A>)
    return least ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::infinity();
  else
    return static_cast<A>(least ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
}

// Integers wrap as two's complement.
template <Reduction R, class A>
inline A reduce_step(A acc, A x, A top) {
  using W = std::conditional_t<std::is_same_v<A, std::int64_t>, std::uint64_t, A>;
  const W a = static_cast<W>(acc), v = static_cast<W>(x);
  if constexpr (R == Reduction::kProd) {
    return static_cast<A>(a * v);
  } else if constexpr (R == Reduction::kMax) {
    return x > acc || x != x ? x : acc;
  } else if constexpr (R == Reduction::kMin) {
    return x < acc || x != x ? x : acc;
  } else if constexpr (R == Reduction::kL1) {
    return static_cast<A>(x < A{0} ? a - v : a + v);
  } else if constexpr (R == Reduction::kL2 || R == Reduction::kSumSquare) {
    return static_cast<A>(a + v * v);
  } else if constexpr (R == Reduction::kLogSumExp) {
    return acc + std::exp(x - top);
  } else {
    return static_cast<A>(a + v);
  }
}
template <Reduction R, class A>
inline A reduce_last(A acc, A top, std::int64_t n) {
  if constexpr (std::is_floating_point_v<A>) {
    if constexpr (R == Reduction::kMean) return acc / static_cast<A>(n);
    if constexpr (R == Reduction::kL2) return std::sqrt(acc);
    if constexpr (R == Reduction::kLogSum) return std::log(acc);
    if constexpr (R == Reduction::kLogSumExp) return std::log(acc) + top;
  } else {
    if constexpr (R == Reduction::kMean) return n == 0 ? A{0} : acc / static_cast<A>(n);
    if constexpr (R == Reduction::kL2) return static_cast<A>(std::sqrt(static_cast<double>(acc)));
  }
  return acc;
}

}  // namespace detail

// y = x reduced over the marked axes: one output at a time, its elements walked in order.
template <Reduction R, class T>
inline void reduce_axes(const T* x, T* y, const std::int64_t* extent, const bool* reduced, int rank) {
  using A = detail::ReduceWide<T>;
  std::int64_t stride[kMaxAxes + 1], index[kMaxAxes + 1] = {}, outputs = 1, count = 1, step = 1;
  for (int a = rank - 1; a >= 0; --a) {
    stride[a] = step;
    step *= extent[a];
    (reduced[a] ? count : outputs) *= extent[a];
  }
  // The next index over the axes marked `over`, as the change of the element's address.
  const auto advance = [&](bool over, std::int64_t at) {
    for (int a = rank - 1; a >= 0; --a) {
      if (reduced[a] != over) continue;
      at += stride[a];
      if (++index[a] < extent[a]) break;
      at -= stride[a] * extent[a];
      index[a] = 0;
    }
    return at;
  };
  std::int64_t base = 0;
  for (std::int64_t k = 0; k < outputs; ++k) {
    A top{};
    if constexpr (R == Reduction::kLogSumExp && std::is_floating_point_v<A>) {
      top = detail::reduce_extreme<T>(true);
      std::int64_t at = base;
      for (std::int64_t i = 0; i < count; ++i, at = advance(true, at))
        top = detail::reduce_step<Reduction::kMax>(top, detail::reduce_widen(x[at]), A{});
      if (std::isinf(top)) top = 0;
    }
    A acc = R == Reduction::kProd  ? A{1}
            : R == Reduction::kMax ? detail::reduce_extreme<T>(true)
            : R == Reduction::kMin ? detail::reduce_extreme<T>(false)
                                   : A{0};
    std::int64_t at = base;
    for (std::int64_t i = 0; i < count; ++i, at = advance(true, at))
      acc = detail::reduce_step<R>(acc, detail::reduce_widen(x[at]), top);
    y[k] = detail::reduce_narrow<T>(detail::reduce_last<R>(acc, top, count));
    base = advance(false, base);
  }
}

}  // namespace sinter
