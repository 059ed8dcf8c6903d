// ai.onnx.ml on numbers: trees, linear models, support vector machines, scaling and encoding.
//
// The tables are attributes, checked in ml_tables.cpp; eval and generated code share runtime/sinter/ml.h and
// svm.h, and what trees.h makes of scores. Text (labels, keys, categories) and maps are refused; ZipMap is
// its tensor input.
#include <cmath>

#include "ops/movement/movement.h"
#include "ops/tables/ml_tables.h"

namespace sinter {
namespace {

void require_number(const Inference& x, size_t i = 0) {
  const DType t = x.dtype(i);
  x.require(t == DType::kF32 || t == DType::kF64 || t == DType::kI32 || t == DType::kI64,
            fmt::format("not defined for {}", name_of(t)));
}
int64_t rows_of(const Tensor& t) { return t.rank() == 2 ? t.dim(0) : 1; }
int64_t features_of(const Tensor& t) { return t.dim(t.rank() - 1); }
template <class F>
void with_input(const Tensor& x, F f) {
  with_type(x.dtype(), [&](auto tag) { f(x.as<decltype(tag)>()); });
}
// A table of one entry or one a feature.
void require_table(Inference& x, size_t entries, const Dim& features, const std::string& what) {
  x.require(entries > 0, "its " + what + " is empty");
  if (entries != 1) x.require_equal(static_cast<int64_t>(entries), features, "entries of " + what);
}

// ---- Binarizer, Scaler, Normalizer, Imputer

ExprPtr binarizer(const Node& n, const std::vector<ExprPtr>& a) {
  const DType t = a[0]->dtype, wide = t == DType::kF32 ? t : DType::kF64;
  const ExprPtr above = Expr::call(
      "gt",
      {Expr::cast(a[0], wide), Expr::constant(static_cast<double>(n.attributes.real("threshold", 0)), wide)});
  return Expr::cast(above, t);
}
void infer_binarizer(Inference& x) {
  require_number(x);
  x.attributes().real("threshold", 0);
  x.same(0, 0);
}

void infer_scaler(Inference& x) {
  require_number(x);
  const Dim features = matrix_of(x.shape(0)).features;
  require_table(x, floats_of(x.attributes(), "offset", {0}).size(), features, "offset");
  require_table(x, floats_of(x.attributes(), "scale", {1}).size(), features, "scale");
  x.set(0, DType::kF32, x.shape(0));
}
void eval_scaler(Evaluation& e) {
  const auto offset = floats_of(e.attributes(), "offset", {0}),
             scale = floats_of(e.attributes(), "scale", {1});
  with_input(e.in[0], [&](auto* x) {
    ml_scale(x, rows_of(e.in[0]), features_of(e.in[0]), offset.data(), static_cast<int64_t>(offset.size()),
             scale.data(), static_cast<int64_t>(scale.size()), e.out[0].as<float>());
  });
}

void infer_normalizer(Inference& x) {
  require_number(x);
  matrix_of(x.shape(0));
  norm_of(x.attributes());
  x.set(0, DType::kF32, x.shape(0));
}
void eval_normalizer(Evaluation& e) {
  with_input(e.in[0], [&](auto* x) {
    ml_normalize(x, rows_of(e.in[0]), features_of(e.in[0]), norm_of(e.attributes()), e.out[0].as<float>());
  });
}

void infer_imputer(Inference& x) {
  require_number(x);
  const Tensor values = imputed_of(x.node, x.dtype(0)).values;
  require_table(x, static_cast<size_t>(values.size()), matrix_of(x.shape(0)).features, "imputed values");
  x.same(0, 0);
}
void eval_imputer(Evaluation& e) {
  const ImputerTables t = imputed_of(e.node, e.in[0].dtype());
  with_type(e.in[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_arithmetic_v<T>)
      ml_impute(e.in[0].as<T>(), rows_of(e.in[0]), features_of(e.in[0]), t.replaced.as<T>()[0],
                t.values.as<T>(), t.values.size(), e.out[0].as<T>());
  });
}

// ---- LabelEncoder, OneHotEncoder, ArrayFeatureExtractor, FeatureVectorizer

void infer_encoder(Inference& x) {
  const EncoderTables t = encoder_of(x.node);
  x.require(x.dtype(0) == t.keys.dtype(),
            fmt::format("its keys are {}, the input is {}", name_of(t.keys.dtype()), name_of(x.dtype(0))));
  x.set(0, t.values.dtype(), x.shape(0));
}
void eval_encoder(Evaluation& e) {
  const EncoderTables t = encoder_of(e.node);
  with_type(t.keys.dtype(), [&](auto k) {
    with_type(t.values.dtype(), [&](auto v) {
      using K = decltype(k);
      using V = decltype(v);
      if constexpr (std::is_arithmetic_v<K> && std::is_arithmetic_v<V>)
        ml_encode(e.in[0].as<K>(), e.in[0].size(), t.keys.as<K>(), t.values.as<V>(), t.keys.size(),
                  t.other.as<V>()[0], e.out[0].as<V>());
    });
  });
}

void infer_one_hot(Inference& x) {
  require_number(x);
  const Attributes& a = x.attributes();
  x.require(!a.has("cats_strings") || a.texts("cats_strings").empty(),
            "its cats_strings are text, which is not supported");
  const auto categories = a.integers("cats_int64s");
  x.require(!categories.empty(), "its cats_int64s is empty");
  Shape out = x.shape(0);
  out.emplace_back(static_cast<int64_t>(categories.size()));
  x.set(0, DType::kF32, std::move(out));
}
void eval_one_hot(Evaluation& e) {
  const auto categories = e.attributes().integers("cats_int64s");
  with_input(e.in[0], [&](auto* x) {
    if (!ml_one_hot(x, e.in[0].size(), categories.data(), static_cast<int64_t>(categories.size()),
                    e.attributes().integer("zeros", 1) == 0, e.out[0].as<float>()))
      e.fail("an element is none of its categories, and zeros is 0");
  });
}

void infer_extractor(Inference& x) {
  require_number(x);
  x.require(x.rank(0) >= 1, "one axis at least is needed");
  x.require(x.dtype(1) == DType::kI64, "its indices are not int64");
  Shape out = x.rank(0) == 1 ? Shape{Dim(1)} : Shape(x.shape(0).begin(), x.shape(0).end() - 1);
  out.push_back(product(x.shape(1)));
  x.set(0, x.dtype(0), std::move(out));
}
void eval_extractor(Evaluation& e) {
  const int64_t features = features_of(e.in[0]), rows = features == 0 ? 0 : e.in[0].size() / features;
  with_type(e.in[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (!ml_extract(e.in[0].as<T>(), rows, features, e.in[1].as<int64_t>(), e.in[1].size(), e.out[0].as<T>()))
      e.fail("an index is outside of the features");
  });
}

void infer_vectorizer(Inference& x) {
  const auto wide = x.attributes().integers("inputdimensions");
  x.require(wide.size() == x.in.size(),
            fmt::format("{} inputdimensions for {} inputs", wide.size(), x.in.size()));
  int64_t all = 0;
  Dim rows = matrix_of(x.shape(0)).rows;
  for (size_t i = 0; i < x.in.size(); ++i) {
    x.require(x.has(i), fmt::format("input {} is missing", i));
    require_number(x, i);
    x.require(wide[i] >= 0 && wide[i] < 1 << 28, fmt::format("its inputdimensions holds {}", wide[i]));
    rows = x.require_equal(rows, matrix_of(x.shape(i)).rows, fmt::format("rows of input {}", i));
    all += wide[i];
  }
  x.set(0, DType::kF32, {rows, Dim(all)});
}
void eval_vectorizer(Evaluation& e) {
  const auto wide = e.attributes().integers("inputdimensions");
  int64_t at = 0;
  for (size_t i = 0; i < wide.size(); at += wide[i++])
    with_input(e.in[i], [&](auto* x) {
      ml_place(x, rows_of(e.in[i]), features_of(e.in[i]), wide[i], e.out[0].dim(1),
               e.out[0].as<float>() + at);
    });
}

// ---- Linear models, support vector machines

void set_classes(Inference& x, const Dim& rows, int64_t width) {
  x.set(0, DType::kI64, {rows});
  x.set(1, DType::kF32, {rows, Dim(width)});
}
void infer_linear(Inference& x) {
  require_number(x);
  const LinearTables l = linear_of(x.node);
  const Matrix m = matrix_of(x.shape(0));
  x.require_equal(m.features, l.features, "features");
  if (std::string_view(x.node.op->name) == "LinearRegressor")
    x.set(0, DType::kF32, {m.rows, Dim(l.targets)});
  else
    set_classes(x, m.rows, static_cast<int64_t>(l.classes.size()));
}
const float* data_or_null(const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); }

void eval_linear_regressor(Evaluation& e) {
  const LinearTables l = linear_of(e.node);
  std::vector<double> scores(static_cast<size_t>(l.targets));
  with_input(e.in[0], [&](auto* x) {
    ml_linear_regression(x, rows_of(e.in[0]), l.features, l.coefficients.data(), data_or_null(l.intercepts),
                         l.targets, l.post, scores.data(), e.out[0].as<float>());
  });
}
// Classifiers write both outputs; one that nobody wants goes nowhere.
struct Classes {
  std::vector<int64_t> labels;
  std::vector<float> scores;
  Classes(int64_t rows, int64_t width)
      : labels(static_cast<size_t>(rows)), scores(static_cast<size_t>(rows * width)) {}
  void store(Evaluation& e, int64_t width) const {
    const auto rows = static_cast<int64_t>(labels.size());
    if (e.node.has_output(0)) e.out[0] = Tensor::of(labels);
    if (e.node.has_output(1)) e.out[1] = Tensor::of(scores, {rows, width});
  }
};
void eval_linear_classifier(Evaluation& e) {
  const LinearTables l = linear_of(e.node);
  const auto count = static_cast<int64_t>(l.classes.size());
  Classes c(rows_of(e.in[0]), count);
  std::vector<double> scores(static_cast<size_t>(count));
  with_input(e.in[0], [&](auto* x) {
    ml_linear_classes(x, rows_of(e.in[0]), l.features, l.coefficients.data(), data_or_null(l.intercepts),
                      l.targets, l.post, l.classes.data(), count, scores.data(), c.labels.data(),
                      c.scores.data());
  });
  c.store(e, count);
}

void infer_svm(Inference& x) {
  require_number(x);
  const SvmTables t = svm_of(x.node);
  const Matrix m = matrix_of(x.shape(0));
  x.require_equal(m.features, t.shape.features, "features");
  if (std::string_view(x.node.op->name) == "SVMRegressor")
    x.set(0, DType::kF32, {m.rows, Dim(1)});
  else
    set_classes(x, m.rows, t.shape.width());
}
SvmModel model_of(const SvmTables& t) {
  return {t.vectors.data(), t.coefficients.data(), t.rho.data(),    t.prob_a.data(),
          t.prob_b.data(),  t.per_class.data(),    t.classes.data()};
}
void eval_svm_regressor(Evaluation& e) {
  const SvmTables t = svm_of(e.node);
  with_input(e.in[0], [&](auto* x) {
    svm_regression(t.shape, model_of(t), x, rows_of(e.in[0]), e.out[0].as<float>());
  });
}
void eval_svm_classifier(Evaluation& e) {
  const SvmTables t = svm_of(e.node);
  Classes c(rows_of(e.in[0]), t.shape.width());
  std::vector<double> work(static_cast<size_t>(t.shape.work()));
  with_input(e.in[0], [&](auto* x) {
    svm_classes(t.shape, model_of(t), x, rows_of(e.in[0]), work.data(), c.labels.data(), c.scores.data());
  });
  c.store(e, t.shape.width());
}

// ---- Trees

void infer_trees(Inference& x) {
  const std::string_view op = x.node.op->name;
  const bool any = op == "TreeEnsemble";
  if (any)
    x.require(is_float(x.dtype(0)) && x.dtype(0) != DType::kBF16,
              fmt::format("not defined for {}", name_of(x.dtype(0))));
  else
    require_number(x);
  const ForestTables f = forest_of(x.node);
  const Matrix m = matrix_of(x.shape(0));
  require_le(x, f.features, m.features, "the trees' features exist");
  if (op == "TreeEnsembleClassifier")
    set_classes(x, m.rows, f.targets);
  else
    x.set(0, any ? x.dtype(0) : DType::kF32, {m.rows, Dim(f.targets)});
}
// Whether a feature passes a node's test.
bool passes(const ModelTreeNode& n, double v) {
  const bool equal = v >= n.value && v <= n.value;
  if (std::isnan(v) && n.missing_is_yes) return true;
  switch (n.test) {
    case TreeTest::kAtMost: return v <= n.value;
    case TreeTest::kLess: return v < n.value;
    case TreeTest::kAtLeast: return v >= n.value;
    case TreeTest::kGreater: return v > n.value;
    case TreeTest::kEqual: return equal;
    case TreeTest::kUnequal: return !equal;
    case TreeTest::kLeaf: break;
  }
  return false;
}
// Down each tree with each row: finish(row, scores, seen).
template <class V, class X, class Finish>
void scores_of_rows(const ForestTables& f, const Tensor& in, const X* x, Finish finish) {
  const auto targets = static_cast<size_t>(f.targets);
  for (int64_t r = 0; r < rows_of(in); ++r, x += features_of(in)) {
    std::vector<V> scores(targets);
    std::vector<uint8_t> seen(targets);
    for (const int32_t root : f.roots) {
      const ModelTreeNode* n = &f.nodes[static_cast<size_t>(root)];
      while (n->test != TreeTest::kLeaf)
        n = &f.nodes[static_cast<size_t>(passes(*n, static_cast<double>(cast_to<V>(x[n->feature]))) ? n->yes
                                                                                                    : n->no)];
      for (int32_t i = n->yes; i < n->yes + n->no; ++i) {
        const auto t = static_cast<size_t>(f.weights[static_cast<size_t>(i)].target);
        const V w = static_cast<V>(f.weights[static_cast<size_t>(i)].weight);
        const bool takes = seen[t] == 0 || (f.sum == TreeSum::kMin ? w < scores[t] : w > scores[t]);
        if (f.sum == TreeSum::kSum || f.sum == TreeSum::kAverage)
          scores[t] += w;
        else if (takes)
          scores[t] = w;
        seen[t] = 1;
      }
    }
    finish(r, scores.data(), seen.data());
  }
}
// with(x, V{}): V is what the trees compute in.
template <class F>
void with_trees(const Tensor& in, F with) {
  with_type(in.dtype(), [&](auto tag) {
    const auto* x = in.as<decltype(tag)>();
    trees_in_double(in.dtype()) ? with(x, double{}) : with(x, float{});
  });
}
void eval_trees(Evaluation& e) {
  const ForestTables f = forest_of(e.node);
  std::vector<double> results(static_cast<size_t>(f.targets));
  with_trees(e.in[0], [&](auto* x, auto v) {
    using V = decltype(v);
    const std::vector<V> base(f.base.begin(), f.base.end());
    scores_of_rows<V>(f, e.in[0], x, [&](int64_t r, const V* scores, const uint8_t* seen) {
      finish_regression(f.sum, static_cast<int64_t>(f.roots.size()), base.empty() ? nullptr : base.data(),
                        f.post, f.targets, scores, seen, results.data());
      for (int64_t t = 0; t < f.targets; ++t)
        e.out[0].set_real(r * f.targets + t, results[static_cast<size_t>(t)]);
    });
  });
}
void eval_tree_classifier(Evaluation& e) {
  const ForestTables f = forest_of(e.node);
  std::vector<double> results(static_cast<size_t>(f.targets));
  Classes c(rows_of(e.in[0]), f.targets);
  with_trees(e.in[0], [&](auto* x, auto v) {
    using V = decltype(v);
    const std::vector<V> base(f.base.begin(), f.base.end());
    scores_of_rows<V>(f, e.in[0], x, [&](int64_t r, const V* scores, const uint8_t* seen) {
      c.labels[static_cast<size_t>(r)] =
          finish_classes(f.classes(), base.empty() ? nullptr : base.data(), scores, seen, results.data());
      for (int64_t t = 0; t < f.targets; ++t)
        c.scores[static_cast<size_t>(r * f.targets + t)] =
            static_cast<float>(results[static_cast<size_t>(t)]);
    });
  });
  c.store(e, f.targets);
}

constexpr const char* kNumbers = "numbers only, no text";

}  // namespace

const std::vector<Op>& ops_ml() {
  static const std::vector<Op> table = {
      {.name = "Binarizer", .domain = kMl, .infer = infer_binarizer, .expr = binarizer},
      {.name = "Scaler", .domain = kMl, .infer = infer_scaler, .eval = eval_scaler},
      {.name = "Normalizer", .domain = kMl, .infer = infer_normalizer, .eval = eval_normalizer},
      {.name = "Imputer", .domain = kMl, .infer = infer_imputer, .eval = eval_imputer},
      {.name = "LabelEncoder", .domain = kMl, .infer = infer_encoder, .eval = eval_encoder, .note = kNumbers},
      {.name = "OneHotEncoder",
       .domain = kMl,
       .infer = infer_one_hot,
       .eval = eval_one_hot,
       .note = kNumbers},
      {.name = "ArrayFeatureExtractor",
       .domain = kMl,
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_extractor,
       .eval = eval_extractor,
       .note = kNumbers},
      {.name = "FeatureVectorizer",
       .domain = kMl,
       .max_inputs = -1,
       .infer = infer_vectorizer,
       .eval = eval_vectorizer},
      {.name = "LinearRegressor", .domain = kMl, .infer = infer_linear, .eval = eval_linear_regressor},
      {.name = "LinearClassifier",
       .domain = kMl,
       .max_outputs = 2,
       .infer = infer_linear,
       .eval = eval_linear_classifier,
       .note = kNumbers},
      {.name = "SVMRegressor", .domain = kMl, .infer = infer_svm, .eval = eval_svm_regressor},
      {.name = "SVMClassifier",
       .domain = kMl,
       .max_outputs = 2,
       .infer = infer_svm,
       .eval = eval_svm_classifier,
       .note = kNumbers},
      {.name = "TreeEnsemble", .domain = kMl, .infer = infer_trees, .eval = eval_trees},
      {.name = "TreeEnsembleRegressor", .domain = kMl, .infer = infer_trees, .eval = eval_trees},
      {.name = "TreeEnsembleClassifier",
       .domain = kMl,
       .max_outputs = 2,
       .infer = infer_trees,
       .eval = eval_tree_classifier,
       .note = kNumbers},
  };
  return table;
}

}  // namespace sinter
