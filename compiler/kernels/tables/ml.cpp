// ai.onnx.ml but for trees: calls of runtime/sinter/ml.h and svm.h with the model's tables.
#include <cmath>

#include "emit/expr_text.h"
#include "kernels/movement/copies.h"
#include "kernels/nest.h"
#include "ops/tables/ml_tables.h"

namespace sinter {
namespace {

bool is_ml(const Node& n, std::string_view name) {
  return n.op->domain == std::string_view(kMl) && n.op->name == name && !n.epilogue;
}

// Input 0 as matrix, and what most kernels begin with.
struct Operand {
  std::string x, rows, features;
};
Operand begin(LayerWriter& w, const char* header = "sinter/ml.h") {
  const Shape& s = w.node.inputs[0]->type.shape;
  w.include(header);
  std::string to;
  for (const Value* v : w.node.outputs)
    if (v) to += (to.empty() ? "" : ", ") + text(v->type.shape);
  w.summary(fmt::format("{} of {} to {}", w.node.op->name, text(s), to));
  const Matrix m = matrix_of(s);
  return {w.input(0), w.dim(m.rows), w.dim(m.features)};
}
template <class T>
std::string table(LayerWriter& w, const char* name, const char* type, const std::vector<T>& v) {
  if (v.empty()) return fmt::format("static_cast<const {}*>(nullptr)", type);
  return w.weights(name, type, v.data(), v.size() * sizeof(T), fmt::format("[{}]", v.size()));
}
std::string table(LayerWriter& w, const char* name, const Tensor& t) {
  return w.weights(name, std::string(cpp_name(t.dtype())), t.data(), static_cast<size_t>(t.bytes()),
                   fmt::format("[{}]", t.size()));
}
std::string table(LayerWriter& w, const char* name, const std::vector<float>& v) {
  return table(w, name, "float", v);
}
std::string post_text(MlPost p) {
  static constexpr const char* kNames[] = {"kNone", "kSoftmax", "kLogistic", "kSoftmaxZero", "kProbit"};
  return std::string("sinter::MlPost::") + kNames[static_cast<int>(p)];
}
// The exact double.
std::string number(double v) {
  if (std::isnan(v)) return "std::nan(\"\")";
  if (std::isinf(v)) return v < 0 ? "-HUGE_VAL" : "HUGE_VAL";
  return fmt::format("double{{{}}}", v);
}
// Output i of a classifier, which is written even where nobody wants it.
std::string output_or_scratch(LayerWriter& w, size_t i, const char* name, const char* type, int64_t width) {
  if (w.node.has_output(i)) return w.output(i);
  const Dim rows = matrix_of(w.node.inputs[0]->type.shape).rows;
  return w.scratch(name, type, std::max<int64_t>((rows * width).hi(), 1));
}

void emit_scaler(LayerWriter& w) {
  const auto offset = floats_of(w.node.attributes, "offset", {0}),
             scale = floats_of(w.node.attributes, "scale", {1});
  const Operand o = begin(w);
  const std::string a = table(w, "offset", offset), b = table(w, "scale", scale);
  w.out.line("sinter::ml_scale({}, {}, {}, {}, {}, {}, {}, {});", o.x, o.rows, o.features, a, offset.size(),
             b, scale.size(), w.output(0));
}

void emit_normalizer(LayerWriter& w) {
  static constexpr const char* kNames[] = {"kMax", "kL1", "kL2"};
  const Operand o = begin(w);
  w.out.line("sinter::ml_normalize({}, {}, {}, sinter::MlNorm::{}, {});", o.x, o.rows, o.features,
             kNames[static_cast<int>(norm_of(w.node.attributes))], w.output(0));
}

void emit_imputer(LayerWriter& w) {
  const ImputerTables t = imputed_of(w.node, w.node.inputs[0]->type.dtype);
  const Operand o = begin(w);
  const std::string replaced = table(w, "replaced", t.replaced), values = table(w, "values", t.values);
  w.out.line("sinter::ml_impute({}, {}, {}, {}[0], {}, {}, {});", o.x, o.rows, o.features, replaced, values,
             t.values.size(), w.output(0));
}

void emit_encoder(LayerWriter& w) {
  const EncoderTables t = encoder_of(w.node);
  const Shape& s = w.node.inputs[0]->type.shape;
  w.include("sinter/ml.h");
  w.summary(fmt::format("LabelEncoder of {}: {} keys", text(s), t.keys.size()));
  const std::string x = w.input(0), keys = table(w, "keys", t.keys), values = table(w, "values", t.values),
                    other = table(w, "other", t.other);
  w.out.line("sinter::ml_encode({}, {}, {}, {}, {}, {}[0], {});", x, w.dim(product(s)), keys, values,
             t.keys.size(), other, w.output(0));
}

void emit_one_hot(LayerWriter& w) {
  const auto categories = w.node.attributes.integers("cats_int64s");
  const Shape& s = w.node.inputs[0]->type.shape;
  w.include("sinter/ml.h");
  w.summary(fmt::format("OneHotEncoder of {}: {} categories", text(s), categories.size()));
  const bool required = w.node.attributes.integer("zeros", 1) == 0;
  const std::string x = w.input(0), list = table(w, "categories", "std::int64_t", categories);
  const std::string call = fmt::format("sinter::ml_one_hot({}, {}, {}, {}, {}, {})", x, w.dim(product(s)),
                                       list, categories.size(), required, w.output(0));
  if (!required) {
    w.out.line("{};", call);
    return;
  }
  w.include("sinter/status.h");
  w.can_fail();
  w.out.line("return {} ? sinter::kOk : sinter::kIndexError;", call);
}

void emit_extractor(LayerWriter& w) {
  const Node& n = w.node;
  const Shape &s = n.inputs[0]->type.shape, &out = n.outputs[0]->type.shape;
  w.include("sinter/ml.h");
  w.include("sinter/status.h");
  w.can_fail();
  w.summary(fmt::format("ArrayFeatureExtractor of {} to {}", text(s), text(out)));
  const std::string x = w.input(0), indices = w.input(1);
  w.out.line("const bool inside = sinter::ml_extract({}, {}, {}, {}, {}, {});", x,
             w.dim(product(s, 0, s.size() - 1)), w.dim(s.back()), indices, w.dim(out.back()), w.output(0));
  w.out.line("return inside ? sinter::kOk : sinter::kIndexError;");
}

void emit_vectorizer(LayerWriter& w) {
  const Node& n = w.node;
  const auto wide = n.attributes.integers("inputdimensions");
  const std::string rows = begin(w).rows, y = w.output(0);
  int64_t at = 0;
  for (size_t i = 0; i < wide.size(); at += wide[i++])
    w.out.line("sinter::ml_place({}, {}, {}, {}, {}, {});", w.input(i), rows,
               w.dim(matrix_of(n.inputs[i]->type.shape).features), wide[i],
               w.dim(n.outputs[0]->type.shape[1]), at ? fmt::format("{} + {}", y, at) : y);
}

void emit_linear_regressor(LayerWriter& w) {
  const LinearTables l = linear_of(w.node);
  const Operand o = begin(w);
  w.flops(product(w.node.outputs[0]->type.shape) * Dim(2 * l.features));
  const std::string a = table(w, "coefficients", l.coefficients), b = table(w, "intercepts", l.intercepts),
                    scores = w.scratch("scores", "double", l.targets);
  w.out.line("sinter::ml_linear_regression({}, {}, {}, {}, {}, {}, {}, {}, {});", o.x, o.rows, o.features, a,
             b, l.targets, post_text(l.post), scores, w.output(0));
}

void emit_linear_classifier(LayerWriter& w) {
  const LinearTables l = linear_of(w.node);
  const auto count = static_cast<int64_t>(l.classes.size());
  const Operand o = begin(w);
  const std::string a = table(w, "coefficients", l.coefficients), b = table(w, "intercepts", l.intercepts),
                    classes = table(w, "classes", "std::int64_t", l.classes),
                    scores = w.scratch("scores", "double", count),
                    labels = output_or_scratch(w, 0, "labels", "std::int64_t", 1),
                    y = output_or_scratch(w, 1, "values", "float", count);
  w.out.line("sinter::ml_linear_classes({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});", o.x, o.rows,
             o.features, a, b, l.targets, post_text(l.post), classes, count, scores, labels, y);
}

// ---- Support vector machines

void declare_svm(LayerWriter& w, const SvmTables& t) {
  static constexpr const char* kKernels[] = {"kLinear", "kPoly", "kRbf", "kSigmoid"};
  const SvmShape& s = t.shape;
  w.out.line("sinter::SvmShape shape;");
  w.out.line("shape.kernel = sinter::SvmKernel::{};", kKernels[static_cast<int>(s.kernel)]);
  w.out.line("shape.gamma = {};", number(s.gamma));
  w.out.line("shape.coef0 = {};", number(s.coef0));
  w.out.line("shape.degree = {};", number(s.degree));
  w.out.line("shape.supports = {};", s.supports);
  w.out.line("shape.features = {};", s.features);
  w.out.line("shape.classes = {};", s.classes);
  w.out.line("shape.one_class = {};", s.one_class);
  w.out.line("shape.probability = {};", s.probability);
  w.out.line("shape.rhos = {};", s.rhos);
  w.out.line("shape.post = {};", post_text(s.post));
  const std::string tables[] = {table(w, "vectors", t.vectors),
                                table(w, "coefficients", t.coefficients),
                                table(w, "rho", t.rho),
                                table(w, "prob_a", t.prob_a),
                                table(w, "prob_b", t.prob_b),
                                table(w, "per_class", "std::int64_t", t.per_class),
                                table(w, "classes", "std::int64_t", t.classes)};
  w.out.line("const sinter::SvmModel model{{{}}};", fmt::join(tables, ", "));
}
void emit_svm_regressor(LayerWriter& w) {
  const SvmTables t = svm_of(w.node);
  const Operand o = begin(w, "sinter/svm.h");
  declare_svm(w, t);
  w.out.line("sinter::svm_regression(shape, model, {}, {}, {});", o.x, o.rows, w.output(0));
}
void emit_svm_classifier(LayerWriter& w) {
  const SvmTables t = svm_of(w.node);
  const Operand o = begin(w, "sinter/svm.h");
  const std::string work = w.scratch("work", "double", t.shape.work()),
                    labels = output_or_scratch(w, 0, "labels", "std::int64_t", 1),
                    y = output_or_scratch(w, 1, "values", "float", t.shape.width());
  declare_svm(w, t);
  w.out.line("sinter::svm_classes(shape, model, {}, {}, {}, {}, {});", o.x, o.rows, work, labels, y);
}

}  // namespace

const std::vector<Kernel>& kernels_ml() {
#define ML_ROW(kernel, op, what, emit)                                             \
  {                                                                                \
    kernel, what, [](const Node& n, const Context&) { return is_ml(n, op); }, emit \
  }
  static const std::vector<Kernel> table = {
      ML_ROW("ml_scaler", "Scaler", "Scaler", emit_scaler),
      ML_ROW("ml_normalizer", "Normalizer", "Normalizer", emit_normalizer),
      ML_ROW("ml_imputer", "Imputer", "Imputer", emit_imputer),
      ML_ROW("ml_label_encoder", "LabelEncoder", "LabelEncoder, by bisection", emit_encoder),
      ML_ROW("ml_one_hot", "OneHotEncoder", "OneHotEncoder", emit_one_hot),
      ML_ROW("ml_extractor", "ArrayFeatureExtractor", "ArrayFeatureExtractor", emit_extractor),
      ML_ROW("ml_vectorizer", "FeatureVectorizer", "FeatureVectorizer", emit_vectorizer),
      ML_ROW("ml_linear_regressor", "LinearRegressor", "LinearRegressor", emit_linear_regressor),
      ML_ROW("ml_linear_classifier", "LinearClassifier", "LinearClassifier", emit_linear_classifier),
      ML_ROW("ml_svm_regressor", "SVMRegressor", "SVMRegressor", emit_svm_regressor),
      ML_ROW("ml_svm_classifier", "SVMClassifier", "SVMClassifier", emit_svm_classifier),
  };
#undef ML_ROW
  return table;
}

}  // namespace sinter
