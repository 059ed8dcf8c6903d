#!/usr/bin/env python3
"""One table: nets x {sinter, ONNX Runtime, and OpenVINO, ncnn, MNN where they can be imported}, one thread each.

    python bench/run.py [--sinter build/host/sinter] [--models FOLDER] [-k REGEX] [--armsim ARMSIM] [--json FILE]

Nets: those of bench/models.py, and every model.onnx below --models whose inputs are static. All runtimes of a net take
turns in the same minute; figures are process CPU time, minimum and median (ours: means of a few runs); the ratio is the best peer's minimum over
ours; outputs are compared with ONNX Runtime's. Weights that a file lists among its inputs are taken out of that list
first, and the session is optimised fully: peers run at their best. With --armsim also the modelled cycles of A53, A72
and A76 (board.py). Needs numpy, onnx and onnxruntime.
"""
import argparse
import glob
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

import board
import models


def strip(model):
    """Weights out of the graph's inputs."""
    weights = {w.name for w in model.graph.initializer}
    kept = [i for i in model.graph.input if i.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model


def inputs_of(model):
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


class OnnxRuntime:
    def __init__(self, path, feed):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feed = feed

    def run(self):
        return self.session.run(None, self.feed)


class OpenVino:
    def __init__(self, path, feed):
        import openvino
        compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1,
                                                               "INFERENCE_PRECISION_HINT": "f32"})
        self.request, self.feed = compiled.create_infer_request(), list(feed.values())

    def run(self):
        return list(self.request.infer(self.feed).values())


class Mnn:
    def __init__(self, path, feed):
        import MNN
        file = path + ".mnn"
        subprocess.run([sys.executable, "-m", "MNN.tools.mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", file,
                        "--bizCode", "bench"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        graph = onnx.load(path).graph
        config = ({"backend": "CPU", "numThread": 1, "precision": "high"},)
        runtime = MNN.nn.create_runtime_manager(config)
        self.net = MNN.nn.load_module_from_file(file, [i.name for i in graph.input], [o.name for o in graph.output],
                                                runtime_manager=runtime)
        self.inputs = [MNN.expr.convert(MNN.expr.const(v, v.shape, MNN.expr.NCHW), MNN.expr.NC4HW4) for v in feed.values()]

    def run(self):
        return [np.array(o.read()) for o in self.net.forward(self.inputs)]


class Ncnn:
    def __init__(self, path, feed):
        import ncnn
        subprocess.run(["pnnx", path], check=True, stdout=subprocess.DEVNULL, cwd=os.path.dirname(path))
        stem = path[:-len(".onnx")]
        self.ncnn, self.net, self.feed = ncnn, ncnn.Net(), feed
        self.net.opt.num_threads = 1
        self.net.opt.use_fp16_storage = self.net.opt.use_fp16_arithmetic = self.net.opt.use_bf16_storage = False
        self.net.load_param(stem + ".ncnn.param")
        self.net.load_model(stem + ".ncnn.bin")

    def run(self):
        extractor = self.net.create_extractor()
        for k, value in enumerate(self.feed.values()):
            extractor.input(f"in{k}", self.ncnn.Mat(value[0]))
        return [np.array(extractor.extract("out0")[1])[None]]


class Sinter:
    """The generated runner: a process, whose CPU time is that of many runs less that of few."""

    def __init__(self, sinter, path, feed, folder):
        said = board.compile_to(sinter, path, "host", f"{folder}/bundle")
        figures = [int(n) for n in re.findall(r"(?:arena|weights) (\d+) bytes", said)]
        self.arena_bytes, self.weights_bytes = figures
        bundle = f"{folder}/bundle"
        self.program, self.arguments = f"{folder}/program", []
        subprocess.run(["g++", *board.flags_of(bundle), f"-I{bundle}", *board.sources_of(bundle), f"{bundle}/net_main.cpp",
                        "-o", self.program], check=True)
        for k, value in enumerate(feed.values()):
            file = f"{folder}/in{k}.pb"
            with open(file, "wb") as f:
                f.write(numpy_helper.from_array(value).SerializeToString())
            self.arguments += ["--in", file]
        self.outputs = [f"{folder}/out{k}.pb" for k in range(len(onnx.load(path).graph.output))]

    def cpu(self, runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [self.program, *self.arguments, "--repeat", str(runs)]
        for file in self.outputs:
            command += ["--out", file]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def time(self, runs):
        """Seconds of CPU time of one run."""
        return max(self.cpu(runs + 2) - self.cpu(2), 1e-9) / runs

    def run(self):
        self.cpu(1)
        result = []
        for file in self.outputs:
            t = onnx.TensorProto()
            t.ParseFromString(open(file, "rb").read())
            result.append(numpy_helper.to_array(t))
        return result


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "ncnn": Ncnn, "mnn": Mnn}


def difference(got, want):
    """The largest difference of any output, relative to the output's largest element."""
    worst = 0.0
    for a, b in zip(got, want):
        a, b = np.asarray(a, np.float64).reshape(-1), np.asarray(b, np.float64).reshape(-1)
        worst = max(worst, np.abs(a - b).max() / max(np.abs(b).max(), 1e-30) if a.size == b.size and a.size else math.inf * a.size)
    return worst


def measure(name, path, options):
    model = strip(onnx.load(path))
    feed = inputs_of(model)
    if feed is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        clean = f"{folder}/net.onnx"
        onnx.save(model, clean)
        peers, row = {}, {"model": name, "cpu_us": {}, "difference": {}}
        for peer, kind in PEERS.items():
            try:
                peers[peer] = kind(clean, feed)
                outputs = peers[peer].run()
            except Exception as error:  # not installed, or it can't run this net: said once, in the table's footnote
                peers.pop(peer, None)
                row.setdefault("absent", {})[peer] = f"{type(error).__name__}: {error}".splitlines()[0][:100]
                continue
            if peer == "onnxruntime":
                want = outputs
            row["difference"][peer] = difference(outputs, want)
        ours = Sinter(options.sinter, clean, feed, folder)
        row["difference"]["sinter"] = difference(ours.run(), want)
        samples = {peer: [] for peer in peers}
        samples["sinter"] = []
        for _ in range(options.turns):
            for peer, net in peers.items():
                end = time.perf_counter() + options.seconds
                while time.perf_counter() < end or len(samples[peer]) < 3:
                    start = time.process_time()
                    net.run()
                    samples[peer].append(time.process_time() - start)
            each = options.seconds / 4
            runs = max(4, min(100000, int(each / min(samples["onnxruntime"]))))
            samples["sinter"] += [ours.time(runs) for _ in range(4)]
        for peer, times in samples.items():
            row["cpu_us"][peer] = [min(times) * 1e6, statistics.median(times) * 1e6]
        row["ratio"] = min(t[0] for p, t in row["cpu_us"].items() if p != "sinter") / row["cpu_us"]["sinter"][0]
        row["arena_bytes"], row["weights_bytes"] = ours.arena_bytes, ours.weights_bytes
        if options.armsim:
            row["mcycles"] = {}
            for core in "cortex-a53", "cortex-a72", "cortex-a76":
                with tempfile.TemporaryDirectory() as build:
                    row["mcycles"][core] = board.cycles(options.armsim, board.build(options.sinter, clean, core, build), core)
    return row


def markdown(rows):
    """The rows as a Markdown table: minima of CPU time, the best peer's over ours, memory, modelled cycles."""
    boards = any("mcycles" in r for r in rows)
    heads = ["net", "sinter us", *(f"{p} us" for p in PEERS), "best peer / ours", "arena + weights MB"]
    heads += ["A53 / A72 / A76 Mcycles"] if boards else []
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for r in rows:
        cells = [r["model"]] + [f"{r['cpu_us'][p][0]:.0f}" if p in r["cpu_us"] else "-" for p in ("sinter", *PEERS)]
        cells += [f"{r['ratio']:.2f}", f"{r['arena_bytes'] / 1e6:.2f} + {r['weights_bytes'] / 1e6:.2f}"]
        cells += [" / ".join(f"{m:.1f}" for m in r["mcycles"].values()) if "mcycles" in r else ""] if boards else []
        lines.append("| " + " | ".join(cells) + " |")
    for peer in PEERS:
        ratios = [r["cpu_us"][peer][0] / r["cpu_us"]["sinter"][0] for r in rows if peer in r["cpu_us"]]
        if ratios:
            mean = math.exp(statistics.fmean(math.log(x) for x in ratios))
            lines.append(f"\n{peer}: {mean:.2f} times our time as geometric mean over {len(ratios)} nets, least {min(ratios):.2f}.")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", default="build/host/sinter")
    parser.add_argument("--models", help="a folder with NET/model.onnx")
    parser.add_argument("-k", default="", help="only nets whose name matches")
    parser.add_argument("--armsim", help="the simulator's program, for modelled cycles")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each runtime in a turn")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--markdown", help="write the table of docs/performance.md to this file")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        nets = []
        for name in models.MODELS:
            if re.search(options.k, name):
                onnx.save(models.make(name), f"{folder}/{name}.onnx")
                nets.append((name, f"{folder}/{name}.onnx"))
        for path in sorted(glob.glob(f"{options.models}/*/model.onnx")) if options.models else []:
            name = os.path.basename(os.path.dirname(path))
            if re.search(options.k, name):
                nets.append((name, path))
        columns = ["sinter", *PEERS]
        print(f"{'net':28}" + "".join(f"{c:>22}" for c in columns) + "   ratio  difference   arena+weights  A53/A72/A76 Mcycles")
        for name, path in nets:
            try:
                row = measure(name, path, options)
            except Exception as error:  # one net that fails must not cost the table
                print(f"{name:28} failed: {str(error).splitlines()[0][:140] if str(error) else type(error).__name__}", flush=True)
                continue
            if row is None:
                continue
            rows.append(row)
            cells = [f"{row['cpu_us'][c][0]:11.1f} {row['cpu_us'][c][1]:10.1f}" if c in row["cpu_us"] else f"{'-':>22}"
                     for c in columns]
            boards = "/".join(f"{m:.2f}" for m in row.get("mcycles", {}).values())
            print(f"{name:28}" + "".join(cells) + f"  {row['ratio']:5.2f}x  {row['difference']['sinter']:9.1e}"
                  f"  {(row['arena_bytes'] + row['weights_bytes']) / 1e6:9.2f} MB  {boards}", flush=True)
    if rows:
        mean = math.exp(statistics.fmean(math.log(r["ratio"]) for r in rows))
        print(f"geometric mean {mean:.2f}x the best peer over {len(rows)} nets, least {min(r['ratio'] for r in rows):.2f}x "
              "(us of CPU time: minimum, median)")
        for peer in PEERS:
            why = {r["absent"][peer] for r in rows if peer in r.get("absent", {})}
            if why:
                print(f"{peer}: not measured where {'; '.join(sorted(why))}")
    if options.markdown and rows:
        with open(options.markdown, "w") as f:
            f.write(markdown(rows))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
