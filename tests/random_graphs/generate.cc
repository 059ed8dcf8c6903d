#include "random_graphs/generate.h"

#include <fmt/format.h>

#include "ir/error.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "random_graphs/noise.h"
#include "random_graphs/productions.h"

namespace sinter::random_graphs {
namespace {

DType base_type(Builder& b) {
  const size_t k = b.below(100);
  return k < 78 ? DType::kF32 : k < 86 ? DType::kF64 : k < 94 ? DType::kF16 : DType::kBF16;
}

// Kinds of model: the inputs, and which productions are likely.
struct Theme {
  void (*inputs)(Builder&, DType);
  unsigned elementwise, image, matrix, movement, control;  // percent
};

std::string extent(Builder& b, const std::string& symbol, int64_t lo, int64_t hi,
                   std::initializer_list<int64_t> fixed) {
  if (!b.chance(25)) return std::to_string(b.one_of(fixed));
  b.dim(symbol, lo, hi);
  return symbol;
}

void image_inputs(Builder& b, DType t) {
  const std::string n = extent(b, "N", 1, 3, {1, 1, 2}), c = std::to_string(b.one_of({1, 3, 4, 8, 16}));
  if (b.chance(85))
    b.input(t, {n, c, extent(b, "H", 4, 9, {5, 8, 12}), extent(b, "W", 4, 9, {4, 7, 12})});
  else
    b.input(t, {n, c, extent(b, "L", 4, 12, {9, 16})});
}
void sequence_inputs(Builder& b, DType t) {
  const std::string n = extent(b, "N", 1, 3, {1, 2}), s = extent(b, "S", 1, 7, {1, 5, 6}),
                    d = std::to_string(b.one_of({4, 8, 12, 16, 5}));
  b.input(t, {n, s, d});
  if (b.chance(40)) b.input(t, {n, s, d});
}
void table_inputs(Builder& b, DType t) {
  const std::string n = extent(b, "N", 1, 4, {1, 3, 4});
  b.input(t, {n, std::to_string(b.one_of({3, 8, 16, 10}))});
  if (b.chance(40)) b.input(DType::kI32, {n, "4"});
  if (b.chance(30)) b.input(DType::kBool, {n, "1"});
}
void mixed_inputs(Builder& b, DType t) {
  const std::string n = extent(b, "N", 1, 3, {1, 2, 3});
  b.input(t, {n, "4", "6"});
  if (b.chance(60)) b.input(b.one_of({DType::kI32, DType::kI64, DType::kBool, DType::kU8}), {n, "4", "6"});
  if (b.chance(40)) b.input(t, {"6"});
  if (b.chance(25)) b.input(t, {});
}

constexpr Theme kThemes[] = {{image_inputs, 14, 66, 8, 10, 2},
                             {sequence_inputs, 25, 0, 55, 17, 3},
                             {table_inputs, 40, 0, 35, 20, 5},
                             {mixed_inputs, 45, 2, 13, 35, 5}};

const Production& choose(Builder& b, const std::vector<Production>& table) {
  size_t total = 0;
  for (const Production& p : table) total += p.weight;
  size_t k = b.below(total);
  for (const Production& p : table) {
    if (k < p.weight) return p;
    k -= p.weight;
  }
  return table.back();
}

const Production& choose(Builder& b, const Theme& theme) {
  if (b.chance(5)) return choose(b, quantised_productions());
  const size_t k = b.below(100);
  size_t sum = theme.elementwise;
  if (k < sum) return choose(b, elementwise_productions());
  if (k < (sum += theme.image)) return choose(b, image_productions());
  if (k < (sum += theme.matrix)) return choose(b, matrix_productions());
  if (k < (sum += theme.movement)) return choose(b, movement_productions());
  return choose(b, control_productions());
}

std::unique_ptr<Graph> imported(const Sample& s) {
  return std::move(import_model(s.model, {}, s.options).graph);
}

// The first value that isn't what the model has; "" where all are.
std::string first_difference(const Sample& s, const Graph& g, const std::vector<Tensor>& inputs,
                             const Values& want) {
  std::string first;
  const auto compare = [&](const std::string& name, const Tensor& t, const std::vector<int64_t>& perm) {
    const auto it = want.find(name);
    if (!first.empty() || it == want.end()) return;
    const Tensor original = perm.empty() ? it->second : it->second.transposed(perm);
    const auto deviation = s.deviations.find(name);
    // What the model has in 16 bits may be held in 32: the elements count, not the type.
    const Tensor got = original.dtype() == t.dtype() ? t : t.converted(original.dtype());
    const double d = largest_difference(got, original);
    const double allowed = tolerance(original, deviation == s.deviations.end() ? 0 : deviation->second);
    if (d < 0 || d > allowed)
      first = fmt::format("{} differs by {} (largest {}, allowed {})", name, d, largest(original), allowed);
  };
  const std::vector<Tensor> outputs = evaluate(g, inputs, [&](const Value& v, const Tensor& t) {
    if (!v.origin.empty()) compare(v.origin, t, v.perm);
  });
  for (size_t i = 0; i < outputs.size(); ++i) compare(g.outputs[i]->name, outputs[i], {});
  return first;
}

}  // namespace

Sample generate(uint64_t seed) {
  Builder b(seed);
  const Theme& theme = kThemes[b.below(std::size(kThemes))];
  theme.inputs(b, base_type(b));
  const size_t wanted = 3 + b.below(16);
  for (int attempts = 0; b.size() < wanted && attempts < 80; ++attempts)
    if (choose(b, theme).add(b)) b.commit();
  Sample s;
  s.seed = seed;
  s.model = b.finish();
  s.options = b.import_options();
  s.inputs = b.data_sets();
  s.deviations = b.deviations();
  s.rejected = b.rejected();
  return s;
}

std::string check_passes(const Sample& s) {
  const std::unique_ptr<Graph> before = imported(s);
  std::vector<Values> want;
  for (const auto& inputs : s.inputs) want.push_back(evaluate_with_noise(*before, inputs, 0));
  PassOptions options;
  options.exact = s.seed % 5 == 0;
  options.channels_last = s.seed % 7 != 0;
  options.byte_products = s.seed % 3 != 0;
  PassHooks hooks;
  hooks.verify_each = true;
  std::string problem, last_text = text(*before);
  hooks.after = [&](const Pass& pass, const Graph& g) {
    std::string now = text(g);
    if (!problem.empty() || now == last_text) return;
    last_text = std::move(now);
    for (size_t k = 0; k < s.inputs.size() && problem.empty(); ++k) {
      const std::string d = first_difference(s, g, s.inputs[k], want[k]);
      if (!d.empty()) problem = fmt::format("after {}: {}", pass.name, d);
    }
  };
  const std::unique_ptr<Graph> after = before->clone();
  run_passes(*after, options, hooks);
  return problem;
}

std::unique_ptr<Graph> graph_of(const Sample& s, Passes passes) {
  std::unique_ptr<Graph> g = imported(s);
  PassHooks hooks;
  if (passes == Passes::kNeeded)
    for (const Pass& p : all_passes())
      if (p.name != std::string_view("lower_ops") && p.name != std::string_view("simplify_control"))
        hooks.skip.insert(p.name);
  PassOptions options;
  options.exact = passes == Passes::kAll && s.seed % 5 == 0;
  options.byte_products = s.seed % 3 != 0;  // kernels for other targets exist, slow ones
  run_passes(*g, options, hooks);
  return g;
}

double output_tolerance(const Sample& s, const Graph& g) {
  double most = 0;
  for (const auto& inputs : s.inputs) {
    const std::vector<Tensor> outputs = evaluate(g, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto d = s.deviations.find(g.outputs[i]->name);
      const double top = largest(outputs[i]);
      if (top > 0 && is_float(outputs[i].dtype()))
        most = std::max(most, tolerance(outputs[i], d == s.deviations.end() ? 0 : d->second) / top);
    }
  }
  return most;
}

}  // namespace sinter::random_graphs
