#include "driver/answer_words.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "driver/errors.h"
#include "ir/error.h"
#include "ir/nearest.h"

namespace sinter {
namespace {

using Kind = AnswerWords::Kind;

const std::vector<std::string> kKinds = {"argmax", "softmax", "topk=K", "threshold=T", "nms"};
const std::vector<std::string> kWords = {
    "argmax", "softmax", "topk=",   "threshold=", "nms",    "axis=",  "u8",       "resize=",    "score=",
    "iou=",   "max=",    "scores=", "format=",    "boxes=", "units=", "classes=", "background="};

class Parser {
 public:
  Parser(const std::string& text, const std::vector<std::string>& outputs)
      : whole_("--post " + sinter::quoted(text)), outputs_(outputs) {
    words_.option = text;
  }

  AnswerWords parse() {
    const std::string& text = words_.option;
    std::string rest = text;
    for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1))
      if (is_output(text.substr(0, at))) words_.output = text.substr(0, at), rest = text.substr(at + 1);
    const std::string has = "; its outputs are " + quoted_list(outputs_);
    if (const size_t colon = text.find(':'); words_.output.empty() && colon != std::string::npos)
      fail(fmt::format("the model has no output {}{}{}", sinter::quoted(text.substr(0, colon)), has,
                       did_you_mean(text.substr(0, colon), outputs_)));
    if (words_.output.empty() && outputs_.size() != 1) fail("name the output, NAME: ..." + has);
    if (words_.output.empty()) words_.output = outputs_[0];
    std::istringstream in(rest);
    for (std::string word; in >> word;) take(word);
    check();
    return words_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw UsageError(whole_ + ": " + why); }
  bool is_output(const std::string& name) const {
    return std::find(outputs_.begin(), outputs_.end(), name) != outputs_.end();
  }
  void take(const std::string& word) {
    const size_t equal = word.find('=');
    const std::string key = word.substr(0, equal),
                      value = equal == std::string::npos ? "" : word.substr(equal + 1);
    const std::string spelled = equal == std::string::npos ? word : key + "=";
    if (std::find(kWords.begin(), kWords.end(), spelled) == kWords.end())
      fail(fmt::format("{} is unknown; there are {}{}", sinter::quoted(word), joined(kWords),
                       did_you_mean(spelled, kWords)));
    static const std::map<std::string, Kind> kinds = {{"argmax", Kind::kArgmax},
                                                      {"softmax", Kind::kSoftmax},
                                                      {"topk", Kind::kTopk},
                                                      {"threshold", Kind::kThreshold},
                                                      {"nms", Kind::kNms}};
    const auto kind = kinds.find(key);
    const auto [at, fresh] = seen_.emplace(kind != kinds.end() ? "answer" : key, word);
    if (!fresh)
      fail(at->second == word ? fmt::format("{} is there twice", sinter::quoted(word))
                              : fmt::format("{} and {}: there is one {}", sinter::quoted(at->second),
                                            sinter::quoted(word), at->first));
    if (kind != kinds.end()) words_.kind = kind->second;
    take_value(word, key, value);
  }

  void take_value(const std::string& word, const std::string& key, const std::string& value) {
    if (key == "topk") words_.k = whole(word, value, 1, 1 << 20);
    if (key == "threshold") words_.threshold = number(word, value, -1e9, 1e9);
    if (key == "axis") words_.axis = whole(word, value, -12, 11);
    if (key == "u8") words_.bytes = true;
    if (key == "resize") words_.resize_input = choice(word, value, {"input"}) == 0;
    if (key == "score") words_.score = number(word, value, -1e9, 1e9);
    if (key == "iou") words_.overlap = number(word, value, 0, 1);
    if (key == "max") words_.most = whole(word, value, 1, 1 << 16);
    if (key == "format")
      words_.form = static_cast<HeadForm>(choice(word, value, {"yolov8", "yolov5", "ssd"}));
    if (key == "classes") words_.classes = whole(word, value, 1, 1 << 20);
    if (key == "background") words_.background = choice(word, value, {"none", "first"});
    if (key == "boxes") words_.centred = choice(word, value, {"corners", "centre"}) == 1;
    if (key == "units") words_.relative = choice(word, value, {"pixels", "relative"}) == 1;
    if (key == "scores") {
      if (!is_output(value))
        fail(fmt::format("{}: the model has no such output; its outputs are {}{}", sinter::quoted(word),
                         quoted_list(outputs_), did_you_mean(value, outputs_)));
      words_.scores = value;
    }
  }

  int64_t choice(const std::string& word, const std::string& value,
                 const std::vector<std::string>& values) const {
    const auto at = std::find(values.begin(), values.end(), value);
    if (at == values.end())
      fail(fmt::format("{}: there are {}{}", sinter::quoted(word), joined(values),
                       did_you_mean(value, values)));
    return at - values.begin();
  }

  float number(const std::string& word, const std::string& value, double least, double most) const {
    double v = std::nan("");
    size_t used = 0;
    try {
      v = std::stod(value, &used);
    } catch (const std::logic_error&) {
    }
    if (used == 0 || used != value.size() || !(v >= least && v <= most))
      fail(fmt::format("{}: {} is no number from {} to {}", sinter::quoted(word), sinter::quoted(value),
                       least, most));
    return static_cast<float>(v);
  }

  int64_t whole(const std::string& word, const std::string& value, int64_t least, int64_t most) const {
    int64_t v = 0;
    const bool negative = !value.empty() && value[0] == '-';
    bool ok = value.size() > negative && value.size() < 12;
    for (const char c : value.substr(negative)) {
      ok = ok && c >= '0' && c <= '9';
      if (ok) v = v * 10 + (c - '0');
    }
    if (negative) v = -v;
    if (!ok || v < least || v > most)
      fail(fmt::format("{}: {} is no whole number from {} to {}", sinter::quoted(word), sinter::quoted(value),
                       least, most));
    return v;
  }

  // Words that go with one kind of answer only.
  void check() {
    if (!seen_.count("answer")) fail("what becomes of it? There are " + joined(kKinds));
    const auto only = [&](std::initializer_list<const char*> keys, std::initializer_list<Kind> with,
                          const char* names) {
      for (const char* key : keys)
        if (const auto at = seen_.find(key);
            at != seen_.end() && std::find(with.begin(), with.end(), words_.kind) == with.end())
          fail(fmt::format("{} goes with {}, not with {}", sinter::quoted(at->second), names,
                           sinter::quoted(seen_["answer"])));
    };
    only({"score", "iou", "max", "scores", "format", "boxes", "units", "classes", "background"}, {Kind::kNms},
         "nms");
    only({"axis"}, {Kind::kArgmax, Kind::kSoftmax, Kind::kTopk}, "argmax, softmax and topk");
    only({"u8", "resize"}, {Kind::kArgmax, Kind::kThreshold}, "argmax and threshold");
    if (words_.resize_input && seen_.count("axis"))
      fail("resize=input is of the channels of a picture: no axis=");
    if (words_.resize_input && !words_.bytes) fail("resize=input gives bytes: u8");
    if (words_.kind == Kind::kThreshold && !words_.bytes) fail("threshold= gives bytes: u8");
    if (words_.background && words_.form && *words_.form != HeadForm::kSsd)
      fail("background= is of ssd: a YOLO's head has none");
    if (!words_.scores.empty() && words_.form && *words_.form != HeadForm::kSsd)
      fail("scores= is of ssd: a YOLO's head has its scores inside");
    if (words_.scores == words_.output && !words_.scores.empty()) fail("scores= names the boxes");
  }

  const std::string whole_;
  const std::vector<std::string>& outputs_;
  std::map<std::string, std::string> seen_;
  AnswerWords words_;
};

}  // namespace

AnswerWords parse_answer_words(const std::string& text, const std::vector<std::string>& outputs) {
  return Parser(text, outputs).parse();
}

}  // namespace sinter
