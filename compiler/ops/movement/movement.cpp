// The shared parts of movement operators: see movement.h.
#include "ops/movement/movement.h"

#include <algorithm>
#include <cstring>

namespace sinter {

// ---- inference

size_t own_inputs(const Inference& x) { return x.node.epilogue ? x.node.anchor_inputs : x.in.size(); }

void fail_unknown(const Inference& x, size_t i, const std::string& what) {
  const bool many = what.back() == 's';
  const Value* v = x.node.input(i);
  const std::string name = v ? v->name : "NAME";
  const Value* open = v ? to_be_bounded(x.node, i) : nullptr;
  if (v && v->producer) {
    x.fail(fmt::format("its {} {} only known at run time (computed as {}){}", what, many ? "are" : "is",
                       sinter::quoted(name),
                       open ? fmt::format(": bound {} with --dim {}", sinter::quoted(open->name),
                                          sinter::quoted(open->name + "<=MAX"))
                            : ""));
  }
  x.fail(fmt::format("its {} {} only known at run time: give {} with --const {}=...{}", what,
                     many ? "are" : "is", many ? "them" : "it", sinter::quoted(name),
                     open ? fmt::format(", or bound {} with --dim {}", many ? "them" : "it",
                                        sinter::quoted(open->name + "<=MAX"))
                          : ""));
}

std::vector<Dim> known_elements(const Inference& x, size_t i, const std::string& what) {
  auto e = x.elements(i);
  if (!e) fail_unknown(x, i, what);
  return std::move(*e);
}

std::vector<int64_t> known_integers(const Inference& x, size_t i, const std::string& what) {
  auto e = x.integers(i);
  if (!e) fail_unknown(x, i, what);
  return std::move(*e);
}

// Two for each axis, of tensors of 64 axes at most; a Split may have more parts.
constexpr int64_t kLongestOperand = 1024;

int64_t operand_length(const Inference& x, size_t i, const std::string& what) {
  x.require(is_integer(x.dtype(i)),
            fmt::format("{} of type {}: integers are needed", what, name_of(x.dtype(i))));
  x.require(x.rank(i) == 1, fmt::format("{} of shape {}: one axis is needed", what, text(x.shape(i))));
  const Dim& n = x.shape(i)[0];
  if (!n.is_static()) x.fail(fmt::format("the number of its {} is only known at run time", what));
  x.require(n.value() <= kLongestOperand,
            fmt::format("{} {}: at most {} are allowed", n.value(), what, kLongestOperand));
  return n.value();
}

void require_index_type(const Inference& x, size_t i, const std::string& what) {
  x.require(x.dtype(i) == DType::kI32 || x.dtype(i) == DType::kI64,
            fmt::format("{} of type {}: int32 or int64 is needed", what, name_of(x.dtype(i))));
}

Dim data_count(Inference& x, size_t axis, const Dim& most) {
  int64_t limit = x.symbols.limit(x.node.name + "_count");
  if (!x.node.outputs.empty() && x.node.outputs[0])
    limit = std::min(limit, x.symbols.limit(fmt::format("{}@{}", x.node.outputs[0]->name, axis)));
  return x.count("count", limit < most.hi() ? Dim(limit) : most);
}

void require_le(Inference& x, const Dim& a, const Dim& b, const std::string& what) {
  if (provably_le(a, b)) return;
  if ((b - a).hi() < 0) x.fail(fmt::format("{}: {} exceeds {}", what, a.text(), b.text()));
  x.require_equal(min(a, b), a, what);
}

std::vector<int64_t> distinct_axes(const Inference& x, std::vector<int64_t> axes, int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t& a : axes) {
    x.require(a >= -rank && a < rank, fmt::format("axis {} out of range for {} axes", a, rank));
    if (a < 0) a += rank;
    x.require(!seen[static_cast<size_t>(a)], fmt::format("axis {} is given twice", a));
    seen[static_cast<size_t>(a)] = true;
  }
  return axes;
}

namespace {

bool small_integers(const Fact& f) {
  if (!is_integer(f.type.dtype) && f.type.dtype != DType::kBool) return false;
  if (!is_static(f.type.shape)) return false;
  int64_t size = 1;
  for (const Dim& d : f.type.shape) {
    if (d.value() < 1 || d.value() > Fact::kMaxElements) return false;
    size *= d.value();
    if (size > Fact::kMaxElements) return false;
  }
  return true;
}

}  // namespace

void propagate_moved(Inference& x, const std::vector<size_t>& moved) {
  for (const Fact& o : x.out)
    if (o.present && !small_integers(o)) return;
  std::vector<Dim> numbered{Dim(0)};  // number 0 is what nobody wrote: eval's zero
  Evaluation e{x.node, {}, {}};
  const size_t inputs = own_inputs(x);
  for (size_t i = 0; i < inputs; ++i) {
    if (!x.has(i)) {
      e.in.emplace_back();
    } else if (std::find(moved.begin(), moved.end(), i) != moved.end()) {
      const auto known = x.elements(i);
      if (!known || !is_static(x.shape(i))) return;
      Tensor ids(DType::kI64, static_dims(x.shape(i)));
      if (ids.size() != static_cast<int64_t>(known->size())) return;
      for (size_t k = 0; k < known->size(); ++k) {
        ids.as<int64_t>()[k] = static_cast<int64_t>(numbered.size());
        numbered.push_back((*known)[k]);
      }
      e.in.push_back(std::move(ids));
    } else if (x.in[i].data) {
      e.in.push_back(*x.in[i].data);
    } else {
      const auto known = x.integers(i);
      if (!known || !is_static(x.shape(i))) return;
      Tensor t(x.dtype(i), static_dims(x.shape(i)));
      for (size_t k = 0; k < known->size(); ++k) t.set_integer(static_cast<int64_t>(k), (*known)[k]);
      e.in.push_back(std::move(t));
    }
  }
  for (const Fact& o : x.out)
    e.out.push_back(o.present ? Tensor(DType::kI64, static_dims(o.type.shape)) : Tensor());
  x.node.op->eval(e);
  for (size_t i = 0; i < x.out.size(); ++i) {
    if (!x.out[i].present) continue;
    x.out[i].elements.clear();
    for (int64_t k = 0; k < e.out[i].size(); ++k)
      x.out[i].elements.push_back(numbered[static_cast<size_t>(e.out[i].as<int64_t>()[k])]);
  }
}

// ---- slices

namespace {

// ONNX names INT_MAX (and its like) for "to the end"; positions beyond any tensor are clamped early so that
// sums with extents don't overflow.
constexpr int64_t kFar = INT32_MAX;
constexpr int64_t kLongest = int64_t{1} << 40;  // longer than any axis

// The position counted from the front, before clamping.
std::optional<Dim> from_front(const Dim& extent, const Dim& given) {
  const Dim at = given.is_static() ? Dim(std::clamp(given.value(), -kLongest, kLongest)) : given;
  if (at.lo() >= 0 || provably_le(0, at)) return at;
  if (at.hi() < 0)
    return at.is_static() && at.value() <= -kFar && !extent.is_static() ? Dim(-1) : at + extent;
  // -1 at the least, and only where the axis is empty: counting from the end makes no difference.
  if (at.lo() >= -1 && provably_le(extent, at + 1)) return at;
  return std::nullopt;
}

// Into [lo, hi]; hi where hi < lo (an empty axis read backwards).
Dim clamp(const Dim& at, const Dim& lo, const Dim& hi) {
  if (at.is_static() && !hi.is_static() && at.value() >= kFar) return hi;
  const Dim from = provably_le(lo, at) ? at : max(at, lo);
  return provably_le(at, hi) && provably_le(lo, hi) ? from : min(from, hi);
}

}  // namespace

std::optional<Dim> slice_start(const Dim& extent, const Dim& start, int64_t step) {
  const auto at = from_front(extent, start);
  if (!at) return std::nullopt;
  return step > 0 ? clamp(*at, 0, extent) : clamp(*at, 0, extent - 1);
}

std::optional<Dim> slice_extent(const Dim& extent, const Dim& start, const Dim& end, int64_t step) {
  const auto first = slice_start(extent, start, step), at = from_front(extent, end);
  if (!first || !at) return std::nullopt;
  step = std::clamp(step, -kLongest, kLongest);
  if (step > 0) {
    const Dim part = clamp(*at, 0, extent) - *first;
    return provably_le(0, part) ? ceildiv(part, step) : max(ceildiv(part, step), 0);
  }
  return max(ceildiv(*first - clamp(*at, -1, extent - 1), -step), 0);
}

// ---- strided reads

std::optional<std::vector<Dim>> contents(const Value* v) {
  if (!v) return std::nullopt;
  if (v->data) {
    if (!is_integer(v->data->dtype()) && v->data->dtype() != DType::kBool) return std::nullopt;
    const std::vector<int64_t> values = v->data->integers();
    return std::vector<Dim>(values.begin(), values.end());
  }
  if (!v->elements.empty()) return v->elements;
  return std::nullopt;
}

int64_t whole_axis(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

namespace {

std::vector<Dim> dense_strides(const Shape& shape) {
  std::vector<Dim> s(shape.size(), Dim(1));
  for (size_t d = shape.size(); d-- > 1;) s[d - 1] = s[d] * shape[d];
  return s;
}

std::optional<StridedRead> read_slice(const Node& n, const Shape& in) {
  const auto starts = contents(n.input(1));
  if (!starts) return std::nullopt;
  std::vector<Dim> axes(starts->size()), steps(starts->size(), Dim(1));
  for (size_t k = 0; k < axes.size(); ++k) axes[k] = Dim(static_cast<int64_t>(k));
  const size_t own = n.epilogue ? n.anchor_inputs : n.inputs.size();  // operands of an epilogue follow
  for (size_t i : {size_t{3}, size_t{4}}) {
    if (i >= own || !n.input(i)) continue;
    const auto given = contents(n.input(i));
    if (!given || !is_static(*given)) return std::nullopt;
    (i == 3 ? axes : steps) = *given;
  }
  StridedRead r{Dim(0), dense_strides(in)};
  for (size_t k = 0; k < starts->size(); ++k) {
    const auto axis = static_cast<size_t>(whole_axis(axes[k].value(), in.size()));
    const auto first = slice_start(in[axis], (*starts)[k], steps[k].value());
    if (!first) return std::nullopt;
    r.offset = r.offset + *first * r.strides[axis];
    // A step longer than the axis visits one element: the stride is never used.
    const int64_t longest = in[axis].is_static() ? std::max<int64_t>(in[axis].value(), 1) : kLongest;
    const bool far = steps[k].value() >= longest || steps[k].value() <= -longest;
    r.strides[axis] = far ? Dim(0) : r.strides[axis] * steps[k];
  }
  return r;
}

std::optional<StridedRead> read_expand(const Shape& in, const Shape& out) {
  const std::vector<Dim> dense = dense_strides(in);
  StridedRead r{Dim(0), std::vector<Dim>(out.size(), Dim(0))};
  for (size_t k = 0; k < in.size(); ++k) {
    const size_t d = k + out.size() - in.size();
    if (in[k].is(1)) continue;
    const bool repeats = !(in[k] == out[d]) && in[k].lo() <= 1;  // may be 1 when it runs
    r.strides[d] = repeats ? dense[k] * min(1, in[k] - 1) : dense[k];
  }
  return r;
}

std::optional<StridedRead> read_split(const Node& n, const Shape& in, size_t output) {
  const auto axis = static_cast<size_t>(whole_axis(n.attributes.integer("axis", 0), in.size()));
  StridedRead r{Dim(0), dense_strides(in)};
  Dim first(0);
  for (size_t i = 0; i < output; ++i) {
    if (n.outputs[i]) {
      first = first + n.outputs[i]->type.shape[axis];
    } else {
      const auto sizes = contents(n.input(1));
      if (!sizes) return std::nullopt;
      first = first + (*sizes)[i];
    }
  }
  r.offset = first * r.strides[axis];
  return r;
}

std::optional<StridedRead> read_gather(const Node& n, const Shape& in) {
  const auto index = contents(n.input(1));
  if (!index || index->size() != 1 || !n.input(1)->type.shape.empty()) return std::nullopt;
  const auto axis = static_cast<size_t>(whole_axis(n.attributes.integer("axis", 0), in.size()));
  StridedRead r{Dim(0), dense_strides(in)};
  const Dim& at = (*index)[0];
  if (!(at.lo() >= 0 && provably_le(at + 1, in[axis])) &&
      !(at.hi() < 0 && provably_le(Dim(0) - at, in[axis])))
    return std::nullopt;  // not proved inside
  r.offset = (at.lo() >= 0 ? at : at + in[axis]) * r.strides[axis];
  r.strides.erase(r.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  return r;
}

}  // namespace

std::optional<StridedRead> strided_read(const Node& n, const Shape& in, const Shape& out, size_t output) {
  if (!n.op || n.op->domain[0] != '\0') return std::nullopt;
  const std::string_view op = n.op->name;
  if (n.op->is_view) return StridedRead{Dim(0), dense_strides(out)};
  if (op == "Transpose") {
    std::vector<int64_t> perm = n.attributes.integers("perm");
    if (perm.empty())
      for (size_t d = in.size(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
    const std::vector<Dim> dense = dense_strides(in);
    StridedRead r;
    for (int64_t p : perm) r.strides.push_back(dense[static_cast<size_t>(p)]);
    return r;
  }
  if (op == "Slice") return read_slice(n, in);
  if (op == "Expand") return read_expand(in, out);
  if (op == "Split") return read_split(n, in, output);
  if (op == "Gather") return read_gather(n, in);
  return std::nullopt;
}

// ---- copies

namespace {

struct Axis {
  int64_t extent, from, to;  // strides in elements
};

// Axes of extent 1 dropped, neighbours that are one run in both tensors joined; at least one axis is left.
std::vector<Axis> joined(const std::vector<int64_t>& extents, const std::vector<int64_t>& from,
                         const std::vector<int64_t>& to) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    const Axis a{extents[d], from[d], to[d]};
    if (!axes.empty() && axes.back().from == a.from * a.extent && axes.back().to == a.to * a.extent)
      axes.back() = {axes.back().extent * a.extent, a.from, a.to};
    else
      axes.push_back(a);
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

template <class T>
void copy_axes(const T* from, T* to, const std::vector<Axis>& axes) {
  const Axis last = axes.back();
  std::vector<int64_t> index(axes.size(), 0);
  int64_t source = 0, target = 0;
  for (;;) {
    const T* f = from + source;
    T* t = to + target;
    if (last.from == 1 && last.to == 1)
      std::memcpy(t, f, static_cast<size_t>(last.extent) * sizeof(T));
    else
      for (int64_t i = 0; i < last.extent; ++i) t[i * last.to] = f[i * last.from];
    size_t d = axes.size() - 1;
    for (; d-- > 0;) {
      source += axes[d].from;
      target += axes[d].to;
      if (++index[d] < axes[d].extent) break;
      source -= axes[d].from * axes[d].extent;
      target -= axes[d].to * axes[d].extent;
      index[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

}  // namespace

void copy_strided(const Tensor& from, int64_t from_offset, const std::vector<int64_t>& from_strides,
                  Tensor& to, int64_t to_offset, const std::vector<int64_t>& to_strides,
                  const std::vector<int64_t>& extents) {
  SINTER_CHECK(size_of(from.dtype()) == size_of(to.dtype()));
  for (int64_t e : extents)
    if (e == 0) return;
  const std::vector<Axis> axes = joined(extents, from_strides, to_strides);
  with_size(size_of(to.dtype()), [&](auto t) {
    using T = decltype(t);
    copy_axes(from.as<T>() + from_offset, to.as<T>() + to_offset, axes);
  });
}

void copy_strided(const Tensor& from, int64_t offset, const std::vector<int64_t>& strides, Tensor& to) {
  copy_strided(from, offset, strides, to, 0, row_major_strides(to.shape()), to.shape());
}

void copy_mapped(const Tensor& from, const std::vector<std::vector<int64_t>>& maps, Tensor& to) {
  if (to.size() == 0) return;
  std::vector<int64_t> outer = to.shape();
  if (outer.empty()) {
    copy_strided(from, 0, {}, to);
    return;
  }
  const std::vector<int64_t>& inner = maps.back();
  outer.pop_back();
  bool run = true;
  for (size_t i = 1; run && i < inner.size(); ++i) run = inner[i] == inner[i - 1] + 1;
  with_size(size_of(to.dtype()), [&](auto t) {
    using T = decltype(t);
    T* out = to.as<T>();
    for_each_index(outer, [&](const std::vector<int64_t>& index, int64_t) {
      int64_t base = 0;
      for (size_t d = 0; d < index.size(); ++d) base += maps[d][static_cast<size_t>(index[d])];
      const T* in = from.as<T>() + base;
      if (run) {
        std::memcpy(out, in + inner[0], inner.size() * sizeof(T));
        out += inner.size();
      } else {
        for (int64_t m : inner) *out++ = in[m];
      }
    });
  });
}

void fill_with(Tensor& to, const Tensor& from, int64_t index) {
  with_size(size_of(to.dtype()), [&](auto t) {
    using T = decltype(t);
    std::fill_n(to.as<T>(), to.size(), from.as<T>()[index]);
  });
}

}  // namespace sinter
