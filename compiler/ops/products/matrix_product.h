// Products of float matrices whose bits are the same on every machine.
//
// What is folded goes into the bundle, so that a product's sums must not depend on the processor that sinter
// runs on, as those of a BLAS do. Each element is summed in double, k upwards, and rounded once. Products of
// float32 are exact in double, and those of double are rounded before they are added (the build keeps
// multiplications and additions apart), so the width of the vectors doesn't matter.
#pragma once
#include <cstdint>

namespace sinter {

// Element (i, j) lies at data[i * row + j * column].
template <class T>
struct MatrixView {
  T* data;
  int64_t row, column;
};

// c[m,n] = a[m,k] * b[k,n]; T: float or double. c must not overlap a or b.
template <class T>
void matrix_product(int64_t m, int64_t n, int64_t k, MatrixView<const T> a, MatrixView<const T> b,
                    MatrixView<T> c);

}  // namespace sinter
