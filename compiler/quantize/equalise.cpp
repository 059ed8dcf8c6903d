#include "quantize/equalise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace sinter::quantize {
namespace {

constexpr double kLeastFactor = 1.0 / 1024;  // what was that small on the samples may be larger elsewhere
constexpr double kWorthIt = 0.8;             // of the expected noise: 1 dB

// Where the channels are in a product's weights.
struct Weights {
  Tensor values;
  std::string op;
  int64_t groups = 1, outputs = 0, inputs = 0, taps = 1;  // inputs: of all groups

  int64_t output(int64_t i) const {
    if (op == "ConvTranspose" || op == "Gemm") return i / taps % outputs;
    return i / (inputs / groups * taps);
  }
  int64_t input(int64_t i) const {
    if (op == "ConvTranspose" || op == "Gemm") return i / (outputs * taps);
    return output(i) / (outputs / groups) * (inputs / groups) + i / taps % (inputs / groups);
  }
};

// Nothing where channels aren't told by an index of the weights.
std::optional<Weights> weights_of(const FloatModel& m, const onnx::NodeProto& n) {
  Weights w;
  w.op = n.op_type();
  if (w.op == "MatMul") return {};  // its columns may be any axis of what reads them
  w.values = m.constant(n.input(1));
  if (w.op == "Gemm") {
    const bool transposed = attribute(n, "transB", int64_t{0}) != 0;
    if (transposed) w.op = "Conv";  // of one tap
    w.outputs = w.values.dim(transposed ? 0 : 1), w.inputs = w.values.dim(transposed ? 1 : 0);
    return w;
  }
  w.groups = attribute(n, "group", int64_t{1});
  for (int64_t d = 2; d < w.values.rank(); ++d) w.taps *= w.values.dim(d);
  if (w.op == "ConvTranspose") {
    if (w.groups != 1) return {};
    w.inputs = w.values.dim(0), w.outputs = w.values.dim(1);
  } else {
    w.outputs = w.values.dim(0), w.inputs = w.values.dim(1) * w.groups;
  }
  if (w.groups < 1 || w.outputs % w.groups) return {};
  return w;
}

// What does the same to a channel of any positive scale, and to each by itself.
bool keeps_scales(const onnx::NodeProto& n) {
  if (!n.domain().empty() && n.domain() != "ai.onnx") return false;
  const std::string& op = n.op_type();
  return n.output_size() == 1 && (op == "Relu" || op == "LeakyRelu" || op == "PRelu" || op == "MaxPool" ||
                                  op == "AveragePool" || op == "GlobalAveragePool");
}

class Finder {
 public:
  Finder(const FloatModel& m, const Layers& layers) : m_(m) {
    for (const Layer& l : layers.layers)
      if (l.kind == Layer::Kind::kProduct) products_.insert(l.node);
  }

  std::vector<Link> find() const {
    std::vector<Link> links;
    for (const int p : products_) {
      const auto w = weights_of(m_, m_.node(p));
      if (!w || !scalable_bias(m_.node(p), w->outputs)) continue;
      Link link{p, w->outputs, {}};
      if (follow(m_.node(p).output(0), link) && !link.after.empty()) links.push_back(link);
    }
    return links;
  }

 private:
  bool scalable_bias(const onnx::NodeProto& n, int64_t channels) const {
    if (n.input_size() < 3 || n.input(2).empty()) return true;
    const Tensor bias = m_.constant(n.input(2));
    return bias.size() == channels && bias.rank() > 0 && bias.dim(bias.rank() - 1) == channels;
  }

  bool follow(const std::string& tensor, Link& link) const {
    if (m_.is_read_elsewhere(tensor)) return false;
    for (const int i : m_.consumers(tensor)) {
      const onnx::NodeProto& n = m_.node(i);
      if (std::count(n.input().begin(), n.input().end(), tensor) != 1 || n.input(0) != tensor) return false;
      if (products_.count(i)) {
        const auto w = weights_of(m_, n);
        if (!w || w->inputs != link.channels) return false;
        link.after.push_back({i, tensor});
      } else if (!keeps_scales(n) || !follow(n.output(0), link)) {
        return false;
      }
    }
    return true;
  }

  const FloatModel& m_;
  std::set<int> products_;
};

// What rounding adds to a product's results, as a share of them, if its input's channels are divided and its
// weights multiplied by factors.
class Noise {
 public:
  Noise(const Weights& w, const Channels& x) : x_(x), outputs_(w.outputs), taps_(w.taps) {
    for (int64_t i = 0; i < w.values.size(); ++i) {  // taps are innermost
      if (i % taps_ == 0) pairs_.push_back({w.output(i), static_cast<size_t>(w.input(i)), 0, 0});
      Pair& p = pairs_.back();
      const double v = w.values.real(i);
      p.most = std::max(p.most, std::abs(v)), p.squares += v * v;
    }
    for (const Pair& p : pairs_) signal_ += p.squares * x.mean_square(p.input);
  }

  double of(const Factors& s) const {
    double lo = 0, hi = 0;
    for (size_t c = 0; c < s.size(); ++c)
      lo = std::min(lo, x_.lo(c) / s[c]), hi = std::max(hi, x_.hi(c) / s[c]);
    std::vector<double> most(static_cast<size_t>(outputs_)), read(static_cast<size_t>(outputs_));
    double weights = 0;
    for (const Pair& p : pairs_) {
      const auto o = static_cast<size_t>(p.output);
      most[o] = std::max(most[o], p.most * s[p.input]);
      read[o] += static_cast<double>(taps_) * x_.mean_square(p.input) / (s[p.input] * s[p.input]);
      weights += p.squares * s[p.input] * s[p.input];
    }
    const double step = (hi - lo) / 255;
    double noise = step * step * weights;
    for (size_t o = 0; o < most.size(); ++o) noise += most[o] / 127 * (most[o] / 127) * read[o];
    return noise / std::max(signal_, 1e-30);
  }

  // The greatest weight of each input channel, where the greatest of each output channel is 1.
  std::vector<double> greatest() const {
    std::vector<double> rows(static_cast<size_t>(outputs_)), most(x_.size());
    for (const Pair& p : pairs_) {
      double& row = rows[static_cast<size_t>(p.output)];
      row = std::max(row, p.most);
    }
    for (const Pair& p : pairs_)
      if (const double row = rows[static_cast<size_t>(p.output)]; row > 0)
        most[p.input] = std::max(most[p.input], p.most / row);
    return most;
  }

 private:
  struct Pair {  // the weights between two channels
    int64_t output;
    size_t input;
    double most, squares;
  };
  const Channels& x_;
  const int64_t outputs_, taps_;
  std::vector<Pair> pairs_;
  double signal_ = 0;
};

// The greatest becomes 1, the least no less than kLeastFactor.
void normalise(Factors& s) {
  const double most = *std::max_element(s.begin(), s.end());
  for (double& f : s) f = most > 0 ? std::max(f / most, kLeastFactor) : 1;
}

void scale(Tensor& t, const Factors& s, const std::function<int64_t(int64_t)>& channel, bool divide) {
  for (int64_t i = 0; i < t.size(); ++i) {
    const double f = s[static_cast<size_t>(channel(i))];
    t.set_real(i, divide ? t.real(i) / f : t.real(i) * f);
  }
}

}  // namespace

std::vector<Link> links_of(const FloatModel& model, const Layers& layers) {
  return Finder(model, layers).find();
}

std::vector<std::string> tensors_of(const std::vector<Link>& links) {
  std::set<std::string> tensors;
  for (const Link& l : links)
    for (const Link::After& a : l.after) tensors.insert(a.tensor);
  return {tensors.begin(), tensors.end()};
}

void Channels::add(const Tensor& t) {
  if (t.rank() < 2 || t.dim(1) == 0) return;
  const int64_t channels = t.dim(1);
  of_.resize(static_cast<size_t>(channels));
  int64_t inner = 1;
  for (int64_t d = 2; d < t.rank(); ++d) inner *= t.dim(d);
  for (int64_t i = 0; i < t.size(); ++i) {
    const double x = double{t.as<float>()[i]};
    if (!std::isfinite(x)) continue;
    Channel& c = of_[static_cast<size_t>(i / inner % channels)];
    c.lo = std::min(c.lo, x), c.hi = std::max(c.hi, x), c.squares += x * x, ++c.count;
  }
}

// Of the channels' ranges and of the weights behind them, powers are tried: all of the range makes channels
// even and leaves weights uneven, a half of both lies between.
Factors factors_of(const FloatModel& model, const Link& link,
                   const std::map<std::string, Channels>& channels) {
  const auto n = static_cast<size_t>(link.channels);
  std::vector<Noise> noises;
  std::vector<double> ranges(n), weights(n);
  for (const Link::After& a : link.after) {
    const auto at = channels.find(a.tensor);
    if (at == channels.end() || at->second.size() != n) return {};
    noises.emplace_back(*weights_of(model, model.node(a.node)), at->second);
    const std::vector<double> greatest = noises.back().greatest();
    for (size_t c = 0; c < n; ++c) {
      ranges[c] = std::max(ranges[c], at->second.hi(c) - at->second.lo(c));
      weights[c] = std::max(weights[c], greatest[c]);
    }
  }
  const auto noise = [&](const Factors& s) {
    double sum = 0;
    for (const Noise& of : noises) sum += of.of(s);
    return sum;
  };
  Factors best;
  double least = kWorthIt * noise(Factors(n, 1.0));
  for (const double of_range : {0.25, 0.5, 0.75, 1.0})
    for (const double of_weights : {0.0, 0.25, 0.5}) {
      Factors s(n, 0);
      const double most = *std::max_element(ranges.begin(), ranges.end());
      for (size_t c = 0; c < n; ++c)
        if (ranges[c] > 0 && weights[c] > 0)
          s[c] = std::pow(ranges[c] / most, of_range) / std::pow(weights[c], of_weights);
      const double greatest = *std::max_element(s.begin(), s.end());
      for (double& f : s)
        if (f == 0) f = greatest;  // nothing is known of it, or nothing reads it
      normalise(s);
      if (const double e = noise(s); e < least) least = e, best = s;
    }
  return best;
}

FloatModel equalised(const FloatModel& model, const std::vector<Link>& links,
                     const std::vector<Factors>& factors) {
  std::map<std::pair<int, int>, Tensor> constants;  // by node and input
  const auto changed = [&](int node, int input) -> Tensor& {
    const auto [at, fresh] = constants.try_emplace({node, input});
    if (fresh) at->second = model.constant(model.node(node).input(input));
    return at->second;
  };
  for (size_t l = 0; l < links.size(); ++l) {
    const Factors& s = factors[l];
    if (s.empty()) continue;
    const onnx::NodeProto& before = model.node(links[l].before);
    const Weights made = *weights_of(model, before);
    scale(
        changed(links[l].before, 1), s, [&](int64_t i) { return made.output(i); }, true);
    if (before.input_size() > 2 && !before.input(2).empty())
      scale(
          changed(links[l].before, 2), s, [&](int64_t i) { return i % links[l].channels; }, true);
    for (const Link::After& a : links[l].after) {
      const Weights read = *weights_of(model, model.node(a.node));
      scale(
          changed(a.node, 1), s, [&](int64_t i) { return read.input(i); }, false);
    }
  }
  return model.with_constants(constants);
}

}  // namespace sinter::quantize
