"""sinter.backend as onnx.backend.test takes it, over a few of ONNX's own tests.

SINTER_BACKEND_TESTS, a regular expression, chooses others: "." is all of them, some 2,000, which take an hour. Those
that sinter refuses end in an error, ModelError.
"""

import os
import unittest

import numpy as np
import onnx
import onnx.backend.test
from onnx import TensorProto, helper

import sinter
import sinter.backend

# What a backend must bring along: types, free extents, empty tensors, several outputs, bodies, 4 bits.
SOME = "|".join(
    [
        "cast_FLOAT16_to_FLOAT", "if", "nonzero_example", "split_equal_parts_1d_opset18", "top_k", "dequantizelinear_int4",
        "ai_onnx_ml_array_feature_extractor", "sequence_model8",
    ]
)  # fmt: skip

backend_test = onnx.backend.test.BackendTest(sinter.backend, __name__)
backend_test.include(os.environ.get("SINTER_BACKEND_TESTS", rf"^test_({SOME})_cpu$"))
backend_test.exclude("_cuda$")
globals().update(backend_test.test_cases)


class Nodes(unittest.TestCase):
    def test_a_node_alone(self):
        a, b = np.float32([[1, 2]]), np.float32([[3], [4]])
        (y,) = sinter.backend.run_node(helper.make_node("Mul", ["a", "b"], ["y"]), [a, b])
        np.testing.assert_array_equal(y, [[3, 6], [4, 8]])

    def test_a_model_with_free_extents(self):
        graph = helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "M"])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        prepared = sinter.backend.prepare(model)
        for shape in ((1, 2), (3, 1)):
            x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
            np.testing.assert_array_equal(prepared.run([x])[0], np.maximum(x, 0))
            np.testing.assert_array_equal(prepared.run({"x": x})[0], np.maximum(x, 0))

    def test_what_is_refused(self):
        graph = helper.make_graph(
            [helper.make_node("StringConcat", ["a", "b"], ["y"])],
            "g",
            [helper.make_tensor_value_info(n, TensorProto.STRING, [1]) for n in "ab"],
            [helper.make_tensor_value_info("y", TensorProto.STRING, [1])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        with self.assertRaisesRegex(sinter.ModelError, "strings are not supported|text"):
            sinter.backend.prepare(model)
        self.assertFalse(sinter.backend.is_compatible(model))
        self.assertTrue(sinter.backend.supports_device("CPU"))
        self.assertFalse(sinter.backend.supports_device("CUDA"))


if __name__ == "__main__":
    unittest.main()
