#include "driver/bundle_reader.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/errors.h"
#include "driver/several_targets.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

DType dtype_of_name(const std::string& name) {
  for (int onnx = 1; onnx < 27; ++onnx)
    if (const DType t = dtype_of_onnx(onnx); t != DType::kUndefined && name_of(t) == name) return t;
  return DType::kUndefined;
}

fs::path map_in(const fs::path& dir) {
  std::error_code ec;
  fs::path map;
  for (fs::directory_iterator i(dir, ec), end; !ec && i != end; i.increment(ec)) {
    if (i->path().extension() != ".map") continue;
    if (!map.empty()) throw UsageError(fmt::format("{} holds more than one bundle", dir.string()));
    map = i->path();
  }
  if (map.empty()) throw UsageError(fmt::format("{} holds no bundle (no NAME.map)", dir.string()));
  return map;
}

DeclaredInput input_of(const nlohmann::json& j) {
  DeclaredInput d;
  d.name = j.at("name").get<std::string>();
  d.dtype = dtype_of_name(j.at("dtype").get<std::string>());
  d.has_shape = true;
  for (const auto& e : j.at("shape")) {
    const int64_t lo = e.is_object() ? e.at("min").get<int64_t>() : e.get<int64_t>();
    const int64_t hi = e.is_object() ? e.at("max").get<int64_t>() : lo;
    d.extents.push_back({std::max<int64_t>(lo, 0), hi, 1, e.is_object() ? e.value("expr", "") : "", false});
  }
  if (j.contains("frame"))
    d.frame = parse_frame_words("--pre", j["frame"].at("words").get<std::string>(), {});
  return d;
}

}  // namespace

Bundle open_bundle(const fs::path& dir) {
  const fs::path map = map_in(dir);
  Bundle b;
  b.dir = fs::absolute(dir);
  try {
    std::ifstream f(map);
    const auto j = nlohmann::json::parse(f);
    b.name = j.at("name").get<std::string>();
    b.target = j.at("target").get<std::string>();
    b.files = j.at("files").get<std::vector<std::string>>();
    b.weights_in_file = j.value("weights", "") == "file";
    b.models = j.value("models", nlohmann::json::array()).size();
    for (const auto& i : j.value("inputs", nlohmann::json::array())) {
      b.inputs.push_back(input_of(i));
      b.input_members.push_back(i.at("member").get<std::string>());
    }
    for (const auto& o : j.value("outputs", nlohmann::json::array())) {
      b.outputs.push_back(o.at("name").get<std::string>());
      b.output_members.push_back(o.at("member").get<std::string>());
    }
  } catch (const nlohmann::json::exception& e) {
    throw UsageError(fmt::format("{} is no bundle's map: {}", map.string(), e.what()));
  }
  std::error_code ec;
  for (const char* end : {".h", ".cpp"})
    if (!fs::exists(b.dir / (b.name + end), ec))
      throw UsageError(
          fmt::format("{}: {}{} is missing; compile the model again", dir.string(), b.name, end));
  return b;
}

Toolchain toolchain_of(const Bundle& b, bool execute) {
  if (names_several(b.target)) return toolchain_for(targets_of(b.target), execute);
  if (const Target* target = find_target(b.target)) return toolchain_for(*target, execute);
  throw UsageError(fmt::format("the bundle is for {}, which is unknown", sinter::quoted(b.target)));
}

bool is_current(const fs::path& product, const Bundle& b) {
  std::error_code ec;
  const auto built = fs::last_write_time(product, ec);
  if (ec) return false;
  return std::none_of(b.files.begin(), b.files.end(), [&](const std::string& file) {
    const auto written = fs::last_write_time(b.dir / file, ec);
    return ec || written > built;
  });
}

bool put_in_place(const fs::path& fresh, const fs::path& place) {
  std::error_code ec;
  // `fresh` lies in a folder that no other process has: its name makes this one unique as well.
  const fs::path beside = place.parent_path() / fmt::format(".{}-{}", place.filename().string(),
                                                            fresh.parent_path().filename().string());
  fs::copy_file(fresh, beside, ec);
  if (!ec) fs::rename(beside, place, ec);
  if (!ec) return true;
  fs::remove(beside, ec);
  return false;
}

}  // namespace sinter
