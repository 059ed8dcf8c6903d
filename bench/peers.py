#!/usr/bin/env python3
"""The runtimes that sinter is measured against, each in a process of its own: one that crashes costs only its column.

`Peer(name, model, feed, threads, folder)` starts the process, loads the model, and keeps the outputs of a first run;
`times(seconds)` runs the net for that long. Figures are seconds of CPU time, or of wall time for more than one thread.
Peers run at their best: all optimisations, pinned thread counts, float32 arithmetic.
"""
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np


class OnnxRuntime:
    def __init__(self, path, feed, threads, outputs):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feed = feed

    def run(self):
        return self.session.run(None, self.feed)


class OpenVino:
    def __init__(self, path, feed, threads, outputs):
        import openvino
        compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                                               "INFERENCE_PRECISION_HINT": "f32"})
        self.request, self.feed = compiled.create_infer_request(), list(feed.values())

    def run(self):
        return list(self.request.infer(self.feed).values())


class Mnn:
    def __init__(self, path, feed, threads, outputs):
        import MNN
        file = path + ".mnn"
        path, file = os.path.abspath(path), os.path.abspath(file)
        # In the file's folder: the converter leaves files where it runs.
        subprocess.run([sys.executable, "-m", "MNN.tools.mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", file,
                        "--bizCode", "bench"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       cwd=os.path.dirname(path))
        config = ({"backend": "CPU", "numThread": threads, "precision": "high"},)
        runtime = MNN.nn.create_runtime_manager(config)
        self.net = MNN.nn.load_module_from_file(file, list(feed), outputs, runtime_manager=runtime)
        self.inputs = [self.input(MNN.expr, v) for v in feed.values()]

    @staticmethod
    def input(expr, value):
        x = expr.const(value, value.shape, expr.NCHW)
        return expr.convert(x, expr.NC4HW4) if value.ndim == 4 else x

    def run(self):
        return [np.array(o.read()) for o in self.net.forward(self.inputs)]


class Ncnn:
    def __init__(self, path, feed, threads, outputs):
        import ncnn
        subprocess.run(["pnnx", path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       cwd=os.path.dirname(path))
        stem = path[:-len(".onnx")]
        self.ncnn, self.net, self.feed, self.outputs = ncnn, ncnn.Net(), feed, len(outputs)
        self.net.opt.num_threads = threads
        self.net.opt.use_fp16_storage = self.net.opt.use_fp16_arithmetic = self.net.opt.use_bf16_storage = False
        if self.net.load_param(stem + ".ncnn.param") or self.net.load_model(stem + ".ncnn.bin"):
            raise RuntimeError("ncnn can't load what pnnx converted")

    def run(self):
        extractor = self.net.create_extractor()
        for k, value in enumerate(self.feed.values()):
            extractor.input(f"in{k}", self.ncnn.Mat(value[0] if len(value) == 1 else value))
        results = []
        for k in range(self.outputs):  # each is computed when it is asked for
            failed, out = extractor.extract(f"out{k}")
            if failed:
                raise RuntimeError("ncnn can't run what pnnx converted")
            results.append(np.array(out)[None])
        return results


KINDS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "ncnn": Ncnn, "mnn": Mnn}


class Peer:
    """A runtime with the net loaded, in a process of its own. RuntimeError where it can't load or run the net."""

    def __init__(self, name, path, feed, threads, folder):
        import onnx  # here: in the peer's process, reading the file would count as the runtime's memory
        outputs = json.dumps([o.name for o in onnx.load(path, load_external_data=False).graph.output])
        self.results = f"{folder}/{name}.npz"
        given = f"{folder}/feed.npz"
        np.savez(given, **{f"{k:03d} {n}": v for k, (n, v) in enumerate(feed.items())})
        self.process = subprocess.Popen([sys.executable, __file__, name, path, given, str(threads), self.results, outputs],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.resident_bytes = self.answer()["resident_bytes"]  # by which loading and one run let the process grow
        with np.load(self.results) as stored:
            self.outputs = [stored[k] for k in sorted(stored)]

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):  # other lines are the runtime's own
                said = json.loads(line)
                if "error" in said:
                    raise RuntimeError(said["error"])
                return said
        code = self.process.wait()
        raise RuntimeError(f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}")

    def times(self, seconds):
        """Seconds of the least and of the median of the runs in that time."""
        print(seconds, file=self.process.stdin, flush=True)
        return self.answer()["times"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def resident_bytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def serve(name, path, given, threads, results, output_names):
    """The process of a Peer: says what it measured, a JSON object a line."""
    with np.load(given) as stored:
        feed = {key.split(" ", 1)[1]: stored[key] for key in sorted(stored)}
    __import__({"onnxruntime": "onnxruntime", "openvino": "openvino", "ncnn": "ncnn", "mnn": "MNN"}[name])
    before = resident_bytes()
    net = KINDS[name](path, feed, int(threads), json.loads(output_names))
    outputs = [np.asarray(o) for o in net.run()]
    grown = resident_bytes() - before
    np.savez(results, **{f"{k:03d}": o for k, o in enumerate(outputs)})
    print("\n" + json.dumps({"resident_bytes": grown}), flush=True)
    clock = time.process_time if int(threads) == 1 else time.perf_counter
    for line in sys.stdin:
        times, end = [], time.perf_counter() + float(line)
        while time.perf_counter() < end or len(times) < 3:
            start = clock()
            net.run()
            times.append(clock() - start)
        print("\n" + json.dumps({"times": [min(times), statistics.median(times)]}), flush=True)


if __name__ == "__main__":
    try:
        serve(*sys.argv[1:])
    except Exception as error:  # not installed, or it can't run this net
        print("\n" + json.dumps({"error": (f"{type(error).__name__}: {error}".splitlines() or [""])[0][:100]}), flush=True)
