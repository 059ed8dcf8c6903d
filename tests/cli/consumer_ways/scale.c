#include "scale_custom.h"

int scale(const sinter_tensor* inputs, const sinter_tensor* outputs) {
  const float* x = (const float*)inputs[0].data;
  float* y = (float*)outputs[0].data;
  for (int64_t i = 0; i < inputs[0].dims[0]; ++i) y[i] = 10 * x[i];
  return 0;
}
