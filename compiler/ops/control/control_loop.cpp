// Loop and Scan: what is carried from one iteration to the next, and a row of each result an iteration.
//
// The shapes of carried values are a fixpoint. They begin as the initial values' shapes; an extent that the
// body changes becomes a Symbol inside the body, and one outside for what it is at the end. Its bound is the
// initial extent plus trip count times the most that an iteration adds, or the bound of what the body makes,
// or what the user says (--dim VALUE@AXIS<=MAX). Without a bound the plan refuses it.
#include "ops/control/control_loop.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ops/control/bodies.h"
#include "ops/control/counted_loop.h"
#include "ops/control/extent_loop.h"

namespace sinter {
namespace {

constexpr int kRounds = 8;

int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum;
  return a == Interval::kUnbounded || b == Interval::kUnbounded || __builtin_add_overflow(a, b, &sum)
             ? Interval::kUnbounded
             : sum;
}
int64_t multiply_saturated(int64_t a, int64_t b) {
  int64_t m;
  if (a == 0 || b == 0) return 0;
  return a == Interval::kUnbounded || b == Interval::kUnbounded || __builtin_mul_overflow(a, b, &m)
             ? Interval::kUnbounded
             : m;
}

bool depends(const Dim& d, const SymbolPtr& s) {
  std::vector<SymbolPtr> all;
  d.collect_symbols(all);
  return std::find(all.begin(), all.end(), s) != all.end();
}

struct Widened {
  SymbolPtr symbol;          // the extent as an iteration finds it
  int64_t most = INT64_MAX;  // outside: at the end
  int64_t least = 0;
};
using Place = std::pair<size_t, size_t>;  // state, axis

// The fixpoint over the body of one Loop.
class Carried {
 public:
  Carried(Inference& x, const LoopForm& form, int64_t at_most)
      : x_(x), form_(form), body_(*x.node.bodies[0]), at_most_(at_most) {
    for (size_t k = 0; k < form.states; ++k) shapes_.push_back(x.shape(form.first + k));
    first_ = shapes_;
  }

  void run() {
    size_t mark = x_.symbols.all().size();
    const auto again = [&] {
      x_.symbols.truncate(mark);
      infer_body();
    };
    for (int round = 0;; ++round) {
      again();
      const std::vector<Place> differing = compare();
      if (differing.empty()) break;
      if (round == kRounds) x_.fail("the shapes of its carried values do not settle");
      x_.symbols.truncate(mark);
      for (const Place& p : differing) widen(p, {0, Interval::kUnbounded});
      mark = x_.symbols.all().size();
    }
    if (widened_.empty()) return;
    bound();
    x_.symbols.truncate(mark);
    for (auto& [place, w] : widened_) widen(place, {w.least, w.most});
    mark = x_.symbols.all().size();
    again();
    if (!compare().empty()) x_.fail("the shapes of its carried values do not settle");
  }

  // Of state k, as it is seen outside when the loop has ended.
  Shape final_shape(size_t k) {
    Shape s = shapes_[k];
    for (size_t axis = 0; axis < s.size(); ++axis)
      if (auto w = widened_.find({k, axis}); w != widened_.end())
        s[axis] = border(x_, k, axis, s[axis],
                         {std::min(w->second.least, std::max<int64_t>(first_[k][axis].lo(), 0)),
                          std::max(w->second.most, first_[k][axis].hi())});
    return s;
  }

 private:
  const Value& made(size_t k) const { return *body_.outputs[form_.body_output(k)]; }

  void infer_body() {
    for (size_t i = form_.first; i < body_.inputs.size(); ++i) set_input(*body_.inputs[i], x_.in[i]);
    for (size_t k = 0; k < form_.states; ++k) {
      Value& v = *body_.inputs[form_.first + k];
      v.type = {x_.dtype(form_.first + k), shapes_[k]};
      if (&made(k) != &v) v.elements.clear(), v.range.reset();  // another value in the next iteration
    }
    infer(body_);
  }

  // Extents of states that the body changes and that are no symbols yet.
  std::vector<Place> compare() const {
    std::vector<Place> out;
    for (size_t k = 0; k < form_.states; ++k) {
      const TensorType& t = made(k).type;
      if (t.dtype != x_.dtype(form_.first + k) || t.shape.size() != shapes_[k].size())
        x_.fail(fmt::format("its body makes {} of the carried value {}, which is {}", text(t),
                            sinter::quoted(body_.inputs[form_.first + k]->name),
                            text(TensorType{x_.dtype(form_.first + k), shapes_[k]})));
      for (size_t axis = 0; axis < t.shape.size(); ++axis)
        if (!(t.shape[axis] == shapes_[k][axis]) && !widened_.count({k, axis})) out.push_back({k, axis});
    }
    return out;
  }

  void widen(const Place& p, Interval range) {
    const auto& [k, axis] = p;
    const Value& in = *body_.inputs[form_.first + k];
    const Value* out = x_.node.outputs[k];
    const std::string name = fmt::format("{}@{}", out ? out->name : in.name, axis);
    Widened& w = widened_[p];
    std::vector<SymbolPtr> old;
    if (axis < in.type.shape.size()) in.type.shape[axis].collect_symbols(old);
    w.symbol = old.size() == 1 && old[0]->name == name && old[0]->range == range
                   ? old[0]
                   : x_.symbols.fresh(name, range,
                                      fmt::format("the carried value {} axis {} in {}",
                                                  sinter::quoted(in.name), axis, label(x_.node)),
                                      true);
    shapes_[k][axis] = Dim(w.symbol);
  }

  // Bounds that the body keeps: if what it finds is within them, what it makes is. Unbounded where none
  // settle.
  std::map<Place, int64_t> kept_bounds() const {
    std::map<Place, int64_t> most;
    for (const auto& [place, w] : widened_) most[place] = first_[place.first][place.second].hi();
    for (int round = 0; round < kRounds; ++round) {
      bool settled = true;
      for (auto& [place, hi] : most) {
        const Dim out = made(place.first).type.shape[place.second].substitute([&](const SymbolPtr& s) {
          for (const auto& [p, w] : widened_)
            if (w.symbol == s) return unknown_extent({0, most.at(p)}, s->id);
          return Dim(s);
        });
        if (out.hi() > hi) hi = out.hi(), settled = false;
      }
      if (settled) return most;
    }
    for (auto& [place, hi] : most) hi = Interval::kUnbounded;
    return most;
  }

  void bound() {
    const std::map<Place, int64_t> kept = kept_bounds();
    for (auto& [place, w] : widened_) {
      const auto& [k, axis] = place;
      const Dim made_dim = made(k).type.shape[axis];
      const Dim first = first_[k][axis], step = made_dim - Dim(w.symbol);
      int64_t most = Interval::kUnbounded;
      if (step.hi() != Interval::kUnbounded && !depends(step, w.symbol))
        most = add_saturated(first.hi(), multiply_saturated(at_most_, std::max<int64_t>(step.hi(), 0)));
      most = std::min(most, kept.at(place));
      if (const Value* out = x_.node.outputs[k])
        most = std::min(most, x_.symbols.limit(fmt::format("{}@{}", out->name, axis)));
      w.most = most;
      const bool grows = step.lo() >= 0;
      w.least = std::max<int64_t>(0, std::min(most, grows ? first.lo() : std::min<int64_t>(first.lo(), 0)));
    }
  }

  Inference& x_;
  const LoopForm& form_;
  Graph& body_;
  int64_t at_most_;
  std::vector<Shape> shapes_, first_;
  std::map<Place, Widened> widened_;
};

// A single element, [] or [1].
bool is_one(const Shape& s) { return s.empty() || (s.size() == 1 && s[0].is(1)); }

// The condition that the body makes is always true.
bool goes_on(const Value& v) {
  return is_true(v) || (!v.data && v.elements.size() == 1 && v.elements[0].is(1));
}

}  // namespace

bool is_true(const Value& v) { return v.data && v.data->size() == 1 && v.data->integer(0) != 0; }

namespace {

bool reads_data(const Dim& d) {
  std::vector<SymbolPtr> all;
  d.collect_symbols(all);
  return std::any_of(all.begin(), all.end(), [](const SymbolPtr& s) { return s->from_data; });
}

// How often a Loop runs, as far as that is known before it does.
class Count {
 public:
  explicit Count(Inference& x) : x_(x), form_(loop_form(x.node)), body_(*x.node.bodies[0]) {
    read_trips();
    read_condition();
    counted_ = counted_trips(x.node);
    if (!counted_) ended_ = extent_trips(x);
  }
  // Once the body's types are known, which the condition's meaning needs; whether that has told more.
  bool again() {
    if (counted_) return false;
    const int64_t before = at_most();
    ended_ = extent_trips(x_);
    return at_most() < before;
  }

  // The number of trips, where the run can't end the Loop before.
  std::optional<Dim> exact() const {
    const std::optional<Dim> all = model_says();
    return all && reads_data(*all) && all->hi() > x_.symbols.max_trips ? std::nullopt : all;
  }
  // Of trips; the run keeps it.
  int64_t at_most() const {
    int64_t most = std::min(
        {trips_ ? trips_->hi() : most_given_, counted_.value_or(Interval::kUnbounded), ended_.at_most});
    for (size_t i = 0; i < form_.results; ++i)
      if (const Value* v = x_.node.outputs[form_.states + i])
        most = std::min(most, x_.symbols.limit(v->name + "@0"));
    return exact() ? most : std::min(most, x_.symbols.max_trips);
  }

 private:
  void read_trips() {
    if (!x_.has(0)) return;
    x_.require(x_.dtype(0) == DType::kI64, "its trip count is not int64");
    x_.require_equal(product(x_.shape(0)), Dim(1), "elements of the trip count");
    if (const auto e = x_.elements(0); e && e->size() == 1)  // no Dim is far below 0
      trips_ = (*e)[0].is_static() ? Dim(std::max<int64_t>(0, (*e)[0].value())) : max(Dim(0), (*e)[0]);
    if (const auto& range = x_.in[0].range; range && range->hi < 1e15)
      most_given_ = static_cast<int64_t>(std::max(0.0, range->hi));
  }
  void read_condition() {
    if (x_.has(1)) {
      x_.require(x_.dtype(1) == DType::kBool, "its condition is not bool");
      x_.require_equal(product(x_.shape(1)), Dim(1), "elements of the condition");
      const auto e = x_.integers(1);
      begins_ = e && e->size() == 1 && (*e)[0] != 0;
    }
    if (!x_.has(0) && steady()) x_.fail("it never ends: it has no trip count, and its condition stays true");
  }
  // It begins, and the condition that its body makes is the one that it finds, or true.
  bool steady() const {
    const Value* made = body_.outputs[0];
    while (made->producer && made->producer->op == find_op("", "Identity")) made = made->producer->inputs[0];
    return begins_ && (made == body_.inputs[1] || goes_on(*body_.outputs[0]));
  }
  std::optional<Dim> model_says() const {
    if (counted_ && !x_.has(0)) return Dim(*counted_);
    if (counted_) return trips_ ? std::optional(min(*trips_, Dim(*counted_))) : std::nullopt;
    if (steady()) return trips_;
    if (ended_.exact && !x_.has(0)) return ended_.exact;
    return ended_.exact && trips_ ? std::optional(min(*trips_, *ended_.exact)) : std::nullopt;
  }

  Inference& x_;
  const LoopForm form_;
  const Graph& body_;
  std::optional<Dim> trips_;  // as given
  int64_t most_given_ = Interval::kUnbounded;
  bool begins_ = true;
  std::optional<int64_t> counted_;
  Trips ended_;
};

// The number of an iteration lies below `at_most`.
void number_iterations(Inference& x, int64_t at_most) {
  Value& iteration = *x.node.bodies[0]->inputs[0];
  if (at_most < 1) return iteration.elements.clear();
  const Interval range{0, at_most == Interval::kUnbounded ? at_most : at_most - 1};
  const bool same = iteration.elements.size() == 1 && iteration.elements[0].bounds() == range;
  if (!same)
    iteration.elements = {
        Dim(x.symbols.fresh("iteration", range, "the iteration in " + label(x.node), true))};
}

// All results have the one number of rows; the first that is wanted names it.
void set_results(Inference& x, const LoopForm& form, const Count& count) {
  std::optional<Dim> rows = count.exact();
  for (size_t i = 0; i < form.results; ++i) {
    const size_t out = form.states + i;
    if (!x.out[out].present) continue;
    const TensorType& row = x.node.bodies[0]->outputs[form.body_output(out)]->type;
    if (!rows) {
      const Dim inner = unknown_extent({0, count.at_most()});
      rows = border(x, out, 0, inner, {0, count.at_most()});
    }
    Shape shape{*rows};
    for (size_t axis = 0; axis < row.shape.size(); ++axis)
      shape.push_back(border(x, out, axis + 1, row.shape[axis], row.shape[axis].bounds()));
    x.set(out, row.dtype, std::move(shape));
  }
}

}  // namespace

void infer_loop(Inference& x) {
  const LoopForm form = loop_form(x.node);
  Graph& body = *x.node.bodies[0];
  Value &iteration = *body.inputs[0], &condition = *body.inputs[1];
  if (!is_one(iteration.type.shape)) iteration.type.shape.clear();
  if (!is_one(condition.type.shape)) condition.type.shape.clear();
  iteration.type.dtype = DType::kI64;
  condition.type.dtype = DType::kBool;
  condition.elements = {Dim(1)};  // an iteration only runs where it holds
  Count count(x);
  const bool typed = body.outputs[0]->type.dtype != DType::kUndefined;
  const size_t mark = x.symbols.all().size();
  std::optional<Carried> carried;
  const auto carry = [&] {
    x.symbols.truncate(mark);
    number_iterations(x, count.at_most());
    carried.emplace(x, form, count.at_most()).run();
  };
  carry();
  if (!typed && count.again()) carry();
  const TensorType& next = body.outputs[0]->type;
  x.require(next.dtype == DType::kBool, "its body's first output, the condition, is not bool");
  x.require(is_one(next.shape) || product(next.shape).is(1),
            "its body's first output, the condition, is not one element");
  for (size_t k = 0; k < form.states; ++k)
    if (x.out[k].present) x.set(k, x.dtype(form.first + k), carried->final_shape(k));
  set_results(x, form, count);
}

namespace {

struct ScanAxes {
  std::vector<int64_t> input, output;         // axes, not negative
  std::vector<bool> input_back, output_back;  // directions
};

std::vector<int64_t> list(const Node& n, const char* name, size_t size) {
  std::vector<int64_t> v = n.attributes.integers(name, std::vector<int64_t>(size, 0));
  if (v.size() != size) refuse_node(n, fmt::format("{} has {} numbers instead of {}", name, v.size(), size));
  return v;
}
int64_t axis_of(const Node& n, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) refuse_node(n, fmt::format("scan axis {} is out of range", axis));
  return axis < 0 ? axis + rank : axis;
}
std::vector<bool> directions(const Node& n, const char* name, size_t size) {
  std::vector<bool> out;
  for (int64_t d : list(n, name, size)) {
    if (d != 0 && d != 1) refuse_node(n, fmt::format("{} must be 0 or 1", name));
    out.push_back(d == 1);
  }
  return out;
}
// `ranks`: of the scanned inputs, and of the outputs that hold the results.
ScanAxes scan_axes(const Node& n, const LoopForm& f, const std::vector<int64_t>& in_ranks,
                   const std::vector<int64_t>& out_ranks) {
  ScanAxes a;
  const auto in = list(n, "scan_input_axes", f.scanned), out = list(n, "scan_output_axes", f.results);
  for (size_t i = 0; i < f.scanned; ++i) a.input.push_back(axis_of(n, in[i], in_ranks[i]));
  for (size_t i = 0; i < f.results; ++i) a.output.push_back(axis_of(n, out[i], out_ranks[i]));
  a.input_back = directions(n, "scan_input_directions", f.scanned);
  a.output_back = directions(n, "scan_output_directions", f.results);
  return a;
}

}  // namespace

void infer_scan(Inference& x) {
  const LoopForm form = loop_form(x.node);
  Graph& body = *x.node.bodies[0];
  const auto in_axes = list(x.node, "scan_input_axes", form.scanned);
  const auto out_axes = list(x.node, "scan_output_axes", form.results);
  directions(x.node, "scan_input_directions", form.scanned);
  directions(x.node, "scan_output_directions", form.results);
  for (size_t i = 0; i < body.inputs.size(); ++i) set_input(*body.inputs[i], x.in[i]);
  Dim rows;
  for (size_t i = 0; i < form.scanned; ++i) {
    const size_t k = form.first + form.states + i;
    const auto axis = static_cast<size_t>(axis_of(x.node, in_axes[i], x.rank(k)));
    const Dim& extent = x.shape(k)[axis];
    rows = i == 0 ? extent : x.require_equal(rows, extent, "extents of the scan axes");
    Value& v = *body.inputs[k];
    v.type.shape.erase(v.type.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    v.elements.clear();
  }
  for (size_t k = 0; k < form.states; ++k) {
    body.inputs[form.first + k]->elements.clear();
    body.inputs[form.first + k]->range.reset();
  }
  infer(body);
  for (size_t k = 0; k < form.states; ++k) {
    const TensorType &in = body.inputs[form.first + k]->type, &out = body.outputs[k]->type;
    if (in.dtype != out.dtype || in.shape.size() != out.shape.size())
      x.fail(fmt::format("its body makes {} of the state {}, which is {}", text(out),
                         sinter::quoted(body.inputs[form.first + k]->name), text(in)));
    for (size_t axis = 0; axis < in.shape.size(); ++axis) {
      const Dim &a = in.shape[axis], &b = out.shape[axis];
      if (a == b) continue;
      const Dim d = a - b;
      if (d.lo() > 0 || d.hi() < 0)
        x.fail(fmt::format("its body makes {} of the state {}, which is {}", text(out),
                           sinter::quoted(body.inputs[form.first + k]->name), text(in)));
      body.checks.push_back({a, b, false, fmt::format("{}: a state's axis {}", label(x.node), axis)});
    }
    if (x.out[k].present) x.same(k, form.first + k);
  }
  for (size_t i = 0; i < form.results; ++i) {
    const size_t out = form.states + i;
    const TensorType& row = body.outputs[out]->type;
    const auto at =
        static_cast<size_t>(axis_of(x.node, out_axes[i], static_cast<int64_t>(row.shape.size()) + 1));
    if (!x.out[out].present) continue;
    Shape shape;
    for (size_t axis = 0; axis <= row.shape.size(); ++axis) {
      const size_t inner = axis - (axis > at);
      shape.push_back(axis == at ? rows : border(x, out, axis, row.shape[inner], row.shape[inner].bounds()));
    }
    x.set(out, row.dtype, std::move(shape));
  }
}

namespace {

// The rows of one result, in the order of the iterations.
using Rows = std::vector<Tensor>;

Tensor stack(Evaluation& e, const Rows& rows, const std::vector<int64_t>& empty, DType dtype) {
  std::vector<int64_t> shape = rows.empty() ? empty : rows[0].shape();
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  Tensor out(dtype, shape);
  std::byte* to = out.mutable_data();
  for (const Tensor& r : rows) {
    if (r.shape() != rows[0].shape()) e.fail("the rows of a result have different shapes");
    std::memcpy(to, r.data(), static_cast<size_t>(r.bytes()));
    to += r.bytes();
  }
  return out;
}

void own_symbols(Graph& g, const std::shared_ptr<Symbols>& symbols) {
  g.symbols = symbols;
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies) own_symbols(*b, symbols);
}

// The shape of output i for the actual inputs, where no iteration has told; extents that only iterations
// could tell are 0.
std::vector<int64_t> shape_without_rows(const Evaluation& e, size_t i) {
  Node n;
  n.op = e.node.op;
  n.name = e.node.name;
  n.inputs = e.node.inputs;
  n.outputs = e.node.outputs;
  n.attributes = e.node.attributes;
  n.bodies.push_back(e.node.bodies[0]->clone());
  own_symbols(*n.bodies[0], std::make_shared<Symbols>());
  std::vector<Check> checks;
  Inference x{n, {}, {}, *n.bodies[0]->symbols, checks};
  for (const Tensor& t : e.in) {
    Fact f;
    f.present = static_cast<bool>(t);
    if (f.present) f.type = {t.dtype(), Shape(t.shape().begin(), t.shape().end())};
    f.data = f.present ? &t : nullptr;
    x.in.push_back(f);
  }
  for (const Value* v : n.outputs) {
    x.out.emplace_back();
    x.out.back().present = v != nullptr;
  }
  n.op->infer(x);
  const Shape& known = e.node.outputs[i]->type.shape;
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < known.size(); ++axis) {
    const Dim& d = known[axis].is_static() ? known[axis] : x.out[i].type.shape[axis];
    shape.push_back(d.is_static() ? d.value() : 0);
  }
  return shape;
}

Tensor one(const Value& like, DType dtype, int64_t value) {
  Tensor t(dtype, std::vector<int64_t>(like.type.shape.size(), 1));
  t.set_integer(0, value);
  return t;
}

void finish_result(Evaluation& e, size_t i, const Rows& rows, size_t axis) {
  if (!e.node.outputs[i]) return;
  std::vector<int64_t> empty;
  if (rows.empty()) {
    empty = shape_without_rows(e, i);
    empty.erase(empty.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  Tensor t = stack(e, rows, empty, e.node.outputs[i]->type.dtype);
  std::vector<int64_t> perm;  // rows go from axis 0 to `axis`
  for (int64_t d = 1; d < t.rank(); ++d) perm.push_back(d);
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  e.out[i] = axis == 0 ? std::move(t) : t.transposed(perm);
}

}  // namespace

void eval_loop(Evaluation& e) {
  const LoopForm form = loop_form(e.node);
  const Graph& body = *e.node.bodies[0];
  const int64_t trips = e.has(0) ? e.in[0].integer(0) : INT64_MAX;
  bool go = !e.has(1) || e.in[1].integer(0) != 0;
  std::vector<Tensor> in = e.in;
  std::vector<Rows> rows(form.results);
  for (int64_t i = 0; i < trips && go; ++i) {
    in[0] = one(*body.inputs[0], DType::kI64, i);
    in[1] = one(*body.inputs[1], DType::kBool, 1);
    std::vector<Tensor> out = evaluate(body, in);
    go = out[0].integer(0) != 0;
    for (size_t k = 0; k < form.states; ++k) in[form.first + k] = out[form.body_output(k)];
    for (size_t r = 0; r < form.results; ++r) rows[r].push_back(out[form.body_output(form.states + r)]);
  }
  for (size_t k = 0; k < form.states; ++k) e.out[k] = in[form.first + k];
  for (size_t r = 0; r < form.results; ++r) finish_result(e, form.states + r, rows[r], 0);
}

void eval_scan(Evaluation& e) {
  const LoopForm form = loop_form(e.node);
  const Graph& body = *e.node.bodies[0];
  std::vector<int64_t> in_ranks, out_ranks;
  for (size_t i = 0; i < form.scanned; ++i) in_ranks.push_back(e.in[form.states + i].rank());
  for (size_t i = 0; i < form.results; ++i)
    out_ranks.push_back(static_cast<int64_t>(body.outputs[form.states + i]->type.shape.size()) + 1);
  const ScanAxes axes = scan_axes(e.node, form, in_ranks, out_ranks);
  std::vector<Tensor> in = e.in, scanned;
  int64_t trips = 0;
  for (size_t i = 0; i < form.scanned; ++i) {  // with the scanned axis first
    const Tensor& t = e.in[form.states + i];
    std::vector<int64_t> perm{axes.input[i]};
    for (int64_t d = 0; d < t.rank(); ++d)
      if (d != axes.input[i]) perm.push_back(d);
    scanned.push_back(t.transposed(perm));
    if (i > 0 && scanned[i].dim(0) != trips) e.fail("the scanned extents differ");
    trips = scanned[i].dim(0);
  }
  std::vector<Rows> rows(form.results);
  for (int64_t t = 0; t < trips; ++t) {
    for (size_t i = 0; i < form.scanned; ++i) {
      const std::vector<int64_t>& shape = scanned[i].shape();
      Tensor slice(scanned[i].dtype(), std::vector<int64_t>(shape.begin() + 1, shape.end()));
      const int64_t row = axes.input_back[i] ? trips - 1 - t : t;
      std::memcpy(slice.mutable_data(), scanned[i].data() + row * slice.bytes(),
                  static_cast<size_t>(slice.bytes()));
      in[form.states + i] = std::move(slice);
    }
    std::vector<Tensor> out = evaluate(body, in);
    for (size_t k = 0; k < form.states; ++k) {
      if (out[k].shape() != in[k].shape()) e.fail("a state changes its shape");
      in[k] = out[k];
    }
    for (size_t r = 0; r < form.results; ++r) rows[r].push_back(out[form.states + r]);
  }
  for (size_t k = 0; k < form.states; ++k) e.out[k] = in[k];
  for (size_t r = 0; r < form.results; ++r) {
    if (axes.output_back[r]) std::reverse(rows[r].begin(), rows[r].end());
    finish_result(e, form.states + r, rows[r], static_cast<size_t>(axes.output[r]));
  }
}

}  // namespace sinter
