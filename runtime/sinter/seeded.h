// Inputs that any model takes, from a seed: floats in [-1, 1), integers 0 or 1, which are valid indices of
// most tables; a camera's frame has bytes of all kinds. The same numbers wherever they are made, by sinter
// bench as by the program that it exports.
#pragma once
#include <cstdint>
#include <random>

namespace sinter {
namespace seeded {

// The generator of a model's i-th input.
inline std::mt19937 of_input(std::size_t i) { return std::mt19937(static_cast<std::uint32_t>(i + 1)); }

inline double unit(std::mt19937& random) { return static_cast<double>(random()) / 4294967296.0; }
inline double real(std::mt19937& random) { return 2 * unit(random) - 1; }
inline std::int64_t integer(std::mt19937& random) { return static_cast<std::int64_t>(2 * unit(random)); }
inline std::uint8_t byte(std::mt19937& random) { return static_cast<std::uint8_t>(random() >> 24); }

}  // namespace seeded
}  // namespace sinter
