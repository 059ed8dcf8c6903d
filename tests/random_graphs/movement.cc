// What moves elements: reshapes, transposes, slices, concatenations, gathers, and shapes computed from
// shapes.
#include "random_graphs/productions.h"

namespace sinter::random_graphs {
namespace {

const Item* any_value(Builder& b, size_t rank) {
  return b.any([&](const Item& i) { return is_number(i.dtype) && i.rank() >= rank; });
}

bool add_transpose(Builder& b) {
  const Item* x = any_value(b, 2);
  if (!x) return false;
  std::vector<int64_t> perm(x->rank());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  for (size_t i = perm.size() - 1; i > 0; --i) std::swap(perm[i], perm[b.below(i + 1)]);
  b.node("Transpose", {x->name}, {{"perm", perm}});
  return true;
}

bool add_reshape(Builder& b) {
  const Item* x = any_value(b, 2);
  if (!x) return false;
  switch (b.below(4)) {
    case 0:
      b.node("Flatten", {x->name}, {{"axis", b.between(0, static_cast<int64_t>(x->rank()))}});
      return true;
    case 1: b.node("Reshape", {x->name, b.integers({0, -1})}); return true;
    case 2: {  // the last axis in two
      const int64_t n = x->shape.back();
      if (n < 2 || n % 2 != 0) return false;
      std::vector<int64_t> to(x->rank() - 1, 0);
      to.push_back(b.chance(50) ? 2 : n / 2);
      to.push_back(-1);
      b.node("Reshape", {x->name, b.integers(to)});
      return true;
    }
    default: {  // two axes in one
      if (x->rank() < 3) return false;
      std::vector<int64_t> to(x->rank() - 2, 0);
      to.push_back(-1);
      b.node("Reshape", {x->name, b.integers(to)});
      return true;
    }
  }
}

// The target of a Reshape computed from Shape, as exporters do it.
bool add_computed_reshape(Builder& b) {
  const Item* x = any_value(b, 3);
  if (!x) return false;
  const std::string shape = b.node("Shape", {x->name});
  const std::string first = b.node("Gather", {shape, b.integers({0})});
  const std::string target = b.node("Concat", {first, b.integers({-1})}, {{"axis", int64_t{0}}});
  b.node("Reshape", {x->name, target});
  return true;
}

bool add_squeeze(Builder& b) {
  const Item* x = any_value(b, 1);
  if (!x) return false;
  std::vector<int64_t> ones;
  for (size_t d = 0; d < x->rank(); ++d)
    if (x->shape[d] == 1) ones.push_back(static_cast<int64_t>(d));
  if (!ones.empty() && b.chance(50))
    b.node("Squeeze", {x->name, b.integers({ones[b.below(ones.size())]})});
  else if (x->rank() < 5)
    b.node("Unsqueeze", {x->name, b.integers({b.between(0, static_cast<int64_t>(x->rank()))})});
  else
    return false;
  return true;
}

// An axis with a static extent of at least `least`; -1 where there is none.
int64_t static_axis(Builder& b, const Item& x, int64_t least) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < x.rank(); ++d)
    if (x.shape[d] >= least) axes.push_back(static_cast<int64_t>(d));
  return axes.empty() ? -1 : axes[b.below(axes.size())];
}

bool add_slice(Builder& b) {
  const Item* x = any_value(b, 1);
  const int64_t axis = x ? static_axis(b, *x, 2) : -1;
  if (axis < 0) return false;
  const int64_t n = x->shape[static_cast<size_t>(axis)];
  if (b.chance(25)) {
    b.node("Slice", {x->name, b.integers({-1}), b.integers({-n - 1}), b.integers({axis}),
                     b.integers({b.one_of<int64_t>({-1, -2})})});
    return true;
  }
  const int64_t start = b.between(0, n - 1), end = b.chance(30) ? INT64_MAX : b.between(start + 1, n);
  b.node("Slice", {x->name, b.integers({start}), b.integers({end}), b.integers({axis}),
                   b.integers({b.one_of<int64_t>({1, 1, 2})})});
  return true;
}

bool add_split(Builder& b) {
  const Item* x = any_value(b, 1);
  const int64_t axis = x ? static_axis(b, *x, 2) : -1;
  if (axis < 0) return false;
  const int64_t n = x->shape[static_cast<size_t>(axis)], first = b.between(1, n - 1);
  const std::string y = b.node("Split", {x->name, b.integers({first, n - first})}, {{"axis", axis}}, 2);
  if (is_float(x->dtype) && n == 2 * first && b.chance(70)) {
    if (b.chance(50))
      b.node("Mul", {y, b.node("Sigmoid", {y + "_1"})});  // a gated unit
    else
      b.node("Concat", {b.node("Relu", {y + "_1"}), y}, {{"axis", axis}});
  }
  return true;
}

bool add_concat(Builder& b) {
  const Item* x = any_value(b, 1);
  if (!x) return false;
  const size_t axis = b.below(x->rank());
  std::vector<std::string> in = {x->name};
  for (int k = 0; k < 2; ++k) {
    const Item* y = b.any([&](const Item& i) {
      if (i.dtype != x->dtype || i.rank() != x->rank()) return false;
      for (size_t d = 0; d < x->rank(); ++d)
        if (d != axis && i.dims[d] != x->dims[d]) return false;
      return true;
    });
    if (y && (k == 0 || b.chance(40))) in.push_back(y->name);
  }
  b.node("Concat", in, {{"axis", static_cast<int64_t>(axis)}});
  return true;
}

bool add_gather(Builder& b) {
  const Item* x = any_value(b, 1);
  const int64_t axis = x ? static_axis(b, *x, 2) : -1;
  if (axis < 0) return false;
  const int64_t n = x->shape[static_cast<size_t>(axis)];
  std::vector<int64_t> indices;
  for (int64_t k = b.between(1, 4); k > 0; --k) indices.push_back(b.between(-n, n - 1));
  if (b.chance(25))
    b.node("Gather", {x->name, b.scalar(DType::kI64, static_cast<double>(indices[0]))}, {{"axis", axis}});
  else
    b.node("Gather", {x->name, b.integers(indices)}, {{"axis", axis}});
  return true;
}

bool add_gather_elements(Builder& b) {
  const Item* x = b.any([](const Item& i) { return is_number(i.dtype) && i.rank() > 0 && i.is_static(); });
  if (!x) return false;
  const int64_t axis = b.between(0, static_cast<int64_t>(x->rank()) - 1),
                n = x->shape[static_cast<size_t>(axis)];
  const std::string indices =
      b.weight(DType::kI64, x->shape, static_cast<double>(-n), static_cast<double>(n - 1));
  b.node("GatherElements", {x->name, indices}, {{"axis", axis}});
  return true;
}

bool add_expand(Builder& b) {
  const Item* x = any_value(b, 1);
  if (!x) return false;
  if (b.chance(50)) {
    std::vector<int64_t> to(x->rank(), 1);
    for (size_t d = 0; d < x->rank(); ++d)
      if (x->shape[d] == 1) to[d] = b.between(1, 3);
    if (b.chance(40)) to.insert(to.begin(), 2);
    b.node("Expand", {x->name, b.integers(to)});
  } else {
    std::vector<int64_t> times;
    for (size_t d = 0; d < x->rank(); ++d) times.push_back(b.chance(30) ? 2 : 1);
    b.node("Tile", {x->name, b.integers(times)});
  }
  return true;
}

bool add_pad(Builder& b) {
  const Item* x = any_value(b, 1);
  if (!x || x->dtype == DType::kBool) return false;
  const size_t r = x->rank();
  const std::string mode = b.one_of<std::string>({"constant", "edge", "reflect", "wrap"});
  std::vector<int64_t> pads(2 * r, 0);
  for (size_t d = 0; d < r; ++d) {
    const int64_t most = mode == "constant" ? 2 : x->shape[d] < 3 ? 0 : 2;
    pads[d] = b.between(0, most);
    pads[d + r] = b.chance(15) && x->shape[d] > 3 ? -1 : b.between(0, most);
  }
  std::vector<std::string> in = {x->name, b.integers(pads)};
  if (mode == "constant" && b.chance(50)) in.push_back(b.scalar(x->dtype, 2));
  b.node("Pad", in, {{"mode", mode}});
  return true;
}

bool add_trilu(Builder& b) {
  const Item* x = any_value(b, 2);
  if (!x) return false;
  b.node("Trilu", {x->name}, {{"upper", static_cast<int64_t>(b.below(2))}});
  return true;
}

bool add_scatter(Builder& b) {
  const Item* x = b.any([](const Item& i) {
    return (is_float(i.dtype) || i.dtype == DType::kI32) && i.rank() > 0 && i.is_static();
  });
  if (!x) return false;
  const int64_t axis = b.between(0, static_cast<int64_t>(x->rank()) - 1);
  std::vector<int64_t> shape = x->shape;
  shape[static_cast<size_t>(axis)] = 1;
  const std::string indices =
      b.weight(DType::kI64, shape, 0, static_cast<double>(x->shape[static_cast<size_t>(axis)] - 1));
  b.node("ScatterElements", {x->name, indices, b.weight(x->dtype, shape, -2, 2)},
         {{"axis", axis}, {"reduction", b.one_of<std::string>({"none", "add", "max", "mul"})}});
  return true;
}

bool add_constant_fill(Builder& b) {
  const Item* x = any_value(b, 1);
  if (!x) return false;
  const std::string shape = b.node("Shape", {x->name});
  const std::string zeros = b.node("ConstantOfShape", {shape});
  if (x->dtype == DType::kF32) b.node("Sub", {zeros, x->name});
  return true;
}

// Elements that the data choose: their number is known at run time only.
bool add_chosen(Builder& b) {
  const Item* x = b.any([](const Item& i) { return is_number(i.dtype) && i.rank() > 0 && i.rank() < 4; });
  if (!x) return false;
  if (b.chance(50)) {
    b.node("NonZero", {x->name});
    return true;
  }
  const int64_t axis = static_axis(b, *x, 2);
  if (axis < 0) return false;
  b.node("Compress", {x->name, b.weight(DType::kBool, {x->shape[static_cast<size_t>(axis)]}, 0, 1)},
         {{"axis", axis}});
  return true;
}

}  // namespace

const std::vector<Production>& movement_productions() {
  static const std::vector<Production> table = {{"transpose", 8, add_transpose},
                                                {"reshape", 6, add_reshape},
                                                {"computed_reshape", 3, add_computed_reshape},
                                                {"squeeze", 4, add_squeeze},
                                                {"slice", 5, add_slice},
                                                {"split", 5, add_split},
                                                {"concat", 5, add_concat},
                                                {"gather", 4, add_gather},
                                                {"gather_elements", 2, add_gather_elements},
                                                {"expand", 3, add_expand},
                                                {"pad", 3, add_pad},
                                                {"trilu", 1, add_trilu},
                                                {"scatter", 2, add_scatter},
                                                {"fill", 2, add_constant_fill},
                                                {"chosen", 1, add_chosen}};
  return table;
}

}  // namespace sinter::random_graphs
