"""Element types, extents, texts and files, on models made here; without the package onnx only tensors as files."""

import pathlib
import tempfile
import unittest

import numpy as np

import sinter
from sinter import dtypes, tensor_file

try:
    import onnx
    from onnx import TensorProto, helper
except ImportError:
    onnx = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

PLAIN = ["float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
EXTENDED = ["bfloat16", "float8e4m3fn", "float8e5m2", "float8e8m0", "int4", "uint4", "int2", "uint2", "float4e2m1"]
SHAPES = [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (5, 1, 3)]


def values(kind, shape, seed=0):
    """Any bits for 1- and 2-bit types, small numbers for others."""
    random = np.random.default_rng(seed)
    if kind.array_dtype().kind in "iub" or kind.is_sub_byte_integer():
        low = -2 if kind.name.startswith("i") else 0
        return np.asarray(random.integers(low, 2, shape)).astype(kind.array_dtype())
    return np.asarray(random.choice([0.5, 1, 2, 4], shape)).astype(kind.array_dtype())


class Files(unittest.TestCase):
    def test_every_type_and_shape_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "x.pb"
            for name in PLAIN + EXTENDED:
                kind = dtypes.BY_NAME[name]
                for shape in SHAPES:
                    x = kind.to_memory(values(kind, shape)) if name in PLAIN else np.zeros(shape, kind.memory)
                    if name not in PLAIN:
                        codes = np.random.default_rng(1).integers(0, 1 << kind.bits, shape)
                        x = np.asarray(codes).astype(np.uint8 if kind.bits <= 8 else np.uint16)
                        if kind.memory == np.int8:  # the sign goes up
                            x = np.asarray(x - ((x >> (kind.bits - 1)) << kind.bits)).astype(np.uint8).view(np.int8)
                    tensor_file.write(file, x, kind)
                    back = kind.to_memory(tensor_file.read(file))
                    self.assertEqual((back.shape, back.dtype), (shape, kind.memory), name)
                    np.testing.assert_array_equal(back, x, name)
                    if onnx and name not in ("int2", "uint2", "float8e8m0", "float4e2m1"):
                        proto = onnx.TensorProto()
                        proto.ParseFromString(file.read_bytes())
                        self.assertEqual(onnx.numpy_helper.to_array(proto).shape, shape)


@unittest.skipUnless(onnx, "the package onnx is missing")
class Models(unittest.TestCase):
    def model(self, nodes, inputs, outputs, initializers=(), opset=21):
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(*i) for i in inputs],
            [helper.make_tensor_value_info(*o) for o in outputs],
            list(initializers),
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

    def test_each_type_in_and_out_of_the_library_and_the_program(self):
        names = PLAIN + (["bfloat16", "float8e4m3fn", "int4", "uint4"] if ml_dtypes else [])
        kinds = [dtypes.BY_NAME[name] for name in names]
        tensors = [(f"{k.name}", k.onnx, ["N", 3]) for k in kinds]
        nodes = [helper.make_node("Transpose", [n], [n + "_t"], perm=[1, 0]) for n, _, _ in tensors]
        proto = self.model(nodes, tensors, [(n + "_t", t, [3, "N"]) for n, t, _ in tensors])
        model = sinter.compile(proto, dims={"N": "<=5"})
        arrays = [values(k, (4, 3), i) for i, k in enumerate(kinds)]
        for run in (model.run_list, lambda given: model._run_as_program([k.to_memory(a) for k, a in zip(kinds, given)], None)):
            for kind, x, y in zip(kinds, arrays, run(arrays)):
                self.assertEqual(y.dtype, kind.array_dtype())
                np.testing.assert_array_equal(y.astype(np.float64), x.T.astype(np.float64), kind.name)

    def test_scalars_and_no_inputs(self):
        add = helper.make_node("Add", ["x", "c"], ["y"])
        constant = helper.make_node("Constant", [], ["c"], value_float=2.0)
        model = sinter.compile(self.model([constant, add], [("x", TensorProto.FLOAT, [])], [("y", TensorProto.FLOAT, [])]))
        y = model.run(1.5)
        self.assertEqual((y.shape, float(y)), ((), 3.5))
        model = sinter.compile(self.model([constant], [], [("c", TensorProto.FLOAT, [])]))
        self.assertEqual(float(model.run()), 2.0)

    def test_extents_that_the_data_decide(self):
        nodes = [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Add", ["x", "x"], ["y"])]
        proto = self.model(nodes, [("x", TensorProto.FLOAT, ["N"])], [("i", TensorProto.INT64, [1, None]), ("y", TensorProto.FLOAT, ["N"])])
        model = sinter.compile(proto, dims={"N": "<=6"})
        indices, double = model.run(np.array([0, 2, 0, 3], np.float32))
        np.testing.assert_array_equal(indices, [[1, 3]])
        np.testing.assert_array_equal(double, [0, 4, 0, 6])

    def test_extents_that_do_not_go_together(self):
        proto = self.model(
            [helper.make_node("Add", ["a", "b"], ["y"])],
            [("a", TensorProto.FLOAT, ["N"]), ("b", TensorProto.FLOAT, ["N"])],
            [("y", TensorProto.FLOAT, ["N"])],
        )
        model = sinter.compile(proto, dims={"N": "<=6"})
        with self.assertRaises(sinter.RunError) as caught:
            model.run(np.zeros(2, np.float32), np.zeros(3, np.float32))
        self.assertEqual(caught.exception.code, 3)
        self.assertIn("the input b was given [3]", str(caught.exception))

    def test_an_index_outside_its_axis(self):
        data = onnx.numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
        proto = self.model(
            [helper.make_node("Gather", ["w", "i"], ["y"])],
            [("i", TensorProto.INT64, [1])],
            [("y", TensorProto.FLOAT, [1])],
            [data],
        )
        model = sinter.compile(proto)
        self.assertEqual(model.run([3])[0], 3)
        with self.assertRaises(sinter.RunError) as caught:
            model.run([4])
        self.assertEqual((caught.exception.code, caught.exception.exit_code), (5, 6))

    def test_texts_of_labels(self):
        node = helper.make_node(
            "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[1, 2], values_strings=["one", "two"], default_string="?"
        )
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.INT64, [3])],
            [helper.make_tensor_value_info("y", TensorProto.STRING, [3])],
        )
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]
        model = sinter.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10))
        self.assertEqual(model.run([2, 1, 7]).tolist(), ["two", "one", "?"])

    def test_constants(self):
        proto = self.model(
            [helper.make_node("Reshape", ["x", "shape"], ["y"])],
            [("x", TensorProto.FLOAT, [6]), ("shape", TensorProto.INT64, [2])],
            [("y", TensorProto.FLOAT, [None, None])],
        )
        for shape in ([2, 3], np.array([2, 3])):
            model = sinter.compile(proto, const={"shape": shape})
            self.assertEqual((model.input_names, model.run(np.arange(6, dtype=np.float32)).shape), (["x"], (2, 3)))

    def test_external_data_beside_a_path(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "net.onnx"
            weights = onnx.numpy_helper.from_array(np.arange(512, dtype=np.float32), "w")
            proto = self.model(
                [helper.make_node("Add", ["x", "w"], ["y"])],
                [("x", TensorProto.FLOAT, [512])],
                [("y", TensorProto.FLOAT, [512])],
                [weights],
            )
            onnx.save(proto, file, save_as_external_data=True, location="net.data", size_threshold=0)
            model = sinter.compile(file)
        np.testing.assert_array_equal(model.run(np.zeros(512, np.float32)), np.arange(512))


if __name__ == "__main__":
    unittest.main()
