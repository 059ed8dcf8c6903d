// Text to tokens and back, by byte-pair encoding.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

using Tokens = std::vector<int64_t>;

// Of a vocabulary whose tokens' texts come in the order in which they were joined from shorter ones.
class Tokeniser {
 public:
  explicit Tokeniser(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (const std::string& text : texts_) numbers_.emplace(text, int64_t(numbers_.size()));
  }

  std::size_t size() const { return texts_.size(); }
  const std::string& text(int64_t token) const { return texts_[std::size_t(token)]; }

  // Words are encoded one by one: a word is letters with the blank before them, or any other character with
  // the blank before it.
  Tokens encode(const std::string& text) const {
    const auto isLetter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
    Tokens all;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
      end = at + 1;
      if (text[at] == ' ' && end < text.size() && text[end] != ' ') ++end;
      while (isLetter(text[end - 1]) && end < text.size() && isLetter(text[end])) ++end;
      const Tokens word = encodeWord(text.substr(at, end - at));
      all.insert(all.end(), word.begin(), word.end());
    }
    return all;
  }

 private:
  // At first each character is a token; those that the vocabulary lacks are left out. Then, again and again,
  // the neighbours whose joint token has the lowest number are joined, the first such pair before others.
  Tokens encodeWord(const std::string& word) const {
    Tokens tokens;
    for (const char c : word)
      if (const int64_t token = find({c}); token < int64_t(size())) tokens.push_back(token);
    while (tokens.size() > 1) {
      std::size_t place = 0;
      int64_t lowest = int64_t(size());
      for (std::size_t k = 0; k + 1 < tokens.size(); ++k)
        if (const int64_t joint = find(text(tokens[k]) + text(tokens[k + 1])); joint < lowest)
          lowest = joint, place = k;
      if (lowest == int64_t(size())) break;
      tokens[place] = lowest;
      tokens.erase(tokens.begin() + std::ptrdiff_t(place) + 1);
    }
    return tokens;
  }

  // The token of a text; size() if there is none.
  int64_t find(const std::string& text) const {
    const auto it = numbers_.find(text);
    return it == numbers_.end() ? int64_t(size()) : it->second;
  }

  std::vector<std::string> texts_;
  std::unordered_map<std::string, int64_t> numbers_;
};
