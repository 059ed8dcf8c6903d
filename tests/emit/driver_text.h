// The program that runs generated code for a GeneratedBatch: for each model it reads inputs from a file, runs
// the model between guards and writes what it gave.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter {

// The program's function for the model `id`: all its data sets, alone or with threads too.
std::string driver_case(const Graph& g, const std::string& id, size_t data_sets, bool threads);
// The whole program: `driver ID INPUTS OUTPUTS`; `cases` are the functions of all ids.
std::string driver_text(const std::vector<std::string>& ids, const std::string& cases, bool threads);

}  // namespace sinter
