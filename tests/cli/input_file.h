// Tensors as files for the program under test.
#pragma once
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "driver/inputs.h"
#include "import/onnx.h"
#include "ir/tensor.h"
#include "sinter/tensor_file.h"

namespace sinter {

// Of the kind that the name's ending says: .npy or .pb.
inline void write_input(const std::string& file, const Tensor& t) {
  const std::string problem = write_tensor(file, "x", *element_type(onnx_of(t.dtype())), t.shape(),
                                           reinterpret_cast<const unsigned char*>(t.data()));
  ASSERT_EQ(problem, "");
}

// Random initializers of float32, for which a model in text form has inputs.
inline void add_weights(onnx::ModelProto& m, const std::map<std::string, std::vector<int64_t>>& shapes,
                        std::mt19937& random) {
  auto& inputs = *m.mutable_graph()->mutable_input();
  for (const auto& [name, shape] : shapes) {
    const Tensor t = random_tensor(DType::kF32, shape, random);
    auto& w = *m.mutable_graph()->add_initializer();
    w.set_name(name);
    w.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t d : shape) w.add_dims(d);
    for (int64_t i = 0; i < t.size(); ++i) w.add_float_data(static_cast<float>(t.real(i)));
    for (int i = inputs.size(); i-- > 0;)
      if (inputs[i].name() == name) inputs.DeleteSubrange(i, 1);
  }
}

}  // namespace sinter
