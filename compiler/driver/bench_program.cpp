#include "driver/bench_program.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "driver/errors.h"
#include "driver/frames.h"
#include "driver/interrupt.h"
#include "driver/output_file.h"
#include "driver/pipeline.h"
#include "emit/code.h"
#include "emit/shared_files.h"
#include "ir/error.h"
#include "ops/op.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

// The models, and behind them the same with the trace.
Pipeline with_traced(const ModelOptions& given, const std::vector<std::string>& models) {
  ModelOptions o = given;
  if (o.name.empty()) o.name = "bench";
  Pipeline p = pipeline_of(o, models, {});
  const size_t n = p.names.size();
  for (size_t i = 0; i < n; ++i) {
    const std::string name = p.names[i] + "_by_layer";
    if (std::count(p.names.begin(), p.names.end(), name) > 0)
      throw UsageError(fmt::format("a model can't be called {}: this is {} with a clock", name, p.names[i]));
    p.names.push_back(name);
    p.options[i].trace = false;
    p.options.push_back(p.options[i]);
    p.options.back().name += "_by_layer";
    p.options.back().trace = true;
  }
  return p;
}

// How a value that the caller gives is filled: as random_input does.
Filling filling_of(const Member& m, const std::string& model) {
  const DType t = m.value->type.dtype;
  if (size_of(t) == 0 || (is_stored_float(t) && size_of(t) == 1))
    refuse("{}: --export has no numbers for the input {} of {}", model, sinter::quoted(m.model_name),
           name_of(t));
  Filling input{m.index, is_frame(*m.value), std::nullopt};
  if (m.value->range) {
    Tensor largest(t, {1});
    largest.set_real(0, m.value->range->hi);
    input.number = largest.real(0);
  }
  return input;
}

std::string contents_of(const fs::path& file) {
  std::ifstream f(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(f), {});
}

std::string program_text(const Pipeline& p, const CompiledPipeline& all, const std::vector<int>& threads) {
  std::vector<BundlePart> parts;
  for (const Compiled& c : all.models) parts.push_back({*c.graph, c.plan, *c.target, c.options});
  std::vector<ExportedNet> nets;
  for (size_t i = 0, n = parts.size() / 2; i < n; ++i) {
    ExportedNet& net = nets.emplace_back(ExportedNet{p.names[i], i, n + i, {}});
    for (const Member& m : input_members(parts[i].graph, parts[i].plan.states))
      net.inputs.push_back(filling_of(m, p.options[i].model));
  }
  return bench_main(all.memory, parts, nets, threads);
}

}  // namespace

BenchProgramFigures export_bench(const ModelOptions& given, const std::vector<std::string>& models,
                                 const std::vector<int>& threads, const fs::path& program) {
  ModelOptions o = given;
  o.threads = *std::max_element(threads.begin(), threads.end());
  const Pipeline p = with_traced(o, models);
  CompiledPipeline all = compile_pipeline(p, import_options(p));
  all.files[p.name + "_main.cpp"] = program_text(p, all, threads);
  add_runtime(all.files);
  const TemporaryFolder folder;
  const fs::path bundle = folder.path() / "bundle", built = folder.path() / "program";
  write_bundle(all.files, bundle);
  Toolchain tc = toolchain_for(*all.models[0].target, false);
  if (std::count(tc.link.begin(), tc.link.end(), "-static") == 0) tc.link.emplace_back("-static");
  tc.link.emplace_back("-s");
  build_program(bundle, p.name, tc, folder.path(), built);
  write_output_file(program.string(), contents_of(built));
  std::error_code ec;
  if (fs::is_regular_file(program, ec))
    fs::permissions(program, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                    fs::perm_options::add, ec);
  return {{p.names.begin(), p.names.begin() + static_cast<ptrdiff_t>(p.names.size() / 2)},
          weights_bytes(all.weights),
          all.memory.arena_bytes,
          static_cast<int64_t>(fs::file_size(built))};
}

}  // namespace sinter
