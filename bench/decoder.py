#!/usr/bin/env python3
"""What one step of a decoder costs: the form that onnxruntime-genai's builder writes, of any widths, random weights.

    python bench/decoder.py [--bits 4|8|32] [--level 4] [--context 64] [--rows 1] [--armsim ARMSIM --cores cortex-a76]

The default widths are SmolLM-135M's, of which 6 layers. --bits 4: MatMulNBits, blocks of 32; 8: quantize_dynamic of
ONNX Runtime (DynamicQuantizeLinear, MatMulInteger); 32: floats. The caches are states in place with room for --room
rows. With --armsim, modelled Mcycles of a step on each core; without, milliseconds on this machine, one thread, in
turns with ONNX Runtime. Needs the packages onnx and onnxruntime.
"""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import board

MS = "com.microsoft"
MAIN = r"""
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include "net.h"
namespace {
unsigned char* buffer(std::size_t bytes) {
  void* p = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
  std::memset(p, 0, bytes);
  return static_cast<unsigned char*>(p);
}
std::int64_t ids[8192], ones[8192];
unsigned char *arena = buffer(NET_ARENA_BYTES), *state = buffer(NET_STATE_BYTES);
float* logits = reinterpret_cast<float*>(buffer(NET_LOGITS_MAX_BYTES));
void run(std::int64_t rows, std::int64_t total) {
  const net_inputs in = {ids, {1, rows}, ones, {1, total}};
  net_outputs out{};
  out.logits = logits;
  if (const int code = net_run(&in, &out, arena, state)) std::puts(net_error(code)), std::exit(1);
}
double now() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}
}
int main() {
  for (int i = 0; i < 8192; ++i) ids[i] = i * 7919 % VOCABULARY, ones[i] = 1;
  for (std::int64_t done = 0, n; done < CONTEXT; done += n) n = std::min<std::int64_t>(ROWS_MAX, CONTEXT - done), run(n, done + n);
#if defined(__aarch64__)
  run(ROWS, CONTEXT + ROWS);
  __asm__ volatile("hint #112" ::: "memory");
  run(ROWS, CONTEXT + 2 * ROWS);
  __asm__ volatile("hint #113" ::: "memory");
#else
  unsigned char* before = buffer(NET_STATE_BYTES);
  std::memcpy(before, state, NET_STATE_BYTES);
  double least = 1e9;
  for (int k = 0; k < 20; ++k) {
    std::memcpy(state, before, NET_STATE_BYTES);
    const double start = now();
    run(ROWS, CONTEXT + ROWS);
    least = std::min(least, now() - start);
  }
  std::printf("%.3f\n", least);
#endif
}
"""


class Graph:
    """Nodes and weights, with seeded numbers."""

    def __init__(self, o):
        self.o, self.nodes, self.weights, self.random = o, [], [], np.random.default_rng(1)

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op, inputs, outputs=None, domain="", **attributes):
        outputs = outputs or [f"{op}_{len(self.nodes)}_out"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes))
        return outputs[0]

    def numbers(self, *shape):
        return self.random.standard_normal(shape, dtype=np.float32)

    def product(self, x, rows, columns, name):
        w = self.numbers(columns, rows) / np.float32(np.sqrt(rows))
        if self.o.bits != 4:
            return self.node("MatMul", [x, self.constant(name, np.ascontiguousarray(w.T))])
        blocks = w.reshape(columns, rows // 32, 32)
        scale = np.abs(blocks).max(-1, keepdims=True) / 7
        codes = np.clip(np.round(blocks / scale) + 8, 0, 15).astype(np.uint8)
        packed = codes[..., 0::2] | codes[..., 1::2] << 4
        inputs = [x, self.constant(name + ".codes", packed), self.constant(name + ".scales", scale.reshape(-1))]
        return self.node("MatMulNBits", inputs, domain=MS, K=rows, N=columns, bits=4, block_size=32,
                         accuracy_level=self.o.level)

    def layer(self, x, root, k):
        """Attention and the gated layers of one block: what comes out, normalised, and the sum behind it."""
        o, width = self.o, self.o.heads * self.o.head
        qkv = [self.product(x, o.hidden, n * o.head, f"{k}.{part}")
               for part, n in (("q", o.heads), ("k", o.shared), ("v", o.shared))]
        y = self.node("GroupQueryAttention",
                      qkv + [f"past.{k}.key", f"past.{k}.value", "last", "total", "cos", "sin"],
                      [f"{k}.attention", f"present.{k}.key", f"present.{k}.value"], MS, num_heads=o.heads,
                      kv_num_heads=o.shared, do_rotary=1)
        y, root = self.normalised(root, self.product(y, width, o.hidden, f"{k}.o"), f"{k}.middle")
        gate, up = (self.product(y, o.hidden, o.inner, f"{k}.{part}") for part in ("gate", "up"))
        gated = self.node("Mul", [self.node("Mul", [gate, self.node("Sigmoid", [gate])]), up])
        return self.normalised(root, self.product(gated, o.inner, o.hidden, f"{k}.down"), f"{k}.end")

    def normalised(self, root, x, name):
        scale = self.constant(name + ".scale", np.ones(self.o.hidden, np.float32))
        out, total = name + ".normalised", name + ".sum"
        self.node("SkipSimplifiedLayerNormalization", [root, x, scale], [out, "", "", total], MS, epsilon=1e-5)
        return out, total


def model(o, path):
    g = Graph(o)
    count = g.node("ReduceSum", ["attention_mask", g.constant("axis", np.array([1], np.int64))], keepdims=0)
    g.node("Cast", [g.node("Sub", [count, g.constant("one", np.array(1, np.int64))])], ["last"], to=TensorProto.INT32)
    length = g.node("Gather", [g.node("Shape", ["attention_mask"]), g.constant("second", np.array(1, np.int64))])
    g.node("Cast", [length], ["total"], to=TensorProto.INT32)
    angles = np.outer(np.arange(o.room), 1e4 ** -(np.arange(0, o.head, 2) / o.head)).astype(np.float32)
    g.constant("cos", np.cos(angles)), g.constant("sin", np.sin(angles))
    x = g.node("Gather", [g.constant("embedding", g.numbers(o.vocabulary, o.hidden)), "input_ids"])
    root, x = x, g.node("SimplifiedLayerNormalization", [x, g.constant("first.scale", np.ones(o.hidden, np.float32))],
                        epsilon=1e-5)
    for k in range(o.layers):
        x, root = g.layer(x, root, k)
    logits = g.product(x, o.hidden, o.vocabulary, "head")
    g.nodes[-1].output[0] = "logits"
    assert logits
    caches = [(f"{k}.{part}") for k in range(o.layers) for part in ("key", "value")]
    info, f32, i64 = helper.make_tensor_value_info, TensorProto.FLOAT, TensorProto.INT64
    inputs = [info("input_ids", i64, [1, "S"]), info("attention_mask", i64, [1, "T"])]
    inputs += [info(f"past.{c}", f32, [1, o.shared, "P", o.head]) for c in caches]
    outputs = [info("logits", f32, [1, "S", o.vocabulary])]
    outputs += [info(f"present.{c}", f32, [1, o.shared, "T", o.head]) for c in caches]
    made = helper.make_model(helper.make_graph(g.nodes, "decoder", inputs, outputs, g.weights), ir_version=10,
                             opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)])
    onnx.save(made, path)
    if o.bits == 8:
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(path, path, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"],
                         extra_options={"DefaultTensorType": TensorProto.FLOAT})


def program(o, path, target, folder):
    rows = max(64, o.rows)
    options = ["--state", "present.*=past.*", "--dim", f"S<={rows}", "--dim", f"P=0..{o.room}", "--dim", f"T<={o.room + rows}"]
    print(board.compile_to(o.sinter, path, target, folder, *options).split(" ->")[0], flush=True)
    with open(f"{folder}/decoder_main.cpp", "w") as f:
        f.write(MAIN)
    values = {"VOCABULARY": o.vocabulary, "CONTEXT": o.context, "ROWS": o.rows, "ROWS_MAX": rows}
    compiler = "g++" if target == "host" else "aarch64-linux-gnu-g++"
    subprocess.run([compiler, "-static", *board.flags_of(folder), *(f"-D{k}={v}" for k, v in values.items()), f"-I{folder}",
                    f"{folder}/decoder_main.cpp", *board.sources_of(folder), "-o", f"{folder}/program"], check=True)
    return f"{folder}/program"


def onnxruntime_step(o, path):
    """A function that runs a step and gives its milliseconds of CPU time."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    feeds = {i.name: np.ones((1, o.shared, o.context, o.head), np.float32) for i in session.get_inputs()}
    feeds["input_ids"], feeds["attention_mask"] = np.ones((1, o.rows), np.int64), np.ones((1, o.context + o.rows), np.int64)

    def step():
        start = time.process_time()
        session.run(None, feeds)
        return 1e3 * (time.process_time() - start)
    return step


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", default="build/host/sinter")
    p.add_argument("--armsim")
    p.add_argument("--cores", default="cortex-a53,cortex-a55,cortex-a72,cortex-a76")
    p.add_argument("--turns", type=int, default=3)
    for name, value in dict(bits=4, level=4, context=64, rows=1, room=2048, layers=6, hidden=576, heads=9, shared=3, head=64,
                            inner=1536, vocabulary=49152).items():
        p.add_argument("--" + name, type=int, default=value)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "decoder.onnx")
        model(o, path)
        if o.armsim:
            for core in o.cores.split(","):
                built = program(o, path, core, os.path.join(folder, core))
                print(f"{core:12} {board.cycles(o.armsim, [built], core):8.2f} Mcycles", flush=True)
            return
        built, peer = program(o, path, "host", os.path.join(folder, "host")), onnxruntime_step(o, path)
        ours, theirs = [], []
        for _ in range(o.turns):
            ours.append(float(subprocess.run([built], check=True, capture_output=True, text=True).stdout))
            theirs += [peer() for _ in range(20)]
        print(f"sinter {min(ours):.2f} ms, onnxruntime {min(theirs):.2f} ms: {min(theirs) / min(ours):.2f}")


if __name__ == "__main__":
    main()
