// TfIdfVectorizer: calls of runtime/sinter/tfidf.h with the pool as tables.
#include "ops/tables/tfidf.h"

#include "emit/layer.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "TfIdfVectorizer" && n.op->domain[0] == 0 && !n.epilogue;
}

void emit(LayerWriter& w) {
  static constexpr const char* kModes[] = {"kTf", "kIdf", "kTfIdf"};
  const TfIdfTables t = tfidf_of(w.node);
  const Shape& s = w.node.inputs[0]->type.shape;
  w.include("sinter/tfidf.h");
  w.summary(fmt::format("TfIdfVectorizer of {}: {} columns", text(s), t.columns));
  const std::string x = w.input(0), y = w.output(0);
  const auto table = [&](const std::string& name, const std::vector<int64_t>& v) {
    return w.weights(name, "std::int64_t", v.data(), v.size() * sizeof v[0], fmt::format("[{}]", v.size()));
  };
  std::string list;
  for (const auto& l : t.lengths) {
    const std::string items = table(fmt::format("items{}", l.length), l.items);
    const std::string columns = table(fmt::format("columns{}", l.length), l.columns);
    list += fmt::format("{}{{{}, {}, {}, {}}}", list.empty() ? "" : ", ", l.length, l.columns.size(), items,
                        columns);
  }
  const std::string weights = t.weights.empty()
                                  ? "static_cast<const float*>(nullptr)"
                                  : w.weights("weights", t.weights, fmt::format("[{}]", t.weights.size()));
  w.out.line("const sinter::Ngrams grams[] = {{{}}};", list);
  w.out.line("sinter::tfidf({}, {}, {}, grams, {}, sinter::TfIdfMode::{}, {}, {}, {});", x,
             s.size() == 2 ? w.dim(s[0]) : "1", w.dim(s.back()), t.skips, kModes[static_cast<int>(t.mode)],
             weights, t.columns, y);
}

}  // namespace

const std::vector<Kernel>& kernels_tfidf() {
  static const std::vector<Kernel> table = {
      {"tfidf", "TfIdfVectorizer, by bisection", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
