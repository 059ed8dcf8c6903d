// Finds discs, squares and triangles in a picture with the compiled net, prints a line for each, and writes
// the picture with their boxes and masks drawn over it. How many there are, the net finds out: it is an
// extent of its outputs, set by the run and never more than what the buffers hold.
//
//     detection_demo coffee.png coffee_drawn.png [coffee_onnxruntime]
//
// With a third argument, the detections are compared with those that ONNX Runtime found: THIRD.txt and,
// unless that is empty, THIRD.png. Exit code: 0 if there was nothing to compare or all is the same, 1 if
// something differs or the call fails, 2 if a file can't be read or written.
#include "detection.h"

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

// The net takes kSide x kSide pixels, r g b r g b ... (PRE in CMakeLists.txt says what becomes of them); the
// drawn picture is kZoom times larger.
constexpr std::ptrdiff_t sideOf(std::ptrdiff_t pixels) {
  std::ptrdiff_t side = 1;
  while (side * side < pixels) ++side;
  return side;
}
constexpr std::ptrdiff_t kPixels = DETECTION_IMAGE_MAX_BYTES / 3, kSide = sideOf(kPixels), kZoom = 4,
                         kDrawn = kSide * kZoom;
static_assert(kSide * kSide == kPixels, "the net's pictures are not square");

// Both nets sum in float32, each in its own order. Pixels; and probability, half a byte's step for rounding
// included.
constexpr float kBoxTolerance = 0.02f, kScoreTolerance = 1e-3f, kMaskTolerance = 4e-3f;

// All the memory that the net uses: no call allocates, and the arena's content needn't survive between calls.
alignas(64) unsigned char arena[DETECTION_ARENA_BYTES];
float boxes[DETECTION_BOXES_MAX_BYTES / sizeof(float)];          // [D,4]: left, top, right, bottom in pixels
float scores[DETECTION_SCORES_MAX_BYTES / sizeof(float)];        // [D]: 0.5..1
int64_t classes[DETECTION_CLASSES_MAX_BYTES / sizeof(int64_t)];  // [D]
float masks[DETECTION_MASKS_MAX_BYTES / sizeof(float)];          // [D,height,width]: probabilities

std::string className(int64_t index) {
  constexpr const char* kNames[] = {"disc", "square", "triangle"};
  return index >= 0 && index < 3 ? kNames[index] : "class " + std::to_string(index);
}

// The middle square of any picture, scaled to kSide x kSide by taking the nearest pixels: r g b r g b ...
std::vector<unsigned char> readPicture(const char* path) {
  int width = 0, height = 0, channels = 0;
  unsigned char* bytes = stbi_load(path, &width, &height, &channels, 3);
  if (!bytes) return {};
  const std::ptrdiff_t side = std::min(width, height), left = (width - side) / 2, top = (height - side) / 2;
  std::vector<unsigned char> picture;
  for (std::ptrdiff_t y = 0; y < kSide; ++y)
    for (std::ptrdiff_t x = 0; x < kSide; ++x) {
      const unsigned char* pixel = bytes + 3 * ((top + y * side / kSide) * width + left + x * side / kSide);
      picture.insert(picture.end(), pixel, pixel + 3);
    }
  stbi_image_free(bytes);
  return picture;
}

// The probability that a point of the picture (in pixels) belongs to detection d.
float maskAt(const detection_outputs& found, std::ptrdiff_t d, std::ptrdiff_t x, std::ptrdiff_t y) {
  const std::ptrdiff_t height = found.masks_dims[1], width = found.masks_dims[2];
  return masks[(d * height + y * height / kSide) * width + x * width / kSide];
}

void print(const detection_outputs& found) {
  for (std::ptrdiff_t d = 0; d < found.boxes_dims[0]; ++d) {
    std::ptrdiff_t area = 0;
    for (std::ptrdiff_t i = 0; i < kPixels; ++i) area += maskAt(found, d, i % kSide, i / kSide) >= 0.5f;
    std::printf("%-8s %3.0f%%  from (%5.1f,%5.1f) to (%5.1f,%5.1f), %4td pixels\n",
                className(classes[d]).c_str(), 100.0 * double(scores[d]), double(boxes[4 * d]),
                double(boxes[4 * d + 1]), double(boxes[4 * d + 2]), double(boxes[4 * d + 3]), area);
  }
}

// Masks as a veil of the class's colour, boxes as lines.
bool draw(const char* path, const std::vector<unsigned char>& picture, const detection_outputs& found) {
  constexpr unsigned char kColours[][3] = {{255, 80, 40}, {60, 230, 60}, {70, 120, 255}};
  std::vector<unsigned char> drawn;
  for (std::ptrdiff_t i = 0; i < kDrawn * kDrawn; ++i) {
    const std::ptrdiff_t x = i % kDrawn, y = i / kDrawn;
    std::array<int, 3> rgb;
    for (std::size_t c = 0; c < 3; ++c)
      rgb[c] = picture[static_cast<std::size_t>(3 * (y / kZoom * kSide + x / kZoom)) + c];
    for (std::ptrdiff_t d = 0; d < found.boxes_dims[0]; ++d) {
      const float* box = boxes + 4 * d;
      const float across = (float(x) + 0.5f) / kZoom, down = (float(y) + 0.5f) / kZoom;
      const float inwards =
          std::min(std::min(across - box[0], box[2] - across), std::min(down - box[1], box[3] - down));
      const bool line = std::fabs(inwards) < 1.0f / kZoom;
      const bool veil = maskAt(found, d, x / kZoom, y / kZoom) >= 0.5f;
      for (std::size_t c = 0; c < 3; ++c) {
        const int colour = kColours[std::abs(classes[d] % 3)][c];
        if (line || veil) rgb[c] = line ? colour : (rgb[c] + colour) / 2;
      }
    }
    for (int value : rgb) drawn.push_back(static_cast<unsigned char>(value));
  }
  return stbi_write_png(path, kDrawn, kDrawn, 3, drawn.data(), 3 * kDrawn) != 0;
}

// One kind of number, compared: the largest difference, and whether all were within the tolerance (NaN
// isn't).
struct Comparison {
  float tolerance, largest = 0;
  bool same = true;
  void add(float a, float b) {
    const float difference = std::fabs(a - b);
    largest = std::max(largest, difference);
    same = same && difference <= tolerance;
  }
};

// Whether ONNX Runtime found the same: lines "class score left top right bottom" in PREFIX.txt, and the masks
// as gray bytes under each other in PREFIX.png. 0, 1 or 2 as the program's exit code.
int compare(const std::string& prefix, const detection_outputs& found) {
  std::ifstream text(prefix + ".txt");
  if (!text) return std::fprintf(stderr, "%s.txt can't be read\n", prefix.c_str()), 2;
  const std::ptrdiff_t count = found.boxes_dims[0], maskPixels = found.masks_dims[1] * found.masks_dims[2];
  Comparison box{kBoxTolerance}, score{kScoreTolerance}, mask{kMaskTolerance};
  std::ptrdiff_t expected = 0, sameClasses = 0;
  int64_t kind = 0;
  for (float row[5]; text >> kind >> row[0] >> row[1] >> row[2] >> row[3] >> row[4]; ++expected) {
    if (expected >= count) continue;
    sameClasses += kind == classes[expected];
    score.add(row[0], scores[expected]);
    for (std::ptrdiff_t k = 0; k < 4; ++k) box.add(row[1 + k], boxes[4 * expected + k]);
  }
  if (expected != count) return std::printf("ONNX Runtime found %td\n", expected), 1;
  if (count > 0) {
    int width = 0, height = 0, channels = 0;
    unsigned char* bytes = stbi_load((prefix + ".png").c_str(), &width, &height, &channels, 1);
    if (!bytes || width != found.masks_dims[2] || height != count * found.masks_dims[1])
      return std::fprintf(stderr, "%s.png isn't %td masks\n", prefix.c_str(), count), 2;
    for (std::ptrdiff_t i = 0; i < count * maskPixels; ++i) mask.add(masks[i], float(bytes[i]) / 255);
    stbi_image_free(bytes);
  }
  const bool same = sameClasses == count && box.same && score.same && mask.same;
  std::printf("ONNX Runtime found %s", same ? "the same" : "something else");
  if (count > 0)
    std::printf(": largest difference %.0e pixels, %.0e of score, %.0e of mask", double(box.largest),
                double(score.largest), double(mask.largest));
  std::printf("\n");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: %s picture.png drawn.png [reference]\n", argv[0]);
    return 2;
  }
  const std::vector<unsigned char> picture = readPicture(argv[1]);
  if (picture.empty()) return std::fprintf(stderr, "%s isn't a picture\n", argv[1]), 2;

  const detection_inputs inputs = {picture.data()};
  detection_outputs found = {boxes, {}, scores, {}, classes, {}, masks, {}};
  double bestMicroseconds = HUGE_VAL;
  for (int run = 0; run < 10; ++run) {  // the first call also loads the weights into the caches
    const auto start = std::chrono::steady_clock::now();
    const int code = detection_run(&inputs, &found, arena);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (code != 0) return std::fprintf(stderr, "detection_run: %s\n", detection_error(code)), 1;
    bestMicroseconds = std::min(bestMicroseconds, time.count());
  }

  std::printf("%td detections in %.0f us, the best of 10 calls\n", std::ptrdiff_t(found.boxes_dims[0]),
              bestMicroseconds);
  print(found);
  if (!draw(argv[2], picture, found)) return std::fprintf(stderr, "%s can't be written\n", argv[2]), 2;
  return argc == 4 ? compare(argv[3], found) : 0;
}
