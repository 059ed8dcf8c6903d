#include "cli/hints.h"

#include <algorithm>
#include <map>

#include "ir/error.h"
#include "ir/nearest.h"

namespace sinter {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(c->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options())
    for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
  return names;
}

bool is_model(const std::string& argument) { return argument[0] != '-' && argument.ends_with(".onnx"); }

}  // namespace

std::string hints(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return "";
  const std::vector<std::string> commands = command_names(app);
  const std::string& word = arguments[0];
  if (std::find(commands.begin(), commands.end(), word) == commands.end()) {
    if (word[0] == '-') return "";
    std::string all;
    for (const std::string& c : commands) all += (all.empty() ? "" : ", ") + c;
    return fmt::format("sinter: there is no subcommand {}{}\nThere are {}.\n", sinter::quoted(word),
                       did_you_mean(word, commands), all);
  }
  const std::vector<std::string> options = option_names(*app.get_subcommand(word));
  std::string text;
  if (word != "compile" && word != "verify" &&
      std::count_if(arguments.begin(), arguments.end(), is_model) > 1)
    text = fmt::format("sinter {}: one model; sinter compile and sinter verify take several, as one bundle\n",
                       word);
  for (const std::string& a : arguments) {
    const std::string option = a.substr(0, a.find('='));
    if (option.size() < 3 || option.compare(0, 2, "--") != 0) continue;
    if (std::find(options.begin(), options.end(), option) != options.end()) continue;
    text += fmt::format("sinter {}: there is no option {}{}\n", word, sinter::quoted(option),
                        did_you_mean(option, options));
  }
  return text;
}

std::string examples_of(const std::string& command) {
  static const std::map<std::string, const char*> all = {
      {"compile",
       "  sinter compile net.onnx -o net --target cortex-a72\n"
       "  sinter compile net.onnx -o net --dim \"batch<=8\" --max-ram 8M --small-weights\n"
       "  sinter compile find.onnx read.onnx -o eye --name eye --dim read:batch=1"},
      {"build", "  sinter build net -o libnet.so    # after sinter compile net.onnx -o net"},
      {"run",
       "  sinter run net.onnx --in image.npy --out scores.npy\n"
       "  sinter run net.onnx --in photo.png --image \"scale=1/255\" --target cortex-a72"},
      {"verify",
       "  sinter verify net.onnx --dim batch=2\n"
       "  sinter verify net.onnx --data test_data_set_0 --target cortex-a72"},
      {"inspect",
       "  sinter inspect net.onnx --target cortex-a72 --dim \"batch<=8\"\n"
       "  sinter inspect net.onnx --html net.html"},
      {"bench", "  sinter bench net.onnx --dim batch=1 --repeat 100 --json times.json"},
      {"quantize",
       "  sinter quantize net.onnx --data photos --image \"scale=1/255\" -o net_int8.onnx\n"
       "  sinter quantize net.onnx --data samples --max-loss 35 --report net.json -o net_int8.onnx\n"
       "  sinter quantize bert.onnx --weights-only 4 -o bert_int4.onnx"},
      {"tune", "  sinter tune net.onnx --target cortex-a72 --on ssh:pi4 -o pi4.json"},
      {"ops", "  sinter ops\n  sinter ops --markdown"},
      {"targets", "  sinter targets\n  sinter targets --markdown"},
      {"passes", "  sinter passes"},
      {"manual", "  sinter manual man | man -l -\n  source <(sinter manual bash)"},
  };
  const auto it = all.find(command);
  return it == all.end() ? "" : std::string("Examples:\n") + it->second;
}

}  // namespace sinter
