#include "quantize/layers.h"

#include <algorithm>
#include <map>

namespace sinter::quantize {
namespace {

bool is_one_of(const onnx::NodeProto& n, const std::set<std::string>& ops) {
  return (n.domain().empty() || n.domain() == "ai.onnx") && ops.count(n.op_type()) != 0;
}

bool is_float_matrix(const FloatModel& m, const onnx::NodeProto& n, int input, int64_t least_rank) {
  if (n.input_size() <= input || !m.is_constant(n.input(input))) return false;
  const onnx::TensorProto& t = m.initializer(n.input(input));
  return t.data_type() == onnx::TensorProto::FLOAT && t.dims_size() >= least_rank &&
         std::all_of(t.dims().begin(), t.dims().end(), [](int64_t d) { return d > 0; });
}

// The product that a node is, if it is one.
bool as_product(const FloatModel& m, int index, Layer& layer) {
  const onnx::NodeProto& n = m.node(index);
  if (!is_product(n) || n.input_size() < 2) return false;
  const bool matmul = n.op_type() == "MatMul", gemm = n.op_type() == "Gemm";
  if (!is_float_matrix(m, n, 1, matmul || gemm ? 2 : 3) || m.is_constant(n.input(0))) return false;
  if (matmul && m.initializer(n.input(1)).dims_size() != 2) return false;
  if (gemm && (attribute(n, "transA", int64_t{0}) || attribute(n, "alpha", 1.0F) != 1 ||
               attribute(n, "beta", 1.0F) != 1))
    return false;
  if (n.input_size() > 2 && !n.input(2).empty() && !is_float_matrix(m, n, 2, gemm ? 0 : 1)) return false;
  layer = {index, Layer::Kind::kProduct, {0}, 1, 0};
  if (matmul || (gemm && !attribute(n, "transB", int64_t{0}))) layer.axis = 1;
  // Of a transposed convolution in groups, an output channel is a column of several groups: one scale for
  // all.
  if (n.op_type() == "ConvTranspose") layer.axis = attribute(n, "group", int64_t{1}) == 1 ? 1 : -1;
  return true;
}

// Input 0, or all inputs, of what only moves or compares elements.
std::vector<int> moved_inputs(const FloatModel& m, const onnx::NodeProto& n) {
  static const std::set<std::string> one = {"MaxPool",   "Reshape",      "Transpose", "Flatten", "Squeeze",
                                            "Unsqueeze", "DepthToSpace", "Slice",     "Split"};
  if (is_one_of(n, one)) return {0};
  if (is_one_of(n, {"Resize"}) && attribute(n, "mode", std::string("nearest")) == "nearest") return {0};
  std::vector<int> all;
  if (is_one_of(n, {"Concat"}))
    for (int k = 0; k < n.input_size(); ++k) all.push_back(k);
  if (std::any_of(all.begin(), all.end(), [&](int k) { return m.is_constant(n.input(k)); })) return {};
  return all;
}

class Choice {
 public:
  Choice(const FloatModel& m, const std::set<std::string>& kept) : m_(m), kept_(kept) {}

  Layers make() {
    for (int i = 0; i < m_.graph().node_size(); ++i)
      if (Layer l; !kept_.count(label_of(m_.node(i))) && as_product(m_, i, l)) add(l);
    // Backwards: what makes bytes for a later layer may itself work on bytes.
    for (int i = m_.graph().node_size(); i-- > 0;)
      if (!layers_.count(i) && !kept_.count(label_of(m_.node(i)))) consider(i);
    Layers result;
    for (const auto& [node, layer] : layers_) result.layers.push_back(layer);
    result.sites = sites();
    return result;
  }

 private:
  void add(const Layer& l) {
    layers_[l.node] = l;
    for (const int k : l.bytes) bytes_.insert(m_.node(l.node).input(k));
  }

  // A node's result, behind an activation of its own, becomes bytes.
  bool makes_bytes(const onnx::NodeProto& n) const {
    for (const std::string& o : n.output()) {
      if (bytes_.count(o)) return true;
      if (!m_.has_one_consumer(o)) continue;
      const onnx::NodeProto& next = m_.node(m_.consumers(o)[0]);
      if (is_activation(next) && next.input(0) == o && bytes_.count(next.output(0))) return true;
    }
    return false;
  }

  // A product's sums, which nothing else reads: they need no bytes of their own.
  bool is_fused(const std::string& x) const {
    const auto made = layers_.find(m_.producer(x));
    return made != layers_.end() && made->second.kind == Layer::Kind::kProduct && m_.has_one_consumer(x);
  }

  void consider(int i) {
    const onnx::NodeProto& n = m_.node(i);
    if (const std::vector<int> moved = moved_inputs(m_, n); !moved.empty()) {
      if (std::any_of(n.output().begin(), n.output().end(), [&](const auto& o) { return bytes_.count(o); }))
        add({i, Layer::Kind::kMove, moved, -1, 0});
      return;
    }
    if (!makes_bytes(n)) return;
    if (is_one_of(n, {"GlobalAveragePool", "AveragePool"})) add({i, Layer::Kind::kSum, {0}, -1, 0});
    if (!is_one_of(n, {"Add"}) || m_.is_constant(n.input(0)) || m_.is_constant(n.input(1))) return;
    Layer sum{i, Layer::Kind::kSum, {}, -1, 0};
    bool fused = false;
    for (int k = 0; k < 2; ++k) {
      if (!fused && is_fused(n.input(k)))
        fused = true;
      else
        sum.bytes.push_back(k);
    }
    add(sum);
  }

  // Tensors of bytes, those of one move in one site.
  std::vector<Site> sites() const {
    std::map<std::string, std::string> parent;
    for (const std::string& t : bytes_) parent[t] = t;
    const auto root = [&](std::string t) {
      while (parent[t] != t) t = parent[t];
      return t;
    };
    for (const auto& [node, l] : layers_) {
      if (l.kind != Layer::Kind::kMove) continue;
      const onnx::NodeProto& n = m_.node(node);
      const std::string first = root(n.input(l.bytes[0]));
      for (const int k : l.bytes) parent[root(n.input(k))] = first;
      for (const std::string& o : n.output())
        if (bytes_.count(o)) parent[root(o)] = first;
    }
    std::map<std::string, Site> by_root;
    for (const std::string& t : bytes_) by_root[root(t)].tensors.push_back(t);
    std::vector<Site> result;
    result.reserve(by_root.size());
    for (auto& [name, site] : by_root) result.push_back(std::move(site));
    return result;
  }

  const FloatModel& m_;
  const std::set<std::string>& kept_;
  std::map<int, Layer> layers_;
  std::set<std::string> bytes_;
};

}  // namespace

bool is_product(const onnx::NodeProto& n) {
  return is_one_of(n, {"Conv", "ConvTranspose", "Gemm", "MatMul"});
}
bool is_activation(const onnx::NodeProto& n) { return is_one_of(n, {"Relu", "Clip", "LeakyRelu", "PRelu"}); }

int Layers::site_of(const std::string& tensor) const {
  for (size_t s = 0; s < sites.size(); ++s)
    if (std::count(sites[s].tensors.begin(), sites[s].tensors.end(), tensor)) return static_cast<int>(s);
  return -1;
}

Layers choose_layers(const FloatModel& model, const std::set<std::string>& kept) {
  return Choice(model, kept).make();
}

}  // namespace sinter::quantize
