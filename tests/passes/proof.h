// Proof of a pass: a small model in ONNX text is imported, some passes run, and
//  - the graph's text before and after is the golden file's (SINTER_UPDATE_GOLDENS=1 writes it),
//  - for every given batch, seeded inputs give the same outputs before and after.
//
// Graph inputs named w_* become constants with seeded contents, so that models need not spell weights.
#pragma once
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "model_text.h"
#include "onnx_suite.h"
#include "passes/pass.h"

namespace sinter {

// Numbers in [-2, 2), any bytes, or small non-negative integers; positive where the name ends in "_var".
inline Tensor seeded(DType dtype, const std::vector<int64_t>& shape, const std::string& name, uint32_t seed) {
  std::mt19937 random(seed +
                      static_cast<uint32_t>(name.size() * 131 + static_cast<unsigned char>(name.back())));
  Tensor t(dtype, shape);
  const bool positive = name.size() > 4 && name.substr(name.size() - 4) == "_var";
  for (int64_t i = 0; i < t.size(); ++i) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    if (is_float(dtype))
      t.set_real(i, positive ? 0.5 + u : 4 * u - 2);
    else if (dtype == DType::kI8 || dtype == DType::kU8)
      t.set_integer(i, static_cast<int64_t>(u * 256) - (dtype == DType::kI8 ? 128 : 0));
    else
      t.set_integer(i, static_cast<int64_t>(u * (dtype == DType::kBool ? 2 : 4)));
  }
  return t;
}

inline std::unique_ptr<Graph> graph_of(const std::string& text) {
  const onnx::ModelProto proto = parse_text(text);
  ImportOptions options;
  for (const auto& v : proto.graph().input()) {
    if (v.name().rfind("w_", 0) != 0) continue;
    std::vector<int64_t> shape;
    for (const auto& d : v.type().tensor_type().shape().dim()) shape.push_back(d.dim_value());
    options.constants[v.name()] =
        seeded(dtype_of_onnx(v.type().tensor_type().elem_type()), shape, v.name(), 7);
  }
  return std::move(import_model(proto, {}, options).graph);
}

// Inputs of the graph with every symbol set to `extent`.
inline std::vector<Tensor> inputs_of(const Graph& g, int64_t extent, uint32_t seed) {
  std::vector<Tensor> out;
  for (const Value* v : g.inputs) {
    std::vector<int64_t> shape;
    for (const Dim& d : v->type.shape) shape.push_back(d.evaluate([&](const Symbol&) { return extent; }));
    out.push_back(seeded(v->type.dtype, shape, v->name, seed));
  }
  return out;
}

// Runs only these passes (all: every one).
inline void run_only(Graph& g, const std::vector<std::string>& passes, bool exact = false,
                     bool byte_products = false) {
  PassHooks hooks;
  hooks.verify_each = true;
  if (passes != std::vector<std::string>{"all"}) {
    for (const Pass& p : all_passes()) hooks.skip.insert(p.name);
    for (const std::string& p : passes) hooks.skip.erase(p);
  }
  PassOptions options;
  options.exact = exact;
  options.byte_products = byte_products;
  run_passes(g, options, hooks);
}

inline size_t count_op(const Graph& g, const std::string& op) {
  size_t n = 0;
  for (const auto& node : g.nodes) n += node->op->name == op;
  return n;
}

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file =
      std::filesystem::path(SINTER_TESTS_DIR) / "passes" / "goldens" / (name + ".txt");
  if (std::getenv("SINTER_UPDATE_GOLDENS")) std::ofstream(file) << text;
  std::ifstream in(file);
  std::ostringstream want;
  want << in.rdbuf();
  EXPECT_EQ(want.str(), text) << "golden " << file.filename() << " (SINTER_UPDATE_GOLDENS=1 rewrites it)";
}

// What `got` has beside `want` where they differ by more than `tolerance` of the largest element; else "".
inline std::string difference_of(const Tensor& got, const Tensor& want, double tolerance) {
  double top = 0;
  if (is_float(want.dtype()))
    for (double v : want.reals()) top = std::max(top, std::isfinite(v) ? std::fabs(v) : 0);
  return suite::difference(got, want, {tolerance, tolerance * top});
}

// Outputs are the same, and so is every value that says which value of the model it is.
inline void expect_same_values(const Graph& before, const Graph& after, double tolerance,
                               const std::vector<int64_t>& extents) {
  for (int64_t extent : extents)
    for (uint32_t seed : {1u, 2u}) {
      const std::vector<Tensor> inputs = inputs_of(before, extent, seed);
      std::map<std::string, Tensor> model;  // values of the model by name
      const std::vector<Tensor> want = evaluate(before, inputs, [&](const Value& v, const Tensor& t) {
        model[v.origin.empty() ? v.name : v.origin] = t;
      });
      const std::vector<Tensor> got = evaluate(after, inputs, [&](const Value& v, const Tensor& t) {
        const auto it = model.find(v.origin);
        if (it == model.end()) return;
        const Tensor original = v.perm.empty() ? it->second : it->second.transposed(v.perm);
        // What the model has in 16 bits may be held in 32: the elements count, not the type.
        const Tensor same = original.dtype() == t.dtype() ? t : t.converted(original.dtype());
        EXPECT_EQ(difference_of(same, original, tolerance), "")
            << v.name << " is not its origin " << v.origin;
      });
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(difference_of(got[i], want[i], tolerance), "")
            << "output " << i << " for extent " << extent;
    }
}

// A model of one graph, "(inputs) => (outputs)", in ONNX's text form.
inline std::string model_of(const char* signature, const std::string& nodes, int opset = 18) {
  return fmt::format("<ir_version: 8, opset_import: [\"\" : {}]> g {} {{ {} }}", opset, signature, nodes);
}

// What a pass makes of a form of what it looks for: the text before and after is the golden file's, outputs
// stay the same, with all passes too, and with --exact there is no `op`, which the pass makes.
struct ProvedForm {
  std::unique_ptr<Graph> before, after, all, exact;
};
struct FormOf {
  const char *name, *pass, *op;
  double tolerance = 1e-5;
  std::vector<int64_t> extents = {1, 3};
};
inline ProvedForm prove_form(const FormOf& f, std::unique_ptr<Graph> before) {
  ProvedForm p{std::move(before), nullptr, nullptr, nullptr};
  p.after = p.before->clone();
  run_only(*p.after, {f.pass});
  expect_golden(f.name, text(*p.before) + "-- " + f.pass + "\n" + text(*p.after));
  expect_same_values(*p.before, *p.after, f.tolerance, f.extents);
  p.all = p.before->clone();
  run_only(*p.all, {"all"});
  expect_same_values(*p.before, *p.all, f.tolerance, f.extents);
  p.exact = p.before->clone();
  run_only(*p.exact, {f.pass}, true);
  EXPECT_EQ(count_op(*p.exact, f.op), 0u) << "with --exact";
  return p;
}

}  // namespace sinter
