#include "cli/model_options.h"

#include <iostream>

#include "driver/errors.h"
#include "driver/machine.h"
#include "ir/error.h"

namespace sinter {

void to_stderr(const std::string& lines) { std::cerr << lines << std::flush; }

namespace {

// One model, or several.
CLI::Option* add_model(CLI::App& app, ModelOptions& o, SeveralModels* several) {
  if (!several) return app.add_option("MODEL", o.model, "the model, an .onnx file")->option_text("FILE");
  app.add_option("--alive", several->alive,
                 "of several models: MODEL:OUTPUT lies in the arena until MODEL runs again, whichever run in "
                 "between;\n"
                 "MODEL:OUTPUT=MODEL:INPUT: the other model reads it where it lies")
      ->allow_extra_args(false);
  return app
      .add_option_function<std::vector<std::string>>(
          "MODEL",
          [&o, several](const std::vector<std::string>& models) {
            several->models = models;
            if (models.size() == 1) o.model = models[0];
          },
          "the model, an .onnx file; or several, [NAME=]FILE each in the order in which they run, which "
          "share an\n"
          "arena and weights (options that speak of one's names begin with MODEL: then)")
      ->option_text("FILE...");
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& o, bool model_required, SeveralModels* several) {
  o.say = to_stderr;
  CLI::Option* model = add_model(app, o, several);
  if (model_required) model->required();
  app.add_option("--target", o.target,
                 "processor to compile for (see sinter targets); default: this machine. For compile also "
                 "several, with commas:\nthe bundle then asks which of them it runs on");
  app.add_option(
         "--dim", o.dims,
         "a free extent: NAME=4 fixes it, \"NAME<=8\" bounds it, NAME=64..640:32 gives range and step;\n"
         "NAME is the model's name for it, INPUT@AXIS, or OUTPUT@AXIS or VALUE@AXIS for what the data decide "
         "(a bound only),\nor INPUT, whose elements extents depend on (INPUT[K]: one element), or VALUE, "
         "integers "
         "that the model\ncomputes and extents depend on (a bound only)")
      ->allow_extra_args(false);
  app.add_option("--max-trips", o.max_trips,
                 "the most iterations of a Loop that only the data end; a run that exceeds them fails")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->option_text("N");
  app.add_option("--const", o.constants, "NAME=VALUE[,VALUE...] or NAME=FILE: makes an input constant")
      ->allow_extra_args(false);
  app.add_option("--only", o.only, "an output that is wanted; what only the others need goes")
      ->allow_extra_args(false)
      ->option_text("NAME ...");
  app.add_option(
         "--state", o.states,
         "OUT=IN: output OUT of a run is input IN of the next one; it lives in a buffer of the caller's that "
         "NAME_run takes.\nA star on each side stands for all that agree in it: 'present.*=past.*'")
      ->allow_extra_args(false)
      ->option_text("OUT=IN ...");
  app.add_option(
         "--state-init", o.initial,
         "IN=VALUE[,VALUE...] or IN=FILE: what the state of input IN begins with; else its initializer in "
         "the model, or\nzeros")
      ->allow_extra_args(false)
      ->option_text("IN=VALUE ...");
  app.add_option(
         "--cache", o.cache,
         "what the caches of --state are stored as, where attention reads them: f32, as in the model; f16; "
         "int8, with a scale\nfor each row of a head")
      ->check(CLI::IsMember({"f32", "f16", "int8"}));
  app.add_option(
         "--random", o.random,
         "what random operators give: fixed, the same numbers in every run; state, other ones in each run, "
         "from a seed\nin the buffer of --state: NAME_seed(state, seed) sets it")
      ->check(CLI::IsMember({"fixed", "state"}));
  app.add_option(
         "--pre", o.pre,
         "an input is a camera's frame: \"NAME: u8 hwc bgr 640x480 stride=1920 resize=letterbox scale=1/255\n"
         "mean=a,b,c std=a,b,c\"; formats are rgb, bgr, rgba, bgra, gray, nv12, nv21, yuyv, uyvy. NAME_run\n"
         "takes the frame's bytes; each pixel becomes (byte*scale-mean)/std (docs/frames.md)")
      ->allow_extra_args(false)
      ->option_text("WORDS ...");
  app.add_option(
         "--post", o.post,
         "an output becomes an answer: \"NAME: argmax\", softmax, topk=5; \"NAME: u8 argmax resize=input\", "
         "a mask;\n\"NAME: nms score=0.25 iou=0.45 max=100\", the boxes of a YOLO's or SSD's head "
         "(docs/frames.md)")
      ->allow_extra_args(false)
      ->option_text("WORDS ...");
  app.add_option("--name", o.name, "prefix of files and functions; default: from the model's file name");
  app.add_option("--threads", o.threads,
                 "threads that the model may run on: NAME_run takes the application's pool");
  app.add_option("--weights", o.weights,
                 "where the weights lie: embed (in the program, by the assembler), c (in the program, as a "
                 "source of C) or file")
      ->check(CLI::IsMember({"embed", "c", "file"}));
  app.add_option("--max-ram", o.max_ram,
                 "refuse if the arena takes more, e.g. 8M or 8MiB (K, M, G: powers of 1024)");
  app.add_option("--max-stack", o.max_stack, "refuse if a run takes more stack (measured with g++)");
  app.add_option("--max-flash", o.max_flash,
                 "refuse if weights and code take more (measured with the compiler)");
  app.add_option("--custom-ops", o.custom_ops,
                 "operators of your own: a JSON file that names their C functions");
  app.add_option("--tuning", o.tuning, "measured choices of kernels: a file that sinter tune wrote");
  app.add_flag("--exact", o.exact, "only optimisations that keep every rounding step of the model");
  app.add_option(
         "--max-weights", o.max_weights,
         "budget of the packed weights, 1.2x (times the model's) or a size; default: 1.5x, 2x below 4M. "
         "Within it the layers take the faster algorithms that save most time for their bytes")
      ->option_text("F");
  CLI::Option* small =
      app.add_flag("--small-weights", o.small_weights,
                   "a budget of 1.1x; quantised layers multiply bytes, nothing pads vectors");
  app.add_flag("--fast-weights", o.fast_weights, "no budget: weights take what is fastest")->excludes(small);
  app.add_flag("--fp16", o.fp16,
               "layers compute and store float16 where the target does and a half's range and digits are "
               "enough; inputs and outputs keep their types");
  app.add_option("--fp16-error", o.fp16_error,
                 "with --fp16, a layer that is further off stays in float32: a share of its largest result")
      ->check(CLI::PositiveNumber)
      ->option_text("E [0.01]");
  app.add_option("--data", o.data,
                 "DIR: samples, as sinter quantize takes them, or one (input_0.pb ... of all inputs); --fp16 "
                 "measures its "
                 "errors with them (without, with random inputs)")
      ->allow_extra_args(false);
  app.add_option("--keep-f32", o.keep_f32, "NODE: with --fp16, this layer computes float32 all the same")
      ->allow_extra_args(false);
  app.add_flag("--trace", o.trace, "the compiled model calls back after each layer");
  app.add_option("--print-after", o.print_after, "print the graph after these passes")
      ->allow_extra_args(false)
      ->group("Looking inside");
  app.add_option("--stop-after", o.stop_after, "the last pass to run")->group("Looking inside");
  app.add_option("--skip-pass", o.skip_pass, "leave a pass out")
      ->allow_extra_args(false)
      ->group("Looking inside");
  app.add_flag("--verify-each", o.verify_each, "check the graph after every pass")->group("Looking inside");
  app.add_flag("--time-passes", o.time_passes, "print how long each pass takes")->group("Looking inside");
}

void add_on_option(CLI::App& app, std::string& on) {
  app.add_option(
      "--on", on,
      "where the program runs: host, or ssh:HOST or ssh:HOST:PORT, a machine that ssh and scp reach\n"
      "without asking; --target says what it is");
}

void require_target(const CLI::App& app, const std::string& on) {
  if (is_elsewhere(on) && app.get_option("--target")->count() == 0)
    throw UsageError(fmt::format("--on {}: give its --target (see sinter targets)", sinter::quoted(on)));
}

}  // namespace sinter
