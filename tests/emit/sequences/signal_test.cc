// DFT, STFT, windows and MelWeightMatrix as generated code against the interpreter.
#include <gtest/gtest.h>

#include "emit/sheet.h"

namespace sinter {
namespace {

void check(GeneratedBatch& batch) {
  for (const char* name : {"avx512", "aarch64", "scalar"}) {
    const auto results = batch.run(target(name), {.together = 4});
    if (!results[0].skipped.empty()) continue;
    expect_good(results, name);
  }
  expect_good(batch.run(target("host"), {.sanitize = true}), "sanitizers");
  expect_good(batch.run(target("host"), {.clang = true}), "clang");
}
Arg number(int64_t v) { return constant(Tensor::scalar(v)); }
Fill exactly(double v) {
  return [v](Tensor& t, std::mt19937&) { t.set_real(0, v); };
}

TEST(SignalKernels, DftStftAndWindows) {
  GeneratedBatch batch;
  Sheet s;
  const Dim n = s.symbol("N", 1, 40);
  for (int64_t inverse : {0, 1})
    for (int64_t parts : {1, 2})
      s.add("DFT", {floats({2, n, 3, parts}), absent(), number(1)}, {{"inverse", inverse}});
  s.add("DFT", {floats({n, 12, 1}), number(30)}, {{"onesided", int64_t{1}}});
  s.epilogue(Expr::call("relu", {Expr::accumulator(DType::kF32)}));
  s.add("DFT", {floats({n, 9, 2}), number(16)}, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}});
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16}) {
    s.add("DFT", {values(t, {3, 17, 2})});
    s.add("STFT", {values(t, {2, 40, 1}), number(5), values(t, {12})});
  }
  for (int64_t length : {149, 298, 512})  // by a chirp, of halves too, and in fours
    for (int64_t parts : {1, 2}) s.add("DFT", {floats({2, 300, parts}), number(length)});
  s.add("STFT", {floats({n, 40, 2}), number(7), absent(), number(9)}, {{"onesided", int64_t{0}}});
  s.add("STFT", {floats({2, n + 20, 1}), number(3), floats({20})});
  s.into(batch, "transforms", {{{"N", 1}}, {{"N", 7}}, {{"N", 40}}});
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    for (int64_t type : {1, 10, 11})
      s.add(op, {number(9)}, {{"output_datatype", type}, {"periodic", type % 2}});
  s.add("MelWeightMatrix", {number(4), number(32), values(DType::kI64, {}, exactly(8192)),
                            floats({}, exactly(100)), floats({}, exactly(4000))});
  s.into(batch, "windows");
  check(batch);
}

TEST(SignalKernels, MelWeightMatrixRefusesEdges) {
  GeneratedBatch batch;
  for (double upper : {1e9, -5.0}) {
    Sheet s;
    s.add("MelWeightMatrix", {number(4), number(32), values(DType::kI64, {}), floats({}), floats({})});
    Tensor edge(DType::kF32, {});
    edge.set_real(0, upper);
    batch.add(fmt::format("upper {}", upper), s.graph().clone(),
              {{{Tensor::scalar(int64_t{8192}), Tensor(DType::kF32, {}), edge}, {}, 5}});
  }
  expect_good(batch.run(target("host")), "host");
}

}  // namespace
}  // namespace sinter
