// A folder of samples, with which `sinter quantize` measures.
#pragma once
#include <string>
#include <vector>

#include "driver/options.h"

namespace sinter {

// One sample is a tensor for each input. `folder` holds a folder for each sample, with files input_0, input_1
// ... or named like the inputs; or, for a model of one input, a file for each sample; or it is itself the
// folder of one. Files are .npy, .pb, .png and .jpg; a .npy or .pb of more rows than the one input takes is
// as many samples. Sorted by name. UsageError where there is none, or one doesn't fit.
std::vector<std::vector<Tensor>> samples_in(const std::string& folder,
                                            const std::vector<DeclaredInput>& inputs,
                                            const std::vector<std::string>& image_options);

}  // namespace sinter
