// squeeze_excite: of each sample the means of the channels, the two products with vectors, lanes along their
// results, and then every element by its channel's factor. Means, squeezed channels and factors are a few KB
// of scratch; the sample is read twice and may be overwritten. Where a vector holds several pixels, the
// sample is one line of whole vectors: a pixel at a time its loads would wait for the masked stores of the
// pixel before. Threads share the pixels, as the layers around this one do, so that each reads what it has
// written; the sums of so many pixels are added in one order, whatever threads there are. Large products are
// shared, too.
#include "ops/reductions/squeeze_excite.h"

#include <algorithm>

#include "emit/epilogue.h"
#include "kernels/nest.h"
#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "squeeze_excite" && std::string_view(n.op->domain) == "sinter" &&
         n.inputs[kSqueezeWeights]->data && n.inputs[kExciteWeights]->data;
}

class Writer {
 public:
  explicit Writer(LayerWriter& w) : w_(w), n_(w.node), last_(is_channels_last(n_.attributes)) {
    const Tensor& squeeze = *n_.inputs[kSqueezeWeights]->data;
    squeezed_ = squeeze.dim(0);
    channels_ = squeeze.dim(1);
    for (const Dim& d : spatial_of(n_.attributes, n_.inputs[kSeX]->type.shape)) spatial_.push_back(d);
  }

  void write() {
    const Shape& shape = n_.inputs[kSeX]->type.shape;
    w_.flops(product(shape) * Dim(2) + shape[0] * Dim(4 * squeezed_ * channels_));
    w_.summary(fmt::format("squeeze and excite {}, {} -> {} -> {} channels{}", text(n_.inputs[kSeX]->type),
                           channels_, squeezed_, channels_,
                           n_.epilogue ? ", then " + text(*n_.epilogue) : ""));
    w_.include("sinter/math.h");
    w_.include("sinter/mac.h");
    const std::string x = w_.input(kSeX), means = vector("means", channels_),
                      squeezed = vector("squeezed", squeezed_), factors = vector("factors", channels_);
    const bool fused = vector_epilogue(n_);
    std::optional<PlainOutput> plain;
    if (fused) {
      epilogue_.emplace(w_, n_.outputs[0]->type.shape);
      w_.may_overwrite(kSeX);
    } else {
      plain.emplace(w_, DType::kF32);
    }
    const std::string y = fused ? w_.output(0) : plain->pointer(), area = w_.dim(product(spatial_)),
                      sample = times("n", w_.dim(product(spatial_) * Dim(channels_)));
    w_.out.put(loop_text("n", w_.dim(shape[0])));
    w_.out.line("const float* const from = {};", plus(x, sample));
    w_.out.line("float* const to = {};", plus(y, sample));
    flat_ = last_ && channels_ < w_.target.lanes && w_.target.lanes % channels_ == 0 &&
            (!epilogue_ || epilogue_->empty());
    if (flat_)
      means_of_pixels(means);
    else if (last_)
      means_of_columns(means, area);
    else
      means_of_lines(means, area);
    dense("squeeze", kSqueezeWeights, kSqueezeBias, means, squeezed);
    dense("excite", kExciteWeights, kExciteBias, squeezed, factors);
    if (flat_)
      scale_pixels(factors);
    else
      scale(factors);
    w_.out.line("}}");
    if (plain) plain->finish();
  }

 private:
  int64_t padded(int64_t n) const { return (n + w_.target.lanes - 1) / w_.target.lanes * w_.target.lanes; }
  std::string vector(const std::string& name, int64_t n) { return w_.scratch(name, "float", padded(n)); }
  void each(const std::string& line) {
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {}", line);
  }
  static constexpr int kVectors = 4;    // of sums at a time
  static constexpr double kTwice = 10;  // flops in the time of an element that is added up and later scaled
  // Pixels that are summed at a time: a single chain over a whole picture would lose digits, and several
  // threads would have nothing to share. Their number is the same for any number of threads.
  int64_t chunk() const {
    const Dim area = product(spatial_);
    return area.is_static() ? std::clamp<int64_t>((area.value() + 7) / 8, 16, 256) : 256;
  }
  // The loop over `extent` of v, `step` of them a turn; the caller closes it, and the parts behind it.
  void open_loop(const std::string& v, const Dim& extent, int64_t step) {
    const LayerWriter::Turns turns =
        w_.open_parts(extent.is_static() ? w_.dim(ceildiv(extent, Dim(step))) : "1", kTwice);
    if (turns.first == "0") return w_.out.put(loop_text(v, w_.dim(extent)));
    w_.include("sinter/dims.h");
    w_.out.line("const std::int64_t end = sinter::min_of({} * {}, std::int64_t{{{}}});", turns.end, step,
                w_.dim(extent));
    w_.out.put(loop_text(v, LayerWriter::Turns{fmt::format("{} * {}", turns.first, step), "end"}));
  }
  std::string count() {
    const Dim d = product(spatial_);
    return d.is_static() ? float_literal(static_cast<double>(d.value()))
                         : fmt::format("static_cast<float>({})", w_.dim(d));
  }

  // close_columns over the channels, but with the last whole vectors at once: a chain of their own each would
  // wait for its additions.
  void close_channels(const char* name, bool vectors, bool rest) {
    w_.out.put("};");
    const int64_t lanes = w_.target.lanes, whole = channels_ / lanes, wide = whole / kVectors * kVectors;
    if (vectors && wide > 0)
      w_.out.line("for (std::int64_t c = 0; c < {0}; c += {1} * kLanes) {2}(Int<{1}>(), c, kLanes);",
                  wide * lanes, kVectors, name);
    if (vectors && wide < whole) w_.out.line("{}(Int<{}>(), {}, kLanes);", name, whole - wide, wide * lanes);
    if (rest && channels_ % lanes != 0)
      w_.out.line("{}(Int<1>(), {}, {});", name, whole * lanes, channels_ % lanes);
  }

  void means_of_columns(const std::string& means, const std::string& area) {
    w_.include("sinter/dims.h");
    const Dim chunks = ceildiv(product(spatial_), Dim(chunk()));
    const std::string sums = shared_sums(chunks, area);
    open_columns(w_, "average");
    w_.out.line("f32v sum[kVectors]{};", sums.empty() ? ", part[kVectors]" : "");
    each("sum[v] = zero();");
    if (sums.empty()) {
      w_.out.line("for (std::int64_t first = 0; first < {}; first += {}) {{", area, chunk());
      chunk_sums(area);
      each("sum[v] = add(sum[v], part[v]);");
    } else {
      w_.out.put(loop_text("i", w_.dim(chunks)));
      each(fmt::format("sum[v] = add(sum[v], load({} + i * {} + c + v * kLanes));", sums, padded(channels_)));
    }
    w_.out.line("}}");
    each(fmt::format("store_lanes({} + c + v * kLanes, div(sum[v], splat({})), lanes);", means, count()));
    close_channels("average", true, true);
  }
  // Where threads share the chunks: the scratch [chunks][padded channels] that their sums are in, else "".
  std::string shared_sums(const Dim& chunks, const std::string& area) {
    const LayerWriter::Turns turns = w_.open_parts(chunks.is_static() ? w_.dim(chunks) : "1", kTwice);
    std::string sums;
    if (turns.first != "0") {
      sums = w_.scratch("sums", "float", chunks.value() * padded(channels_));
      w_.out.put(loop_text("i", turns));
      w_.out.line("const std::int64_t first = i * {};", chunk());
      open_columns(w_, "add_up");
      w_.out.line("f32v part[kVectors];");
      chunk_sums(area);
      each(fmt::format("store({} + i * {} + c + v * kLanes, part[v]);", sums, padded(channels_)));
      close_channels("add_up", true, true);
      w_.out.line("}}");
    }
    w_.close_parts();
    return sums;
  }
  // part[v]: the sums of the pixels from `first` on.
  void chunk_sums(const std::string& area) {
    w_.out.line("const std::int64_t end = sinter::min_of(std::int64_t{{{}}}, first + {});", area, chunk());
    each("part[v] = zero();");
    w_.out.line("for (std::int64_t k = first; k < end; ++k) {{");
    each(
        fmt::format("part[v] = add(part[v], load_lanes(from + k * {} + c + v * kLanes, lanes));", channels_));
    w_.out.line("}}");
  }

  // Lane l of a vector belongs to channel l % channels_.
  void means_of_pixels(const std::string& means) {
    w_.include("sinter/dims.h");
    const std::string n = w_.dim(product(spatial_) * Dim(channels_));
    w_.out.line("constexpr std::int64_t kVectors = 4, kStep = kVectors * kLanes;");
    w_.out.line("f32v line_sums = zero();");
    w_.out.line("std::int64_t i = 0;");
    w_.out.line("while (i + kStep <= {}) {{", n);
    w_.out.line("f32v part[kVectors];");
    each("part[v] = zero();");
    w_.out.line("const std::int64_t end = sinter::min_of(std::int64_t{{{}}}, i + 256 * kStep);", n);
    w_.out.line("for (; i + kStep <= end; i += kStep) {{");
    each("part[v] = add(part[v], load(from + i + v * kLanes));");
    w_.out.line("}}");
    w_.out.line("line_sums = add(line_sums, add(add(part[0], part[1]), add(part[2], part[3])));");
    w_.out.line("}}");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) line_sums = add(line_sums, load(from + i));", n);
    w_.out.line("store({}, line_sums);", means);
    w_.out.line("for (; i < {}; ++i) {}[i % kLanes] += from[i];", n, means);
    w_.out.line("for (int c = 0; c < {}; ++c) {{", channels_);
    w_.out.line("for (int l = c + {0}; l < kLanes; l += {0}) {1}[c] += {1}[l];", channels_, means);
    w_.out.line("{0}[c] = {0}[c] / {1};", means, count());
    w_.out.line("}}");
  }
  void scale_pixels(const std::string& factors) {
    const std::string n = w_.dim(product(spatial_) * Dim(channels_));
    w_.out.line("for (int l = {0}; l < kLanes; ++l) {1}[l] = {1}[l - {0}];", channels_, factors);
    w_.out.line("const f32v factor = load({});", factors);
    w_.out.line("std::int64_t at = 0;");
    w_.out.line("for (; at + kLanes <= {}; at += kLanes) store(to + at, mul(load(from + at), factor));", n);
    w_.out.line("for (; at < {}; ++at) to[at] = from[at] * {}[at % kLanes];", n, factors);
  }

  void means_of_lines(const std::string& means, const std::string& area) {
    open_loop("channel", Dim(channels_), 1);
    w_.out.line("const float* const line = from + channel * {};", parenthesized(area));
    w_.out.line("f32v sums[4] = {{zero(), zero(), zero(), zero()}};");
    w_.out.line("std::int64_t i = 0;");
    w_.out.line("for (; i + 4 * kLanes <= {}; i += 4 * kLanes) {{", area);
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < 4; ++v) sums[v] = add(sums[v], load(line + i + v * kLanes));");
    w_.out.line("}}");
    w_.out.line("for (; i + kLanes <= {}; i += kLanes) sums[0] = add(sums[0], load(line + i));", area);
    w_.out.line("float sum = hsum(add(add(sums[0], sums[1]), add(sums[2], sums[3])));");
    w_.out.line("for (; i < {}; ++i) sum += line[i];", area);
    w_.out.line("{}[channel] = sum / {};", means, count());
    w_.out.line("}}");
    w_.close_parts();
  }
  static std::string parenthesized(const std::string& t) {
    return t.find(' ') == std::string::npos ? t : "(" + t + ")";
  }

  // W as panels of up to kVectors vectors of results, in each [from][results]; 0 beyond the last result.
  std::vector<float> panels(const Tensor& w) const {
    const int64_t count = w.dim(0), depth = w.dim(1), width = padded(count),
                  wide = kVectors * w_.target.lanes;
    std::vector<float> packed(static_cast<size_t>(width * depth));
    size_t at = 0;
    for (int64_t first = 0; first < width; first += wide)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t i = first; i < std::min(width, first + wide); ++i, ++at)
          if (i < count) packed[at] = static_cast<float>(w.real(i * depth + k));
    return packed;
  }

  // to = activation(W from + bias). As many chains of sums as hide how long an addition takes.
  // Threads share blocks of kVectors vectors of results, where reading the weights takes longer than waiting.
  void dense(const char* name, size_t weights, size_t bias, const std::string& from, const std::string& to) {
    constexpr int64_t kShared = 128 << 10;  // bytes
    const Tensor& w = *n_.inputs[weights]->data;
    const bool shared = w.size() * static_cast<int64_t>(sizeof(float)) >= kShared;
    const LayerWriter::Turns turns =
        w_.open_parts(shared ? w_.dim(column_turns(w_, Dim(w.dim(0)), kVectors)) : "1");
    const int64_t count = w.dim(0), depth = w.dim(1), width = padded(count);
    std::vector<float> start(static_cast<size_t>(width));
    for (int64_t i = 0; n_.input(bias) && i < count; ++i)
      start[static_cast<size_t>(i)] = static_cast<float>(n_.inputs[bias]->data->real(i));
    const std::string p =
        w_.weights(std::string(name) + "_weights", panels(w),
                   fmt::format("{} panels of [{}][up to {}]", name, depth, kVectors * w_.target.lanes));
    const std::string b = w_.weights(std::string(name) + "_bias", start, fmt::format("[{}]", width));
    w_.out.line(
        "const auto {} = [&](auto vectors, const float* panel, std::int64_t c) "
        "__attribute__((always_inline)) {{",
        name);
    w_.out.line("constexpr int kVectors = vectors.value, kChains = kVectors > 3 ? 2 : 4;");
    w_.out.line("f32v sums[kChains][kVectors];");
    const auto each_chain = [&](const std::string& line) {
      w_.out.line("SINTER_UNROLL");
      w_.out.line("for (int j = 0; j < kChains; ++j) {{");
      each(line);
      w_.out.line("}}");
    };
    each_chain(fmt::format("sums[j][v] = j == 0 ? load({} + c + v * kLanes) : zero();", b));
    w_.out.line("constexpr std::int64_t kWhole = {} / kChains * kChains;", depth);
    w_.out.line("for (std::int64_t k = 0; k < kWhole; k += kChains) {{");
    each_chain(fmt::format(
        "sums[j][v] = fma(splat({}[k + j]), load(panel + ((k + j) * kVectors + v) * kLanes), sums[j][v]);",
        from));
    w_.out.line("}}");
    w_.out.line("for (std::int64_t k = kWhole; k < {}; ++k) {{", depth);
    each(fmt::format("sums[0][v] = fma(splat({}[k]), load(panel + (k * kVectors + v) * kLanes), sums[0][v]);",
                     from));
    w_.out.line("}}");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w_.out.line("f32v acc = sums[0][v];");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int j = 1; j < kChains; ++j) acc = add(acc, sums[j][v]);");
    const std::string result = expr_text(
        activation_of(n_.attributes.text(name, "acc")), TextMode::kVector, [](int) { return std::string(); },
        "acc", w_.out);
    w_.out.line("store({} + c + v * kLanes, {});", to, result);
    w_.out.line("}}");
    w_.out.put("};");
    const int64_t lanes = w_.target.lanes, block = kVectors * lanes, wide = width / block * block;
    const bool parts = turns.first != "0";
    const std::string first = parts ? fmt::format("{} * {}", turns.first, block) : "0",
                      end = parts ? fmt::format("sinter::min_of({} * {}, std::int64_t{{{}}})", turns.end,
                                                block, wide)
                                  : std::to_string(wide);
    if (wide > 0)
      w_.out.line("for (std::int64_t c = {5}; c < {0}; c += {1} * kLanes) {2}(Int<{1}>(), {3} + c * {4}, c);",
                  end, kVectors, name, p, depth, first);
    if (wide < width)
      w_.out.line("{}{}(Int<{}>(), {} + {}, {});",
                  parts ? fmt::format("if ({} * {} > {}) ", turns.end, block, wide) : "", name,
                  (width - wide) / lanes, p, wide * depth, wide);
    w_.close_parts();
  }

  // The innermost axis in vectors, the others around it; neighbours of the picture as one where the epilogue
  // lets them. The channels that don't fill a vector in a loop of their own: their masked stores reach into
  // the next pixel, which would have to wait for them.
  void scale(const std::string& factors) {
    const size_t first = last_ ? 1 : 2, end = first + spatial_.size();
    const bool merged = !epilogue_ || epilogue_->empty() || epilogue_->can_merge(first, end - 1);
    Shape axes = merged ? Shape{product(spatial_)} : spatial_;
    axes.insert(last_ ? axes.end() : axes.begin(), Dim(channels_));
    const bool whole = !last_ || channels_ >= w_.target.lanes;
    if (whole) scale(factors, true, axes, merged);
    if (last_ && channels_ % w_.target.lanes != 0) scale(factors, false, axes, merged);
  }
  void scale(const std::string& factors, bool whole, const Shape& axes, bool merged) {
    const size_t rank = spatial_.size() + 2, end = (last_ ? 1 : 2) + spatial_.size();
    std::vector<std::string> own;
    std::string at = "0";
    for (size_t a = 0; a + 1 < axes.size(); ++a) {
      own.push_back(fmt::format("i{}", a));
      if (a == 0)
        open_loop(own.back(), axes[a], last_ && merged ? chunk() : 1);
      else
        w_.out.put(loop_text(own.back(), w_.dim(axes[a])));
      at = plus(times(at, w_.dim(axes[a])), own.back());
    }
    own.push_back("c + v * kLanes");
    at = times(at, w_.dim(axes.back()));
    if (!last_) w_.out.line("const float factor = {}[i0];", factors);
    std::vector<std::string> index(rank, "0");  // of the output
    index[0] = "n";
    for (size_t a = 0; a < own.size(); ++a) index[rank - own.size() + a] = own[a];
    if (merged && spatial_.size() > 1) {
      std::fill(index.begin() + 1, index.end(), "0");
      index[last_ ? rank - 1 : 1] = last_ ? own[1] : own[0];
      index[end - 1] = last_ ? own[0] : own[1];
    }
    open_columns(w_, "scale");
    w_.out.line("SINTER_UNROLL");
    w_.out.line("for (int v = 0; v < kVectors; ++v) {{");
    w_.out.line("const f32v r = mul(load_lanes({} + c + v * kLanes, lanes), {});", plus("from", at),
                last_ ? fmt::format("load_lanes({} + c + v * kLanes, lanes)", factors) : "splat(factor)");
    w_.out.line("store_lanes({} + c + v * kLanes, {}, lanes);", plus("to", at),
                epilogue_ ? epilogue_->vector("r", index, "lanes", w_.out) : "r");
    w_.out.line("}}");
    if (last_)
      close_channels("scale", whole, !whole);
    else
      close_columns(w_, axes.back(), kVectors, "scale");
    for (size_t a = 0; a + 1 < axes.size(); ++a) w_.out.line("}}");
    w_.close_parts();
  }

  LayerWriter& w_;
  const Node& n_;
  bool last_, flat_ = false;
  int64_t channels_ = 0, squeezed_ = 0;
  Shape spatial_;
  std::optional<Epilogue> epilogue_;
};

void emit(LayerWriter& w) { Writer(w).write(); }

}  // namespace

const std::vector<Kernel>& kernels_squeeze_excite() {
  static const std::vector<Kernel> table = {
      {"squeeze_excite", "squeeze_excite: means, two products and the scaling of a sample", accepts, emit}};
  return table;
}

}  // namespace sinter
