// TensorProto and SparseTensorProto to Tensor.
//
// Contents may lie in raw_data (little endian), in a typed field, or in a file beside the model. In all cases
// the number of bytes is compared with what dtype and dims want before anything is allocated, so that a
// small file can't ask for much memory.
#pragma once
#include <onnx/onnx_pb.h>

#include <filesystem>

#include "ir/tensor.h"

namespace sinter {

// `folder` holds the model's external data; empty: external data are refused. Refusals don't name the tensor.
Tensor parse_tensor(const onnx::TensorProto& proto, const std::filesystem::path& folder = {});
Tensor parse_sparse_tensor(const onnx::SparseTensorProto& proto, const std::filesystem::path& folder = {});
onnx::TensorProto tensor_proto(const Tensor& tensor, const std::string& name);

}  // namespace sinter
