// What states (plan/state.h) add to a bundle: the buffer's size, NAME_reset and NAME_seed in NAME.h, and in
// NAME_run the places of their tensors and the two lines that make this run's new values the next one's old
// ones.
//
// NAME_run returns from its first error on without these lines: a run that fails before a layer has written
// leaves the state as it was.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "emit/bundle.h"
#include "emit/printer.h"

namespace sinter {

// ", void* state" behind the arena of NAME_run; nothing without states.
std::string state_parameter(const StatePlan&);
// NAME.h: NAME_STATE_BYTES, what lies there, and NAME_reset.
void declare_state(Printer&, const Graph&, const StatePlan&, const BundleOptions&);
void declare_reset(Printer&, const Graph&, const StatePlan&, const BundleOptions&);
// NAME.cpp: NAME_reset, NAME_seed. Of several targets, whose states may lie elsewhere, `running` is the
// number of the part that runs, from 1; else there is one.
void write_reset(Printer&, const std::vector<BundlePart>& parts, const std::string& running,
                 const BundleOptions&);
// What E_CAPACITY says of caches, by name: how many rows have room, and what to raise; empty without them.
std::string capacity_text(const Graph&, const StatePlan&);
// NAME_run: the buffer and the count of the runs.
void begin_state(Printer&, const StatePlan&);
// ... the numbers of rows that caches have, and whether those of this run have room. `define`: told each
// extent whose variable is there now.
void define_rows(Printer&, const Graph&, const StatePlan&, const std::vector<Member>& inputs,
                 const std::string& error, const std::function<void(const Symbol&)>& define);
// ... whether the extents are those of the runs before, once their variables are there.
void check_state_extents(Printer&, const StatePlan&, const std::string& error);
// ... where the windows of rows begin; moved back where this run's have no room behind them.
void begin_windows(Printer&, const Graph&, const StatePlan&, const std::string& error);
// ... what the next run shall find.
void end_state(Printer&, const StatePlan&);
// ... the pointer to a state's tensor, as this run reads it, or writes it.
std::string state_pointer(const Graph&, const StatePlan&, const State&, bool written);

}  // namespace sinter
