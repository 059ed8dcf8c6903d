#include "quantize/weights_only.h"

#include <algorithm>
#include <cmath>

#include "quantize/model_draft.h"
#include "quantize/steps.h"

namespace sinter::quantize {
namespace {

constexpr int64_t kBlock = 32, kLeastElements = 1024;

// 4-bit blocks of a matrix [k, n], as MatMulNBits wants them: [n, blocks, 16] of nibbles, the lower one
// first.
struct Blocks {
  Tensor nibbles, scales, zeros;
};

// The scale and zero point of one block: its range, widened to hold 0, in 15 steps.
void block_steps(const std::vector<double>& w, double& scale, int& zero) {
  double lo = 0, hi = 0;
  for (const double x : w) lo = std::min(lo, x), hi = std::max(hi, x);
  scale = hi > lo ? static_cast<double>(static_cast<float>((hi - lo) / 15)) : 1.0;
  zero = static_cast<int>(std::clamp(std::nearbyint(-lo / scale), 0.0, 15.0));
}

Blocks blocks_of(const Tensor& matrix, bool transposed) {
  const int64_t k = matrix.dim(transposed ? 1 : 0), n = matrix.dim(transposed ? 0 : 1);
  const int64_t blocks = (k + kBlock - 1) / kBlock, zero_bytes = (blocks + 1) / 2;
  Blocks b{Tensor(DType::kU8, {n, blocks, kBlock / 2}), Tensor(DType::kF32, {n * blocks}),
           Tensor(DType::kU8, {n * zero_bytes})};
  auto* nibbles = b.nibbles.as<uint8_t>();
  auto* zeros = b.zeros.as<uint8_t>();
  for (int64_t column = 0; column < n; ++column)
    for (int64_t block = 0; block < blocks; ++block) {
      std::vector<double> w;
      for (int64_t i = block * kBlock; i < std::min(k, (block + 1) * kBlock); ++i)
        w.push_back(matrix.real(transposed ? column * k + i : i * n + column));
      double scale = 1;
      int zero = 0;
      block_steps(w, scale, zero);
      const int64_t at = column * blocks + block;
      b.scales.set_real(at, scale);
      zeros[column * zero_bytes + block / 2] |= static_cast<uint8_t>(zero << (4 * (block % 2)));
      for (size_t i = 0; i < static_cast<size_t>(kBlock); ++i) {
        const double x = i < w.size() ? w[i] : 0;
        const auto q = static_cast<int>(std::clamp(std::nearbyint(x / scale) + zero, 0.0, 15.0));
        nibbles[at * (kBlock / 2) + static_cast<int64_t>(i / 2)] |= static_cast<uint8_t>(q << (4 * (i % 2)));
      }
    }
  return b;
}

class Rewriter {
 public:
  Rewriter(const FloatModel& m, int bits, const std::set<std::string>& kept)
      : m_(m), bits_(bits), kept_(kept), draft_(m.proto()) {}

  WeightsOnly make() {
    for (const auto& n : m_.graph().node()) {
      if (kept_.count(label_of(n)) || !rewrite(n)) add(n);
    }
    if (uses_blocks_) declare_domain();
    result_.proto = draft_.finish();
    return std::move(result_);
  }

 private:
  void add(const onnx::NodeProto& n) { draft_.add(n); }
  std::string constant(const Tensor& t, const std::string& name) {
    result_.bytes_after += t.bytes();
    return draft_.constant(t, name);
  }

  bool rewrite(const onnx::NodeProto& n) {
    if (!n.domain().empty() && n.domain() != "ai.onnx") return false;
    const bool gather = n.op_type() == "Gather", gemm = n.op_type() == "Gemm",
               matmul = n.op_type() == "MatMul";
    if (!gather && !gemm && !matmul && n.op_type() != "Conv") return false;
    const int input = gather ? 0 : 1;
    if (n.input_size() < 2 || !m_.is_constant(n.input(input))) return false;
    const Tensor w = m_.constant(n.input(input));
    if (w.dtype() != DType::kF32 || w.size() < kLeastElements || w.rank() < 2) return false;
    if (gather && (w.rank() != 2 || attribute(n, "axis", int64_t{0}) != 0)) return false;
    if (matmul && w.rank() != 2) return false;
    const bool transposed = gemm && attribute(n, "transB", int64_t{0});
    const bool plain = !gemm || (!attribute(n, "transA", int64_t{0}) && attribute(n, "alpha", 1.0F) == 1 &&
                                 attribute(n, "beta", 1.0F) == 1);
    if (bits_ == 4 && (matmul || (gemm && plain))) return blocks(n, w, transposed);
    return channels(n, input, w, matmul || (gemm && !transposed) ? 1 : 0);
  }

  // A weight that several nodes read is coded once.
  void count(const std::string& name, const Tensor& w) {
    ++result_.layers;
    if (replaced_.insert(name).second) result_.bytes_before += w.bytes();
  }

  bool channels(const onnx::NodeProto& n, int input, const Tensor& w, int axis) {
    const std::string& name = n.input(input);
    count(name, w);
    std::string& dequantised = dequantised_[name + "@" + std::to_string(axis)];
    if (dequantised.empty()) {
      const ByteWeights q = byte_weights(w, axis);
      onnx::NodeProto d;
      d.set_op_type("DequantizeLinear");
      d.set_name(draft_.fresh(name + "_dequantize"));
      d.add_input(constant(q.bytes, name + "_quantized"));
      d.add_input(constant(q.scales, name + "_scale"));
      dequantised = draft_.fresh(name + "_dequantized");
      d.add_output(dequantised);
      *d.add_attribute() = integer_attribute("axis", axis);
      add(d);
    }
    onnx::NodeProto changed = n;
    changed.set_input(input, dequantised);
    add(changed);
    return true;
  }

  bool blocks(const onnx::NodeProto& n, const Tensor& w, bool transposed) {
    const std::string& name = n.input(1);
    count(name, w);
    uses_blocks_ = true;
    std::vector<std::string>& coded = coded_[name + (transposed ? "@t" : "")];
    if (coded.empty()) {
      const Blocks b = blocks_of(w, transposed);
      coded = {constant(b.nibbles, name + "_nibbles"), constant(b.scales, name + "_scales"),
               constant(b.zeros, name + "_zero_points")};
    }
    const bool biased = n.op_type() == "Gemm" && n.input_size() > 2 && !n.input(2).empty();
    onnx::NodeProto p;
    p.set_op_type("MatMulNBits");
    p.set_domain("com.microsoft");
    p.set_name(n.name());
    p.add_input(n.input(0));
    for (const std::string& c : coded) p.add_input(c);
    p.add_output(biased ? draft_.fresh(n.output(0) + "_product") : n.output(0));
    *p.add_attribute() = integer_attribute("K", w.dim(transposed ? 1 : 0));
    *p.add_attribute() = integer_attribute("N", w.dim(transposed ? 0 : 1));
    *p.add_attribute() = integer_attribute("bits", 4);
    *p.add_attribute() = integer_attribute("block_size", kBlock);
    add(p);
    if (!biased) return true;
    onnx::NodeProto sum;
    sum.set_op_type("Add");
    sum.set_name(draft_.fresh(n.output(0) + "_bias"));
    sum.add_input(p.output(0));
    sum.add_input(n.input(2));
    sum.add_output(n.output(0));
    add(sum);
    return true;
  }

  void declare_domain() {
    for (const auto& o : draft_.proto().opset_import())
      if (o.domain() == "com.microsoft") return;
    auto& o = *draft_.proto().add_opset_import();
    o.set_domain("com.microsoft"), o.set_version(1);
  }

  const FloatModel& m_;
  const int bits_;
  const std::set<std::string>& kept_;
  ModelDraft draft_;
  WeightsOnly result_;
  std::set<std::string> replaced_;
  std::map<std::string, std::string> dequantised_;
  std::map<std::string, std::vector<std::string>> coded_;
  bool uses_blocks_ = false;
};

}  // namespace

WeightsOnly with_small_weights(const FloatModel& model, int bits, const std::set<std::string>& kept) {
  return Rewriter(model, bits, kept).make();
}

}  // namespace sinter::quantize
