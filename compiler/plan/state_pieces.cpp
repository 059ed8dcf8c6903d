// split_states(): a state that is really several.
//
// Streaming models keep all caches of one kind in one tensor: each layer takes its own box of it (Slice,
// Gather), and what comes next is put back box by box (ScatterND, Concat). As one state, every box is copied
// out and in again, and the tensor once or twice besides. As a state for each box, each is what the layer
// reads and writes: the hidden state of an LSTM, the window of a convolution (plan/windows.cpp).
//
// Which element comes from where is not derived from the operators one by one. All nodes between are
// movements, so they are evaluated with numbers in place of the elements: element i of the state is i, and
// each tensor that is put into it has numbers of its own. The numbers of the output say which box each tensor
// becomes, those of a tensor that is read which box that is. The state is split where every read box is one
// that is written, all of it by one tensor in its order; else it stays as it is.
#include <algorithm>
#include <map>
#include <set>

#include "ir/error.h"
#include "ops/op.h"
#include "passes/rewrite.h"
#include "plan/state.h"

namespace sinter {
namespace {

using Positions = std::vector<int64_t>;

// States of more elements stay in one piece: evaluating takes eight bytes for each, a few dozen times.
constexpr int64_t kMostElements = int64_t{1} << 22;
constexpr size_t kMostPieces = 1024;

std::optional<std::vector<int64_t>> static_extents(const Shape& shape) {
  std::vector<int64_t> extents;
  for (const Dim& d : shape) {
    if (!d.is_static()) return std::nullopt;
    extents.push_back(d.value());
  }
  return extents;
}

// Where the elements of a box lie in the whole tensor, in their order.
Positions positions_of(const StatePiece& box) {
  const std::vector<int64_t> strides = row_major_strides(box.whole);
  Positions all = {0};
  for (size_t d = 0; d < box.whole.size(); ++d) {
    Positions next;
    next.reserve(all.size() * static_cast<size_t>(box.extents[d]));
    for (const int64_t at : all)
      for (int64_t i = 0; i < box.extents[d]; ++i) next.push_back(at + (box.begin[d] + i) * strides[d]);
    all = std::move(next);
  }
  return all;
}

// The box that has these elements in this order; nothing: it is none.
std::optional<StatePiece> box_of(const Positions& elements, const StatePiece& whole) {
  StatePiece box = whole;
  const std::vector<int64_t> strides = row_major_strides(box.whole);
  for (size_t d = 0; d < box.whole.size(); ++d) {
    const auto at = [&](int64_t p) { return p / strides[d] % box.whole[d]; };
    box.begin[d] = at(elements.front());
    box.extents[d] = at(elements.back()) - box.begin[d] + 1;
    if (box.extents[d] < 1) return std::nullopt;
  }
  if (positions_of(box) != elements) return std::nullopt;
  return box;
}

// "[0,:,2:4]": what of each axis.
std::string text(const StatePiece& box) {
  std::string s;
  for (size_t d = 0; d < box.whole.size(); ++d) {
    s += d == 0 ? "[" : ",";
    if (box.extents[d] == box.whole[d])
      s += ":";
    else if (box.extents[d] == 1)
      s += std::to_string(box.begin[d]);
    else
      s += fmt::format("{}:{}", box.begin[d], box.begin[d] + box.extents[d]);
  }
  return s + "]";
}

// One state, as far as movements carry its elements.
class Splitting {
 public:
  Splitting(Graph& g, const StateLink& link)
      : g_(g), link_(link), past_(g.inputs[link.input]), next_(g.outputs[link.output]) {}

  // The links of the pieces, the first of which has the state's own input and output; empty: it stays.
  StateLinks split() {
    if (!is_plain()) return {};
    const Positions own = numbered(past_);
    for (const auto& n : g_.nodes) follow(*n);
    const Positions* result = numbers_of(next_);
    if (!result || !find_pieces(own, *result) || !find_reads()) return {};
    return replace();
  }

 private:
  // A tensor that is put into the state, or the state itself: its elements' numbers begin with `first`.
  struct Source {
    Value* value;
    int64_t first;
  };
  struct Piece {
    Value* next;
    StatePiece box;
    Positions positions;
    std::vector<Value*> reads;
  };

  bool is_plain() const {
    const auto extents = static_extents(past_->type.shape);
    if (link_.random || !extents || extents->empty() || !past_->elements.empty() || past_ == next_ ||
        past_->type.dtype != next_->type.dtype || !(past_->type.shape == next_->type.shape) ||
        g_.is_output(past_) || !next_->users.empty() ||
        std::count(g_.outputs.begin(), g_.outputs.end(), next_) != 1)
      return false;
    const int64_t size = product(past_->type.shape).value();
    return size > 1 && size <= kMostElements;
  }

  // Numbers for the elements of a tensor that comes from elsewhere.
  const Positions& numbered(Value* v) {
    const int64_t size = product(v->type.shape).value();
    Tensor t(DType::kI64, *static_extents(v->type.shape));
    Positions all(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) t.as<int64_t>()[i] = all[static_cast<size_t>(i)] = count_ + i;
    sources_.push_back({v, count_});
    count_ += size;
    ids_[v] = std::move(t);
    if (v == past_) of_state_.insert(v);
    return lists_[v] = std::move(all);
  }

  const Positions* numbers_of(Value* v) {
    const auto known = ids_.find(v);
    if (known == ids_.end()) return assembled(v) ? &lists_[v] : nullptr;
    Positions& list = lists_[v];
    if (list.empty())
      list.assign(known->second.as<int64_t>(), known->second.as<int64_t>() + known->second.size());
    return &list;
  }

  // The contents of a Value that follows from constants alone; nothing: it doesn't.
  std::optional<Tensor> constant(const Value* v) {
    if (v->data) return v->data;
    if (std::optional<Tensor> t = known_contents(*v)) return t;
    const Node* n = v->producer;
    if (!n || n->op->impure || !n->bodies.empty() || n->epilogue) return std::nullopt;
    if (const auto known = constants_.find(v); known != constants_.end()) return known->second;
    constants_[v] = std::nullopt;
    std::vector<Tensor> in;
    for (const Value* i : n->inputs) {
      const std::optional<Tensor> t = i ? constant(i) : Tensor();
      if (!t) return std::nullopt;
      in.push_back(*t);
    }
    const std::vector<Tensor> out = evaluated(*n, std::move(in));
    for (size_t i = 0; i < out.size(); ++i)
      if (n->has_output(i)) constants_[n->outputs[i]] = out[i];
    return constants_[v];
  }

  // Results of a node; none where it refuses these inputs or they would be large.
  static std::vector<Tensor> evaluated(const Node& n, std::vector<Tensor> in) {
    try {
      return evaluate(n, std::move(in), 8 * kMostElements);
    } catch (const Refusal&) {
      return {};
    }
  }

  static bool is_scatter(const Node& n) {
    return (is_op(&n, "ScatterND") || is_op(&n, "ScatterElements")) &&
           n.attributes.text("reduction", "none") == "none";
  }
  static bool keeps_shape(const Node& n) {
    return is_op(&n, "Identity") || (is_op(&n, "Expand") && n.inputs[0]->type == n.outputs[0]->type);
  }
  // A node that takes elements of its first input, told by constants.
  static bool takes(const Node& n) {
    if (n.epilogue) return false;
    return n.op->is_view || keeps_shape(n) || is_op(&n, "Gather") || is_op(&n, "Slice") || is_op(&n, "Split");
  }

  // Follows the state's elements through a node that takes some, or puts others in place of them.
  void follow(const Node& n) {
    if (n.inputs.empty() || !n.inputs[0] || !of_state_.count(n.inputs[0])) return;
    if (takes(n)) return move(n, {0});
    if (!is_scatter(n) || !numbers_of(n.inputs[2])) return;
    move(n, {0, 2});
  }

  // Evaluates the node with the numbers of its inputs `data`, all others being constants.
  void move(const Node& n, const std::set<size_t>& data) {
    std::vector<Tensor> in;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const Value* v = n.inputs[i];
      const std::optional<Tensor> t = !v ? Tensor() : data.count(i) ? ids_.at(v) : constant(v);
      if (!t) return;
      in.push_back(*t);
    }
    const std::vector<Tensor> out = evaluated(n, std::move(in));
    if (out.empty()) return;
    followed_.insert(&n);
    for (size_t i = 0; i < out.size(); ++i)
      if (n.has_output(i)) {
        ids_[n.outputs[i]] = out[i];
        if (of_state_.count(n.inputs[0])) of_state_.insert(n.outputs[i]);
      }
  }

  // What is put into the state, or is the next one: made of others by views and Concat, or a tensor as it is.
  // A Concat that holds elements of the state is what some layer reads, a window: it is not taken apart.
  bool assembled(Value* v) {
    if (!static_extents(v->type.shape) || product(v->type.shape).value() < 1 ||
        v->type.dtype != past_->type.dtype || count_ > 4 * kMostElements)
      return false;
    const Node* n = v->producer;
    const bool whole = !n || v->data || sources_.size() > kMostPieces;
    if (!whole && (n->op->is_view || keeps_shape(*n)) && numbers_of(n->inputs[0])) {
      move(*n, {0});
    } else if (!whole && is_op(n, "Concat") &&
               std::none_of(n->inputs.begin(), n->inputs.end(),
                            [&](const Value* i) { return of_state_.count(i) != 0; }) &&
               std::all_of(n->inputs.begin(), n->inputs.end(), [&](Value* i) { return numbers_of(i); })) {
      std::set<size_t> all;
      for (size_t i = 0; i < n->inputs.size(); ++i) all.insert(i);
      move(*n, all);
    }
    if (!ids_.count(v)) numbered(v);
    return numbers_of(v) != nullptr;
  }

  // Which box of the next state each tensor becomes, from the numbers of its elements. Elements that stay
  // may be in no box: then nothing may read them.
  bool find_pieces(const Positions& own, const Positions& result) {
    if (result.size() != own.size()) return false;
    std::map<size_t, Positions> of_source;
    piece_at_.assign(own.size(), -1);
    for (size_t p = 0; p < result.size(); ++p) {
      const auto behind = std::upper_bound(sources_.begin(), sources_.end(), result[p],
                                           [](int64_t id, const Source& s) { return id < s.first; });
      const auto k = static_cast<size_t>(behind - sources_.begin()) - 1;
      if (k == 0 && result[p] != own[p]) return false;
      if (k == 0) continue;
      Positions& elements = of_source[k];
      // Its elements in their order, each once.
      if (result[p] - sources_[k].first != static_cast<int64_t>(elements.size())) return false;
      elements.push_back(static_cast<int64_t>(p));
    }
    StatePiece whole{link_.input_name, *static_extents(past_->type.shape), {}, {}};
    whole.begin.assign(whole.whole.size(), 0);
    whole.extents = whole.whole;
    std::vector<std::pair<Positions, Value*>> in_order;  // as they lie in the state
    in_order.reserve(of_source.size());
    for (auto& [k, elements] : of_source) in_order.emplace_back(std::move(elements), sources_[k].value);
    std::sort(in_order.begin(), in_order.end());
    std::set<const Value*> once;
    for (auto& [elements, v] : in_order) {
      const std::optional<StatePiece> box = box_of(elements, whole);
      if (!box || static_cast<int64_t>(elements.size()) != product(v->type.shape).value() || !v->producer ||
          v->data || g_.is_output(v) || !v->elements.empty() || !once.insert(v).second)
        return false;
      for (const int64_t p : elements) piece_at_[static_cast<size_t>(p)] = static_cast<int>(pieces_.size());
      pieces_.push_back({v, *box, std::move(elements), {}});
    }
    return pieces_.size() > 1;
  }

  // Which piece each tensor is that layers read.
  bool find_reads() {
    for (const auto& each : g_.values) {
      Value* v = each.get();
      if (!of_state_.count(v)) continue;
      const auto is_moved = [&](const Node* n) {
        return followed_.count(n) && (!is_scatter(*n) || n->inputs[1] != v);
      };
      if (g_.is_output(v) && v != next_) return false;
      if (std::all_of(v->users.begin(), v->users.end(), is_moved)) continue;
      const Positions& elements = *numbers_of(v);
      const auto size = static_cast<int64_t>(piece_at_.size());
      if (elements.empty() || elements.front() >= size) return false;
      const int piece = piece_at_[static_cast<size_t>(elements.front())];
      if (piece < 0 || pieces_[static_cast<size_t>(piece)].positions != elements) return false;
      pieces_[static_cast<size_t>(piece)].reads.push_back(v);
    }
    return true;
  }

  StateLinks replace() {
    StateLinks links;
    const std::optional<Tensor> initial = past_->initial;
    for (size_t k = 0; k < pieces_.size(); ++k) {
      Piece& p = pieces_[k];
      const std::string what = text(p.box);
      Value* v = g_.add_value(link_.input_name + what, p.next->type);
      v->origin = v->name;
      if (initial) v->initial = cut(*initial, p.box).reshaped(*static_extents(v->type.shape));
      for (Value* read : p.reads) g_.replace_uses(read, shown_as(v, read->type.shape));
      StateLink link = link_;
      link.input_name += what;
      link.output_name += what;
      link.piece = p.box;
      if (k == 0) {
        g_.inputs[link_.input] = v;
        g_.outputs[link_.output] = p.next;
      } else {
        link.input = g_.inputs.size();
        link.output = g_.outputs.size();
        g_.inputs.push_back(v);
        g_.outputs.push_back(p.next);
      }
      links.push_back(std::move(link));
    }
    g_.erase_unused();
    g_.sort();
    return links;
  }

  Value* shown_as(Value* v, const Shape& shape) {
    if (v->type.shape == shape) return v;
    Value* view = g_.add_value(v->name + "/view", {});
    Value* target = constant_integers(g_, v->name + "/shape", *static_extents(shape));
    infer(g_, *g_.add_node(find_op("", "Reshape"), view->name, {v, target}, {view}));
    return view;
  }

  Graph& g_;
  const StateLink& link_;
  Value *past_, *next_;
  int64_t count_ = 0;
  std::vector<Source> sources_;
  std::map<const Value*, Tensor> ids_;
  std::map<const Value*, Positions> lists_;  // the same numbers
  std::map<const Value*, std::optional<Tensor>> constants_;
  std::set<const Value*> of_state_;  // what holds elements of the state, taken or updated
  std::set<const Node*> followed_;
  std::vector<Piece> pieces_;
  std::vector<int> piece_at_;  // by element of the state; -1: in none
};

}  // namespace

Tensor cut(const Tensor& whole, const StatePiece& piece) {
  const auto size = static_cast<int64_t>(size_of(whole.dtype()));
  Tensor part(whole.dtype(), piece.extents);
  std::byte* to = part.mutable_data();
  for (const int64_t at : positions_of(piece)) to = std::copy_n(whole.data() + at * size, size, to);
  return part;
}

void split_states(Graph& g, StateLinks& links) {
  StateLinks all;
  for (const StateLink& l : links) {
    StateLinks pieces = Splitting(g, l).split();
    if (pieces.empty()) pieces = {l};
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  links = std::move(all);
}

}  // namespace sinter
