// Runs the net on one image and on two equal ones: all three rows must be the same. Prints the first.
#include <cstdio>
#include <cstring>

#include "net.h"

alignas(64) static unsigned char arena[NET_ARENA_BYTES + 1];

int main() {
  static float image[2 * 64], one[10], two[20];
  for (int i = 0; i < 128; ++i) image[i] = static_cast<float>(i % 64 % 9) / 9.0f;
  net_inputs in = {image, {1, 1, 8, 8}};
  net_outputs out = {one, {}};
  if (net_run(&in, &out, arena) != NET_OK || out.logits_dims[0] != 1) return 1;
  in.image_dims[0] = 2;
  out.logits = two;
  if (net_run(&in, &out, arena) != NET_OK || out.logits_dims[0] != 2) return 2;
  if (std::memcmp(one, two, sizeof one) != 0 || std::memcmp(one, two + 10, sizeof one) != 0) return 3;
  in.image_dims[0] = 3;  // more than it was compiled for
  if (net_run(&in, &out, arena) != NET_E_DIM) return 4;
  for (const float v : one) std::printf("%.3f ", static_cast<double>(v));
  std::printf("\n");
  return 0;
}
