#!/usr/bin/env python3
"""Whether a detector finds as many objects as ONNX Runtime does, on many pictures.

    python bench/detections.py [--sinter build/host/sinter] [--target TARGET] [--pictures 24] FOLDER/NET...

Each NET is a folder with model.onnx and test_data_set_*; its pictures are those of the data sets, then the same mirrored, moved,
mixed, with noise, overexposed and, last, nothing but noise. Counts are equal where all outputs have the same shapes; the
largest difference of a value, relative to the greatest of its output, stands beside. Among noise two boxes may change places
by a rounding: compare ONNX Runtime with and without its optimisations. Pictures at which ONNX Runtime fails are told apart.
Exit code 1 where a count differs. Needs numpy, onnx and onnxruntime.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
from onnx import TensorProto, numpy_helper


def read(path):
    tensor = TensorProto()
    with open(path, "rb") as f:
        tensor.ParseFromString(f.read())
    return numpy_helper.to_array(tensor)


def write(path, array):
    with open(path, "wb") as f:
        f.write(numpy_helper.from_array(np.ascontiguousarray(array)).SerializeToString())


def picture(base, k, random):
    """Picture k from the data sets' ones; a round of them for each kind of change."""
    x, other = base[k % len(base)].astype(np.float32), base[(k + 1) % len(base)].astype(np.float32)
    low, high = x.min(), x.max()
    kind = k // len(base)
    if kind == 1:
        x = x[..., ::-1]
    elif kind == 2:
        x = np.roll(x, 17 + k, -2)
    elif kind == 3 and other.shape == x.shape:
        x = (x + other) / 2
    elif kind == 4:
        x = x + random.normal(0, 0.1 * (high - low) + 1e-6, x.shape)
    elif kind == 5:
        x = np.clip(x * 1.7, low, high)
    elif kind > 5 and k % 2:
        x = random.uniform(low, high, x.shape)
    elif kind > 5:
        x = np.roll(x[..., ::-1, :], 31 * k, -1) * random.uniform(0.5, 1.3)
    return x.astype(base[0].dtype)


class Program:
    """Our program of the model, compiled once."""

    def __init__(self, options, model, inputs, outputs, folder):
        self.files = [f"{folder}/in{i}.pb" for i in range(inputs)], [f"{folder}/out{i}.pb" for i in range(outputs)]
        self.arguments = [a for flag, files in zip(("--in", "--out"), self.files) for f in files for a in (flag, f)]
        target = ["--target", options.target] if options.target else []
        self.first = [options.sinter, "run", model, "--name", "net", "--keep", folder, *target]
        self.emulated = options.target and "cortex" in options.target or options.target == "aarch64"
        self.program = f"{folder}/net_main"

    def run(self, feed):
        for path, array in zip(self.files[0], feed):
            write(path, array)
        start = self.first
        if os.path.exists(self.program):
            start = (["qemu-aarch64-static"] if self.emulated else []) + [self.program]
        p = subprocess.run(start + self.arguments, capture_output=True, text=True)
        if p.returncode:
            raise RuntimeError(p.stderr.strip() or f"exit code {p.returncode}")
        return [read(path) for path in self.files[1]]


def compare(options, net):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(f"{net}/model.onnx", settings, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    base = [[read(f"{s}/input_{i}.pb") for i in range(len(names))] for s in sorted(glob.glob(f"{net}/test_data_set_*"))]
    random = np.random.default_rng(7)
    equal = failed = 0
    found, largest = set(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        ours = Program(options, f"{net}/model.onnx", len(names), len(session.get_outputs()), folder)
        for k in range(options.pictures):
            feed = [picture([b[0] for b in base], k, random), *base[k % len(base)][1:]]
            got = ours.run(feed)
            try:
                want = session.run(None, dict(zip(names, feed)))
            except Exception:  # what onnxruntime raises has no common class
                failed += 1
                continue
            found.add(want[0].shape)
            if [a.shape for a in got] != [b.shape for b in want]:
                print(f"  picture {k}: {[a.shape for a in got]}, ONNX Runtime {[b.shape for b in want]}")
                continue
            equal += 1
            for a, b in zip(got, want):
                if a.size:
                    a, b = a.astype(np.float64), b.astype(np.float64)
                    largest = max(largest, np.abs(a - b).max() / max(np.abs(b).max(), 1e-6))
    print(f"{os.path.basename(net)}: {equal} of {options.pictures - failed} pictures with equal counts, ONNX Runtime failed at "
          f"{failed}; shapes of the first output {sorted(found)}; largest difference {largest:.1g}", flush=True)
    return equal == options.pictures - failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="+")
    parser.add_argument("--sinter", default="build/host/sinter")
    parser.add_argument("--target")
    parser.add_argument("--pictures", type=int, default=24)
    options = parser.parse_args()
    sys.exit(0 if all([compare(options, net.rstrip("/")) for net in options.nets]) else 1)


if __name__ == "__main__":
    main()
