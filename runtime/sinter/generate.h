// Text from a decoder: choosing the next token among its logits, and knowing when to stop.
//
// This header is the application's; generated code doesn't include it. Nothing here allocates, throws or
// keeps a state: what a call needs it is given, and the same arguments give the same token on every machine
// whose exp rounds alike. A step of generating is
//
//     decoder_run(&in, &out, arena, state);                          // logits of the last token, [V]
//     const int64_t token = sinter::choose_token(logits, V, sampling, tokens, count, count, memory);
//     if (token < 0 || sinter::is_one_of(token, ends, 1)) break;
//     tokens[count++] = token;
//
// Sampling follows the order that has become usual: repetition penalty, temperature, top-k, top-p. The tokens
// lie in a heap, the most likely at its root, and only as many are taken out as the choice needs: a
// vocabulary of 150,000 is not sorted for the sake of the ten tokens that matter.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sinter/random.h"

namespace sinter {

// How a token is chosen. As it stands: the most likely one.
struct Sampling {
  // 0: the most likely token. Otherwise logits are divided by it: below 1 likely tokens become likelier.
  float temperature = 0.0f;
  // Only so many of the most likely tokens are left; 0, or more than there are: all.
  std::int64_t top_k = 0;
  // Of these the fewest whose probabilities sum up to at least so much, in (0,1]; 1: all.
  float top_p = 1.0f;
  // The logits of tokens that were there before are divided by it if positive, else multiplied; 1: unchanged.
  // It works on greedy choices, too.
  float repetition_penalty = 1.0f;
  // Of the random numbers.
  std::uint64_t seed = 0;
};

// What is wrong with the values, for the user to read; null if nothing is.
inline const char* sampling_error(const Sampling& how) {
  if (!(how.temperature >= 0.0f && how.temperature <= std::numeric_limits<float>::max()))
    return "the temperature must be a number from 0 on";
  if (how.top_k < 0) return "top-k must not be negative";
  if (!(how.top_p > 0.0f && how.top_p <= 1.0f)) return "top-p must be more than 0 and at most 1";
  if (!(how.repetition_penalty > 0.0f && how.repetition_penalty <= std::numeric_limits<float>::max()))
    return "the repetition penalty must be a positive number";
  return nullptr;
}

// The memory of choose_token has one of these for each token of the vocabulary.
struct Candidate {
  float logit;
  std::int32_t token;
};

// The most likely of logits[0 ... count): the lowest number of several that are equal. NaN and -inf are never
// chosen; -1 if there is nothing else. T: float, half or bfloat16 (sinter/half.h).
template <class T>
inline std::int64_t most_likely_token(const T* logits, std::int64_t count) {
  std::int64_t best = -1;
  float most = -std::numeric_limits<float>::infinity();
  for (std::int64_t k = 0; k < count; ++k) {
    const float logit = cast_to<float>(logits[k]);
    if (logit > most) most = logit, best = k;
  }
  return best;
}

// The candidates are a heap while one is chosen: an order like <, in which the likeliest is the greatest.
inline bool is_less_likely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit < b.logit : a.token > b.token;
}

// All candidates in the order of their tokens, penalties applied; returns how many there are. NaN and -inf
// are none.
template <class T>
inline std::int64_t gather_candidates(const T* logits, std::int64_t count, float penalty,
                                      const std::int64_t* before, std::int64_t before_count,
                                      Candidate* memory) {
  for (std::int64_t k = 0; k < count; ++k)
    memory[k] = {cast_to<float>(logits[k]), static_cast<std::int32_t>(k)};
  for (std::int64_t k = 0; k < before_count && penalty != 1.0f; ++k) {
    if (before[k] < 0 || before[k] >= count) continue;
    const float logit = cast_to<float>(logits[before[k]]);  // the model's, however often the token was there
    memory[before[k]].logit = logit > 0.0f ? logit / penalty : logit * penalty;
  }
  std::int64_t left = 0;
  for (std::int64_t k = 0; k < count; ++k)
    if (memory[k].logit > -std::numeric_limits<float>::infinity()) memory[left++] = memory[k];
  return left;
}

// The candidate that `unit` of [0,1) hits, where each takes as much of the unit interval as it is likely, the
// likeliest in front. `memory` holds `count` > 0 of them and is reordered.
inline std::int64_t draw_candidate(Candidate* memory, std::int64_t count, const Sampling& how, double unit) {
  const std::int64_t most = how.top_k > 0 && how.top_k < count ? how.top_k : count;
  const double top = static_cast<double>(std::max_element(memory, memory + count, is_less_likely)->logit),
               temperature = static_cast<double>(how.temperature);
  // In proportion to the likeliest, so that it is never more than 1; infinite logits share all there is.
  const auto chance = [&](const Candidate& c) {
    const double logit = static_cast<double>(c.logit);
    return logit == top ? 1.0 : std::exp((logit - top) / temperature);
  };
  double sum = 0.0;
  for (std::int64_t k = 0; k < count && most == count; ++k) sum += chance(memory[k]);

  std::make_heap(memory, memory + count, is_less_likely);
  std::int64_t taken = 0;  // the j-th likeliest comes to lie at memory[count - 1 - j]
  const auto take = [&] { std::pop_heap(memory, memory + count - taken, is_less_likely), ++taken; };
  while (most < count && taken < most) take(), sum += chance(memory[count - taken]);
  if (how.top_p < 1.0f) {
    const double wanted = static_cast<double>(how.top_p) * sum;
    sum = 0.0;
    for (std::int64_t j = 0; j < most && sum < wanted; ++j) {
      if (j == taken) take();
      sum += chance(memory[count - 1 - j]);
    }
  }
  double rest = unit * sum;
  for (std::int64_t j = 0;; ++j) {
    if (j == taken) take();
    const Candidate& c = memory[count - 1 - j];
    rest -= chance(c);
    // What rounding leaves at the end goes to the last candidate.
    if (rest < 0.0 || j + 1 == most) return c.token;
  }
}

// The token that follows. logits[0 ... count): the model's for the last position, count at most 2^31 - 1; T
// as above. before[0 ... before_count): the tokens that the repetition penalty is for, each any number of
// times and in any order (numbers outside of the vocabulary are passed over); may be null with before_count
// 0. `number`: which of the seed's random numbers decides, so that a text is the same again if each of its
// tokens takes the next one. memory: `count` candidates; a greedy choice without penalty leaves them alone,
// and they may be null then. NaN and -inf are never chosen, and tokens of +inf are chosen before all others.
// Returns -1 if no token can be chosen, or if sampling_error(how) says something.
template <class T>
inline std::int64_t choose_token(const T* logits, std::int64_t count, const Sampling& how,
                                 const std::int64_t* before, std::int64_t before_count, std::int64_t number,
                                 Candidate* memory) {
  if (sampling_error(how)) return -1;
  if (how.temperature == 0.0f && how.repetition_penalty == 1.0f) return most_likely_token(logits, count);
  const std::int64_t left =
      gather_candidates(logits, count, how.repetition_penalty, before, before_count, memory);
  if (left == 0) return -1;
  if (how.temperature == 0.0f) return std::max_element(memory, memory + left, is_less_likely)->token;
  return draw_candidate(memory, left, how, random_unit(how.seed, number));
}

// Whether a token ends the text.
inline bool is_one_of(std::int64_t token, const std::int64_t* ends, std::int64_t count) {
  return std::find(ends, ends + count, token) != ends + count;
}

// How far a text goes that is being generated.
struct TextEnd {
  bool stopped;        // a stop string is in the text
  std::size_t length;  // so many bytes can be shown: all in front of it, and nothing that may yet become one
};

// Looks for stop strings in text[0 ... size), which has grown since the last call; `shown` is what that call
// returned as its length (0 at the beginning). Of several the one that begins first ends the text. Bytes at
// the end that are the beginning of a stop string, or of a UTF-8 character that isn't complete, are not to be
// shown before more is known; at the very end of a text that no stop string has ended, they are. Stop strings
// are zero-terminated; an empty one stops nothing.
inline TextEnd end_of_text(const char* text, std::size_t size, std::size_t shown, const char* const* stops,
                           std::size_t stop_count) {
  std::size_t length = size;
  for (std::size_t at = shown; at < size; ++at) {
    for (std::size_t s = 0; s < stop_count; ++s) {
      std::size_t same = 0;
      while (at + same < size && stops[s][same] != 0 && stops[s][same] == text[at + same]) ++same;
      if (same > 0 && stops[s][same] == 0) return {true, at};
      if (at + same == size && at < length) length = at;
    }
  }
  // The last character begins at most three bytes before the end, with as many ones as it has bytes.
  std::size_t begin = length;
  while (begin > shown && length - begin < 3 && (text[begin - 1] & 0xc0) == 0x80) --begin;
  if (begin > shown) {
    const unsigned lead = static_cast<unsigned char>(text[begin - 1]);
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (bytes > length - begin + 1) length = begin - 1;
  }
  return {false, length};
}

}  // namespace sinter
