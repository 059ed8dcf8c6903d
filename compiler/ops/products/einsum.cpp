// Einsum: sums of products over named axes, any equation: several operands, repeated letters (diagonals),
// an ellipsis, implicit output.
//
// The equation is parsed into labels: letters, and one label per axis of the ellipsis, aligned at its last
// axis as broadcasting does. Every operand is then a list of labels, the output another; labels that the
// output lacks are summed over. An extent of 1 repeats along its label (stride 0).
#include "ops/products/einsum.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>

#include "ops/movement/movement.h"
#include "ops/op.h"
#include "ops/products/contraction.h"

namespace sinter {
namespace {

using Labels = Einsum::Labels;
constexpr int kEllipsis = Einsum::kEllipsis;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// One term. `rank` is the operand's, of which the ellipsis takes what the letters leave; for the output, the
// number of the ellipsis's axes is given instead. Refuses what is not an equation.
Labels parse_term(const std::string& term, std::optional<int64_t> rank, int64_t& ellipsis) {
  int64_t letters = 0;
  for (char c : term) letters += is_letter(c);
  const size_t dots = term.find("...");
  if (rank) {
    const int64_t left = *rank - letters;
    if (left < 0 || (left > 0 && dots == std::string::npos))
      refuse("equation term {} does not fit an operand of {} axes", sinter::quoted(term), *rank);
    if (dots != std::string::npos) ellipsis = std::max(ellipsis, left);
  }
  const int64_t own = rank ? *rank - letters : ellipsis;
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) {
      labels.push_back(term[i]);
    } else if (i == dots) {
      for (int64_t k = own; k-- > 0;) labels.push_back(kEllipsis + static_cast<int>(k));
      i += 2;
    } else {
      refuse("equation term {} has an unexpected character", sinter::quoted(term));
    }
  }
  return labels;
}

Labels implicit_output(const Einsum& q, int64_t ellipsis) {
  std::map<int, int> count;
  for (const Labels& l : q.operands)
    for (int label : l) ++count[label];
  Labels out;
  for (int64_t k = ellipsis; k-- > 0;) out.push_back(kEllipsis + static_cast<int>(k));
  for (const auto& [label, times] : count)
    if (label < kEllipsis && times == 1) out.push_back(label);
  return out;
}

}  // namespace

Einsum parse_einsum(std::string text, const std::vector<int64_t>& ranks) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != ranks.size())
    refuse("equation {} is for {} operands, there are {}", sinter::quoted(text), terms.size(), ranks.size());
  Einsum q;
  int64_t ellipsis = 0;
  for (size_t i = 0; i < terms.size(); ++i) q.operands.push_back(parse_term(terms[i], ranks[i], ellipsis));
  q.output = arrow == std::string::npos ? implicit_output(q, ellipsis)
                                        : parse_term(text.substr(arrow + 2), std::nullopt, ellipsis);
  for (size_t i = 0; i < q.output.size(); ++i) {
    const int label = q.output[i];
    const bool known = std::any_of(q.operands.begin(), q.operands.end(), [&](const Labels& l) {
      return std::find(l.begin(), l.end(), label) != l.end();
    });
    if (!known) refuse("equation {} has an output letter that no operand has", sinter::quoted(text));
    if (std::find(q.output.begin(), q.output.begin() + static_cast<std::ptrdiff_t>(i), label) !=
        q.output.begin() + static_cast<std::ptrdiff_t>(i))
      refuse("equation {} repeats a letter in the output", sinter::quoted(text));
  }
  return q;
}

namespace {

Dim broadcast_extents(Inference& x, const Dim& a, const Dim& b) {
  const Shape one{a}, other{b};
  return x.broadcast({&one, &other})[0];
}

void infer(Inference& x) {
  const DType t = x.dtype(0);
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < own_inputs(x); ++i) {
    x.require(x.has(i), fmt::format("input {} is missing", i));
    x.require(x.dtype(i) == t, fmt::format("inputs of types {} and {}", name_of(t), name_of(x.dtype(i))));
    ranks.push_back(x.rank(i));
  }
  x.require(is_float(t) ||
                (is_integer(t) && t != DType::kI4 && t != DType::kU4 && t != DType::kI2 && t != DType::kU2),
            fmt::format("not defined for {}", name_of(t)));
  const Einsum q = parse_einsum(x.attributes().text("equation", ""), ranks);
  std::map<int, Dim> extent;
  for (size_t i = 0; i < q.operands.size(); ++i)
    for (size_t d = 0; d < q.operands[i].size(); ++d) {
      const int label = q.operands[i][d];
      const Dim& e = x.shape(i)[d];
      const auto [at, fresh] = extent.try_emplace(label, e);
      if (fresh || e.is(1)) continue;
      if (at->second.is(1))
        at->second = e;
      else if (label >= kEllipsis)
        at->second = broadcast_extents(x, at->second, e);
      else
        at->second = x.require_equal(at->second, e, fmt::format("axis {} of input {}", d, i));
    }
  Shape s;
  for (int label : q.output) s.push_back(extent.at(label));
  x.set(0, t, std::move(s));
}

// --- evaluation

// The extents of all labels, the output's first, and each operand's stride along each of them (repeated
// letters add up: a diagonal).
struct Space {
  Labels labels;
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;  // [operand][label]
  size_t kept = 0;                            // labels of the output
};
Space space_of(const Einsum& q, const std::vector<Tensor>& in) {
  Space s;
  s.labels = q.output;
  s.kept = q.output.size();
  for (const Labels& l : q.operands)
    for (int label : l)
      if (std::find(s.labels.begin(), s.labels.end(), label) == s.labels.end()) s.labels.push_back(label);
  s.extents.assign(s.labels.size(), 1);
  for (size_t i = 0; i < in.size(); ++i) {
    s.strides.emplace_back(s.labels.size(), 0);
    const std::vector<int64_t> own = row_major_strides(in[i].shape());
    for (size_t d = 0; d < own.size(); ++d) {
      const int64_t extent = in[i].shape()[d];
      if (extent == 1) continue;
      const size_t at = static_cast<size_t>(std::find(s.labels.begin(), s.labels.end(), q.operands[i][d]) -
                                            s.labels.begin());
      s.extents[at] = extent;
      s.strides[i][at] += own[d];
    }
  }
  return s;
}

// Any equation, one product at a time. Floats in double, integers modulo 2^64.
template <class T>
void sum_products(const Space& s, const std::vector<Tensor>& in, Tensor& out) {
  constexpr bool small = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
  using A = std::conditional_t<small || std::is_floating_point_v<T>, double, uint64_t>;
  std::vector<A> acc(static_cast<size_t>(out.size()), A{0});
  int64_t total = 1, sums = 1;
  for (size_t l = 0; l < s.labels.size(); ++l) (l < s.kept ? total : sums) *= s.extents[l];
  total *= sums;
  std::vector<int64_t> index(s.labels.size(), 0), at(in.size(), 0);
  for (int64_t i = 0; i < total; ++i) {
    A product{1};
    for (size_t k = 0; k < in.size(); ++k) {
      const T v = in[k].as<T>()[at[k]];
      if constexpr (small)
        product *= static_cast<A>(to_float(v));
      else
        product *= static_cast<A>(v);
    }
    acc[static_cast<size_t>(i / sums)] += product;
    for (size_t l = s.labels.size(); l-- > 0;) {
      for (size_t k = 0; k < in.size(); ++k) at[k] += s.strides[k][l];
      if (++index[l] < s.extents[l]) break;
      for (size_t k = 0; k < in.size(); ++k) at[k] -= s.strides[k][l] * s.extents[l];
      index[l] = 0;
    }
  }
  for (size_t i = 0; i < acc.size(); ++i) {
    if constexpr (std::is_same_v<T, half>)
      out.as<T>()[i] = to_half(static_cast<float>(acc[i]));
    else if constexpr (std::is_same_v<T, bfloat16>)
      out.as<T>()[i] = to_bfloat16(static_cast<float>(acc[i]));
    else
      out.as<T>()[i] = static_cast<T>(acc[i]);
  }
}

// Two operands whose labels are each a batch axis (in both and the output), a row (first and output), a
// column (second and output) or a sum (both): the batched matrix product
// [batch][rows][sums] x [batch][sums][columns].
struct Product {
  Labels batch, rows, columns, sums;
};
std::optional<Product> as_product(const Einsum& q, const Space& s, const std::vector<Tensor>& in) {
  if (in.size() != 2) return std::nullopt;
  Product p;
  for (size_t l = 0; l < s.labels.size(); ++l) {
    const int label = s.labels[l];
    const auto times = [&](size_t k) {
      return std::count(q.operands[k].begin(), q.operands[k].end(), label);
    };
    const bool a = times(0) > 0, b = times(1) > 0, out = l < s.kept;
    const bool repeated = times(0) > 1 || times(1) > 1;
    const bool stretched = s.extents[l] != 1 && ((a && s.strides[0][l] == 0) || (b && s.strides[1][l] == 0));
    if (repeated || stretched || (!out && !(a && b))) return std::nullopt;
    (!out ? p.sums : a && b ? p.batch : a ? p.rows : p.columns).push_back(label);
  }
  return p;
}
Labels joined(Labels a, const Labels& b, const Labels& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}
// The permutation from a tensor with axes `from` to one with axes `to`.
std::vector<int64_t> permutation(const Labels& from, const Labels& to) {
  std::vector<int64_t> p;
  for (int label : to) p.push_back(std::find(from.begin(), from.end(), label) - from.begin());
  return p;
}
template <class T>
Tensor batched_product(const Einsum& q, const Space& s, const Product& p, const std::vector<Tensor>& in) {
  const auto extents = [&](const Labels& labels) {
    std::vector<int64_t> e;
    for (int label : labels)
      e.push_back(s.extents[static_cast<size_t>(std::find(s.labels.begin(), s.labels.end(), label) -
                                                s.labels.begin())]);
    return e;
  };
  const auto count = [&](const Labels& labels) {
    int64_t n = 1;
    for (int64_t e : extents(labels)) n *= e;
    return n;
  };
  const Tensor a = in[0].transposed(permutation(q.operands[0], joined(p.batch, p.rows, p.sums)));
  const Tensor b = in[1].transposed(permutation(q.operands[1], joined(p.batch, p.sums, p.columns)));
  const Labels order = joined(p.batch, p.rows, p.columns);
  Tensor c(in[0].dtype(), extents(order));
  const int64_t m = count(p.rows), n = count(p.columns), k = count(p.sums);
  for (int64_t i = 0; i < count(p.batch); ++i)
    multiply(false, false, m, n, k, a.as<T>() + i * m * k, k, b.as<T>() + i * k * n, n, c.as<T>() + i * m * n,
             n);
  return c.transposed(permutation(order, q.output));
}

void eval(Evaluation& e) {
  std::vector<int64_t> ranks;
  for (const Tensor& t : e.in) ranks.push_back(t.rank());
  const Einsum q = parse_einsum(e.attributes().text("equation", ""), ranks);
  const Space s = space_of(q, e.in);
  const bool empty = std::any_of(e.in.begin(), e.in.end(), [](const Tensor& t) { return t.size() == 0; });
  const bool huge =  // for the extents' type of a matrix product
      std::any_of(e.in.begin(), e.in.end(), [](const Tensor& t) { return t.size() > INT32_MAX; });
  const auto product = empty || huge ? std::nullopt : as_product(q, s, e.in);
  const DType t = e.in[0].dtype();
  if (product && t == DType::kF32)
    e.out[0] = batched_product<float>(q, s, *product, e.in);
  else if (product && t == DType::kF64)
    e.out[0] = batched_product<double>(q, s, *product, e.in);
  else if (!empty)
    with_type(t, [&](auto tag) { sum_products<decltype(tag)>(s, e.in, e.out[0]); });
}

}  // namespace

const std::vector<Op>& ops_einsum() {
  static const std::vector<Op> table = {
      {.name = "Einsum", .max_inputs = -1, .infer = infer, .eval = eval},
  };
  return table;
}

}  // namespace sinter
