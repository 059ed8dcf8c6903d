// NAME.map: a bundle's files, memory, tensors and layers for other programs, as JSON.
#pragma once
#include <string>
#include <vector>

#include "emit/bundle.h"

namespace sinter {

std::string map_text(const BundlePart&, const WeightStore&, const std::vector<std::string>& files);
// Of several models; each has its tensors and layers.
// Of one model for several targets; each has its layers.
std::string map_text(const BundlePart& face, const std::vector<BundlePart>&, const WeightStore&,
                     const std::vector<std::string>& files);
std::string map_text(const SharedMemory&, const std::vector<BundlePart>&, const WeightStore&,
                     const std::vector<std::string>& files);

}  // namespace sinter
