#!/usr/bin/env python3
"""How near a quantised net is to its float model: sinter quantize beside ONNX Runtime's quantize_static.

    quantise.py --sinter build/host/sinter MODEL.onnx --calibrate DIR --hold-out DIR

Both folders hold .npy files, one a sample of the model's only input. Prints for each way the ratio of signal to
noise of each output, in dB, over the samples of --hold-out, in ONNX Runtime with exact products of bytes.
Needs the packages onnx and onnxruntime."""
import argparse
import glob
import logging
import os
import subprocess
import tempfile

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static


def session(file):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(file, options)


def outputs(file, name, samples):
    s = session(file)
    return [s.run(None, {name: x}) for x in samples]


def ratios(got, want):
    result = []
    for o in range(len(want[0])):
        signal = sum(float((w[o].astype(float) ** 2).sum()) for w in want)
        noise = sum(float(((g[o].astype(float) - w[o]) ** 2).sum()) for g, w in zip(got, want))
        result.append(10 * np.log10(signal / noise) if noise else float("inf"))
    return result


class Reader(CalibrationDataReader):
    def __init__(self, name, samples):
        self.feeds = iter({name: x} for x in samples)

    def get_next(self):
        return next(self.feeds, None)


def constant_weights(file, to):
    """quantize_static asks for opset 13 and for weights that are no inputs."""
    model = onnx.load(file)
    weights = {i.name for i in model.graph.initializer}
    for i in [i for i in model.graph.input if i.name in weights]:
        model.graph.input.remove(i)
    if max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")) < 13:
        model = onnx.version_converter.convert_version(onnx.shape_inference.infer_shapes(model), 13)
    model.ir_version = max(7, model.ir_version)
    onnx.save(model, to)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--sinter", required=True)
    parser.add_argument("--calibrate", required=True)
    parser.add_argument("--hold-out", required=True)
    a = parser.parse_args()
    logging.disable(logging.WARNING)
    read = lambda folder: [np.load(f) for f in sorted(glob.glob(os.path.join(folder, "*.npy")))]
    samples, held_out = read(a.calibrate), read(a.hold_out)
    name = session(a.model).get_inputs()[0].name
    want = outputs(a.model, name, held_out)
    tell = lambda way, file: print(f"{way:12}", " ".join(f"{r:6.1f}" for r in ratios(outputs(file, name, held_out), want)))
    with tempfile.TemporaryDirectory() as folder:
        ours, floats, theirs = (os.path.join(folder, f) for f in ("ours.onnx", "floats.onnx", "theirs.onnx"))
        subprocess.run([a.sinter, "quantize", a.model, "--data", a.calibrate, "-o", ours], check=True,
                       stdout=subprocess.DEVNULL)
        tell("sinter", ours)
        constant_weights(a.model, floats)
        for method in (CalibrationMethod.MinMax, CalibrationMethod.Entropy, CalibrationMethod.Percentile):
            quantize_static(floats, theirs, Reader(name, samples), quant_format=QuantFormat.QDQ, per_channel=True,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, calibrate_method=method)
            tell(method.name, theirs)


if __name__ == "__main__":
    main()
