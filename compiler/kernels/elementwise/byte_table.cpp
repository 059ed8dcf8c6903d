// byte_table: bytes looked up a vector at a time (runtime/sinter/byte_table.h).
#include "emit/layer.h"
#include "ops/op.h"

namespace sinter {
namespace {

constexpr int64_t kBlock = 1024;  // bytes of a turn, where threads share them

bool accepts(const Node& n, const Context&) {
  return std::string_view(n.op->name) == "byte_table" && std::string_view(n.op->domain) == "sinter" &&
         !n.epilogue;
}

void emit(LayerWriter& w) {
  const Node& n = w.node;
  w.include("sinter/byte_table.h");
  w.include("sinter/dims.h");
  w.summary(fmt::format("table of {} for {}", text(n.outputs[0]->type), name_of(n.inputs[0]->type.dtype)));
  w.may_overwrite(0);
  const Dim count = product(n.outputs[0]->type.shape);
  w.flops(count * Dim(4));
  const auto bytes = [](const Value* v, const std::string& pointer) {
    return v->type.dtype == DType::kU8 ? pointer
                                       : fmt::format("reinterpret_cast<const std::uint8_t*>({})", pointer);
  };
  const std::string x = bytes(n.inputs[0], w.input(0)), table = bytes(n.inputs[1], w.input(1));
  const std::string y = n.outputs[0]->type.dtype == DType::kU8
                            ? w.output(0)
                            : fmt::format("reinterpret_cast<std::uint8_t*>({})", w.output(0));
  const LayerWriter::Turns turns = w.open_parts(w.dim(ceildiv(count, Dim(kBlock))));
  if (turns.first == "0") {
    w.out.line("look_up_bytes({}, {}, {}, {});", x, table, w.dim(count), y);
  } else {
    w.out.line("const std::int64_t first = {} * {};", turns.first, kBlock);
    w.out.line("const std::int64_t end = sinter::min_of({} * {}, std::int64_t{{{}}});", turns.end, kBlock,
               w.dim(count));
    w.out.line("look_up_bytes({} + first, {}, end - first, {} + first);", x, table, y);
  }
  w.close_parts();
}

}  // namespace

const std::vector<Kernel>& kernels_byte_table() {
  static const std::vector<Kernel> table = {
      {"byte_table", "a function of bytes, by the table of its results", accepts, emit}};
  return table;
}

}  // namespace sinter
