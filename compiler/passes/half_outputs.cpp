// hold_outputs: each layer's own error may be small and an output's great, where the net multiplies it: a
// sigmoid of fifty times a difference, a dozen layers behind each other. So the whole net is evaluated in
// halves, and where an output is further off than kSlack times the limit of a layer, layers become floats.
//
// Which: the layers in their order are cut into pieces, and each piece's part in the error is what the
// outputs are off where it alone is in halves, by the first sample. The pieces of the largest parts are cut
// further, down to single layers; then as few as suffice become floats, those of the largest parts first. All
// of that is a bounded number of evaluations, and always the same ones.
#include "passes/half_outputs.h"

#include <algorithm>

namespace sinter {
namespace {

constexpr double kSlack = 1.2;
constexpr size_t kFirstPieces = 8, kMostPieces = 20;
constexpr double kSmallPart = 0.25;  // of the limit: a piece that is not worth cutting

struct Piece {
  size_t first, end;  // of the layers
  double part = 0;
};

class Search {
 public:
  Search(const Graph& g, const PassOptions& options, const HalfErrors& errors)
      : g_(g), options_(options), errors_(errors), limit_(kSlack * options.half_error) {}

  HalfOutputs run() {
    const HalfChoice all = chosen();
    found_.errors = of_outputs(all.layers, options_.samples.size());
    if (all.layers.empty() || worst(found_.errors) <= limit_) return std::move(found_);
    for (const auto& n : g_.nodes)
      if (all.layers.count(n.get()) != 0) layers_.push_back(n.get());
    cut();
    take();
    return std::move(found_);
  }

 private:
  HalfChoice chosen() const {
    return choose_halves(g_, options_, [&](const Node& n) {
      const auto e = errors_.layers.find(&n);
      return (e != errors_.layers.end() && e->second > options_.half_error) || found_.floats.count(&n) != 0;
    });
  }

  std::vector<double> of_outputs(const std::unordered_map<const Node*, Halves>& layers,
                                 size_t samples) const {
    std::vector<double> off(g_.outputs.size(), -1);
    for (size_t s = 0; s < samples; ++s) {
      const std::vector<Tensor> got = evaluate_in_halves(g_, options_.samples[s], layers);
      for (size_t i = 0; i < got.size(); ++i)
        off[i] = std::max(off[i], relative_error(got[i], errors_.outputs[s][i]));
    }
    return off;
  }
  static double worst(const std::vector<double>& errors) {
    return errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end());
  }

  Piece measured(size_t first, size_t end) const {
    std::unordered_map<const Node*, Halves> alone;
    for (size_t i = first; i < end; ++i) alone[layers_[i]] = Halves::kComputed;
    return {first, end, worst(of_outputs(alone, 1))};
  }

  void cut() {
    const size_t count = std::min(kFirstPieces, layers_.size());
    for (size_t i = 0; i < count; ++i)
      pieces_.push_back(measured(layers_.size() * i / count, layers_.size() * (i + 1) / count));
    while (pieces_.size() < kMostPieces) {
      Piece* most = nullptr;
      for (Piece& p : pieces_)
        if (p.end - p.first > 1 && p.part > kSmallPart * limit_ && (!most || p.part > most->part)) most = &p;
      if (!most) break;
      const Piece whole = *most;
      const size_t middle = (whole.first + whole.end) / 2;
      *most = measured(whole.first, middle);
      pieces_.push_back(measured(middle, whole.end));
    }
    std::stable_sort(pieces_.begin(), pieces_.end(),
                     [](const Piece& a, const Piece& b) { return a.part > b.part; });
  }

  // The fewest pieces, of the largest parts, whose layers are to be floats.
  void take() {
    const auto with = [&](size_t count) {
      found_.floats.clear();
      for (size_t p = 0; p < count; ++p)
        for (size_t i = pieces_[p].first; i < pieces_[p].end; ++i) found_.floats.insert(layers_[i]);
      found_.errors = of_outputs(chosen().layers, options_.samples.size());
      return worst(found_.errors) <= limit_;
    };
    size_t few = 0, enough = pieces_.size();
    while (enough - few > 1) {
      const size_t middle = (few + enough) / 2;
      (with(middle) ? enough : few) = middle;
    }
    with(enough);
  }

  const Graph& g_;
  const PassOptions& options_;
  const HalfErrors& errors_;
  const double limit_;
  std::vector<const Node*> layers_;  // in halves, in their order
  std::vector<Piece> pieces_;
  HalfOutputs found_;
};

}  // namespace

HalfOutputs hold_outputs(const Graph& g, const PassOptions& options, const HalfErrors& errors) {
  return Search(g, options, errors).run();
}

}  // namespace sinter
