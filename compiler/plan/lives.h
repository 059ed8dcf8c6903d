// Lives: from which node to which one each Value's memory is needed, for what decides where Values lie before
// there is a plan.
//
// Values that are shown in another one's memory (plan/views.h) count as that one. Callers' buffers and
// weights take nothing, nor do Values without bound.
#pragma once
#include <map>
#include <vector>

#include "plan/decision.h"

namespace sinter {

// What a Value takes in the arena at the bounds.
int64_t arena_bytes(const Graph&, const Value*);

class Lives {
 public:
  Lives(const Graph&, const Decisions&);
  // From now on `pieces` lie in `host`, which is there as long as any of them.
  void join(const Value* host, const std::vector<const Value*>& pieces);
  // The most bytes that are alive at once.
  int64_t peak() const;
  // The number of the node that makes the Value.
  size_t made_at(const Value* v) const { return lives_.at(host_of(v)).first; }

 private:
  struct Life {
    size_t first, last;
    int64_t bytes;
  };
  const Value* host_of(const Value* v) const;
  size_t nodes_;
  std::map<const Value*, Life> lives_;            // by host
  std::map<const Value*, const Value*> host_of_;  // of those that are none themselves
};

}  // namespace sinter
