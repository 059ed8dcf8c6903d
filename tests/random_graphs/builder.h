// Builder: a random model under construction, value by value.
//
// A production (productions.h) adds a few nodes that should be valid; commit() lets sinter itself import the
// model and evaluates it. What the import refuses, what is not finite or too large, and what magnifies
// rounding errors so much that no comparison would tell anything is taken back. So a finished model is valid,
// small and well conditioned, and the builder knows how far two right results may differ.
#pragma once
#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "import/onnx.h"
#include "ir/tensor.h"

namespace sinter::random_graphs {

// A value of the model that nodes may use. Extents that are not static are -1; `dims` has their expressions.
struct Item {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> shape;
  std::vector<std::string> dims;
  int uses = 0;
  size_t rank() const { return shape.size(); }
  bool is_static() const;
  int64_t size() const;  // -1 where it isn't static
};

using AttributeValue = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                                    std::vector<std::string>>;
using AttributeList = std::vector<std::pair<std::string, AttributeValue>>;

struct DimRange {
  std::string name;
  int64_t lo, hi;
};

class Builder {
 public:
  explicit Builder(uint64_t seed);

  // Random choices.
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }
  int64_t between(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(below(static_cast<size_t>(hi - lo + 1)));
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  double uniform(double lo, double hi) {
    return lo + (hi - lo) * static_cast<double>(random_()) / 4294967296.0;
  }
  template <class T>
  T one_of(std::initializer_list<T> from) {
    return *(from.begin() + below(from.size()));
  }
  // A value for which `fits` holds, newer ones more often; null where there is none.
  const Item* any(const std::function<bool(const Item&)>& fits);
  const Item* any_float();

  // Parts of the model. What they return is a name.
  void input(DType dtype, const std::vector<std::string>& dims);  // an extent is a number or a symbol's name
  void dim(const std::string& name, int64_t lo, int64_t hi) { ranges_.push_back({name, lo, hi}); }
  std::string weight(DType dtype, const std::vector<int64_t>& shape, double lo = -1, double hi = 1);
  std::string integers(const std::vector<int64_t>& values);
  std::string floats(const std::vector<float>& values);
  std::string scalar(DType dtype, double value);
  // A node; its first output (with outputs > 1 the others are NAME_1, NAME_2 ...).
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const AttributeList& attributes = {}, int outputs = 1, const std::string& domain = "");

  // The same for an operator with bodies.
  std::string control(const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<std::pair<std::string, onnx::GraphProto>>& bodies,
                      const AttributeList& attributes, int outputs);

  // Keeps or takes back what was added since the last call; whether it is kept. Why not: rejected().
  bool commit();
  const std::map<std::string, int>& rejected() const { return rejected_; }

  // The model with its outputs: what nobody uses and some of the values in the middle.
  onnx::ModelProto finish();
  size_t size() const { return static_cast<size_t>(model_.graph().node_size()); }
  ImportOptions import_options() const;
  // Inputs for every free dim at its least, its greatest, and between.
  std::vector<std::vector<Tensor>> data_sets() const;
  // By how much two right results of a value may differ, absolutely.
  const std::map<std::string, double>& deviations() const { return deviations_; }

 private:
  std::string name() { return "v" + std::to_string(next_++); }
  std::string why_not(const onnx::ModelProto& trial, std::vector<Item>& made);
  std::string judge(const Graph& graph, std::map<std::string, double>& deviations) const;
  void roll_back();

  std::mt19937 random_;
  uint64_t seed_;
  onnx::ModelProto model_;
  std::vector<Item> items_;
  std::vector<DimRange> ranges_;
  std::map<std::string, double> deviations_;
  std::map<std::string, int> rejected_;
  int next_ = 0, kept_nodes_ = 0, kept_weights_ = 0;
};

}  // namespace sinter::random_graphs
