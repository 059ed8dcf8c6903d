// narrow_caches(): caches that are stored in fewer bytes (--cache f16, int8).
//
// A cache in the state that is written in place (by TensorScatter or ScatterElements) and that attention
// alone reads becomes one of halves, or of bytes with a scale for each row of a head: new rows are converted
// before they are written, and cached_attention reads them where they lie. All else that is a cache is
// refused, with what stands in the way; other states keep their types.
#include <algorithm>

#include "ir/error.h"
#include "ops/sequences/attention.h"
#include "passes/builder.h"
#include "plan/growth.h"

namespace sinter {
namespace {

constexpr size_t kRows = 2;  // of [batch, heads, rows, elements]

class Narrowing {
 public:
  Narrowing(Graph& g, const StateLinks& links, const std::string& type)
      : g_(g), links_(links), type_(type), to_(type == "f16" ? DType::kF16 : DType::kI8) {}

  void run() {
    std::vector<const StateLink*> caches;
    std::vector<std::string> problems;
    for (const StateLink& l : links_) {
      if (!is_cache(l)) continue;
      caches.push_back(&l);
      if (const std::string why = problem_of(l); !why.empty())
        problems.push_back(fmt::format("--cache {}: the cache {} can't be stored so: {}", type_,
                                       sinter::quoted(l.input_name), why));
    }
    if (caches.empty()) refuse("--cache {}: no state is a cache; --state OUTPUT=INPUT says which are", type_);
    if (!problems.empty()) throw Refusal(std::move(problems));
    for (const StateLink* l : caches) narrow(*l);
    g_.erase_unused();
    g_.sort();
  }

 private:
  Value* past(const StateLink& l) const { return g_.inputs[l.input]; }
  Value* present(const StateLink& l) const { return g_.outputs[l.output]; }

  // The node that writes new rows into the state; null where none does.
  Node* scatter_of(const StateLink& l) const {
    Node* n = present(l)->producer;
    const bool writes = n && (is_op(n, "TensorScatter") || is_op(n, "ScatterElements"));
    return writes && n->inputs[0] == past(l) ? n : nullptr;
  }
  static size_t updates(const Node& scatter) { return is_op(&scatter, "TensorScatter") ? 1 : 2; }

  static bool is_attention(const Node* n) {
    return is_op(n, "Attention") || n->op == find_op("sinter", "cached_attention");
  }
  static bool reads_as_cache(const Node& n, const Value* v) {
    return is_attention(&n) && (n.inputs[kK] == v) != (n.inputs[kV] == v) &&
           std::count(n.inputs.begin(), n.inputs.end(), v) == 1;
  }

  // What grows, or is written by rows; or what attention reads at all.
  bool is_cache(const StateLink& l) const {
    if (l.random || row_count(g_, l)) return false;
    if (scatter_of(l) || growth_of(g_, links_, l)) return true;
    const auto& readers = present(l)->users;
    return std::any_of(readers.begin(), readers.end(), [](const Node* n) { return is_attention(n); });
  }

  std::string problem_of(const StateLink& l) const {
    const Value *old = past(l), *all = present(l);
    const Node* scatter = scatter_of(l);
    if (!scatter) return "its rows are joined anew in each run, not written in place";
    if (old->type.dtype != DType::kF32 && !(old->type.dtype == DType::kF16 && to_ == DType::kF16))
      return fmt::format("it is of {}, not of float32", name_of(old->type.dtype));
    if (scatter->attributes.text("reduction", "none") != "none") return "its rows are added to";
    if (std::string why = to_ == DType::kI8 ? problem_of_rows(*scatter, old->type) : ""; !why.empty())
      return why;
    if (old->users.size() != 1) return "the model reads it before the new rows are written, too";
    if (std::count(g_.outputs.begin(), g_.outputs.end(), all) != 1)
      return "it is an output for the caller, too";
    if (all->users.empty()) return "no attention reads it";
    for (const Node* n : all->users) {
      if (!reads_as_cache(*n, all)) return label(*n) + " reads it, too, which is no attention";
      if (std::string why = problem_of(*n, all); !why.empty()) return why;
    }
    return "";
  }

  // Bytes have a scale for each row of a head: these must be written as a whole.
  static std::string problem_of_rows(const Node& scatter, const TensorType& type) {
    if (type.shape.size() != 4) return fmt::format("it is {}, without an axis of heads", text(type));
    const bool elements = is_op(&scatter, "ScatterElements");
    const int64_t axis = scatter.attributes.integer("axis", elements ? 0 : -2);
    if (axis != static_cast<int64_t>(kRows) && axis != -2) return "its rows are not the third axis";
    if (elements && !places_rows(scatter)) return label(scatter) + " may write each element to another row";
    return "";
  }

  // What the kernel can't do with such a cache.
  std::string problem_of(const Node& n, const Value* cache) const {
    const AttentionForm f = attention_form(n);
    const bool key = n.inputs[kK] == cache;
    const Value* mask = n.input(kMask);
    if (n.inputs[kQ]->type.dtype != DType::kF32)
      return fmt::format("the queries of {} are of {}", label(n), name_of(n.inputs[kQ]->type.dtype));
    if (to_ == DType::kI8 && (key ? f.k : f.v) != HeadLayout::kHeadsFirst)
      return label(n) + " reads it with its axes permuted";
    if (n.has_output(kScores)) return "the scores of " + label(n) + " are an output";
    if (n.input(kPastKey) || n.has_output(kPresentKey) || n.has_output(kPresentValue))
      return label(n) + " joins it with more rows";
    if (mask && mask->type.dtype != DType::kF32 && mask->type.dtype != DType::kBool)
      return fmt::format("the mask of {} is of {}", label(n), name_of(mask->type.dtype));
    if (!f.head.is_static() || !f.v_head.is_static() || f.head.value() < 1 || f.v_head.value() < 1)
      return label(n) + " has heads of an extent that isn't known";
    if (n.freedom.halves != Halves::kNone) return label(n) + " computes halves (--fp16)";
    return "";
  }

  // Whether indices are the same for all elements of a row.
  static bool places_rows(const Node& scatter) {
    const Node* expand = scatter.inputs[1]->producer;
    return is_op(expand, "Expand") && !expand->inputs[0]->type.shape.empty() &&
           expand->inputs[0]->type.shape.back().is(1);
  }

  void narrow(const StateLink& l) {
    Value *old = past(l), *all = present(l);
    if (old->type.dtype == to_) return;
    Node* scatter = scatter_of(l);
    const size_t i = updates(*scatter);
    Builder b(g_, scatter);
    Value* rows = to_ == DType::kF16
                      ? b("Cast", {scatter->inputs[i]}, {{"to", static_cast<int64_t>(onnx_of(to_))}})
                      : bytes_of(*scatter, scatter->inputs[i]);
    if (to_ == DType::kI8 && i == 2) {
      Value* place = scatter->inputs[1]->producer->inputs[0];
      g_.set_input(scatter, 1, b("Expand", {place, b("Shape", {rows})}));
    }
    if (old->initial) old->initial = evaluate(*rows->producer, {*old->initial})[0];
    old->type.dtype = to_;
    old->type.shape.back() = rows->type.shape.back();
    g_.set_input(scatter, i, rows);
    all->type = old->type;
    all->origin.clear();  // not what the model has
    for (Node* n : all->users) n->op = find_op("sinter", "cached_attention");
  }

  Value* bytes_of(Node& scatter, Value* rows) {
    Value* bytes = g_.add_value(rows->name + "/bytes", {});
    Node* n = g_.add_node(find_op("sinter", "rows_to_bytes"), bytes->name, {rows}, {bytes}, &scatter);
    n->sources = scatter.sources;
    infer(g_, *n);
    return bytes;
  }

  Graph& g_;
  const StateLinks& links_;
  const std::string type_;
  const DType to_;
};

}  // namespace

void narrow_caches(Graph& g, const StateLinks& links, const std::string& type) {
  if (type != "f32") Narrowing(g, links, type).run();
}

}  // namespace sinter
