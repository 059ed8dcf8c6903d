#!/usr/bin/env python3
"""Modelled cycles of generated code on aarch64 boards: compiles a model for each core, runs it under armsim.

    python bench/board.py [--armsim ARMSIM] [--sinter SINTER] [--cores cortex-a53,cortex-a72] MODEL.onnx...

ARMSIM is the simulator's program (qemu with a plugin that models the pipelines and caches of the cores); its figures
are the same on every run. Without it, qemu-aarch64 counts instructions (bench/instructions.cpp), which are as repeatable
but no times. One warm-up, one measured run, inputs of zeros and small numbers. Inputs must be static.

ONNX Runtime is measured beside where ARMSIM's folder has peers/bin/ort_run, a program that takes a model and a number of
runs and marks them as MAIN does; what peers took of the nets of bench/models.py is in STORED.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile

CORES = "cortex-a53", "cortex-a72", "cortex-a76"

# Peers' Mcycles on CORES: ONNX Runtime 1.31 (the simulator's peers/run_ort.sh) and ncnn, measured once with the same simulator.
STORED = {
    "conv3": {"onnxruntime": (60.9, 35.2, 18.7), "ncnn": (20.4, 12.6, 6.4)},
    "dwpw": {"onnxruntime": (26.9, 13.2, 7.7), "ncnn": (25.1, 16.3, 10.0)},
    "matmul": {"onnxruntime": (33.7, 19.5, 10.0), "ncnn": (54.1, 24.6, 17.2)},
    "gemv": {"onnxruntime": (2.3, 1.5, 1.1), "ncnn": (2.2, 1.4, 1.0)},
    "mobilenetv2": {"onnxruntime": (275, 142, 85), "ncnn": (167, 110, 60)},
    "squeezenet11": {"onnxruntime": (236, 128, 69), "ncnn": (124, 81, 44)},
}

MAIN = """
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include "net.h"
namespace {
alignas(64) unsigned char arena[NET_ARENA_BYTES + 64];
void* buffer(std::int64_t bytes, bool fill) {
  void* p = std::aligned_alloc(64, static_cast<std::size_t>((bytes + 127) / 64 * 64));
  std::memset(p, 0, static_cast<std::size_t>(bytes));
  float* f = static_cast<float*>(p);
  for (std::int64_t i = 0; fill && i < bytes / 4; ++i) f[i] = static_cast<float>(i * 7919 - i * 7919 / 1000 * 1000) / 500 - 1;
  return p;
}
}
int main() {
  net_inputs in{};
  net_outputs out{};
FILL
  if (net_run(&in, &out, arena)) return 1;
  __asm__ volatile("hint #112" ::: "memory");
  if (net_run(&in, &out, arena)) return 1;
  __asm__ volatile("hint #113" ::: "memory");
}
"""


def compile_to(sinter, model, target, folder, *options):
    p = subprocess.run([sinter, "compile", model, "-o", folder, "--target", target, "--name", "net", *options],
                       capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip() or f"exit code {p.returncode}")
    return p.stdout


def build(sinter, model, core, folder, options=()):
    compile_to(sinter, model, core, folder, *options)
    header = open(f"{folder}/net.h").read()
    fill = []
    for struct in "inputs", "outputs":
        member = {"inputs": "in", "outputs": "out"}[struct]
        body = re.search(r"typedef struct net_%s \{(.*?)\} net_%s;" % (struct, struct), header, re.S).group(1)
        for type_, name in re.findall(r"^\s*(?:const )?([\w:]+)\* (\w+);", body, re.M):
            fill.append("  %s.%s = (%s*)(buffer(NET_%s_MAX_BYTES, %s));" % (
                member, name, type_, name.upper(),
                "true" if struct == "inputs" and type_ == "float" else "false"))
    main = f"{folder}/board_main.cpp"
    with open(main, "w") as f:
        f.write(MAIN.replace("FILL", "\n".join(fill)))
    subprocess.run(["aarch64-linux-gnu-g++", "-static", *flags_of(folder), f"-I{folder}", main, *sources_of(folder), "-o",
                    f"{folder}/program"], check=True)
    return f"{folder}/program"


def flags_of(folder):
    """What NAME.cmake compiles a bundle with."""
    options = next(line for line in open(f"{folder}/net.cmake") if line.startswith("target_compile_options"))
    return ["-std=c++17", *re.findall(r"(?<=[:;])-[\w=.+-]+", options)]


def sources_of(folder):
    return [f"{folder}/{f}" for f in sorted(os.listdir(folder)) if re.fullmatch(r"net(_part\d+)?\.cpp|net_weights\.S", f)]


def cycles(armsim, program, core, report=None):
    """Millions of modelled cycles of the marked run of `program`, a path and arguments, on one core."""
    with tempfile.TemporaryDirectory() as t:
        subprocess.run([armsim, "--cpu", core, "--regions", "--json", f"{t}/j", "--out", report or f"{t}/o", "--",
                        *program], check=True, stdout=subprocess.DEVNULL)
        figures = json.load(open(f"{t}/j"))
    return figures["cores"][core]["cycles"] / 1e6


def instructions(program, core):
    """Millions of instructions that the marked run of `program` executes."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.cpp")
    with tempfile.TemporaryDirectory() as t:
        subprocess.run(["g++", "-O2", "-std=c++17", "-shared", "-fPIC", source, "-o", f"{t}/instructions.so"], check=True)
        subprocess.run(["qemu-aarch64", "-cpu", core, "-plugin", f"{t}/instructions.so,to={t}/count", *program], check=True,
                       stdout=subprocess.DEVNULL)
        return int(open(f"{t}/count").read()) / 1e6


def why_not():
    """What is missing to run programs for aarch64; empty where nothing is."""
    return ", ".join(p for p in ("aarch64-linux-gnu-g++", "qemu-aarch64") if not shutil.which(p))


def figure(armsim, sinter, model, core, report=None, options=()):
    """Millions of modelled cycles, or of instructions where there is no simulator, of the model's generated code."""
    with tempfile.TemporaryDirectory() as folder:
        program = [build(sinter, model, core, folder, options)]
        return cycles(armsim, program, core, report) if armsim else instructions(program, core)


def peers_cycles(armsim, name, model):
    """Mcycles of the runtimes that are known for this net, a tuple over CORES each."""
    known = dict(STORED.get(name, {}))
    runner = os.path.join(os.path.dirname(os.path.realpath(armsim)), "peers/bin/ort_run")
    if os.path.exists(runner):
        try:
            known["onnxruntime"] = tuple(cycles(armsim, [runner, model, "1"], core) for core in CORES)
        except subprocess.CalledProcessError:
            pass  # not a net of one input of floats: what is stored stays
    return known


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--armsim", help="without it, instructions are counted")
    parser.add_argument("--sinter", default="build/host/sinter")
    parser.add_argument("--cores", default=",".join(CORES))
    parser.add_argument("--report", help="a file for the simulator's report")
    parser.add_argument("--usual-weights", action="store_true", help="the usual budget of weights, not --fast-weights")
    parser.add_argument("--fp16", action="store_true", help="halves: sinter compile --fp16")
    parser.add_argument("models", nargs="+")
    o = parser.parse_args()
    for model in o.models:
        row = [figure(o.armsim, o.sinter, model, core, o.report, (["--fp16"] if o.fp16 else []) + ([] if o.usual_weights else ["--fast-weights"])) for core in o.cores.split(",")]
        print(f"{os.path.basename(model):24}", *(f"{m:9.2f}" for m in row), flush=True)
