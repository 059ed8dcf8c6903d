// The table of passes and its driver.
#include "passes/passes.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <tuple>
#include <unordered_set>

#include "ir/budget.h"
#include "ir/error.h"
#include "passes/pass.h"
#include "passes/quantise_frames.h"

namespace sinter {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> table = {
      {"lower_ops",
       "Replaces operators that are defined by simpler ones: quantised ones, those of com.microsoft.",
       "first: no other pass knows them", lower_ops},
      {"integer_products",
       "Computes products of dequantised bytes as integers, where the target multiplies bytes; --exact: not.",
       "before fold_constants, which would make floats of the weights", integer_products},
      {"sink_dequantize",
       "Moves and pools bytes as they are where their floats are made bytes again by the same steps.",
       "behind integer_products, which leaves the pairs of quantize and dequantize that stand around moves",
       sink_dequantize},
      {"keep_codes",
       "Multiplies floats by constant matrices of 2- to 8-bit integers as they are stored, and looks up rows "
       "of them.",
       "behind integer_products, which takes rows of bytes; before fold_constants, which would make floats "
       "of the matrices",
       keep_codes},
      {"fold_constants", "Computes what depends on constants and known shapes only.",
       "early: every later pass asks for constants", fold_constants},
      {"quantise_frames",
       "Makes bytes of a camera's frame where its picture is quantised at once; --exact: not.",
       "behind integer_products, which asks for the QuantizeLinear of bytes; before choose_layout, which "
       "joins the "
       "Transpose between",
       quantise_frames},
      {"simplify_control",
       "Puts the branch that is taken in place of an If, and moves what is constant into bodies and out of "
       "them.",
       "behind fold_constants, which makes conditions known; before all that would see one graph only",
       simplify_control},
      {"widen_floats", "Computes in float32 what the model computes in 16-bit floats; --exact: not.",
       "before every pass that multiplies weights, which then round once only", widen_floats},
      {"remove_identity",
       "Removes nodes that change nothing and merges chains of Reshapes and of Transposes.",
       "early: they stand between nodes that belong together", remove_identity},
      {"merge_common", "Computes equal expressions once.", "before fusion hides what is equal", merge_common},
      {"lower_einsum", "Writes an Einsum of two operands that sums as a product of matrices.",
       "early: fuse_attention and fuse_epilogue know MatMul", lower_einsum},
      {"fuse_layernorm", "Recognises layer normalisation written out as arithmetic.",
       "behind merge_common, which joins the two subtractions of some exporters", fuse_layernorm},
      {"fuse_groupnorm",
       "Recognises group normalisation written as InstanceNormalization between two Reshapes, with its "
       "factors and "
       "offsets of channels.",
       "before fold_batchnorm, which would take the factors, and choose_layout", fuse_groupnorm},
      {"fuse_pixel_shuffle",
       "Recognises DepthToSpace and SpaceToDepth written as a Transpose of six axes between two Reshapes.",
       "before choose_layout, which knows their channels-last form", fuse_pixel_shuffle},
      {"fuse_rotary",
       "Recognises rotary position embedding written out as arithmetic, and moves it before the Transposes "
       "that "
       "split heads.",
       "before fuse_attention, which takes in those Transposes", fuse_rotary},
      {"fuse_attention",
       "Recognises attention written out as MatMul, scale, mask, Softmax and MatMul; takes in the Transposes "
       "and "
       "repetitions of heads around it.",
       "behind fold_constants, which makes masks and scales constants; before scales go into weights",
       fuse_attention},
      {"fuse_embedding", "Adds rows that Gathers pick of tables, and normalises the sum, in one layer.",
       "behind fuse_layernorm, which makes the norms; before the fusions that take the Adds", fuse_embedding},
      {"lower_composites",
       "Folds the factors and transposition flags of Gemm into its constants; BatchNormalization whose "
       "statistics are computed and the losses of classification become arithmetic.",
       "before fold_batchnorm, which scales the columns of Gemm's constant", lower_composites},
      {"limit_boxes", "Ends NonMaxSuppression where the Slice behind it does.",
       "behind merge_common and remove_identity, which leave one reader of each step; before what folds the "
       "counts away",
       limit_boxes},
      {"fuse_regions",
       "Turns scattered elements that are whole rows into rows, and lets RoiAlign write them itself.",
       "behind merge_common and remove_identity, which leave the bare scatters; before choose_layout",
       fuse_regions},
      {"fuse_pads",
       "Turns Concat of one Value with fills whose extents the data decide into Pad, which takes in the "
       "Slice "
       "behind it and other Pads.",
       "behind remove_identity, which joins views; before fold_pad", fuse_pads},
      {"fold_batchnorm",
       "Folds BatchNormalization and other per-channel factors and offsets into the weights before them; "
       "what "
       "cannot be folded becomes Mul and Add.",
       "before choose_layout: weights and constants still have ONNX's axes", fold_batchnorm},
      {"fold_pad", "Folds Pad into the padding of Conv and pools.", "before choose_layout, as fold_batchnorm",
       fold_pad},
      {"fold_crop", "Folds Slice into the padding of the ConvTranspose before it.",
       "before choose_layout, as fold_batchnorm", fold_crop},
      {"choose_layout",
       "Puts convolutional regions into channels-last layout with the fewest transposed elements.",
       "behind what reads channel axes, before the fusions that need final shapes", choose_layout},
      {"sink_transposes", "Moves other Transposes where they cancel or where they move fewer elements.",
       "behind choose_layout: sees the Transposes that it left", sink_transposes},
      {"spread_pixel_shuffle",
       "Lets DepthToSpace and SpaceToDepth write and read planes where a Transpose would make or take them.",
       "behind the layout passes, which leave the Transposes", spread_pixel_shuffle},
      {"sink_reshapes", "Moves views behind the elementwise nodes that follow them.",
       "behind the layout passes, which need views where the model has them; before fusion", sink_reshapes},
      {"fold_constants_again", "Computes what the layout passes made of constants.",
       "behind the layout passes", fold_constants},
      {"remove_identity_again", "Removes views and chains that the layout passes left.",
       "behind the layout passes", remove_identity},
      {"merge_common_again", "Computes equal Transposes and constants once.", "behind the layout passes",
       merge_common},
      {"fill_regions", "Lets RoiAlign that writes rows of a tensor fill the others too.",
       "behind the layout passes, which turn the shape of what is filled", fill_regions},
      {"fuse_squeeze_excite",
       "Recognises squeeze and excite: channels scaled by what two 1x1 convolutions make of their means.",
       "behind the layout passes; before fuse_epilogue, which lets it have an epilogue", fuse_squeeze_excite},
      {"tabulate_bytes",
       "Looks up in a table what costly functions make of bytes where the results are bytes again.",
       "behind the layout passes; before the fusions, which would take the functions into the layer before "
       "them",
       tabulate_bytes},
      {"fuse_epilogue", "Fuses elementwise nodes into the Conv, MatMul, pool or norm before them.",
       "behind everything that matches single nodes", fuse_epilogue},
      {"look_up_one_hot", "Takes rows of a table instead of products of one-hot rows with constants.",
       "behind fuse_epilogue: what follows the product goes into the table; before fuse_elementwise, which "
       "joins the arithmetic of the indices",
       look_up_one_hot},
      {"fuse_elementwise", "Fuses what elementwise nodes remain into one node per connected region.",
       "behind fuse_epilogue, which saves a whole pass over memory", fuse_elementwise},
      {"simplify_expr",
       "Recognises activations written out as arithmetic, and folds constants in expressions.",
       "behind the fusions: whole expressions are in one place only now", simplify_expr},
      {"compute_in_halves",
       "With --fp16, computes and stores float16 where a half's range and digits are enough; --exact: not.",
       "behind all fusions, which know floats; before the marks, which depend on the type",
       compute_in_halves},
      {"store_halves",
       "With --fp16, where the target has no arithmetic of halves: rounds weights of products to halves; "
       "--exact: not.",
       "as compute_in_halves, whose place it takes", store_halves},
      {"allow_winograd",
       "Marks the convolutions of 3x3 to 6x6 taps, 2 to 7 in a line, or of up to 4 channels, whose sums may "
       "be rearranged; never "
       "with --exact. Kernels choose "
       "by target.",
       "last: nothing reads the mark but kernels", allow_winograd},
      {"allow_strassen",
       "Marks the products with constant weights whose sums may be rearranged; never with --exact. Kernels "
       "choose by target.",
       "last: nothing reads the mark but kernels", allow_strassen},
      {"allow_amx",
       "Marks the products with constant weights that tile matrices of bfloat16 may compute, in three parts "
       "a "
       "float; never with --exact. Kernels choose by target.",
       "last: nothing reads the mark but kernels", allow_amx},
      {"allow_flush",
       "Marks the layers, products above all, in which floats closer to zero than the smallest normal one "
       "may count as zero; never with --exact. x86-64 processors multiply such floats in microcode.",
       "last: nothing reads the mark but the layers' text", allow_flush},
  };
  return table;
}

namespace {

void check_names(const PassHooks& hooks) {
  std::vector<std::string> problems;
  const auto check = [&](const std::string& name) {
    for (const Pass& p : all_passes())
      if (name == p.name) return;
    problems.push_back(fmt::format("there is no pass named {}", sinter::quoted(name)));
  };
  if (!hooks.stop_after.empty()) check(hooks.stop_after);
  for (const std::string& s : hooks.print_after) check(s);
  for (const std::string& s : hooks.skip) check(s);
  if (!problems.empty()) throw Refusal(std::move(problems));
}

bool run_everywhere(const Pass& pass, Graph& g, const PassOptions& options) {
  bool changed = pass.run(g, options);
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies)
      if (b->unreachable.empty()) changed |= run_everywhere(pass, *b, options);
  return changed;
}

void collect_live_symbols(const Graph& g, std::unordered_set<SymbolPtr>& live) {
  const auto add = [&](const Dim& d) {
    std::vector<SymbolPtr> own;
    d.collect_symbols(own);
    live.insert(own.begin(), own.end());
  };
  for (const auto& v : g.values) {
    for (const Dim& d : v->type.shape) add(d);
    for (const Dim& d : v->elements) add(d);
  }
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies) collect_live_symbols(*b, live);
}

void add_graph(Budget& budget, const Graph& g) {
  budget.add_nodes(static_cast<double>(g.nodes.size()));
  for (const auto& v : g.values)
    if (v->data) budget.add_tensor(static_cast<double>(v->data->bytes()));
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies) add_graph(budget, *b);
}

// Rewritten nodes were inferred again: their checks are there twice, and those about counts of nodes that
// are gone can't be made any more.
void tidy_checks(Graph& g, const std::unordered_set<SymbolPtr>& live) {
  std::vector<Check> kept;
  std::set<std::tuple<std::string, std::string, bool>> seen;
  for (Check& c : g.checks) {
    std::vector<SymbolPtr> used;
    c.a.collect_symbols(used);
    c.b.collect_symbols(used);
    const bool stale = std::any_of(used.begin(), used.end(),
                                   [&](const SymbolPtr& s) { return s->from_data && live.count(s) == 0; });
    if (!stale && seen.emplace(c.a.text(), c.b.text(), c.or_one).second) kept.push_back(std::move(c));
  }
  g.checks = std::move(kept);
  for (const auto& n : g.nodes)
    for (const auto& b : n->bodies) tidy_checks(*b, live);
}

}  // namespace

void run_passes(Graph& graph, const PassOptions& options, const PassHooks& hooks) {
  check_names(hooks);
  Budget budget;
  add_graph(budget, graph);
  const Budget::Use use(budget);
  BugContext context;
  constexpr size_t kSmall = 200;  // nodes; the text of larger graphs costs more than it helps
  for (const Pass& pass : all_passes()) {
    if (hooks.skip.count(pass.name)) continue;
    const bool with_text = hooks.verify_each || graph.nodes.size() <= kSmall;
    context.set(fmt::format("in pass {}{}", pass.name, with_text ? ", over\n" + text(graph) : ""));
    const auto start = std::chrono::steady_clock::now();
    run_everywhere(pass, graph, options);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    if (hooks.verify_each) graph.verify();
    if (hooks.time)
      hooks.print(fmt::format("{:24} {:9.2f} ms  {:5} nodes\n", pass.name, ms.count(), graph.nodes.size()));
    if (std::count(hooks.print_after.begin(), hooks.print_after.end(), pass.name))
      hooks.print(fmt::format("-- after {}\n{}", pass.name, text(graph)));
    if (hooks.after) hooks.after(pass, graph);
    if (hooks.stop_after == pass.name) break;
  }
  std::unordered_set<SymbolPtr> live;
  collect_live_symbols(graph, live);
  tidy_checks(graph, live);
  graph.verify();
}

}  // namespace sinter
