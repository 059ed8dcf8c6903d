// Equalise: channels between products are scaled against each other, so that all of them use the steps of
// their tensor.
//
// A tensor of bytes has one scale. Where one of its channels reaches 100 and another one 1, the other has
// three of 256 steps. But what lies between two products may be divided by a factor for each channel, if the
// weights and the bias of the product before it are divided too and the weights of the product behind it are
// multiplied: Relu, LeakyRelu, PRelu and pools do the same to a channel of any scale. Clip does not, as its
// limits are the same for all channels, and a sum would tie the factors of both its sides to each other.
//
// Weights have a scale for each output channel, so dividing those before costs nothing; those behind share
// a scale among all input channels, if they aren't depthwise. What is best between the two is estimated from
// what the channels held on the samples; whether the whole is better is measured (search.h).
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "quantize/layers.h"

namespace sinter::quantize {

// A product whose results reach products only, each channel by itself.
struct Link {
  struct After {
    int node = 0;
    std::string tensor;  // that it reads
  };
  int before = 0;
  int64_t channels = 0;
  std::vector<After> after;
};
std::vector<Link> links_of(const FloatModel& model, const Layers& layers);
// The tensors whose channels are to be watched for them.
std::vector<std::string> tensors_of(const std::vector<Link>& links);

// What the channels of a tensor (its axis 1) held on all samples.
class Channels {
 public:
  void add(const Tensor& t);
  size_t size() const { return of_.size(); }
  double lo(size_t c) const { return of_[c].lo; }
  double hi(size_t c) const { return of_[c].hi; }
  double mean_square(size_t c) const { return of_[c].squares / std::max(1.0, of_[c].count); }

 private:
  struct Channel {
    double lo = 0, hi = 0, squares = 0, count = 0;
  };
  std::vector<Channel> of_;
};

// By channel, at most 1: what the tensors are to be divided by. Empty where the products behind would hardly
// be nearer to what floats compute.
using Factors = std::vector<double>;
Factors factors_of(const FloatModel& model, const Link& link,
                   const std::map<std::string, Channels>& channels);

// The model that computes the same with other weights: `factors` are those of the links, in their order.
FloatModel equalised(const FloatModel& model, const std::vector<Link>& links,
                     const std::vector<Factors>& factors);

}  // namespace sinter::quantize
