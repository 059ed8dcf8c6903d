// The choice of a token against a plain one that sorts the whole vocabulary, and the end of a text against
// one that looks at every prefix.
#include "sinter/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace sinter {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// By its definition: penalise, sort, cut, normalise, cut again, draw.
std::int64_t plainly(std::vector<float> logits, const Sampling& how, const std::vector<std::int64_t>& before,
                     std::int64_t number) {
  std::vector<bool> seen(logits.size());
  for (const std::int64_t t : before)
    if (t >= 0 && t < std::int64_t(logits.size())) seen[std::size_t(t)] = true;
  std::vector<std::pair<double, std::int64_t>> sorted;  // -logit, token
  for (std::size_t k = 0; k < logits.size(); k++) {
    float v = logits[k];
    if (seen[k]) v = v > 0 ? v / how.repetition_penalty : v * how.repetition_penalty;
    if (!std::isnan(v) && v != -kInf) sorted.push_back({-double(v), std::int64_t(k)});
  }
  if (sorted.empty()) return -1;
  std::sort(sorted.begin(), sorted.end());
  if (how.temperature == 0) return sorted[0].second;
  if (how.top_k > 0 && std::uint64_t(how.top_k) < sorted.size()) sorted.resize(std::size_t(how.top_k));
  std::vector<double> p;
  double sum = 0;
  for (const auto& [minus, token] : sorted) {
    p.push_back(minus == sorted[0].first ? 1 : std::exp((sorted[0].first - minus) / double(how.temperature)));
    sum += p.back();
  }
  if (how.top_p < 1) {
    double kept = 0;
    std::size_t count = 0;
    while (count < p.size() && kept < double(how.top_p) * sum) kept += p[count++];
    p.resize(count);
    sum = kept;
  }
  double rest = random_unit(how.seed, number) * sum;
  for (std::size_t k = 0; k + 1 < p.size(); k++)
    if ((rest -= p[k]) < 0) return sorted[k].second;
  return sorted[p.size() - 1].second;
}

std::int64_t choose(const std::vector<float>& logits, const Sampling& how,
                    const std::vector<std::int64_t>& before = {}, std::int64_t number = 0) {
  std::vector<Candidate> memory(logits.size() + 1, Candidate{-7.0f, -7});
  const std::int64_t token = choose_token(logits.data(), std::int64_t(logits.size()), how, before.data(),
                                          std::int64_t(before.size()), number, memory.data());
  EXPECT_EQ(memory.back().token, -7) << "written behind the memory";
  return token;
}

TEST(Generate, TheMostLikely) {
  const struct {
    std::vector<float> logits;
    std::int64_t token;
  } cases[] = {{{1, 3, 2}, 1},       {{2, 5, 5, 5}, 1},    {{-4, -3, -5}, 1},   {{kNan, -1, kNan}, 1},
               {{-kInf, -1e38f}, 1}, {{3, kInf, kInf}, 1}, {{kNan, -kInf}, -1}, {{}, -1},
               {{kNan, kInf, 2}, 1}, {{0.0f, -0.0f}, 0},   {{-0.0f, 0.0f}, 0},  {{kNan}, -1}};
  for (const auto& c : cases) {
    const std::int64_t n = std::int64_t(c.logits.size());
    EXPECT_EQ(most_likely_token(c.logits.data(), n), c.token);
    EXPECT_EQ(choose_token(c.logits.data(), n, Sampling{}, nullptr, 0, 0, nullptr), c.token);
    // By the other way: a heap of one.
    Sampling one;
    one.temperature = 1, one.top_k = 1;
    EXPECT_EQ(choose(c.logits, one), c.token);
    one.top_k = 0, one.top_p = 1e-9f;
    EXPECT_EQ(choose(c.logits, one), c.token);
  }
}

TEST(Generate, AsThePlainChoice) {
  std::mt19937 random(1);
  const float temperatures[] = {0, 1e-30f, 0.01f, 0.7f, 1, 3, 1e30f},
              ps[] = {1e-6f, 0.1f, 0.5f, 0.9f, 0.999f, 1};
  for (int round = 0; round < 20000; round++) {
    const std::size_t n = 1 + random() % (round % 50 == 0 ? 3000 : 40);
    std::vector<float> logits(n);
    for (float& v : logits) {
      v = float(int(random() % 2001) - 1000) / 100;
      if (round % 3 == 0) v = std::round(v / 4);  // many that are equal
      if (round % 5 == 0 && random() % 8 == 0) v = random() % 2 ? kNan : -kInf;
      if (round % 7 == 0 && random() % 8 == 0) v = kInf;
    }
    Sampling how;
    how.temperature = temperatures[random() % 7];
    const std::int64_t ks[] = {0,        1, 2, 5, std::int64_t(n) - 1, std::int64_t(n), std::int64_t(n) + 7,
                               INT64_MAX};
    how.top_k = std::max<std::int64_t>(0, ks[random() % 8]);
    how.top_p = ps[random() % 6];
    how.repetition_penalty = random() % 2 ? 1.0f : random() % 2 ? 1.3f : 0.8f;
    how.seed = random();
    std::vector<std::int64_t> before(random() % 6);
    for (std::int64_t& t : before) t = std::int64_t(random() % (n + 4)) - 2;
    const std::int64_t number = random();
    ASSERT_EQ(choose(logits, how, before, number), plainly(logits, how, before, number))
        << "round " << round << ", n " << n << ", temperature " << how.temperature << ", k " << how.top_k
        << ", p " << how.top_p << ", penalty " << how.repetition_penalty;
  }
}

// Each token as often as its probability says: within five deviations of the count.
TEST(Generate, AsOftenAsLikely) {
  const std::vector<float> logits = {0.0f, std::log(4.0f), std::log(2.0f), std::log(3.0f)};
  const struct {
    float temperature;
    std::int64_t k;
    float p;
    double shares[4];
  } cases[] = {{1, 0, 1, {0.1, 0.4, 0.2, 0.3}},
               {1, 9, 1, {0.1, 0.4, 0.2, 0.3}},
               {0.5f, 0, 1, {1 / 30.0, 16 / 30.0, 4 / 30.0, 9 / 30.0}},
               {1, 2, 1, {0, 4 / 7.0, 0, 3 / 7.0}},
               {1, 0, 0.65f, {0, 4 / 7.0, 0, 3 / 7.0}},
               {1, 0, 0.75f, {0, 4 / 9.0, 2 / 9.0, 3 / 9.0}},
               {1, 3, 0.4f, {0, 1, 0, 0}}};
  for (const auto& c : cases) {
    Sampling how;
    how.temperature = c.temperature, how.top_k = c.k, how.top_p = c.p, how.seed = 3;
    constexpr int kDraws = 40000;
    int counts[4] = {};
    for (int i = 0; i < kDraws; i++) counts[choose(logits, how, {}, i)]++;
    for (int t = 0; t < 4; t++)
      EXPECT_NEAR(counts[t], c.shares[t] * kDraws, 5 * std::sqrt(kDraws * c.shares[t] * (1 - c.shares[t])))
          << "token " << t << ", temperature " << c.temperature << ", k " << c.k << ", p " << c.p;
  }
}

TEST(Generate, TheSeedDecides) {
  const std::vector<float> logits(100, 1.0f);
  Sampling a, b;
  a.temperature = b.temperature = 1, a.seed = 1, b.seed = 2;
  int same = 0;
  for (std::int64_t i = 0; i < 200; i++) {
    EXPECT_EQ(choose(logits, a, {}, i), choose(logits, a, {}, i));
    same += choose(logits, a, {}, i) == choose(logits, b, {}, i);
  }
  EXPECT_LT(same, 20);
}

TEST(Generate, PenaltyCountsOnce) {
  Sampling how;
  how.repetition_penalty = 2;
  EXPECT_EQ(choose({4, 3}, how), 0);
  EXPECT_EQ(choose({4, 3}, how, {0}), 1);
  EXPECT_EQ(choose({4, 1.5f}, how, {0, 0, 0, 0}), 0);
  EXPECT_EQ(choose({-2, -3}, how, {0, 0}), 1);
  EXPECT_EQ(choose({-2, -5}, how, {0, 0}), 0);
  EXPECT_EQ(choose({4, 3}, how, {-1, 2, INT64_MAX, INT64_MIN}), 0);
}

TEST(Generate, HalvesAsFloats) {
  const std::vector<half> halves = {to_half(0.5f), to_half(2.0f), to_half(-kInf), to_half(2.0f)};
  EXPECT_EQ(most_likely_token(halves.data(), 4), 1);
  const std::vector<bfloat16> others = {to_bfloat16(0.5f), to_bfloat16(kNan), to_bfloat16(1.0f)};
  EXPECT_EQ(most_likely_token(others.data(), 3), 2);
  Sampling how;
  how.temperature = 1;
  Candidate memory[4];
  for (std::int64_t i = 0; i < 50; i++)
    EXPECT_EQ(choose_token(halves.data(), 4, how, nullptr, 0, i, memory),
              choose({0.5f, 2.0f, -kInf, 2.0f}, how, {}, i));
}

TEST(Generate, OptionsOutOfRange) {
  const auto wrong = [](auto set) {
    Sampling how;
    how.temperature = 1;
    EXPECT_EQ(sampling_error(how), nullptr);
    set(how);
    EXPECT_NE(sampling_error(how), nullptr);
    EXPECT_EQ(choose({1, 2}, how), -1);
  };
  for (const float v : {-1.0f, kInf, kNan}) wrong([v](Sampling& how) { how.temperature = v; });
  for (const float v : {0.0f, -1.0f, 1.01f, kInf, kNan}) wrong([v](Sampling& how) { how.top_p = v; });
  for (const float v : {0.0f, -1.0f, kInf, kNan}) wrong([v](Sampling& how) { how.repetition_penalty = v; });
  wrong([](Sampling& how) { how.top_k = -1; });
}

TEST(Generate, EndTokens) {
  const std::int64_t ends[] = {5, 0};
  EXPECT_TRUE(is_one_of(5, ends, 2));
  EXPECT_TRUE(is_one_of(0, ends, 2));
  EXPECT_FALSE(is_one_of(0, ends, 1));
  EXPECT_FALSE(is_one_of(5, nullptr, 0));
}

TEST(Generate, EndOfText) {
  const struct {
    const char* text;
    std::vector<const char*> stops;
    bool stopped;
    std::size_t length;
  } cases[] = {{"", {"x"}, false, 0},
               {"good day", {}, false, 8},
               {"good day", {""}, false, 8},
               {"good day", {"day"}, true, 5},
               {"good day", {"day", "od"}, true, 2},
               {"good da", {"day"}, false, 5},
               {"good da", {"a day", "day"}, false, 5},
               {"aaa", {"aab"}, false, 1},
               {"aaab", {"aab"}, true, 1},
               {"User: ", {"\nUser:"}, false, 6},
               {"yes\nUse", {"\nUser:"}, false, 3},
               // Characters of two, three and four bytes, whole and begun.
               {"\xc3\xa9", {}, false, 2},
               {"a\xc3", {}, false, 1},
               {"a\xe2\x82", {}, false, 1},
               {"a\xe2\x82\xac", {}, false, 4},
               {"\xf0\x9f\x98", {}, false, 0},
               {"\xf0\x9f\x98\x80", {}, false, 4},
               // What isn't UTF-8 is not kept forever.
               {"\x80\x80\x80\x80\x80", {}, false, 5},
               {"\xc3\xa9\xa9", {}, false, 3}};
  for (const auto& c : cases) {
    const TextEnd end = end_of_text(c.text, std::string(c.text).size(), 0, c.stops.data(), c.stops.size());
    EXPECT_EQ(end.stopped, c.stopped) << c.text;
    EXPECT_EQ(end.length, c.length) << c.text;
  }
}

// A text that comes in pieces: what is shown only grows, never has a byte of the stop string that ends it,
// and is all of the text but what may yet become one.
TEST(Generate, EndOfTextInPieces) {
  std::mt19937 random(2);
  const auto word = [&](std::size_t most) {
    std::string w;
    for (std::size_t k = 1 + random() % most; k > 0; k--) w += random() % 3 ? 'a' : 'b';
    return w;
  };
  for (int round = 0; round < 5000; round++) {
    const std::vector<std::string> stops = {word(4), word(6), "bbab"};
    const std::vector<const char*> pointers = {stops[0].c_str(), stops[1].c_str(), stops[2].c_str()};
    std::string text;
    TextEnd end = {false, 0};
    while (!end.stopped && text.size() < 60) {
      text += word(3);
      const std::size_t shown = end.length;
      end = end_of_text(text.data(), text.size(), shown, pointers.data(), pointers.size());
      std::size_t first = std::string::npos, open = text.size();
      for (const std::string& stop : stops) {
        first = std::min(first, text.find(stop));
        for (std::size_t at = 0; at < text.size(); at++)
          if (text.size() - at < stop.size() && stop.compare(0, text.size() - at, text, at) == 0)
            open = std::min(open, at);
      }
      ASSERT_GE(end.length, shown);
      ASSERT_EQ(end.stopped, first != std::string::npos) << text;
      ASSERT_EQ(end.length, end.stopped ? first : open) << text;
    }
  }
}

}  // namespace
}  // namespace sinter
