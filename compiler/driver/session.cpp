#include "driver/session.h"

#include <algorithm>
#include <thread>

#include "driver/errors.h"
#include "driver/process.h"
#include "emit/bundle.h"
#include "ir/error.h"

namespace sinter {

Session::Session(const ModelOptions& o, const ImportOptions& import) {
  const Compiled c = compile_model(o, import);
  toolchain_ = toolchain_for(*c.target, true);
  const std::filesystem::path bundle = folder_.path() / "bundle";
  write_bundle(c.files, bundle);
  program_ = folder_.path() / "program";
  build_program(bundle, c.options.name, toolchain_, folder_.path(), program_);
  for (const Member& m : members_of(c.graph->inputs)) inputs_.push_back(m.name);
  for (const Member& m : members_of(c.graph->outputs)) output_members_.push_back(m.name);
  outputs_ = sinter::output_names(*c.graph);
}

std::vector<std::vector<Tensor>> Session::run(const std::vector<std::vector<std::string>>& files,
                                              const std::vector<std::string>& outputs) const {
  std::vector<std::vector<std::string>> commands, written(files.size());
  for (size_t k = 0; k < files.size(); ++k) {
    SINTER_CHECK(files[k].size() == inputs_.size(), "a file for each input");
    std::vector<std::string> command = toolchain_.execute;
    command.push_back(program_.string());
    for (size_t i = 0; i < files[k].size(); ++i)
      command.insert(command.end(), {"--in", inputs_[i] + "=" + files[k][i]});
    for (const std::string& name : outputs) {
      const auto at =
          static_cast<size_t>(std::find(outputs_.begin(), outputs_.end(), name) - outputs_.begin());
      SINTER_CHECK(at < outputs_.size(), "an output of the model");
      written[k].push_back((folder_.path() / fmt::format("output_{}_{}.npy", k, at)).string());
      command.insert(command.end(), {"--out", output_members_[at] + "=" + written[k].back()});
    }
    commands.push_back(std::move(command));
  }
  for (const Finished& f : run_processes(commands, std::max(1U, std::thread::hardware_concurrency())))
    if (f.code != 0) throw RunError(fmt::format("the built model ended with code {}: {}", f.code, f.output));
  std::vector<std::vector<Tensor>> tensors(files.size());
  for (size_t k = 0; k < files.size(); ++k)
    for (const std::string& file : written[k]) {
      tensors[k].push_back(read_tensor_file(file));
      std::error_code ec;
      std::filesystem::remove(file, ec);
    }
  return tensors;
}

}  // namespace sinter
