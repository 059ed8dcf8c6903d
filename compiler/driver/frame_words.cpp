// Words are a table: what each begins with, and what it does. A word with a value has its `=` in the name.
#include "driver/frame_words.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "driver/errors.h"
#include "ir/error.h"
#include "ir/nearest.h"

namespace sinter {
namespace {

constexpr int64_t kLongestSide = 1 << 16, kLongestRow = int64_t{1} << 20;

class Parser {
 public:
  Parser(const std::string& option, const std::string& whole) : whole_(option + " " + sinter::quoted(whole)) {
    for (const PixelLayout& l : pixel_layouts()) formats_.emplace_back(l.name);
  }

  FrameWords parse(const std::string& text, const std::vector<std::string>& names, bool of_frame) {
    std::string rest = text;
    bool named = false;
    for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1))
      if (std::find(names.begin(), names.end(), text.substr(0, at)) != names.end()) {
        words_.input = text.substr(0, at);
        rest = text.substr(at + 1);
        named = true;
      }
    if (const size_t colon = text.find(':'); !named && colon != std::string::npos)
      fail(fmt::format("the model has no input {}; its inputs are {}{}",
                       sinter::quoted(text.substr(0, colon)), quoted_list(names),
                       did_you_mean(text.substr(0, colon), names)));
    std::istringstream in(rest);
    for (std::string word; in >> word;) take(word);
    check(of_frame);
    return words_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw UsageError(whole_ + ": " + why); }

  std::string possible() const {
    return "u8, hwc, a format (" + joined(formats_) +
           "), a size as 640x480, stride=BYTES, resize=stretch|crop|letterbox, pad=, order=rgb|bgr|gray, "
           "scale=, mean=, std=, bt709 or full";
  }

  // The first of its kind.
  void once(const std::string& kind, const std::string& word) {
    const auto [at, fresh] = seen_.emplace(kind, word);
    if (!fresh)
      fail(at->second == word ? fmt::format("{} is there twice", sinter::quoted(word))
                              : fmt::format("{} and {}: there is one {}", sinter::quoted(at->second),
                                            sinter::quoted(word), kind));
  }

  void take(const std::string& word) {
    if (const PixelLayout* l = find_layout(word)) {
      once("format", word);
      words_.format = l->format;
      return;
    }
    if (const size_t equal = word.find('='); equal != std::string::npos)
      return take_value(word, word.substr(0, equal), word.substr(equal + 1));
    if (word == "u8" || word == "hwc" || word == "bt709" || word == "bt601" || word == "full") {
      once(word.rfind("bt", 0) == 0 ? "matrix" : word, word);
      words_.bt709 |= word == "bt709", words_.full |= word == "full";
      return;
    }
    if (is_size(word)) {
      once("size", word);
      const size_t x = word.find('x');
      words_.width = whole(word.substr(0, x), word, kLongestSide);
      words_.height = whole(word.substr(x + 1), word, kLongestSide);
      return;
    }
    if (word == "chw" || word == "nchw" || word == "nhwc")
      fail(
          fmt::format("{}: a frame's channels lie side by side (hwc); the model's own layout is seen from "
                      "its input",
                      sinter::quoted(word)));
    if (word == "f32" || word == "f16" || word == "i8" || word == "u16")
      fail(fmt::format("{}: a frame has bytes, u8", sinter::quoted(word)));
    unknown(word);
  }

  [[noreturn]] void unknown(const std::string& word) const {
    std::vector<std::string> all = formats_;
    for (const char* w :
         {"u8", "hwc", "stride=", "resize=", "pad=", "order=", "scale=", "mean=", "std=", "bt709", "full"})
      all.emplace_back(w);
    const size_t equal = word.find('=');
    const std::string key = equal == std::string::npos ? word : word.substr(0, equal + 1);
    fail(fmt::format("{} is unknown; there are {}{}", sinter::quoted(word), possible(),
                     did_you_mean(key, all)));
  }

  void take_value(const std::string& word, const std::string& key, const std::string& value) {
    if (key == "stride") {
      once(key, word);
      words_.stride = whole(value, word, kLongestRow);
    } else if (key == "resize" || key == "fit") {
      once("resize", word);
      words_.fit = static_cast<FrameFit>(choice(word, value, {"stretch", "crop", "letterbox"}));
    } else if (key == "order") {
      once(key, word);
      words_.order = static_cast<ChannelOrder>(choice(word, value, {"rgb", "bgr", "gray"}));
      words_.order_given = true;
    } else if (key == "scale") {
      once(key, word);
      words_.scale = number(value, word);
      if (words_.scale == 0) fail(sinter::quoted(word) + ": all pixels would be the same");
    } else if (key == "mean") {
      once(key, word);
      words_.mean = numbers(value, word);
    } else if (key == "pad") {
      once(key, word);
      words_.pad = numbers(value, word);
    } else if (key == "std") {
      once(key, word);
      words_.std = numbers(value, word);
      if (std::count(words_.std.begin(), words_.std.end(), 0.0)) fail(sinter::quoted(word) + ": it divides");
    } else {
      unknown(word);
    }
  }

  size_t choice(const std::string& word, const std::string& value,
                const std::vector<std::string>& values) const {
    const auto at = std::find(values.begin(), values.end(), value);
    if (at == values.end())
      fail(fmt::format("{}: there are {}{}", sinter::quoted(word), joined(values),
                       did_you_mean(value, values)));
    return static_cast<size_t>(at - values.begin());
  }

  static bool is_size(const std::string& word) {
    const size_t x = word.find('x');
    const auto digits = [&](size_t from, size_t to) {
      return to > from && std::all_of(word.begin() + static_cast<std::ptrdiff_t>(from),
                                      word.begin() + static_cast<std::ptrdiff_t>(to),
                                      [](char c) { return c >= '0' && c <= '9'; });
    };
    return x != std::string::npos && digits(0, x) && digits(x + 1, word.size());
  }

  int64_t whole(const std::string& digits, const std::string& word, int64_t most) const {
    int64_t v = 0;
    bool ok = !digits.empty() && digits.size() < 10;
    for (const char c : digits) {
      ok = ok && c >= '0' && c <= '9';
      v = v * 10 + (c - '0');
      if (!ok) break;
    }
    if (!ok || v < 1 || v > most)
      fail(fmt::format("{}: {} is no number from 1 to {}", sinter::quoted(word), sinter::quoted(digits),
                       most));
    return v;
  }

  double number(const std::string& text, const std::string& word) const {
    const size_t slash = text.find('/');
    try {
      const auto read = [](const std::string& digits) {
        size_t used = 0;
        const double v = std::stod(digits, &used);
        if (used != digits.size()) throw std::invalid_argument(digits);
        return v;
      };
      double v = read(text.substr(0, slash));
      if (slash != std::string::npos) v /= read(text.substr(slash + 1));
      if (!std::isfinite(v) || std::abs(v) > 1e9) throw std::invalid_argument(text);
      return v;
    } catch (const std::logic_error&) {
      fail(fmt::format("{}: {} is no number", sinter::quoted(word), sinter::quoted(text)));
    }
  }

  std::vector<double> numbers(const std::string& text, const std::string& word) const {
    std::vector<double> v;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      v.push_back(number(text.substr(at, end - at), word));
      at = end + 1;
    }
    if (v.size() != 1 && v.size() != 3)
      fail(fmt::format("{}: give one number, or one for each of three channels, not {}", sinter::quoted(word),
                       v.size()));
    return v;
  }

  void check(bool of_frame) {
    if (of_frame && !words_.format) fail("its format is missing: " + joined(formats_));
    if (of_frame && words_.width == 0) fail("its size is missing: WIDTHxHEIGHT, as 640x480");
    if (seen_.count("pad") && words_.fit != FrameFit::kLetterbox)
      fail("pad= is the border of resize=letterbox");
    if (!words_.format) {
      for (const char* kind : {"size", "stride", "matrix", "full"})
        if (const auto at = seen_.find(kind); at != seen_.end())
          fail(fmt::format("{} needs a format: {}", sinter::quoted(at->second), joined(formats_)));
      return;
    }
    const PixelLayout& l = layout_of(*words_.format);
    if (!l.yuv)
      for (const char* kind : {"matrix", "full"})
        if (const auto at = seen_.find(kind); at != seen_.end())
          fail(fmt::format("{} is about luma and chroma, {} has none", sinter::quoted(at->second), l.name));
    if (l.yuv && seen_.count("hwc")) fail(fmt::format("hwc: {} is no hwc ({})", l.name, l.layout));
    if (l.yuv && words_.width % 2 != 0)
      fail(fmt::format("{} pixels in a row: {} has pairs of them, give an even width", words_.width, l.name));
    if (l.planes && words_.height % 2 != 0)
      fail(fmt::format("{} rows: {} has squares of four pixels, give an even height", words_.height, l.name));
    if (words_.width == 0) return;
    const int64_t least = least_stride(l, words_.width);
    if (words_.stride == 0) words_.stride = least;
    if (words_.stride < least)
      fail(fmt::format("stride={}: {} pixels of {} take {} bytes", words_.stride, words_.width, l.name,
                       least));
  }

  const std::string whole_;
  std::vector<std::string> formats_;
  std::map<std::string, std::string> seen_;  // the word of each kind
  FrameWords words_;
};

std::string list_of(const std::vector<double>& v) {
  std::string s;
  for (const double x : v) s += fmt::format("{}{}", s.empty() ? "" : ",", x);
  return s;
}

}  // namespace

FrameWords parse_frame_words(const std::string& option, const std::string& text,
                             const std::vector<std::string>& names) {
  return Parser(option, text).parse(text, names, option == "--pre");
}

std::string text(const FrameWords& w) {
  std::string s;
  const auto add = [&](const std::string& word) { s += (s.empty() ? "" : " ") + word; };
  if (w.format) {
    add(fmt::format("u8 {}", layout_of(*w.format).name));
    if (w.width > 0) add(fmt::format("{}x{} stride={}", w.width, w.height, w.stride));
  }
  if (w.bt709) add("bt709");
  if (w.full) add("full");
  add(w.fit == FrameFit::kStretch ? "resize=stretch"
      : w.fit == FrameFit::kCrop  ? "resize=crop"
                                  : "resize=letterbox");
  if (w.pad != std::vector<double>{0}) add("pad=" + list_of(w.pad));
  if (w.order_given)
    add(w.order == ChannelOrder::kRgb   ? "order=rgb"
        : w.order == ChannelOrder::kBgr ? "order=bgr"
                                        : "order=gray");
  if (w.scale != 1) add(fmt::format("scale={}", w.scale));
  if (w.mean != std::vector<double>{0}) add("mean=" + list_of(w.mean));
  if (w.std != std::vector<double>{1}) add("std=" + list_of(w.std));
  return s;
}

void check_channels(const std::string& option, const FrameWords& w, int64_t channels,
                    const std::string& input) {
  if (w.order_given && (w.order == ChannelOrder::kGray) != (channels == 1))
    throw UsageError(fmt::format("{}: order={} doesn't go with the input {} of {} channel(s)", option,
                                 w.order == ChannelOrder::kGray  ? "gray"
                                 : w.order == ChannelOrder::kBgr ? "bgr"
                                                                 : "rgb",
                                 sinter::quoted(input), channels));
  const std::pair<const char*, const std::vector<double>*> lists[] = {
      {"mean", &w.mean}, {"std", &w.std}, {"pad", &w.pad}};
  for (const auto& [word, list] : lists)
    if (list->size() != 1 && static_cast<int64_t>(list->size()) != channels)
      throw UsageError(fmt::format("{}: {} numbers in {}=, the input {} has {} channel(s)", option,
                                   list->size(), word, sinter::quoted(input), channels));
}

FrameRule frame_rule(const FrameWords& w, int64_t channels, int64_t to_height, int64_t to_width,
                     DType dtype) {
  FrameRule r;
  r.format = *w.format;
  r.height = w.height, r.width = w.width;
  r.fit = w.fit;
  r.order = channels == 1 ? ChannelOrder::kGray : w.order;
  r.to_height = to_height, r.to_width = to_width;
  r.bt709 = w.bt709, r.full = w.full;
  r.dtype = dtype;
  const auto of = [](const std::vector<double>& v, int64_t c) {
    return v[v.size() == 1 ? 0 : static_cast<size_t>(c)];
  };
  for (int64_t c = 0; c < channels; ++c) {
    const double deviation = of(w.std, c), mean = of(w.mean, c);
    r.factor.push_back(static_cast<float>(w.scale / deviation));
    r.offset.push_back(static_cast<float>(-mean / deviation));
    r.border.push_back(static_cast<float>((of(w.pad, c) * w.scale - mean) / deviation));
  }
  return r;
}

}  // namespace sinter
