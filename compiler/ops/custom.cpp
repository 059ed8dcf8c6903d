#include "ops/custom.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/read_files.h"
#include "ir/words.h"
#include "ops/movement/movement.h"

namespace sinter {
namespace {

using nlohmann::ordered_json;

// ---- shapes

// "same(2)" -> 2; -1 where it is something else.
int same_as(const std::string& text) {
  if (text.rfind("same(", 0) != 0 || text.back() != ')') return -1;
  const std::string digits = text.substr(5, text.size() - 6);
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  return std::stoi(digits);
}

DType dtype_named(const std::string& name) {
  for (int onnx = 1; onnx < 64; ++onnx)
    if (const DType t = dtype_of_onnx(onnx); t != DType::kUndefined && name_of(t) == name) return t;
  return DType::kUndefined;
}

// An expression over extents, by recursive descent.
class Extent {
 public:
  Extent(const Inference& x, const CustomOp& op, const std::string& text) : x_(x), op_(op), text_(text) {}
  Dim value() {
    const Dim d = sum();
    if (at_ != text_.size()) fail();
    return d;
  }

 private:
  [[noreturn]] void fail() const {
    x_.fail(fmt::format("extent {} cannot be understood", sinter::quoted(text_)));
  }
  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return true;
  }
  Dim sum() {
    Dim d = term();
    for (;;) {
      if (take('+'))
        d = d + term();
      else if (take('-'))
        d = d - term();
      else
        return d;
    }
  }
  Dim term() {
    Dim d = factor();
    for (;;) {
      if (take('*')) {
        d = d * factor();
      } else if (take('/')) {
        const Dim by = factor();
        if (by.lo() <= 0) x_.fail(fmt::format("extent {} divides by {}", sinter::quoted(text_), by.text()));
        d = floordiv(d, by);
      } else {
        return d;
      }
    }
  }
  Dim factor() {
    if (++depth_ > 100) fail();
    const Dim d = take('-') ? Dim(0) - factor() : atom();
    --depth_;
    return d;
  }
  Dim atom() {
    if (take('(')) {
      const Dim d = sum();
      if (!take(')')) fail();
      return d;
    }
    take(' ');
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.empty() || word.size() > 100) fail();
    if (word.find_first_not_of("0123456789") == std::string::npos) {
      if (word.size() > 15) fail();
      return Dim(std::stoll(word));
    }
    if (take('(')) return call(word);
    if (take('[')) return extent_of(word);
    const auto attribute = op_.defaults.find(word);
    if (attribute == op_.defaults.end() || !std::holds_alternative<int64_t>(attribute->second)) fail();
    return Dim(x_.attributes().integer(word, std::get<int64_t>(attribute->second)));
  }
  Dim call(const std::string& word) {
    const Dim a = sum();
    if (!take(',')) fail();
    const Dim b = sum();
    if (!take(')')) fail();
    if (word == "min") return min(a, b);
    if (word == "max") return max(a, b);
    if (word != "ceildiv") fail();
    if (b.lo() <= 0) x_.fail(fmt::format("extent {} divides by {}", sinter::quoted(text_), b.text()));
    return ceildiv(a, b);
  }
  Dim extent_of(const std::string& input) {
    const auto it = std::find(op_.input_names.begin(), op_.input_names.end(), input);
    if (it == op_.input_names.end()) fail();
    const auto i = static_cast<size_t>(it - op_.input_names.begin());
    const bool negative = take('-');
    const Dim index = atom();
    if (!take(']') || !index.is_static()) fail();
    if (!x_.has(i))
      x_.fail(
          fmt::format("extent {} needs the absent input {}", sinter::quoted(text_), sinter::quoted(input)));
    const int64_t rank = x_.rank(i), axis = negative ? rank - index.value() : index.value();
    if (axis < 0 || axis >= rank)
      x_.fail(fmt::format("extent {}: {} has shape {}", sinter::quoted(text_), sinter::quoted(input),
                          text(x_.shape(i))));
    return x_.shape(i)[static_cast<size_t>(axis)];
  }

  const Inference& x_;
  const CustomOp& op_;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

void check_attributes(const Inference& x, const CustomOp& op) {
  for (const auto& [name, value] : x.attributes().all()) {
    const auto it = op.defaults.find(name);
    x.require(it != op.defaults.end(),
              fmt::format("the custom operator has no attribute {}", sinter::quoted(name)));
    x.require(it->second.index() == value.index(),
              fmt::format("attribute {} is of another type than its default", sinter::quoted(name)));
  }
}

void infer_custom(Inference& x) {
  const CustomOp& op = *custom_op_of(x.node);
  check_attributes(x, op);
  for (size_t i = 0; i < x.in.size(); ++i)
    x.require(!x.has(i) || (size_of(x.dtype(i)) > 0 && cpp_name(x.dtype(i)) != "void"),
              fmt::format("custom operators do not take {}", name_of(x.dtype(i))));
  for (size_t i = 0; i < x.out.size(); ++i) {
    const CustomOp::Output& o = op.results[i];
    const int dtype_from = same_as(o.dtype), shape_from = same_as(o.shape);
    for (int from : {dtype_from, shape_from})
      x.require(from < 0 || x.has(static_cast<size_t>(from)),
                fmt::format("output {} is like the absent input {}", i, from));
    const DType t = dtype_from >= 0 ? x.dtype(static_cast<size_t>(dtype_from)) : dtype_named(o.dtype);
    Shape shape;
    if (shape_from >= 0) {
      shape = x.shape(static_cast<size_t>(shape_from));
    } else {
      for (const std::string& e : o.extents) {
        const Dim d = Extent(x, op, e).value();
        x.require(d.hi() >= 0, fmt::format("extent {} is {}", sinter::quoted(e), d.text()));
        if (d.lo() < 0) require_le(x, 0, d, "extent " + sinter::quoted(e));
        shape.push_back(d);
      }
    }
    x.set(i, t, std::move(shape));
  }
}
std::function<void(Evaluation&)>& custom_meaning() {
  static std::function<void(Evaluation&)> meaning;
  return meaning;
}

void eval_custom(Evaluation& e) {
  if (!custom_meaning()) e.fail("a custom operator has no reference meaning");
  custom_meaning()(e);
}

// ---- the file

bool is_identifier(const std::string& s) {
  if (s.empty() || s.size() > 100 || std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  return std::all_of(s.begin(), s.end(),
                     [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); });
}

bool is_free_word(const std::string& s) {
  return is_identifier(s) && s[0] != '_' && s.find("__") == std::string::npos && !is_reserved_word(s);
}

class Reader {
 public:
  Reader(const std::filesystem::path& file, std::vector<std::string>& problems)
      : folder_(file.parent_path()), problems_(problems) {}

  std::unique_ptr<CustomOp> read(const ordered_json& j, size_t number) {
    where_ = fmt::format("custom operator {}", number);
    auto op = std::make_unique<CustomOp>();
    if (!j.is_object()) {
      problem("an object is expected");
      return op;
    }
    check_keys(j);
    op->op_domain = text_of(j, "domain", "");
    op->op_name = text_of(j, "op", "");
    if (!op->op_name.empty())
      where_ = fmt::format("custom operator {}", sinter::quoted(op->op_domain + "::" + op->op_name));
    if (op->op_name.empty()) problem("\"op\" is missing");
    if (op->op_domain.empty())
      problem("\"domain\" is missing: the operators of ONNX's own domain cannot be replaced");
    op->function = text_of(j, "function", "");
    if (!is_free_word(op->function))
      problem(fmt::format("\"function\" {} cannot be a C function", sinter::quoted(op->function)));
    read_inputs(j, *op);
    read_attributes(j, *op);
    read_outputs(j, *op);
    read_files(j, *op);
    op->name = op->op_name.c_str();
    op->domain = op->op_domain.c_str();
    op->infer = infer_custom;
    op->eval = eval_custom;
    op->impure = true;  // never folded or merged: nothing is known of it
    return op;
  }

 private:
  void problem(const std::string& what) { problems_.push_back(where_ + ": " + what); }

  void check_keys(const ordered_json& j) {
    static const char* const kKeys[] = {"domain", "op",    "inputs",   "outputs", "attributes",
                                        "shape",  "dtype", "function", "header",  "sources"};
    for (const auto& [key, value] : j.items())
      if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
        problem(fmt::format("unknown key {}", sinter::quoted(key)));
  }
  std::string text_of(const ordered_json& j, const char* key, const std::string& fallback) {
    if (!j.contains(key)) return fallback;
    if (j[key].is_string()) return j[key].get<std::string>();
    problem(fmt::format("\"{}\" must be a string", key));
    return fallback;
  }
  std::vector<std::string> texts(const ordered_json& j, const char* key) {
    std::vector<std::string> list;
    if (!j.is_array()) {
      problem(fmt::format("\"{}\" must be a list of strings", key));
      return list;
    }
    for (const ordered_json& e : j) {
      if (e.is_string())
        list.push_back(e.get<std::string>());
      else if (e.is_number_integer())  // an extent
        list.push_back(std::to_string(e.get<int64_t>()));
      else
        problem(fmt::format("\"{}\" must be a list of strings", key));
    }
    return list;
  }

  void read_inputs(const ordered_json& j, CustomOp& op) {
    if (!j.contains("inputs")) return problem("\"inputs\" is missing: the list of their names");
    op.min_inputs = 0;
    for (std::string name : texts(j["inputs"], "inputs")) {
      const bool optional = !name.empty() && name.back() == '?';
      if (optional) name.pop_back();
      if (!is_identifier(name)) problem(fmt::format("input {} is no identifier", sinter::quoted(name)));
      op.input_names.push_back(name);
      if (!optional) op.min_inputs = static_cast<int>(op.input_names.size());
    }
    op.max_inputs = static_cast<int>(op.input_names.size());
  }

  void read_attributes(const ordered_json& j, CustomOp& op) {
    if (!j.contains("attributes")) return;
    if (!j["attributes"].is_object())
      return problem("\"attributes\" must be an object of names and defaults");
    for (const auto& item : j["attributes"].items()) {
      const std::string& name = item.key();
      const ordered_json& v = item.value();
      if (!is_free_word(name))
        problem(fmt::format("attribute {} cannot be a C identifier", sinter::quoted(name)));
      const auto all = [&](auto is) { return v.is_array() && std::all_of(v.begin(), v.end(), is); };
      if (v.is_number_integer())
        op.defaults[name] = v.get<int64_t>();
      else if (v.is_number_float())
        op.defaults[name] = v.get<float>();
      else if (v.is_string())
        op.defaults[name] = v.get<std::string>();
      else if (all([](const ordered_json& e) { return e.is_number_integer(); }))
        op.defaults[name] = v.get<std::vector<int64_t>>();
      else if (all([](const ordered_json& e) { return e.is_number(); }))
        op.defaults[name] = v.get<std::vector<float>>();
      else
        problem(fmt::format("attribute {}: its default must be a number, a string or a list of numbers",
                            sinter::quoted(name)));
    }
  }

  void read_outputs(const ordered_json& j, CustomOp& op) {
    size_t n = 1;
    if (j.contains("outputs")) {
      const auto names = texts(j["outputs"], "outputs");
      n = names.size();
      for (const std::string& name : names)
        if (!is_identifier(name)) problem(fmt::format("output {} is no identifier", sinter::quoted(name)));
    }
    if (n == 0) problem("it has no outputs");
    op.min_outputs = op.max_outputs = static_cast<int>(n);
    for (size_t i = 0; i < n; ++i) {
      CustomOp::Output o;
      read_shape(j, i, n, o);
      o.dtype = "same(0)";
      if (j.contains("dtype")) {
        const ordered_json& d = j["dtype"];
        if (d.is_string())
          o.dtype = d.get<std::string>();
        else if (d.is_array() && d.size() == n && d[i].is_string())
          o.dtype = d[i].get<std::string>();
        else
          problem("\"dtype\" must be a string, or one for each output");
      }
      const DType named = dtype_named(o.dtype);
      if (same_as(o.dtype) < 0 &&
          (named == DType::kUndefined || size_of(named) == 0 || cpp_name(named) == "void"))
        problem(fmt::format("dtype {} is neither same(K) nor a type's name as in numpy",
                            sinter::quoted(o.dtype)));
      for (int from : {same_as(o.shape), same_as(o.dtype)})
        if (from >= op.max_inputs) problem(fmt::format("same({}): there are {} inputs", from, op.max_inputs));
      op.results.push_back(std::move(o));
    }
  }
  void read_shape(const ordered_json& j, size_t i, size_t n, CustomOp::Output& o) {
    o.shape = "same(0)";
    if (!j.contains("shape")) return;
    const ordered_json* s = &j["shape"];
    // A list is one shape, or with several outputs one shape for each.
    if (s->is_array() && n > 1) {
      if (s->size() != n) return problem(fmt::format("{} shapes for {} outputs", s->size(), n));
      s = &(*s)[i];
    }
    if (s->is_string()) {
      o.shape = s->get<std::string>();
      if (same_as(o.shape) < 0) problem(fmt::format("shape {} is not same(K)", sinter::quoted(o.shape)));
    } else {
      o.shape.clear();
      o.extents = texts(*s, "shape");
    }
  }

  void read_files(const ordered_json& j, CustomOp& op) {
    op.header = text_of(j, "header", "");
    if (!op.header.empty()) op.header = add_file(op, op.header);
    if (!j.contains("sources")) return problem("\"sources\" is missing: the list of C or C++ files");
    for (const std::string& s : texts(j["sources"], "sources")) {
      const std::string end = std::filesystem::path(s).extension().string();
      if (end != ".c" && end != ".cpp" && end != ".cc")
        problem(fmt::format("source {} is no .c, .cc or .cpp file", sinter::quoted(s)));
      add_file(op, s);
    }
  }
  std::string add_file(CustomOp& op, const std::string& path) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (name.empty() || !std::all_of(name.begin(), name.end(), [](unsigned char c) {
          return c < 128 && (std::isalnum(c) || c == '_' || c == '-' || c == '.');
        })) {
      problem(fmt::format("{} is not a plain file name", sinter::quoted(path)));
      return "";
    }
    note_read(folder_ / path);
    std::ifstream f(folder_ / path, std::ios::binary);
    std::stringstream text;
    text << f.rdbuf();
    if (!f.is_open() || std::filesystem::is_directory(folder_ / path)) {
      problem(fmt::format("cannot read {}", sinter::quoted(path)));
      return "";
    }
    if (!op.files.try_emplace(name, text.str()).second)
      problem(fmt::format("two files are named {}", sinter::quoted(name)));
    return name;
  }

  std::filesystem::path folder_;
  std::vector<std::string>& problems_;
  std::string where_;
};

}  // namespace

void set_custom_meaning(std::function<void(Evaluation&)> meaning) { custom_meaning() = std::move(meaning); }

CustomOps::CustomOps(const std::filesystem::path& json) {
  note_read(json);
  std::ifstream f(json, std::ios::binary);
  if (!f.is_open() || std::filesystem::is_directory(json))
    refuse("cannot read {}", sinter::quoted(json.string()));
  const ordered_json j = ordered_json::parse(f, nullptr, false);
  if (j.is_discarded()) refuse("{} is not JSON", sinter::quoted(json.string()));
  if (!j.is_array()) refuse("{}: a list of custom operators is expected", sinter::quoted(json.string()));
  std::vector<std::string> problems;
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < j.size(); ++i) {
    auto op = Reader(json, problems).read(j[i], i);
    if (find(op->op_domain, op->op_name))
      problems.push_back(
          fmt::format("{} is given twice", sinter::quoted(op->op_domain + "::" + op->op_name)));
    for (const auto& [name, text] : op->files)
      if (files.try_emplace(name, text).first->second != text)
        problems.push_back(fmt::format("two different files are named {}", sinter::quoted(name)));
    ops_.push_back(std::move(op));
  }
  if (!problems.empty()) throw Refusal(std::move(problems));
}

const Op* CustomOps::find(const std::string& domain, const std::string& name) const {
  for (const auto& op : ops_)
    if (op->op_domain == domain && op->op_name == name) return op.get();
  return nullptr;
}

const CustomOp* custom_op_of(const Node& n) {
  return n.op && n.op->infer == infer_custom ? static_cast<const CustomOp*>(n.op) : nullptr;
}

}  // namespace sinter
