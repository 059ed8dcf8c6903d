#include "import/weights.h"

#include "import/onnx.h"
#include "import/tensor_proto.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

// Tensors may share bytes of an external file, but not build gigabytes of it.
constexpr double kMostReadings = 4;
constexpr size_t kLarge = 4096;       // bytes; smaller ones may be looked at again, as axes and the like
constexpr double kMostOfSparse = 64;  // bytes made dense for one of the values and of the other tensors

// By what the message says; it may be wrong.
double bytes_of(const google::protobuf::RepeatedField<int64_t>& dims, int32_t type) {
  double bytes = static_cast<double>(size_of(dtype_of_onnx(type)));
  for (int64_t d : dims) bytes *= static_cast<double>(d);
  return bytes;
}

}  // namespace

void Weights::check_external(const onnx::TensorProto& message) {
  if (message.data_location() != onnx::TensorProto::EXTERNAL) return;
  for (const auto& e : message.external_data())
    if (e.key() == "location" && fs::path(e.value()).is_relative() &&
        external_files_.insert(e.value()).second) {
      std::error_code error;
      const auto size = fs::file_size(folder_ / e.value(), error);
      if (!error) external_there_ += static_cast<double>(size);
    }
  external_wanted_ += bytes_of(message.dims(), message.data_type());
  if (external_wanted_ > kMostReadings * external_there_ + Budget::kFoldedBytes)
    refuse("the model reads its external data more than {} times over", kMostReadings);
}

Tensor Weights::dense(const onnx::TensorProto& message) {
  const auto found = read_.find(&message);
  if (found != read_.end()) return found->second;
  check_external(message);
  Tensor t = parse_tensor(message, folder_);
  budget_.add_tensor(static_cast<double>(t.bytes()));
  read_.emplace(&message, t);
  if (emptied_ && message.raw_data().size() > kLarge) {  // whoever says so owns the message
    auto& ours = const_cast<onnx::TensorProto&>(message);
    std::string().swap(*ours.mutable_raw_data());
  }
  return t;
}

Tensor Weights::sparse(const onnx::SparseTensorProto& message) {
  const auto found = read_.find(&message);
  if (found != read_.end()) return found->second;
  made_dense_ += bytes_of(message.dims(), message.values().data_type());
  budget_.add_tensor(static_cast<double>(message.values().ByteSizeLong()));
  if (made_dense_ > Budget::kImportedBytes + kMostOfSparse * budget_.tensor_bytes())
    refuse("the model's sparse tensors, made dense, take {:.3g} bytes", made_dense_);
  Tensor t = parse_sparse_tensor(message, folder_);
  read_.emplace(&message, t);
  return t;
}

}  // namespace sinter
