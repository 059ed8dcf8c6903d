// embedding: a row of the result at a time. The rows of the tables are found and checked, added up into the
// result's row, which stays in the first-level cache while it is normalised there.
#include "emit/expr_text.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "embedding" && std::string_view(n.op->domain) == "sinter" &&
         !n.epilogue && n.inputs[0]->type.dtype == element_type(n);
}

class Writer {
 public:
  explicit Writer(LayerWriter& w) : w_(w), n_(w.node) {}

  void write() {
    const auto tables = static_cast<size_t>(n_.attributes.integer("tables", 0)),
               addends = static_cast<size_t>(n_.attributes.integer("addends", 0)),
               scale = 2 * tables + addends;
    const std::string norm = n_.attributes.text("norm", "");
    const TensorType& y = n_.outputs[0]->type;
    begin(tables, addends, norm);
    for (size_t a = 0; a + 1 < y.shape.size(); ++a) {
      index_.push_back(fmt::format("i{}", a));
      w_.out.put(loop_text(index_[a], w_.dim(y.shape[a])));
    }
    for (size_t k = 0; k < tables; ++k) look_up(k);
    for (size_t k = 0; k < addends; ++k) {
      const Value& v = *n_.inputs[2 * tables + k];
      declare_row(plus(w_.input(2 * tables + k),
                       times(row_of(Shape(v.type.shape.begin(), v.type.shape.end() - 1)), elements_)));
    }
    const Shape outer(y.shape.begin(), y.shape.end() - 1);
    w_.out.line("float* const to = {};", plus(w_.output(0), times(row_of(outer), elements_)));
    add_up(norm == "LayerNormalization");
    if (!norm.empty()) normalize(norm == "LayerNormalization", scale);
    for (size_t a = 0; a < index_.size(); ++a) w_.out.line("}}");
    w_.out.line("return sinter::kOk;");
  }

 private:
  void begin(size_t tables, size_t addends, const std::string& norm) {
    for (const char* h : {"sinter/math.h", "sinter/index.h", "sinter/status.h"}) w_.include(h);
    w_.can_fail();
    const TensorType& y = n_.outputs[0]->type;
    w_.flops(product(y.shape) * Dim(static_cast<int64_t>(tables + addends) - 1 + (norm.empty() ? 0 : 7)));
    w_.summary(fmt::format("rows of {} tables{} -> {}{}", tables,
                           addends ? fmt::format(" and {} addends", addends) : "", text(y),
                           norm.empty() ? "" : ", then " + norm));
    elements_ = w_.dim(y.shape.back());
    const Dim& d = y.shape.back();
    whole_ = w_.target.lanes == 1 || (d.is_static() && d.value() % w_.target.lanes == 0);
  }

  // The number of the row of a tensor with these axes before the last one, broadcast to the loops.
  std::string row_of(const Shape& axes) {
    std::string row = "0";
    for (size_t a = 0; a < axes.size(); ++a) {
      const std::string& i = index_[index_.size() - axes.size() + a];
      row = times(row, w_.dim(axes[a]));
      if (!axes[a].is(1)) row = plus(row, i);
    }
    return row;
  }
  void declare_row(const std::string& pointer) {
    w_.out.line("const float* const row{} = {};", rows_++, pointer);
  }
  void look_up(size_t k) {
    w_.out.line("const std::int64_t at{} = sinter::index_of({}[{}], {});", k, w_.input(2 * k + 1),
                row_of(n_.inputs[2 * k + 1]->type.shape), w_.dim(n_.inputs[2 * k]->type.shape[0]));
    w_.out.line("if (at{} < 0) return sinter::kIndexError;", k);
    declare_row(fmt::format("{} + at{} * {}", w_.input(2 * k), k, elements_));
  }

  // Loops over the elements: `vector` for as many as fill lanes, `scalar` for the others.
  template <class V, class S>
  void elements(V vector, S scalar) {
    w_.out.line("i = 0;");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) {{", elements_);
    vector();
    w_.out.line("}}");
    if (whole_) return;
    w_.out.line("for (; i < {}; ++i) {{", elements_);
    scalar();
    w_.out.line("}}");
  }

  void add_up(bool with_sum) {
    std::string vector = "load(row0 + i)", scalar = "row0[i]";
    for (int k = 1; k < rows_; ++k) {
      vector = fmt::format("add({}, load(row{} + i))", vector, k);
      scalar += fmt::format(" + row{}[i]", k);
    }
    w_.out.line("std::int64_t i;");
    if (with_sum) w_.out.line("f32v sums = zero();");
    if (with_sum) w_.out.line("float rest = 0.0f;");
    elements(
        [&] {
          w_.out.line("const f32v v = {};", vector);
          w_.out.line("store(to + i, v);");
          if (with_sum) w_.out.line("sums = add(sums, v);");
        },
        [&] {
          w_.out.line("const float v = {};", scalar);
          w_.out.line("to[i] = v;");
          if (with_sum) w_.out.line("rest += v;");
        });
  }

  void normalize(bool layer, size_t scale) {
    const Dim& d = n_.outputs[0]->type.shape.back();
    const std::string count = d.is_static() ? float_literal(static_cast<double>(d.value()))
                                            : fmt::format("static_cast<float>({})", elements_);
    if (layer) w_.out.line("const float mean = (hsum(sums) + rest) / {};", count);
    const std::string vector = layer ? "sub(load(to + i), splat(mean))" : "load(to + i)",
                      scalar = layer ? "to[i] - mean" : "to[i]";
    w_.out.line("f32v squares = zero();");
    w_.out.line("float more = 0.0f;");
    elements(
        [&] {
          w_.out.line("const f32v d = {};", vector);
          w_.out.line("squares = fma(d, d, squares);");
        },
        [&] {
          w_.out.line("const float d = {};", scalar);
          w_.out.line("more += d * d;");
        });
    w_.out.line("const float factor = 1.0f / sqrt((hsum(squares) + more) / {} + {});", count,
                float_literal(static_cast<double>(n_.attributes.real("epsilon", 1e-5f))));
    const std::string s = w_.input(scale), b = n_.input(scale + 1) ? w_.input(scale + 1) : "";
    elements(
        [&] {
          const std::string v = fmt::format("mul({}, splat(factor))", vector);
          w_.out.line("store(to + i, {});",
                      b.empty() ? fmt::format("mul({}, load({} + i))", v, s)
                                : fmt::format("fma({}, load({} + i), load({} + i))", v, s, b));
        },
        [&] {
          w_.out.line("to[i] = ({}) * factor * {}[i]{};", scalar, s,
                      b.empty() ? "" : fmt::format(" + {}[i]", b));
        });
  }

  LayerWriter& w_;
  const Node& n_;
  std::vector<std::string> index_;
  std::string elements_;
  bool whole_ = false;
  int rows_ = 0;
};

void emit(LayerWriter& w) { Writer(w).write(); }

}  // namespace

const std::vector<Kernel>& kernels_embedding() {
  static const std::vector<Kernel> table = {
      {"embedding", "embedding: rows of tables added up, and their norm", accepts, emit}};
  return table;
}

}  // namespace sinter
