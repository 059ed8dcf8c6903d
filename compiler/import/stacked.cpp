// Sequences that a Loop or a SequenceMap makes.
//
// A Loop that begins with an empty sequence and inserts one tensor at its end in each iteration makes a
// result of the Loop, one row an iteration: the sequence is `stacked`. What reads it afterwards becomes
// Gather (at a position), Transpose and Reshape (concatenated), or its first extent (the length). Where an
// extent of the elements differs from iteration to iteration (a token's frames), and the elements are only
// concatenated along it, the Loop carries what it has concatenated so far instead. A
// SequenceMap over sequences of known length is its body, once an element.
#include <algorithm>

#include "import/importer.h"
#include "ir/error.h"
#include "ops/control/bodies.h"

namespace sinter {

Value* Importer::step(Scope& scope, const Draft& d, const std::string& op, std::vector<Value*> inputs,
                      const Attributes& attributes, Value* out) {
  Draft made;
  made.op = op;
  made.name = d.name;
  made.inputs = std::move(inputs);
  made.attributes = attributes;
  made.outputs = {out ? out : scope.graph->add_value(d.name + "/" + op, {})};
  Value* result = made.outputs[0];
  emit(scope, made);
  return result;
}

namespace {

Attributes one(const char* name, Attribute value) {
  Attributes a;
  a.set(name, std::move(value));
  return a;
}

// The Loop whose result `rows` is, where the rows' axis `axis` is an extent that each iteration finds for
// itself and nothing has read them yet; null otherwise.
Node* maker_of_uneven(const Graph& g, const Value* rows, size_t axis) {
  Node* loop = rows->producer;
  if (!loop || loop->op != find_op("", "Loop") || !rows->users.empty() || g.is_output(rows)) return nullptr;
  std::vector<SymbolPtr> symbols;
  rows->type.shape[axis + 1].collect_symbols(symbols);
  const bool own = symbols.size() == 1 && symbols[0]->origin.ends_with(" of " + label(*loop));
  Shape rest(rows->type.shape.begin() + 1, rows->type.shape.end());
  rest[axis] = 0;
  return own && is_static(rest) ? loop : nullptr;
}

// The result `rows` of a Loop becomes a carried value: the rows of the iterations so far, joined along
// `axis`.
void carry_joined(Graph& g, Node& loop, Value* rows, size_t axis) {
  const LoopForm form = loop_form(loop);
  const auto out =
      static_cast<size_t>(std::find(loop.outputs.begin(), loop.outputs.end(), rows) - loop.outputs.begin());
  const auto at = [](auto& list, size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
  Graph& body = *loop.bodies[0];
  Value* row = body.outputs[form.body_output(out)];
  Value* so_far = body.add_value(row->name + "/before", {});
  Value* joined = body.add_value(row->name + "/joined", {});
  body.inputs.insert(at(body.inputs, form.first + form.states), so_far);
  Node* concat = body.add_node(find_op("", "Concat"), row->name + "/join", {so_far, row}, {joined});
  concat->attributes.set("axis", static_cast<int64_t>(axis));
  concat->sources = loop.sources;
  body.outputs.erase(at(body.outputs, form.body_output(out)));
  body.outputs.insert(at(body.outputs, form.body_output(form.states)), joined);
  std::vector<int64_t> none = static_dims([&] {
    Shape s(rows->type.shape.begin() + 1, rows->type.shape.end());
    s[axis] = 0;
    return s;
  }());
  Value* empty = g.add_constant(rows->name + "/empty", Tensor(rows->type.dtype, std::move(none)));
  loop.inputs.insert(at(loop.inputs, form.first + form.states), empty);
  loop.anchor_inputs = loop.inputs.size();
  empty->users.push_back(&loop);
  loop.outputs.erase(at(loop.outputs, out));
  loop.outputs.insert(at(loop.outputs, form.states), rows);
  rows->type = {};
  infer(g, loop);
}

}  // namespace

// [n, e...] as the concatenation of its rows along `axis` of them, or as a stack with a new axis there.
void Importer::join_stacked(Scope& scope, const Draft& d, Value* rows) {
  if (!d.attributes.has("axis")) refuse("attribute axis is missing");
  if (rows->type.dtype == DType::kUndefined)
    refuse("the type of its sequence is not known, so it is not supported");
  const bool stack = d.attributes.integer("new_axis", 0) != 0;
  const int64_t rank = static_cast<int64_t>(rows->type.shape.size()), given = d.attributes.integer("axis", 0);
  const int64_t of = stack ? rank : rank - 1, axis = given < 0 ? given + of : given;
  if (axis < 0 || axis >= of) refuse("axis {} out of range for {} axes", given, of);
  Graph& g = *scope.graph;
  if (Node* loop = stack ? nullptr : maker_of_uneven(g, rows, static_cast<size_t>(axis))) {
    carry_joined(g, *loop, rows, static_cast<size_t>(axis));
    step(scope, d, "Identity", {rows}, {}, d.outputs[0]);
    return;
  }
  std::vector<int64_t> perm;  // the rows' number goes to `axis`
  for (int64_t a = 1; a < rank; ++a) perm.push_back(a);
  perm.insert(perm.begin() + axis, 0);
  Value* out = d.outputs[0];
  if (stack) {
    step(scope, d, "Transpose", {rows}, one("perm", perm), out);
    return;
  }
  Value* turned = step(scope, d, "Transpose", {rows}, one("perm", perm));
  const auto extents = [&](int64_t first, int64_t last) {
    Attributes a = one("start", first);
    a.set("end", last);
    return step(scope, d, "Shape", {turned}, a);
  };
  Value* joined = step(scope, d, "Mul", {extents(axis, axis + 1), extents(axis + 1, axis + 2)});
  Value* shape =
      step(scope, d, "Concat", {extents(0, axis), joined, extents(axis + 2, rank)}, one("axis", int64_t{0}));
  step(scope, d, "Reshape", {turned, shape}, one("allowzero", int64_t{1}), out);
}

bool Importer::expand_stacked(Scope& scope, const Draft& d) {
  const auto found = d.input(0) ? stacked_.find(d.input(0)) : stacked_.end();
  if (found == stacked_.end()) {
    for (const Value* v : d.inputs)
      if (v && (stacked_.count(v) || growing_.count(v)))
        if (v != d.input(0)) refuse("a sequence as this input is not supported");
    return false;
  }
  if (d.outputs.size() != 1 || !d.outputs[0]) refuse("it has one output");
  Value *rows = found->second, *out = d.outputs[0];
  if (d.op == "Identity") {
    stacked_[out] = rows;
  } else if (d.op == "ConcatFromSequence") {
    join_stacked(scope, d, rows);
  } else if (d.op == "SequenceAt") {
    if (!d.input(1)) refuse("input 1 is missing");
    step(scope, d, "Gather", {rows, d.input(1)}, one("axis", int64_t{0}), out);
  } else if (d.op == "SequenceLength") {
    Attributes first = one("start", int64_t{0});
    first.set("end", int64_t{1});
    Value* none = scope.graph->add_constant(d.name + "/scalar", Tensor::of(std::vector<int64_t>{}));
    step(scope, d, "Reshape", {step(scope, d, "Shape", {rows}, first), none}, {}, out);
  } else {
    refuse("{} of a sequence that a Loop made is not supported", d.op);
  }
  return true;
}

// Inside the body: what has been inserted into the sequence since the iteration began.
bool Importer::expand_growing(const Scope& scope, const Draft& d) {
  const auto found = d.input(0) ? growing_.find(d.input(0)) : growing_.end();
  if (found == growing_.end()) return false;
  if (found->second.body != scope.graph)
    refuse("a sequence that a Loop carries is not supported in a body inside of the Loop's");
  if (d.outputs.size() != 1 || !d.outputs[0]) refuse("it has one output");
  Growing next = found->second;
  const Value* added = d.input(1);
  if (added &&
      (sequences_.count(added) || stacked_.count(added) || growing_.count(added) || empty_.count(added)))
    refuse("a sequence of sequences is not supported");
  if (d.op == "SequenceInsert" && !d.input(2) && d.input(1))
    next.rows.push_back(d.input(1));
  else if (d.op != "Identity")
    refuse("{} of a sequence that a Loop carries is not supported", d.op);
  growing_[d.outputs[0]] = next;
  return true;
}

// Body inputs that stand for carried sequences.
void Importer::mark_growing(const Draft& d, const Graph& body) {
  if (d.op != "Loop") return;
  for (size_t i = 2; i < body.inputs.size() && i < d.inputs.size(); ++i) {
    const auto list = d.inputs[i] ? sequences_.find(d.inputs[i]) : sequences_.end();
    if (list == sequences_.end()) continue;
    if (!list->second.empty()) refuse("a carried sequence that does not begin empty is not supported");
    growing_[body.inputs[i]] = {&body, body.inputs[i], {}};
  }
}

// Carried sequences become results: rows behind the body's other outputs, and Values for them behind the
// node's.
void Importer::stack_carried(Scope& scope, Draft& d, Graph& body) {
  for (size_t i = body.inputs.size(); i-- > 2;) {
    const auto first = growing_.find(body.inputs[i]);
    if (first == growing_.end()) continue;
    const size_t k = i - 2;
    Value* made = k + 1 < body.outputs.size() ? body.outputs[k + 1] : nullptr;
    const auto last = made ? growing_.find(made) : growing_.end();
    if (last == growing_.end() || last->second.from != body.inputs[i] || last->second.rows.size() != 1)
      refuse("its body does not append one tensor to the carried sequence {}, which is not supported",
             sinter::quoted(body.inputs[i]->name));
    body.outputs.erase(body.outputs.begin() + static_cast<std::ptrdiff_t>(k + 1));
    body.outputs.push_back(last->second.rows[0]);
    Value* rows = scope.graph->add_value(d.name + "/rows", {});
    if (k < d.outputs.size()) {
      if (d.outputs[k]) {
        stacked_[d.outputs[k]] = rows;
        std::swap(rows->name, d.outputs[k]->name);  // the rows have the sequence's name: --dim NAME@0<=MAX
      }
      d.outputs.erase(d.outputs.begin() + static_cast<std::ptrdiff_t>(k));
    }
    d.outputs.resize(body.outputs.size() - 2, nullptr);
    d.outputs.push_back(rows);
    d.inputs.erase(d.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    body.inputs.erase(body.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const Value* v : body.outputs)
    if (growing_.count(v)) refuse("its body gives a carried sequence where it doesn't belong");
  std::vector<const Value*> placeholders;
  for (const auto& v : body.values)
    if (growing_.count(v.get())) placeholders.push_back(v.get());
  for (const Value* gone : placeholders) {
    growing_.erase(gone);  // another Value may get its address
    std::erase_if(body.values, [&](const auto& v) { return v.get() == gone; });
  }
}

// SequenceMap: the body's first inputs are elements of the sequences, further ones tensors.
bool Importer::expand_map(Scope& scope, const Draft& d) {
  if (d.op != "SequenceMap") return false;
  if (d.graphs.size() != 1) refuse("it has no body");
  const onnx::GraphProto& body = *d.graphs[0].second;
  const auto first = d.input(0) ? sequences_.find(d.input(0)) : sequences_.end();
  if (first == sequences_.end()) refuse("its input is no sequence of known length, which is not supported");
  const size_t length = first->second.size();
  if (scope.depth + 1 > kMaxDepth) refuse("nested more than {} deep", kMaxDepth);
  if (body.input_size() != static_cast<int>(d.inputs.size()) ||
      d.outputs.size() > static_cast<size_t>(body.output_size()))
    refuse("its inputs or outputs are not those of its body");
  std::vector<std::vector<Value*>> results(d.outputs.size());
  for (size_t e = 0; e < length; ++e) {
    Scope inner = inside(scope, scope.graph);
    inner.prefix = fmt::format("{}{}/{}/", scope.prefix, d.name, e);
    declare_initializers(inner, body);
    for (int i = 0; i < body.input_size(); ++i) {
      Value* v = d.inputs[static_cast<size_t>(i)];
      if (const auto list = sequences_.find(v); list != sequences_.end()) {
        if (list->second.size() != length) refuse("its sequences differ in length");
        v = list->second[e];
      }
      inner.values.emplace(body.input(i).name(), v);
    }
    std::vector<std::string> wanted;
    for (size_t k = 0; k < d.outputs.size(); ++k) wanted.push_back(body.output(static_cast<int>(k)).name());
    import_nodes(inner, body.node(), wanted);
    for (size_t k = 0; k < wanted.size(); ++k) results[k].push_back(lookup(inner, wanted[k]));
  }
  for (size_t k = 0; k < d.outputs.size(); ++k)
    if (d.outputs[k]) sequences_[d.outputs[k]] = results[k];
  return true;
}

}  // namespace sinter
