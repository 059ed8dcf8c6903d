#include "emit/layer.h"

#include <algorithm>
#include <cstring>

#include "ir/error.h"
#include "ir/hash.h"
#include "ops/op.h"

namespace sinter {

size_t WeightStore::add(const void* data, size_t bytes) {
  SINTER_CHECK(!is_file_, "weights are added to a file");
  std::vector<size_t>& same = by_hash_[{hash_bytes(data, bytes), bytes}];
  for (const size_t at : same)
    if (std::memcmp(blobs_[at].bytes.data(), data, bytes) == 0) return at;
  same.push_back(blobs_.size());
  blobs_.push_back({std::string(static_cast<const char*>(data), bytes)});
  return same.back();
}

int64_t WeightStore::place(size_t blob) {
  SINTER_CHECK(!is_file_, "weights of a file are placed");
  Blob& b = blobs_.at(blob);
  if (b.offset >= 0) return b.offset;
  b.offset = (size_ + 63) / 64 * 64;
  size_ = b.offset + static_cast<int64_t>(b.bytes.size());
  placed_.push_back(blob);
  return b.offset;
}

void WeightStore::forget_places() {
  for (const size_t blob : placed_) blobs_[blob].offset = -1;
  placed_.clear();
  size_ = 0;
}

const std::string& WeightStore::bytes() const {
  if (is_file_) return file_;
  is_file_ = true;
  file_.reserve(static_cast<size_t>(size_) + sizeof(uint64_t));
  for (const size_t blob : placed_) {
    std::string part;  // freed here: the file takes its place
    part.swap(blobs_[blob].bytes);
    file_.resize(static_cast<size_t>(blobs_[blob].offset), '\0');
    file_ += part;
  }
  blobs_.clear();
  return file_;
}

std::string WeightStore::take() {
  bytes();
  return std::move(file_);
}

std::string shape_comment(const Shape& shape) {
  std::string s;
  for (const Dim& d : shape) s += "[" + d.text() + "]";
  return s.empty() ? "scalar" : s;
}

namespace {
// Shape and, where its pixels are not side by side, how far they are apart.
std::string place_comment(const Decisions& d, const Value& v, const Shape& shape) {
  if (!d.has_gaps(v)) return shape_comment(shape);
  return fmt::format("{}, pixels {} apart", shape_comment(shape), d.pixel_stride(v).text());
}
}  // namespace

std::string variable(const Symbol& s) {
  const bool capital = s.id.size() == 1 && s.id[0] >= 'A' && s.id[0] <= 'Z';
  return capital ? s.id : "dim_" + s.id;
}

Context context_of(const Node& n, const Context& c) {
  const bool halves = n.freedom.halves == Halves::kComputed && !c.target.of_halves;
  return {halves ? in_halves(c.target) : c.target, c.decisions};
}

LayerWriter::LayerWriter(const Node& n, const Context& c, WeightStore& store, std::string function,
                         int threads)
    : node(n),
      context(context_of(n, c)),
      target(context.target),
      element(element_of(n.freedom.halves)),
      decision(c.of(n)),
      threads(threads),
      store_(store) {
  layer_.node = &n;
  layer_.function = std::move(function);
  layer_.subnormals = target.aarch64 ? Subnormals::kEither : node.freedom.subnormals;
  if (n.freedom.halves == Halves::kStored) include("sinter/convert.h");
  if (layer_.subnormals == Subnormals::kZeros) include("sinter/subnormals.h");
}

Candidate LayerWriter::choose_candidate() const { return choose(node, context).candidates.at(0); }

// The header of the element types that C++ has not.
void LayerWriter::include_storage(DType t) {
  if (t == DType::kF16 || t == DType::kBF16) include("sinter/half.h");
  if (is_small_float(t)) include("sinter/small_float.h");
}

std::string LayerWriter::add(Parameter p) {
  p.name = names_.unique(p.name);
  layer_.parameters.push_back(p);
  return p.name;
}

std::string LayerWriter::input(size_t i) {
  SINTER_CHECK(i > 0 || decision.piece_times.empty(), "a picture that is only there in parts");
  return read(node.inputs[i], i == 0 && decision.reads_nchw);
}

std::string LayerWriter::read(const Value* v, bool planar) {
  SINTER_CHECK(v, "an absent input is asked for");
  include_storage(v->type.dtype);
  if (auto it = input_names_.find(v); it != input_names_.end()) return it->second;
  Shape shape = v->type.shape;
  if (planar)  // as the planes that are read lie in memory
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  Parameter p{.kind = Parameter::Kind::kInput,
              .type = fmt::format("const {}*", cpp_name(v->type.dtype)),
              .name = input_names_.empty() ? "x" : fmt::format("x{}", input_names_.size()),
              .comment = place_comment(context.decisions, *v, shape),
              .value = v,
              .symbol = nullptr};
  if (v->data) {
    p.kind = Parameter::Kind::kWeights;
    p.bytes = v->data->bytes();
    p.blob = store_.add(v->data->data(), static_cast<size_t>(p.bytes));
  }
  return input_names_[v] = add(std::move(p));
}

std::string LayerWriter::output(size_t i) {
  const Value* v = node.outputs[i];
  SINTER_CHECK(v, "an absent output is asked for");
  include_storage(v->type.dtype);
  if (auto it = output_names_.find(v); it != output_names_.end()) return it->second;
  return output_names_[v] =
             add({.kind = Parameter::Kind::kOutput,
                  .type = fmt::format("{}*", cpp_name(v->type.dtype)),
                  .name = output_names_.empty() ? "y" : fmt::format("y{}", output_names_.size()),
                  .comment = place_comment(context.decisions, *v, v->type.shape),
                  .value = v,
                  .symbol = nullptr});
}

std::string LayerWriter::weights(const std::string& name, const std::string& type, const void* data,
                                 size_t bytes, const std::string& comment) {
  return add({.kind = Parameter::Kind::kWeights,
              .type = "const " + type + "*",
              .name = name,
              .comment = comment,
              .blob = store_.add(data, bytes),
              .bytes = static_cast<int64_t>(bytes),
              .symbol = nullptr});
}
std::string LayerWriter::weights(const std::string& name, const std::vector<float>& data,
                                 const std::string& comment) {
  if (!element.is_half())
    return weights(name, element.name, data.data(), data.size() * sizeof(float), comment);
  const std::vector<uint16_t> bits = element.packed(data);
  return weights(name, element.name, bits.data(), bits.size() * sizeof(uint16_t), comment);
}

int64_t apart(int64_t bytes) { return (bytes + 63) / 64 * 64 + (8 << 10); }

namespace {

int64_t bytes_of(const std::string& type) {
  static const std::map<std::string, int64_t> kBytes = {{"float", 4},
                                                        {"std::int32_t", 4},
                                                        {"std::uint32_t", 4},
                                                        {"double", 8},
                                                        {"std::int64_t", 8},
                                                        {"std::uint64_t", 8},
                                                        {"std::int16_t", 2},
                                                        {"std::uint16_t", 2},
                                                        {"sinter::Complex<float>", 8},
                                                        {"sinter::Complex<double>", 16},
                                                        {"sinter::half", 2},
                                                        {"sinter::bfloat16", 2},
                                                        {"std::int8_t", 1},
                                                        {"std::uint8_t", 1},
                                                        {"bool", 1},
                                                        {"unsigned char", 1}};
  const auto found = kBytes.find(type);
  SINTER_CHECK(found != kBytes.end(), "scratch of an unknown type");
  return found->second;
}

}  // namespace

std::string LayerWriter::scratch(const std::string& name, const std::string& of, int64_t count) {
  const std::string type = of == "float" ? element.name : of == kFloats ? "float" : of;
  const int64_t parts = decision.row_tile ? decision.row_tile->work_items : 1;
  const int64_t bytes = count * bytes_of(type), each = parts > 1 ? apart(bytes) : bytes;
  return add({.kind = Parameter::Kind::kScratch,
              .type = type + "*",
              .name = name,
              .comment = fmt::format("scratch, {} elements", count),
              .bytes = each * parts,
              .more_parts = each * (parts - 1),
              .symbol = nullptr});
}

std::string LayerWriter::scratch_of_part(const std::string& name, const std::string& of, int64_t count) {
  const std::string type = of == "float" ? element.name : of == kFloats ? "float" : of;
  if (!in_parts() && !shares_pictures()) return scratch(name, of, count);
  const int64_t each = apart(count * bytes_of(type)) / bytes_of(type);
  const std::string all = scratch(name, of, each * threads);
  Parameter& p = layer_.parameters.back();
  p.more_parts = p.bytes - p.bytes / threads;
  const char* piece = !shares_pictures() ? "part" : in_parts() ? "(share + part)" : "share";
  return fmt::format("({} + {} * {})", all, piece, each);
}

std::optional<LayerWriter::Strip> LayerWriter::strip() {
  if (!decision.row_tile) return std::nullopt;
  auto row = [&](const std::string& name, const std::string& comment) {
    return add({.kind = Parameter::Kind::kRow,
                .type = "std::int64_t",
                .name = name,
                .comment = comment,
                .symbol = nullptr});
  };
  Strip s;
  s.first = row("row_first", "rows of y to compute");
  s.end = row("row_end", "and the one behind them");
  if (decision.row_tile->reads_rows) s.x_base = row("x_base", "the row that x begins with");
  if (decision.row_tile->writes_rows) s.y_base = row("y_base", "the row that y begins with");
  return s;
}

bool worth_parts(double flops, double elements, double flops_of_element) {
  constexpr double kLeast = 100e3;  // flops that are worth a second thread: some 2.5 microseconds
  return std::max(flops, flops_of_element * elements) >= kLeast;
}

bool LayerWriter::in_parts() const { return std::count(parts_.begin(), parts_.end(), true) > 0; }

bool LayerWriter::is_large(double flops_of_element) const {
  const auto result =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](const Value* v) { return v; });
  const double elements =
      result == node.outputs.end() ? 0 : static_cast<double>(product((*result)->type.shape).hi());
  return worth_parts(layer_.flops, elements, flops_of_element);
}

void LayerWriter::add_pool() {
  include("sinter/parts.h");
  if (std::none_of(layer_.parameters.begin(), layer_.parameters.end(),
                   [](const Parameter& p) { return p.kind == Parameter::Kind::kPool; }))
    add({.kind = Parameter::Kind::kPool,
         .type = "const sinter_pool*",
         .name = "pool",
         .comment = "the threads, or null",
         .symbol = nullptr});
}

LayerWriter::Turns LayerWriter::open_parts(const std::string& count, double flops_of_element) {
  parts_.push_back(threads > 1 && !in_parts() && !decision.row_tile && is_large(flops_of_element) &&
                   count != "1");
  if (!parts_.back()) return {"0", count};
  add_pool();
  out.line(
      "sinter::run_parts({}, {}, {}, [=](std::int64_t first_turn, std::int64_t end_turn, "
      "[[maybe_unused]] std::int64_t part) {{",
      shares_pictures() ? "inside" : "pool", threads, count);
  return {"first_turn", "end_turn"};
}

void LayerWriter::close_parts() {
  if (parts_.back()) out.put("});");
  parts_.pop_back();
}

void LayerWriter::open_pictures(const Dim& count) {
  pictures_ = count;
  if (count.is(1)) return;
  const bool cut = threads > 1 && count.hi() >= threads && !decision.row_tile && is_large(kInRuns);
  const bool even = cut && mod(count, threads).is(0);
  way_ = even ? Pictures::kParts : cut ? Pictures::kShared : Pictures::kInTurn;
  if (!shares_pictures()) {
    const Turns turns = even ? open_parts(dim(count)) : Turns{"0", dim(count)};
    out.line("for (std::int64_t n = {}; n < {}; ++n) {{", turns.first, turns.end);
    return;
  }
  add_pool();
  out.line(
      "const auto pictures = [=](std::int64_t n, std::int64_t end_picture, std::int64_t share, "
      "[[maybe_unused]] const sinter_pool* inside) {{");
  out.line("for (; n < end_picture; ++n) {{");
}

void LayerWriter::close_pictures() {
  if (pictures_.is(1)) return;
  out.line("}}");
  if (way_ == Pictures::kParts) close_parts();
  if (!shares_pictures()) return;
  out.put("};");
  const std::string all = dim(pictures_), even = dim(floordiv(pictures_, threads) * threads);
  out.line("// Threads take as many pictures each; one that is left over they share.");
  out.line(
      "sinter::run_parts(pool, {}, {}, [=](std::int64_t first_turn, std::int64_t end_turn, std::int64_t "
      "part) {{ pictures(first_turn, end_turn, part, nullptr); }});",
      threads, even);
  out.line("pictures({}, {}, 0, pool);", even, all);
  way_ = Pictures::kParts;
}

void LayerWriter::parts_are_rows(int64_t turns, const std::function<int64_t(int64_t)>& first_row,
                                 bool input) {
  if (parts_.size() != 1 || !parts_.back() || turns < threads || decision.pixel_stride) return;
  RowParts rows;
  for (int64_t p = 0; p <= threads; ++p) rows.starts.push_back(first_row(turns * p / threads));
  if (input) rows.alike.push_back(node.inputs[0]);
  for (size_t i = node.anchor_inputs; i < node.inputs.size(); ++i)
    if (node.inputs[i] && node.inputs[i]->type.shape == node.outputs[0]->type.shape)
      rows.alike.push_back(node.inputs[i]);
  layer_.row_parts = std::move(rows);
}

std::string LayerWriter::dim(const Dim& d) {
  if (d.is_static()) return std::to_string(d.value());
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  for (const SymbolPtr& s : symbols) {
    const bool known =
        std::any_of(layer_.parameters.begin(), layer_.parameters.end(),
                    [&](const Parameter& p) { return p.kind == Parameter::Kind::kSymbol && p.symbol == s; });
    if (!known) {
      names_.reserve(variable(*s));
      layer_.parameters.push_back({.kind = Parameter::Kind::kSymbol,
                                   .type = "std::int64_t",
                                   .name = variable(*s),
                                   .comment = s->origin,
                                   .symbol = s});
    }
  }
  include("sinter/dims.h");
  return d.cpp(variable);
}

std::string LayerWriter::count(const Dim& d) {
  std::vector<SymbolPtr> symbols;
  d.collect_symbols(symbols);
  SINTER_CHECK(symbols.size() == 1, "a count is one symbol");
  return add({.kind = Parameter::Kind::kCount,
              .type = "std::int64_t*",
              .name = "count_" + variable(*symbols[0]),
              .comment = symbols[0]->origin,
              .symbol = symbols[0]});
}

void LayerWriter::include(const std::string& of_floats) {
  const std::string header = element.header(of_floats);
  if (std::find(layer_.includes.begin(), layer_.includes.end(), header) == layer_.includes.end())
    layer_.includes.push_back(header);
}
void LayerWriter::flops(const Dim& count) { layer_.flops += static_cast<double>(count.hi()); }

Layer LayerWriter::finish(const std::string& kernel, Algorithm algorithm) {
  layer_.kernel = kernel;
  layer_.algorithm = algorithm;
  layer_.body = element.spelled(out.text());
  layer_.helpers = element.spelled(helpers.text());
  if (layer_.summary.empty()) layer_.summary = node.op->name;
  return std::move(layer_);
}

}  // namespace sinter
