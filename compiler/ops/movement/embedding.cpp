// embedding (domain sinter, made by pass fuse_embedding): rows of tables, and tensors, added up and
// normalised.
//
//   sum[.., :] = tables[0][indices[0][..], :] + tables[1][indices[1][..], :] + .. + addends[0][.., :] + ..
//
// Inputs: `tables` pairs of a table [rows, elements] and its indices, then `addends` tensors whose last axis
// is elements; all broadcast along the axes before the last one. `norm` is "" (the sum is the result),
// "LayerNormalization" or "RMSNormalization" of the last axis with `epsilon`; then scale [elements] and,
// perhaps, bias [elements] follow. Indices count from the end where negative; one outside is an error of the
// run.
#include <cmath>

#include "ops/op.h"

namespace sinter {
namespace {

struct Form {
  size_t tables, addends;
  std::string norm;
  size_t scale() const { return 2 * tables + addends; }
  explicit Form(const Attributes& a)
      : tables(static_cast<size_t>(a.integer("tables", 0))),
        addends(static_cast<size_t>(a.integer("addends", 0))),
        norm(a.text("norm", "")) {}
};

void infer_embedding(Inference& x) {
  const Form f(x.attributes());
  const size_t count = x.in.size(), extra = f.norm.empty() ? 0 : 1;
  x.require(f.tables > 0 && f.tables < 100 && f.addends < 100 && count >= f.scale() + extra &&
                count <= f.scale() + 2 * extra,
            fmt::format("{} tables and {} addends for {} inputs", f.tables, f.addends, count));
  x.require(f.norm.empty() || f.norm == "LayerNormalization" || f.norm == "RMSNormalization",
            fmt::format("norm is {}", sinter::quoted(f.norm)));
  const DType t = x.dtype(0);
  x.require(is_float(t) && x.rank(0) == 2, "the first table is no matrix of floats");
  const Dim elements = x.shape(0)[1];
  std::vector<Shape> parts;
  for (size_t k = 0; k < f.tables; ++k) {
    x.require(x.dtype(2 * k) == t && x.rank(2 * k) == 2,
              fmt::format("table {} is {}", k, text(x.in[2 * k].type)));
    const DType i = x.dtype(2 * k + 1);
    x.require(i == DType::kI32 || i == DType::kI64, fmt::format("indices {} are {}", k, name_of(i)));
    x.require_equal(x.shape(2 * k)[1], elements, "elements of the tables");
    parts.push_back(x.shape(2 * k + 1));
  }
  for (size_t k = 2 * f.tables; k < f.scale(); ++k) {
    x.require(x.dtype(k) == t && x.rank(k) >= 1, fmt::format("addend {} is {}", k, text(x.in[k].type)));
    x.require_equal(x.shape(k).back(), elements, "elements of an addend");
    parts.emplace_back(x.shape(k).begin(), x.shape(k).end() - 1);
  }
  for (size_t k = f.scale(); k < count; ++k) {
    x.require(x.dtype(k) == t && x.rank(k) == 1, fmt::format("scale or bias is {}", text(x.in[k].type)));
    x.require_equal(x.shape(k)[0], elements, "elements of scale and bias");
  }
  std::vector<const Shape*> shapes;
  for (const Shape& s : parts) shapes.push_back(&s);
  Shape out = x.broadcast(shapes);
  out.push_back(elements);
  x.set(0, t, std::move(out));
}

// The row of a tensor of shape [rows.., n] (n left out of `shape`) that broadcasts to row `at` of `space`.
int64_t row_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& space, int64_t at) {
  int64_t row = 0, stride = 1;
  for (size_t i = 0; i < space.size(); ++i) {
    const size_t axis = space.size() - 1 - i;
    const int64_t index = at % space[axis];
    at /= space[axis];
    if (i >= shape.size()) continue;
    const int64_t extent = shape[shape.size() - 1 - i];
    row += (extent == 1 ? 0 : index) * stride;
    stride *= extent;
  }
  return row;
}

void normalize(std::vector<double>& v, const Evaluation& e, const Form& f) {
  const double n = static_cast<double>(v.size());
  double mean = 0, squares = 0;
  if (f.norm == "LayerNormalization")
    for (double d : v) mean += d / n;
  for (double d : v) squares += (d - mean) * (d - mean) / n;
  const double factor = 1 / std::sqrt(squares + static_cast<double>(e.attributes().real("epsilon", 1e-5f)));
  for (size_t j = 0; j < v.size(); ++j) {
    const int64_t at = static_cast<int64_t>(j);
    v[j] = (v[j] - mean) * factor * e.in[f.scale()].real(at);
    if (e.has(f.scale() + 1)) v[j] += e.in[f.scale() + 1].real(at);
  }
}

void eval_embedding(Evaluation& e) {
  const Form f(e.attributes());
  const int64_t elements = e.in[0].dim(1);
  std::vector<int64_t> space = e.out[0].shape();
  space.pop_back();
  const int64_t rows = elements > 0 ? e.out[0].size() / elements : 0;
  std::vector<double> v(static_cast<size_t>(elements));
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(v.begin(), v.end(), 0);
    const auto add = [&](const Tensor& t, int64_t row) {
      for (int64_t j = 0; j < elements; ++j) v[static_cast<size_t>(j)] += t.real(row * elements + j);
    };
    for (size_t k = 0; k < f.tables; ++k) {
      const int64_t count = e.in[2 * k].dim(0);
      int64_t row = e.in[2 * k + 1].integer(row_of(e.in[2 * k + 1].shape(), space, r));
      if (row < -count || row >= count)
        e.fail(fmt::format("index {} out of range for an axis of {}", row, count));
      add(e.in[2 * k], row < 0 ? row + count : row);
    }
    for (size_t k = 2 * f.tables; k < f.scale(); ++k) {
      std::vector<int64_t> shape = e.in[k].shape();
      shape.pop_back();
      add(e.in[k], row_of(shape, space, r));
    }
    if (!f.norm.empty()) normalize(v, e, f);
    for (int64_t j = 0; j < elements; ++j) e.out[0].set_real(r * elements + j, v[static_cast<size_t>(j)]);
  }
}

}  // namespace

const std::vector<Op>& ops_embedding() {
  static const std::vector<Op> table = {
      {.name = "embedding",
       .domain = "sinter",
       .min_inputs = 2,
       .max_inputs = -1,
       .infer = infer_embedding,
       .eval = eval_embedding,
       .note = "rows of tables added up, and their norm; made by pass fuse_embedding"},
  };
  return table;
}

}  // namespace sinter
