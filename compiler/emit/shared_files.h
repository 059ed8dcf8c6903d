// What the files of a bundle need that is not one model's alone: the weights and the number that code and
// weights know each other by, NAME.cmake, custom operators' sources and the runtime headers.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emit/bundle.h"

namespace sinter {

using BundleFiles = std::map<std::string, std::string>;

// A number that other bytes have not; it tells compiles apart, no more.
uint64_t number_of(std::string_view bytes);

// NAME.weights and, unless the caller hands them over, the source that puts them into a program. Refuses
// weights that are too many for a C compiler. `weights_end` and `weights_tag` of the options are set.
void add_weights(BundleFiles&, WeightStore&, const BundleOptions&);

// What custom operators bring along: their files, and a unit NAME_part… for each source, so that whoever
// compiles NAME*.cpp compiles them. Refuses two files of one name.
void add_custom(BundleFiles&, const std::vector<const Plan*>&, const BundleOptions&);

// NAME.cmake, which lists the other files that are there by now. `of_files`: what sources are for another
// target than `target`, and so compiled with its flags.
void add_cmake(BundleFiles&, const Target& target, const std::map<std::string, const Target*>& of_files,
               const BundleOptions&);

// The runtime headers that the files' includes reach.
void add_runtime(BundleFiles&);

// The names of the files and this one, sorted.
std::vector<std::string> names_with(const std::string& name, const BundleFiles&);

}  // namespace sinter
