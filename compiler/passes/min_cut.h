// Minimum cut of a directed graph with integer capacities (Dinic's algorithm).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sinter {

class MinCut {
 public:
  static constexpr int64_t kInfinite = int64_t{1} << 60;

  int add_vertex();
  void add_edge(int from, int to, int64_t capacity);
  // Cuts `source` from `sink`. Afterwards on_source_side() tells each vertex's side; of several minimum cuts
  // the one with the most vertices at the source, or with the fewest. Returns the capacity of the cut.
  int64_t solve(int source, int sink, bool most_at_source);
  bool on_source_side(int v) const { return at_source_[static_cast<std::size_t>(v)]; }

 private:
  struct Edge {
    int to;
    int64_t room;
  };
  bool levels(int source, int sink);
  int64_t push(int v, int sink, int64_t room);

  std::vector<Edge> edges_;  // an edge and its reverse side by side
  std::vector<std::vector<int>> out_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
  std::vector<bool> at_source_;
};

}  // namespace sinter
