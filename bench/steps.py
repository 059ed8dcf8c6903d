#!/usr/bin/env python3
"""Whether every stored step of exported decoders comes out right by one bundle, with and without --state.

    python bench/steps.py FOLDER/g_* [--sinter SINTER] [--targets host,cortex-a76] [--json TABLE.json]

A folder holds model.onnx, about.json with the `bounds` of its free extents and a `tolerance` for each output, and
test_data_set_K with the inputs and outputs of step K, as ONNX's own tests store them. Each step's caches are inputs
and outputs; with --state they stay in the state, and only what is left of the outputs is compared. The figures are the
largest error of all steps, as a share of the tolerance (atol + rtol * |expected|): up to 1 is right, or up to what ONNX
Runtime is off on this machine, whose products of bytes differ between processors. The last columns are the bytes of the
file's initializers and of the weights as they are packed for the last target. Needs the packages onnx and onnxruntime.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper


def tensor(path):
    message = onnx.TensorProto()
    with open(path, "rb") as f:
        message.ParseFromString(f.read())
    return numpy_helper.to_array(message)


def states(inputs, outputs):
    """The pattern that pairs the caches, and the outputs that it leaves; "" where there is none."""
    for front in "past_key_values.", "past.":
        if any(n.startswith(front) for n in inputs) and any(n.startswith("present.") for n in outputs):
            return f"present.*={front}*", [n for n in outputs if not n.startswith("present.")]
    return "", outputs


def peers_error(folder, outputs, steps, tolerance):
    """The same of ONNX Runtime."""
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), providers=["CPUExecutionProvider"])
    worst = 0.0
    for k in range(steps):
        given = {v.name: tensor(f"{folder}/test_data_set_{k}/input_{i}.pb") for i, v in enumerate(session.get_inputs())}
        for i, got in enumerate(session.run(outputs, given)):
            worst = max(worst, in_tolerances(got, tensor(f"{folder}/test_data_set_{k}/output_{i}.pb"), tolerance[i]))
    return worst


def in_tolerances(got, want, t):
    off = np.abs(got.astype(np.float64) - want) / (t["atol"] + t["rtol"] * np.abs(want.astype(np.float64)))
    return float(off.max(initial=0)) if np.isfinite(off).all() else np.inf


def error(folder, o, target, pattern):
    """The largest error of all steps in tolerances, and the bytes of packed weights; or what sinter says."""
    model = onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False)
    about = json.load(open(os.path.join(folder, "about.json")))
    inputs, outputs = [v.name for v in model.graph.input], [v.name for v in model.graph.output]
    free = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim}
    steps = len(glob.glob(os.path.join(folder, "test_data_set_*")))
    wanted = states(inputs, outputs)[1] if pattern else outputs
    given = [n for n in inputs if not (pattern and n.startswith(pattern.split("=")[1].rstrip("*")))]
    with tempfile.TemporaryDirectory() as scratch:
        words = [o.sinter, "run", os.path.join(folder, "model.onnx"), "--target", target, "--steps", str(steps)]
        words += ["--keep", scratch, "--name", "net"] + (["--state", pattern] if pattern else [])
        for bound in about["bounds"]:
            if re.split("<=|=", bound)[0] in free:
                words += ["--dim", bound]
        for i, name in enumerate(inputs):
            if name in given:
                words += ["--in", f"{name}={scratch}/in_{i}_%.pb"]
                for k in range(steps):
                    os.symlink(f"{folder}/test_data_set_{k}/input_{i}.pb", f"{scratch}/in_{i}_{k}.pb")
        for i, name in enumerate(outputs):
            if name in wanted:
                words += ["--out", f"{name}={scratch}/out_{i}_%.npy"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            return "; ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[:2]), 0
        worst = 0.0
        for k in range(steps):
            for i, name in enumerate(outputs):
                if name not in wanted:
                    continue
                want = tensor(f"{folder}/test_data_set_{k}/output_{i}.pb")
                got = np.load(f"{scratch}/out_{i}_{k}.npy")
                if got.shape != want.shape:
                    return f"step {k}: {name} is {got.shape}, not {want.shape}", 0
                worst = max(worst, in_tolerances(got, want, about["tolerance"][i]))
        report = json.load(open(f"{scratch}/net.map"))
        return worst, report["weights_bytes"]


def stored_bytes(path):
    """Bytes of the initializers, and of what constant nodes hold."""
    model = onnx.load(path)
    tensors = list(model.graph.initializer)
    tensors += [a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.HasField("t")]
    return sum(len(t.raw_data) or numpy_helper.to_array(t).nbytes for t in tensors)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folders", nargs="+")
    p.add_argument("--sinter", default="build/host/sinter")
    p.add_argument("--targets", default="host,cortex-a76")
    p.add_argument("--json")
    o = p.parse_args()
    targets = o.targets.split(",")
    head = targets + [t + " --state" for t in targets]
    print(f"| model | {' | '.join(head)} | ONNX Runtime | file | packed | times |\n|{'---|' * (len(head) + 5)}")
    table, wrong = {}, []
    for folder in map(os.path.abspath, o.folders):
        name, file = os.path.basename(folder), os.path.join(folder, "model.onnx")
        graph = onnx.load(file, load_external_data=False).graph
        outputs = [v.name for v in graph.output]
        pattern = states([v.name for v in graph.input], outputs)[0]
        cells, packed = [], 0
        for form in ["", pattern] if pattern else [""]:
            for target in targets:
                off, weights = error(folder, o, target, form)
                cells.append(off)
                packed = weights or packed
        about = json.load(open(os.path.join(folder, "about.json")))
        steps = len(glob.glob(os.path.join(folder, "test_data_set_*")))
        peer, stored = peers_error(folder, outputs, steps, about["tolerance"]), stored_bytes(file)
        wrong += [name] if any(isinstance(c, str) or not c <= max(1, 1.001 * peer) for c in cells) else []
        cells += [""] * (len(head) - len(cells))
        table[name] = {"errors": dict(zip(head, cells)), "onnxruntime": peer, "stored": stored, "packed": packed}
        shown = [c if isinstance(c, str) else f"{c:.3f}" for c in cells + [peer]]
        print(f"| {name} | {' | '.join(shown)} | {stored} | {packed} | {packed / stored:.3f} |", flush=True)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(table, f, indent=1)
    if wrong:
        raise SystemExit(f"wrong or refused: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
