// custom: what a custom operator's C function is given. C and C++.
//
//   int NAME(const sinter_tensor* inputs, const sinter_tensor* outputs, const NAME_attributes* attributes);
//
// The last parameter is there if the operator has attributes; NAME_custom.h declares them. The function reads
// the inputs, writes all elements of the outputs, keeps no pointer and touches nothing else; several threads
// may call it at once. What it returns other than 0 ends the run with NET_E_CUSTOM.
#ifndef SINTER_CUSTOM_H_
#define SINTER_CUSTOM_H_

#include <stdint.h>

typedef struct sinter_tensor {
  void* data;          /* dense, row-major; an input's is not to be written. NULL: an absent input */
  const int64_t* dims; /* rank extents */
  int32_t rank;
  int32_t dtype; /* as TensorProto.DataType of ONNX: 1 float, 7 int64, 10 float16 (as its bits) ... */
} sinter_tensor;

#endif /* SINTER_CUSTOM_H_ */
