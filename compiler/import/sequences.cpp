// Sequences exist at import only: a sequence is the list of the Values in it.
//
// Exporters use them to take tensors apart and put them together (unbind, chunk, stack), mostly with
// positions and counts that are known. So SplitToSequence becomes Split, SequenceAt picks a Value (at a
// position that only the run knows: gathers a row of all), ConcatFromSequence becomes Concat. Sequences of a
// number of elements that isn't known are one tensor with a row for each: those that SplitToSequence cuts
// from a free extent, and those that a Loop makes (stacked.cpp). Sequences as inputs and outputs of the model
// are refused.
#include <algorithm>

#include "import/importer.h"
#include "ir/error.h"

namespace sinter {
namespace {

// The position that input i of the node gives in a sequence of `size` elements, negative ones from the end.
size_t position(const Draft& d, size_t i, size_t size, size_t fallback) {
  const Value* v = d.input(i);
  if (!v) return fallback;
  if (!v->data || !is_integer(v->type.dtype) || v->data->size() != 1)
    refuse("a position in a sequence that is only known at run time is not supported");
  const int64_t n = static_cast<int64_t>(size), given = v->data->integer(0);
  const int64_t at = given < 0 ? given + n : given;
  const int64_t end = d.op == "SequenceInsert" ? n : n - 1;
  if (at < 0 || at > end) refuse("position {} in a sequence of {} elements", given, size);
  return static_cast<size_t>(at);
}

constexpr int64_t kMostPieces = 65536;

// How SplitToSequence cuts `extent` by the numbers of its operand; of an operand that is absent, into single
// elements.
std::vector<int64_t> cuts(const Tensor* split, int64_t extent) {
  std::vector<int64_t> sizes;
  if (split && split->rank() == 1) {
    sizes = split->integers();
    int64_t sum = 0;
    for (int64_t s : sizes)
      if (s < 0 || __builtin_add_overflow(sum, s, &sum)) refuse("a negative or too large split");
    if (sum != extent) refuse("the split adds up to {}, the axis has {}", sum, extent);
    return sizes;
  }
  const int64_t chunk = split ? split->integer(0) : 1;
  if (chunk < 1) refuse("a split of {}", chunk);
  if (extent / chunk > kMostPieces)
    refuse("a sequence of more than {} elements is not supported", kMostPieces);
  for (int64_t at = 0; at < extent; at += chunk) sizes.push_back(std::min(chunk, extent - at));
  return sizes;
}

}  // namespace

Value* Importer::piece(Scope& scope, const Draft& d, const std::string& op, std::vector<Value*> inputs) {
  Draft made;
  made.op = op;
  made.name = d.name;
  made.inputs = std::move(inputs);
  made.outputs = {scope.graph->add_value(d.name + "/" + op, {})};
  Value* out = made.outputs[0];
  emit(scope, made);
  return out;
}

std::vector<Value*> Importer::split_by(Scope& scope, const Draft& d, Value* sizes, size_t pieces,
                                       int64_t axis) {
  if (pieces == 0) return {};
  Draft split;
  split.op = "Split";
  split.name = d.name;
  split.inputs = {d.input(0), sizes};
  split.attributes.set("axis", axis);
  for (size_t i = 0; i < pieces; ++i)
    split.outputs.push_back(scope.graph->add_value(d.name + "/element", {}));
  std::vector<Value*> elements = split.outputs;
  emit(scope, split);
  if (d.input(1) || d.attributes.integer("keepdims", 1) != 0) return elements;
  Value* axes = scope.graph->add_constant(d.name + "/axes", Tensor::of(std::vector<int64_t>{axis}));
  for (Value*& v : elements) v = piece(scope, d, "Squeeze", {v, axes});
  return elements;
}

void Importer::split_to_sequence(Scope& scope, const Draft& d) {
  Value *x = d.input(0), *split = d.input(1);
  if (!x || x->type.dtype == DType::kUndefined)
    refuse("its input's type is not known, so it is not supported");
  const int64_t rank = static_cast<int64_t>(x->type.shape.size());
  int64_t axis = d.attributes.integer("axis", 0);
  if (axis < -rank || axis >= rank) refuse("axis {} out of range for {}", axis, text(x->type.shape));
  if (axis < 0) axis += rank;
  const Dim extent = x->type.shape[static_cast<size_t>(axis)];
  if (extent.is_static() && (!split || split->data)) {
    const std::vector<int64_t> sizes = cuts(split ? &*split->data : nullptr, extent.value());
    Value* list = scope.graph->add_constant(d.name + "/split", Tensor::of(sizes));
    sequences_[d.outputs[0]] = split_by(scope, d, list, sizes.size(), axis);
  } else if (split && split->type.shape.size() == 1) {  // as many pieces as there are sizes
    if (!is_static(split->type.shape))
      refuse("a split into {} pieces is not supported", text(split->type.shape));
    const int64_t pieces = split->type.shape[0].value();
    if (pieces > kMostPieces) refuse("a sequence of more than {} elements is not supported", kMostPieces);
    sequences_[d.outputs[0]] = split_by(scope, d, split, static_cast<size_t>(pieces), axis);
  } else {
    split_unknown(scope, d, axis);
  }
}

// A free extent in pieces of one size: slices where their number is known, else rows where all are equal.
void Importer::split_unknown(Scope& scope, const Draft& d, int64_t axis) {
  Value* x = d.input(0);
  const Dim extent = x->type.shape[static_cast<size_t>(axis)];
  if (d.input(1) && !d.input(1)->data) refuse("a split that is only known at run time is not supported");
  const int64_t chunk = d.input(1) ? d.input(1)->data->integer(0) : 1;
  if (chunk < 1) refuse("a split of {}", chunk);
  const auto numbers = [&](const char* name, const std::vector<int64_t>& v) {
    return scope.graph->add_constant(fmt::format("{}/{}", d.name, name), Tensor::of(v));
  };
  const Dim pieces = ceildiv(extent, chunk);
  if (pieces.is_static() && pieces.value() <= kMostPieces) {
    std::vector<Value*>& elements = sequences_[d.outputs[0]];
    Value* along = numbers("axes", {axis});
    for (int64_t i = 0; i < pieces.value(); ++i) {
      const int64_t end = i + 1 == pieces.value() ? INT64_MAX : (i + 1) * chunk;
      elements.push_back(
          piece(scope, d, "Slice", {x, numbers("from", {i * chunk}), numbers("to", {end}), along}));
    }
    return;
  }
  if (!mod(extent, chunk).is(0))
    refuse(
        "splitting the extent {} into pieces of {} that may be unequal is not supported; a step makes them "
        "equal: --dim NAME=MIN..MAX:{}",
        extent.text(), chunk, chunk);
  const int64_t rank = static_cast<int64_t>(x->type.shape.size());
  std::vector<int64_t> perm{axis};
  const bool keeps = d.input(1) || d.attributes.integer("keepdims", 1) != 0;
  for (int64_t a = 0; a < rank + keeps; ++a)
    if (a != axis) perm.push_back(a);
  Value* rows = x;
  if (chunk == 1 && keeps) {
    rows = piece(scope, d, "Unsqueeze", {rows, numbers("axes", {axis + 1})});
  } else if (chunk > 1) {
    const auto extents = [&](int64_t first, int64_t last) {
      Attributes a;
      a.set("start", first);
      a.set("end", last);
      return step(scope, d, "Shape", {x}, a);
    };
    Attributes first;
    first.set("axis", int64_t{0});
    Value* shape = step(scope, d, "Concat",
                        {extents(0, axis), numbers("pieces", {-1, chunk}), extents(axis + 1, rank)}, first);
    rows = step(scope, d, "Reshape", {rows, shape});
  }
  if (axis > 0) {
    Attributes turn;
    turn.set("perm", perm);
    rows = step(scope, d, "Transpose", {rows}, turn);
  }
  stacked_[d.outputs[0]] = rows;
}

// The element at a position that only the run knows: a row of all elements, which are joined where they were
// made, around the body that reads one.
Value* Importer::element_at(Scope& scope, const Draft& d, const std::vector<Value*>& list) {
  if (list.empty()) refuse("the sequence is empty");
  Attributes first;
  first.set("axis", int64_t{0});
  const auto join = [&](Scope& at) {
    std::vector<Value*> each;
    each.reserve(list.size());
    Value* axes = at.graph->add_constant(d.name + "/axes", Tensor::of(std::vector<int64_t>{0}));
    for (Value* v : list) each.push_back(piece(at, d, "Unsqueeze", {v, axes}));
    return step(at, d, "Concat", each, first);
  };
  const auto holds = [&](const Graph& g) {
    return std::all_of(list.begin(), list.end(), [&](const Value* v) {
      return std::any_of(g.values.begin(), g.values.end(), [&](const auto& own) { return own.get() == v; });
    });
  };
  Value* rows = list_rows_[d.input(0)];
  int bodies = 0;  // between the sequence and what reads it
  for (Scope* at = &scope; at && !rows; at = at->parent) {
    if (holds(*at->graph)) {
      speculative_ -= bodies;
      try {
        rows = list_rows_[d.input(0)] = join(*at);
      } catch (...) {
        speculative_ += bodies;
        throw;
      }
      speculative_ += bodies;
    }
    bodies += at->parent && at->parent->graph != at->graph;
  }
  if (!rows) rows = join(scope);
  return step(scope, d, "Gather", {rows, d.input(1)}, first, d.outputs[0]);
}

// An optional is what it holds; an empty one is a Value in `empty_`.
bool Importer::expand_optional(Scope& scope, const Draft& d) {
  const bool has = d.op == "OptionalHasElement", get = d.op == "OptionalGetElement";
  if (!has && !get && d.op != "Optional") return false;
  if (d.outputs.size() != 1 || !d.outputs[0]) refuse("it has one output");
  Value* out = d.outputs[0];
  Value* in = d.inputs.empty() ? nullptr : d.inputs[0];
  const bool holds = in && !empty_.count(in);
  if (has) {
    Tensor t(DType::kBool, {});
    t.set_integer(0, holds);
    out->type = {DType::kBool, {}};
    out->data = std::move(t);
  } else if (!holds) {
    if (get) refuse("the optional is empty");
    empty_.insert(out);
  } else if (const auto list = sequences_.find(in); list != sequences_.end()) {
    sequences_[out] = std::vector<Value*>(list->second);
  } else {
    Draft copy;
    copy.op = "Identity";
    copy.name = d.name;
    copy.inputs = {in};
    copy.outputs = {out};
    emit(scope, copy);
  }
  return true;
}

bool Importer::expand_sequence(Scope& scope, const Draft& d) {
  if (!d.domain.empty()) {  // no operator of another domain takes one
    for (const Value* v : d.inputs)
      if (v && (sequences_.count(v) || stacked_.count(v) || growing_.count(v) || empty_.count(v)))
        refuse("a sequence as this input is not supported");
    return false;
  }
  if (expand_optional(scope, d) || expand_map(scope, d)) return true;
  if (expand_growing(scope, d) || expand_stacked(scope, d)) return true;
  for (const Value* v : d.inputs)
    if (v && empty_.count(v)) refuse("an empty optional as this input is not supported");
  const Value* first = d.input(0);
  const auto found = first ? sequences_.find(first) : sequences_.end();
  const std::vector<Value*>* list = found == sequences_.end() ? nullptr : &found->second;
  const bool makes = d.op == "SequenceEmpty" || d.op == "SequenceConstruct" || d.op == "SplitToSequence";
  if ((makes || list) && (d.outputs.size() != 1 || !d.outputs[0])) refuse("it has one output");
  Value* out = makes || list ? d.outputs[0] : nullptr;
  if (d.op == "SequenceEmpty") {
    sequences_[out] = {};
  } else if (d.op == "SequenceConstruct") {
    if (std::count(d.inputs.begin(), d.inputs.end(), nullptr)) refuse("an element is missing");
    sequences_[out] = d.inputs;
  } else if (d.op == "SplitToSequence") {
    split_to_sequence(scope, d);
  } else if (!list && (d.op == "SequenceInsert" || d.op == "SequenceErase" || d.op == "SequenceLength" ||
                       d.op == "SequenceAt" || d.op == "ConcatFromSequence")) {
    if (problem_count_ == 0) refuse("its input is no sequence");
    return true;  // most likely what should have made it was refused
  } else if (!list) {
    for (size_t i = 0; i < d.inputs.size(); ++i) {
      const bool carried = d.op == "Loop" && i >= 2;  // see stacked.cpp
      if (d.inputs[i] && sequences_.count(d.inputs[i]) && !carried)
        refuse("a sequence as this input is not supported");
    }
    return false;
  } else if (d.op == "Identity") {
    sequences_[out] = std::vector<Value*>(*list);
  } else if (d.op == "SequenceInsert") {
    std::vector<Value*> changed = *list;
    if (!d.input(1)) refuse("input 1 is missing");
    changed.insert(
        changed.begin() + static_cast<std::ptrdiff_t>(position(d, 2, changed.size(), changed.size())),
        d.input(1));
    sequences_[out] = std::move(changed);
  } else if (d.op == "SequenceErase") {
    std::vector<Value*> changed = *list;
    if (changed.empty()) refuse("the sequence is empty");
    changed.erase(changed.begin() +
                  static_cast<std::ptrdiff_t>(position(d, 1, changed.size(), changed.size() - 1)));
    sequences_[out] = std::move(changed);
  } else if (d.op == "SequenceLength") {
    const int64_t n = static_cast<int64_t>(list->size());
    out->type = {DType::kI64, {}};
    out->data = Tensor::scalar(n);
  } else if (d.op == "SequenceAt") {
    if (!d.input(1)) refuse("input 1 is missing");
    if (!d.input(1)->data) return element_at(scope, d, *list), true;
    Draft pick;
    pick.op = "Identity";
    pick.name = d.name;
    pick.inputs = {(*list)[position(d, 1, list->size(), 0)]};
    pick.outputs = {out};
    emit(scope, pick);
  } else if (d.op == "ConcatFromSequence") {
    if (!d.attributes.has("axis")) refuse("attribute axis is missing");
    Draft concat;
    concat.op = "Concat";
    concat.name = d.name;
    concat.inputs = *list;
    concat.outputs = {out};
    const int64_t axis = d.attributes.integer("axis", 0);
    concat.attributes.set("axis", axis);
    if (d.attributes.integer("new_axis", 0) != 0) {
      Value* axes = scope.graph->add_constant(d.name + "/axes", Tensor::of(std::vector<int64_t>{axis}));
      for (Value*& v : concat.inputs) v = piece(scope, d, "Unsqueeze", {v, axes});
    }
    emit(scope, concat);
  } else {
    refuse("a sequence as input of {} is not supported", d.op);
  }
  if (const auto made = sequences_.find(out); made != sequences_.end())  // a list of its own each
    spend_inference(2 * kStepsOfElement * static_cast<double>(made->second.size()));
  return true;
}

}  // namespace sinter
