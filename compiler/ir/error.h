// The two kinds of errors, and no third.
//
// Refusal: the user's model or command line is at fault or not supported. It carries every problem found, one
// line each, and ends in exit code 3 (usage errors: 2). A bug of ours: SINTER_CHECK throws it with the place
// and, inside a pass, the pass's name and a dump of the graph (exit code 5).
#pragma once
#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace sinter {

// Thrown to give up on a model. `problems` are complete sentences without the file's name, e.g.
// `"/enc/Softmax_3" (Softmax): axis 4 out of range for [1,8,N,N]`.
struct Refusal : std::exception {
  explicit Refusal(std::vector<std::string> p) : problems(std::move(p)) {}
  explicit Refusal(std::string p) : problems{std::move(p)} {}
  const char* what() const noexcept override { return problems.empty() ? "refused" : problems[0].c_str(); }
  std::vector<std::string> problems;
};

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> f, Args&&... args) {
  throw Refusal(fmt::format(f, std::forward<Args>(args)...));
}

// `text` made fit for one line of a terminal or a comment: quoted, control and non-ASCII bytes escaped, "*/"
// and trigraphs broken up, at most `limit` bytes (longer ones are cut in the middle).
std::string quoted(std::string_view text, size_t limit = 120);

// Our own mistake, which nobody goes on after: no std::exception, so that what is caught to be told otherwise
// lets it pass. `text` says where, and what BugContext had said.
struct Bug {
  std::string text;
};

// Throws Bug; a fuzzer's build stops the process instead.
[[noreturn]] void bug(const char* file, int line, const std::string& what);

// What a Bug of this thread tells besides while this lives: the name of the running pass and the graph's
// text.
class BugContext {
 public:
  BugContext();
  ~BugContext();
  BugContext(const BugContext&) = delete;
  BugContext& operator=(const BugContext&) = delete;
  void set(std::string text) { text_ = std::move(text); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  const BugContext* before_;
};

}  // namespace sinter

#define SINTER_CHECK(condition, ...)                                                    \
  do {                                                                                  \
    if (!(condition)) ::sinter::bug(__FILE__, __LINE__, "" #condition " " __VA_ARGS__); \
  } while (0)
