#include "driver/tuning_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/errors.h"
#include "driver/output_file.h"
#include "import/sha256.h"
#include "ir/error.h"
#include "ir/read_files.h"

namespace sinter {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostBytes = 16 << 20;

struct Contents {
  std::string kernels;
  std::vector<TuningRow> rows;
  std::map<std::string, std::vector<std::string>> unfinished;
};

std::string bytes_of(const std::string& path) {
  std::error_code ec;
  std::ifstream f(path, std::ios::binary);
  if (!std::filesystem::is_regular_file(path, ec) || !f) throw UsageError(path + " can't be read");
  if (std::filesystem::file_size(path, ec) > kMostBytes || ec)
    throw UsageError(path + " is too large to be a tuning file");
  note_read(path);
  return {std::istreambuf_iterator<char>(f), {}};
}

Contents parse(const std::string& path) {
  Contents c;
  try {
    const ordered_json j = ordered_json::parse(bytes_of(path));
    if (j.at("sinter_tuning").get<int>() != 1) throw UsageError(path + " is a tuning file of another kind");
    c.kernels = j.at("kernels").get<std::string>();
    for (const ordered_json& r : j.at("rows"))
      c.rows.push_back({r.at("target").get<std::string>(), r.at("layer").get<std::string>(),
                        r.at("choice").get<std::string>(), r.value("cost", 0.0), r.value("unit", "")});
    if (j.contains("unfinished")) c.unfinished = j["unfinished"].get<decltype(c.unfinished)>();
  } catch (const ordered_json::exception& e) {
    throw UsageError(fmt::format("{} is no tuning file: {}", path, e.what()));
  }
  for (const TuningRow& r : c.rows)
    if (!is_tuning_choice(r.choice))
      throw UsageError(fmt::format("{}: {} is no choice that a layer has", path, sinter::quoted(r.choice)));
  return c;
}

}  // namespace

Tuning read_tuning(const std::string& path, const Target& target, const Say& say) {
  Tuning tuning;
  if (path.empty()) return tuning;
  const Contents c = parse(path);
  if (c.kernels != kernel_table_version()) {
    say(
        fmt::format("sinter: warning: {} was measured with other kernels than this sinter's: its {} rows are "
                    "ignored; run sinter tune again\n",
                    path, c.rows.size()));
    return tuning;
  }
  for (const TuningRow& r : c.rows)
    if (r.target == target.name) tuning[r.layer] = r.choice;
  return tuning;
}

TuningProgress read_progress(const std::string& path, const std::string& run, const Target& target) {
  TuningProgress progress{run, {}, {}};
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return progress;
  const Contents c = parse(path);
  const auto there = c.unfinished.find(run);
  if (c.kernels != kernel_table_version() || there == c.unfinished.end()) return progress;
  progress.layers = there->second;
  for (const TuningRow& r : c.rows)
    if (r.target == target.name && std::count(progress.layers.begin(), progress.layers.end(), r.layer) != 0)
      progress.rows.push_back(r);
  return progress;
}

void write_tuning(const std::string& path, const TuningProgress& progress, bool finished) {
  Contents c{kernel_table_version(), {}, {}};
  std::error_code ec;
  if (std::filesystem::exists(path, ec))
    if (Contents old = parse(path); old.kernels == c.kernels) c = std::move(old);
  for (const TuningRow& r : progress.rows) {
    std::erase_if(c.rows, [&](const TuningRow& x) { return x.target == r.target && x.layer == r.layer; });
    c.rows.push_back(r);
  }
  c.unfinished.erase(progress.run);
  if (!finished) c.unfinished[progress.run] = progress.layers;
  ordered_json j = {{"sinter_tuning", 1}, {"kernels", c.kernels}, {"rows", ordered_json::array()}};
  for (const TuningRow& r : c.rows)
    j["rows"].push_back(
        {{"target", r.target}, {"layer", r.layer}, {"choice", r.choice}, {"cost", r.cost}, {"unit", r.unit}});
  if (!c.unfinished.empty()) j["unfinished"] = c.unfinished;
  write_output_file(path, j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::string tuning_file_hash(const std::string& path) { return sha256_hex(bytes_of(path)); }

}  // namespace sinter
