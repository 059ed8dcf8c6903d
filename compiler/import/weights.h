// Weights: the tensors of one model's file, each read once however many nodes, inlined calls and imports want
// it.
//
// Where the message is ours, its bytes go as soon as a tensor has them, so that a model is in memory once.
// What a file makes of few bytes is limited: sparse tensors made dense, external data that overlap.
#pragma once
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>

#include "ir/budget.h"
#include "ir/tensor.h"

namespace sinter {

class Weights {
 public:
  // `emptied`: the messages that are read lose their contents.
  Weights(std::filesystem::path folder, bool emptied, Budget& budget)
      : folder_(std::move(folder)), emptied_(emptied), budget_(budget) {}

  Tensor dense(const onnx::TensorProto& message);
  Tensor sparse(const onnx::SparseTensorProto& message);

 private:
  void check_external(const onnx::TensorProto& message);

  std::filesystem::path folder_;
  bool emptied_;
  Budget& budget_;
  std::unordered_map<const void*, Tensor> read_;
  double made_dense_ = 0;                            // bytes
  double external_wanted_ = 0, external_there_ = 0;  // bytes
  std::set<std::string> external_files_;
};

}  // namespace sinter
