// The text of strips (plan/strips.h): a loop over rows of the last layer's result around the calls of a
// group.
//
// Layer K of the group has, where its kernel reaches beyond one row, the variables in_K and in_K_end, the
// rows of its input that this turn needs, and base_K and done_K, the first row in its input's buffer and the
// one behind the last that the turns before have left there. With threads, parts are ranges of turns; each
// has its own of these variables, and its own piece of the buffers and of the scratch (Calls::argument).
#include "emit/strips.h"

#include "ops/op.h"
#include "plan/strips.h"

namespace sinter {
namespace {

class Strips {
 public:
  Strips(Printer& p, Calls& calls, const Plan& plan, size_t first, size_t end)
      : p_(p), calls_(calls), plan_(plan), first_(first), texts_(end - first) {
    for (size_t i = first; i < end; ++i) axes_.push_back(row_axis(*plan.layers[i].node));
  }

  void write() {
    const size_t count = axes_.size();
    const RowTile& last = *plan_.decision(first_ + count - 1).row_tile;
    const int64_t rows = last.rows, height = axes_.back().out;
    std::string names;
    for (size_t k = 0; k < count; ++k) names += (k ? ", " : "") + plan_.layers[first_ + k].function;
    p_.comment(fmt::format("{}: {} rows of the last one's result at a time", names, rows));
    const int64_t parts = last.work_items;
    std::string begin = "0", end = std::to_string(height);
    if (parts > 1) {
      p_.line(
          "sinter::run_parts(pool, {}, {}, [=](std::int64_t first_turn, std::int64_t end_turn, "
          "std::int64_t part) {{",
          parts, (height + rows - 1) / rows);
      begin = fmt::format("first_turn * {}", rows), end = fmt::format("end_turn * {}", rows);
    } else {
      p_.line("{{");
    }
    for (size_t k = 1; k < count; ++k)
      if (!axes_[k].keeps_rows()) p_.line("std::int64_t base_{0} = 0, done_{0} = 0;", k);
    p_.line("for (std::int64_t row = {}; row < {}; row += {}) {{", begin, end, rows);
    p_.line("const std::int64_t row_end = sinter::min_of(row + {}, std::int64_t{{{}}});", rows, height);
    choose_rows();
    for (size_t k = 0; k < count; ++k) call(k);
    p_.line("}}");
    p_.put(parts > 1 ? "});" : "}");
  }

 private:
  // Which rows each layer computes, and from which on its input and output are in memory: from the last layer
  // to the first.
  void choose_rows() {
    std::string from = "row", to = "row_end";
    for (size_t k = axes_.size() - 1;; --k) {
      texts_[k]["row_first"] = from;
      texts_[k]["row_end"] = to;
      if (k == 0) return;
      std::string base = from;
      if (!axes_[k].keeps_rows()) {
        declare_needs(k, from, to);
        base = fmt::format("in_{}", k);
        from = fmt::format("sinter::max_of(in_{0}, done_{0})", k);
        to = fmt::format("in_{}_end", k);
      }
      texts_[k]["x_base"] = base;
      texts_[k - 1]["y_base"] = base;
    }
  }

  void declare_needs(size_t k, const std::string& first, const std::string& end) {
    const RowAxis& a = axes_[k];
    auto at = [&](const std::string& row) {
      return fmt::format("{}{}{}", row, a.stride == 1 ? "" : fmt::format(" * {}", a.stride),
                         a.pad == 0 ? "" : fmt::format(" - {}", a.pad));
    };
    p_.line("const std::int64_t in_{} = sinter::max_of({}, std::int64_t{{0}});", k, at(first));
    p_.line("const std::int64_t in_{}_end = sinter::min_of({} + {}, std::int64_t{{{}}});", k,
            at("(" + end + " - 1)"), a.span(), a.in);
  }

  // Layer k, behind the rows of its result's buffer that are needed again.
  void call(size_t k) {
    const size_t layer = first_ + k;
    const bool keeps = k + 1 < axes_.size() && !axes_[k + 1].keeps_rows();
    if (keeps)
      for (const Parameter& q : plan_.layers[layer].parameters) {
        size_t none = 0;
        if (q.kind == Parameter::Kind::kOutput)
          p_.line("sinter::keep_rows({0}, in_{1} - base_{1}, done_{1} - in_{1}, {2});",
                  calls_.argument(q, layer, none), k + 1,
                  row_bytes(*q.value) / static_cast<int64_t>(size_of(q.value->type.dtype)));
      }
    calls_.set_rows(texts_[k]);
    calls_.call(layer);
    if (keeps) p_.line("base_{0} = in_{0}, done_{0} = in_{0}_end;", k + 1);
  }

  Printer& p_;
  Calls& calls_;
  const Plan& plan_;
  size_t first_;
  std::vector<RowAxis> axes_;
  std::vector<std::map<std::string, std::string>> texts_;  // of each layer's kRow parameters
};

}  // namespace

void write_strips(Printer& p, Calls& calls, const Plan& plan, size_t first, size_t end) {
  Strips(p, calls, plan, first, end).write();
}

}  // namespace sinter
