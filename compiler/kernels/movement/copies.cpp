#include "kernels/movement/copies.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "ir/error.h"

namespace sinter {

bool is_movable(DType t) { return size_of(t) > 0 && cpp_name(t) != "void"; }
bool is_word(DType t) { return t == DType::kF32 || t == DType::kI32; }
bool is_movable(const Node& n) {
  for (const auto* list : {&n.inputs, &n.outputs})
    for (const Value* v : *list)
      if (v && !is_movable(v->type.dtype)) return false;
  return true;
}

const Symbol* own_count(const Node& n, const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  if (symbols.size() != 1 || !(Dim(symbols[0]) == d)) return nullptr;
  const Symbol& s = *symbols[0];
  return s.from_data && s.origin.ends_with(" of " + label(n)) ? &s : nullptr;
}

void settle_extent(LayerWriter& w, const Dim& d, const std::string& found) {
  if (own_count(w.node, d))
    w.out.line("*{} = {};", w.count(d), found);
  else
    w.out.line("if ({} != {}) return sinter::kDimError;", found, w.dim(d));
}

void Extents::define(const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  for (const SymbolPtr& s : symbols) local_.insert(s.get());
}
std::string Extents::text(const Dim& d) const {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  for (const SymbolPtr& s : symbols)
    if (!local_.count(s.get())) w_.dim(Dim(s));
  if (!symbols.empty()) w_.include("sinter/dims.h");
  return d.cpp([&](const Symbol& s) { return local_.count(&s) ? s.id : variable(s); });
}
std::string Extents::address(const Dim& offset, const std::vector<std::string>& index,
                             const std::vector<Dim>& strides) const {
  std::string at = offset.is(0) ? "" : text(offset);
  for (size_t a = 0; a < index.size(); ++a) {
    if (strides[a].is(0) || index[a] == "0") continue;
    const bool negative = strides[a].is_static() && strides[a].value() < 0;
    const Dim step = negative && strides[a].value() != INT64_MIN ? Dim(-strides[a].value()) : strides[a];
    at += at.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    const bool number = index[a].find_first_not_of("0123456789") == std::string::npos;
    if (step.is(1))
      at += index[a];
    else if (number)
      at += text(Dim(std::stoll(index[a])) * step);
    else
      at += index[a] + " * " + text(step);
  }
  return at.empty() ? "0" : at;
}

std::string behind(const std::string& pointer, const std::string& address) {
  return address == "0" ? pointer : pointer + " + " + address;
}

Strided dense(const std::string& pointer, const TensorType& type) {
  return {pointer, type.dtype, Dim(0), dim_strides(type.shape), {}};
}
Strided pitched(const LayerWriter& w, const std::string& pointer, const Value& v) {
  return {pointer, v.type.dtype, Dim(0), pitched_strides(w, v), {}};
}

namespace {

struct CopyAxis {
  Dim extent, to, from;
};

std::vector<CopyAxis> collapse(const Shape& space, const Strided& to, const Strided& from) {
  std::vector<CopyAxis> axes;
  for (size_t d = 0; d < space.size(); ++d) {
    if (space[d].is(1)) continue;
    const CopyAxis a{space[d], to.strides[d], from.strides[d]};
    if (!axes.empty() && axes.back().to == a.to * a.extent && axes.back().from == a.from * a.extent)
      axes.back() = {axes.back().extent * a.extent, a.to, a.from};
    else
      axes.push_back(a);
  }
  return axes;
}

// A loop of `extent` turns, cut into parts of whole blocks where it is worth while: write(first turn, how
// many).
void pieces(const Extents& e, const Dim& extent, int64_t block, double flops_of_element,
            const std::function<void(const std::string&, const std::string&)>& write) {
  LayerWriter& w = e.writer();
  const LayerWriter::Turns turns = w.open_parts(e.text(ceildiv(extent, Dim(block))), flops_of_element);
  if (turns.first == "0") {
    write("0", e.text(extent));
  } else {
    w.include("sinter/dims.h");
    w.out.line("const std::int64_t first = {} * {};", turns.first, block);
    w.out.line("const std::int64_t count = sinter::min_of({} * {}, std::int64_t{{{}}}) - first;", turns.end,
               block, e.text(extent));
    write("first", "count");
  }
  w.close_parts();
}

constexpr int64_t kPiece = 1024;  // elements of a run

class CopyNest {
 public:
  CopyNest(const Extents& e, const Shape& space, const Strided& to, const Strided& from, bool in_parts)
      : e_(e),
        out_(e.writer().out),
        to_(to),
        from_(from),
        axes_(collapse(space, to, from)),
        in_parts_(in_parts) {}

  void emit() {
    e_.writer().include("sinter/copy.h");
    if (axes_.empty()) return line_at({}, {});
    const CopyAxis& last = axes_.back();
    if (last.to.is(1) && (last.from.is(1) || last.from.is(0))) {
      if (in_parts_) begin_with_input();
      return runs(kInRuns);
    }
    if (last.to.is(1))
      for (size_t p = axes_.size() - 1; p-- > 0;)
        if (axes_[p].from.is(1)) return exchange(p);
    if (takes_every(last)) return runs(kOneByOne);
    loops(axes_);
  }

 private:
  static constexpr int64_t kShort = 4;  // an innermost loop of up to so many elements is written out
  static bool is_short(const Dim& d) { return d.is_static() && d.value() <= kShort; }

  void open(size_t count, double flops_of_element = kOneByOne) {
    for (size_t a = 0; a < count; ++a) {
      LayerWriter::Turns turns{"0", e_.text(axes_[a].extent)};
      if (a == 0 && in_parts_) turns = e_.writer().open_parts(turns.end, flops_of_element), opened_ = true;
      out_.line("for (std::int64_t i{0} = {1}; i{0} < {2}; ++i{0}) {{", a, turns.first, turns.end);
      index_.push_back(fmt::format("i{}", a));
    }
  }
  void close() {
    for (size_t a = 0; a < index_.size(); ++a) out_.line("}}");
    if (opened_) e_.writer().close_parts();
  }
  std::string at(bool to, const std::vector<std::string>& index) const {
    std::vector<Dim> strides;
    for (const CopyAxis& a : axes_) strides.push_back(to ? a.to : a.from);
    return e_.address(to ? to_.offset : from_.offset, index, strides);
  }

  // Parts are pieces of the input, as far as that goes: the one that a thread reads is mostly its own work.
  void begin_with_input() {
    size_t first = 0;
    for (size_t a = 1; a + 1 < axes_.size(); ++a)
      if (axes_[a].from.is_static() && axes_[first].from.is_static() &&
          axes_[a].from.value() > axes_[first].from.value())
        first = a;
    std::rotate(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(first),
                axes_.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  }

  // The innermost axis is one run of the output.
  void runs(double flops_of_element) {
    if (axes_.size() == 1 && in_parts_) return run_in_parts(flops_of_element);
    const CopyAxis& last = axes_.back();
    open(axes_.size() - 1, flops_of_element);
    run(behind(to_.pointer, at(true, index_)), at(false, index_), e_.text(last.extent));
    close();
  }
  void run(const std::string& to, const std::string& from, const std::string& count) {
    const Dim& step = axes_.back().from;
    if (step.is(1))
      out_.line("sinter::copy({}, {}, {});", to, behind(from_.pointer, from), count);
    else if (!step.is(0))
      out_.line("sinter::every<{}>({}, {}, {});", step.value(), to, behind(from_.pointer, from), count);
    else
      out_.line("sinter::fill({}, {}, {}[{}]);", to, count, from_.pointer, from);
  }
  void run_in_parts(double flops_of_element) {
    pieces(e_, axes_[0].extent, kPiece, flops_of_element,
           [&](const std::string& first, const std::string& count) {
             run(behind(to_.pointer, at(true, {first})), at(false, {first}), count);
           });
  }

  // Axis p is contiguous in the input, the last one in the output.
  void exchange(size_t p) {
    const CopyAxis a = axes_[p], last = axes_.back();
    axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(p));
    axes_.pop_back();
    if (takes_turns(a, last)) return turns(a, last);
    if (is_short(a.extent) || is_short(last.extent)) {
      const bool swap = is_short(a.extent);  // the long axis outside, the short one written out
      axes_.push_back(swap ? last : a);
      axes_.push_back(swap ? a : last);
      return loops(axes_);
    }
    if (axes_.empty() && in_parts_) return transpose_in_parts(a, last);
    open(axes_.size());
    out_.line("sinter::transpose({}, {}, {}, {}, {}, {});", behind(to_.pointer, at(true, index_)),
              e_.text(a.to), behind(from_.pointer, at(false, index_)), e_.text(last.from), e_.text(a.extent),
              e_.text(last.extent));
    close();
  }

  // Every second to fourth float of a run: columns of a narrow matrix, one at a time.
  bool takes_every(const CopyAxis& last) const {
    constexpr int64_t kLeast = 8;
    return is_word(to_.dtype) && last.to.is(1) && last.from.is_static() && last.from.value() >= 2 &&
           is_short(last.from) && last.extent.hi() >= kLeast;
  }

  // Two to four rows of floats that become one whose elements take turns, or the other way round.
  bool takes_turns(const CopyAxis& a, const CopyAxis& last) const {
    const bool together = is_short(last.extent) && a.to == last.extent,
               apart = is_short(a.extent) && last.from == a.extent;
    return is_word(to_.dtype) && (together || apart) && !(axes_.empty() && in_parts_);
  }
  void turns(const CopyAxis& a, const CopyAxis& last) {
    open(axes_.size());
    const std::string to = behind(to_.pointer, at(true, index_)),
                      from = behind(from_.pointer, at(false, index_));
    if (is_short(last.extent) && a.to == last.extent)
      out_.line("sinter::interleave<{}>({}, {}, {}, {});", last.extent.value(), to, from, e_.text(last.from),
                e_.text(a.extent));
    else
      out_.line("sinter::deinterleave<{}>({}, {}, {}, {});", a.extent.value(), to, e_.text(a.to), from,
                e_.text(last.extent));
    close();
  }

  // A single matrix: parts are blocks, of the size that sinter::transpose works in, of its result's rows or
  // columns: of those that are more, which are mostly pixels, whose parts a thread has made or will read.
  void transpose_in_parts(const CopyAxis& a, const CopyAxis& last) {
    constexpr int64_t kBlock = 16;
    const bool columns = last.extent.hi() > a.extent.hi();
    const CopyAxis& cut = columns ? last : a;
    pieces(e_, cut.extent, kBlock, kOneByOne, [&](const std::string& first, const std::string& count) {
      const auto place = [&](bool to) {
        const Strided& s = to ? to_ : from_;
        return behind(s.pointer, e_.address(s.offset, {first}, {to ? cut.to : cut.from}));
      };
      out_.line("sinter::transpose({}, {}, {}, {}, {}, {});", place(true), e_.text(a.to), place(false),
                e_.text(last.from), columns ? e_.text(a.extent) : count,
                columns ? count : e_.text(last.extent));
    });
  }

  void line_at(const std::vector<std::string>& outer, const std::string& inner) {
    std::vector<std::string> index = outer;
    if (!inner.empty()) index.push_back(inner);
    out_.line("{}[{}] = {}[{}];", to_.pointer, at(true, index), from_.pointer, at(false, index));
  }

  void loops(const std::vector<CopyAxis>& axes) {
    if (axes.size() > 1 && is_short(axes.back().extent)) {
      open(axes.size() - 1);
      for (int64_t i = 0; i < axes.back().extent.value(); ++i) line_at(index_, std::to_string(i));
    } else {
      open(axes.size());
      line_at(index_, {});
    }
    close();
  }

  const Extents& e_;
  Printer& out_;
  Strided to_, from_;
  std::vector<CopyAxis> axes_;
  std::vector<std::string> index_;
  bool in_parts_, opened_ = false;
};

}  // namespace

void emit_copy(const Extents& e, const Shape& space, const Strided& to, const Strided& from, bool in_parts) {
  if (std::any_of(space.begin(), space.end(), [](const Dim& d) { return d.is(0); })) return;
  constexpr int64_t kLeast = 16 << 10;  // elements of one copy out of several, as those of Concat
  in_parts = in_parts && e.writer().threads > 1 && product(space).hi() >= kLeast;
  CopyNest(e, space, to, from, in_parts).emit();
}

void emit_fill(const Extents& e, const std::string& to, const Dim& count, const std::string& element) {
  e.writer().include("sinter/copy.h");
  pieces(e, count, kPiece, kFilled, [&](const std::string& first, const std::string& n) {
    e.writer().out.line("sinter::fill({}, {}, {});", behind(to, first), n, element);
  });
}

std::string zero_literal(DType t) { return std::string(cpp_name(t)) + "{}"; }

std::string element_literal(const Tensor& t, int64_t i) {
  const DType type = t.dtype();
  if (type == DType::kF16 || type == DType::kBF16)
    return fmt::format("{}{{{}}}", cpp_name(type), t.as<uint16_t>()[i]);
  if (type == DType::kF32 || type == DType::kF64) return literal(*Expr::constant(t.real(i), type));
  const bool known = is_integer(type) || type == DType::kBool;
  const int64_t v = known ? t.integer(i) : std::to_integer<int64_t>(t.data()[i]);  // small floats: their byte
  if (type == DType::kBool || type == DType::kI64 || type == DType::kU64)
    return literal(*Expr::constant_integer(v, type));
  return fmt::format("{}{{{}}}", cpp_name(type), v);
}

namespace {
// Adds a run to the last rule where it continues that.
void append(std::vector<Runs>& rules, const Runs& run) {
  if (!rules.empty() && rules.back().length == run.length) {
    Runs& r = rules.back();
    if (r.count == 1) r.to_step = run.to - r.to, r.from_step = run.from - r.from;
    if (run.to - r.to == r.count * r.to_step && run.from - r.from == r.count * r.from_step) {
      ++r.count;
      return;
    }
  }
  rules.push_back(run);
}
}  // namespace

void RunFinder::add(int64_t to, int64_t from, int64_t length) {
  if (runs_.size() > kMost + 1) return;
  if (!runs_.empty()) {
    Runs& last = runs_.back();
    if (to == last.to + last.length && from == last.from + last.length) {
      last.length += length;
      return;
    }
    const Runs done = last;
    runs_.pop_back();
    append(runs_, done);
  }
  runs_.push_back({to, from, length, 1, 0, 0});
}

std::vector<Runs> RunFinder::rules() const {
  std::vector<Runs> rules = runs_;
  if (!rules.empty()) {
    rules.pop_back();
    append(rules, runs_.back());
  }
  return rules.size() > kMost ? std::vector<Runs>{} : rules;
}

void emit_runs(LayerWriter& w, const std::vector<Runs>& rules, const std::string& to,
               const std::string& from) {
  for (const Runs& r : rules) {
    if (r.count == 1) {
      w.out.line("sinter::copy({} + {}, {} + {}, {});", to, r.to, from, r.from, r.length);
      continue;
    }
    w.out.line("for (std::int64_t i = 0; i < {}; ++i)", r.count);
    w.out.line("  sinter::copy({} + {} + {} * i, {} + {} + {} * i, {});", to, r.to, r.to_step, from, r.from,
               r.from_step, r.length);
  }
}

}  // namespace sinter
