// squeeze_excite: y = x * excite(W2 squeeze(W1 mean(x) + b1) + b2), the mean over all but the batch and the
// channels ("Squeeze-and-Excitation Networks", Hu et al. 2018).
//
// x is float32 [N, C, S..], with channels_last = 1 [N, S.., C]; W1 is [M, C], W2 [C, M]. The attributes
// `squeeze` and `excite` are activations (squeeze_excite.h).
#include "ops/reductions/squeeze_excite.h"

#include <sstream>

#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool write(const Expr& e, std::string& to) {
  if (e.dtype != DType::kF32) return false;
  if (!to.empty()) to += ' ';
  switch (e.kind) {
    case Expr::Kind::kAccumulator: to += "acc"; return true;
    case Expr::Kind::kConstant: to += fmt::format("{:a}", e.real); return true;
    case Expr::Kind::kCall:
      to += e.fn->name;
      return std::all_of(e.args.begin(), e.args.end(), [&](const ExprPtr& a) { return a && write(*a, to); });
    default: return false;
  }
}

ExprPtr read(std::istringstream& from) {
  std::string word;
  from >> word;
  if (word == "acc") return Expr::accumulator(DType::kF32);
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (end != word.c_str() && *end == '\0') return Expr::constant(number, DType::kF32);
  std::vector<ExprPtr> args;
  for (int i = 0; i < scalar_fn(word)->arity; ++i) args.push_back(read(from));
  return Expr::call(word, std::move(args));
}

void infer_squeeze_excite(Inference& x) {
  x.require(x.rank(kSeX) >= 3, "x has less than three axes");
  const Dim channels = channels_of(x.attributes(), x.shape(kSeX));
  for (size_t i = kSeX; i <= kExciteBias; ++i)
    x.require(!x.has(i) || x.dtype(i) == DType::kF32, fmt::format("input {} is not float32", i));
  x.require(x.has(kSqueezeWeights) && x.has(kExciteWeights) && x.rank(kSqueezeWeights) == 2 &&
                x.rank(kExciteWeights) == 2,
            "the weights are no matrices");
  const Shape &squeeze = x.shape(kSqueezeWeights), &excite = x.shape(kExciteWeights);
  x.require_equal(squeeze[1], channels, "channels");
  x.require_equal(excite[0], channels, "channels");
  x.require_equal(excite[1], squeeze[0], "squeezed channels");
  for (const auto& [bias, weights] :
       {std::pair{kSqueezeBias, kSqueezeWeights}, std::pair{kExciteBias, kExciteWeights}}) {
    if (!x.has(bias)) continue;
    x.require(x.rank(bias) == 1, "a bias has not one axis");
    x.require_equal(x.shape(bias)[0], x.shape(weights)[0], "entries of a bias");
  }
  x.same(0, kSeX);
}

// activation(W v + b)
std::vector<double> product(const Evaluation& e, size_t weights, size_t bias, const std::vector<double>& v,
                            const char* activation) {
  const Tensor& w = e.in[weights];
  Tensor sums(DType::kF32, {w.dim(0)});
  for (int64_t i = 0; i < w.dim(0); ++i) {
    double sum = e.has(bias) ? e.in[bias].real(i) : 0;
    for (int64_t j = 0; j < w.dim(1); ++j) sum += w.real(i * w.dim(1) + j) * v[static_cast<size_t>(j)];
    sums.set_real(i, sum);
  }
  return evaluate(*activation_of(e.attributes().text(activation, "acc")), {}, &sums).reals();
}

void eval_squeeze_excite(Evaluation& e) {
  const Tensor x = channels_first(e.attributes(), e.in[kSeX]);
  Tensor y(x.dtype(), x.shape());
  const int64_t channels = x.dim(1), area = x.size() == 0 ? 0 : x.size() / x.dim(0) / channels;
  for (int64_t n = 0; area > 0 && n < x.dim(0); ++n) {
    std::vector<double> mean(static_cast<size_t>(channels));
    const int64_t at = n * channels * area;
    for (int64_t i = 0; i < channels * area; ++i)
      mean[static_cast<size_t>(i / area)] += x.real(at + i) / static_cast<double>(area);
    const std::vector<double> gate = product(
        e, kExciteWeights, kExciteBias, product(e, kSqueezeWeights, kSqueezeBias, mean, "squeeze"), "excite");
    for (int64_t i = 0; i < channels * area; ++i)
      y.set_real(at + i, x.real(at + i) * gate[static_cast<size_t>(i / area)]);
  }
  e.out[0] = as_node_layout(e.attributes(), y);
}

}  // namespace

std::optional<std::string> activation_text(const Expr& e) {
  std::string text;
  return write(e, text) ? std::optional(text) : std::nullopt;
}
ExprPtr activation_of(const std::string& text) {
  std::istringstream from(text);
  return read(from);
}

const std::vector<Op>& ops_squeeze_excite() {
  static const std::vector<Op> table = {
      {.name = "squeeze_excite",
       .domain = "sinter",
       .min_inputs = 2,
       .max_inputs = 5,
       .infer = infer_squeeze_excite,
       .eval = eval_squeeze_excite,
       .note = "channels scaled by what two products make of their means; made by pass fuse_squeeze_excite"},
  };
  return table;
}

}  // namespace sinter
