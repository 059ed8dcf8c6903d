// fuse_pixel_shuffle: blocks of pixels that become channels, and back, written as a Transpose of six axes
// between two Reshapes, become SpaceToDepth and DepthToSpace.
//
//   [N, C, H, b, W, b] by 0 1 3 5 2 4 (channels c b b) or 0 3 5 1 2 4 (b b c)    SpaceToDepth
//   [N, C, b, b, H, W] by 0 1 4 2 5 3, or [N, b, b, C, H, W] by 0 3 4 1 5 2      DepthToSpace
//
// Elements only move. Nothing in between may be used elsewhere.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace sinter {
namespace {

struct Form {
  const char *op, *mode;
  std::vector<int64_t> perm;
  // Axes of the six: channels, the two of the block, height and width.
  size_t channels, block_y, block_x, height, width;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> table = {
      {"SpaceToDepth", "CRD", {0, 1, 3, 5, 2, 4}, 1, 3, 5, 2, 4},
      {"SpaceToDepth", "DCR", {0, 3, 5, 1, 2, 4}, 1, 3, 5, 2, 4},
      {"DepthToSpace", "CRD", {0, 1, 4, 2, 5, 3}, 1, 2, 3, 4, 5},
      {"DepthToSpace", "DCR", {0, 3, 4, 1, 5, 2}, 3, 1, 2, 4, 5},
  };
  return table;
}

class Matcher {
 public:
  Matcher(Graph& g, const Order& order) : g_(g), order_(order) {}
  bool fuse(Node* split) {
    Node* turn = is_op(split, "Reshape") && split->has_output(0) ? only_user(g_, order_, split) : nullptr;
    if (!is_op(turn, "Transpose") || !turn->has_output(0)) return false;
    Node* join = only_user(g_, order_, turn);
    if (!is_op(join, "Reshape") || !join->has_output(0)) return false;
    for (const Form& f : forms())
      if (fits(f, *split, *turn, *join)) {
        replace(f, *split, *turn, *join);
        return true;
      }
    return false;
  }

 private:
  bool fits(const Form& f, const Node& split, const Node& turn, const Node& join) const {
    const Shape &x = split.inputs[0]->type.shape, &six = split.outputs[0]->type.shape,
                &y = join.outputs[0]->type.shape;
    if (x.size() != 4 || six.size() != 6 || y.size() != 4 || transpose_perm(turn) != f.perm) return false;
    const Dim &c = six[f.channels], &b = six[f.block_y], &h = six[f.height], &w = six[f.width];
    if (!b.is_static() || b.value() < 1 || !(six[f.block_x] == b)) return false;
    const Shape deep{six[0], c * b * b, h, w}, flat{six[0], c, h * b, w * b};
    const bool to_depth = std::string_view(f.op) == "SpaceToDepth";
    return same_shape(g_, x, to_depth ? flat : deep) && same_shape(g_, y, to_depth ? deep : flat);
  }

  void replace(const Form& f, Node& split, Node& turn, Node& join) {
    Attributes a;
    a.set("blocksize", split.outputs[0]->type.shape[f.block_y].value());
    a.set("mode", std::string(f.mode));
    fuse_into(g_, find_op("", f.op), &join, {split.inputs[0]}, std::move(a), {&split, &turn, &join});
  }

  Graph& g_;
  const Order& order_;
};

}  // namespace

bool fuse_pixel_shuffle(Graph& g, const PassOptions&) { return fuse_each<Matcher>(g); }

}  // namespace sinter
