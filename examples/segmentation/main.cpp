// Finds what is bright in a photograph with the compiled net, compares the result with ONNX Runtime's, and
// writes the photograph beside its mask.
//
//     segmentation_demo coins.png coins_onnxruntime.npy coins_overlay.png
//
// Exit code: 0 if the net's output equals ONNX Runtime's within kTolerance, 1 if it doesn't or the call
// fails, 2 if a file can't be read or written.
#include "segmentation.h"

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr int kSide = 128;
constexpr std::size_t kPixels = kSide * kSide;

// Both nets sum in float32, each in its own order: their probabilities (0..1) may differ by rounding, not by
// more.
constexpr float kTolerance = 1e-3f;

// All the memory that the net uses: no call allocates, and the arena's content needn't survive between calls.
alignas(64) unsigned char arena[SEGMENTATION_ARENA_BYTES];
float mask[kPixels];  // [1,1,128,128]: the probability that the pixel belongs to something bright

// The photograph's bytes, r g b r g b ..., or nothing if it isn't a picture of 128 x 128.
std::vector<unsigned char> readPicture(const char* path) {
  int width = 0, height = 0, channels = 0;
  unsigned char* bytes = stbi_load(path, &width, &height, &channels, 3);
  std::vector<unsigned char> picture;
  if (bytes && width == kSide && height == kSide) picture.assign(bytes, bytes + 3 * kPixels);
  stbi_image_free(bytes);
  return picture;
}

// The float32 values of a NumPy file of version 1: the magic word, its version, the length of a text header
// in two bytes, the header, and then the values as they lie in memory (little-endian).
std::vector<float> readNpy(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.compare(0, 7, "\x93NUMPY\x01") != 0 || bytes.size() < 10) return {};
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  const std::size_t start = 10u + byte(8) + 256u * byte(9);
  if (bytes.size() != start + kPixels * sizeof(float)) return {};
  if (bytes.substr(10, start - 10).find("'<f4'") == std::string::npos) return {};
  std::vector<float> values(kPixels);
  std::memcpy(values.data(), bytes.data() + start, kPixels * sizeof(float));
  return values;
}

// 32 rows of 64 characters, each the mean probability of the 2 x 4 pixels below it.
void printMask() {
  for (std::size_t y = 0; y < kSide; y += 4) {
    for (std::size_t x = 0; x < kSide; x += 2) {
      float sum = 0;
      for (std::size_t k = 0; k < 8; ++k) sum += mask[(y + k / 2) * kSide + x + k % 2];
      std::putchar(" .:-=+*#%@"[std::clamp(static_cast<int>(sum / 8 * 9.99f), 0, 9)]);
    }
    std::putchar('\n');
  }
}

// The photograph, and to its right the same with what is not bright turned dark blue.
bool writeOverlay(const char* path, const std::vector<unsigned char>& picture) {
  std::vector<unsigned char> overlay(2 * 3 * kPixels);
  for (std::size_t i = 0; i < kPixels; ++i)
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned char value = picture[3 * i + c];
      const std::size_t left = (i / kSide * 2 * kSide + i % kSide) * 3 + c;
      overlay[left] = value;
      overlay[left + 3 * kSide] =
          mask[i] >= 0.5f ? value : static_cast<unsigned char>(value / 4 + (c == 2 ? 60 : 0));
    }
  return stbi_write_png(path, 2 * kSide, kSide, 3, overlay.data(), 2 * 3 * kSide) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s picture.png reference.npy overlay.png\n", argv[0]);
    return 2;
  }
  const std::vector<unsigned char> picture = readPicture(argv[1]);
  const std::vector<float> reference = readNpy(argv[2]);
  if (picture.empty() || reference.empty()) {
    std::fprintf(stderr, "%s isn't %s\n", picture.empty() ? argv[1] : argv[2],
                 picture.empty() ? "a picture of 128 x 128" : "a float32 array of [1,1,128,128]");
    return 2;
  }

  const segmentation_inputs inputs = {picture.data()};  // as it is: the first layer reads its bytes
  segmentation_outputs outputs = {mask};
  double bestMicroseconds = HUGE_VAL;
  for (int run = 0; run < 20; ++run) {  // the first call also loads the weights into the caches
    const auto start = std::chrono::steady_clock::now();
    const int code = segmentation_run(&inputs, &outputs, arena);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (code != 0) {
      std::fprintf(stderr, "segmentation_run: %s\n", segmentation_error(code));
      return 1;
    }
    bestMicroseconds = std::min(bestMicroseconds, time.count());
  }

  float largest = 0;
  std::size_t bright = 0, same = 0, close = 0;
  for (std::size_t i = 0; i < kPixels; ++i) {
    const float difference = std::fabs(mask[i] - reference[i]);
    largest = std::max(largest, difference);
    close += difference <= kTolerance;  // false for NaN
    bright += mask[i] >= 0.5f;
    same += (mask[i] >= 0.5f) == (reference[i] >= 0.5f);
  }
  printMask();
  std::printf("bright:                      %zu of %zu pixels\n", bright, kPixels);
  std::printf("mask as ONNX Runtime's:      %zu of %zu pixels\n", same, kPixels);
  std::printf("largest difference from it:  %.1e of probability\n", static_cast<double>(largest));
  std::printf("time:                        %.1f us, the best of 20 calls\n", bestMicroseconds);
  if (!writeOverlay(argv[3], picture)) {
    std::fprintf(stderr, "%s can't be written\n", argv[3]);
    return 2;
  }
  if (close == kPixels) return 0;
  std::printf("%zu pixels differ by more than %.0e\n", kPixels - close, static_cast<double>(kTolerance));
  return 1;
}
