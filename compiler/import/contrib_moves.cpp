// Operators of domain com.microsoft that ONNX has as well, now or by another name or layout: ONNX Runtime had
// them first. Each becomes ONNX's own, in the newest opset's form.
#include <array>

#include "import/upgrade.h"

namespace sinter {
namespace {

size_t rank_of(Rewrite& r, Value* v, const char* what) {
  const TensorType* t = v ? r.type(v) : nullptr;
  if (!t) r.fail(fmt::format("the type of {} is not known", what));
  return t->shape.size();
}
void become(Rewrite& r, const char* op, std::vector<Value*> inputs, Attributes a) {
  r.node.op = op;
  r.node.domain.clear();
  r.node.inputs = std::move(inputs);
  r.node.attributes = std::move(a);
}
Attributes permutation(std::vector<int64_t> perm) {
  Attributes a;
  a.set("perm", std::move(perm));
  return a;
}

void trilu(Rewrite& r) { become(r, "Trilu", r.node.inputs, r.node.attributes); }

// pads may be [1, 2 * rank].
void pad(Rewrite& r) {
  std::vector<Value*> in = r.node.inputs;
  if (in.size() < 2 || !in[1]) r.fail("its pads are missing");
  const size_t rank = rank_of(r, in[1], "its pads");
  if (rank == 2)
    in[1] = r.before("Reshape", {in[1], r.constant({-1}, "list")});
  else if (rank != 1)
    r.fail(fmt::format("its pads have {} axes", rank));
  become(r, "Pad", in, r.node.attributes);
}

// Modes by the names of opset 16.
void grid_sample(Rewrite& r) {
  Attributes a = r.node.attributes;
  const std::string mode = a.text("mode", "bilinear");
  a.set("mode", mode == "bilinear" ? std::string("linear") : mode == "bicubic" ? std::string("cubic") : mode);
  become(r, "GridSample", r.node.inputs, a);
}

// The axis is one number, also from the end.
void expand_dims(Rewrite& r) {
  if (r.node.inputs.size() != 2 || !r.node.inputs[1]) r.fail("its axis is missing");
  Attributes to;
  to.set("to", static_cast<int64_t>(onnx_of(DType::kI64)));
  Value* axis = r.before("Reshape", {r.before("Cast", {r.node.inputs[1]}, to), r.constant({1}, "list")});
  become(r, "Unsqueeze", {r.node.inputs[0], axis}, {});
}

// Channels last.
void nhwc_max_pool(Rewrite& r) {
  Value* x = r.node.input(0);
  const auto rank = static_cast<int64_t>(rank_of(r, x, "its input"));
  if (rank < 3) r.fail(fmt::format("an input of {} axes", rank));
  std::vector<int64_t> first{0, rank - 1}, last{0};
  for (int64_t a = 1; a + 1 < rank; ++a) first.push_back(a), last.push_back(a + 1);
  last.push_back(1);
  become(r, "MaxPool", {r.before("Transpose", {x}, permutation(first))}, r.node.attributes);
  const auto [y, out] = r.divert(0);
  r.then("Transpose", {y}, out, permutation(last));
}

struct Row {
  const char* op;
  void (*rewrite)(Rewrite&);
};
constexpr std::array<Row, 5> kRows{{{"ExpandDims", expand_dims},
                                    {"GridSample", grid_sample},
                                    {"NhwcMaxPool", nhwc_max_pool},
                                    {"Pad", pad},
                                    {"Trilu", trilu}}};

}  // namespace

bool lower_contrib_moves(Rewrite& r) {
  for (const Row& row : kRows)
    if (r.node.op == row.op) return row.rewrite(r), true;
  return false;
}

}  // namespace sinter
