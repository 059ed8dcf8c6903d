// NAME_main.cpp: a program around net_run that reads and writes tensors as files (runtime/sinter/runner.h).
//
// It only tells the runner what the net's tensors are and copies pointers and extents into the structs of
// NAME.h; everything else is in the header, so that this file stays a page for any model.
#include "emit/class_names.h"
#include "emit/code.h"
#include "ir/error.h"

namespace sinter {
namespace {

std::string element(const Value& v) {
  const DType t = v.type.dtype;
  if (is_stored_float(t)) return size_of(t) == 2 ? "std::uint16_t" : "std::uint8_t";
  return std::string(cpp_name(t));
}

void describe(Printer& p, const std::vector<Member>& members) {
  p.line("{{");
  for (const Member& m : members) {
    std::string extents;
    for (const Dim& d : m.value->type.shape)
      extents += fmt::format("{}{{{}, {}}}", extents.empty() ? "" : ", ", std::max<int64_t>(d.lo(), 0),
                             std::max<int64_t>(d.hi(), 0));
    const int64_t bytes = std::max<int64_t>(product(m.value->type.shape).hi(), 0) *
                          static_cast<int64_t>(size_of(m.value->type.dtype));
    p.line("{{{}, \"{}\", {}, {{{}}}, {}}},", c_string(m.model_name), m.name, onnx_of(m.value->type.dtype),
           extents, bytes);
  }
  p.line("}},");
}

void includes(Printer& p, const BundleOptions& o) {
  p.blank();
  p.line("#include \"{}.h\"", file_prefix(o));
  p.line("#include \"sinter/{}.h\"", o.bundle.empty() ? "runner" : "runner_several");
  if (o.threads > 1) p.line("#include \"sinter/runner_threads.h\"");
  p.blank();
  p.line("{}", interface_check(o));
  p.blank();
  p.line("namespace {{");
  p.blank();
}

// Pointers and extents from the runner's tensors to the structs; what lies in the arena is put there.
void give_inputs(Printer& p, const std::vector<Member>& ins, const BundleOptions& o) {
  for (size_t i = 0; i < ins.size(); ++i) {
    if (const auto at = o.lasting_inputs.find(ins[i].index); at != o.lasting_inputs.end())
      p.line("sinter::runner::put(c, {}, {});", i, at->second);
    else
      p.line("inputs.{} = reinterpret_cast<const {}*>(c.inputs[{}].data.data());", ins[i].name,
             element(*ins[i].value), i);
    if (ins[i].dynamic)
      for (size_t d = 0; d < ins[i].value->type.shape.size(); ++d)
        p.line("inputs.{0}_dims[{1}] = c.inputs[{2}].dims[{1}];", ins[i].name, d, i);
  }
}

// The function that runs the net on the runner's tensors.
void write_call(Printer& p, const std::string& function, const BundlePart& b) {
  const BundleOptions& o = b.options;
  const auto ins = input_members(b.graph, b.plan.states), outs = output_members(b.graph, b.plan.states);
  p.line("int {}(sinter::RunnerCall& c) {{", function);
  p.line("{}_inputs inputs{{}};", o.name);
  p.line("{}_outputs outputs{{}};", o.name);
  give_inputs(p, ins, o);
  for (size_t i = 0; i < outs.size(); ++i)
    if (!o.lasting_outputs.count(outs[i].index))
      p.line("outputs.{} = reinterpret_cast<{}*>(c.outputs[{}].data.data());", outs[i].name,
             element(*outs[i].value), i);
  const std::string pool =
      o.threads > 1 ? fmt::format(", sinter::runner::pool_of(c.threads, {}_THREADS)", upper(file_prefix(o)))
                    : "";
  p.line("const int code = {}_run(&inputs, &outputs, c.arena.data(){}{}{}{});", o.name,
         b.plan.states.empty() ? "" : ", c.state.data()", o.weights_in_file ? ", c.weights.data()" : "", pool,
         o.trace ? ", sinter::runner::on_layer, &c.trace" : "");
  for (size_t i = 0; i < outs.size(); ++i) {
    if (outs[i].dynamic)
      for (size_t d = 0; d < outs[i].value->type.shape.size(); ++d)
        p.line("c.outputs[{0}].dims[{1}] = outputs.{2}_dims[{1}];", i, d, outs[i].name);
    if (const auto at = o.lasting_outputs.find(outs[i].index); at != o.lasting_outputs.end())
      p.line("if (code == 0) sinter::runner::take(c, {}, {});", i, at->second);
  }
  p.line("return code;");
  p.line("}}");
  p.blank();
}

// What the runner is told of a net.
void write_net(Printer& p, const std::string& call, const BundlePart& b) {
  const BundleOptions& o = b.options;
  const std::string up = upper(o.name), all = upper(file_prefix(o));
  p.line("\"{}\",", o.name);
  describe(p, input_members(b.graph, b.plan.states));
  describe(p, output_members(b.graph, b.plan.states));
  p.line("{0}_ARENA_BYTES, {0}_WEIGHTS_BYTES, {1}, {2}, {3}, {4}_error,", all, o.weights_in_file, o.trace,
         call, o.name);
  if (!b.plan.states.empty())
    p.line("{}_STATE_BYTES, {}_reset, {},", up, o.name,
           b.plan.states.random() ? o.name + "_seed" : std::string("nullptr"));
}

// How many operations a layer does and what it reads and writes: what a table of times tells of it.
void write_layers(Printer& p, const Plan& plan) {
  p.line("{{");
  for (const Layer& l : plan.layers)
    p.line("{{\"{}\", \"{}\", {:.0f}, {}}},", l.function, l.kernel, l.flops, bytes_of(l));
  p.line("}},");
}

constexpr const char* kFields =
    "Name, member, element type as ONNX numbers it, least and greatest extents, bytes.";

}  // namespace

std::string runner_main(const BundlePart& b) {
  Printer p;
  p.comment(fmt::format("Generated by sinter from {}: a program that runs {} on files.", b.options.model_file,
                        b.options.name));
  includes(p, b.options);
  write_call(p, "call", b);
  p.line("}}  // namespace");
  p.blank();
  p.line("int main(int argc, char** argv) {{");
  p.comment(kFields);
  p.line("const sinter::RunnerNet net = {{");
  write_net(p, "call", b);
  p.line("}};");
  p.line("return sinter::runner_main(net, argc, argv);");
  p.line("}}");
  return p.text();
}

std::string runner_main(const SharedMemory& shared, const std::vector<BundlePart>& parts) {
  Printer p;
  p.comment(
      fmt::format("Generated by sinter: a program that runs one of the models of {} on files.", shared.name));
  includes(p, parts[0].options);
  for (const BundlePart& b : parts) write_call(p, "call_" + b.options.name, b);
  p.line("}}  // namespace");
  p.blank();
  p.line("int main(int argc, char** argv) {{");
  p.comment(kFields);
  p.line("const std::vector<sinter::RunnerNet> nets = {{");
  for (const BundlePart& b : parts) {
    p.line("{{");
    write_net(p, "call_" + b.options.name, b);
    p.line("}},");
  }
  p.line("}};");
  p.line("return sinter::runner_main(nets, \"{}_\", argc, argv);", shared.name);
  p.line("}}");
  return p.text();
}

std::string bench_main(const SharedMemory& shared, const std::vector<BundlePart>& parts,
                       const std::vector<ExportedNet>& nets, const std::vector<int>& threads) {
  Printer p;
  const BundleOptions& o = parts[0].options;
  p.comment(fmt::format("Generated by sinter: a program that measures the models of {}.", shared.name));
  p.blank();
  p.line("#include \"{}.h\"", shared.name);
  p.line("#include \"sinter/runner_several.h\"");
  if (o.threads > 1) p.line("#include \"sinter/runner_threads.h\"");
  p.line("#include \"sinter/runner_bench.h\"");
  p.blank();
  p.line("namespace {{");
  p.blank();
  for (const BundlePart& b : parts) write_call(p, "call_" + b.options.name, b);
  p.line("}}  // namespace");
  p.blank();
  p.line("int main(int argc, char** argv) {{");
  p.line("const sinter::BenchProgram program = {{");
  p.line("\"{}\", {}, {{{}}}, {{", parts[0].target.name, o.threads, fmt::join(threads, ", "));
  for (const ExportedNet& n : nets) {
    p.line("{{\"{}\", {{", n.name);
    write_net(p, "call_" + parts[n.plain].options.name, parts[n.plain]);
    p.line("}}, {{");
    write_net(p, "call_" + parts[n.timed].options.name, parts[n.timed]);
    p.line("}}, {{");
    for (const Filling& i : n.inputs)
      p.line("{{{}, {}, {}, {}}},", i.seed, i.frame, i.number.has_value(), i.number.value_or(0.0));
    p.line("}},");
    write_layers(p, parts[n.timed].plan);
    p.line("}},");
  }
  p.line("}}}};");
  p.line("return sinter::bench_main(program, argc, argv);");
  p.line("}}");
  return p.text();
}

int64_t bytes_of(const Layer& l) {
  int64_t bytes = 0;
  for (const Parameter& p : l.parameters)
    if (p.kind == Parameter::Kind::kWeights)
      bytes += p.bytes;
    else if ((p.kind == Parameter::Kind::kInput || p.kind == Parameter::Kind::kOutput) && p.value)
      bytes += product(p.value->type.shape).hi() * static_cast<int64_t>(size_of(p.value->type.dtype));
  return bytes;
}

}  // namespace sinter
