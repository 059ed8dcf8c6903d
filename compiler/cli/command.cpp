#include "cli/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <system_error>

#include "cli/hints.h"
#include "driver/errors.h"
#include "ir/error.h"

namespace sinter {
namespace {

// What messages about a model begin with: its path as it was given. About one of several they have it
// already.
std::string subject(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    if (const CLI::Option* model = command->get_option_no_throw("MODEL"); model && model->count())
      return model->count() == 1 ? model->results()[0] + ": " : "";
  return "sinter: ";
}

int run_parsed(const CLI::App& app, const std::function<int()>& command) {
  try {
    return command();
  } catch (const Refusal& r) {
    for (const std::string& p : r.problems) std::cerr << subject(app) << p << "\n";
    if (r.problems.empty()) std::cerr << subject(app) << "refused\n";
    return kExitRefused;
  } catch (const UsageError& e) {
    std::cerr << "sinter: " << e.what() << "\n";
    return kExitUsage;
  } catch (const ToolchainError& e) {
    std::cerr << "sinter: " << e.what() << "\n";
    return kExitToolchain;
  } catch (const RunError& e) {
    std::cerr << "sinter: " << e.what() << "\n";
    return kExitRun;
  } catch (const std::bad_alloc&) {
    std::cerr << subject(app) << "not enough memory\n";
    return kExitRefused;
  } catch (const std::system_error& e) {  // a stream, a folder or a thread that the system refuses
    std::cerr << "sinter: " << e.what() << "\n";
    return kExitRefused;
  } catch (const Bug& b) {
    std::cerr << b.text;
    return kExitBug;
  } catch (const std::exception& e) {
    std::cerr << "sinter: a bug of ours: " << e.what() << "\n";
    return kExitBug;
  }
}

// What was printed counts only once it has arrived: a full device ends every command.
int flushed(int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout) return code;
  std::fprintf(stderr, "sinter: cannot write to standard output: %s\n", std::strerror(errno));
  return code == kExitOk ? kExitRefused : code;
}

int run_checked(int argc, const char* const* argv) {
  CLI::App app("sinter: compiles an ONNX model into C++ of its own", "sinter");
  app.set_version_flag("--version", "sinter " SINTER_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 ok, 1 verify found a difference, 2 wrong usage, 3 the model is refused,\n"
      "4 the C++ compiler failed, 5 a bug in sinter, 6 the built model returned an error.");
  std::function<int()> chosen;
  for (const Command& c : all_commands()) {
    CLI::App* sub = app.add_subcommand(c.name, c.what);
    const std::function<int()> run = c.declare(*sub);
    sub->callback([run, &chosen] { chosen = run; });
    sub->footer(examples_of(c.name));
  }
  if (argc < 2) {
    std::cerr << "sinter: a subcommand is required\n\n" << app.help();
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const std::string more = e.get_exit_code() == 0 ? "" : hints(app, {argv + 1, argv + argc});
    if (more.empty()) return app.exit(e) == 0 ? kExitOk : kExitUsage;
    std::cerr << more;
    return kExitUsage;
  }
  return run_parsed(app, chosen);
}

}  // namespace

const std::vector<Command>& all_commands() {
  static const std::vector<Command> table = {
      {"compile", "write a model's C++ code, weights and headers to a folder", declare_compile},
      {"build", "make a shared library of what compile wrote", declare_build},
      {"run", "compile, build and execute a model on files", declare_run},
      {"verify", "compare every layer of the built model with the model's meaning", declare_verify},
      {"inspect", "show layers, shapes, work and memory", declare_inspect},
      {"bench", "measure times, memory and code size", declare_bench},
      {"tune", "measure which kernels suit a model on a board, for compile's --tuning", declare_tune},
      {"quantize", "make a float model one of 8 or 4 bits, measured on samples", declare_quantize},
      {"ops", "list the supported operators", declare_ops},
      {"targets", "list the processors that code can be generated for", declare_targets},
      {"passes", "list the optimisations in the order they run", declare_passes},
      {"manual", "print the man page, or completions of bash, zsh or fish", declare_manual},
  };
  return table;
}

// Options are declared, and messages made, with memory too: what fails there says so without any.
int run_command_line(int argc, const char* const* argv) {
  try {
    return flushed(run_checked(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("sinter: not enough memory\n", stderr);
    return kExitRefused;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sinter: a bug of ours: %s\n", e.what());
    return kExitBug;
  }
}

}  // namespace sinter
