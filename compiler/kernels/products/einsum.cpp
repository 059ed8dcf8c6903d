// Einsum of any equation: loops over the output's labels, inside them loops over the labels that are summed.
//
// Every operand is walked by one stride a label; repeated letters add their strides up, an extent of 1 has
// none. float32 runs in vectors along the output's last label where every operand is contiguous or repeated
// there, else along the innermost summed label where that holds, else element by element.
#include "ops/products/einsum.h"

#include <algorithm>

#include "emit/expr_text.h"
#include "emit/layer.h"
#include "kernels/nest.h"
#include "ops/op.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "Einsum" && n.op->domain[0] == 0;
}

struct Step {
  Dim stride = Dim(0), open = Dim(0);  // open: no stride where this extent is 1 at run time
};
struct Label {
  int name;
  Dim extent;
  std::vector<Step> steps;  // one an operand
  std::string index;
  bool plain(size_t k) const {  // contiguous or repeated
    return steps[k].open.is(0) && (steps[k].stride.is(0) || steps[k].stride.is(1));
  }
  bool vectors(int lanes) const {
    bool all = extent.hi() >= lanes;
    for (size_t k = 0; k < steps.size(); ++k) all = all && plain(k);
    return all;
  }
};

class Writer {
 public:
  explicit Writer(LayerWriter& w) : w_(w), n_(w.node) {}

  void emit() {
    operands_ = n_.epilogue ? n_.anchor_inputs : n_.inputs.size();
    type_ = n_.inputs[0]->type.dtype;
    find_labels();
    std::string shapes;
    for (size_t k = 0; k < operands_; ++k) shapes += (k ? ", " : "") + text(n_.inputs[k]->type.shape);
    w_.summary(fmt::format("Einsum {} of {}", sinter::quoted(n_.attributes.text("equation", "")), shapes));
    w_.include("sinter/scalar.h");
    Dim work(static_cast<int64_t>(operands_));
    for (const auto* list : {&out_, &sums_})
      for (const Label& l : *list) work = work * l.extent;
    w_.flops(work);
    for (size_t k = 0; k < operands_; ++k) x_.push_back(w_.input(k));
    PlainOutput y(w_, type_);
    const bool single = type_ == DType::kF32 && w_.target.lanes > 1;
    const bool across = single && !out_.empty() && out_.back().vectors(w_.target.lanes);
    const bool along = single && !across && !sums_.empty() && sums_.back().vectors(w_.target.lanes);
    const size_t depth = out_.size() - (across ? 1 : 0);
    std::string place = "0";
    for (size_t l = 0; l < depth; ++l) {
      w_.out.put(loop_text(out_[l].index, w_.dim(out_[l].extent)));
      place = plus(times(place, w_.dim(out_[l].extent)), out_[l].index);
    }
    if (across) {
      const std::string n = w_.dim(out_.back().extent), i = out_.back().index;
      w_.out.line("float* to = {} + {};", y.pointer(), times("(" + place + ")", n));
      w_.out.line("std::int64_t {} = 0;", i);
      w_.out.line("for (; {0} + kLanes <= {1}; {0} += kLanes) {{", i, n);
      sum(kAcross);
      w_.out.line("store(to + {}, sum);", i);
      w_.out.line("}}");
      w_.out.line("for (; {0} < {1}; ++{0}) {{", i, n);
      sum(kScalar);
      w_.out.line("to[{}] = sum;", i);
      w_.out.line("}}");
    } else {
      sum(along ? kAlong : kScalar);
      w_.out.line("{}[{}] = {};", y.pointer(), place, store_text(type_, "sum"));
    }
    for (size_t l = 0; l < depth; ++l) w_.out.line("}}");
    y.finish();
  }

 private:
  enum Mode { kScalar, kAcross, kAlong };

  void find_labels() {
    std::vector<int64_t> ranks;
    for (size_t k = 0; k < operands_; ++k)
      ranks.push_back(static_cast<int64_t>(n_.inputs[k]->type.shape.size()));
    const Einsum q = parse_einsum(n_.attributes.text("equation", ""), ranks);
    const Shape& result = n_.outputs[0]->type.shape;
    for (size_t d = 0; d < q.output.size(); ++d)
      out_.push_back({q.output[d], result[d], std::vector<Step>(operands_), fmt::format("i{}", d)});
    for (size_t k = 0; k < operands_; ++k)
      for (size_t d = 0; d < q.operands[k].size(); ++d) {
        const Dim& extent = n_.inputs[k]->type.shape[d];
        if (find(out_, q.operands[k][d])) continue;
        if (Label* l = find(sums_, q.operands[k][d])) {
          if (!(l->extent == extent))
            l->extent = extent.is(1) ? l->extent : l->extent.is(1) ? extent : max(l->extent, extent);
        } else {
          sums_.push_back({q.operands[k][d], extent, std::vector<Step>(operands_), ""});
        }
      }
    for (size_t k = 0; k < operands_; ++k) {
      const Shape& s = n_.inputs[k]->type.shape;
      const std::vector<Dim> own = dim_strides(s);
      for (size_t d = 0; d < s.size(); ++d) {
        if (s[d].is(1)) continue;
        Label* l = find(out_, q.operands[k][d]);
        if (!l) l = find(sums_, q.operands[k][d]);
        Step& step = l->steps[k];
        step.stride = step.stride + own[d];
        // Only the ellipsis broadcasts what isn't known to be 1; its labels occur once an operand.
        if (l->name >= Einsum::kEllipsis && !(s[d] == l->extent) && s[d].lo() <= 1) step.open = s[d];
      }
    }
    std::erase_if(sums_, [](const Label& l) { return l.extent.is(1); });
    // Contiguous ones last.
    std::stable_sort(sums_.begin(), sums_.end(),
                     [&](const Label& a, const Label& b) { return contiguous(a) < contiguous(b); });
    for (size_t l = 0; l < sums_.size(); ++l) sums_[l].index = fmt::format("s{}", l);
  }
  static Label* find(std::vector<Label>& list, int name) {
    for (Label& l : list)
      if (l.name == name) return &l;
    return nullptr;
  }
  static int contiguous(const Label& l) {
    int c = 0;
    for (size_t k = 0; k < l.steps.size(); ++k) c += l.steps[k].stride.is(1) ? 2 : l.plain(k) ? 1 : 0;
    return c;
  }

  // The address of operand k's element at the current indices.
  std::string address(size_t k) {
    std::string at = "0";
    for (const auto* list : {&out_, &sums_})
      for (const Label& l : *list) {
        const Step& s = l.steps[k];
        if (s.stride.is(0)) continue;
        std::string stride = w_.dim(s.stride);
        if (!s.open.is(0)) stride = fmt::format("({} == 1 ? 0 : {})", w_.dim(s.open), stride);
        at = plus(at, times(l.index, stride));
      }
    return at;
  }

  // "sum = fma(a, b, sum);" for vectors along `l`, or "sum = sinter::add(…)" without.
  void add_product(const std::string& sum, const Label* along) {
    if (!along) {
      std::string product;
      for (size_t k = 0; k < operands_; ++k) {
        const std::string v = load_text(type_, fmt::format("{}[{}]", x_[k], address(k)));
        product = product.empty() ? v : fmt::format("sinter::mul({}, {})", product, v);
      }
      w_.out.line("{0} = sinter::add({0}, {1});", sum, product);
      return;
    }
    std::string product, last;
    for (size_t k = 0; k < operands_; ++k) {
      const std::string at = address(k);
      const std::string v = along->steps[k].stride.is(0) ? fmt::format("splat({}[{}])", x_[k], at)
                                                         : fmt::format("load({} + {})", x_[k], at);
      product = last.empty() ? "" : product.empty() ? last : fmt::format("mul({}, {})", product, last);
      last = v;
    }
    w_.out.put(product.empty() ? fmt::format("{0} = add({0}, {1});", sum, last)
                               : fmt::format("{0} = fma({1}, {2}, {0});", sum, product, last));
  }

  // Declares and makes `sum`.
  void sum(Mode mode) {
    const std::string type = compute_type(type_);
    if (mode == kAcross) {
      w_.out.line("f32v sum = zero<f32v>();");
    } else {
      w_.out.line("{} sum = static_cast<{}>(0);", type, type);
      if (mode == kAlong) w_.out.line("f32v sums = zero<f32v>();");
    }
    const size_t depth = sums_.size() - (mode == kAlong ? 1 : 0);
    for (size_t l = 0; l < depth; ++l) w_.out.put(loop_text(sums_[l].index, w_.dim(sums_[l].extent)));
    if (mode == kAlong) {
      const std::string i = sums_.back().index, n = w_.dim(sums_.back().extent);
      w_.out.line("std::int64_t {} = 0;", i);
      w_.out.line("for (; {0} + kLanes <= {1}; {0} += kLanes) {{", i, n);
      add_product("sums", &sums_.back());
      w_.out.line("}}");
      w_.out.line("for (; {0} < {1}; ++{0}) {{", i, n);
      add_product("sum", nullptr);
      w_.out.line("}}");
    } else {
      add_product("sum", mode == kAcross ? &out_.back() : nullptr);
    }
    for (size_t l = 0; l < depth; ++l) w_.out.line("}}");
    if (mode == kAlong) w_.out.line("sum += hsum(sums);");
  }

  LayerWriter& w_;
  const Node& n_;
  size_t operands_ = 0;
  DType type_ = DType::kF32;
  std::vector<Label> out_, sums_;
  std::vector<std::string> x_;
};

void emit(LayerWriter& w) { Writer(w).emit(); }

}  // namespace

const std::vector<Kernel>& kernels_einsum() {
  static const std::vector<Kernel> table = {
      {"einsum", "sums of products over the labels of an equation", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
