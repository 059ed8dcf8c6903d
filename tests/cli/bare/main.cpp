// The digits net without an operating system: reads ten digits and prints what it takes them for, one after
// another, on the board's serial line. memcpy and memset are all that a bundle wants of a C library.
#include <stddef.h>
#include <stdint.h>

#include "digits.h"
#include "images.h"  // static const float images[10][64]

extern "C" void* memcpy(void* to, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i];
  return to;
}
extern "C" void* memset(void* to, int byte, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(byte);
  return to;
}

namespace {

alignas(64) unsigned char arena[DIGITS_ARENA_BYTES];
float logits[DIGITS_LOGITS_MAX_BYTES / sizeof(float)];

void print(char c) {
  *reinterpret_cast<volatile uint32_t*>(0x09000000) = static_cast<unsigned char>(c);
}  // PL011

}  // namespace

int main() {
  for (const auto& image : images) {
    const digits_inputs in = {image};
    digits_outputs out = {logits};
    if (const int code = digits_run(&in, &out, arena); code != DIGITS_OK) return code;
    int best = 0;
    for (int k = 1; k < 10; ++k)
      if (logits[k] > logits[best]) best = k;
    print(static_cast<char>('0' + best));
  }
  print('\n');
  return 0;
}
