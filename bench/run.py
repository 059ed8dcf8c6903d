#!/usr/bin/env python3
"""One table: nets x {sinter, ONNX Runtime, and OpenVINO, ncnn, MNN where they can be imported} x {threads, boards}.

    python bench/run.py [--sinter build/host/sinter] [--models FOLDER] [-k REGEX] [--threads 1,2] [--armsim ARMSIM]

Nets: those of bench/models.py, and every FOLDER/*/model.onnx, given the inputs of its test_data_set_0 or, where its extents
are static, seeded ones. A line is a net on one number of threads. All runtimes of a line take turns in the same minute,
ours with --small-weights too, and ours on one thread beside those on several. Times are microseconds of the fastest run of
all turns: of CPU time for peers on one thread, else of wall time; --json keeps the medians too. Outputs are compared with
ONNX Runtime's: `difference` is the largest of any element, relative to the output's largest; a peer that differs by more
than a hundredth is left out. Memory: our arena and packed weights, and by how much the smallest peer's process grew.
Boards: modelled Mcycles of Cortex-A53, A72 and A76 with --armsim, else millions of instructions. Below: geometric means,
and each kernel's rate over the layers of all nets beside what the multiply-add units can do (bench/peak.cpp). --parts
leaves parts out. Weights that a file lists among its inputs are taken out of that list first: peers run at their best.
Needs numpy, onnx and onnxruntime.
"""
import argparse
import glob
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import board
import models
import peers
import table


def strip(model):
    """Weights out of the graph's inputs."""
    weights = {w.name for w in model.graph.initializer}
    kept = [i for i in model.graph.input if i.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model


def stored_inputs(path, model):
    """The inputs of test_data_set_0 beside the model file, by name; None where there are none."""
    files = sorted(glob.glob(os.path.join(os.path.dirname(path), "test_data_set_0", "input_*.pb")),
                   key=lambda f: int(re.findall(r"\d+", f)[-1]))
    if len(files) != len(model.graph.input):
        return None
    feed = {}
    for i, file in zip(model.graph.input, files):
        tensor = onnx.TensorProto()
        with open(file, "rb") as f:
            tensor.ParseFromString(f.read())
        feed[i.name] = numpy_helper.to_array(tensor)
    return feed


def seeded_inputs(model):
    """Seeded inputs by name; None where an extent is not static or a type is not a float's or an integer's."""
    feed = {}
    for k, i in enumerate(model.graph.input):
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        if not all(d > 0 for d in shape):
            return None
        dtype = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        random = np.random.default_rng(k)
        feed[i.name] = (random.uniform(-1, 1, shape) if dtype.kind == "f" else random.integers(0, 2, shape)).astype(dtype)
    return feed


def fix_extents(model, feed):
    """Every runtime may know the extents of the inputs that it will be given."""
    for i in model.graph.input:
        shape = i.type.tensor_type.shape
        del shape.dim[:]
        for extent in feed[i.name].shape:
            shape.dim.add().dim_value = extent


class Sinter:
    """The generated runner, a process: it takes the time of each run itself."""

    def __init__(self, sinter, path, feed, threads, folder, *options):
        options += ("--threads", str(threads)) if threads > 1 else ()
        if "--small-weights" not in options:
            options += ("--fast-weights",)
        bundle = f"{folder}/bundle{''.join(options)}"
        said = board.compile_to(sinter, path, "host", bundle, *options)
        figures = [int(n) for n in re.findall(r"(?:arena|weights) (\d+) bytes", said)]
        self.arena_bytes, self.weights_bytes = figures
        self.program, self.arguments, self.threads = f"{bundle}/program", [], threads
        subprocess.run(["g++", *board.flags_of(bundle), f"-I{bundle}", *board.sources_of(bundle), f"{bundle}/net_main.cpp",
                        "-pthread", "-o", self.program], check=True)
        for k, value in enumerate(feed.values()):
            file = f"{bundle}/in{k}.pb"
            with open(file, "wb") as f:
                f.write(numpy_helper.from_array(value).SerializeToString())
            self.arguments += ["--in", file]
        for k in range(len(onnx.load(path, load_external_data=False).graph.output)):
            self.arguments += ["--out", f"{bundle}/out{k}.pb"]

    def repeat(self, runs):
        """Runs the net once and then `runs` times; seconds of the least and of the median one."""
        file = f"{os.path.dirname(self.program)}/times.json"
        subprocess.run([self.program, *self.arguments, "--repeat", str(runs), "--json", file], check=True,
                       stdout=subprocess.DEVNULL)
        with open(file) as f:
            times = json.load(f)
        return times["min_us"] / 1e6, times["median_us"] / 1e6

    def times(self, seconds):
        """Of as many runs as that time allows, as a peer's."""
        return self.repeat(max(3, min(int(seconds / self.repeat(3)[1]), 1 << 20)))

    def run(self):
        self.repeat(1)
        result = []
        for file in self.arguments[1::2]:
            if os.path.basename(file).startswith("out"):
                t = onnx.TensorProto()
                with open(file, "rb") as f:
                    t.ParseFromString(f.read())
                result.append(numpy_helper.to_array(t))
        return result


WRONG = 1e-2  # a peer whose output differs by more is no peer for this net


def flops(model):
    """Two for each multiply-add of the net's convolutions and products; 0 where an extent isn't known."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {w.name: list(w.dims) for w in graph.initializer}
    for v in [*graph.input, *graph.value_info, *graph.output]:
        shapes[v.name] = [d.dim_value for d in v.type.tensor_type.shape.dim]
    total = 0
    for node in graph.node:
        out, given = shapes.get(node.output[0], [0]), [shapes.get(i, [0]) for i in node.input]
        if node.op_type == "Conv":
            total += 2 * math.prod(out) * math.prod(given[1][1:])
        elif node.op_type == "ConvTranspose":
            total += 2 * math.prod(given[0]) * math.prod(given[1][1:])
        elif node.op_type == "MatMul":
            total += 2 * math.prod(out) * (given[0] or [0])[-1]
        elif node.op_type == "Gemm":
            total += 2 * math.prod(out) * math.prod(given[1]) // max((out or [0])[-1], 1)
    return total


def peak_gflops():
    """Multiply-adds of this machine, one thread: what a loop without loads reaches (bench/peak.cpp)."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peak.cpp")
        subprocess.run(["g++", "-O2", "-march=native", source, "-o", f"{folder}/peak"], check=True)
        return float(subprocess.run([f"{folder}/peak"], check=True, capture_output=True, text=True).stdout)


def difference(got, want):
    """The largest difference of any output, relative to the output's largest element."""
    worst = 0.0
    for a, b in zip(got, want):
        a, b = np.asarray(a, np.float64).reshape(-1), np.asarray(b, np.float64).reshape(-1)
        worst = max(worst, np.abs(a - b).max() / max(np.abs(b).max(), 1e-30) if a.size == b.size and a.size else math.inf * a.size)
    return worst


def start_peer(name, files, feed, threads, folder):
    """The peer with the first of `files` that it can run."""
    for k, file in enumerate(files):
        try:
            return peers.Peer(name, file, feed, threads, folder)
        except RuntimeError:
            if k + 1 == len(files):
                raise


def start_peers(files, feed, threads, folder, row):
    """The peers that can run the net, by name; why the others can't goes to the row."""
    started = {}
    for name in peers.KINDS:
        try:
            started[name] = peer = start_peer(name, files, feed, threads, folder)
        except RuntimeError as error:
            row["absent"][name] = str(error)
            continue
        row["difference"][name] = difference(peer.outputs, started["onnxruntime"].outputs)
        row["resident_bytes"][name] = peer.resident_bytes
        if row["difference"][name] > WRONG:
            row["absent"][name] = f"wrong: differs by {row['difference'][name]:.1e}"
            started.pop(name).close()
    if "onnxruntime" not in started:
        raise RuntimeError("ONNX Runtime can't run it: " + row["absent"]["onnxruntime"])
    return started


def take_turns(runtimes, options):
    """Seconds of the least and the median run, by runtime; all take part in each turn."""
    turns = {name: [] for name in runtimes}
    for _ in range(options.turns):
        for name, runtime in runtimes.items():
            turns[name].append(runtime.times(options.seconds))
    return {name: (min(least for least, _ in t), statistics.median(median for _, median in t)) for name, t in turns.items()}


def layers_of(sinter, file, feed, folder):
    """Kernel, multiply-adds (two each) and microseconds of each layer of which `sinter bench` sees the time."""
    arguments = []
    for k, value in enumerate(feed.values()):
        arguments += ["--in", f"{folder}/layer_in{k}.pb"]
        with open(arguments[-1], "wb") as f:
            f.write(numpy_helper.from_array(value).SerializeToString())
    subprocess.run([sinter, "bench", file, "--json", f"{folder}/layers.json", "--repeat", "20", *arguments], check=True,
                   stdout=subprocess.DEVNULL)
    layers, flops = [], 0
    for layer in json.load(open(f"{folder}/layers.json"))["layers"]:
        flops += layer["flops"]
        if layer["min_us"] > 0:  # else its time is part of the next one's
            layers.append({"kernel": layer["kernel"], "flops": flops, "us": layer["min_us"]})
            flops = 0
    return layers


def measure_host(row, files, feed, options, folder, alone):
    """Times, differences and memory of all runtimes, on row["threads"] threads, go to the row. `alone`: our net on one
    thread, if it has been measured. Returns our net."""
    row.update(difference={}, resident_bytes={}, absent={})
    ours = Sinter(options.sinter, files[0], feed, row["threads"], folder)
    try:
        small = Sinter(options.sinter, files[0], feed, row["threads"], folder, "--small-weights")
    except RuntimeError:  # refused: this net's weights can't be packed so tightly
        small = None
    started = start_peers(files, feed, row["threads"], folder, row)
    row["difference"]["sinter"] = difference(ours.run(), started["onnxruntime"].outputs)
    others = {name: runtime for name, runtime in {"small": small, "alone": alone}.items() if runtime}
    times = {name: [t * 1e6 for t in pair] for name, pair in take_turns({**started, "sinter": ours, **others}, options).items()}
    for peer in started.values():
        peer.close()
    row["us"] = {name: pair for name, pair in times.items() if name not in others}
    if small:
        row["small"] = {"us": times["small"][0], "bytes": small.arena_bytes + small.weights_bytes}
    if alone:
        row["gain"] = times["alone"][0] / times["sinter"][0]
    row["ratio"] = min(t[0] for p, t in row["us"].items() if p != "sinter") / row["us"]["sinter"][0]
    row["arena_bytes"], row["weights_bytes"] = ours.arena_bytes, ours.weights_bytes
    return ours


def measure_boards(row, file, feed, options, folder):
    """Our code's cycles, and those of the peers that are known."""
    row["board"] = [board.figure(options.armsim, options.sinter, file, core) for core in board.CORES]
    if options.armsim:
        row["board_peers"] = board.peers_cycles(options.armsim, row["model"], file)


def measure_kernels(row, file, feed, options, folder):
    row["layers"] = layers_of(options.sinter, file, feed, folder)


PARTS = {"boards": measure_boards, "kernels": measure_kernels}


def line_of(error):
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def measure(name, path, options):
    """Rows of one net, one for each number of threads; what PARTS measure, on one thread, is the first row's."""
    model = strip(onnx.load(path))
    feed = stored_inputs(path, model) or seeded_inputs(model)
    if feed is None:
        raise RuntimeError("its inputs aren't static numbers")
    rows, alone = [], None
    with tempfile.TemporaryDirectory() as folder:
        free, clean = f"{folder}/free.onnx", f"{folder}/net.onnx"
        onnx.save(model, free)
        fix_extents(model, feed)
        onnx.save(model, clean)
        for threads in options.threads:
            rows.append({"model": name, "threads": threads, "flops": flops(model)})
            ours = measure_host(rows[-1], [clean, free], feed, options, folder, alone)
            alone = ours if threads == 1 else alone
        for part in options.parts:
            try:
                PARTS[part](rows[0], clean, feed, options, folder)
            except Exception as error:  # the times stay
                print(f"{name}, {part}: failed: {line_of(error)}", flush=True)
    return rows


def nets_of(options, folder):
    """Names and files of the nets to measure; those of bench/models.py are written to `folder`."""
    nets = []
    for name in models.MODELS:
        if re.search(options.k, name):
            onnx.save(models.make(name), f"{folder}/{name}.onnx")
            nets.append((name, f"{folder}/{name}.onnx"))
    for path in sorted(glob.glob(f"{options.models}/*/model.onnx")) if options.models else []:
        name = os.path.basename(os.path.dirname(path))
        if re.search(options.k, name):
            nets.append((name, path))
    return nets


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", default="build/host/sinter")
    parser.add_argument("--models", help="a folder with NET/model.onnx")
    parser.add_argument("-k", default="", help="only nets whose name matches")
    parser.add_argument("--threads", default="1,2", help="of every runtime, a line each; from 2 on times are wall times")
    parser.add_argument("--parts", default=",".join(PARTS), help="what is measured beside times and memory; none of it: ''")
    parser.add_argument("--armsim", help="the simulator's program, for modelled cycles instead of instructions")
    parser.add_argument("--turns", type=int, default=12, help="many short ones: a shared machine is slow for seconds")
    parser.add_argument("--seconds", type=float, default=0.12, help="of each runtime in a turn")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--markdown", help="write the tables of docs/performance.md to this file")
    options = parser.parse_args()
    options.threads = [int(n) for n in options.threads.split(",")]
    options.parts = [part for part in options.parts.split(",") if part]
    for part in set(options.parts) - set(PARTS):
        parser.error(f"--parts {part}: of {', '.join(PARTS)}")
    if "boards" in options.parts and board.why_not():
        print(f"no figures of boards: {board.why_not()} can't be found")
        options.parts.remove("boards")
    return options


def main():
    options, rows = arguments(), []
    with tempfile.TemporaryDirectory() as folder:
        print(" | ".join(table.HEADS))
        for name, path in nets_of(options, folder):
            try:
                measured = measure(name, path, options)
            except Exception as error:  # one net that fails must not cost the table
                print(f"{name} failed: {line_of(error)}", flush=True)
                continue
            rows += measured
            for row in measured:
                print(" | ".join(table.cells_of(row)), flush=True)
            if options.json:
                with open(options.json, "w") as f:
                    json.dump(rows, f, indent=1)
    if not rows:
        sys.exit("no net was measured")
    peak = peak_gflops()
    kernels, said = table.kernels_of(rows, peak), table.summary(rows) + [f"This machine's peak: {peak:.0f} GFLOP/s of one thread."]
    print("\n".join(said))
    for cells in [table.KERNEL_HEADS, *kernels] if kernels else []:
        print(" | ".join(cells))
    if options.markdown:
        with open(options.markdown, "w") as f:
            f.write(table.markdown(table.HEADS, [table.cells_of(r) for r in rows]) + "\n" + "\n".join(said) + "\n")
            if kernels:
                f.write("\n" + table.markdown(table.KERNEL_HEADS, kernels))


if __name__ == "__main__":
    main()
