// One model for several processors of one architecture as one bundle: the face of any bundle, a part for each
// processor (NAME_part_cortex_a72.cpp, compiled with its flags), equal weights once. NAME_run asks the system
// what the core has (runtime/sinter/cores.h), once, and calls the part for the most of that.
//
// Parts are compiled with different flags. So that no inline function of one is taken for another's, each has
// the runtime in a namespace of its own.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "emit/pipeline.h"

namespace sinter {

// What a core must have for a target's code, as runtime/sinter/cores.h counts it; 0 where it can't be asked
// for.
int core_level(const Target&);
// Refuses lists of which no program can tell which one it runs on. Else sorted, the least demanding first.
std::vector<const Target*> told_apart(std::vector<const Target*> targets);

// The files by name, as make_bundle's, of the same model for each target, in the order of told_apart. Their
// options get what they have of a common bundle.
std::map<std::string, std::string> make_dispatched(std::vector<PipelineModel>, const std::string& name,
                                                   WeightStore& weights);

}  // namespace sinter
