// Takes the noise out of a recording, 10 ms at a time, as it would out of a microphone's stream: what the net
// remembers is its state, which each frame finds as the frame before has left it.
//
//     audio_demo fan_noisy.wav fan_cleaned.wav [fan_clean.wav fan_onnxruntime.wav]
//
// WAV files are 16 kHz, mono, 16 bits. With two more, the result is compared with what was said (decibels)
// and with what ONNX Runtime makes of the same recording. Exit code: 0 if there was nothing to compare or the
// samples are ONNX Runtime's within kTolerance, 1 if they differ or a call fails, 2 if a file can't be read
// or written.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "denoise.h"

namespace {

constexpr std::size_t kRate = 16000, kFrame = DENOISE_FRAME_MAX_BYTES / sizeof(float), kHop = kFrame / 2;

// Both nets sum in float32, each in its own order, and the state carries the differences on. Steps of 16
// bits.
constexpr float kTolerance = 4;

std::uint32_t number(const std::string& bytes, std::size_t at, std::size_t size) {  // little-endian
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < size; ++k)
    value |= std::uint32_t(static_cast<unsigned char>(bytes[at + k])) << (8 * k);
  return value;
}

std::string littleEndian(std::uint32_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t k = 0; k < size; ++k) bytes += static_cast<char>(value >> (8 * k) & 255);
  return bytes;
}

// The samples in -1..1; nothing if the file isn't a WAV file of 16 kHz, mono, 16 bits. Such a file is a list
// of chunks: a name of four letters, a size in four bytes, and so many bytes more (one more if that is odd).
std::vector<float> readWav(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.compare(0, 4, "RIFF") != 0 || bytes.size() < 12 || bytes.compare(8, 4, "WAVE") != 0) return {};
  std::vector<float> samples;
  bool fits = false;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::size_t start = at + 8,
                      size = std::min<std::size_t>(number(bytes, at + 4, 4), bytes.size() - start);
    if (bytes.compare(at, 4, "fmt ") == 0 && size >= 16)
      fits = number(bytes, start, 2) == 1 && number(bytes, start + 2, 2) == 1 &&
             number(bytes, start + 4, 4) == kRate && number(bytes, start + 14, 2) == 16;
    if (bytes.compare(at, 4, "data") == 0)
      for (std::size_t k = start; k + 2 <= start + size; k += 2)
        samples.push_back(static_cast<float>(static_cast<std::int16_t>(number(bytes, k, 2))) / 32768.0f);
    at = start + size + size % 2;
  }
  return fits ? samples : std::vector<float>();
}

// Rounds to 16 bits, in place: what a reader of the file will see.
bool writeWav(const char* path, std::vector<float>& samples) {
  std::string data;
  for (float& sample : samples) {
    const float rounded = std::clamp(std::nearbyint(sample * 32768.0f), -32768.0f, 32767.0f);
    data += littleEndian(static_cast<std::uint32_t>(std::lrint(rounded)), 2);
    sample = rounded / 32768.0f;
  }
  const auto size = static_cast<std::uint32_t>(data.size());
  std::ofstream file(path, std::ios::binary);
  file << "RIFF" << littleEndian(36 + size, 4) << "WAVEfmt " << littleEndian(16, 4) << littleEndian(1, 2)
       << littleEndian(1, 2) << littleEndian(kRate, 4) << littleEndian(2 * kRate, 4) << littleEndian(2, 2)
       << littleEndian(16, 2) << "data" << littleEndian(size, 4) << data;
  return bool(file.flush());
}

// The noise suppressor of one stream: all its memory, and one call for each 160 samples.
class Suppressor {
 public:
  // Takes the next kHop samples, and writes kHop cleaned ones: those before, because each sample is in two
  // frames. Returns the net's error code.
  int next(const float* heard, float* cleaned) {
    std::copy(frame_ + kHop, frame_ + kFrame, frame_);
    std::copy(heard, heard + kHop, frame_ + kHop);
    const denoise_inputs inputs = {frame_};
    denoise_outputs outputs = {cleaned_};
    const int code = denoise_run(&inputs, &outputs, arena_, state_);
    for (std::size_t k = 0; k < kHop; ++k) cleaned[k] = overlap_[k] + cleaned_[k];
    std::copy(cleaned_ + kHop, cleaned_ + kFrame, overlap_);
    return code;
  }

 private:
  alignas(64) unsigned char arena_[DENOISE_ARENA_BYTES];
  alignas(64) unsigned char state_[DENOISE_STATE_BYTES] = {};  // of zeros: a stream begins
  float frame_[kFrame] = {}, cleaned_[kFrame] = {}, overlap_[kHop] = {};
};

Suppressor suppressor;

// 10 log10 of the voice's energy over that of what differs from it.
double decibels(const std::vector<float>& clean, const std::vector<float>& other) {
  double voice = 0, noise = 0;
  for (std::size_t k = 0; k < clean.size(); ++k) {
    voice += std::pow(double(clean[k]), 2);
    noise += std::pow(double(other[k]) - double(clean[k]), 2);
  }
  return 10 * std::log10(voice / noise);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) {
    std::fprintf(stderr, "usage: %s noisy.wav cleaned.wav [clean.wav reference.wav]\n", argv[0]);
    return 2;
  }
  std::vector<float> heard = readWav(argv[1]);
  const std::size_t count = heard.size();
  if (count == 0) return std::fprintf(stderr, "%s isn't a WAV file of 16 kHz, mono, 16 bits\n", argv[1]), 2;

  const std::size_t frames = (count + kHop - 1) / kHop + 1;  // the last one brings the last samples out
  heard.resize(frames * kHop);
  std::vector<float> cleaned(frames * kHop);
  double slowest = 0, total = 0;
  for (std::size_t k = 0; k < frames; ++k) {
    const auto start = std::chrono::steady_clock::now();
    const int code = suppressor.next(&heard[k * kHop], &cleaned[k * kHop]);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (code != 0) return std::fprintf(stderr, "denoise_run: %s\n", denoise_error(code)), 1;
    slowest = std::max(slowest, time.count());
    total += time.count();
  }
  heard.resize(count);
  cleaned.erase(cleaned.begin(), cleaned.begin() + kHop);  // the silence before the first sample
  cleaned.resize(count);
  if (!writeWav(argv[2], cleaned)) return std::fprintf(stderr, "%s can't be written\n", argv[2]), 2;

  const double mean = total / double(frames), frameTime = 1e6 * double(kHop) / double(kRate);
  std::printf(
      "%.1f s in frames of %.0f ms: %.1f us a frame, %.1f the slowest; %.0f times faster than it is heard\n",
      double(count) / double(kRate), frameTime / 1000, mean, slowest, frameTime / mean);
  if (argc == 3) return 0;

  const std::vector<float> clean = readWav(argv[3]), reference = readWav(argv[4]);
  if (clean.size() != count || reference.size() != count)
    return std::fprintf(stderr, "%s and %s must have %zu samples\n", argv[3], argv[4], count), 2;
  float largest = 0;
  bool same = true;
  for (std::size_t k = 0; k < count; ++k) {
    const float difference = 32768 * std::fabs(cleaned[k] - reference[k]);
    largest = std::max(largest, difference);
    same = same && difference <= kTolerance;  // false for NaN
  }
  std::printf("voice over noise: %.1f dB before, %.1f dB after\n", decibels(clean, heard),
              decibels(clean, cleaned));
  std::printf("largest difference from ONNX Runtime's: %.0f of 32768\n", double(largest));
  return same ? 0 : 1;
}
