// Writes down what a voice says: the encoder hears a piece of sound, once; the decoder writes the text, a
// letter a run, and looks at what the encoder has left in the arena.
//
//     speech_demo vocabulary.txt spoken.wav [spoken.txt onnxruntime.txt]
//
// The WAV file is 8 kHz, mono, 16 bits; each three seconds of it are a text of their own. With two more
// files, a line for each piece, the texts are compared with what was said and with what ONNX Runtime reads.
// Exit code: 0 if there was nothing to compare or the texts are ONNX Runtime's, 1 if they differ or a call
// fails, 2 if a file can't be read.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sinter/generate.h"
#include "speech.h"

namespace {

constexpr std::size_t kRate = 8000, kPiece = SPEECH_ENCODER_N_MAX, kLeast = SPEECH_ENCODER_N_MIN,
                      kLetters = SPEECH_DECODER_LOGITS_MAX_BYTES / sizeof(float);
constexpr int64_t kEnd = 0, kLongest = 39;  // the end of a text, which begins one as well; letters at most

// The encoder's keys and values stay in the arena while the decoder runs; those of the letters are its state.
alignas(64) unsigned char arena[SPEECH_ARENA_BYTES], state[SPEECH_DECODER_STATE_BYTES];

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check(int code) {
  if (code != 0) std::fprintf(stderr, "the net: %s\n", speech_error(code)), std::exit(1);
}

struct Recogniser {
  std::vector<std::string> letters;
  double heard = 0, written = 0;  // seconds
  std::size_t runs = 0;           // of the decoder

  // samples[0 ... count), kLeast to kPiece of them, -1 to 1.
  std::string read(const float* samples, std::size_t count) {
    Clock::time_point start = Clock::now();
    const speech_encoder_inputs sound = {samples, {1, int64_t(count)}};
    speech_encoder_outputs memory = {};
    check(speech_encoder_run(&sound, &memory, arena));
    heard += secondsSince(start);

    start = Clock::now();
    int64_t token = kEnd, place = 0;
    float logits[kLetters];
    speech_decoder_inputs in = {};
    in.token = &token, in.place = &place;
    std::copy(memory.key_0_dims, memory.key_0_dims + 4, in.key_0_dims);
    std::copy(memory.value_0_dims, memory.value_0_dims + 4, in.value_0_dims);
    std::copy(memory.key_1_dims, memory.key_1_dims + 4, in.key_1_dims);
    std::copy(memory.value_1_dims, memory.value_1_dims + 4, in.value_1_dims);
    speech_decoder_outputs out = {logits};
    std::string text;
    speech_decoder_reset(state);
    for (; place < kLongest; ++place) {
      check(speech_decoder_run(&in, &out, arena, state));
      ++runs;
      token = sinter::most_likely_token(logits, int64_t(kLetters));
      if (token < 0 || sinter::is_one_of(token, &kEnd, 1)) break;
      text += letters[std::size_t(token)];
    }
    written += secondsSince(start);
    return text;
  }
};

std::vector<std::string> readLines(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The samples in -1..1 of a WAV file as Python's `wave` writes it: a header of 44 bytes, with the channels,
// the rate and the bits at bytes 22, 24 and 34, and then little-endian numbers. Nothing if it is another one.
std::vector<float> readWav(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto number = [&](std::size_t at) {
    return unsigned(static_cast<unsigned char>(bytes[at])) |
           unsigned(static_cast<unsigned char>(bytes[at + 1])) << 8;
  };
  if (bytes.size() < 44 || bytes.compare(8, 8, "WAVEfmt ") != 0 || bytes.compare(36, 4, "data") != 0 ||
      number(22) != 1 || number(24) != kRate || number(34) != 16)
    return {};
  std::vector<float> samples;
  for (std::size_t at = 44; at + 2 <= bytes.size(); at += 2)
    samples.push_back(static_cast<float>(static_cast<std::int16_t>(number(at))) / 32768.0f);
  return samples;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) {
    std::fprintf(stderr, "usage: %s vocabulary.txt spoken.wav [spoken.txt onnxruntime.txt]\n", argv[0]);
    return 2;
  }
  Recogniser recogniser;
  recogniser.letters = readLines(argv[1]);
  if (recogniser.letters.size() != kLetters)
    return std::fprintf(stderr, "%s is not the net's vocabulary\n", argv[1]), 2;
  const std::vector<float> samples = readWav(argv[2]);
  if (samples.size() < kLeast)
    return std::fprintf(stderr, "%s isn't a WAV file of 8 kHz, mono, 16 bits\n", argv[2]), 2;

  std::vector<std::string> texts;
  for (std::size_t at = 0; at + kLeast <= samples.size(); at += kPiece)
    texts.push_back(recogniser.read(&samples[at], std::min(kPiece, samples.size() - at)));
  std::vector<std::string> said(texts.size()), reference = texts;
  if (argc == 5) said = readLines(argv[3]), reference = readLines(argv[4]);
  if (said.size() != texts.size() || reference.size() != texts.size())
    return std::fprintf(stderr, "%zu pieces, but %zu and %zu texts to compare with\n", texts.size(),
                        said.size(), reference.size()),
           2;

  std::size_t right = 0, same = 0;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    right += texts[k] == said[k], same += texts[k] == reference[k];
    std::printf("%s%s\n", argc == 3 ? "" : texts[k] == said[k] ? "right  " : "wrong  ", texts[k].c_str());
    if (texts[k] != reference[k]) std::printf("ONNX Runtime reads: %s\n", reference[k].c_str());
  }
  const double seconds = double(samples.size()) / double(kRate), pieces = double(texts.size());
  if (argc == 5) {
    std::printf("right:                   %zu of %zu\n", right, texts.size());
    std::printf("as ONNX Runtime reads:   %zu of %zu\n", same, texts.size());
  }
  std::printf("heard in:                %.2f ms for %.1f s of sound\n", 1e3 * recogniser.heard / pieces,
              seconds / pieces);
  std::printf("written in:              %.1f us a letter\n",
              1e6 * recogniser.written / double(recogniser.runs));
  return same == texts.size() ? 0 : 1;
}
