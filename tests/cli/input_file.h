// Tensors as files for the program under test.
#pragma once
#include <gtest/gtest.h>

#include <string>

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

}  // namespace sinter
