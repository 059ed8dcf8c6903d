#include "driver/runner_object.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <system_error>

#include "driver/errors.h"
#include "driver/process.h"
#include "emit/runtime_files.h"
#include "import/sha256.h"

namespace sinter {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSource = "#define SINTER_RUNNER_APART\n#include \"sinter/runner_program.h\"\n";

fs::path cache_folder() {
  const auto value = [](const char* name) -> std::optional<std::string> {
    const char* v = std::getenv(name);
    return v ? std::optional<std::string>(v) : std::nullopt;
  };
  if (const auto own = value("SINTER_CACHE_DIR")) return *own;  // empty: none
  if (const auto xdg = value("XDG_CACHE_HOME"); xdg && !xdg->empty()) return fs::path(*xdg) / "sinter";
  if (const auto home = value("HOME"); home && !home->empty()) return fs::path(*home) / ".cache" / "sinter";
  return {};
}

// What tells a compiler from its next version: where it is, how large, how old.
std::string identity(const std::string& program) {
  std::error_code failed;
  fs::path path = program.find('/') == std::string::npos ? find_program(program) : program;
  if (const fs::path real = fs::canonical(path, failed); !failed) path = real;
  const auto size = fs::file_size(path, failed);
  const auto time = fs::last_write_time(path, failed);
  return fmt::format("{} {} {}\n", path.string(), size, time.time_since_epoch().count());
}

// The name of all that the object follows from.
std::string key(const std::vector<std::string>& compile) {
  std::string all = kSource;
  for (const std::string& w : compile) all += w + "\n";
  for (const std::string& w : compile)
    if (w[0] != '-') all += identity(w);
  for (const auto& [name, text] : runtime_files()) all.append(name).append("\n").append(text);
  return sha256_hex(all);
}

}  // namespace

RunnerObject::RunnerObject(const std::vector<std::string>& compile, const fs::path& bundle,
                           const fs::path& folder) {
  std::error_code failed;
  if (const fs::path cache = cache_folder(); !cache.empty()) {
    cached_ = cache / ("runner-" + key(compile).substr(0, 32) + ".o");
    if (fs::is_regular_file(cached_, failed)) {
      object_ = cached_;
      return;
    }
  }
  const fs::path source = folder / "sinter_runner.cpp";
  std::ofstream(source) << kSource;
  object_ = folder / "sinter_runner.o";
  command_ = compile;
  command_->insert(command_->end(), {"-I" + bundle.string(), "-c", source.string(), "-o", object_.string()});
}

void RunnerObject::keep() const {
  if (!command_ || cached_.empty()) return;
  std::error_code failed;
  fs::create_directories(cached_.parent_path(), failed);
  const fs::path fresh = cached_.string() + fmt::format(".{}", getpid());
  if (fs::copy_file(object_, fresh, fs::copy_options::overwrite_existing, failed))
    fs::rename(fresh, cached_, failed);
  if (failed) fs::remove(fresh, failed);
}

}  // namespace sinter
