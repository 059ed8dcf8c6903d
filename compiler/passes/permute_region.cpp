// permute_region: which nodes work on permuted tensors, decided at once for the whole graph.
//
// Every node that can work either way is a binary variable; convolutions are fixed to "permuted", all others
// to "as is". A Transpose by `perm` is a wish for its input permuted, one by the inverse a value that comes
// permuted for free. A value made one way and wanted the other way costs its elements once (bytes a quarter,
// where products are of bytes), however many users want it: with an auxiliary vertex per value that is a
// minimum cut, so the answer is the best there is and applying it twice changes nothing. A transposition that
// only moves axes of extent 1 costs next to nothing; constants are transposed here and now. Of equally good
// answers choose_layout takes the one with most nodes permuted, so that what follows a convolution stays with
// it; other moves change as little as they can.
#include <algorithm>
#include <map>
#include <set>

#include "ops/products/contraction.h"
#include "passes/min_cut.h"
#include "passes/permute.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

using Perm = std::vector<int64_t>;

class Region {
 public:
  Region(Graph& g, const Arrangement& a, bool convolutions)
      : g_(g), a_(a), order_(g), convolutions_(convolutions) {
    for (const auto& n : g.nodes) stores_bytes_ = stores_bytes_ || sums_integers(*n);
  }
  bool run();

 private:
  enum class Kind { kFixed, kFlexible, kWanted, kConsumer, kMaker };
  struct Item {
    Kind kind = Kind::kFixed;
    std::optional<Roles> roles;
    int vertex = -1;
  };

  // One value, who makes it and who uses it, as vertices of the cut.
  struct Flow {
    int64_t cost;
    int maker;
    std::set<int> users;
  };

  void classify();
  Kind transpose_kind(const Node& n);
  void build_cut();
  void add_flow(const Value* v);
  int maker_of(const Value* v);
  int64_t cost(const Value* v) const;
  bool chosen(const Item& item) const {
    return item.kind == Kind::kWanted || (item.kind == Kind::kFlexible && cut_.on_source_side(item.vertex));
  }
  int64_t cost_as_is() const;
  void rewrite();
  void rewrite_node(Node* n, const Roles& roles);
  Value* twin_of(Value* v, Node* before);
  Value* aligned(Value* v, size_t rank, Node* before);
  void drop_transpose(Node* n);
  std::string twin_name(const Value* v) const {
    return v->name + (a_.is_channels_last() ? "/channels_last" : "/transposed");
  }

  Graph& g_;
  const Arrangement a_;
  Order order_;
  const bool convolutions_;
  bool stores_bytes_ = false;  // layers keep bytes between them: else what makes a byte is done with a float
  std::map<const Node*, Item> items_;
  std::map<const Value*, size_t> depth_;  // Transposes above, through flexible nodes: for self-inverse perms
  MinCut cut_;
  int source_ = 0, sink_ = 0;  // permuted, as is
  std::vector<Flow> flows_;
  std::map<const Value*, Value*> twins_;  // value -> the same permuted
  std::map<std::pair<const Value*, size_t>, Value*>
      aligned_;  // operand, rank -> the same with leading 1s, permuted
};

// A self-inverse permutation is a wish as well as a gift; along a chain the two take turns.
Region::Kind Region::transpose_kind(const Node& n) {
  const Perm p = transpose_perm(n), perm = a_.perm(p.size());
  if (perm.empty()) return Kind::kFixed;
  if (p == perm && p == inverse(perm)) return depth_[n.inputs[0]] % 2 == 0 ? Kind::kMaker : Kind::kConsumer;
  return p == perm ? Kind::kConsumer : p == inverse(perm) ? Kind::kMaker : Kind::kFixed;
}

void Region::classify() {
  for (const auto& p : g_.nodes) {
    const Node& n = *p;
    Item item;
    size_t depth = 0;
    if (is_op(&n, "Transpose") && n.has_output(0)) {
      item.kind = transpose_kind(n);
      depth = depth_[n.inputs[0]] + (item.kind != Kind::kFixed);
    } else if (has_channels_last_form(n) && !convolutions_) {
      // choose_layout has decided about those
    } else if ((item.roles = roles_if_permuted(g_, n, a_))) {
      item.kind = convolutions_ && is_convolution(n) ? Kind::kWanted : Kind::kFlexible;
      if (item.kind == Kind::kWanted) depth = 1;
      for (const Value* v : n.inputs)
        if (v && item.kind == Kind::kFlexible) depth = std::max(depth, depth_[v]);
    }
    for (const Value* v : n.outputs)
      if (v) depth_[v] = depth;
    items_[&n] = std::move(item);
  }
}

int64_t Region::cost(const Value* v) const {
  if (v->data) return 0;
  constexpr int64_t kLimit = int64_t{1} << 40;
  const Shape& s = v->type.shape;
  if (a_.concerns(s.size()) && is_view(a_.perm(s.size()), s)) return 1;
  double elements = stores_bytes_ && size_of(v->type.dtype) == 1 ? 4 : 16;
  for (const Dim& d : s)
    elements *= static_cast<double>(d.is_static() ? d.value() : std::clamp<int64_t>(d.lo(), 1, 32));
  return std::clamp(static_cast<int64_t>(std::min(elements, 1e12)), int64_t{16}, kLimit);
}

int Region::maker_of(const Value* v) {
  if (!v->producer || !order_.has(v->producer)) return sink_;
  const Item& item = items_[v->producer];
  if (item.kind == Kind::kMaker || item.kind == Kind::kWanted) return source_;
  if (item.kind != Kind::kFlexible) return sink_;
  const auto& outs = v->producer->outputs;
  const size_t i = static_cast<size_t>(std::find(outs.begin(), outs.end(), v) - outs.begin());
  return item.roles->out[i] == Role::kPermuted ? item.vertex : sink_;
}

void Region::add_flow(const Value* v) {
  if (v->data || !a_.concerns(v->type.shape.size())) return;
  Flow flow{cost(v), maker_of(v), {}};
  for (const Node* u : v->users) {
    if (!order_.has(u)) {
      flow.users.insert(sink_);
      continue;
    }
    const Item& item = items_[u];
    for (size_t i = 0; i < u->inputs.size(); ++i) {
      if (u->inputs[i] != v) continue;
      int vertex = item.kind == Kind::kConsumer ? source_ : sink_;
      if (item.roles && item.roles->in[i] == Role::kPermuted)
        vertex = item.kind == Kind::kWanted ? source_ : item.vertex;
      flow.users.insert(vertex);
    }
  }
  if (g_.is_output(v)) flow.users.insert(sink_);
  flow.users.erase(flow.maker);
  if (flow.users.empty()) return;
  const int to = cut_.add_vertex(), back = cut_.add_vertex();
  cut_.add_edge(to, flow.maker, flow.cost);    // made as is, and some user is permuted
  cut_.add_edge(flow.maker, back, flow.cost);  // made permuted, and some user is not
  for (int u : flow.users) {
    cut_.add_edge(u, to, MinCut::kInfinite);
    cut_.add_edge(back, u, MinCut::kInfinite);
  }
  flows_.push_back(std::move(flow));
}

void Region::build_cut() {
  source_ = cut_.add_vertex();
  sink_ = cut_.add_vertex();
  for (const auto& n : g_.nodes)
    if (Item& item = items_[n.get()]; item.kind == Kind::kFlexible) item.vertex = cut_.add_vertex();
  std::set<const Value*> seen;
  const auto add_once = [&](const Value* v) {
    if (v && seen.insert(v).second) add_flow(v);
  };
  for (const auto& n : g_.nodes) {
    const Item& item = items_[n.get()];
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      add_once(n->inputs[i]);
      const bool smaller = item.kind == Kind::kFlexible && item.roles->in[i] == Role::kAligned;
      if (smaller) cut_.add_edge(item.vertex, sink_, cost(n->inputs[i]));  // has to be brought into shape
    }
    for (const Value* v : n->outputs) add_once(v);
    if (item.kind == Kind::kFlexible && has_channels_last_form(*n))
      cut_.add_edge(source_, item.vertex, cost(n->outputs[0]) * 3 / 2);  // what its slower form is worth
  }
}

// What the graph transposes now, in the measure of cost(): no flexible node is permuted.
int64_t Region::cost_as_is() const {
  int64_t sum = 0;
  for (const Flow& f : flows_) {
    const bool made = f.maker == source_;
    if (std::any_of(f.users.begin(), f.users.end(), [&](int u) { return (u == source_) != made; }))
      sum += f.cost;
  }
  return sum;
}

// `v` permuted: made once, right behind v.
Value* Region::twin_of(Value* v, Node* before) {
  if (auto it = twins_.find(v); it != twins_.end()) return it->second;
  Value* t = nullptr;
  const Perm perm = a_.perm(v->type.shape.size());
  if (v->data) {
    t = g_.add_constant(twin_name(v), v->data->transposed(perm));
  } else {
    t = g_.add_value(twin_name(v), {v->type.dtype, permuted(v->type.shape, perm)});
    Node* n = g_.add_node(find_op("", "Transpose"), t->name, {v}, {t}, before);
    n->attributes.set("perm", perm);
  }
  t->origin = v->origin;
  t->perm = composed_perm(*v, perm);
  return twins_[v] = t;
}

// An operand of lower rank with leading 1s, permuted.
Value* Region::aligned(Value* v, size_t rank, Node* before) {
  if (auto it = aligned_.find({v, rank}); it != aligned_.end()) return it->second;
  const size_t own = v->type.shape.size();
  if (v->data) {
    std::vector<int64_t> shape(rank - own, 1);
    shape.insert(shape.end(), v->data->shape().begin(), v->data->shape().end());
    Tensor t = v->data->reshaped(shape).transposed(a_.perm(rank));
    shape = t.shape();
    while (shape.size() > 1 && shape[0] == 1) shape.erase(shape.begin());
    t = t.reshaped(shape);
    return aligned_[{v, rank}] = t.same_bits(*v->data) ? v : g_.add_constant(twin_name(v), t);
  }
  if (own == rank) return twin_of(v, before);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank - own; ++i) axes.push_back(static_cast<int64_t>(i));
  Shape shape(rank - own, Dim(1));
  shape.insert(shape.end(), v->type.shape.begin(), v->type.shape.end());
  Value* wide = g_.add_value(v->name + "/aligned", {v->type.dtype, shape});
  Node* n = g_.add_node(find_op("", "Unsqueeze"), wide->name,
                        {v, constant_integers(g_, wide->name + "/axes", axes)}, {wide}, before);
  infer(g_, *n);
  return aligned_[{v, rank}] = twin_of(wide, before);
}

void Region::rewrite_node(Node* n, const Roles& roles) {
  std::vector<Value*> inputs;
  for (size_t i = 0; i < n->inputs.size(); ++i) {
    Value* v = n->inputs[i];
    if (roles.in[i] == Role::kPermuted) v = twin_of(v, n);
    if (roles.in[i] == Role::kAligned) v = aligned(v, n->outputs[0]->type.shape.size(), n);
    inputs.push_back(v);
  }
  permute_node(g_, *n, a_);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (roles.in[i] != Role::kAsIs) g_.set_input(n, i, inputs[i]);
  Node* next = node_after(g_, n);
  for (size_t i = 0; i < n->outputs.size(); ++i) {
    Value* y = n->outputs[i];
    if (!y || i >= roles.out.size() || roles.out[i] != Role::kPermuted) continue;
    const Perm perm = a_.perm(y->type.shape.size());
    Value* t = g_.add_value(twin_name(y), {y->type.dtype, permuted(y->type.shape, perm)});
    t->origin = y->origin;
    t->perm = composed_perm(*y, perm);
    n->outputs[i] = t;
    t->producer = n;
    y->producer = nullptr;
    Node* back = g_.add_node(find_op("", "Transpose"), y->name, {t}, {y}, next);
    back->attributes.set("perm", inverse(perm));
    twins_[y] = t;
  }
  std::vector<TensorType> kept;
  for (const Value* v : n->outputs) kept.push_back(v ? v->type : TensorType{});
  infer(g_, *n);
  for (size_t i = 0; i < n->outputs.size(); ++i) {  // extents as the rest of the graph spells them
    if (!n->outputs[i]) continue;
    SINTER_CHECK(n->outputs[i]->type.shape.size() == kept[i].shape.size(), "permuting changed a rank");
    n->outputs[i]->type = kept[i];
  }
}

// A Transpose into the arrangement whose input exists permuted: its output is that value.
void Region::drop_transpose(Node* n) {
  auto it = twins_.find(n->inputs[0]);
  if (it == twins_.end()) {
    twins_[n->inputs[0]] = n->outputs[0];
    return;
  }
  Value* twin = it->second;
  Value* y = n->outputs[0];
  const Node* maker = twin->producer;
  if (bypass(g_, y, twin) && maker && !twin->producer)  // a graph output: it has taken the twin's place
    for (auto& [v, t] : twins_)
      if (t == twin) t = y;
}

void Region::rewrite() {
  for (Node* n : snapshot(g_)) {
    const Item& item = items_[n];
    if (item.kind == Kind::kConsumer) drop_transpose(n);
    if (item.kind == Kind::kMaker) twins_[n->outputs[0]] = n->inputs[0];
    if (chosen(item)) rewrite_node(n, *item.roles);
  }
  g_.erase_unused();
}

bool Region::run() {
  classify();
  build_cut();
  const int64_t best = cut_.solve(source_, sink_, convolutions_);
  bool wanted = false;
  for (const auto& [n, item] : items_) wanted |= item.kind == Kind::kWanted;
  if (!wanted && best >= cost_as_is()) return false;
  rewrite();
  return true;
}

}  // namespace

bool permute_region(Graph& g, const Arrangement& a, bool convolutions) {
  return Region(g, a, convolutions).run();
}

}  // namespace sinter
