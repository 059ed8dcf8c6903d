// Ensembles of trees: the model's nodes in the form that runtime/sinter/trees.h walks, and calls of it.
//
// Each test becomes one or two of "at most": "less than t" is at most the number before t, "greater" and "at
// least" trade the children, "equal" is two tests. A tree's nodes lie behind each other, nearest to the root
// first. Features are numbered among those that are asked for.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kernels/movement/copies.h"
#include "ops/tables/ml_tables.h"

namespace sinter {
namespace {

bool accepts_trees(const Node& n, const Context&) {
  const std::string_view name = n.op->name;
  return n.op->domain == std::string_view(kMl) && !n.epilogue &&
         (name == "TreeEnsemble" || name == "TreeEnsembleRegressor" || name == "TreeEnsembleClassifier");
}

// The greatest V that is at most t.
template <class V>
V at_most(double t) {
  const V v = static_cast<V>(t);
  return static_cast<double>(v) > t ? std::nextafter(v, -std::numeric_limits<V>::infinity()) : v;
}
// The greatest V that is less than t; NaN, which nothing is at most, where there is none.
template <class V>
V less_than(double t) {
  const V v = at_most<V>(t), infinity = std::numeric_limits<V>::infinity();
  if (static_cast<double>(v) < t) return v;
  return v == -infinity ? std::numeric_limits<V>::quiet_NaN() : std::nextafter(v, -infinity);
}

// The tables of a Forest.
template <class V>
class Packed {
 public:
  explicit Packed(const ForestTables& f) : base(f.base.begin(), f.base.end()), f_(f) {
    simple_ = f.targets == 1;
    for (const ModelTreeNode& n : f.nodes) simple_ = simple_ && (n.test != TreeTest::kLeaf || n.no == 1);
    for (const int32_t root : f.roots) add_tree(root);
    if (!simple_) first.push_back(static_cast<int32_t>(weights.size()));
  }
  std::vector<TreeNode<V>> nodes;
  std::vector<TreeRoot> roots;
  std::vector<int32_t> first, used;
  std::vector<TreeWeight<V>> weights;
  std::vector<V> base;
  bool missing = false;

 private:
  using Index = TreeIndex<V>;

  // A node whose children are nodes of the model, or, ~i, node i of ours.
  struct Draft {
    V value;
    Index feature;
    int64_t above, within;
  };
  void push(std::vector<Draft>& tree, const Draft& d) {
    tree.push_back(d);
    if (!simple_) first.push_back(static_cast<int32_t>(weights.size()));
    missing = missing || d.feature < 0;
  }

  void add_leaf(const ModelTreeNode& n, int64_t self, std::vector<Draft>& tree) {
    const auto weight = [&](int32_t i) { return f_.weights[static_cast<size_t>(i)]; };
    push(tree, {simple_ ? static_cast<V>(weight(n.yes).weight) : V{0}, 0, ~self, ~self});
    for (int32_t i = n.yes; i < n.yes + n.no && !simple_; ++i)
      weights.push_back({static_cast<V>(weight(i).weight), static_cast<Index>(weight(i).target)});
  }

  void add_test(const ModelTreeNode& n, int64_t self, std::vector<Draft>& tree) {
    const auto [it, is_new] = places_.emplace(n.feature, static_cast<Index>(used.size()));
    if (is_new) used.push_back(n.feature);
    const Index place = it->second, passes = n.missing_is_yes ? ~place : place,
                fails = n.missing_is_yes ? place : ~place;
    const double t = n.value;
    const V nothing = std::numeric_limits<V>::quiet_NaN();
    const bool equal = n.test == TreeTest::kEqual;
    if (std::isnan(t))
      return push(tree, {nothing, passes, n.test == TreeTest::kUnequal ? n.yes : n.no, n.yes});
    switch (n.test) {
      case TreeTest::kAtMost: return push(tree, {at_most<V>(t), passes, n.no, n.yes});
      case TreeTest::kLess: return push(tree, {less_than<V>(t), passes, n.no, n.yes});
      case TreeTest::kAtLeast: return push(tree, {less_than<V>(t), fails, n.yes, n.no});
      case TreeTest::kGreater: return push(tree, {at_most<V>(t), fails, n.yes, n.no});
      default: break;
    }
    // Equal: at most t, and then greater than what is before t; which NaN is where it is to pass.
    push(tree, {at_most<V>(t), equal ? passes : place, equal ? n.no : n.yes, ~(self + 1)});
    push(tree, {less_than<V>(t), place, equal ? n.yes : n.no, equal ? n.no : n.yes});
  }

  void add_tree(int32_t root) {
    const auto begin = static_cast<int64_t>(nodes.size());
    std::vector<Draft> tree;
    std::map<int64_t, int64_t> at{{root, 0}};  // of the model's nodes
    std::vector<int32_t> order{root};
    for (size_t i = 0; i < order.size(); ++i) {
      const ModelTreeNode& n = f_.nodes[static_cast<size_t>(order[i])];
      const int64_t self = begin + static_cast<int64_t>(tree.size());
      at[order[i]] = self;
      if (n.test == TreeTest::kLeaf) {
        add_leaf(n, self, tree);
        continue;
      }
      add_test(n, self, tree);
      for (const int32_t child : {n.yes, n.no})
        if (at.emplace(child, 0).second) order.push_back(child);
    }
    const auto place = [&](int64_t child) { return static_cast<int32_t>(child < 0 ? ~child : at.at(child)); };
    for (const Draft& d : tree) nodes.push_back({d.value, d.feature, {place(d.above), place(d.within)}});
    roots.push_back(measured(static_cast<int32_t>(begin)));
  }

  // The fewest and the most steps from a root to a leaf: first of what lies below a node, then of the node.
  TreeRoot measured(int32_t root) const {
    std::vector<int32_t> stack{root};
    std::vector<TreeRoot> below(nodes.size() - static_cast<size_t>(root), {-1, 0, 0});
    const auto of = [&](int32_t node) -> TreeRoot& { return below[static_cast<size_t>(node - root)]; };
    while (!stack.empty()) {
      const int32_t at = stack.back();
      const auto [a, b] = nodes[static_cast<size_t>(at)].next;
      const size_t size = stack.size();
      for (const int32_t child : {a, b})
        if (child != at && of(child).node < 0) stack.push_back(child);
      if (stack.size() != size) continue;
      stack.pop_back();
      of(at) = a == at ? TreeRoot{at, 0, 0}
                       : TreeRoot{at, std::min(of(a).sure, of(b).sure) + 1,
                                  std::max(of(a).depth, of(b).depth) + 1};
    }
    return of(root);
  }

  const ForestTables& f_;
  std::map<int32_t, Index> places_;
  bool simple_ = true;  // one target, of which each leaf has one weight
};

template <class T>
std::string table(LayerWriter& w, const char* name, const std::string& type, const std::vector<T>& v) {
  if (v.empty()) return fmt::format("static_cast<const {}*>(nullptr)", type);
  return w.weights(name, type, v.data(), v.size() * sizeof(T), fmt::format("[{}]", v.size()));
}

// Declares `forest` and `work`.
template <class V>
void declare_forest(LayerWriter& w, const ForestTables& f) {
  static constexpr const char* kSums[] = {"kAverage", "kSum", "kMin", "kMax"};
  constexpr int64_t kCached = 4096;  // features, and scores, of a block
  const Packed<V> p(f);
  const std::string v = sizeof(V) == 8 ? "double" : "float";
  const auto used = static_cast<int64_t>(p.used.size());
  const int64_t block =
      std::clamp(kCached / std::max({used, f.targets, int64_t{64}}), int64_t{1}, int64_t{8}) * kTreeLanes;
  const std::string tables[] = {table(w, "nodes", fmt::format("sinter::TreeNode<{}>", v), p.nodes),
                                table(w, "roots", "sinter::TreeRoot", p.roots),
                                table(w, "first", "std::int32_t", p.first),
                                table(w, "weights", fmt::format("sinter::TreeWeight<{}>", v), p.weights),
                                table(w, "used", "std::int32_t", p.used),
                                table(w, "base", v, p.base)};
  w.out.line("const sinter::Forest<{}> forest{{{}, {}, {}, {}, sinter::TreeSum::{}, {}}};", v,
             fmt::join(tables, ", "), p.roots.size(), used, f.targets, kSums[static_cast<int>(f.sum)],
             p.missing);
  const std::string memory[] = {w.scratch("features_of_rows", v, block * std::max<int64_t>(used, 1)),
                                w.scratch("scores", v, block * f.targets),
                                w.scratch("seen", "std::uint8_t", block * f.targets),
                                w.scratch("results", "double", f.targets)};
  w.out.line("const sinter::ForestWork<{}> work{{{}, {}}};", v, block, fmt::join(memory, ", "));
}

// Output i of a classifier, which is written even where nobody wants it.
std::string output_or_scratch(LayerWriter& w, size_t i, const char* name, const char* type, int64_t width) {
  if (w.node.has_output(i)) return w.output(i);
  const Dim rows = matrix_of(w.node.inputs[0]->type.shape).rows;
  return w.scratch(name, type, std::max<int64_t>((rows * width).hi(), 1));
}

void emit_trees(LayerWriter& w) {
  static constexpr const char* kPosts[] = {"kNone", "kSoftmax", "kLogistic", "kSoftmaxZero", "kProbit"};
  const ForestTables f = forest_of(w.node);
  const TensorType& in = w.node.inputs[0]->type;
  const Matrix m = matrix_of(in.shape);
  w.include("sinter/trees.h");
  w.include_storage(in.dtype);
  w.summary(
      fmt::format("{} of {}: {} trees to {}", w.node.op->name, text(in.shape), f.roots.size(), f.targets));
  const std::string x = w.input(0),
                    post = fmt::format("sinter::MlPost::{}", kPosts[static_cast<int>(f.post)]);
  trees_in_double(in.dtype) ? declare_forest<double>(w, f) : declare_forest<float>(w, f);
  const std::string given = fmt::format("forest, {}, {}, {}", x, w.dim(m.rows), w.dim(m.features));
  if (f.labels.empty()) {
    w.out.line("sinter::forest_regression({}, {}, work, {});", given, post, w.output(0));
    return;
  }
  const std::string labels = output_or_scratch(w, 0, "labels", "std::int64_t", 1),
                    y = output_or_scratch(w, 1, "values", "float", f.targets);
  w.out.line("const sinter::TreeClasses classes{{{}, {}, {}, {}, {}, {}}};",
             table(w, "class_labels", "std::int64_t", f.labels), f.targets, f.bases, post, f.binary,
             f.probability);
  w.out.line("sinter::forest_classes({}, classes, work, {}, {});", given, labels, y);
}

}  // namespace

const std::vector<Kernel>& kernels_trees() {
  static const std::vector<Kernel> table = {{"ml_trees",
                                             "ensembles of trees, eight rows at a time",
                                             accepts_trees,
                                             emit_trees,
                                             {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
