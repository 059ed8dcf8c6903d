// Finds signs in a picture with one net and reads the digits on them with another. Both are one bundle: they
// share an arena, as large as that of the larger one, and their weights lie in one object.
//
//     signs_demo street.png [street_onnxruntime.txt]
//
// With a second argument, what was found and read is compared with ONNX Runtime's. Exit code: 0 if there was
// nothing to compare or all is the same, 1 if something differs or a call fails, 2 if a file can't be read.
#include "signs.h"

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>

namespace {

constexpr std::ptrdiff_t kSide = 128, kCell = 8, kCrop = 2 * kCell, kDigits = 10;
static_assert(SIGNS_FIND_IMAGE_MAX_BYTES == 3 * kSide * kSide, "the first net takes other frames");

// All the memory that the nets use. Detections are at most as many as the second net takes digits.
alignas(64) unsigned char arena[SIGNS_ARENA_BYTES];
float boxes[SIGNS_FIND_BOXES_MAX_BYTES / sizeof(float)];  // [D,4]: left, top, right, bottom in pixels
float scores[SIGNS_FIND_SCORES_MAX_BYTES / sizeof(float)];
int64_t classes[SIGNS_FIND_CLASSES_MAX_BYTES / sizeof(int64_t)];
float masks[SIGNS_FIND_MASKS_MAX_BYTES / sizeof(float)];
float crops[SIGNS_READ_IMAGE_MAX_BYTES / sizeof(float)];     // [D,1,8,8]
float chances[SIGNS_READ_LOGITS_MAX_BYTES / sizeof(float)];  // [D,10]

// Where the crop of a box begins, along one axis.
std::ptrdiff_t cornerOf(float low, float high) {
  const auto middle = static_cast<std::ptrdiff_t>(std::floor((low + high) / 2 + 0.5f));
  return std::clamp<std::ptrdiff_t>(middle - kCrop / 2, 0, kSide - kCrop);
}

// What lies around a box's middle, as the second net wants it: 8x8, from the darkest to the brightest 0 to 1.
void crop(const unsigned char* picture, const float* box, float* cells) {
  const std::ptrdiff_t left = cornerOf(box[0], box[2]), top = cornerOf(box[1], box[3]);
  std::fill_n(cells, kCell * kCell, 0.0f);
  for (std::ptrdiff_t y = 0; y < kCrop; ++y)
    for (std::ptrdiff_t x = 0; x < kCrop; ++x) {
      const unsigned char* rgb = picture + 3 * ((top + y) * kSide + left + x);
      cells[y / 2 * kCell + x / 2] += static_cast<float>(std::min({rgb[0], rgb[1], rgb[2]})) / 4;
    }
  const auto [low, high] = std::minmax_element(cells, cells + kCell * kCell);
  const float least = *low, range = std::max(*high - least, 1.0f);
  for (std::ptrdiff_t i = 0; i < kCell * kCell; ++i) cells[i] = (cells[i] - least) / range;
}

// Lines "class left top right bottom digit probability" of ONNX Runtime's against what was found and read.
bool isSame(std::ifstream& text, std::ptrdiff_t count) {
  std::ptrdiff_t expected = 0;
  bool same = true;
  int64_t kind = 0, digit = 0;
  float box[4], chance = 0;
  while (text >> kind >> box[0] >> box[1] >> box[2] >> box[3] >> digit >> chance) {
    if (expected++ >= count) continue;
    const std::ptrdiff_t d = expected - 1;
    const float* read = chances + kDigits * d;
    same = same && kind == classes[d] && digit == std::max_element(read, read + kDigits) - read &&
           std::fabs(chance - read[digit]) < 2e-3f;
    for (std::ptrdiff_t k = 0; k < 4; ++k) same = same && std::fabs(box[k] - boxes[4 * d + k]) < 0.02f;
  }
  return same && expected == count && expected > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3)
    return std::fprintf(stderr, "usage: %s picture.png [reference.txt]\n", argv[0]), 2;
  int width = 0, height = 0, channels = 0;
  unsigned char* picture = stbi_load(argv[1], &width, &height, &channels, 3);
  if (!picture || width != kSide || height != kSide)
    return std::fprintf(stderr, "%s isn't a picture of 128x128\n", argv[1]), 2;

  const signs_find_inputs frame = {picture};
  signs_find_outputs found = {boxes, {}, scores, {}, classes, {}, masks, {}};
  if (const int code = signs_find_run(&frame, &found, arena))
    return std::fprintf(stderr, "signs_find_run: %s\n", signs_error(code)), 1;
  const std::ptrdiff_t count = found.boxes_dims[0];
  if (count == 0) return std::printf("no signs\n"), argc == 3;
  for (std::ptrdiff_t d = 0; d < count; ++d) crop(picture, boxes + 4 * d, crops + kCell * kCell * d);
  stbi_image_free(picture);

  const signs_read_inputs digits = {crops, {count, 1, kCell, kCell}};
  signs_read_outputs read = {chances, {}};
  if (const int code = signs_read_run(&digits, &read, arena))
    return std::fprintf(stderr, "signs_read_run: %s\n", signs_error(code)), 1;

  for (std::ptrdiff_t d = 0; d < count; ++d) {
    const float *best = std::max_element(chances + kDigits * d, chances + kDigits * (d + 1)),
                *box = boxes + 4 * d;
    std::printf("a sign from (%5.1f,%5.1f) to (%5.1f,%5.1f) says %td (%.0f%%)\n", double(box[0]),
                double(box[1]), double(box[2]), double(box[3]), best - (chances + kDigits * d),
                100.0 * double(*best));
  }
  if (argc == 2) return 0;
  std::ifstream text(argv[2]);
  if (!text) return std::fprintf(stderr, "%s can't be read\n", argv[2]), 2;
  const bool same = isSame(text, count);
  std::printf("ONNX Runtime finds and reads %s\n", same ? "the same" : "something else");
  return same ? 0 : 1;
}
