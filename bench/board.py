#!/usr/bin/env python3
"""Modelled cycles of generated code on aarch64 boards: compiles a model for each core, runs it under armsim.

    python bench/board.py --armsim ARMSIM [--sinter SINTER] [--cores cortex-a53,cortex-a72] MODEL.onnx...

ARMSIM is the simulator's program (qemu with a plugin that models the pipelines and caches of the cores); its figures
are the same on every run. One warm-up, one measured run, inputs of zeros and small numbers. Inputs must be static.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile

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


def build(sinter, model, core, folder):
    compile_to(sinter, model, core, folder)
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
    """Millions of modelled cycles of one run on one core."""
    with tempfile.TemporaryDirectory() as t:
        subprocess.run([armsim, "--cpu", core, "--regions", "--json", f"{t}/j", "--out", report or f"{t}/o", "--",
                        program], check=True, stdout=subprocess.DEVNULL)
        figures = json.load(open(f"{t}/j"))
    return figures["cores"][core]["cycles"] / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--armsim", required=True)
    parser.add_argument("--sinter", default="build/host/sinter")
    parser.add_argument("--cores", default="cortex-a53,cortex-a72,cortex-a76")
    parser.add_argument("--report")
    parser.add_argument("models", nargs="+")
    o = parser.parse_args()
    for model in o.models:
        row = []
        for core in o.cores.split(","):
            with tempfile.TemporaryDirectory() as folder:
                row.append(cycles(o.armsim, build(o.sinter, model, core, folder), core, o.report))
        print(f"{os.path.basename(model):24}", *(f"{m:9.2f}" for m in row), flush=True)
