// sinter quantize: a float model and samples become a model of bytes, as plain ONNX.
//
// The model's twin (quantize/twin.h) is built for this machine and run on the samples; quantize/search.h
// finds by it how and which layers become bytes. What is written is then built itself and held against the
// model, so that the figures at the end are measured and not predicted.
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_options.h"
#include "driver/errors.h"
#include "driver/output_file.h"
#include "driver/sample_folder.h"
#include "driver/score.h"
#include "driver/session.h"
#include "ir/error.h"
#include "ir/nearest.h"
#include "quantize/search.h"
#include "quantize/weights_only.h"
#include "quantize/write.h"
#include "quantize/written.h"
#include "report/quantised.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using quantize::FloatModel;

struct Options {
  std::string model, data, output, report, html, custom_ops, max_loss, score, target = "host";
  std::vector<std::string> images, dims, keep;
  int weights_only = 0;
  bool no_equalise = false;
};

using Samples = std::vector<std::vector<Tensor>>;

ModelOptions model_options(const Options& o, const fs::path& model) {
  ModelOptions m;
  m.say = to_stderr;
  m.model = model.string();
  m.dims = o.dims;
  m.custom_ops = o.custom_ops;
  m.exact = true;
  return m;
}

// Free extents are those of the samples: fixed where these agree, else within their range.
ImportOptions import_for(const ModelOptions& m, const std::vector<DeclaredInput>& inputs,
                         const Samples& samples) {
  ImportOptions import = import_options(m);
  for (size_t i = 0; i < inputs.size() && !samples.empty(); ++i) {
    const std::vector<int64_t>& first = samples[0][i].shape();
    import.input_shapes[inputs[i].name] = first;
    for (size_t axis = 0; axis < inputs[i].extents.size(); ++axis) {
      const DeclaredInput::Extent& e = inputs[i].extents[axis];
      DimOption range{fmt::format("{}@{}", inputs[i].name, axis), first[axis], first[axis]};
      for (const auto& s : samples) {
        range.lo = std::min(range.lo, s[i].dim(static_cast<int64_t>(axis)));
        range.hi = std::max(range.hi, s[i].dim(static_cast<int64_t>(axis)));
      }
      if (e.hi < 0 && range.lo != range.hi) import.dims.push_back(range);
    }
  }
  return import;
}

void write_model(const onnx::ModelProto& proto, const fs::path& path) {
  std::ofstream f(path, std::ios::binary);
  if (!f || !proto.SerializeToOstream(&f) || !f.flush())
    refuse("{} can't be written", sinter::quoted(path.string()));
}

// The samples' files, made once, with what a run needs beside them.
class SampleFiles {
 public:
  SampleFiles(const std::vector<DeclaredInput>& inputs, const Samples& samples) {
    for (size_t k = 0; k < samples.size(); ++k) {
      files_.emplace_back();
      for (size_t i = 0; i < inputs.size(); ++i)
        files_.back().push_back(written(fmt::format("sample_{}_{}.pb", k, i), samples[k][i]));
    }
  }
  // Of `count` samples from `first` on; `more` are inputs that all of them have behind their own.
  std::vector<std::vector<std::string>> of(size_t first, size_t count,
                                           const std::vector<Tensor>& more = {}) const {
    std::vector<std::string> shared;
    for (size_t i = 0; i < more.size(); ++i) shared.push_back(written(fmt::format("more_{}.pb", i), more[i]));
    std::vector<std::vector<std::string>> all(files_.begin() + static_cast<ptrdiff_t>(first),
                                              files_.begin() + static_cast<ptrdiff_t>(first + count));
    for (auto& files : all) files.insert(files.end(), shared.begin(), shared.end());
    return all;
  }
  size_t count() const { return files_.size(); }

 private:
  std::string written(const std::string& name, const Tensor& t) const {
    const fs::path file = folder_.path() / name;
    write_tensor_pb(file, t, "x");
    return file.string();
  }
  TemporaryFolder folder_;
  std::vector<std::vector<std::string>> files_;
};

void check_kept(const FloatModel& m, const std::vector<std::string>& kept) {
  std::vector<std::string> labels;
  for (const auto& n : m.graph().node()) labels.push_back(quantize::label_of(n));
  for (const std::string& k : kept)
    if (std::find(labels.begin(), labels.end(), k) == labels.end())
      throw UsageError(fmt::format("--keep-f32 {}: the model has no such node{}", sinter::quoted(k),
                                   did_you_mean(k, labels)));
}

nlohmann::ordered_json layers_json(const FloatModel& m, const quantize::Search& s, const quantize::Twin& twin,
                                   const onnx::ModelProto& written) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::set<std::string> of_bytes = quantize::layers_of_bytes(written.graph());
  for (const quantize::LayerReport& r : s.reports()) {
    const onnx::NodeProto& n = m.node(r.node);
    const std::string label = quantize::label_of(n);
    const bool bytes = of_bytes.count(label) != 0;
    nlohmann::ordered_json j;
    j["node"] = label;
    j["op"] = n.op_type();
    j["snr_alone_db"] = quantize::snr(r.loss);
    j["type"] = bytes ? "int8" : "float32";
    j["kept"] = r.kept;
    j["steps"] = r.steps;
    const auto w = twin.weights().find(r.node);
    if (w != twin.weights().end()) {
      j["weight_bytes_float"] = w->second.values.bytes();
      j["weight_bytes"] =
          bytes ? w->second.bytes.bytes() + w->second.scales.bytes() : w->second.values.bytes();
    }
    list.push_back(j);
  }
  return list;
}

// "before > after", or one of them where there is no other.
template <class T>
std::string change(const nlohmann::ordered_json& layer, const char* before, const char* after,
                   const char* format) {
  std::string s;
  for (const char* key : {before, after})
    if (layer.contains(key))
      s += (s.empty() ? "" : " > ") + fmt::format(fmt::runtime(format), layer[key].get<T>());
  return s;
}

void print_layers(const nlohmann::ordered_json& report) {
  const nlohmann::ordered_json& modelled = report["modelled"];
  fmt::print("{:<40} {:<18} {:>9}  {:<13} {:>19}  {:>19}\n", "layer", "op", "alone dB", "computed in",
             "bytes of weights", "modelled us");
  const auto row = [](const std::string& name, const std::string& op, const std::string& alone,
                      const std::string& type, const nlohmann::ordered_json& figures) {
    std::string us = change<double>(figures, "float_us", "us", "{:.1f}");
    if (us.empty() && figures.contains("in")) us = "in " + figures["in"].get<std::string>();
    fmt::print("{:<40} {:<18} {:>9}  {:<13} {:>19}  {:>19}\n", name.substr(0, 40), op, alone, type,
               change<int64_t>(figures, "weight_bytes_float", "weight_bytes", "{}"), us);
  };
  for (const auto& l : report["layers"])
    row(l["node"].get<std::string>(), l["op"].get<std::string>(),
        fmt::format("{:.1f}", l["snr_alone_db"].get<double>()),
        l["type"].get<std::string>() + (l["kept"].get<bool>() ? ", kept" : ""), l);
  row("all other layers", "", "", "", modelled["others"]);
  fmt::print("modelled for one core of {} at {} MHz: {:.3f} ms become {:.3f} ms\n",
             modelled["target"].get<std::string>(), modelled["mhz"].get<int>(),
             modelled["float_us"].get<double>() / 1e3, modelled["us"].get<double>() / 1e3);
}

// The model before and after, compiled for --target. Free extents are those of the samples; without samples
// they need their --dim, as for sinter compile.
struct BeforeAndAfter {
  Compiled floats, written;
};
BeforeAndAfter compile_both(const Options& o, const fs::path& floats,
                            const std::vector<DeclaredInput>& inputs, const Samples& samples) {
  const auto compiled = [&](const fs::path& file) {
    ModelOptions m = model_options(o, file);
    m.exact = false;
    m.target = o.target;
    m.say = [](const std::string&) {};  // compile says it of the file that is compiled
    return o.html.empty() ? compile_part(m, import_for(m, inputs, samples))
                          : compile_model(m, import_for(m, inputs, samples));
  };
  return {compiled(floats), compiled(o.output)};
}

// Holds what was written against the model's outputs on the samples, prints and reports it.
void finish(const Options& o, const std::vector<DeclaredInput>& inputs, const Samples& samples,
            const SampleFiles& files, const std::vector<std::vector<Tensor>>& floats,
            nlohmann::ordered_json& report) {
  std::error_code ec;
  const auto before = fs::file_size(o.model, ec), after = fs::file_size(o.output, ec);
  report["bytes_before"] = before, report["bytes"] = after;
  if (!samples.empty()) {
    const ModelOptions m = model_options(o, o.output);
    const Session bytes(m, import_for(m, inputs, samples));
    const std::vector<std::string> names = declared_outputs(o.model);
    const std::vector<double> noise =
        quantize::noise_of_outputs(bytes.run(files.of(0, files.count()), names), floats);
    for (size_t i = 0; i < names.size(); ++i) {
      const double snr = quantize::snr(noise[i]);
      fmt::print("output {}: SNR {:.1f} dB over {} samples\n", sinter::quoted(names[i]), snr, samples.size());
      report["outputs"].push_back({{"name", names[i]}, {"snr_db", snr}});
    }
  }
  fmt::print("{}: {} bytes become {} -> {}\n", o.model, before, after, o.output);
}

// --report and --html.
void write_reports(const Options& o, const BeforeAndAfter& compiled, const nlohmann::ordered_json& report) {
  if (!o.html.empty())
    write_output_file(o.html, report_page(quantised_report(compiled.floats, compiled.written, report)));
  if (o.report.empty()) return;
  std::ofstream f(o.report);
  f << report.dump(2) << "\n";
  if (!f.flush()) refuse("--report {} can't be written", sinter::quoted(o.report));
}

int quantize_weights(const Options& o, const FloatModel& model, const std::vector<DeclaredInput>& inputs,
                     const Samples& samples) {
  const quantize::WeightsOnly w =
      quantize::with_small_weights(model, o.weights_only, {o.keep.begin(), o.keep.end()});
  if (w.layers == 0) refuse("no node has constant weights of float32 that could be stored with fewer bits");
  write_model(w.proto, o.output);
  fmt::print("{} layers' weights: {} bytes become {}\n", w.layers, w.bytes_before, w.bytes_after);
  nlohmann::ordered_json report;
  report["weights_only"] = o.weights_only, report["layers"] = w.layers;
  report["weight_bytes_before"] = w.bytes_before, report["weight_bytes"] = w.bytes_after;
  const SampleFiles files(inputs, samples);
  std::vector<std::vector<Tensor>> floats;
  if (!samples.empty()) {
    const ModelOptions m = model_options(o, o.model);
    floats =
        Session(m, import_for(m, inputs, samples)).run(files.of(0, files.count()), declared_outputs(o.model));
  }
  finish(o, inputs, samples, files, floats, report);
  write_reports(o, o.html.empty() ? BeforeAndAfter() : compile_both(o, o.model, inputs, samples), report);
  return kExitOk;
}

// --max-loss: of the score where there is one, else the dB that each output must have.
AllowedLoss allowed_loss(const Options& o) {
  AllowedLoss loss;
  if (!o.max_loss.empty() && (!parse(o.max_loss, loss) || (loss.percent && o.score.empty())))
    throw UsageError(
        fmt::format("--max-loss {}: want {}", sinter::quoted(o.max_loss),
                    o.score.empty() ? "dB, such as 35" : "what the score may lose, such as 0.5 or 1%"));
  return loss;
}

// A float model, its twin's program and what is found by it.
class Attempt {
 public:
  Attempt(const FloatModel& model, const quantize::Layers& layers, const Options& o,
          const std::vector<DeclaredInput>& inputs, const Samples& samples, const SampleFiles& files)
      : model_(model),
        layers_(layers),
        twin_(model_, layers_),
        session_(session_of(twin_, o, inputs, samples)),
        search_(
            model_, layers_, twin_,
            [this, &files](size_t first, size_t count, const std::vector<Tensor>& more,
                           const std::vector<std::string>& outputs) {
              return session_.run(files.of(first, count, more), outputs);
            },
            files.count()) {
    search_.find_steps({o.keep.begin(), o.keep.end()});
  }
  Attempt(const Attempt&) = delete;  // its search refers to it
  Attempt& operator=(const Attempt&) = delete;

  const FloatModel& model() const { return model_; }
  const quantize::Twin& twin() const { return twin_; }
  quantize::Search& search() { return search_; }
  onnx::ModelProto file_of(const quantize::Setting& s) const {
    return quantize::quantised_model(model_, layers_, twin_, s);
  }

 private:
  static Session session_of(const quantize::Twin& twin, const Options& o,
                            const std::vector<DeclaredInput>& inputs, const Samples& samples) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "twin.onnx";
    write_model(twin.proto(), file);
    const ModelOptions m = model_options(o, file);
    return Session(m, import_for(m, inputs, samples));
  }

  const FloatModel model_;
  const quantize::Layers layers_;
  const quantize::Twin twin_;
  const Session session_;
  quantize::Search search_;
};

// The model as it is, or with its channels equalised where all layers of bytes are nearer then.
std::unique_ptr<Attempt> best_attempt(const FloatModel& model, const quantize::Layers& layers,
                                      const Options& o, const std::vector<DeclaredInput>& inputs,
                                      const Samples& samples, const SampleFiles& files,
                                      nlohmann::ordered_json& report) {
  auto plain = std::make_unique<Attempt>(model, layers, o, inputs, samples, files);
  if (o.no_equalise) return plain;
  const std::vector<quantize::Link> links = quantize::links_of(model, layers);
  const auto channels = plain->search().channels_of(quantize::tensors_of(links));
  std::vector<quantize::Factors> factors;
  size_t scaled = 0;
  for (const quantize::Link& l : links) {
    factors.push_back(quantize::factors_of(model, l, channels));
    scaled += !factors.back().empty();
  }
  if (scaled == 0) return plain;
  auto even = std::make_unique<Attempt>(quantize::equalised(model, links, factors), layers, o, inputs,
                                        samples, files);
  const double before = plain->search().decibels(), after = even->search().decibels();
  const bool taken = after > before;
  report["equalised"] = {{"links", links.size()},
                         {"scaled", scaled},
                         {"snr_db_without", before},
                         {"snr_db", after},
                         {"taken", taken}};
  fmt::print(
      "equalised: the channels between {} of {} layers and those behind: SNR {:.1f} dB instead of {:.1f}{}\n",
      scaled, links.size(), after, before, taken ? "" : ", so they stay as they are");
  return taken ? std::move(even) : std::move(plain);
}

int quantize_layers(const Options& o, const FloatModel& given, const std::vector<DeclaredInput>& inputs,
                    const Samples& samples, const AllowedLoss& loss) {
  const quantize::Layers layers = quantize::choose_layers(given, {});
  if (layers.layers.empty())
    refuse("no Conv, ConvTranspose, Gemm or MatMul with constant weights of float32");
  const double whole = o.score.empty() ? 0 : score_of(o.score, o.model), least = loss.least(whole);
  const SampleFiles files(inputs, samples);
  nlohmann::ordered_json report;
  report["samples"] = samples.size();
  const std::unique_ptr<Attempt> best = best_attempt(given, layers, o, inputs, samples, files, report);
  best->search().refine_steps();
  const FloatModel& model = best->model();
  quantize::Search& search = best->search();
  const TemporaryFolder folder;
  const quantize::Judge judge = [&](const quantize::Setting& s) {
    const fs::path candidate = folder.path() / "candidate.onnx";
    write_model(best->file_of(s), candidate);
    return score_of(o.score, candidate) >= least;
  };
  search.keep_floats(loss.amount, o.score.empty() ? quantize::Judge() : judge);
  const onnx::ModelProto written = best->file_of(search.setting());
  write_model(written, o.output);
  report["layers"] = layers_json(model, search, best->twin(), written);
  const fs::path floats = folder.path() / "floats.onnx";  // whose nodes are those of the layers
  write_model(model.proto(), floats);
  const BeforeAndAfter compiled = compile_both(o, floats, inputs, samples);
  add_costs(compiled.floats, compiled.written, report);
  print_layers(report);
  if (!o.score.empty()) {
    const double score = score_of(o.score, o.output);
    fmt::print("score {:.6g}, of the float model {:.6g}\n", score, whole);
    report["score"] = {{"float", whole}, {"least", least}, {"written", score}};
  }
  finish(o, inputs, samples, files, search.floats(), report);
  write_reports(o, compiled, report);
  return kExitOk;
}

int run(const Options& o) {
  if (!o.html.empty()) require_page_libraries();
  ModelOptions modelled;
  modelled.target = o.target;
  target_of(modelled);  // refuses names that there are not, before anything is measured
  const AllowedLoss loss = allowed_loss(o);
  if (!o.score.empty() && o.max_loss.empty())
    throw UsageError("--score: say with --max-loss what may be lost of it, such as 0.5 or 1%");
  if (!o.score.empty() && o.weights_only)
    throw UsageError("--score: with --weights-only all layers are stored alike, none is chosen by it");
  const ModelOptions m = model_options(o, o.model);
  const std::vector<DeclaredInput> inputs = declared_inputs(o.model, import_options(m));
  if (inputs.empty()) import_model(o.model);  // says what is wrong with the file
  Samples samples;
  if (!o.data.empty()) samples = samples_in(o.data, inputs, o.images);
  const FloatModel model(o.model, import_for(m, inputs, samples));
  check_kept(model, o.keep);
  if (o.weights_only) return quantize_weights(o, model, inputs, samples);
  if (samples.empty()) throw UsageError("quantize: give samples of the model's inputs: --data DIR");
  return quantize_layers(o, model, inputs, samples, loss);
}

}  // namespace

std::function<int()> declare_quantize(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("MODEL", o->model, "ONNX model file of float32")->required();
  app.add_option("-o,--output", o->output, "the model to write")->required();
  app.add_option("--data", o->data,
                 "folder of samples: .npy, .pb or pictures for a model of one input, else a folder for each "
                 "sample with input_0.npy, input_1.npy ...; some dozens are enough");
  app.add_option("--image", o->images, "how a picture becomes an input: as in sinter run")
      ->allow_extra_args(false);
  app.add_option(
         "--max-loss", o->max_loss,
         "DB: each output's signal to noise ratio is at least this; the layers that cost most stay in "
         "float32 until it is.\nWith --score: what the score may lose, such as 0.5 or 1%")
      ->option_text("DB|LOSS");
  app.add_option(
         "--score", o->score,
         "a command that prints how good a model is, more is better; {model} in it stands for the file, "
         "a .onnx.\nIt is run for the float model and for some of those that are tried")
      ->option_text("COMMAND");
  app.add_option("--weights-only", o->weights_only,
                 "8 or 4: only weights get fewer bits, activations stay floats; no samples are needed")
      ->check(CLI::IsMember({8, 4}));
  app.add_flag("--no-equalise", o->no_equalise,
               "channels between layers are not scaled against each other, even where that loses less");
  app.add_option("--keep-f32", o->keep, "NODE: this layer stays in float32")->allow_extra_args(false);
  app.add_option("--target", o->target,
                 "the processor that the modelled times are for (see sinter targets); default: this machine. "
                 "What is written is the same for all");
  app.add_option("--report", o->report, "write what was measured, by layer and output, as JSON");
  app.add_option(
      "--html", o->html,
      "write a page to look at, as sinter inspect does for the --target: each layer's error, what it "
      "computes in, its weights and its modelled time");
  app.add_option("--dim", o->dims, "a free extent, as in sinter compile; default: those of the samples")
      ->allow_extra_args(false);
  app.add_option("--custom-ops", o->custom_ops, "operators of your own, as in sinter compile");
  return [o] { return run(*o); };
}

}  // namespace sinter
