// What a bundle of one model is made of: its interface (emit/interface.cpp), code (emit/code.cpp), runner
// (emit/runner.cpp), map (emit/map.cpp) and what is the same for all bundles (emit/shared_files.cpp).
#include "emit/bundle.h"

#include <set>

#include "emit/code.h"
#include "emit/interface.h"
#include "emit/map.h"
#include "emit/shared_files.h"

namespace sinter {

std::string upper(std::string s) {
  for (char& c : s) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return s;
}

namespace {

// `is_state` tells values that have no member, by their number.
template <class F>
std::vector<Member> members_but(const std::vector<Value*>& values, F is_state) {
  std::vector<Member> m;
  std::set<std::string> taken;
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_state(i)) continue;
    const Value* v = values[i];
    const std::string of_model = outside_name(*v), plain = identifier(of_model);
    const bool dynamic = !is_static(v->type.shape);
    std::string name = plain;
    for (int k = 2; taken.count(name) || (dynamic && taken.count(name + "_dims")); ++k)
      name = fmt::format("{}_{}", plain, k);
    taken.insert(name);
    if (dynamic) taken.insert(name + "_dims");
    m.push_back({i, v, of_model, name, dynamic});
  }
  return m;
}

}  // namespace

std::vector<Member> members_of(const std::vector<Value*>& values) {
  return members_but(values, [](size_t) { return false; });
}
std::vector<Member> input_members(const Graph& g, const StatePlan& states) {
  return members_but(g.inputs, [&](size_t i) { return states.of_input(i) != nullptr; });
}
std::vector<Member> output_members(const Graph& g, const StatePlan& states) {
  return members_but(g.outputs, [&](size_t i) { return states.of_output(i) != nullptr; });
}

// Floats that C has not are handed over as their bits.
std::string c_type(DType t) {
  if (is_stored_float(t)) return size_of(t) == 2 ? "uint16_t" : "uint8_t";
  std::string s(cpp_name(t));
  return s.rfind("std::", 0) == 0 ? s.substr(5) : s;
}

const char* where_text(const Plan& plan, const Place& place) {
  switch (place.kind) {
    case Place::Kind::kInput: return plan.states.of_input(place.index) ? "state" : "input";
    case Place::Kind::kOutput: return plan.states.of_output(place.index) ? "state" : "output";
    case Place::Kind::kWeights: return "weights";
    case Place::Kind::kArena: break;
  }
  return "arena";
}

int64_t weights_bytes(const WeightStore& store) {
  return store.size() + (store.size() == 0 ? 0 : static_cast<int64_t>(sizeof(uint64_t)));
}

const std::string& file_prefix(const BundleOptions& o) { return o.bundle.empty() ? o.name : o.bundle; }

const std::string& face_prefix(const BundleOptions& o) { return o.face.empty() ? o.name : o.face; }

std::string weights_symbol(const BundleOptions& o) {
  return fmt::format("{}_weights_{:016x}", file_prefix(o), o.weights_tag);
}

std::map<std::string, std::string> make_bundle(const Graph& g, const Plan& plan, const Target& target,
                                               WeightStore& store, const BundleOptions& given) {
  BundleFiles files;
  BundlePart b{g, plan, target, given};
  BundleOptions& o = b.options;
  o.weights_end = static_cast<int64_t>(store.bytes().size());
  o.weights_tag = number_of(store.bytes());
  o.interface = number_of(interface_text(b, store));
  files[o.name + ".h"] = interface_text(b, store);
  files[o.name + ".cpp"] = code_text(b);
  files[o.name + "_main.cpp"] = runner_main(b);
  add_weights(files, store, o);
  add_custom(files, {&plan}, o);
  add_cmake(files, target, {}, o);
  add_runtime(files);
  files[o.name + ".map"] = map_text(b, store, names_with(o.name + ".map", files));
  return files;
}

}  // namespace sinter
