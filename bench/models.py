"""The nets that bench/run.py makes itself: ONNX files with seeded random weights, opset 17, batch 1.

Layers alone (conv3, conv3s2, pw, dwpw, first, gemv, matmul) and whole nets (squeezenet11, mobilenetv2, resnet18, unet).
`python models.py FOLDER [NAME...]` writes NAME.onnx for each.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A graph under construction. Values are (name, channels, height, width); weights are scaled to keep variance."""

    def __init__(self, seed):
        self.random, self.nodes, self.weights, self.count = np.random.default_rng(seed), [], [], 0

    def node(self, op, inputs, **attributes):
        self.count += 1
        out = f"v{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=f"{op.lower()}_{self.count}", **attributes))
        return out

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def conv(self, x, out, k=1, s=1, p=None, groups=1, act="Relu"):
        name, c, h, w = x
        p = k // 2 if p is None else p
        weight = self.random.standard_normal((out, c // groups, k, k)) * np.sqrt(2 / (c // groups * k * k))
        y = self.node("Conv", [name, self.constant(weight), self.constant(self.random.standard_normal(out) * 0.1)],
                      kernel_shape=[k, k], strides=[s, s], pads=[p] * 4, group=groups)
        if act == "Relu":
            y = self.node("Relu", [y])
        elif act == "Relu6":
            y = self.node("Clip", [y, self.constant(np.float32(0)), self.constant(np.float32(6))])
        return y, out, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1

    def pool(self, x, k, s, p=0, ceil=0):
        name, c, h, w = x
        y = self.node("MaxPool", [name], kernel_shape=[k, k], strides=[s, s], pads=[p] * 4, ceil_mode=ceil)
        size = lambda n: (n + 2 * p - k + (s - 1 if ceil else 0)) // s + 1
        return y, c, size(h), size(w)

    def add(self, x, y, act=None):
        z = self.node("Add", [x[0], y[0]])
        return (self.node(act, [z]) if act else z, *x[1:])

    def concat(self, *xs):
        return self.node("Concat", [x[0] for x in xs], axis=1), sum(x[1] for x in xs), *xs[0][2:]

    def linear(self, name, n, m):
        return self.node("Gemm", [name, self.constant(self.random.standard_normal((m, n)) / np.sqrt(n)),
                                  self.constant(self.random.standard_normal(m) * 0.1)], transB=1)


def fire(n, x, squeeze, expand):
    x = n.conv(x, squeeze)
    return n.concat(n.conv(x, expand), n.conv(x, expand, 3))


def squeezenet11(n, x):
    x = n.pool(n.conv(x, 64, 3, 2, 0), 3, 2, 0, 1)
    x = n.pool(fire(n, fire(n, x, 16, 64), 16, 64), 3, 2, 0, 1)
    x = n.pool(fire(n, fire(n, x, 32, 128), 32, 128), 3, 2, 0, 1)
    for s, e in (48, 192), (48, 192), (64, 256), (64, 256):
        x = fire(n, x, s, e)
    return n.node("ReduceMean", [n.conv(x, 1000)[0]], axes=[2, 3], keepdims=0)


def mobilenetv2(n, x):
    x = n.conv(x, 32, 3, 2, act="Relu6")
    for t, c, repeat, stride in (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), \
                                (6, 160, 3, 2), (6, 320, 1, 1):
        for i in range(repeat):
            h, s = x[1] * t, stride if i == 0 else 1
            y = n.conv(x, h, act="Relu6") if t > 1 else x
            y = n.conv(n.conv(y, h, 3, s, groups=h, act="Relu6"), c, act=None)
            x = n.add(x, y) if s == 1 and x[1] == c else y
    mean = n.node("ReduceMean", [n.conv(x, 1280, act="Relu6")[0]], axes=[2, 3], keepdims=0)
    return n.linear(mean, 1280, 1000)


def resnet18(n, x):
    x = n.pool(n.conv(x, 64, 7, 2), 3, 2, 1)
    for c, stride in (64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1):
        short = x if stride == 1 and x[1] == c else n.conv(x, c, 1, stride, act=None)
        x = n.add(n.conv(n.conv(x, c, 3, stride), c, 3, act=None), short, "Relu")
    return n.linear(n.node("ReduceMean", [x[0]], axes=[2, 3], keepdims=0), 512, 1000)


def unet(n, x):
    skips = []
    for c in 16, 32, 64, 128:
        x = n.conv(n.conv(x, c, 3), c, 3)
        if c < 128:
            skips.append(x)
            x = n.pool(x, 2, 2)
    for skip in reversed(skips):
        sizes = n.constant(np.float32([1, 1, 2, 2]))
        up = n.node("Resize", [x[0], "", sizes], mode="nearest", nearest_mode="floor",
                    coordinate_transformation_mode="asymmetric")
        x = n.concat((up, x[1], x[2] * 2, x[3] * 2), skip)
        x = n.conv(n.conv(x, skip[1], 3), skip[1], 3)
    return n.conv(x, 2, act=None)[0]


MODELS = {
    "conv3": ([1, 64, 56, 56], lambda n, x: n.conv(x, 64, 3)[0]),
    "conv3_28": ([1, 128, 28, 28], lambda n, x: n.conv(x, 128, 3)[0]),
    "conv3_14": ([1, 256, 14, 14], lambda n, x: n.conv(x, 256, 3)[0]),
    "conv3_7": ([1, 512, 7, 7], lambda n, x: n.conv(x, 512, 3)[0]),
    "conv3s2": ([1, 64, 56, 56], lambda n, x: n.conv(x, 128, 3, 2)[0]),
    "first": ([1, 3, 224, 224], lambda n, x: n.conv(x, 32, 3, 2)[0]),
    "pw": ([1, 96, 28, 28], lambda n, x: n.conv(x, 192)[0]),
    "dwpw": ([1, 32, 112, 112], lambda n, x: n.conv(n.conv(x, 32, 3, groups=32), 64)[0]),
    "gemv": ([1, 1024], lambda n, x: n.linear(x[0], 1024, 1024)),
    "matmul": ([128, 768], lambda n, x: n.linear(x[0], 768, 768)),
    "squeezenet11": ([1, 3, 227, 227], squeezenet11),
    "mobilenetv2": ([1, 3, 224, 224], mobilenetv2),
    "resnet18": ([1, 3, 224, 224], resnet18),
    "unet": ([1, 3, 256, 256], unet),
}


def make(name):
    """The model `name` as a ModelProto."""
    shape, build = MODELS[name]
    net = Net(sorted(MODELS).index(name))
    out = build(net, ("x", *shape[1:]))
    net.nodes[-1].output[0] = "y"
    graph = helper.make_graph(net.nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], net.weights)
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    return model


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for wanted in sys.argv[2:] or MODELS:
        onnx.save(make(wanted), os.path.join(sys.argv[1], wanted + ".onnx"))
