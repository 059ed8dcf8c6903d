// Names in messages: those that there are, and the one that was probably meant where there is no such.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sinter {

// Of `names` the one with the fewest letters to add, leave out, change or exchange with the next one, case
// apart; the first of several. Empty where a third of the word's letters or more are others.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

// "; did you mean \"Conv\"?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// "a, b, c"; and the same of names that a model has given: "\"a\", \"b\"", or "none".
std::string joined(const std::vector<std::string>& words);
std::string quoted_list(const std::vector<std::string>& names);

}  // namespace sinter
