#include "emit/calls.h"

#include <algorithm>

#include "ir/error.h"

namespace sinter {

namespace {
constexpr int64_t kMost = int64_t{1} << 31;  // of a count without a bound of its own
}  // namespace

std::string printable(const std::string& s) {
  std::string q = sinter::quoted(s, 100);
  q = q.substr(1, q.size() - 2);
  for (size_t at = 0; (at = q.find("\\\"", at)) != std::string::npos; ++at) q.erase(at, 1);
  while (!q.empty() && q.back() == '\\') q.pop_back();
  return q;
}

bool Calls::known(const Dim& d) const {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  return std::all_of(symbols.begin(), symbols.end(), [&](const SymbolPtr& s) { return is_defined(*s); });
}

std::string Calls::code(const std::string& name) const {
  if (!frame_.error.empty()) return frame_.error + name;
  std::string word = name;
  for (size_t i = 1; i < word.size(); ++i) word[i] = static_cast<char>(word[i] - 'A' + 'a');
  return "sinter::k" + word + "Error";
}

void Calls::declare_counts() {
  std::set<const Symbol*> declared;
  for (const Layer& l : frame_.plan.layers)
    for (const Parameter& q : l.parameters)
      if (q.kind == Parameter::Kind::kCount && declared.insert(q.symbol.get()).second)
        p_.line("std::int64_t {} = 0;", variable(*q.symbol));
}

void Calls::checks() {
  const std::vector<Check>& all = frame_.graph.checks;
  for (size_t i = 0; i < all.size(); ++i) {
    const Check& c = all[i];
    if (checked_.count(i) || !known(c.a) || !known(c.b)) continue;
    checked_.insert(i);
    const std::string a = cpp(c.a), b = cpp(c.b);
    p_.line("if ({0} != {1}{2}) {3};  // {4}", a, b,
            c.or_one ? fmt::format(" && {} != 1 && {} != 1", a, b) : "", returning(code("DIM")),
            printable(c.why));
  }
}

std::string Calls::argument(const Parameter& q, size_t layer, size_t& scratch) const {
  if (q.kind == Parameter::Kind::kSymbol) return q.name;
  if (q.kind == Parameter::Kind::kRow) return rows_.at(q.name);
  if (q.kind == Parameter::Kind::kPool) return share_ ? "own" : frame_.pool;
  if (q.kind == Parameter::Kind::kCount) return "&" + variable(*q.symbol);
  const std::string type = q.type.substr(0, q.type.size() - 1);
  const std::string plain = type.rfind("const ", 0) == 0 ? type.substr(6) : type;
  if (q.kind == Parameter::Kind::kWeights) return fmt::format("sinter::at<{}>(w, {})", plain, q.offset);
  const auto& tile = frame_.plan.decision(layer).row_tile;
  const int64_t parts = tile ? tile->work_items : 1;
  const auto in_arena = [&](int64_t offset, int64_t bytes_of_part) {
    const std::string of_part = bytes_of_part > 0 ? fmt::format("part * {}", bytes_of_part) : "",
                      start = offset > 0 || of_part.empty() ? std::to_string(offset) : "";
    return fmt::format("sinter::at<{}>(a, {}{}{})", plain, start,
                       start.empty() || of_part.empty() ? "" : " + ", of_part);
  };
  if (q.kind == Parameter::Kind::kScratch) {
    const size_t number = scratch++;
    if (!share_) return in_arena(frame_.plan.scratch[layer][number], parts > 1 ? q.bytes / parts : 0);
    const Plan::Share& s = frame_.plan.shares[layer][number];
    return in_arena(s.offset, s.step);
  }
  SINTER_CHECK(frame_.plan.places.count(q.value), "\"" + q.value->name + "\" is read but has no place");
  const Place& place = frame_.plan.places.at(q.value);
  // The caller's pointer is of another type: 16-bit floats as integers, or a view that changes the type.
  const auto retyped = [&](const std::vector<Value*>& members) {
    return (frame_.bits && plain.rfind("sinter::", 0) == 0) ||
           members[place.index]->type.dtype != q.value->type.dtype;
  };
  bool cast = false;
  std::string text;
  switch (place.kind) {
    case Place::Kind::kInput:
      text = frame_.inputs[place.index];
      cast = retyped(frame_.graph.inputs);
      break;
    case Place::Kind::kOutput:
      text = frame_.outputs[place.index];
      cast = retyped(frame_.graph.outputs);
      break;
    case Place::Kind::kWeights: return fmt::format("sinter::at<{}>(w, {})", plain, place.offset);
    case Place::Kind::kArena: {
      const Node* from = q.value->producer;  // of rows that each part has for itself
      const auto& rows = from ? frame_.plan.decisions->of(*from).row_tile : std::nullopt;
      text = in_arena(place.offset, parts > 1 && rows ? rows->bytes : 0);
      break;
    }
  }
  if (cast) text = fmt::format("reinterpret_cast<{}*>({})", type, text);
  if (!place.shift.is(0)) text += " + " + cpp(place.shift);
  return text;
}

bool Calls::has(Subnormals s, size_t first, size_t end) const {
  const auto layers = frame_.plan.layers.begin();
  return std::any_of(layers + static_cast<std::ptrdiff_t>(first), layers + static_cast<std::ptrdiff_t>(end),
                     [s](const Layer& l) { return l.subnormals == s; });
}

void Calls::choose_floats(size_t first, size_t end) {
  const bool numbers = has(Subnormals::kNumbers, first, end),
             zeros = !numbers && has(Subnormals::kZeros, first, end);
  if (zeros_ ? !numbers : !zeros) return;
  save_floats();
  set_zeros(zeros);
}

void Calls::save_floats() {
  if (!saved_) p_.line("const unsigned floats = sinter::float_mode();  // the caller's, which comes back");
  saved_ = true;
}

void Calls::set_zeros(bool zeros) {
  zeros_ = zeros;
  p_.line("sinter::subnormals_are_{}();", zeros ? "zeros" : "numbers");
}

void Calls::restore_floats() {
  if (saved_) p_.line("sinter::set_float_mode(floats);");
  zeros_ = saved_ = false;
}

void Calls::begin_share(size_t first, size_t end) {
  if (has(Subnormals::kZeros, first, end)) save_floats();
  share_ = true;
  zeros_around_ = zeros_;
}

void Calls::end_share() {
  if (zeros_ != zeros_around_) set_zeros(zeros_around_);
  share_ = false;
}

// A thread's share leaves that to whoever gets its status.
std::string Calls::returning(const std::string& status) const {
  return saved_ && !share_ ? fmt::format("return sinter::back_to(floats, {})", status) : "return " + status;
}

void Calls::call(size_t i) {
  const Layer& l = frame_.plan.layers[i];
  std::string arguments;
  size_t scratch = 0;
  std::vector<SymbolPtr> counts;
  for (const Parameter& q : l.parameters) {
    arguments += (arguments.empty() ? "" : ", ") + argument(q, i, scratch);
    if (q.kind == Parameter::Kind::kCount) counts.push_back(q.symbol);
  }
  const std::string& function = functions_.names.at(&l);
  const std::string text = fmt::format("{}::{}({})", functions_.scope, function, arguments);
  if (l.can_fail)
    p_.line("if (const int status = {}; status != 0) {};", text, returning("status"));
  else
    p_.line("{};{}", text, function == l.function ? "" : "  // " + l.function);
  for (const SymbolPtr& s : counts) {
    p_.line("if ({0} < {1} || {0} > {2}) {3};", variable(*s), std::max(s->range.lo, -kMost),
            std::min(s->range.hi, kMost), returning(code("CAPACITY")));
    define(*s);
  }
  if (!counts.empty()) checks();
}

}  // namespace sinter
