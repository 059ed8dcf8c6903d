// The passes by name: each is defined in the file of its name.
#pragma once
#include "passes/pass.h"

namespace sinter {

bool fold_constants(Graph&, const PassOptions&);
bool widen_floats(Graph&, const PassOptions&);
bool simplify_control(Graph&, const PassOptions&);
bool remove_identity(Graph&, const PassOptions&);
bool merge_common(Graph&, const PassOptions&);
bool fuse_attention(Graph&, const PassOptions&);
bool fuse_layernorm(Graph&, const PassOptions&);
bool fuse_rotary(Graph&, const PassOptions&);
bool fuse_groupnorm(Graph&, const PassOptions&);
bool fuse_embedding(Graph&, const PassOptions&);
bool fuse_squeeze_excite(Graph&, const PassOptions&);
bool fuse_pixel_shuffle(Graph&, const PassOptions&);
bool spread_pixel_shuffle(Graph&, const PassOptions&);
bool lower_ops(Graph&, const PassOptions&);
bool integer_products(Graph&, const PassOptions&);
bool sink_dequantize(Graph&, const PassOptions&);
bool keep_codes(Graph&, const PassOptions&);
bool lower_einsum(Graph&, const PassOptions&);
bool lower_composites(Graph&, const PassOptions&);
bool limit_boxes(Graph&, const PassOptions&);
bool fuse_regions(Graph&, const PassOptions&);
bool fill_regions(Graph&, const PassOptions&);
bool fuse_pads(Graph&, const PassOptions&);
bool fold_batchnorm(Graph&, const PassOptions&);
bool fold_pad(Graph&, const PassOptions&);
bool fold_crop(Graph&, const PassOptions&);
bool choose_layout(Graph&, const PassOptions&);
bool sink_transposes(Graph&, const PassOptions&);
bool sink_reshapes(Graph&, const PassOptions&);
bool tabulate_bytes(Graph&, const PassOptions&);
bool fuse_epilogue(Graph&, const PassOptions&);
bool look_up_one_hot(Graph&, const PassOptions&);
bool fuse_elementwise(Graph&, const PassOptions&);
bool compute_in_halves(Graph&, const PassOptions&);
bool store_halves(Graph&, const PassOptions&);
bool simplify_expr(Graph&, const PassOptions&);
bool allow_winograd(Graph&, const PassOptions&);
bool allow_strassen(Graph&, const PassOptions&);
bool allow_amx(Graph&, const PassOptions&);
bool allow_flush(Graph&, const PassOptions&);

// One expression simplified; see simplify_expr.cpp.
ExprPtr simplified(const ExprPtr&, bool exact);

}  // namespace sinter
