// The attributes of ai.onnx.ml operators as tables, checked.
#include "ops/tables/ml_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace sinter {

Matrix matrix_of(const Shape& s) {
  if (s.size() != 1 && s.size() != 2) refuse("a matrix or one row is needed, not {}", text(s));
  return s.size() == 1 ? Matrix{1, s[0]} : Matrix{s[0], s[1]};
}

std::vector<double> reals_of(const Attributes& a, const std::string& name) {
  if (const Tensor* t = a.tensor(name + "_as_tensor")) return t->reals();
  const std::vector<float> v = a.reals(name);
  return {v.begin(), v.end()};
}
std::vector<float> floats_of(const Attributes& a, const std::string& name, std::vector<float> fallback) {
  return a.reals(name, std::move(fallback));
}

MlPost post_of(const Attributes& a) {
  const std::string how = a.text("post_transform", "NONE");
  if (how == "NONE") return MlPost::kNone;
  if (how == "SOFTMAX") return MlPost::kSoftmax;
  if (how == "LOGISTIC") return MlPost::kLogistic;
  if (how == "SOFTMAX_ZERO") return MlPost::kSoftmaxZero;
  if (how == "PROBIT") return MlPost::kProbit;
  refuse("its post_transform is {}", sinter::quoted(how));
}

namespace {

// Attribute `name`, whose length must be `n`.
std::vector<int64_t> listed(const Attributes& a, const std::string& name, size_t n, bool optional = false) {
  std::vector<int64_t> v = a.integers(name);
  if (optional && v.empty()) v.assign(n, 0);
  if (v.size() != n) refuse("its {} has {} entries, not {}", name, v.size(), n);
  return v;
}
std::vector<double> listed_reals(const Attributes& a, const std::string& name, size_t n) {
  std::vector<double> v = reals_of(a, name);
  if (v.size() != n) refuse("its {} has {} entries, not {}", name, v.size(), n);
  return v;
}
int32_t small(int64_t v, const char* what) {
  if (v < 0 || v >= int64_t{1} << 30) refuse("its {} hold {}", what, v);
  return static_cast<int32_t>(v);
}
void refuse_text(const Attributes& a, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (a.has(name) && !a.texts(name).empty()) refuse("its {} are text, which is not supported", name);
}

// Children exist, features are >= 0, nothing is below itself. Notes the greatest feature.
void check_trees(ForestTables& f) {
  const auto count = static_cast<int64_t>(f.nodes.size());
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(f.nodes.size(), kNew);
  for (const int32_t root : f.roots) {
    std::vector<int32_t> stack{root};
    while (!stack.empty()) {
      const int32_t at = stack.back();
      const ModelTreeNode& n = f.nodes[static_cast<size_t>(at)];
      char& s = state[static_cast<size_t>(at)];
      if (s != kNew || n.test == TreeTest::kLeaf) {
        s = kDone;
        stack.pop_back();
        continue;
      }
      s = kOpen;
      f.features = std::max<int64_t>(f.features, n.feature + 1);
      for (const int32_t child : {n.yes, n.no}) {
        if (child < 0 || child >= count)
          refuse("a tree's node names the child {}, which does not exist", child);
        if (state[static_cast<size_t>(child)] == kOpen) refuse("a tree's node is below itself");
        if (state[static_cast<size_t>(child)] == kNew) stack.push_back(child);
      }
    }
  }
  for (const TreeWeight<double>& w : f.weights)
    if (w.target < 0 || w.target >= f.targets)
      refuse("a leaf names the target {} of {}", w.target, f.targets);
}

TreeTest test_of(const std::string& mode) {
  static const std::map<std::string, TreeTest> tests = {
      {"LEAF", TreeTest::kLeaf},          {"BRANCH_LEQ", TreeTest::kAtMost}, {"BRANCH_LT", TreeTest::kLess},
      {"BRANCH_GTE", TreeTest::kAtLeast}, {"BRANCH_GT", TreeTest::kGreater}, {"BRANCH_EQ", TreeTest::kEqual},
      {"BRANCH_NEQ", TreeTest::kUnequal}};
  const auto it = tests.find(mode);
  if (it == tests.end()) refuse("a node's mode is {}", sinter::quoted(mode));
  return it->second;
}

// Opsets 1 to 3: nodes by (tree, node), weights by the leaf they belong to.
void read_nodes_by_id(const Attributes& a, const std::string& leaves, ForestTables& f) {
  const std::vector<int64_t> tree = a.integers("nodes_treeids");
  const size_t n = tree.size();
  if (n == 0) refuse("it has no nodes");
  const auto id = listed(a, "nodes_nodeids", n), feature = listed(a, "nodes_featureids", n),
             yes = listed(a, "nodes_truenodeids", n), no = listed(a, "nodes_falsenodeids", n),
             missing = listed(a, "nodes_missing_value_tracks_true", n, true);
  const std::vector<double> value = listed_reals(a, "nodes_values", n);
  const std::vector<std::string> modes = a.texts("nodes_modes");
  if (modes.size() != n) refuse("its nodes_modes has {} entries, not {}", modes.size(), n);
  std::map<std::pair<int64_t, int64_t>, size_t> index;
  std::map<int64_t, size_t> roots;
  for (size_t i = 0; i < n; ++i) {
    if (!index.emplace(std::pair(tree[i], id[i]), i).second)
      refuse("tree {} has two nodes {}", tree[i], id[i]);
    roots.emplace(tree[i], i);
  }
  for (const auto& [name, i] : roots) f.roots.push_back(static_cast<int32_t>(i));
  const auto child = [&](size_t i, int64_t node) {
    const auto it = index.find({tree[i], node});
    if (it == index.end()) refuse("tree {} has no node {}", tree[i], node);
    return static_cast<int32_t>(it->second);
  };
  for (size_t i = 0; i < n; ++i) {
    ModelTreeNode node{value[i], test_of(modes[i]), 0, 0, 0, missing[i] != 0};
    if (node.test != TreeTest::kLeaf)
      node.feature = small(feature[i], "nodes_featureids"), node.yes = child(i, yes[i]),
      node.no = child(i, no[i]);
    f.nodes.push_back(node);
  }
  // Weights in order of their leaves, each leaf's in the model's order.
  const std::vector<int64_t> target = a.integers(leaves + "_ids");
  const auto of_tree = listed(a, leaves + "_treeids", target.size()),
             of_node = listed(a, leaves + "_nodeids", target.size());
  const std::vector<double> weight = listed_reals(a, leaves + "_weights", target.size());
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < target.size(); ++i) {
    const auto it = index.find({of_tree[i], of_node[i]});
    if (it == index.end()) refuse("tree {} has no node {}", of_tree[i], of_node[i]);
    if (f.nodes[it->second].test == TreeTest::kLeaf) order.emplace_back(it->second, i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [leaf, i] : order) {
    if (f.nodes[leaf].no++ == 0) f.nodes[leaf].yes = static_cast<int32_t>(f.weights.size());
    f.weights.push_back({weight[i], target[i]});
  }
}

std::vector<double> tensor_reals(const Attributes& a, const std::string& name, size_t n) {
  const Tensor* t = a.tensor(name);
  if (!t || t->size() != static_cast<int64_t>(n))
    refuse("its {} has {} entries, not {}", name, t ? t->size() : 0, n);
  return t->reals();
}

// Opset 5: inner nodes and leaves in lists of their own; leaves stand behind the nodes here, and a test for
// membership is a chain of tests for equality.
void read_nodes_and_leaves(const Attributes& a, ForestTables& f) {
  const std::vector<int64_t> feature = a.integers("nodes_featureids");
  const size_t n = feature.size();
  if (n == 0) refuse("it has no nodes");
  const auto yes = listed(a, "nodes_truenodeids", n), no = listed(a, "nodes_falsenodeids", n),
             yes_leaf = listed(a, "nodes_trueleafs", n), no_leaf = listed(a, "nodes_falseleafs", n),
             missing = listed(a, "nodes_missing_value_tracks_true", n, true);
  const std::vector<double> split = tensor_reals(a, "nodes_splits", n),
                            mode = tensor_reals(a, "nodes_modes", n);
  const std::vector<int64_t> target = a.integers("leaf_targetids");
  const std::vector<double> weight = tensor_reals(a, "leaf_weights", target.size());
  std::vector<double> members;
  if (const Tensor* t = a.tensor("membership_values")) members = t->reals();
  const auto place = [&](int64_t at, bool leaf) {
    const size_t limit = leaf ? target.size() : n;
    if (at < 0 || at >= static_cast<int64_t>(limit))
      refuse("a node names the child {}, which does not exist", at);
    return static_cast<int32_t>(leaf ? static_cast<int64_t>(n) + at : at);
  };
  static constexpr TreeTest kTests[] = {TreeTest::kAtMost,  TreeTest::kLess,  TreeTest::kAtLeast,
                                        TreeTest::kGreater, TreeTest::kEqual, TreeTest::kUnequal};
  f.nodes.resize(n + target.size());
  size_t member = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!(mode[i] >= 0 && mode[i] <= 6)) refuse("a node's mode is {}", mode[i]);
    ModelTreeNode node{split[i],
                       TreeTest::kEqual,
                       small(feature[i], "nodes_featureids"),
                       place(yes[i], yes_leaf[i] != 0),
                       place(no[i], no_leaf[i] != 0),
                       missing[i] != 0};
    if (mode[i] < 6) {
      node.test = kTests[static_cast<size_t>(mode[i])];
      f.nodes[i] = node;
      continue;
    }
    std::vector<double> set;
    for (; member < members.size() && !std::isnan(members[member]); ++member) set.push_back(members[member]);
    if (member >= members.size() || set.empty())
      refuse("its membership_values end before the nodes that test them");
    ++member;
    const int32_t otherwise = node.no;
    for (size_t k = 0; k < set.size(); ++k) {
      node.value = set[k];
      node.no = k + 1 == set.size() ? otherwise : static_cast<int32_t>(f.nodes.size());
      if (k == 0)
        f.nodes[i] = node;
      else
        f.nodes[f.nodes.size() - 1] = node;
      if (k + 1 < set.size()) f.nodes.emplace_back();
    }
  }
  for (size_t i = 0; i < target.size(); ++i) {
    f.nodes[n + i] = {0, TreeTest::kLeaf, 0, static_cast<int32_t>(i), 1, false};
    f.weights.push_back({weight[i], target[i]});
  }
  for (const int64_t root : a.integers("tree_roots")) f.roots.push_back(place(root, false));
  if (f.roots.empty()) refuse("it has no trees");
}

TreeSum sum_of(int64_t how) {
  if (how < 0 || how > 3) refuse("its aggregate_function is {}", how);
  return static_cast<TreeSum>(how);
}
TreeSum sum_of(const std::string& how) {
  for (const auto& [name, sum] : {std::pair{"AVERAGE", TreeSum::kAverage},
                                  {"SUM", TreeSum::kSum},
                                  {"MIN", TreeSum::kMin},
                                  {"MAX", TreeSum::kMax}})
    if (how == name) return sum;
  refuse("its aggregate_function is {}", sinter::quoted(how));
}

void read_classes(const Attributes& a, ForestTables& f) {
  refuse_text(a, {"classlabels_strings"});
  f.labels = a.integers("classlabels_int64s");
  f.targets = static_cast<int64_t>(f.labels.size());
  if (f.targets < 2) refuse("{} class labels are not supported", f.targets);
  const std::vector<int64_t> ids = a.integers("class_ids");
  f.binary = f.targets == 2 && !ids.empty() &&
             std::all_of(ids.begin(), ids.end(), [&](int64_t i) { return i == ids[0]; });
  const std::vector<double> weights = reals_of(a, "class_weights");
  f.probability = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
}

}  // namespace

ForestTables forest_of(const Node& n) {
  const Attributes& a = n.attributes;
  ForestTables f;
  const std::string_view op = n.op->name;
  if (op == "TreeEnsemble") {
    f.targets = a.integer("n_targets", 1);
    f.sum = sum_of(a.integer("aggregate_function", 1));
    const int64_t post = a.integer("post_transform", 0);
    // As specified; ONNX Runtime has the second and the third the other way round.
    static constexpr MlPost kPosts[] = {MlPost::kNone, MlPost::kSoftmax, MlPost::kLogistic,
                                        MlPost::kSoftmaxZero, MlPost::kProbit};
    if (post < 0 || post > 4) refuse("its post_transform is {}", post);
    f.post = kPosts[post];
    if (f.targets < 1 || f.targets > 1 << 20) refuse("its n_targets is {}", f.targets);
    read_nodes_and_leaves(a, f);
  } else {
    const bool classifier = op == "TreeEnsembleClassifier";
    f.post = post_of(a);
    if (classifier) {
      read_classes(a, f);
    } else {
      f.targets = a.integer("n_targets", 1);
      f.sum = sum_of(a.text("aggregate_function", "SUM"));
    }
    if (f.targets < 1 || f.targets > 1 << 20) refuse("its n_targets is {}", f.targets);
    read_nodes_by_id(a, classifier ? "class" : "target", f);
    f.base = reals_of(a, "base_values");
    f.bases = static_cast<int64_t>(f.base.size());
    const bool one_of_two = classifier && f.targets == 2 && f.bases == 1;
    if (f.bases != 0 && f.bases != f.targets && !one_of_two)
      refuse("its base_values has {} entries, not {}", f.base.size(), f.targets);
    if (one_of_two) f.base.push_back(0);
    // ONNX Runtime leaves the second class's value unset then.
    if (f.binary && f.bases < 2 && f.post == MlPost::kProbit && a.integers("class_ids")[0] == 0)
      refuse("PROBIT of a single score is not supported");
  }
  check_trees(f);
  return f;
}

EncoderTables encoder_of(const Node& n) {
  const Attributes& a = n.attributes;
  refuse_text(a, {"keys_strings", "values_strings", "classes_strings"});
  const auto table = [&](const std::string& side) -> Tensor {
    if (const Tensor* t = a.tensor(side + "_tensor")) return t->reshaped({t->size()});
    const std::vector<float> v = a.reals(side + "_floats");
    return v.empty() ? Tensor::of(a.integers(side + "_int64s"))
                     : Tensor::of(v, {static_cast<int64_t>(v.size())});
  };
  const Tensor keys = table("keys"), values = table("values");
  for (const Tensor* t : {&keys, &values})
    if (!(is_float(t->dtype()) || is_integer(t->dtype())) || t->dtype() == DType::kF16 ||
        t->dtype() == DType::kBF16)
      refuse("its tables are of {}, which is not supported", name_of(t->dtype()));
  if (keys.size() == 0 || keys.size() != values.size())
    refuse("{} keys for {} values", keys.size(), values.size());
  std::vector<int64_t> order(static_cast<size_t>(keys.size()));
  std::iota(order.begin(), order.end(), 0);
  const bool floats = is_float(keys.dtype());
  const auto before = [&](int64_t i, int64_t j) {
    if (!floats) return keys.integer(i) < keys.integer(j);
    const double p = keys.real(i), q = keys.real(j);
    return p < q || (std::isnan(q) && !std::isnan(p));
  };
  std::sort(order.begin(), order.end(), before);
  EncoderTables e{Tensor(keys.dtype(), keys.shape()), Tensor(values.dtype(), values.shape()),
                  Tensor(values.dtype(), {1})};
  const auto copy = [](Tensor& to, int64_t at, const Tensor& from, int64_t i) {
    if (is_float(to.dtype()))
      to.set_real(at, from.real(i));
    else
      to.set_integer(at, from.integer(i));
  };
  for (size_t k = 0; k < order.size(); ++k) {
    if (k > 0 && !before(order[k - 1], order[k])) refuse("a key stands twice");
    copy(e.keys, static_cast<int64_t>(k), keys, order[k]);
    copy(e.values, static_cast<int64_t>(k), values, order[k]);
  }
  if (const Tensor* t = a.tensor("default_tensor")) {
    if (t->size() != 1 || t->dtype() != values.dtype())
      refuse("its default_tensor is not one {}", name_of(values.dtype()));
    copy(e.other, 0, *t, 0);
  } else if (is_float(values.dtype())) {
    e.other.set_real(0, static_cast<double>(a.real("default_float", -0.0f)));
  } else {
    e.other.set_integer(0, a.integer("default_int64", -1));
  }
  return e;
}

MlNorm norm_of(const Attributes& a) {
  const std::string how = a.text("norm", "MAX");
  if (how == "MAX") return MlNorm::kMax;
  if (how == "L1") return MlNorm::kL1;
  if (how == "L2") return MlNorm::kL2;
  refuse("its norm is {}", sinter::quoted(how));
}

ImputerTables imputed_of(const Node& n, DType t) {
  const Attributes& a = n.attributes;
  const std::vector<float> floats = a.reals("imputed_value_floats");
  ImputerTables tables{Tensor(t, {1}), {}};
  if (is_float(t)) {
    tables.values = Tensor::of(floats, {static_cast<int64_t>(floats.size())}).converted(t);
    tables.replaced.set_real(0, static_cast<double>(a.real("replaced_value_float", 0)));
  } else {
    tables.values = Tensor::of(a.integers("imputed_value_int64s")).converted(t);
    tables.replaced.set_integer(0, a.integer("replaced_value_int64", 0));
  }
  return tables;
}

LinearTables linear_of(const Node& n) {
  const Attributes& a = n.attributes;
  LinearTables l;
  l.coefficients = a.reals("coefficients");
  l.intercepts = a.reals("intercepts");
  l.post = post_of(a);
  if (std::string_view(n.op->name) == "LinearRegressor") {
    l.targets = a.integer("targets", 1);
  } else {
    refuse_text(a, {"classlabels_strings"});
    l.classes = a.integers("classlabels_ints");
    if (l.classes.empty()) refuse("it has no class labels");
    l.targets = static_cast<int64_t>(l.intercepts.empty() ? l.classes.size() : l.intercepts.size());
    const bool two = l.targets == 1 && l.classes.size() == 2;
    if (l.targets == 1 && l.post == MlPost::kProbit) refuse("PROBIT of a single score is not supported");
    if (!two && l.targets != static_cast<int64_t>(l.classes.size()))
      refuse("{} scores for {} class labels", l.targets, l.classes.size());
  }
  if (l.targets < 1 || l.coefficients.empty() || static_cast<int64_t>(l.coefficients.size()) % l.targets != 0)
    refuse("{} coefficients for {} targets", l.coefficients.size(), l.targets);
  if (!l.intercepts.empty() && static_cast<int64_t>(l.intercepts.size()) != l.targets)
    refuse("{} intercepts for {} targets", l.intercepts.size(), l.targets);
  l.features = static_cast<int64_t>(l.coefficients.size()) / l.targets;
  return l;
}

SvmTables svm_of(const Node& n) {
  const Attributes& a = n.attributes;
  const bool classifier = std::string_view(n.op->name) == "SVMClassifier";
  SvmTables t;
  SvmShape& s = t.shape;
  t.vectors = a.reals("support_vectors");
  t.coefficients = a.reals("coefficients");
  t.rho = a.reals("rho");
  s.post = post_of(a);
  const std::string kernel = a.text("kernel_type", "LINEAR");
  if (kernel == "POLY")
    s.kernel = SvmKernel::kPoly;
  else if (kernel == "RBF")
    s.kernel = SvmKernel::kRbf;
  else if (kernel == "SIGMOID")
    s.kernel = SvmKernel::kSigmoid;
  else if (kernel != "LINEAR")
    refuse("its kernel_type is {}", sinter::quoted(kernel));
  const std::vector<float> p = a.reals("kernel_params");
  if (!p.empty() && p.size() != 3) refuse("{} kernel_params", p.size());
  if (!p.empty()) s.gamma = p[0], s.coef0 = p[1], s.degree = std::trunc(static_cast<double>(p[2]));
  if (t.rho.empty() || t.coefficients.empty()) refuse("rho or coefficients are missing");
  s.rhos = static_cast<int64_t>(t.rho.size());
  if (classifier) {
    refuse_text(a, {"classlabels_strings"});
    t.classes = a.integers("classlabels_ints");
    if (t.classes.empty() || t.classes.size() > 4096) refuse("{} class labels", t.classes.size());
    s.classes = static_cast<int64_t>(t.classes.size());
    t.per_class = a.integers("vectors_per_class");
    for (int64_t v : t.per_class) {
      if (v < 0 || v > 1 << 28) refuse("its vectors_per_class holds {}", v);
      s.supports += v;
    }
    t.prob_a = a.reals("prob_a");
    t.prob_b = a.reals("prob_b");
    s.probability = s.supports > 0 && !t.prob_a.empty();
  } else {
    s.supports = a.integer("n_supports", 0);
    s.one_class = a.integer("one_class", 0) != 0;
    if (s.supports < 0 || s.supports > 1 << 28) refuse("its n_supports is {}", s.supports);
  }
  const auto length = [](const std::vector<float>& v) { return static_cast<int64_t>(v.size()); };
  const auto fits = [&](int64_t have, int64_t want, const char* what) {
    if (have != want) refuse("its {} has {} entries, not {}", what, have, want);
  };
  if (s.supports > 0) {
    if (length(t.vectors) % s.supports != 0)
      refuse("{} numbers of {} support vectors", t.vectors.size(), s.supports);
    s.features = length(t.vectors) / s.supports;
    if (classifier) {
      fits(static_cast<int64_t>(t.per_class.size()), s.classes, "vectors_per_class");
      if (s.classes < 2) refuse("one class has no pairs");
      fits(length(t.coefficients), (s.classes - 1) * s.supports, "coefficients");
      fits(s.rhos, s.pairs(), "rho");
      if (s.probability)
        fits(length(t.prob_a), s.pairs(), "prob_a"), fits(length(t.prob_b), s.pairs(), "prob_b");
    } else {
      fits(length(t.coefficients), s.supports, "coefficients");
    }
  } else {
    if (length(t.coefficients) % s.classes != 0)
      refuse("{} coefficients of {} classes", t.coefficients.size(), s.classes);
    s.features = length(t.coefficients) / s.classes;
  }
  if (s.features < 1) refuse("it has no features");
  if (s.width() == 2 && s.scores() == 1 && s.post == MlPost::kProbit)
    refuse("PROBIT of a single score is not supported");
  return t;
}

}  // namespace sinter
