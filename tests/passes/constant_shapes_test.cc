// Constants of every shape behind and in every layer that passes fold constants into: the values stay.
#include "constant_shapes.h"

#include "passes/proof.h"

namespace sinter {
namespace {

void expect_kept(const ConstantAnchor& anchor, const std::vector<std::string>& ends) {
  const std::unique_ptr<Graph> before = constant_model(anchor, ends);
  for (const bool byte_products : {false, true}) {
    const std::unique_ptr<Graph> after = before->clone();
    run_only(*after, {"all"}, false, byte_products);
    expect_same_values(*before, *after, 1e-5, {1});
  }
}

class ConstantShapes : public testing::TestWithParam<ConstantAnchor> {};
const auto kName = [](const auto& i) { return std::string(i.param.name); };

TEST_P(ConstantShapes, BehindALayer) {
  expect_kept(GetParam(), {"{y} = Add({a}, {c})", "{y} = Mul({c}, {a})", "{y} = Sub({a}, {c})",
                           "{y} = Sub({c}, {a})", "{y} = Div({a}, {c})", "{y} = Max({a}, {c})"});
}
INSTANTIATE_TEST_SUITE_P(All, ConstantShapes, testing::ValuesIn(constant_anchors()), kName);

class ConstantOperands : public testing::TestWithParam<ConstantAnchor> {};

TEST_P(ConstantOperands, OfALayer) { expect_kept(GetParam(), {"{y} = Identity({a})"}); }
INSTANTIATE_TEST_SUITE_P(All, ConstantOperands, testing::ValuesIn(constant_operands()), kName);

}  // namespace
}  // namespace sinter
