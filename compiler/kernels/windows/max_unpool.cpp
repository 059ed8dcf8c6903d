// MaxUnpool: the output is zeroed, then each element goes where its index says. Indices come with the data:
// one outside the output ends the run with an error.
#include "kernels/nest.h"
#include "ops/op.h"
#include "ops/windows/window.h"

namespace sinter {
namespace {

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "MaxUnpool" && n.op->domain[0] == 0 && !n.epilogue &&
         is_float(n.inputs[0]->type.dtype);
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  const Shape& shape = n.inputs[0]->type.shape;
  const TensorType& out = n.outputs[0]->type;
  const Window window = window_of(n.attributes, WindowKind::kUnpool, n.attributes.integers("kernel_shape"),
                                  spatial_of(n.attributes, shape));
  const Shape implied = with_channels(n.attributes, shape[0], shape[1], window.out);
  w.include("sinter/half.h");
  w.include("sinter/status.h");
  w.can_fail();
  w.flops(product(out.shape));
  w.summary(fmt::format("MaxUnpool to {}", text(out.shape)));
  const std::string x = w.input(0), indices = w.input(1), y = w.output(0);
  w.out.put(loop_text("i", w.dim(product(out.shape))));
  w.out.line("{}[i] = {};", y, out.dtype == DType::kF64 ? "0.0" : store_text(out.dtype, "0.0f"));
  w.out.line("}}");
  const bool larger = !(implied == out.shape);
  if (larger) {
    w.include("sinter/unpool.h");
    w.out.line("const sinter::UnpoolAxis axes[] = {{");
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool spatial = d >= 2;
      w.out.line("    {{{}, {}, {}, {}, {}, {}}},", w.dim(shape[d]), w.dim(out.shape[d]), w.dim(implied[d]),
                 spatial ? window.strides[d - 2] : 1, spatial ? w.dim(window.pads_begin[d - 2]) : "0",
                 spatial ? window.kernel[d - 2] : 1);
    }
    w.out.line("}};");
    w.out.line("const bool of_implied = sinter::counts_in_implied({}, axes);", indices);
  }
  w.out.put(loop_text("i", w.dim(product(shape))));
  w.out.line("std::int64_t at = {}[i];", indices);
  w.out.line("if (at < 0 || at >= {}) return sinter::kIndexError;", w.dim(product(out.shape)));
  if (larger) {
    // The position in the implied tensor, which lies at the beginning of the larger output.
    const std::vector<Dim> strides = dim_strides(out.shape);
    std::string to = "0";
    w.out.line("if (of_implied) {{");
    for (size_t d = implied.size(); d-- > 0;) {
      w.out.line("const std::int64_t p{} = at % {};", d, w.dim(implied[d]));
      if (d > 0) w.out.line("at /= {};", w.dim(implied[d]));
      to = plus(times(fmt::format("p{}", d), w.dim(strides[d])), to);
    }
    w.out.line("at = {};", to);
    w.out.line("}}");
  }
  w.out.line("{}[at] = {}[i];", y, x);
  w.out.line("}}");
  w.out.line("return 0;");
}

}  // namespace

const std::vector<Kernel>& kernels_max_unpool() {
  static const std::vector<Kernel> table = {
      {"max_unpool", "MaxUnpool, indices checked", accepts, emit, {.work = Work::kLoops}}};
  return table;
}

}  // namespace sinter
