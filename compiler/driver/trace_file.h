// What a program built with --trace dumped (runtime/sinter/runner.h).
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "ir/tensor.h"

namespace sinter {

// By layer and value name.
using Traced = std::map<std::pair<int, std::string>, Tensor>;

// std::runtime_error where the file is no whole trace.
Traced read_trace(const std::filesystem::path& path);

}  // namespace sinter
