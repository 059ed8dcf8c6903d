// The name that was probably meant where there is no such one.
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

}  // namespace sinter
