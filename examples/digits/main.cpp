// Reads a sheet of handwritten digits, lets the compiled net read them, and compares what it read with the
// truth and with ONNX Runtime.
//
//     digits_demo heldout.png onnxruntime_predictions.txt labels.txt
//
// The net was compiled with N <= 32, so one call takes 1 to 32 digits: the demo hands over 32 at a time, and
// what is left in the last call. Exit code: 0 if every prediction equals ONNX Runtime's, 1 if one differs or
// a call fails, 2 if the files can't be read.
#include "digits.h"

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr std::ptrdiff_t kSide = 8, kPixels = kSide * kSide, kClasses = 10, kBatch = 32;

// All the memory that the net uses: no call allocates, and the arena's content needn't survive between calls.
alignas(64) unsigned char arena[DIGITS_ARENA_BYTES];
float probabilities[DIGITS_LOGITS_MAX_BYTES / sizeof(float)];  // softmax of the model's logits

struct Reading {
  int digit;
  float probability;  // 0..1
};

// The 8x8 cells of a gray sheet, row by row, as the net wants them: [count,1,8,8], 0..240 becomes 0..1.
std::vector<float> readSheet(const char* path) {
  int width = 0, height = 0, channels = 0;
  unsigned char* sheet = stbi_load(path, &width, &height, &channels, 1);
  if (!sheet) return {};
  const std::ptrdiff_t columns = width / kSide, rows = height / kSide;
  std::vector<float> images;
  for (std::ptrdiff_t cell = 0; cell < rows * columns; ++cell)
    for (std::ptrdiff_t i = 0; i < kPixels; ++i) {
      const std::ptrdiff_t y = cell / columns * kSide + i / kSide, x = cell % columns * kSide + i % kSide;
      images.push_back(static_cast<float>(sheet[y * width + x]) / 240.0f);
    }
  stbi_image_free(sheet);
  return images;
}

std::vector<int> readNumbers(const char* path) {
  std::ifstream file(path);
  std::vector<int> numbers;
  for (int number; file >> number;) numbers.push_back(number);
  return numbers;
}

Reading bestOf(const float* scores) {
  const float* best = std::max_element(scores, scores + kClasses);
  return {static_cast<int>(best - scores), *best};
}

// Calls the net on digits first .. first + count - 1 (count <= kBatch); returns its error code.
int readDigits(const std::vector<float>& images, std::ptrdiff_t first, std::ptrdiff_t count,
               std::vector<Reading>& readings) {
  const digits_inputs inputs = {images.data() + first * kPixels, {count, 1, kSide, kSide}};
  digits_outputs outputs = {probabilities, {}};
  const int code = digits_run(&inputs, &outputs, arena);
  if (code != 0) return code;
  for (std::ptrdiff_t k = 0; k < outputs.logits_dims[0]; ++k)
    readings.push_back(bestOf(probabilities + k * kClasses));
  return 0;
}

// Prints the chosen digits side by side as the net saw them, under each what it read.
void show(const char* title, const std::vector<std::ptrdiff_t>& chosen, const std::vector<float>& images,
          const std::vector<Reading>& readings, const std::vector<int>& labels) {
  if (chosen.empty()) return;
  std::printf("%s\n", title);
  for (std::ptrdiff_t y = 0; y < kSide; ++y) {
    for (std::ptrdiff_t k : chosen) {
      std::printf("  ");
      for (std::ptrdiff_t x = 0; x < kSide; ++x) {
        const float ink = images[static_cast<std::size_t>(k * kPixels + y * kSide + x)];
        const char shade = " .:-=+*#%@"[std::clamp(static_cast<int>(ink * 9.99f), 0, 9)];
        std::printf("%c%c", shade, shade);
      }
    }
    std::printf("\n");
  }
  for (std::ptrdiff_t k : chosen) {
    const std::size_t i = static_cast<std::size_t>(k);
    std::printf("  %d at %3.0f%%, is %d ", readings[i].digit,
                100.0 * static_cast<double>(readings[i].probability), labels[i]);
  }
  std::printf("\n\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s sheet.png onnxruntime_predictions.txt labels.txt\n", argv[0]);
    return 2;
  }
  const std::vector<float> images = readSheet(argv[1]);
  const std::vector<int> expected = readNumbers(argv[2]), labels = readNumbers(argv[3]);
  const std::ptrdiff_t count = std::ptrdiff_t(images.size()) / kPixels;
  if (count == 0 || std::ptrdiff_t(expected.size()) != count || std::ptrdiff_t(labels.size()) != count) {
    std::fprintf(stderr, "%s: %td digits, but %zu predictions and %zu labels\n", argv[1], count,
                 expected.size(), labels.size());
    return 2;
  }

  std::vector<Reading> readings;
  const auto start = std::chrono::steady_clock::now();
  for (std::ptrdiff_t first = 0; first < count; first += kBatch) {
    const int code = readDigits(images, first, std::min(kBatch, count - first), readings);
    if (code != 0) {
      std::fprintf(stderr, "digits_run: %s\n", digits_error(code));
      return 1;
    }
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;

  std::ptrdiff_t right = 0, same = 0;
  std::vector<std::ptrdiff_t> firstFew, misread;
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    const std::size_t i = static_cast<std::size_t>(k);
    right += readings[i].digit == labels[i];
    same += readings[i].digit == expected[i];
    if (k < 5) firstFew.push_back(k);
    if (readings[i].digit != labels[i] && misread.size() < 5) misread.push_back(k);
    if (readings[i].digit != expected[i])
      std::printf("digit %td: read as %d, by ONNX Runtime as %d\n", k, readings[i].digit, expected[i]);
  }
  show("the first digits:", firstFew, images, readings, labels);
  show("misread:", misread, images, readings, labels);
  std::printf("right:                  %td of %td (%.1f%%)\n", right, count,
              100.0 * static_cast<double>(right) / static_cast<double>(count));
  std::printf("same as ONNX Runtime's: %td of %td\n", same, count);
  std::printf("time:                   %.2f us a digit, up to %td at a time\n",
              time.count() / static_cast<double>(count), kBatch);
  return same == count ? 0 : 1;
}
