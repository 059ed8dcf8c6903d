// Candidate: a way to compute a node, as data: by which kernel, cut how, and what it costs. Choice: what
// choose() made of all that a node has.
//
// A kernel lists its ways with their modelled costs (Kernel::ways); choose() compares all of them, of all
// kernels, in one place, and asks for the error of those only that could win. The budget of weights chooses
// among the same candidates (plan/small_weights.cpp), and `inspect` prints them.
#pragma once
#include <any>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sinter {

struct Kernel;

struct Candidate {
  const Kernel* kernel = nullptr;
  std::any way{};            // the kernel's own record of it, which its emit() asks for; empty: it has one
  std::string text{};        // "4 x 4 outputs, positions outermost"
  double cycles = 0;         // modelled, of one core
  int64_t weight_bytes = 0;  // packed
  // How many times as fast as any other it has to be: what it costs beside time (errors, room in caches).
  double margin = 1;
  bool tuned = false;     // a measurement has chosen it: it goes before all that are not
  double error = 0;       // of the largest output, beside what float32 makes; 0: none, or not measured
  bool measured = true;   // `error`, and what follows from it
  std::string why_not{};  // what forbids it; empty: nothing
  double price() const { return cycles * margin; }
  // The kernel's record, where it is a T.
  template <class T>
  std::optional<T> as() const {
    const T* const record = std::any_cast<T>(&way);
    return record ? std::optional<T>(*record) : std::nullopt;
  }
  // Says that `error` forbids it.
  void forbid_error();
};

struct Choice {
  // The one taken first, then the others in the order in which they were compared. Behind the first kernel
  // without a model of its cost, which takes infinite cycles, none is listed. Empty: no
  // kernel accepts the node.
  std::vector<Candidate> candidates;
  const Kernel* kernel() const { return candidates.empty() ? nullptr : candidates.front().kernel; }
};

// A way's weights and cycles, as the budget of weights compares them.
struct WeightOffer {
  int64_t bytes;
  double cycles;
};
// The candidate that is taken, then those of less weights, a plain kernel's last, where the one taken is of a
// kernel that spends weights for speed; else none.
std::vector<WeightOffer> weight_offers(const Choice&);

}  // namespace sinter
