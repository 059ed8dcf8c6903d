// Twin: the model beside itself quantised, in floats, with every choice an input of the run.
//
// Built once, it tells what any choice of layers, steps and corrections costs at the model's outputs. Behind
// each tensor that can be bytes stands what its bytes stand for, and a flag says which of the two is read on;
// behind each product its share that the rounding of weights makes, times a flag, and a correction for each
// output channel. With all flags 0 it is the model. What integers compute exactly, floats compute to their
// own rounding, which is far below a step.
//
//     x --> round to steps --+                 +--> product by (bytes - floats) --> * flag --+
//     +-----------------> Where(flag) --> x' --+--> product by floats ----------------------> + --> +
//     correction
#pragma once
#include <map>
#include <string>
#include <vector>

#include "quantize/layers.h"
#include "quantize/steps.h"

namespace sinter::quantize {

// What a twin is to compute with.
struct Setting {
  std::map<std::string, bool> bytes;              // tensors; absent: floats
  std::vector<Steps> steps;                       // by site
  std::map<int, bool> products;                   // by node; absent: weights in floats
  std::map<int, std::vector<float>> corrections;  // by node; absent: 0
};

class Twin {
 public:
  Twin(const FloatModel& model, const Layers& layers);

  const onnx::ModelProto& proto() const { return proto_; }
  const std::map<int, ByteWeights>& weights() const { return weights_; }  // by node
  // The inputs behind the model's own.
  std::vector<Tensor> inputs(const Setting& s) const;
  // The output that holds what rounding the weights adds to each channel of a product, on average.
  std::string mean_of(int node) const { return means_.at(node); }
  // The output that holds a site's tensor.
  std::string value_of(const std::string& tensor) const { return values_.at(tensor); }

 private:
  std::string fresh(const std::string& what);
  std::string constant(const Tensor& t);
  std::string add_node(const char* op, const std::vector<std::string>& inputs);
  std::vector<std::string> split_input(const std::string& name, const std::vector<int64_t>& sizes);
  void round_tensor(const std::string& tensor, const std::string& flag, const std::string& scale,
                    const std::string& zero);
  void add_product(const FloatModel& model, const Layer& l, const std::string& flag,
                   const std::string& correction);
  std::string mean_of_channels(const std::string& x, const Layer& l, int64_t rank);
  void add_output(const std::string& name, int64_t rank);

  onnx::ModelProto proto_;
  int64_t opset_ = 13;
  int count_ = 0;
  std::string prefix_ = "quantize/";
  Layers layers_;
  std::vector<std::string> tensors_;  // that can be bytes, in the order of their flags
  std::vector<int> products_;         // nodes, in the order of their flags
  std::map<int, int64_t> channels_;   // of products
  std::map<int, ByteWeights> weights_;
  std::map<std::string, std::string> read_as_, values_;  // tensor -> what layers read; -> output
  std::map<int, std::string> means_;
};

}  // namespace sinter::quantize
