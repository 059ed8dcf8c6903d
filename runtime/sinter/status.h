// What net_run() returns, and the address arithmetic of its call list.
#pragma once
#include <cstdint>

namespace sinter {

// The codes of every generated NAME_run(); NAME.h spells them NAME_E_….
enum Status : int {
  kOk = 0,
  kNullError = 1,      // an argument or a tensor's pointer is null
  kAlignError = 2,     // the arena is not 64-byte aligned
  kDimError = 3,       // an extent is outside its bounds, or extents do not fit together
  kCapacityError = 4,  // a count that the data decide exceeds what was planned
  kIndexError = 5,     // an index in the data is outside its axis
  kLoopError = 6,      // a loop ran longer than was planned
  kCustomError = 7,    // a custom operator's function returned non-zero
  kTargetError = 8,    // the system doesn't let the process use what the target computes with
  kWeightsError = 9,   // the weights are not those that the code was generated with
};

// Whether the eight bytes behind the weights, lowest first, are this number.
inline bool has_tag(const unsigned char* behind, std::uint64_t tag) {
  std::uint64_t found = 0;
  for (int i = 0; i < 8; ++i) found |= static_cast<std::uint64_t>(behind[i]) << (8 * i);
  return found == tag;
}

// The T that lies `offset` bytes behind `base`.
template <class T>
inline T* at(unsigned char* base, std::int64_t offset) {
  return reinterpret_cast<T*>(base + offset);
}
template <class T>
inline const T* at(const unsigned char* base, std::int64_t offset) {
  return reinterpret_cast<const T*>(base + offset);
}

}  // namespace sinter
