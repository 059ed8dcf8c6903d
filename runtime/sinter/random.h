// Random numbers: RandomUniform, RandomNormal, Bernoulli (ONNX 22) and Multinomial (ONNX 22).
//
// The generator has no state: number i of a seed is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", 2014) applied to seed + (i + 1) * 0x9e3779b97f4a7c15. So a node
// gives the same elements whatever ran before it, and nodes of different seeds are independent. What differs
// from run to run is the seed: with --random state it is made of a stream, two words that a run leaves to the
// next one (a seed of the caller's, and how many runs there were), and of the node.
#pragma once
#include <cmath>
#include <cstdint>

#include "sinter/scalar.h"

namespace sinter {

inline std::uint64_t random_bits(std::uint64_t seed, std::int64_t i) {
  std::uint64_t v = seed + (static_cast<std::uint64_t>(i) + 1u) * 0x9e3779b97f4a7c15u;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
  return v ^ (v >> 31);
}

// The seed of a node in this run (or iteration) of a stream.
inline std::uint64_t random_seed(const std::uint64_t* stream, std::uint64_t node) {
  return random_bits(random_bits(stream[0], static_cast<std::int64_t>(stream[1])) ^ node, 0);
}

// The stream of a Loop's iterations.
inline void random_stream(const std::uint64_t* stream, std::uint64_t node, std::uint64_t* y) {
  y[0] = random_seed(stream, node);
  y[1] = 0;
}

// A multiple of 2^-53 in [0, 1).
inline double random_unit(std::uint64_t seed, std::int64_t i) {
  return static_cast<double>(random_bits(seed, i) >> 11) * 0x1p-53;
}

// Of the normal distribution with mean 0 and deviation 1 (Box and Muller): numbers 2 i and 2 i + 1 of the
// seed.
inline double random_gauss(std::uint64_t seed, std::int64_t i) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random_unit(seed, 2 * i)));
  return radius * std::cos(6.283185307179586476925286766559 * random_unit(seed, 2 * i + 1));
}

template <class T>
inline void random_uniform(std::uint64_t seed, double low, double high, std::int64_t n, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = cast_to<T>(low + (high - low) * random_unit(seed, i));
}

template <class T>
inline void random_normal(std::uint64_t seed, double mean, double deviation, std::int64_t n, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = cast_to<T>(mean + deviation * random_gauss(seed, i));
}

// y[i] is 1 with probability p[i].
template <class P, class T>
inline void bernoulli(std::uint64_t seed, const P* p, std::int64_t n, T* y) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = cast_to<T>(random_unit(seed, i) < cast_to<double>(p[i]) ? 1.0 : 0.0);
}

// x [batch][classes] of logarithms of probabilities up to a constant; y [batch][samples] of class numbers.
template <class X, class T>
inline void multinomial(std::uint64_t seed, const X* x, std::int64_t batch, std::int64_t classes,
                        std::int64_t samples, T* y) {
  for (std::int64_t b = 0; b < batch; ++b, x += classes) {
    double top = cast_to<double>(x[0]), sum = 0.0;
    for (std::int64_t c = 1; c < classes; ++c)
      top = cast_to<double>(x[c]) > top ? cast_to<double>(x[c]) : top;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(cast_to<double>(x[c]) - top);
    for (std::int64_t s = 0; s < samples; ++s) {
      double rest = random_unit(seed, b * samples + s) * sum;
      std::int64_t c = 0;
      for (; c < classes - 1; ++c) {
        rest -= std::exp(cast_to<double>(x[c]) - top);
        if (rest < 0.0) break;
      }
      y[b * samples + s] = static_cast<T>(c);
    }
  }
}

}  // namespace sinter
