#include "quantize/written.h"

#include <map>
#include <vector>

#include "quantize/layers.h"

namespace sinter::quantize {
namespace {

class Reader {
 public:
  explicit Reader(const onnx::GraphProto& g) : g_(g) {
    for (const auto& n : g.node()) {
      for (const std::string& i : n.input()) readers_[i].push_back(&n);
      for (const std::string& o : n.output())
        if (n.op_type() == "DequantizeLinear") bytes_.insert(o);
    }
  }

  std::set<std::string> labels() const {
    std::set<std::string> found;
    for (const auto& n : g_.node())
      if (works_on_bytes(n)) found.insert(label_of(n));
    return found;
  }

 private:
  bool works_on_bytes(const onnx::NodeProto& n) const {
    if (n.op_type() == "QuantizeLinear" || n.op_type() == "DequantizeLinear" || n.input_size() == 0)
      return false;
    if (is_product(n)) return bytes_.count(n.input(0)) && bytes_.count(n.input(1));
    bool reads = false;
    for (const std::string& i : n.input()) reads |= bytes_.count(i) != 0;
    if (!reads) return false;
    for (const std::string& o : n.output())
      if (is_rounded(o)) return true;
    return false;
  }

  bool is_rounded(const std::string& tensor) const {
    const auto at = readers_.find(tensor);
    if (at == readers_.end()) return false;
    for (const onnx::NodeProto* n : at->second)
      if (n->op_type() == "QuantizeLinear") return true;
    return at->second.size() == 1 && is_activation(*at->second[0]) && at->second[0]->input(0) == tensor &&
           is_rounded(at->second[0]->output(0));
  }

  const onnx::GraphProto& g_;
  std::map<std::string, std::vector<const onnx::NodeProto*>> readers_;
  std::set<std::string> bytes_;  // tensors that stand for bytes
};

}  // namespace

std::set<std::string> layers_of_bytes(const onnx::GraphProto& written) { return Reader(written).labels(); }

}  // namespace sinter::quantize
