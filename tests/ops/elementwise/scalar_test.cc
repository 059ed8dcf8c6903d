// runtime/sinter/scalar.h against ScalarFn, every row with every element type: the words of generated code
// mean what the table says. Also cast_to against casts of expressions, and dims.h against Dim.
#include "sinter/scalar.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "ir/dim.h"
#include "ir/expr.h"
#include "ops/run_node.h"
#include "sinter/dims.h"

namespace sinter {
namespace {
using namespace node_test;

// A word with up to three arguments, result as double (floats) or as a number of 64 bits (integers).
template <class T>
struct Word {
  std::string name;
  std::function<T(T, T, T)> f;
};
#define W1(n)                                                  \
  Word<T> {                                                    \
#n, [](T a, T, T) { return static_cast<T>(sinter::n(a)); } \
  }
#define W2(n)                                                       \
  Word<T> {                                                         \
#n, [](T a, T b, T) { return static_cast<T>(sinter::n(a, b)); } \
  }
#define W3(n)                                                            \
  Word<T> {                                                              \
#n, [](T a, T b, T c) { return static_cast<T>(sinter::n(a, b, c)); } \
  }

template <class T>
std::vector<Word<T>> common_words() {
  return {
      W2(add),  W2(sub),   W2(mul),
      W2(div),  W2(rem),   W2(mod),
      W2(pow),  W2(min),   W2(max),
      W1(neg),  W1(abs),   W1(sign),
      W1(relu), W3(clamp), W2(leaky_relu),
      W2(eq),   W2(lt),    W2(le),
      W2(gt),   W2(ge),    Word<T>{"select", [](T a, T b, T c) { return sinter::select(a != T{0}, b, c); }}};
}
template <class T>
std::vector<Word<T>> integer_words() {
  return {W2(logical_and), W2(logical_or), W2(logical_xor), W1(logical_not), W2(bit_and),
          W2(bit_or),      W2(bit_xor),    W1(bit_not),     W2(shift_left),  W2(shift_right)};
}
template <class T>
std::vector<Word<T>> float_words() {
  std::vector<Word<T>> words = {W1(reciprocal),
                                W1(floor),
                                W1(ceil),
                                W1(round),
                                W1(trunc),
                                W1(sqrt),
                                W1(exp),
                                W1(log),
                                W1(sin),
                                W1(cos),
                                W1(tan),
                                W1(asin),
                                W1(acos),
                                W1(atan),
                                W1(sinh),
                                W1(cosh),
                                W1(asinh),
                                W1(acosh),
                                W1(atanh),
                                W1(tanh),
                                W1(erf),
                                W1(sigmoid),
                                W1(softplus),
                                W1(softsign),
                                W2(elu),
                                W3(selu),
                                W2(celu),
                                W3(hard_sigmoid),
                                W1(hard_swish),
                                W1(silu),
                                W1(mish),
                                W3(shrink),
                                W1(gelu),
                                W1(gelu_tanh),
                                W2(thresholded_relu),
                                W1(is_nan),
                                W1(is_positive_inf),
                                W1(is_negative_inf)};
  if constexpr (std::is_same_v<T, float>) words.push_back(W3(quantize));  // divides in float32 only
  return words;
}

const std::vector<const char*> kAllRows = {"add",
                                           "sub",
                                           "mul",
                                           "div",
                                           "rem",
                                           "mod",
                                           "pow",
                                           "min",
                                           "max",
                                           "neg",
                                           "abs",
                                           "sign",
                                           "reciprocal",
                                           "floor",
                                           "ceil",
                                           "round",
                                           "quantize",
                                           "trunc",
                                           "sqrt",
                                           "exp",
                                           "log",
                                           "sin",
                                           "cos",
                                           "tan",
                                           "asin",
                                           "acos",
                                           "atan",
                                           "sinh",
                                           "cosh",
                                           "asinh",
                                           "acosh",
                                           "atanh",
                                           "tanh",
                                           "erf",
                                           "relu",
                                           "clamp",
                                           "leaky_relu",
                                           "sigmoid",
                                           "softplus",
                                           "softsign",
                                           "elu",
                                           "selu",
                                           "celu",
                                           "hard_sigmoid",
                                           "hard_swish",
                                           "silu",
                                           "mish",
                                           "gelu",
                                           "gelu_tanh",
                                           "thresholded_relu",
                                           "shrink",
                                           "eq",
                                           "lt",
                                           "le",
                                           "gt",
                                           "ge",
                                           "logical_and",
                                           "logical_or",
                                           "logical_xor",
                                           "logical_not",
                                           "is_nan",
                                           "is_positive_inf",
                                           "is_negative_inf",
                                           "select",
                                           "bit_and",
                                           "bit_or",
                                           "bit_xor",
                                           "bit_not",
                                           "shift_left",
                                           "shift_right"};

template <class T>
std::vector<T> samples() {
  if constexpr (std::is_floating_point_v<T>)
    return {T(0),   T(-0.0), T(1),    T(-1),  T(0.5), T(-0.5), T(2.5),   T(-3.5), T(7),
            T(-20), T(0.1),  T(-1.3), T(1e3), T(60),  T(kInf), T(-kInf), T(kNaN)};
  else if constexpr (std::is_same_v<T, bool>)
    return {false, true};
  else
    return {T(0),
            T(1),
            T(2),
            T(3),
            T(7),
            T(13),
            T(63),
            T(64),
            T(100),
            static_cast<T>(-1),
            static_cast<T>(-2),
            static_cast<T>(-7),
            std::numeric_limits<T>::min(),
            std::numeric_limits<T>::max()};
}

// ScalarFn's answer for arguments of type T, stored as a T, as the interpreter does.
template <class T>
T reference(const ScalarFn& fn, T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) {
    const double x[3] = {double(a), double(b), double(c)};
    return static_cast<T>(fn.real(x));
  } else {
    const int64_t x[3] = {int64_t(a), int64_t(b), int64_t(c)};
    const uint64_t u[3] = {uint64_t(x[0]), uint64_t(x[1]), uint64_t(x[2])};
    const bool natural = std::is_unsigned_v<T> && !std::is_same_v<T, bool> && fn.natural;
    return static_cast<T>(natural ? static_cast<int64_t>(fn.natural(u)) : fn.integer(x));
  }
}
template <class T>
bool close(T got, T want) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(want)) return std::isnan(got);
    if (got == want) return std::signbit(got) == std::signbit(want) || want == 0;
    return std::fabs(got - want) <=
           16 * std::numeric_limits<T>::epsilon() * std::max(std::fabs(want), T(0.01));
  }
  return got == want;
}
template <class T>
void compare(const Word<T>& word) {
  const ScalarFn* fn = scalar_fn(word.name);
  const std::vector<T> v = samples<T>();
  for (T a : v)
    for (T b : fn->arity > 1 ? v : std::vector<T>{T{}})
      for (T c : fn->arity > 2 ? v : std::vector<T>{T{}}) {
        const T got = word.f(a, b, c), want = reference(*fn, a, b, c);
        ASSERT_TRUE(close(got, want)) << word.name << "(" << +a << ", " << +b << ", " << +c << ") = " << +got
                                      << ", ScalarFn says " << +want;
      }
}

template <class T>
struct ScalarWords : testing::Test {};
using Numbers = testing::Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                               uint64_t, bool>;
TYPED_TEST_SUITE(ScalarWords, Numbers);

TYPED_TEST(ScalarWords, AgreeWithTheTable) {
  using T = TypeParam;
  std::map<std::string, int> seen;
  auto all = common_words<T>();
  if constexpr (std::is_floating_point_v<T>) {
    for (auto& w : float_words<T>()) all.push_back(w);
  } else {
    for (auto& w : integer_words<T>()) all.push_back(w);
  }
  for (const auto& w : all) {
    compare(w);
    ++seen[w.name];
  }
  for (const char* row : kAllRows) {
    const ScalarFn* fn = scalar_fn(row);
    const bool defined = std::string_view(row) == "quantize" ? std::is_same_v<T, float>
                         : std::is_floating_point_v<T>       ? fn->real != nullptr
                                                             : fn->integer != nullptr;
    EXPECT_EQ(seen.count(row) != 0, defined) << row;
  }
}

template <class To, class From>
void compare_casts(From v) {
  DType from{}, to{};
  const auto dtype = [](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, float>) return DType::kF32;
    if constexpr (std::is_same_v<T, double>) return DType::kF64;
    if constexpr (std::is_same_v<T, half>) return DType::kF16;
    if constexpr (std::is_same_v<T, bfloat16>) return DType::kBF16;
    if constexpr (std::is_same_v<T, int8_t>) return DType::kI8;
    if constexpr (std::is_same_v<T, int16_t>) return DType::kI16;
    if constexpr (std::is_same_v<T, int32_t>) return DType::kI32;
    if constexpr (std::is_same_v<T, int64_t>) return DType::kI64;
    if constexpr (std::is_same_v<T, uint8_t>) return DType::kU8;
    if constexpr (std::is_same_v<T, uint16_t>) return DType::kU16;
    if constexpr (std::is_same_v<T, uint32_t>) return DType::kU32;
    if constexpr (std::is_same_v<T, uint64_t>) return DType::kU64;
    return DType::kBool;
  };
  from = dtype(From{});
  to = dtype(To{});
  Tensor t(from, {1});
  t.as<From>()[0] = v;
  const Tensor want = evaluate(*Expr::cast(Expr::input(0, from), to), {t}, nullptr);
  const To got = cast_to<To>(v);
  Tensor mine(to, {1});
  mine.as<To>()[0] = got;
  const bool both_nan = is_float(to) && std::isnan(want.real(0)) && std::isnan(mine.real(0));
  EXPECT_TRUE(both_nan || mine.same_bits(want)) << name_of(from) << " " << t.real(0) << " to " << name_of(to)
                                                << ": " << mine.real(0) << ", not " << want.real(0);
}
template <class From>
void compare_all_casts(From v) {
  compare_casts<float>(v);
  compare_casts<double>(v);
  compare_casts<half>(v);
  compare_casts<bfloat16>(v);
  compare_casts<int8_t>(v);
  compare_casts<int16_t>(v);
  compare_casts<int32_t>(v);
  compare_casts<int64_t>(v);
  compare_casts<uint8_t>(v);
  compare_casts<uint16_t>(v);
  compare_casts<uint32_t>(v);
  compare_casts<uint64_t>(v);
  compare_casts<bool>(v);
}
TYPED_TEST(ScalarWords, CastsAgreeWithExpressions) {
  for (TypeParam v : samples<TypeParam>()) compare_all_casts(v);
  if constexpr (std::is_floating_point_v<TypeParam>)
    for (double v :
         {-129.0, 127.9, 255.5, 65504.0, 65520.0, 2147483647.0, 2147483648.0, 9.3e18, 1.9e19, -1e30})
      compare_all_casts(static_cast<TypeParam>(v));
}
TEST(ScalarWordsOfHalf, CastsAgreeWithExpressions) {
  for (float v : samples<float>()) {
    compare_all_casts(to_half(v));
    compare_all_casts(to_bfloat16(v));
  }
}
TEST(CastTo, KnownValues) {
  EXPECT_EQ(cast_to<int8_t>(200.0f), 127);
  EXPECT_EQ(cast_to<int8_t>(-200.0f), -128);
  EXPECT_EQ(cast_to<int8_t>(static_cast<int16_t>(200)), -56);
  EXPECT_EQ(cast_to<uint8_t>(-1.0f), 0);
  EXPECT_EQ(cast_to<int32_t>(kNaN), 0);
  EXPECT_EQ(cast_to<int32_t>(-2.9f), -2);
  EXPECT_EQ(cast_to<int64_t>(9.3e18), INT64_MAX);
  EXPECT_EQ(cast_to<uint64_t>(1e30f), UINT64_MAX);
  EXPECT_TRUE(cast_to<bool>(kNaN));
  EXPECT_FALSE(cast_to<bool>(-0.0));
  EXPECT_EQ(cast_to<float>(int64_t{16777217}), 16777216.0f);
  EXPECT_EQ(cast_to<half>(65520.0).bits, 0x7c00);
}

TEST(DimsHeader, AgreesWithDim) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> any(-50, 50);
  Symbols symbols;
  const Dim a(symbols.fresh("a", {-50, 50}, "test")), b(symbols.fresh("b", {-50, 50}, "test"));
  for (int i = 0; i < 2000; ++i) {
    const int64_t x = any(random), y = any(random);
    const auto at = [&](const Symbol& s) { return s.name == "a" ? x : y; };
    if (y != 0) {
      EXPECT_EQ(floor_div(x, y), floordiv(a, b).evaluate(at)) << x << "/" << y;
      EXPECT_EQ(ceil_div(x, y), ceildiv(a, b).evaluate(at)) << x << "/" << y;
      EXPECT_EQ(floor_mod(x, y), mod(a, b).evaluate(at)) << x << "%" << y;
    }
    EXPECT_EQ(min_of(x, y), std::min(x, y));
    EXPECT_EQ(max_of(x, y), std::max(x, y));
  }
  EXPECT_EQ(floor_div(5, 0), 0);
  EXPECT_EQ(ceil_div(5, 0), 0);
  EXPECT_EQ(floor_mod(5, 0), 0);
  EXPECT_EQ(floor_div(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(floor_mod(INT64_MIN, -1), 0);
}

}  // namespace
}  // namespace sinter
