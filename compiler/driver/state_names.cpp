#include "driver/state_names.h"

#include <algorithm>
#include <set>

#include "driver/errors.h"
#include "ir/error.h"
#include "ir/nearest.h"

namespace sinter {
namespace {

using Names = std::vector<std::string>;

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What the star of `pattern` stands for in `name`; a pattern without a star stands for itself.
bool matches(const std::string& pattern, const std::string& name, std::string& star) {
  const size_t at = pattern.find('*');
  if (at == std::string::npos) return pattern == name;
  const std::string before = pattern.substr(0, at), behind = pattern.substr(at + 1);
  if (name.size() < before.size() + behind.size() || !name.starts_with(before) || !name.ends_with(behind))
    return false;
  star = name.substr(at, name.size() - before.size() - behind.size());
  return true;
}

std::string with_star(std::string pattern, const std::string& star) {
  if (const size_t at = pattern.find('*'); at != std::string::npos) pattern.replace(at, 1, star);
  return pattern;
}

// The pairs of which the output is like `output` and the input like `input`.
std::vector<StateName> pairs(const std::string& output, const std::string& input, const Names& outputs,
                             const Names& inputs) {
  std::vector<StateName> found;
  for (const std::string& out : outputs) {
    std::string star;
    if (!matches(output, out, star)) continue;
    if (const std::string in = with_star(input, star); holds(inputs, in)) found.push_back({out, in});
  }
  return found;
}

// Why "left=right" names nothing.
std::string what_is_wrong(const std::string& whole, const std::string& left, const std::string& right,
                          const Names& outputs, const Names& inputs) {
  const std::string has =
      fmt::format("; the outputs are {}, the inputs {}", quoted_list(outputs), quoted_list(inputs));
  if (left.find('*') != std::string::npos)
    return fmt::format("{}: no output and input of the model are called so{}", whole, has);
  Names all = outputs;
  all.insert(all.end(), inputs.begin(), inputs.end());
  for (const std::string& name : {left, right})
    if (!holds(all, name))
      return fmt::format("{}: the model has no output or input {}{}{}", whole, sinter::quoted(name),
                         did_you_mean(name, all), has);
  return fmt::format("{}: {} and {} are both {}; give OUTPUT=INPUT", whole, sinter::quoted(left),
                     sinter::quoted(right), holds(outputs, left) ? "outputs" : "inputs");
}

// `inputs`: those without a value of their own; `all` has the others, too.
std::vector<StateName> named_by(const std::string& option, const Names& outputs, const Names& inputs,
                                const Names& all) {
  const std::string whole = "--state " + sinter::quoted(option);
  const size_t first = option.find('=');
  if (first == std::string::npos || first == 0 || first + 1 == option.size())
    throw UsageError(whole + ": give OUTPUT=INPUT");
  // Names may hold a '=' themselves.
  for (size_t at = first; at != std::string::npos; at = option.find('=', at + 1)) {
    const std::string left = option.substr(0, at), right = option.substr(at + 1);
    const auto stars = [](const std::string& s) { return std::count(s.begin(), s.end(), '*'); };
    if (stars(left) > 1 || stars(left) != stars(right))
      throw UsageError(whole + ": a pattern has one * on each side");
    std::vector<StateName> found = pairs(left, right, outputs, all);
    if (found.empty()) found = pairs(right, left, outputs, all);
    if (!found.empty()) return found;
  }
  refuse("{}", what_is_wrong(whole, option.substr(0, first), option.substr(first + 1), outputs, inputs));
}

}  // namespace

std::vector<StateName> state_names(const ModelOptions& o, const ImportOptions& import) {
  std::vector<StateName> names;
  if (o.states.empty()) return names;
  const Names outputs = declared_outputs(o.model);
  Names inputs;
  for (const DeclaredInput& d : declared_inputs(o.model, import)) inputs.push_back(d.name);
  if (outputs.empty()) return names;
  Names all = declared_names(o.model);
  std::erase_if(all, [&](const std::string& n) { return import.constants.count(n) != 0; });
  std::vector<std::string> problems;
  std::set<std::string> taken_outputs, taken_inputs;
  for (const std::string& option : o.states) try {
      for (StateName& n : named_by(option, outputs, inputs, all)) {
        const bool twice_out = !taken_outputs.insert(n.output).second,
                   twice_in = !taken_inputs.insert(n.input).second;
        if (twice_out || twice_in)
          problems.push_back(fmt::format("--state {}: the {} {} is named twice", sinter::quoted(option),
                                         twice_in ? "input" : "output",
                                         sinter::quoted(twice_in ? n.input : n.output)));
        names.push_back(std::move(n));
      }
    } catch (const Refusal& r) {
      problems.insert(problems.end(), r.problems.begin(), r.problems.end());
    }
  if (!problems.empty()) throw Refusal(std::move(problems));
  return names;
}

std::vector<DeclaredInput> without_states(std::vector<DeclaredInput> inputs,
                                          const std::vector<StateName>& states) {
  std::erase_if(inputs, [&](const DeclaredInput& d) {
    return std::any_of(states.begin(), states.end(), [&](const StateName& s) { return s.input == d.name; });
  });
  return inputs;
}

StateLinks state_links(const Graph& g, const ModelOptions& o, const ImportOptions& import) {
  const std::vector<StateName> names = state_names(o, import);
  if (names.empty()) return {};
  Names outputs = declared_outputs(o.model);  // values of the graph may have other names
  if (!import.only.empty())
    std::erase_if(outputs, [&](const std::string& n) { return !holds(import.only, n); });
  SINTER_CHECK(outputs.size() == g.outputs.size(), "the graph's outputs are those that are wanted");
  StateLinks links;
  for (const StateName& n : names) {
    const auto in =
        std::find_if(g.inputs.begin(), g.inputs.end(), [&](const Value* v) { return v->name == n.input; });
    if (in == g.inputs.end())
      refuse("--state {}: no output that is wanted needs the input",
             sinter::quoted(n.output + "=" + n.input));
    const auto out = std::find(outputs.begin(), outputs.end(), n.output);
    links.push_back({static_cast<size_t>(out - outputs.begin()), static_cast<size_t>(in - g.inputs.begin()),
                     n.output, n.input});
  }
  return links;
}

}  // namespace sinter
