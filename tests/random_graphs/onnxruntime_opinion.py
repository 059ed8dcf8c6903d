#!/usr/bin/env python3
"""A third opinion on random graphs: ONNX Runtime's.

  build/host/tests/random_graphs --graphs 1000 --no-code --write FOLDER
  onnxruntime_opinion.py FOLDER

Runs every model of FOLDER that ONNX Runtime takes, without its optimisations, and compares with the outputs that
sinter's interpreter has stored. Prints what differs; ends with 1 where something does. Needs numpy, onnx and
onnxruntime.
"""
import collections
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

STEPS = {np.dtype(np.float64): 1e-8, np.dtype(np.float16): 2e-2}


def tensors(folder, prefix):
    files = sorted(folder.glob(prefix + "_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
    return [numpy_helper.to_array(onnx.load_tensor(str(f))) for f in files]


def difference(got, want):
    """What is different beyond rounding, or ''."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if got.dtype.kind != "f":
        return "" if np.array_equal(got, want) else f"{np.count_nonzero(got != want)} of {got.size} elements"
    if got.size == 0:
        return ""
    step = STEPS.get(want.dtype, 2e-3)
    got, want = got.astype(np.float64), want.astype(np.float64)
    top = np.abs(want[np.isfinite(want)]).max(initial=0.0)
    same = np.isclose(got, want, rtol=step, atol=step * max(top, 1e-3), equal_nan=True)
    return "" if same.all() else f"{np.count_nonzero(~same)} of {got.size} elements, by {np.abs(got - want).max():.3g} of {top:.3g}"


def opinion(folder):
    """'right', 'refused: why' or what differs."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own exception types are not public
        return "refused: " + str(error).splitlines()[0][:160]
    for data in sorted(folder.glob("test_data_set_*")):
        names = [i.name for i in session.get_inputs()]
        try:
            outputs = session.run(None, dict(zip(names, tensors(data, "input"))))
        except Exception as error:
            return "refused: " + str(error).splitlines()[0][:160]
        for output, got, want in zip(session.get_outputs(), outputs, tensors(data, "output")):
            problem = difference(got, want)
            if problem:
                return f"{data.name} {output.name}: {problem}"
    return "right"


def main():
    counts = collections.Counter()
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        verdict = opinion(folder)
        kind = verdict.split(":")[0] if verdict.startswith(("right", "refused")) else "different"
        counts[kind] += 1
        if kind != "right":
            print(f"{folder.name}: {verdict}")
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
