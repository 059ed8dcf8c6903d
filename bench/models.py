"""The nets that bench/run.py makes itself: ONNX files with seeded random weights, opset 17, batch 1.

Layers alone (conv3..., pw, dwpw, first, gemv, matmul, attention, and attention_heads, where the heads have yet to be moved;
by name also those of CODES and IRREGULAR) and whole nets of the usual sizes, spelled as exporters spell them (attention as
MatMul, Div, Softmax, MatMul; GELU by Erf).
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

    def parts(self, op, inputs, outputs, **attributes):
        """One node of several outputs."""
        self.count += 1
        outs = [f"v{self.count}" + (f"_{k}" if k else "") for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, outs, name=f"{op.lower()}_{self.count}", **attributes))
        return outs

    def node(self, op, inputs, **attributes):
        return self.parts(op, inputs, 1, **attributes)[0]

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
        elif act == "HardSwish":
            y = self.node("HardSwish", [y])
        elif act == "SiLU":
            y = self.node("Mul", [y, self.node("Sigmoid", [y])])
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

    def split(self, x, k):
        """x as k pieces of as many channels."""
        c = x[1] // k
        return [(y, c, *x[2:]) for y in self.parts("Split", [x[0], self.integers([c] * k)], k, axis=1)]

    def double(self, x):
        """Every pixel twice along both axes."""
        y = self.node("Resize", [x[0], "", self.constant(np.float32([1, 1, 2, 2]))], mode="nearest", nearest_mode="floor",
                      coordinate_transformation_mode="asymmetric")
        return y, x[1], 2 * x[2], 2 * x[3]

    def mean(self, x):
        """The mean of each channel, [N, C]."""
        return self.node("ReduceMean", [x[0]], axes=[2, 3], keepdims=0)

    def excite(self, x, squeezed):
        """Squeeze-and-excite: channels scaled by what two pointwise layers make of their means."""
        y = (self.node("GlobalAveragePool", [x[0]]), x[1], 1, 1)
        y = self.conv(self.conv(y, squeezed), x[1], act=None)
        return self.node("Mul", [x[0], self.node("HardSigmoid", [y[0]], alpha=1 / 6, beta=0.5)]), *x[1:]

    def project(self, x, n, m):
        """x[..., n] times a matrix, plus a bias, as exporters write a Linear over more than two axes."""
        y = self.node("MatMul", [x, self.constant(self.random.standard_normal((n, m)) / np.sqrt(n))])
        return self.node("Add", [self.constant(self.random.standard_normal(m) * 0.1), y])

    def norm(self, x, n):
        return self.node("LayerNormalization", [x, self.constant(np.ones(n)), self.constant(np.zeros(n))], axis=-1, epsilon=1e-5)

    def gelu(self, x):
        y = self.node("Erf", [self.node("Div", [x, self.constant(np.float32(np.sqrt(2)))])])
        y = self.node("Mul", [x, self.node("Add", [y, self.constant(np.float32(1))])])
        return self.node("Mul", [y, self.constant(np.float32(0.5))])

    def integers(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def scores(self, q, k, v, width, mask=None):
        """softmax(q k^T / sqrt(width) + mask) v; k comes as [..., width, tokens]."""
        s = self.node("Div", [self.node("MatMul", [q, k]), self.constant(np.float32(np.sqrt(width)))])
        s = self.node("Add", [s, mask]) if mask else s
        return self.node("MatMul", [self.node("Softmax", [s], axis=-1), v])

    def attention(self, x, tokens, n, heads, mask=None):
        """Multi-head self-attention of x[1, tokens, n]."""
        def split(perm):
            y = self.node("Reshape", [self.project(x, n, n), self.integers([1, tokens, heads, n // heads])])
            return self.node("Transpose", [y], perm=perm)
        y = self.scores(split([0, 2, 1, 3]), split([0, 2, 3, 1]), split([0, 2, 1, 3]), n // heads, mask)
        y = self.node("Reshape", [self.node("Transpose", [y], perm=[0, 2, 1, 3]), self.integers([1, tokens, n])])
        return self.project(y, n, n)

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
    return n.mean(n.conv(x, 1000))


def mobilenetv2(n, x):
    x = n.conv(x, 32, 3, 2, act="Relu6")
    for t, c, repeat, stride in (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), \
                                (6, 160, 3, 2), (6, 320, 1, 1):
        for i in range(repeat):
            h, s = x[1] * t, stride if i == 0 else 1
            y = n.conv(x, h, act="Relu6") if t > 1 else x
            y = n.conv(n.conv(y, h, 3, s, groups=h, act="Relu6"), c, act=None)
            x = n.add(x, y) if s == 1 and x[1] == c else y
    return n.linear(n.mean(n.conv(x, 1280, act="Relu6")), 1280, 1000)


def mobilenetv3_small(n, x):
    x = n.conv(x, 16, 3, 2, act="HardSwish")
    for k, h, c, squeezed, act, s in (3, 16, 16, 8, "Relu", 2), (3, 72, 24, 0, "Relu", 2), (3, 88, 24, 0, "Relu", 1), \
            (5, 96, 40, 24, "HardSwish", 2), (5, 240, 40, 64, "HardSwish", 1), (5, 240, 40, 64, "HardSwish", 1), \
            (5, 120, 48, 32, "HardSwish", 1), (5, 144, 48, 40, "HardSwish", 1), (5, 288, 96, 72, "HardSwish", 2), \
            (5, 576, 96, 144, "HardSwish", 1), (5, 576, 96, 144, "HardSwish", 1):
        y = n.conv(x, h, act=act) if h != x[1] else x
        y = n.conv(y, h, k, s, groups=h, act=act)
        y = n.conv(n.excite(y, squeezed) if squeezed else y, c, act=None)
        x = n.add(x, y) if s == 1 and x[1] == c else y
    y = n.node("HardSwish", [n.linear(n.mean(n.conv(x, 576, act="HardSwish")), 576, 1024)])
    return n.linear(y, 1024, 1000)


def resnet18(n, x):
    x = n.pool(n.conv(x, 64, 7, 2), 3, 2, 1)
    for c, stride in (64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1):
        short = x if stride == 1 and x[1] == c else n.conv(x, c, 1, stride, act=None)
        x = n.add(n.conv(n.conv(x, c, 3, stride), c, 3, act=None), short, "Relu")
    return n.linear(n.mean(x), 512, 1000)


def resnet50(n, x):
    x = n.pool(n.conv(x, 64, 7, 2), 3, 2, 1)
    for c, repeat, stride in (64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2):
        for i in range(repeat):
            s = stride if i == 0 else 1
            short = n.conv(x, 4 * c, 1, s, act=None) if i == 0 else x
            x = n.add(n.conv(n.conv(n.conv(x, c), c, 3, s), 4 * c, act=None), short, "Relu")
    return n.linear(n.mean(x), 2048, 1000)


def unet(n, x):
    skips = []
    for c in 16, 32, 64, 128:
        x = n.conv(n.conv(x, c, 3), c, 3)
        if c < 128:
            skips.append(x)
            x = n.pool(x, 2, 2)
    for skip in reversed(skips):
        x = n.concat(n.double(x), skip)
        x = n.conv(n.conv(x, skip[1], 3), skip[1], 3)
    return n.conv(x, 2, act=None)[0]


def silu(n, x, out, k=1, s=1):
    return n.conv(x, out, k, s, act="SiLU")


def c2f(n, x, out, repeat, short):
    """YOLOv8's block: half the channels go on through pairs of convolutions, all that came by is joined."""
    parts = n.split(silu(n, x, out), 2)
    for _ in range(repeat):
        y = silu(n, silu(n, parts[-1], out // 2, 3), out // 2, 3)
        parts.append(n.add(parts[-1], y) if short else y)
    return silu(n, n.concat(*parts), out)


def yolov8n_levels(n, x):
    """Its trunk and neck: features of 64, 128 and 256 channels, one place for 8, 16 and 32 pixels."""
    x = c2f(n, silu(n, silu(n, x, 16, 3, 2), 32, 3, 2), 32, 1, True)
    p3 = c2f(n, silu(n, x, 64, 3, 2), 64, 2, True)
    p4 = c2f(n, silu(n, p3, 128, 3, 2), 128, 2, True)
    pools = [silu(n, c2f(n, silu(n, p4, 256, 3, 2), 256, 1, True), 128)]
    for _ in range(3):
        pools.append(n.pool(pools[-1], 5, 1, 2))
    p5 = silu(n, n.concat(*pools), 256)
    p4 = c2f(n, n.concat(n.double(p5), p4), 128, 1, False)
    p3 = c2f(n, n.concat(n.double(p4), p3), 64, 1, False)
    p4 = c2f(n, n.concat(silu(n, p3, 64, 3, 2), p4), 128, 1, False)
    return p3, p4, c2f(n, n.concat(silu(n, p4, 128, 3, 2), p5), 256, 1, False)


def yolov8n_boxes(n, bins, places):
    """Centre and extent of a box a place, in pixels. `bins`: for each of its sides 16 weights, whose mean is the distance."""
    count = sum(h * w for h, w, _ in places)
    y = n.node("Transpose", [n.node("Reshape", [bins, n.integers([1, 4, 16, count])])], perm=[0, 2, 1, 3])
    y = n.node("Conv", [n.node("Softmax", [y], axis=1), n.constant(np.arange(16).reshape(1, 16, 1, 1))], kernel_shape=[1, 1])
    near, far = n.parts("Split", [n.node("Reshape", [y, n.integers([1, 4, count])]), n.integers([2, 2])], 2, axis=1)
    centres = [np.stack(np.meshgrid(np.arange(w) + 0.5, np.arange(h) + 0.5)).reshape(2, -1) for h, w, _ in places]
    centres = n.constant(np.concatenate(centres, axis=1)[None])
    strides = n.constant(np.concatenate([np.full(h * w, s) for h, w, s in places])[None])
    low, high = n.node("Sub", [centres, near]), n.node("Add", [centres, far])
    middle = n.node("Div", [n.node("Add", [low, high]), n.constant(np.float32(2))])
    return n.node("Mul", [n.node("Concat", [middle, n.node("Sub", [high, low])], axis=1), strides])


def yolov8n_seg(n, x):
    """Boxes, scores of 80 classes and 32 mask coefficients as [1, 116, places], and the masks to be mixed."""
    def branch(x, width, out):
        return n.conv(silu(n, silu(n, x, width, 3), width, 3), out, act=None)

    def flat(xs):
        return n.node("Concat", [n.node("Reshape", [x[0], n.integers([1, x[1], -1])]) for x in xs], axis=2)

    levels = yolov8n_levels(n, x)
    y = silu(n, levels[0], 64, 3)
    weight = n.constant(n.random.standard_normal((64, 64, 2, 2)) / 8)
    large = n.node("ConvTranspose", [y[0], weight, n.constant(np.zeros(64))], kernel_shape=[2, 2], strides=[2, 2])
    masks = silu(n, silu(n, (large, 64, 2 * y[2], 2 * y[3]), 64, 3), 32)[0]
    coefficients = flat([branch(p, 32, 32) for p in levels])
    joined = flat([n.concat(branch(p, 64, 64), branch(p, 80, 80)) for p in levels])
    bins, scores = n.parts("Split", [joined, n.integers([64, 80])], 2, axis=1)
    boxes = yolov8n_boxes(n, bins, [(p[2], p[3], 8 << k) for k, p in enumerate(levels)])
    found = n.node("Concat", [boxes, n.node("Sigmoid", [scores])], axis=1)
    return n.node("Concat", [found, coefficients], axis=1), masks


def encoder(n, x, tokens, width, inner, heads, first, mask=None):
    """One layer of a transformer's encoder; its norms stand first (ViT) or last (BERT)."""
    def feed_forward(y):
        return n.project(n.gelu(n.project(y, width, inner)), inner, width)
    if first:
        x = n.node("Add", [x, n.attention(n.norm(x, width), tokens, width, heads, mask)])
        return n.node("Add", [x, feed_forward(n.norm(x, width))])
    x = n.norm(n.node("Add", [n.attention(x, tokens, width, heads, mask), x]), width)
    return n.norm(n.node("Add", [feed_forward(x), x]), width)


def bert(n, x):
    """TinyBERT's four layers of 312 on 128 tokens; attention_mask is an input."""
    width, tokens = 312, x[1]
    words = n.constant(n.random.standard_normal((30522, width)) * 0.1)
    y = n.node("Gather", [words, x[0]], axis=0)
    y = n.norm(n.node("Add", [y, n.constant(n.random.standard_normal((1, tokens, width)) * 0.1)]), width)
    mask = n.node("Cast", [n.node("Unsqueeze", ["attention_mask", n.integers([1, 2])])], to=TensorProto.FLOAT)
    mask = n.node("Mul", [n.node("Sub", [n.constant(np.float32(1)), mask]), n.constant(np.float32(-10000))])
    for _ in range(4):
        y = encoder(n, y, tokens, width, 1200, 12, False, mask)
    return n.node("Identity", [y])


def vit_tiny(n, x):
    width, tokens = 192, 197
    y = n.node("Reshape", [n.conv(x, width, 16, 16, 0, act=None)[0], n.integers([1, width, tokens - 1])])
    y = n.node("Concat", [n.constant(np.zeros((1, 1, width))), n.node("Transpose", [y], perm=[0, 2, 1])], axis=1)
    y = n.node("Add", [y, n.constant(n.random.standard_normal((1, tokens, width)) * 0.1)])
    for _ in range(12):
        y = encoder(n, y, tokens, width, 4 * width, 3, True)
    y = n.node("Gather", [n.norm(y, width), n.integers(0)], axis=1)
    return n.linear(y, width, 1000)


def attention(n, x):
    """q, k and v of 12 heads, 128 tokens, 64 wide: nothing but attention."""
    return n.scores(x[0], n.node("Transpose", ["k"], perm=[0, 1, 3, 2]), "v", 64)


def attention_heads(n, x):
    """The same as it stands in a net: 12 heads side by side in q, k and v, and a mask to add."""
    split = lambda name, perm: n.node("Transpose", [n.node("Reshape", [name, n.integers([1, 128, 12, 64])])], perm=perm)
    y = n.scores(split(x[0], [0, 2, 1, 3]), split("k", [0, 2, 3, 1]), split("v", [0, 2, 1, 3]), 64, "mask")
    return n.node("Reshape", [n.node("Transpose", [y], perm=[0, 2, 1, 3]), n.integers([1, 128, 768])])


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
    "attention": ([1, 12, 128, 64], attention),
    "attention_heads": ([1, 128, 768], attention_heads),
    "squeezenet11": ([1, 3, 227, 227], squeezenet11),
    "mobilenetv2": ([1, 3, 224, 224], mobilenetv2),
    "mobilenetv3_small": ([1, 3, 224, 224], mobilenetv3_small),
    "resnet18": ([1, 3, 224, 224], resnet18),
    "resnet50": ([1, 3, 224, 224], resnet50),
    "unet": ([1, 3, 256, 256], unet),
    "yolov8n_seg": ([1, 3, 320, 320], yolov8n_seg),
    "bert": ([1, 128], bert),
    "vit_tiny": ([1, 3, 224, 224], vit_tiny),
}

def trees(n, x, op, leaves, **attributes):
    """100 full trees of depth 8 over 30 features."""
    count, inner, nodes = 100, 255, 511
    tree, node = np.repeat(np.arange(count), nodes), np.tile(np.arange(nodes), count)
    leaf = node >= inner
    kind = lambda inside, other: np.where(leaf, other, inside).tolist()
    return n.node(op, [x], domain="ai.onnx.ml", nodes_treeids=tree.tolist(), nodes_nodeids=node.tolist(),
                  nodes_featureids=kind(n.random.integers(0, 30, leaf.size), 0), nodes_modes=kind("BRANCH_LEQ", "LEAF"),
                  nodes_values=kind(n.random.standard_normal(leaf.size) * 0.7, 0.0),
                  nodes_truenodeids=kind(2 * node + 1, 0), nodes_falsenodeids=kind(2 * node + 2, 0),
                  **{f"{leaves}_treeids": tree[leaf].tolist(), f"{leaves}_nodeids": node[leaf].tolist(),
                     f"{leaves}_ids": (tree[leaf] % 3 if leaves == "class" else 0 * tree[leaf]).tolist(),
                     f"{leaves}_weights": n.random.standard_normal(int(leaf.sum())).tolist()}, **attributes)


def doubled(n, x):
    """A picture in planes, twice as large, and an activation behind it."""
    scales = n.constant([1, 1, 2, 2])
    return n.node("Sigmoid", [n.node("Resize", [x[0], "", scales], mode="linear")])


def frames(n, x):
    """A second of sound in frames of 25 ms, 10 ms apart."""
    return n.node("STFT", [x[0], n.integers(160), n.constant(np.hanning(400))], onesided=1)


# Layers that not all runtimes know, so that run.py leaves them out.
IRREGULAR = {
    "trees": ([1000, 30], lambda n, x: trees(n, x[0], "TreeEnsembleRegressor", "target", n_targets=1)),
    "tree_row": ([1, 30], lambda n, x: trees(n, x[0], "TreeEnsembleRegressor", "target", n_targets=1)),
    "doubled": ([1, 3, 128, 128], doubled),
    "frames": ([1, 16000, 1], frames),
    "grid_sample": ([8, 32, 64, 64], lambda n, x: n.node("GridSample", [x[0], "grid"])),
}

# Further inputs: name and shape; those of bert are token numbers and a mask, int64.
MORE_INPUTS = {
    "attention": [("k", [1, 12, 128, 64]), ("v", [1, 12, 128, 64])],
    "attention_heads": [("k", [1, 128, 768]), ("v", [1, 128, 768]), ("mask", [1, 1, 1, 128])],
    "bert": [("attention_mask", [1, 128])],
    "grid_sample": [("grid", [8, 300, 4, 2])],
}


# Products with weights of a few bits in blocks of 32 (com.microsoft.MatMulNBits), a transformer's 576 to 1536: rows, bits
# and accuracy level. Only ONNX Runtime knows them, so that run.py leaves them out.
CODES = {f"codes{bits}_l{level}{'' if rows == 1 else f'_{rows}'}": (rows, bits, level)
         for rows in (1, 16, 128) for bits in (4, 8) for level in (1, 4)}


def make_codes(name, k=576, n=1536, block=32):
    rows, bits, level = CODES[name]
    random = np.random.default_rng(sum(name.encode()))
    codes = random.integers(0, 256, (n, k // block, block * bits // 8), dtype=np.uint8)
    scales = (random.random(n * k // block) * 0.01 + 0.001).astype(np.float32)
    node = helper.make_node("MatMulNBits", ["x", "codes", "scales"], ["y"], domain="com.microsoft", K=k, N=n, bits=bits,
                            block_size=block, accuracy_level=level)
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], name, [value("x", TensorProto.FLOAT, [rows, k])],
                              [value("y", TensorProto.FLOAT, [rows, n])],
                              [numpy_helper.from_array(codes, "codes"), numpy_helper.from_array(scales, "scales")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def make(name):
    """The model `name` as a ModelProto."""
    if name in CODES:
        return make_codes(name)
    shape, build = {**MODELS, **IRREGULAR}[name]
    net = Net(sum(name.encode()))
    outs = build(net, ("x", *shape[1:]))
    named = {outs: "y"} if isinstance(outs, str) else {out: f"y{k}" for k, out in enumerate(outs)}
    for node in net.nodes:
        node.output[0] = named.get(node.output[0], node.output[0])
    kind = TensorProto.INT64 if name == "bert" else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in [("x", shape), *MORE_INPUTS.get(name, [])]]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in named.values()]
    graph = helper.make_graph(net.nodes, name, inputs, results, net.weights)
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)],
                          ir_version=8))
    return model


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for wanted in sys.argv[2:] or MODELS:
        onnx.save(make(wanted), os.path.join(sys.argv[1], wanted + ".onnx"))
