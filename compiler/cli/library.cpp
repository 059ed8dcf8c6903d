// sinter build: a bundle becomes a shared library, for languages that load such (the Python module does).
#include <memory>

#include "cli/command.h"
#include "driver/build.h"
#include "driver/bundle_reader.h"
#include "driver/errors.h"
#include "driver/process.h"
#include "emit/bundle_folder.h"
#include "ir/error.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string bundle, output;
};

int build(const Options& o) {
  const TemporaryFolder objects;
  std::unique_ptr<FolderLock> reading;  // no compile replaces the bundle meanwhile
  if (std::error_code ec; fs::is_directory(o.bundle, ec))
    reading = std::make_unique<FolderLock>(o.bundle, FolderLock::Mode::kShared);
  const Bundle b = open_bundle(o.bundle);
  const fs::path library =
      o.output.empty() ? b.dir / fmt::format("lib{}.so", b.name) : fs::absolute(o.output);
  if (!is_current(library, b)) {
    const fs::path fresh = objects.path() / library.filename();
    build_library(b.dir, b.name, toolchain_of(b, false), objects.path(), fresh);
    if (!put_in_place(fresh, library)) refuse("{} can't be written", sinter::quoted(library.string()));
  }
  fmt::print("{}\n", library.string());
  return kExitOk;
}

}  // namespace

std::function<int()> declare_build(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("BUNDLE", o->bundle, "a folder that sinter compile wrote")->required()->option_text("DIR");
  app.add_option("-o,--output", o->output, "the shared library; default: libNAME.so in the bundle's folder");
  return [o] { return build(*o); };
}

}  // namespace sinter
