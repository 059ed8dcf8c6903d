// Answers questions: a small decoder continues the dialogue, one token at a time. What it has read and said
// stays in its cache, so that it can be asked about it.
//
//     chat_demo vocabulary.txt [OPTIONS] ["My name is Ada." "What is my name?"...]
//     chat_demo vocabulary.txt --compare questions.txt onnxruntime.txt
//
// The first form asks one question after the other; without any it reads them line by line from the standard
// input, where an empty line begins a new dialogue. OPTIONS say how tokens are chosen: --temperature T,
// --top-k K, --top-p P, --penalty R, --seed S; without them, the most likely one is. --stop TEXT ends an
// answer before that text. The second form asks every question of a file, whose lines are "question<TAB>right
// answer", and compares the answers with ONNX Runtime's. Exit code: 0 if they are the same, 1 if they aren't
// or a call fails, 2 if a file can't be read or an argument isn't right.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "chat.h"
#include "sinter/generate.h"
#include "tokeniser.h"

namespace {

// What the net was compiled for (CMakeLists.txt): so many tokens a run, and so many in all.
constexpr std::size_t kRun = CHAT_SEQUENCE_LENGTH_MAX, kRoom = CHAT_TOTAL_SEQUENCE_LENGTH_MAX,
                      kVocabulary = CHAT_LOGITS_MAX_BYTES / sizeof(float), kLongestAnswer = 32;
constexpr int64_t kEnd = 0, kUser = 1, kRobot = 2;  // the first lines of the vocabulary

// All the memory that the net uses: no call allocates. The state holds the keys and values of all tokens so
// far.
alignas(64) unsigned char arena[CHAT_ARENA_BYTES], state[CHAT_STATE_BYTES];
float logits[kVocabulary];
sinter::Candidate candidates[kVocabulary];

// How many tokens were read or said, and how long that took.
struct Pace {
  std::size_t tokens = 0;
  double seconds = 0;
  double perSecond() const { return double(tokens) / std::max(seconds, 1e-9); }
};

class Dialogue {
 public:
  Dialogue(const Tokeniser& tokeniser, const sinter::Sampling& sampling,
           const std::vector<const char*>& stops)
      : tokeniser_(tokeniser), sampling_(sampling), stops_(stops) {
    begin();
  }

  void begin() {
    chat_reset(state);
    length_ = 0;
    unread_.clear();
  }

  // The answer; printed as it comes if `aloud`. A dialogue that has no room for it begins anew.
  std::string ask(const std::string& question, bool aloud) {
    const Tokens asked = tokeniser_.encode(" " + question);
    if (length_ + unread_.size() + asked.size() + 2 + kLongestAnswer > kRoom) begin();
    unread_.push_back(kUser);
    unread_.insert(unread_.end(), asked.begin(), asked.end());
    unread_.push_back(kRobot);
    Tokens said;
    std::string answer;
    sinter::TextEnd end = {false, 0};
    while (!end.stopped && said.size() < kLongestAnswer && read(said.empty() ? asked_ : answered_)) {
      const int64_t token = sinter::choose_token(logits, int64_t(kVocabulary), sampling_, said.data(),
                                                 int64_t(said.size()), number_++, candidates);
      if (token < 0 || sinter::is_one_of(token, &kEnd, 1)) break;
      unread_ = {token};
      said.push_back(token);
      answer += said.size() == 1 ? tokeniser_.text(token).substr(tokeniser_.text(token)[0] == ' ')
                                 : tokeniser_.text(token);
      const std::size_t shown = end.length;
      end = sinter::end_of_text(answer.data(), answer.size(), shown, stops_.data(), stops_.size());
      if (aloud) std::printf("%s", answer.substr(shown, end.length - shown).c_str()), std::fflush(stdout);
    }
    if (aloud) std::printf("%s\n", end.stopped ? "" : answer.substr(end.length).c_str());
    unread_.push_back(kEnd);
    return end.stopped ? answer.substr(0, end.length) : answer;
  }

  void report() const {
    std::printf("read:                    %zu tokens, %.0f a second, up to %zu at once\n", asked_.tokens,
                asked_.perSecond(), kRun);
    std::printf("said:                    %zu tokens, %.0f a second\n", answered_.tokens,
                answered_.perSecond());
  }

 private:
  // Has the net read what it hasn't yet, as many tokens a run as it takes; the logits are those behind the
  // last. False if the cache has no room for them.
  bool read(Pace& pace) {
    static const Tokens ones(kRoom, 1);
    if (length_ + unread_.size() > kRoom) return false;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < unread_.size(); at += kRun) {
      const std::size_t count = std::min(kRun, unread_.size() - at);
      length_ += count;
      const chat_inputs in = {unread_.data() + at, {1, int64_t(count)}, ones.data(), {1, int64_t(length_)}};
      chat_outputs out = {logits};
      if (const int code = chat_run(&in, &out, arena, state))
        std::fprintf(stderr, "chat_run: %s\n", chat_error(code)), std::exit(1);
    }
    pace.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    pace.tokens += unread_.size();
    unread_.clear();
    return true;
  }

  const Tokeniser& tokeniser_;
  const sinter::Sampling& sampling_;
  const std::vector<const char*>& stops_;
  Tokens unread_;
  std::size_t length_ = 0;  // of what is in the cache
  int64_t number_ = 0;      // of the random number that comes next
  Pace asked_, answered_;
};

std::vector<std::string> readLines(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The second form. The program's exit code.
int compare(Dialogue& dialogue, const std::vector<std::string>& questions,
            const std::vector<std::string>& reference) {
  if (questions.empty() || questions.size() != reference.size())
    return std::fprintf(stderr, "%zu questions, %zu answers\n", questions.size(), reference.size()), 2;
  std::size_t asked = 0, right = 0, same = 0;
  for (std::size_t k = 0; k < questions.size(); ++k) {
    const std::size_t tab = questions[k].find('\t');
    if (tab == std::string::npos) {
      dialogue.begin();
      continue;
    }
    const std::string answer = dialogue.ask(questions[k].substr(0, tab), false);
    const bool isRight = answer == questions[k].substr(tab + 1);
    std::printf("%s  %-40s %s\n", isRight ? "right" : "wrong", questions[k].substr(0, tab).c_str(),
                answer.c_str());
    if (answer != reference[k]) std::printf("ONNX Runtime says: %s\n", reference[k].c_str());
    ++asked, right += isRight, same += answer == reference[k];
  }
  std::printf("right:                   %zu of %zu\n", right, asked);
  std::printf("as ONNX Runtime says:    %zu of %zu\n", same, asked);
  dialogue.report();
  return same == asked ? 0 : 1;
}

int usage(const char* wrong) {
  std::fprintf(stderr,
               "%s\nusage: chat_demo vocabulary.txt [OPTIONS] [QUESTION...]\n"
               "       chat_demo vocabulary.txt --compare questions.txt onnxruntime.txt\n",
               wrong);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return usage("no vocabulary");
  const Tokeniser tokeniser(readLines(argv[1]));
  if (tokeniser.size() != kVocabulary) return usage("that is not the net's vocabulary");
  sinter::Sampling sampling;
  std::vector<const char*> stops;
  Dialogue dialogue(tokeniser, sampling, stops);
  int at = 2;
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    const std::string option = argv[at], value = argv[at + 1];
    if (option == "--compare")
      return at + 2 < argc ? compare(dialogue, readLines(argv[at + 1]), readLines(argv[at + 2]))
                           : usage("no answers");
    if (option == "--temperature")
      sampling.temperature = std::strtof(value.c_str(), nullptr);
    else if (option == "--top-k")
      sampling.top_k = std::strtoll(value.c_str(), nullptr, 10);
    else if (option == "--top-p")
      sampling.top_p = std::strtof(value.c_str(), nullptr);
    else if (option == "--penalty")
      sampling.repetition_penalty = std::strtof(value.c_str(), nullptr);
    else if (option == "--seed")
      sampling.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (option == "--stop")
      stops.push_back(argv[at + 1]);
    else
      return usage(("no option " + option).c_str());
  }
  if (const char* wrong = sinter::sampling_error(sampling)) return usage(wrong);

  if (at == argc)
    for (std::string line; std::getline(std::cin, line);)
      line.empty() ? dialogue.begin() : void(dialogue.ask(line, true));
  for (; at < argc; ++at) std::printf("> %s\n", argv[at]), dialogue.ask(argv[at], true);
  dialogue.report();
}
