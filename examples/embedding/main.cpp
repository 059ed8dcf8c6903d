// Finds the sentence that means what a query means: the compiled net turns both into vectors of length 1,
// whose scalar product is the cosine of the angle between them.
//
//     embedding_demo vocabulary.txt sentences.txt "could you wake up the camera"
//     embedding_demo vocabulary.txt sentences.txt queries.txt onnxruntime.npy
//
// The first form prints the three nearest sentences. The second asks every query of a file, whose lines are
// "number<TAB>query" with the number of the right sentence (from 0), and compares all vectors with ONNX
// Runtime's. Exit code: 0 if they are the same within kTolerance, 1 if they aren't or a call fails, 2 if a
// file can't be read or has no words.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "embedding.h"

namespace {

// So many sentences a call, of so many tokens: what the net was compiled for (CMakeLists.txt).
constexpr std::size_t kBatch = EMBEDDING_N_MAX, kLongest = EMBEDDING_L_MAX,
                      kWidth = EMBEDDING_EMBEDDING_MAX_BYTES / kBatch / sizeof(float);

// Both nets sum in float32, each in its own order. Components of vectors of length 1.
constexpr float kTolerance = 1e-4f;

// All the memory that the net uses: no call allocates, and the arena's content needn't survive between calls.
alignas(64) unsigned char arena[EMBEDDING_ARENA_BYTES];
int64_t tokens[EMBEDDING_TOKENS_MAX_BYTES / sizeof(int64_t)];  // [N,L], 0 after a sentence's end
float mask[EMBEDDING_MASK_MAX_BYTES / sizeof(float)];          // [N,L], 1 for tokens, 0 after the end

using Vocabulary = std::unordered_map<std::string, int64_t>;
using Vector = std::vector<float>;

std::vector<std::string> readLines(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Words are runs of letters and digits, without apostrophes. Each is cut into pieces from the left, the
// longest that the vocabulary has; "##" marks pieces that continue a word. Single letters and digits are all
// there.
std::vector<int64_t> tokensOf(const std::string& text, const Vocabulary& vocabulary) {
  std::vector<int64_t> numbers;
  std::string word;
  for (char c : text + ' ') {  // the blank ends the last word
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool inWord = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (inWord) word += c;
    if (inWord || c == '\'') continue;
    for (std::string mark; !word.empty(); mark = "##") {
      std::size_t length = word.size();
      while (length > 0 && !vocabulary.count(mark + word.substr(0, length))) --length;
      if (length == 0) return {};
      numbers.push_back(vocabulary.at(mark + word.substr(0, length)));
      word.erase(0, length);
    }
  }
  numbers.resize(std::min(numbers.size(), kLongest));
  return numbers;
}

// Embeds texts[first ...], as many as fit into one call, each behind the other as long as the longest of
// them. Returns the net's error code.
int embedBatch(const std::vector<std::vector<int64_t>>& texts, std::size_t first,
               std::vector<Vector>& vectors) {
  const std::size_t count = std::min(kBatch, texts.size() - first);
  std::size_t length = 0;
  for (std::size_t k = 0; k < count; ++k) length = std::max(length, texts[first + k].size());
  std::fill(tokens, tokens + count * length, 0);
  std::fill(mask, mask + count * length, 0.0f);
  for (std::size_t k = 0; k < count; ++k) {
    std::copy(texts[first + k].begin(), texts[first + k].end(), tokens + k * length);
    std::fill_n(mask + k * length, texts[first + k].size(), 1.0f);
  }
  const int64_t n = int64_t(count), l = int64_t(length);
  const embedding_inputs inputs = {tokens, {n, l}, mask, {n, l}};
  float embedding[kBatch * kWidth];
  embedding_outputs outputs = {embedding, {}};
  if (const int code = embedding_run(&inputs, &outputs, arena)) return code;
  for (std::size_t k = 0; k < count; ++k)
    vectors.emplace_back(embedding + k * kWidth, embedding + (k + 1) * kWidth);
  return 0;
}

// A vector for each text; ends the program if one has no words, or a call fails.
std::vector<Vector> embed(const std::vector<std::string>& texts, const Vocabulary& vocabulary) {
  std::vector<std::vector<int64_t>> numbers;
  for (const std::string& text : texts) {
    numbers.push_back(tokensOf(text, vocabulary));
    if (numbers.back().empty()) std::fprintf(stderr, "\"%s\" has no words\n", text.c_str()), std::exit(2);
  }
  std::vector<Vector> vectors;
  while (vectors.size() < texts.size())
    if (const int code = embedBatch(numbers, vectors.size(), vectors))
      std::fprintf(stderr, "embedding_run: %s\n", embedding_error(code)), std::exit(1);
  return vectors;
}

float cosine(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
}

// The sentences' numbers, the nearest first.
std::vector<std::size_t> nearest(const Vector& query, const std::vector<Vector>& sentences) {
  std::vector<std::size_t> order(sentences.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return cosine(query, sentences[a]) > cosine(query, sentences[b]);
  });
  return order;
}

// The float32 values of a NumPy file of version 1: the magic word, its version, the length of a text header
// in two bytes, the header, and then the values as they lie in memory (little-endian).
Vector readNpy(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.compare(0, 7, "\x93NUMPY\x01") != 0 || bytes.size() < 10) return {};
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  const std::size_t start = 10u + byte(8) + 256u * byte(9);
  if (bytes.size() < start || bytes.substr(10, start - 10).find("'<f4'") == std::string::npos) return {};
  Vector values((bytes.size() - start) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + start, values.size() * sizeof(float));
  return values;
}

// The second form. The program's exit code.
int answerAll(const std::vector<std::string>& sentences, const char* path, const Vocabulary& vocabulary,
              const Vector& reference) {
  std::vector<std::string> texts = sentences;
  std::vector<std::size_t> truth;
  for (const std::string& line : readLines(path)) {
    truth.push_back(std::size_t(std::atoi(line.c_str())));
    texts.push_back(line.substr(line.find('\t') + 1));
  }
  if (reference.size() != texts.size() * kWidth)
    return std::fprintf(stderr, "the reference isn't float32 [%zu,%zu]\n", texts.size(), kWidth), 2;

  const auto start = std::chrono::steady_clock::now();
  std::vector<Vector> vectors = embed(texts, vocabulary);
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  float largest = 0;
  std::size_t right = 0, close = 0;
  for (std::size_t k = 0; k < reference.size(); ++k) {
    const float difference = std::fabs(vectors[k / kWidth][k % kWidth] - reference[k]);
    largest = std::max(largest, difference);
    close += difference <= kTolerance;  // false for NaN
  }
  const std::vector<Vector> queries(vectors.begin() + std::ptrdiff_t(sentences.size()), vectors.end());
  vectors.resize(sentences.size());
  for (std::size_t k = 0; k < queries.size(); ++k) {
    const std::size_t answer = nearest(queries[k], vectors)[0];
    right += answer == truth[k];
    if (answer != truth[k] || k % 20 == 0)
      std::printf("%s  %-48s %.2f  %s\n", answer == truth[k] ? "right" : "wrong",
                  texts[sentences.size() + k].c_str(), double(cosine(queries[k], vectors[answer])),
                  sentences[answer].c_str());
  }
  std::printf("right:                                     %zu of %zu\n", right, queries.size());
  std::printf("largest difference from ONNX Runtime's:    %.0e\n", double(largest));
  std::printf("time, up to %zu at once:                    %.1f us a sentence\n", kBatch,
              time.count() / double(texts.size()));
  return close == reference.size() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: %s vocabulary.txt sentences.txt QUERY | queries.txt reference.npy\n",
                 argv[0]);
    return 2;
  }
  Vocabulary vocabulary;
  for (const std::string& token : readLines(argv[1])) vocabulary.emplace(token, int64_t(vocabulary.size()));
  const std::vector<std::string> sentences = readLines(argv[2]);
  if (vocabulary.empty() || sentences.empty())
    return std::fprintf(stderr, "%s can't be read\n", argv[vocabulary.empty() ? 1 : 2]), 2;
  if (argc == 5) return answerAll(sentences, argv[3], vocabulary, readNpy(argv[4]));

  const std::vector<Vector> vectors = embed(sentences, vocabulary);
  const Vector query = embed({argv[3]}, vocabulary)[0];
  const std::vector<std::size_t> order = nearest(query, vectors);
  for (std::size_t k = 0; k < std::min<std::size_t>(3, order.size()); ++k)
    std::printf("%.2f  %s\n", double(cosine(query, vectors[order[k]])), sentences[order[k]].c_str());
}
