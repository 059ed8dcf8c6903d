#include "driver/pipeline.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "driver/errors.h"
#include "emit/printer.h"
#include "ir/error.h"
#include "ir/nearest.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string joined(const Words& words, const std::string& behind = "") {
  std::string s;
  for (size_t i = 0; i < words.size(); ++i)
    s += fmt::format("{}{}",
                     i == 0                 ? ""
                     : i + 1 < words.size() ? ", "
                                            : " or ",
                     sinter::quoted(words[i] + behind));
  return s.empty() ? "none" : s;
}

// The model's name and its file of "NAME=FILE" or "FILE".
std::pair<std::string, std::string> named(const std::string& word) {
  std::error_code ec;
  const size_t equal = word.find('=');
  if (equal == std::string::npos || fs::exists(word, ec))
    return {identifier(fs::path(word).stem().string()), word};
  const std::string name = word.substr(0, equal);
  if (identifier(name) != name)
    throw UsageError(fmt::format("{}: {} is not fit to be a part of C names; {} would be", word,
                                 sinter::quoted(name), identifier(name)));
  return {name, word.substr(equal + 1)};
}

// Where "MODEL:" ends in an option's text, and which model that is.
size_t model_in_front(const Pipeline& p, const std::string& option, const std::string& text, size_t& rest) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  auto at = std::find(p.names.begin(), p.names.end(), name);
  if (at == p.names.end()) at = std::find(p.names.begin(), p.names.end(), identifier(name));  // "yolo-v8:N=1"
  if (colon == std::string::npos || at == p.names.end())
    throw UsageError(
        fmt::format("--{} {}: of several models, say which one: {}{}", option, sinter::quoted(text),
                    joined(p.names, ":" + (colon == std::string::npos ? text : text.substr(colon + 1))),
                    colon == std::string::npos ? "" : did_you_mean(name, p.names)));
  rest = colon + 1;
  return static_cast<size_t>(at - p.names.begin());
}

// Gives each of several models its own of the options that speak of one model's names.
void deal(Pipeline& p, const ModelOptions& all) {
  if (p.options.size() == 1) return;
  const std::pair<const char*, Words ModelOptions::*> lists[] = {
      {"dim", &ModelOptions::dims},           {"const", &ModelOptions::constants},
      {"only", &ModelOptions::only},          {"state", &ModelOptions::states},
      {"keep-f32", &ModelOptions::keep_f32},  {"data", &ModelOptions::data},
      {"state-init", &ModelOptions::initial}, {"pre", &ModelOptions::pre},
      {"post", &ModelOptions::post}};
  for (const auto& [option, list] : lists) {
    for (ModelOptions& o : p.options) (o.*list).clear();
    for (const std::string& text : all.*list) {
      size_t rest = 0;
      const size_t model = model_in_front(p, option, text, rest);
      (p.options[model].*list).push_back(text.substr(rest));
    }
  }
}

// Refuses with the model's file in front of each problem.
void of_model(const ModelOptions& o, std::vector<std::string>& problems, const std::function<void()>& f) {
  try {
    f();
  } catch (const Refusal& r) {
    const auto add = [&](const std::string& problem) {
      const std::string line = o.model + ": " + problem;
      if (std::count(problems.begin(), problems.end(), line) == 0) problems.push_back(line);
    };
    for (const std::string& problem : r.problems) add(problem);
    if (r.problems.empty()) add("refused");
  } catch (const UsageError& e) {
    throw UsageError(o.model + ": " + e.what());
  }
}

const Member* find(const std::vector<Member>& members, const std::string& name) {
  for (const Member& m : members)
    if (m.model_name == name) return &m;
  return nullptr;
}

Words names_of(const std::vector<Member>& members) {
  Words names;
  for (const Member& m : members) names.push_back(m.model_name);
  return names;
}

// Extents may be equal in some run.
bool may_agree(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const Dim& x, const Dim& y) {
           return x.lo() <= y.hi() && y.lo() <= x.hi();
         });
}

// One --alive option: MODEL:OUTPUT, or MODEL:OUTPUT=MODEL:INPUT.
class Alive {
 public:
  Alive(const Pipeline& p, const std::vector<Compiled>& models, const std::string& text)
      : p_(p), models_(models), text_(text), whole_("--alive " + sinter::quoted(text)) {}

  void add_to(std::vector<LastingTensor>& lasting) {
    size_t rest = 0;
    const size_t model = model_in_front(p_, "alive", text_, rest);
    const std::string tail = text_.substr(rest);
    const auto outputs = output_members(*models_[model].graph, models_[model].plan.states);
    if (find(outputs, tail)) return (void)tensor(lasting, model, tail);
    for (size_t at = tail.find('='); at != std::string::npos; at = tail.find('=', at + 1))
      if (const Member* m = find(outputs, tail.substr(0, at)))
        return reader(lasting, tensor(lasting, model, m->model_name), *m, tail.substr(at + 1));
    refuse("{}: {} has no output {}{}; its outputs are {}", whole_, p_.names[model],
           sinter::quoted(tail.substr(0, tail.find('='))),
           did_you_mean(tail.substr(0, tail.find('=')), names_of(outputs)), joined(names_of(outputs)));
  }

 private:
  static LastingTensor& tensor(std::vector<LastingTensor>& lasting, size_t model, const std::string& output) {
    for (LastingTensor& t : lasting)
      if (t.model == model && t.output == output) return t;
    lasting.push_back({model, output, {}});
    return lasting.back();
  }

  void reader(const std::vector<LastingTensor>& all, LastingTensor& t, const Member& output,
              const std::string& text) {
    size_t rest = 0;
    const size_t model = model_in_front(p_, "alive", text, rest);
    if (model <= t.model)
      refuse("{}: {}", whole_,
             model == t.model ? "what a model leaves for its own next run is a state (--state)"
                              : p_.names[model] + " runs before " + p_.names[t.model] +
                                    "; models are given in the order in which they run");
    const std::string name = text.substr(rest);
    const auto inputs = input_members(*models_[model].graph, models_[model].plan.states);
    const Member* input = find(inputs, name);
    if (!input)
      refuse("{}: {} has no input {}{}; its inputs are {}", whole_, p_.names[model], sinter::quoted(name),
             did_you_mean(name, names_of(inputs)), joined(names_of(inputs)));
    const TensorType &from = output.value->type, &to = input->value->type;
    if (from.dtype != to.dtype || !may_agree(from.shape, to.shape))
      refuse("{}: the output is {}, the input {}", whole_, sinter::text(from), sinter::text(to));
    for (const LastingTensor& other : all)
      for (const auto& [m, n] : other.readers)
        if (m == model && n == name) refuse("{}: the input {} is named twice", whole_, sinter::quoted(name));
    t.readers.emplace_back(model, name);
  }

  const Pipeline& p_;
  const std::vector<Compiled>& models_;
  const std::string& text_;
  const std::string whole_;
};

}  // namespace

Pipeline pipeline_of(const ModelOptions& all, const Words& models, const Words& alive) {
  Pipeline p;
  if (all.name.empty())
    throw UsageError(
        "several models need --name NAME: what the names of their files and functions begin with");
  ModelOptions bundle = all;
  p.name = bundle_name(bundle);
  p.alive = alive;
  p.max_ram = all.max_ram;
  std::string list;
  for (const std::string& word : models) {
    const auto [name, file] = named(word);
    if (std::count(p.names.begin(), p.names.end(), name) > 0)
      throw UsageError(
          fmt::format("two models are called {}: give one another name, as NAME={}", name, file));
    p.names.push_back(name);
    ModelOptions& o = p.options.emplace_back(all);
    o.model = file;
    o.name = p.name + "_" + name;
    if (identifier(o.name) != o.name)
      throw UsageError(fmt::format(
          "{} is too long for a prefix of C names; give the model a shorter one, as NAME={}", o.name, file));
    o.max_ram.clear();
    const std::string shown = banner_file(file);
    if (!list.empty()) list += " ";
    list += shown == name + ".onnx" ? shown : fmt::format("{}={}", name, shown);
  }
  deal(p, all);
  p.command = banner_command(all, list, target_of(all).name, p.name);
  for (const std::string& a : alive) p.command += " --alive " + banner_text(a);
  return p;
}

std::vector<ImportOptions> import_options(const Pipeline& p) {
  std::vector<ImportOptions> imports;
  std::vector<std::string> problems;
  for (const ModelOptions& o : p.options)
    of_model(o, problems, [&] { imports.push_back(import_options(o)); });
  if (!problems.empty()) throw Refusal(std::move(problems));
  return imports;
}

CompiledPipeline compile_pipeline(const Pipeline& p, const std::vector<ImportOptions>& imports,
                                  bool keep_imported) {
  CompiledPipeline all;
  std::vector<std::string> problems;
  for (size_t i = 0; i < p.options.size(); ++i)
    of_model(p.options[i], problems, [&] {
      Compiled c = compile_part(p.options[i], imports[i], keep_imported);
      c.options.command = p.command;
      all.model_weights.push_back(weights_bytes(c.weights));
      all.models.push_back(std::move(c));
    });
  if (!problems.empty()) throw Refusal(std::move(problems));
  all.memory.name = p.name;
  try {
    for (const std::string& text : p.alive) Alive(p, all.models, text).add_to(all.memory.lasting);
    std::vector<PipelineModel> models;
    for (Compiled& c : all.models) models.push_back({*c.graph, c.plan, *c.target, c.weights, c.options});
    all.files = make_pipeline(models, all.memory, all.weights);
    if (const int64_t most = p.max_ram.empty() ? INT64_MAX : parse_size("--max-ram", p.max_ram);
        all.memory.arena_bytes > most)
      refuse("the arena takes {} bytes, --max-ram allows {}", all.memory.arena_bytes, most);
  } catch (const Refusal& r) {
    for (const std::string& problem : r.problems) problems.push_back(p.name + ": " + problem);
    throw Refusal(std::move(problems));
  }
  return all;
}

}  // namespace sinter
