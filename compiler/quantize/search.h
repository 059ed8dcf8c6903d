// Search: which steps, corrections and layers a model is quantised with, found by running its Twin on
// samples.
//
// All is measured at the model's outputs: the loss of one layer of bytes is the sum over the outputs of noise
// / signal, squares over all samples. Where all layers are bytes, settings are compared by the outputs'
// average dB, so that an output which is far off anyway doesn't decide for those that are near. Nothing is
// random, so the same samples lead to the same file.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "quantize/equalise.h"
#include "quantize/twin.h"

namespace sinter::quantize {

// Runs the twin on `count` samples from `first` on, with these inputs behind the model's own, and returns for
// each the outputs of these names.
using RunTwin = std::function<std::vector<std::vector<Tensor>>(
    size_t first, size_t count, const std::vector<Tensor>& inputs, const std::vector<std::string>& outputs)>;

// Whether a model of this setting is good enough.
using Judge = std::function<bool(const Setting&)>;

// What came of one layer of bytes.
struct LayerReport {
  int node = 0;
  double loss = 0;    // with this layer alone as bytes
  bool kept = false;  // in floats
  std::string steps;  // the estimates of what it reads
};

class Search {
 public:
  Search(const FloatModel& model, const Layers& layers, const Twin& twin, RunTwin run, size_t samples);

  // Finds steps and corrections for all layers, each step with its tensor alone as bytes. `kept` stay in
  // floats in any case.
  void find_steps(std::set<std::string> kept);
  // Tries the steps once more beside all others: what is best alone need not be best beside their errors.
  void refine_steps();
  // Where that isn't enough, keeps the layers in floats that cost most. Enough is `least_snr` (dB) at each
  // output, or what `judge` says.
  void keep_floats(double least_snr, const Judge& judge = {});
  // Of the setting, on all samples: the outputs' ratios of signal to noise, in dB, on average.
  double decibels() const { return decibels_of(setting_, samples_); }
  // What a run in floats made of the channels of these tensors, which are of sites.
  std::map<std::string, Channels> channels_of(const std::vector<std::string>& tensors) const;

  const Setting& setting() const { return setting_; }
  const std::set<std::string>& kept() const { return kept_; }
  const std::vector<LayerReport>& reports() const { return reports_; }
  // By sample: the model's outputs in floats.
  const std::vector<std::vector<Tensor>>& floats() const { return floats_; }
  std::vector<double> noise() const { return noise_; }  // by output: noise / signal of the result
  const std::vector<std::string>& output_names() const { return outputs_; }

 private:
  void run_floats();
  void choose_steps();
  void choose_corrections();
  void rank();
  void keep_worst(const Judge& enough, const std::set<std::string>& kept);
  Setting in_floats() const;  // with the steps that are chosen
  Setting with_layers(const std::set<std::string>& kept) const;
  std::vector<double> noise_of(const Setting& s, size_t samples) const;
  double loss_of(const Setting& s, size_t samples) const;
  double decibels_of(const Setting& s, size_t samples) const;

  const FloatModel& model_;
  const Layers& layers_;
  const Twin& twin_;
  const RunTwin run_;
  const size_t samples_;
  size_t few_ = 1;  // samples for what is measured often
  std::vector<std::string> outputs_;
  std::vector<std::vector<Tensor>> floats_;  // by sample: the model's outputs
  std::vector<Values> values_;               // by site
  Setting setting_;                          // steps and corrections; all layers
  std::set<std::string> kept_;
  std::vector<std::string> chosen_;  // by site: the estimate's name
  std::vector<LayerReport> reports_;
  std::vector<double> noise_;
};

// Noise / signal of each output, squares over all samples: `got` and `want` have the outputs by sample.
std::vector<double> noise_of_outputs(const std::vector<std::vector<Tensor>>& got,
                                     const std::vector<std::vector<Tensor>>& want);
// dB of a ratio noise / signal.
double snr(double noise);

}  // namespace sinter::quantize
