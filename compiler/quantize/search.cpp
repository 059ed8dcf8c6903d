#include "quantize/search.h"

#include <algorithm>
#include <cmath>

namespace sinter::quantize {
namespace {

constexpr size_t kRuns = 400;  // that choosing the steps may take, or one of each
constexpr size_t kAtOnce = 4;  // samples whose inner tensors are in memory

// Squares of differences and of the reference.
void add_noise(const Tensor& got, const Tensor& want, double& noise, double& signal) {
  for (int64_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double w = want.real(i), d = got.real(i) - w;
    if (!std::isfinite(w) || !std::isfinite(d)) continue;
    noise += d * d, signal += w * w;
  }
}

}  // namespace

std::vector<double> noise_of_outputs(const std::vector<std::vector<Tensor>>& got,
                                     const std::vector<std::vector<Tensor>>& want) {
  const size_t outputs = got.empty() ? 0 : got[0].size();
  std::vector<double> noise(outputs), signal(outputs);
  for (size_t k = 0; k < got.size(); ++k)
    for (size_t o = 0; o < outputs; ++o) add_noise(got[k][o], want[k][o], noise[o], signal[o]);
  for (size_t o = 0; o < outputs; ++o) noise[o] /= std::max(signal[o], 1e-30);
  return noise;
}

double snr(double noise) { return noise > 0 ? std::min(200.0, -10 * std::log10(noise)) : 200; }

Search::Search(const FloatModel& model, const Layers& layers, const Twin& twin, RunTwin run, size_t samples)
    : model_(model), layers_(layers), twin_(twin), run_(std::move(run)), samples_(samples) {
  for (const auto& o : model.graph().output()) outputs_.push_back(o.name());
  setting_.steps.resize(layers.sites.size());
  values_.resize(layers.sites.size());
  chosen_.resize(layers.sites.size(), "limits");
  few_ = std::clamp<size_t>(kRuns / (4 * layers.sites.size() + 1), 1, std::min<size_t>(8, samples));
}

void Search::find_steps(std::set<std::string> kept) {
  run_floats();
  choose_steps();
  choose_corrections();
  kept_ = std::move(kept);
  setting_ = with_layers(kept_);
}

void Search::keep_floats(double least_snr, const Judge& judge) {
  rank();
  const auto clear = [&](const Setting& s) {
    const std::vector<double> noise = noise_of(s, samples_);
    return std::all_of(noise.begin(), noise.end(), [&](double n) { return snr(n) >= least_snr; });
  };
  keep_worst(judge ? judge : clear, kept_);
  noise_ = noise_of(setting_, samples_);
}

std::map<std::string, Channels> Search::channels_of(const std::vector<std::string>& tensors) const {
  std::map<std::string, Channels> channels;
  std::vector<std::string> wanted;
  wanted.reserve(tensors.size());
  for (const std::string& t : tensors) wanted.push_back(twin_.value_of(t));
  for (size_t k = 0; !tensors.empty() && k < samples_; k += kAtOnce)
    for (const std::vector<Tensor>& got :
         run_(k, std::min(kAtOnce, samples_ - k), twin_.inputs(in_floats()), wanted))
      for (size_t i = 0; i < tensors.size(); ++i) channels[tensors[i]].add(got[i]);
  return channels;
}

// The setting with all layers but those in `kept`.
Setting Search::with_layers(const std::set<std::string>& kept) const {
  Setting s = setting_;
  s.bytes.clear(), s.products.clear();
  const Layers chosen = choose_layers(model_, kept);
  for (const Site& site : chosen.sites)
    for (const std::string& t : site.tensors) s.bytes[t] = true;
  for (const Layer& l : chosen.layers)
    if (l.kind == Layer::Kind::kProduct) s.products[l.node] = true;
  return s;
}

Setting Search::in_floats() const {
  Setting s;
  s.steps = setting_.steps;
  return s;
}

void Search::run_floats() {
  std::vector<std::string> wanted = outputs_;
  std::vector<size_t> site_of;
  for (size_t s = 0; s < layers_.sites.size(); ++s)
    for (const std::string& t : layers_.sites[s].tensors) {
      wanted.push_back(twin_.value_of(t));
      site_of.push_back(s);
    }
  for (size_t k = 0; k < samples_; k += kAtOnce)
    for (std::vector<Tensor>& got :
         run_(k, std::min(kAtOnce, samples_ - k), twin_.inputs(setting_), wanted)) {
      for (size_t i = 0; i < site_of.size(); ++i) values_[site_of[i]].add(got[outputs_.size() + i]);
      got.resize(outputs_.size());
      floats_.push_back(std::move(got));
    }
  for (size_t s = 0; s < values_.size(); ++s) setting_.steps[s] = steps_of(values_[s].lo(), values_[s].hi());
}

std::vector<double> Search::noise_of(const Setting& s, size_t samples) const {
  return noise_of_outputs(run_(0, samples, twin_.inputs(s), outputs_), floats_);
}

double Search::loss_of(const Setting& s, size_t samples) const {
  double sum = 0;
  for (const double n : noise_of(s, samples)) sum += n;
  return sum;
}

double Search::decibels_of(const Setting& s, size_t samples) const {
  constexpr double kMost = 100;  // of an output that is nearly or wholly what floats make
  const std::vector<double> noise = noise_of(s, samples);
  double sum = 0;
  for (const double n : noise) sum += std::min(kMost, snr(n));
  return sum / std::max(1.0, static_cast<double>(noise.size()));
}

// Of each site the estimate that costs least where it alone is bytes.
void Search::choose_steps() {
  for (size_t site = 0; site < layers_.sites.size(); ++site) {
    const std::vector<Estimate> estimates = estimates_of(values_[site]);
    double least = 0;
    for (size_t e = 0; e < estimates.size(); ++e) {
      Setting s = setting_;
      for (const std::string& t : layers_.sites[site].tensors) s.bytes[t] = true;
      s.steps[site] = estimates[e].steps;
      const double loss = loss_of(s, few_);
      if (e > 0 && loss >= least) continue;
      least = loss;
      setting_.steps[site] = estimates[e].steps, chosen_[site] = estimates[e].name;
    }
  }
}

void Search::refine_steps() {
  double best = decibels_of(setting_, few_);
  for (size_t site = 0; site < layers_.sites.size(); ++site) {
    const std::vector<std::string>& tensors = layers_.sites[site].tensors;
    if (std::none_of(tensors.begin(), tensors.end(), [&](const auto& t) { return setting_.bytes.count(t); }))
      continue;
    for (const Estimate& e : estimates_of(values_[site])) {
      if (e.name == chosen_[site]) continue;
      Setting s = setting_;
      s.steps[site] = e.steps;
      const double decibels = decibels_of(s, few_);
      if (decibels <= best) continue;
      best = decibels;
      setting_.steps[site] = e.steps, chosen_[site] = e.name;
    }
  }
}

// What rounding the weights adds to each channel on average is taken off the bias, where that helps.
void Search::choose_corrections() {
  std::vector<std::string> wanted;
  std::vector<int> nodes;
  for (const Layer& l : layers_.layers) {
    if (l.kind != Layer::Kind::kProduct || model_.node(l.node).op_type() == "MatMul") continue;
    nodes.push_back(l.node);
    wanted.push_back(twin_.mean_of(l.node));
  }
  if (nodes.empty()) return;
  const Setting all = with_layers({});
  const size_t samples = std::min<size_t>(samples_, 32);
  std::map<int, std::vector<double>> sums;
  for (const std::vector<Tensor>& means : run_(0, samples, twin_.inputs(all), wanted))
    for (size_t i = 0; i < nodes.size(); ++i) {
      std::vector<double>& sum = sums[nodes[i]];
      sum.resize(static_cast<size_t>(means[i].size()));
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += means[i].real(static_cast<int64_t>(c));
    }
  Setting corrected = all;
  for (const auto& [node, sum] : sums)
    for (const double v : sum)
      corrected.corrections[node].push_back(static_cast<float>(-v / static_cast<double>(samples)));
  if (decibels_of(corrected, samples) > decibels_of(all, samples))
    setting_.corrections = corrected.corrections;
}

void Search::rank() {
  for (const Layer& l : layers_.layers) {
    if (l.kind == Layer::Kind::kMove) continue;
    Setting s = in_floats();
    LayerReport r;
    r.node = l.node;
    for (const int k : l.bytes) {
      const std::string& t = model_.node(l.node).input(k);
      s.bytes[t] = true;
      r.steps += (r.steps.empty() ? "" : ", ") + chosen_[static_cast<size_t>(layers_.site_of(t))];
    }
    if (l.kind == Layer::Kind::kProduct) {
      s.products[l.node] = true;
      if (const auto c = setting_.corrections.find(l.node); c != setting_.corrections.end())
        s.corrections[l.node] = c->second;
    }
    r.loss = loss_of(s, few_);
    reports_.push_back(r);
  }
}

// The fewest layers, by what they cost alone, without which it is enough.
void Search::keep_worst(const Judge& enough, const std::set<std::string>& kept) {
  std::vector<const LayerReport*> order;
  for (const LayerReport& r : reports_) order.push_back(&r);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->loss > b->loss; });
  const auto without = [&](size_t n) {
    std::set<std::string> names = kept;
    for (size_t i = 0; i < n; ++i) names.insert(label_of(model_.node(order[i]->node)));
    return names;
  };
  size_t lo = 0, hi = order.size();  // lo is not enough; hi is
  if (!enough(setting_)) {
    while (hi - lo > 1) {
      const size_t mid = (lo + hi) / 2;
      (enough(with_layers(without(mid))) ? hi : lo) = mid;
    }
    kept_ = without(hi);
    setting_ = with_layers(kept_);
  }
  for (LayerReport& r : reports_) r.kept = kept_.count(label_of(model_.node(r.node))) != 0;
}

}  // namespace sinter::quantize
