#!/usr/bin/env python3
"""QDQ nets for what a function costs between bytes: three convolutions with the function behind the first two.

    byte_functions.py FOLDER [SiLU HardSwish ...]
    board.py --armsim ARMSIM --cores cortex-a76,cortex-a55 FOLDER/*.onnx

16 channels of 16 x 16 pixels, made by ONNX Runtime's quantize_static from random samples, a scale for each channel.
Needs the packages onnx and onnxruntime."""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

FUNCTIONS = {
    "SiLU": [("Sigmoid", {}), ("Mul", {})],
    "HardSwish": [("HardSwish", {})],
    "HardSigmoid-Mul": [("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}), ("Mul", {})],
    "Sigmoid": [("Sigmoid", {})],
    "Tanh": [("Tanh", {})],
    "Gelu": [("Gelu", {})],
    "Elu": [("Elu", {})],
    "LeakyRelu": [("LeakyRelu", {"alpha": 0.1})],
    "Relu": [("Relu", {})],
}


class Samples(CalibrationDataReader):
    def __init__(self, random):
        self.feeds = iter({"x": random.standard_normal((1, 3, 16, 16)).astype(np.float32)} for _ in range(8))

    def get_next(self):
        return next(self.feeds, None)


def net(function, random):
    nodes, weights = [], []

    def node(op, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], f"{op}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    def conv(x, out, channels, taps):
        w = (random.standard_normal((out, channels, taps, taps)) / np.sqrt(channels) / taps).astype(np.float32)
        weights.append(numpy_helper.from_array(w, f"w{len(weights)}"))
        return node("Conv", [x, weights[-1].name], pads=[taps // 2] * 4)

    x = "x"
    for out, channels, taps in ((16, 3, 3), (16, 16, 1)):
        x = y = conv(x, out, channels, taps)
        for op, attributes in FUNCTIONS[function]:
            y = node(op, [x, y] if op == "Mul" else [y], **attributes)
        x = y
    conv(x, 8, 16, 1)
    value = lambda name, channels: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 16, 16])
    graph = helper.make_graph(nodes, function, [value("x", 3)], [value(nodes[-1].output[0], 8)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(FUNCTIONS)
    os.makedirs(folder, exist_ok=True)
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            floats = os.path.join(work, "floats.onnx")
            onnx.save(net(name, random), floats)
            quantize_static(
                floats, os.path.join(folder, name + ".onnx"), Samples(random), quant_format=QuantFormat.QDQ, per_channel=True,
                op_types_to_quantize=["Conv", "Relu"] + [op for op, _ in FUNCTIONS[name]],
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            )  # fmt: skip


if __name__ == "__main__":
    main()
