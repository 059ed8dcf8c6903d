// Text: class labels and what encoders map to and from. A tensor of text is its indices into a list of names,
// int64 from import on; nothing computes with the names themselves.
//
// Classifiers and LabelEncoders make such tensors, and so do constants; operators that move elements pass the
// names on. Where an output is text, Model::class_names tells what its numbers stand for, and where nobody
// reads a label the names are gone. Text as an input of the model is refused.
#include <algorithm>
#include <numeric>

#include "import/importer.h"
#include "ir/error.h"

namespace sinter {
namespace {

constexpr size_t kMostNames = 65536;

using Names = std::vector<std::string>;

int64_t index_of(Names& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end() && names.size() >= kMostNames) refuse("more than {} different texts", kMostNames);
  const auto index = at - names.begin();
  if (at == names.end()) names.push_back(name);
  return index;
}

std::vector<int64_t> counted(size_t n) {
  std::vector<int64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The texts of an attribute; empty where it is absent or of numbers.
Names texts_of(const Attributes& a, const std::string& name) {
  const auto it = a.all().find(name);
  const Names* texts = it == a.all().end() ? nullptr : std::get_if<Names>(&it->second);
  return texts ? *texts : Names();
}

// Operators whose output holds elements of input 0 and nothing else.
bool moves_text(const Draft& d) {
  static constexpr std::string_view kMoves[] = {"Cast",    "Expand", "Flatten", "Gather",    "Identity",
                                                "Reshape", "Slice",  "Squeeze", "Transpose", "Unsqueeze"};
  if (!d.domain.empty()) return d.domain == "ai.onnx.ml" && d.op == "ArrayFeatureExtractor";
  if (d.op == "Cast") return d.attributes.integer("to", 0) == onnx::TensorProto::STRING;
  return std::find(std::begin(kMoves), std::end(kMoves), d.op) != std::end(kMoves);
}

// The keys of an encoder of text become the indices of these names; keys that no name has are gone.
void keys_to_indices(Draft& d, const Names& names, const std::string& attribute) {
  Attributes& a = d.attributes;
  const Names keys = texts_of(a, attribute);
  std::vector<int64_t> numbers;
  Names values = texts_of(a, "values_strings");
  std::vector<int64_t> integers = a.integers("values_int64s");
  std::vector<float> floats = a.reals("values_floats");
  const auto pick = [&](auto& list) {
    auto all = list;
    list.clear();
    if (all.empty()) return;
    if (all.size() != keys.size()) refuse("{} keys for {} values", keys.size(), all.size());
    for (const std::string& n : names)
      if (const auto at = std::find(keys.begin(), keys.end(), n); at != keys.end())
        list.push_back(all[static_cast<size_t>(at - keys.begin())]);
  };
  for (size_t i = 0; i < names.size(); ++i)
    if (std::count(keys.begin(), keys.end(), names[i])) numbers.push_back(static_cast<int64_t>(i));
  if (numbers.empty()) refuse("none of its keys is a text that its input holds");
  pick(values), pick(integers), pick(floats);
  a.erase(attribute);
  a.set("keys_int64s", numbers);
  a.erase("values_strings"), a.erase("values_int64s"), a.erase("values_floats");
  if (!values.empty()) a.set("values_strings", values);
  if (!integers.empty()) a.set("values_int64s", integers);
  if (!floats.empty()) a.set("values_floats", floats);
}

// The texts that an encoder maps to become indices.
Names values_to_indices(Draft& d) {
  Attributes& a = d.attributes;
  Names names;
  std::vector<int64_t> numbers;
  for (const std::string& v : texts_of(a, "values_strings")) numbers.push_back(index_of(names, v));
  a.set("default_int64", index_of(names, a.text("default_string", "_Unused")));
  a.set("values_int64s", numbers);
  a.erase("values_strings"), a.erase("default_string");
  return names;
}

// ai.onnx.ml 1 has one list for both directions; tables that are tensors of text are lists as well.
void normalize_encoder(Draft& d, bool reads_text) {
  Attributes& a = d.attributes;
  for (const std::string side : {"keys", "values"})
    if (const Names n = texts_of(a, side + "_tensor"); !n.empty()) {
      a.erase(side + "_tensor");
      a.set(side + "_strings", n);
    }
  if (const Names n = texts_of(a, "default_tensor"); n.size() == 1) {
    a.erase("default_tensor");
    a.set("default_string", n[0]);
  }
  const Names classes = texts_of(a, "classes_strings");
  if (classes.empty()) return;
  a.erase("classes_strings");
  a.set(reads_text ? "keys_strings" : "values_strings", classes);
  a.set(reads_text ? "values_int64s" : "keys_int64s", counted(classes.size()));
}

}  // namespace

Tensor Importer::text_constant(const onnx::TensorProto& t, std::vector<std::string>& names) {
  std::vector<int64_t> dims(t.dims().begin(), t.dims().end()), indices;
  int64_t size = 1;
  for (const int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(size, d, &size)) refuse("a tensor of text has the extent {}", d);
  if (dims.size() > 12 || size != t.string_data_size())
    refuse("{} texts for {} elements", t.string_data_size(), size);
  for (const std::string& s : t.string_data()) indices.push_back(index_of(names, s));
  return Tensor::of(indices).reshaped(dims);
}

// Takes the texts out of a node; what it makes is a tensor of indices from here on.
void Importer::replace_text(Draft& d) {
  Attributes& a = d.attributes;
  const auto found = d.input(0) ? texts_.find(d.input(0)) : texts_.end();
  const Names* in = found == texts_.end() ? nullptr : &found->second;
  for (size_t i = 1; i < d.inputs.size(); ++i)
    if (d.inputs[i] && texts_.count(d.inputs[i])) refuse("text as input {} is not supported", i);
  Value* out = d.outputs.empty() ? nullptr : d.outputs[0];
  const bool ml = d.domain == "ai.onnx.ml";
  if (ml && d.op == "LabelEncoder") {
    normalize_encoder(d, in);
    if (in && texts_of(a, "keys_strings").empty()) refuse("its input is text, its keys are not");
    if (!in && !texts_of(a, "keys_strings").empty()) refuse("its keys are text, its input is not");
    if (in) keys_to_indices(d, *in, "keys_strings");
    if (texts_of(a, "values_strings").empty()) return;
    Names names = values_to_indices(d);
    if (out) texts_[out] = std::move(names);
    return;
  }
  if (ml && d.op == "OneHotEncoder" && in) {
    std::vector<int64_t> numbers;
    Names names = *in;  // a category that its input never holds has a number of its own
    for (const std::string& c : texts_of(a, "cats_strings")) numbers.push_back(index_of(names, c));
    a.erase("cats_strings");
    a.set("cats_int64s", numbers);
    return;
  }
  if (in && moves_text(d)) {
    Names names = *in;
    if (out) texts_[out] = std::move(names);
    if (d.op == "Cast") d.op = "Identity", a = {};
    return;
  }
  if (in) refuse("its input is text, which is not supported");
  if (!ml || !d.op.ends_with("Classifier")) return;
  const Names labels = texts_of(a, "classlabels_strings");
  if (labels.empty()) return;
  a.erase("classlabels_strings");
  a.set(d.op == "TreeEnsembleClassifier" ? "classlabels_int64s" : "classlabels_ints", counted(labels.size()));
  if (out) texts_[out] = labels;
}

}  // namespace sinter
