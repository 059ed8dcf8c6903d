// TfIdfVectorizer (ONNX 9) on integers; the counting is runtime/sinter/tfidf.h, which generated code calls
// too.
#include "ops/tables/tfidf.h"

#include <algorithm>
#include <map>

namespace sinter {
namespace {

TfIdfMode mode_of(const std::string& mode) {
  if (mode == "TF") return TfIdfMode::kTf;
  if (mode == "IDF") return TfIdfMode::kIdf;
  if (mode == "TFIDF") return TfIdfMode::kTfIdf;
  refuse("its mode is {}", sinter::quoted(mode));
}

// The sorted n-grams that pool[begin, end) spells; of equal ones the last counts.
TfIdfTables::Length grams_of(const std::vector<int64_t>& pool, int64_t begin, int64_t end, int64_t length,
                             const std::vector<int64_t>& columns, size_t first) {
  std::map<std::vector<int64_t>, int64_t> sorted;
  for (int64_t at = begin; at + length <= end; at += length)
    sorted[{pool.begin() + at, pool.begin() + at + length}] = columns[first++];
  TfIdfTables::Length out{length, {}, {}};
  for (const auto& [gram, column] : sorted) {
    out.items.insert(out.items.end(), gram.begin(), gram.end());
    out.columns.push_back(column);
  }
  return out;
}

}  // namespace

TfIdfTables tfidf_of(const Node& n) {
  const Attributes& a = n.attributes;
  if (a.has("pool_strings") && !a.texts("pool_strings").empty())
    refuse("its pool_strings are text, which is not supported");
  const std::vector<int64_t> pool = a.integers("pool_int64s"), starts = a.integers("ngram_counts"),
                             columns = a.integers("ngram_indexes");
  TfIdfTables t;
  t.mode = mode_of(a.text("mode", ""));
  t.skips = a.integer("max_skip_count", 0);
  const int64_t least = a.integer("min_gram_length", 1), most = a.integer("max_gram_length", 1);
  if (least < 1 || most < least) refuse("n-grams of {} to {} elements", least, most);
  if (t.skips < 0 || t.skips > 1 << 20) refuse("its max_skip_count is {}", t.skips);
  if (columns.empty() || pool.empty() || starts.empty()) refuse("its pool is empty");
  for (int64_t c : columns) {
    if (c < 0 || c >= 1 << 28) refuse("its ngram_indexes holds {}", c);
    t.columns = std::max(t.columns, c + 1);
  }
  size_t gram = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<int64_t>(i) + 1, size = static_cast<int64_t>(pool.size());
    const int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0)
      refuse("its ngram_counts do not divide the pool");
    const auto count = static_cast<size_t>((end - begin) / length);
    if (gram + count > columns.size()) refuse("{} ngram_indexes are too few for the pool", columns.size());
    if (length >= least && length <= most && count > 0)
      t.lengths.push_back(grams_of(pool, begin, end, length, columns, gram));
    gram += count;
  }
  if (t.lengths.empty()) refuse("its pool has no n-gram of {} to {} elements", least, most);
  t.weights = a.reals("weights");
  if (t.weights.empty()) return t;
  if (t.weights.size() != columns.size() || t.columns > static_cast<int64_t>(columns.size()))
    refuse("{} weights for {} n-grams", t.weights.size(), columns.size());
  // By n-gram, says the specification; by column, say the runtimes.
  for (size_t i = 0; i < columns.size(); ++i)
    if (t.mode != TfIdfMode::kTf && t.weights[static_cast<size_t>(columns[i])] != t.weights[i])
      refuse("weights of n-grams whose columns are in another order are not supported");
  return t;
}

namespace {

void infer(Inference& x) {
  x.require(x.dtype(0) == DType::kI32 || x.dtype(0) == DType::kI64,
            fmt::format("only for int32 and int64, not {}", name_of(x.dtype(0))));
  x.require(x.rank(0) == 1 || x.rank(0) == 2, fmt::format("a sequence of shape {}", text(x.shape(0))));
  Shape out = x.shape(0);
  out.back() = tfidf_of(x.node).columns;
  x.set(0, DType::kF32, std::move(out));
}

void eval(Evaluation& e) {
  const TfIdfTables t = tfidf_of(e.node);
  const Tensor& x = e.in[0];
  const int64_t n = x.dim(x.rank() - 1), rows = x.rank() == 2 ? x.dim(0) : 1;
  Tensor out = e.out[0], part(DType::kF32, e.out[0].shape());
  // One length at a time; their columns may be the same ones, so the counts are added before weights.
  for (const auto& l : t.lengths) {
    const Ngrams grams[] = {
        {l.length, static_cast<int64_t>(l.columns.size()), l.items.data(), l.columns.data()}};
    if (x.dtype() == DType::kI32)
      tfidf(x.as<int32_t>(), rows, n, grams, t.skips, TfIdfMode::kTf, nullptr, t.columns, part.as<float>());
    else
      tfidf(x.as<int64_t>(), rows, n, grams, t.skips, TfIdfMode::kTf, nullptr, t.columns, part.as<float>());
    for (int64_t i = 0; i < out.size(); ++i) e.out[0].as<float>()[i] += part.as<float>()[i];
  }
  for (int64_t i = 0; i < out.size() && t.mode != TfIdfMode::kTf; ++i) {
    float& y = e.out[0].as<float>()[i];
    const float weight = t.weights.empty() ? 1.0f : t.weights[static_cast<size_t>(i % t.columns)];
    y = t.mode == TfIdfMode::kIdf ? (y > 0 ? weight : 0.0f) : weight * y;
  }
}

}  // namespace

const std::vector<Op>& ops_tfidf() {
  static const std::vector<Op> table = {
      {.name = "TfIdfVectorizer", .infer = infer, .eval = eval, .note = "integers, no text"}};
  return table;
}

}  // namespace sinter
