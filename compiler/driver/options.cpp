#include "driver/options.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "driver/errors.h"
#include "driver/state_names.h"
#include "emit/printer.h"
#include "ir/error.h"
#include "ir/nearest.h"
#include "ir/read_files.h"
#include "ops/custom.h"
#include "sinter/tensor_file.h"

namespace sinter {
namespace {

int64_t parse_integer(const std::string& text, const std::string& whole) {
  int64_t v = 0;
  bool ok = !text.empty() && text.size() < 16;
  for (const char c : text) {
    ok = ok && c >= '0' && c <= '9';
    v = v * 10 + (c - '0');
  }
  if (!ok) throw UsageError(fmt::format("{}: {} is no whole number", whole, sinter::quoted(text)));
  return v;
}

// "1", "1,2,3" as a tensor of the input's type: one value fills it, several are its elements.
Tensor parse_values(const char* option, const DeclaredInput& input, const std::string& text) {
  std::vector<double> values;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    size_t used = 0;
    double v = 0;
    try {
      v = std::stod(one, &used);
    } catch (const std::exception&) {
    }
    if (used == 0 || used != one.size())
      throw UsageError(
          fmt::format("{} {}: {} is neither a number nor a file", option, input.name, sinter::quoted(one)));
    values.push_back(v);
    at = end + 1;
  }
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<int64_t> shape;
  for (const auto& e : input.extents)
    shape.push_back(e.lo == e.hi ? e.lo : input.extents.size() == 1 ? n : 1);
  if (!is_float(input.dtype) && !is_integer(input.dtype) && input.dtype != DType::kBool)
    throw UsageError(
        fmt::format("{} {}: a tensor of {} needs a file", option, input.name, name_of(input.dtype)));
  Tensor t(input.dtype, shape);
  if (n != 1 && n != t.size())
    throw UsageError(fmt::format("{} {}: {} values for {} elements", option, input.name, n, t.size()));
  for (int64_t i = 0; i < t.size(); ++i) {
    const double v = values[n == 1 ? 0 : static_cast<size_t>(i)];
    if (is_float(input.dtype)) {
      t.set_real(i, v);
    } else {
      if (v != std::nearbyint(v) || std::abs(v) > 9e15)
        throw UsageError(fmt::format("{} {}: {} is no {}", option, input.name, v, name_of(input.dtype)));
      t.set_integer(i, static_cast<int64_t>(v));
      if (static_cast<double>(t.integer(i)) != v)
        throw UsageError(
            fmt::format("{} {}: {} does not fit {}", option, input.name, v, name_of(input.dtype)));
    }
  }
  return t;
}

const DimOption* option_for(const std::vector<DimOption>& dims, const std::string& param,
                            const std::string& place) {
  for (const DimOption& d : dims)
    if ((!param.empty() && d.name == param) || d.name == place) return &d;
  return nullptr;
}

DeclaredInput::Extent extent_of(const onnx::TensorShapeProto::Dimension& dim,
                                const std::vector<DimOption>& dims, const std::string& place) {
  DeclaredInput::Extent e;
  e.text = dim.dim_param();
  if (const DimOption* o = option_for(dims, dim.dim_param(), place)) {
    e.lo = o->lo, e.hi = o->hi, e.step = o->step;
    e.maybe_empty = o->at_most;
  } else if (dim.has_dim_value()) {
    e.lo = e.hi = dim.dim_value();
  }
  return e;
}

}  // namespace

int64_t parse_size(const std::string& option, const std::string& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const size_t begin = std::min(text.find_first_not_of(' ', end), text.size());
  std::string unit_name;
  for (const char c : text.substr(begin))
    unit_name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  int64_t unit = 1;
  if (!unit_name.empty() && unit_name != "B") {
    const size_t at = std::string("KMG").find(unit_name[0]);
    const std::string rest = unit_name.substr(1);
    if (at == std::string::npos || (!rest.empty() && rest != "B" && rest != "IB"))
      throw UsageError(
          fmt::format("{}: {} is no size; give bytes, or 64K, 8M, 1G (also KB and KiB, powers of 1024)",
                      option, sinter::quoted(text)));
    unit = int64_t{1} << (10 * (at + 1));
  }
  const int64_t v = parse_integer(text.substr(0, end), option);
  if (v > (int64_t{1} << 50) / unit) throw UsageError(fmt::format("{}: {} is too large", option, text));
  return v * unit;
}

int64_t weight_budget(const ModelOptions& o, int64_t stored) {
  constexpr int64_t kSpare = 4 << 10;  // for what is aligned and rounded up in tiny models
  constexpr int64_t kSmall = 4 << 20;
  if (o.fast_weights) return INT64_MAX;
  double times = o.small_weights ? 1.1 : stored < kSmall ? 2 : 1.5;
  if (!o.max_weights.empty()) {
    char* end = nullptr;
    const double given = std::strtod(o.max_weights.c_str(), &end);
    if (std::string(end) != "x" && std::string(end) != "X") return parse_size("--max-weights", o.max_weights);
    if (!(given >= 0.1 && given <= 1000))
      throw UsageError(
          fmt::format("--max-weights {}: a factor is 0.1x to 1000x", sinter::quoted(o.max_weights)));
    times = given;
  }
  return static_cast<int64_t>(static_cast<double>(stored) * times) + kSpare;
}

DimOption parse_dim(const std::string& text) {
  const std::string whole = fmt::format("--dim {}", sinter::quoted(text));
  DimOption d;
  if (const size_t at = text.rfind("<="); at != std::string::npos) {
    d.name = text.substr(0, at);
    d.lo = 1;
    d.at_most = true;
    d.hi = parse_integer(text.substr(at + 2), whole);
  } else {
    const size_t equal = text.rfind('=');
    if (equal == std::string::npos) throw UsageError(whole + ": give NAME=4, \"NAME<=8\" or NAME=64..640:32");
    d.name = text.substr(0, equal);
    std::string range = text.substr(equal + 1);
    if (const size_t colon = range.find(':'); colon != std::string::npos) {
      d.step = parse_integer(range.substr(colon + 1), whole);
      range.resize(colon);
    }
    const size_t dots = range.find("..");
    d.lo = parse_integer(range.substr(0, dots), whole);
    d.hi = dots == std::string::npos ? d.lo : parse_integer(range.substr(dots + 2), whole);
  }
  while (!d.name.empty() && d.name.back() == ' ') d.name.pop_back();
  if (d.name.empty()) throw UsageError(whole + ": no name");
  if ((d.hi < d.lo && !(d.at_most && d.hi == 0)) || d.step < 1)
    throw UsageError(fmt::format("{}: {}..{}:{} is no range", whole, d.lo, d.hi, d.step));
  return d;
}

const Target& target_of(const ModelOptions& o) {
  if (const Target* t = find_target(o.target)) return *t;
  if (o.target.find(',') != std::string::npos)
    throw UsageError(
        fmt::format("--target {}: a list is for sinter compile of one model; give one of them here",
                    sinter::quoted(o.target)));
  std::string names;
  std::vector<std::string> all = {"host"};
  for (const Target* t : all_targets()) {
    names += std::string(names.empty() ? "" : ", ") + t->name;
    all.emplace_back(t->name);
  }
  throw UsageError(fmt::format("--target {}: there are host, {}{}", sinter::quoted(o.target), names,
                               did_you_mean(o.target, all)));
}

std::vector<DeclaredInput> declared_inputs(const std::string& model, const ImportOptions& options) {
  onnx::ModelProto proto;
  std::ifstream file(model, std::ios::binary);
  std::vector<DeclaredInput> inputs;
  if (!file || !proto.ParseFromIstream(&file)) return inputs;
  std::set<std::string> initialized, needed;
  for (const auto& t : proto.graph().initializer()) initialized.insert(t.name());
  for (const auto& t : proto.graph().sparse_initializer()) initialized.insert(t.values().name());
  if (!options.only.empty()) needed = needed_names(proto.graph(), options.only);
  size_t index = 0;
  for (const auto& i : proto.graph().input()) {
    const bool has_value = initialized.count(i.name()) != 0;
    if (has_value && !options.carried.count(i.name())) continue;
    DeclaredInput d;
    d.name = i.name();
    d.index = has_value ? DeclaredInput::kInNoFile : index++;
    d.needed = options.only.empty() || needed.count(d.name);
    if (options.constants.count(d.name)) continue;
    if (d.needed && i.has_type() && !i.type().has_tensor_type())  // before its file is read
      throw Refusal(fmt::format("input {}: sequences, maps, optionals and sparse tensors are not supported",
                                sinter::quoted(d.name)));
    const auto& type = i.type().tensor_type();
    d.dtype = dtype_of_onnx(type.elem_type());
    if (d.needed && d.dtype == DType::kString)
      throw Refusal(fmt::format("input {}: strings are not supported", sinter::quoted(d.name)));
    d.has_shape = type.has_shape();
    d.elements = option_for(options.dims, "", d.name);
    for (int k = 0; k < type.shape().dim_size(); ++k)
      d.extents.push_back(extent_of(type.shape().dim(k), options.dims, fmt::format("{}@{}", d.name, k)));
    inputs.push_back(std::move(d));
  }
  return inputs;
}

namespace {
// What the model declares there, by name; nothing where it can't be read.
std::vector<std::string> names_of(
    const std::string& model,
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& (onnx::GraphProto::*declared)() const) {
  onnx::ModelProto proto;
  std::ifstream file(model, std::ios::binary);
  std::vector<std::string> names;
  if (!file || !proto.ParseFromIstream(&file)) return names;
  for (const auto& v : (proto.graph().*declared)()) names.push_back(v.name());
  return names;
}
}  // namespace

std::vector<std::string> declared_names(const std::string& model) {
  return names_of(model, &onnx::GraphProto::input);
}
std::vector<std::string> declared_outputs(const std::string& model) {
  return names_of(model, &onnx::GraphProto::output);
}

namespace {

// What each option of the form NAME=VALUE or NAME=FILE makes of one of these inputs.
void read_values(const char* option, const std::vector<std::string>& given,
                 const std::vector<DeclaredInput>& inputs, const char* what,
                 std::map<std::string, Tensor>& values) {
  for (const std::string& c : given) {
    const DeclaredInput* input = nullptr;
    std::string value;
    for (size_t at = c.find('='); at != std::string::npos && !input; at = c.find('=', at + 1))
      for (const DeclaredInput& d : inputs)
        if (d.name == c.substr(0, at)) input = &d, value = c.substr(at + 1);
    if (!input) {
      std::vector<std::string> names;
      names.reserve(inputs.size());
      for (const DeclaredInput& d : inputs) names.push_back(d.name);
      throw UsageError(fmt::format("{} {}: give NAME=VALUE or NAME=FILE; the {} are {}", option,
                                   sinter::quoted(c), what, quoted_list(names)));
    }
    std::error_code ec;
    const Tensor t = std::filesystem::is_regular_file(value, ec) ? read_tensor_file(value)
                                                                 : parse_values(option, *input, value);
    if (!values.emplace(input->name, t).second)
      throw UsageError(fmt::format("{} {} is given twice", option, sinter::quoted(input->name)));
  }
}

// --state-init; and which states have an initializer in the model.
void read_states(const ModelOptions& o, ImportOptions& out) {
  if (o.states.empty() && o.initial.empty()) return;
  std::set<std::string> states;
  for (const StateName& n : state_names(o, out)) states.insert(n.input);
  out.carried = states;
  if (o.initial.empty()) return;
  std::vector<DeclaredInput> inputs = declared_inputs(o.model, out);
  std::erase_if(inputs, [&](const DeclaredInput& d) { return !states.count(d.name); });
  read_values("--state-init", o.initial, inputs, "states (--state)", out.initial);
}

}  // namespace

ImportOptions import_options(const ModelOptions& o) {
  ImportOptions out;
  for (const std::string& d : o.dims) out.dims.push_back(parse_dim(d));
  out.max_trips = o.max_trips;
  out.only = o.only;
  if (!o.custom_ops.empty()) {
    // Shared with whoever copies the options, because graphs point into it.
    auto ops = std::make_shared<CustomOps>(o.custom_ops);
    out.custom_op = [ops](const std::string& domain, const std::string& name) {
      return ops->find(domain, name);
    };
  }
  if (!o.constants.empty())
    read_values("--const", o.constants, declared_inputs(o.model, out), "inputs", out.constants);
  read_states(o, out);
  if (!o.only.empty())
    for (const StateName& n : state_names(o, out)) out.only.push_back(n.output);
  return out;
}

Tensor read_tensor_file(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) throw UsageError(path + " is not a file that can be read");
  note_read(path);
  std::ifstream file(path, std::ios::binary);
  char magic[6] = {};
  file.read(magic, sizeof magic);
  if (std::string_view(magic, 6) != "\x93NUMPY") {
    try {
      return read_tensor_pb(path);
    } catch (const Refusal& r) {
      throw UsageError(r.what());
    }
  }
  TensorFile f;
  const std::string problem = read_tensor(path, Tensor::kMaxBytes, f);
  if (!problem.empty()) throw UsageError(problem);
  Tensor t(dtype_of_onnx(f.type->onnx), f.dims);
  std::memcpy(t.mutable_data(), f.data.data(), static_cast<size_t>(t.bytes()));
  return t;
}

std::vector<std::string> pair_files(const std::vector<std::string>& options,
                                    const std::vector<std::string>& names, const std::string& what) {
  std::vector<std::string> files(names.size()), rest;
  for (const std::string& o : options) {
    bool named = false;
    for (size_t at = o.find('='); at != std::string::npos && !named; at = o.find('=', at + 1)) {
      const std::string name = o.substr(0, at);
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      // Several may have the name; the next one without a file is meant.
      size_t i = 0;
      while (i < names.size() && (names[i] != name || !files[i].empty())) ++i;
      if (i == names.size())
        throw UsageError(
            fmt::format("{} for the {} {}",
                        std::count(names.begin(), names.end(), name) == 1 ? "two files" : "too many files",
                        what, sinter::quoted(name)));
      files[i] = o.substr(at + 1);
      named = true;
    }
    if (!named) rest.push_back(o);
  }
  size_t at = 0;
  for (const std::string& o : rest) {
    while (at < files.size() && !files[at].empty()) ++at;
    if (at == files.size())
      throw UsageError(fmt::format("no {} is left for {}; the {}s are {}", what, sinter::quoted(o), what,
                                   quoted_list(names)));
    files[at] = o;
  }
  return files;
}

}  // namespace sinter
