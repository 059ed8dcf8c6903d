"""Writes the two small models beside this file: mlp.onnx and block.onnx.

Their weights are seeded random numbers: the models are there to be read, not to be right about anything. The same
onnx and numpy write the same bytes. Needed: onnx, numpy.
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
random = np.random.default_rng(1)


def weight(name, *shape):
    fan_in = int(np.prod(shape[1:])) or 1
    values = random.standard_normal(shape) / np.sqrt(fan_in)
    return numpy_helper.from_array(values.astype(np.float32), name)


def positive(name, n):
    return numpy_helper.from_array(random.uniform(0.5, 1.5, n).astype(np.float32), name)


def tensor(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def save(name, nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def mlp():
    """Two fully connected layers on a free batch: [N,16] -> [N,4]."""
    nodes = [
        helper.make_node("Gemm", ["features", "w1", "b1"], ["h1"], "hidden", transB=1),
        helper.make_node("Relu", ["h1"], ["h2"], "hidden_relu"),
        helper.make_node("Gemm", ["h2", "w2", "b2"], ["s"], "output", transB=1),
        helper.make_node("Sigmoid", ["s"], ["scores"], "output_sigmoid"),
    ]
    weights = [weight("w1", 24, 16), weight("b1", 24), weight("w2", 4, 24), weight("b2", 4)]
    save("mlp", nodes, [tensor("features", "N", 16)], [tensor("scores", "N", 4)], weights)


def block():
    """A residual block on a picture of fixed size: convolutions, a batch normalisation, an addition."""
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], "stem", kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                         strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"], "stem_relu"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], "body", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c2", "gamma", "beta", "mean", "var"], ["n2"], "body_norm"),
        helper.make_node("Add", ["n2", "r1"], ["a2"], "skip"),
        helper.make_node("HardSwish", ["a2"], ["h2"], "activation"),
        helper.make_node("Conv", ["h2", "w3", "b3"], ["map"], "head", kernel_shape=[1, 1]),
    ]
    weights = [weight("w1", 8, 3, 3, 3), weight("b1", 8), weight("w2", 8, 8, 3, 3), positive("gamma", 8),
               weight("beta", 8), weight("mean", 8), positive("var", 8), weight("w3", 2, 8, 1, 1), weight("b3", 2)]
    save("block", nodes, [tensor("image", 1, 3, 16, 16)], [tensor("map", 1, 2, 8, 8)], weights)


mlp()
block()
