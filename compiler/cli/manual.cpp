// sinter manual: what the help says, as a man page and as completions of shells. `cmake --install` writes
// them.
#include <memory>

#include "cli/command.h"
#include "driver/errors.h"
#include "driver/output_file.h"
#include "ir/error.h"
#include "targets/target.h"

namespace sinter {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The named options of a command, but -h.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* o) { return !o->get_positional() && o->get_name() != "--help"; });
}

bool takes_value(const CLI::Option& o) { return o.get_items_expected_max() > 0; }

std::string target_names() {
  std::string names = "host";
  for (const Target* t : all_targets()) names += std::string(" ") + t->name;
  return names;
}

// Text of a man page: what troff takes for its own is none.
std::string troff(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    line_begins = c == '\n';
  }
  return out;
}

// As it stands, line by line.
std::string verbatim(const std::string& text) { return ".nf\n" + troff(text) + "\n.fi\n"; }

std::string man_page(const CLI::App& app) {
  std::string s = fmt::format(".TH SINTER 1 \"\" \"sinter {}\" \"User Commands\"\n", SINTER_VERSION);
  s += ".SH NAME\nsinter \\- compiles an ONNX model into C++ of its own\n";
  s += ".SH SYNOPSIS\n";
  for (const CLI::App* c : commands_of(app)) {
    s += fmt::format(".B sinter {}\n[options]", c->get_name());
    for (const CLI::Option* o : c->get_options([](const CLI::Option* p) { return p->get_positional(); }))
      s += " \\fI" + troff(o->get_name(true)) + "\\fR";
    s += "\n.br\n";
  }
  s += ".SH COMMANDS\n";
  for (const CLI::App* c : commands_of(app)) {
    s += fmt::format(".SS sinter {}\n{}\n", c->get_name(), troff(c->get_description()));
    for (const CLI::Option* o : options_of(*c)) {
      s += ".TP\n.B " + troff(o->get_name(false, true)) + (takes_value(*o) ? " \\fIVALUE\\fR\n" : "\n");
      s += troff(o->get_description()) + "\n";
    }
    if (!c->get_footer().empty()) s += ".PP\n" + verbatim(c->get_footer());
  }
  return s + ".SH EXIT STATUS\n" + verbatim(app.get_footer());
}

std::string bash_completion(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* c : commands_of(app)) {
    names += (names.empty() ? "" : " ") + c->get_name();
    std::string options;
    for (const CLI::Option* o : options_of(*c))
      for (const std::string& l : o->get_lnames()) options += " --" + l;
    cases +=
        fmt::format("    {}) options='{}' ;;\n", c->get_name(), options.empty() ? "" : options.substr(1));
  }
  return fmt::format(
      "# bash completion of sinter; made by `sinter manual bash`\n"
      "_sinter() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  if [[ $before == --target ]]; then\n"
      "    COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options --help\" -- \"$word\"))\n"
      "  fi  # else files, as of any command\n"
      "}}\n"
      "complete -o default -F _sinter sinter\n",
      names, target_names(), cases);
}

// The first line of a text without the letters that a shell or its completion takes for its own.
std::string plain(const std::string& text) {
  std::string s = text.substr(0, text.find('\n'));
  std::erase_if(s, [](char c) { return std::string("'[]:\\\"$`").find(c) != std::string::npos; });
  return s;
}

std::string zsh_completion(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* c : commands_of(app)) {
    names += fmt::format("  '{}:{}'\n", c->get_name(), plain(c->get_description()));
    cases += fmt::format("  {})\n    _arguments", c->get_name());
    for (const CLI::Option* o : options_of(*c))
      for (const std::string& l : o->get_lnames())
        cases += fmt::format(" \\\n      '*--{}{}[{}]{}'", l, takes_value(*o) ? "=" : "",
                             plain(o->get_description()),
                             l == "target"     ? fmt::format(":target:({})", target_names())
                             : takes_value(*o) ? ":value:_files"
                                               : "");
    cases += " \\\n      '*:file:_files'\n    ;;\n";
  }
  return fmt::format(
      "#compdef sinter\n# made by `sinter manual zsh`\n"
      "local -a commands\ncommands=(\n{})\n"
      "if ((CURRENT == 2)); then\n  _describe command commands\n  return\nfi\n"
      "local command=$words[2]\nshift words\n((CURRENT--))\n"
      "case $command in\n{}esac\n",
      names, cases);
}

std::string fish_completion(const CLI::App& app) {
  std::string s = "# fish completion of sinter; made by `sinter manual fish`\n";
  for (const CLI::App* c : commands_of(app))
    s += fmt::format("complete -c sinter -n __fish_use_subcommand -f -a {} -d '{}'\n", c->get_name(),
                     plain(c->get_description()));
  for (const CLI::App* c : commands_of(app))
    for (const CLI::Option* o : options_of(*c))
      for (const std::string& l : o->get_lnames())
        s += fmt::format("complete -c sinter -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n",
                         c->get_name(), l,
                         l == "target"     ? fmt::format(" -x -a '{}'", target_names())
                         : takes_value(*o) ? " -r"
                                           : "",
                         plain(o->get_description()));
  return s;
}

struct Options {
  std::string kind, output;
};

int manual(const CLI::App& app, const Options& o) {
  const std::string text = o.kind == "man"    ? man_page(app)
                           : o.kind == "bash" ? bash_completion(app)
                           : o.kind == "zsh"  ? zsh_completion(app)
                                              : fish_completion(app);
  if (o.output.empty())
    fmt::print("{}", text);
  else
    write_output_file(o.output, text);
  return kExitOk;
}

}  // namespace

std::function<int()> declare_manual(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("KIND", o->kind, "man, bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  app.add_option("-o,--output", o->output, "write to this file instead of standard output");
  return [o, &app] { return manual(*app.get_parent(), *o); };
}

}  // namespace sinter
