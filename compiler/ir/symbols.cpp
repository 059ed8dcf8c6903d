// Shapes, and the symbols of one model: unknowns with names of their own.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "ir/dim.h"
#include "ir/error.h"

namespace sinter {

Dim product(const Shape& shape, size_t first, size_t last) {
  Dim p(1);
  for (size_t i = first; i < std::min(last, shape.size()); ++i) p = p * shape[i];
  return p;
}
bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static(); });
}
std::vector<int64_t> static_dims(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Dim& d : shape) out.push_back(d.value());
  return out;
}
std::string text(const Shape& shape) {
  std::string s = "[";
  for (const Dim& d : shape) s += (s.size() == 1 ? "" : ",") + d.text();
  return s + "]";
}

SymbolPtr Symbols::fresh(std::string name, Interval range, std::string origin, bool from_data, int64_t step,
                         bool learnable) {
  std::string clean;
  for (char c : name.substr(0, 40))
    clean += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  if (clean.empty() || (clean[0] >= '0' && clean[0] <= '9') || clean[0] == '_') clean = "d" + clean;
  std::string id = clean;
  if (std::any_of(all_.begin(), all_.end(), [&](const SymbolPtr& s) { return s->id == id; })) {
    std::unordered_set<std::string_view> taken;
    for (const SymbolPtr& other : all_) taken.insert(other->id);
    for (int k = 1; taken.count(id); ++k) id = fmt::format("{}_{}", clean, k);
  }
  auto s = std::make_shared<Symbol>();
  s->name = std::move(name);
  s->id = id;
  s->range = range;
  s->step = step;
  s->origin = std::move(origin);
  s->index = static_cast<int>(all_.size());
  s->from_data = from_data;
  s->learnable = learnable;
  s->boundable = was_asked(s->name);
  all_.push_back(s);
  return s;
}
SymbolPtr Symbols::find(const std::string& name) const {
  for (const SymbolPtr& s : all_)
    if (s->name == name) return s;
  return nullptr;
}

}  // namespace sinter
