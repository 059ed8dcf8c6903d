"""sinter.pipeline: two models as one program, on models that the repository has and on one made here."""

import os
import pathlib
import tempfile
import unittest

import numpy as np

import sinter

SOURCE = pathlib.Path(os.environ["SINTER_SOURCE_DIR"])
MLP = SOURCE / "generated" / "models" / "mlp.onnx"
DIGITS = SOURCE / "examples" / "digits" / "digits.onnx"


def rows(count, seed=1):
    return np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32)


class TwoModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.both = sinter.pipeline(
            {"tell": MLP, "read": DIGITS.read_bytes()}, "eye", dims={"tell": {"N": "<=8"}, "read": {"N": (1, 4)}}
        )

    def test_each_computes_what_it_does_alone(self):
        x = rows(3)
        images = np.random.default_rng(2).random((2, 1, 8, 8), np.float32)
        alone = sinter.compile(MLP, dims={"N": "<=8"}).run(x)
        np.testing.assert_array_equal(self.both["tell"].run(x), alone)
        digits = sinter.compile(DIGITS, dims={"N": "<=4"}).run(images)
        np.testing.assert_array_equal(self.both["read"].run(images), digits)
        np.testing.assert_array_equal(self.both["tell"]({"features": x})["scores"], alone)

    def test_it_is_a_mapping_of_models(self):
        self.assertEqual(list(self.both), ["tell", "read"])
        self.assertEqual(len(self.both), 2)
        self.assertEqual(self.both["tell"].input_names, ["features"])
        self.assertEqual(self.both["read"].output_names, ["logits"])
        with self.assertRaises(KeyError):
            self.both["find"]

    def test_what_does_not_fit_is_told(self):
        with self.assertRaisesRegex(sinter.UsageError, "axis 0 is 9"):
            self.both["tell"].run(rows(9))
        with self.assertRaisesRegex(sinter.UsageError, "eye_tell takes 1 inputs"):
            self.both["tell"].run()
        with self.assertRaisesRegex(sinter.UsageError, "sinter.compile takes one"):
            sinter.pipeline([MLP], "eye")
        with self.assertRaisesRegex(sinter.ModelError, "free"):
            sinter.pipeline({"a": MLP, "b": DIGITS}, "eye", dims={"a": {"N": 1}})
        with self.assertRaisesRegex(sinter.UsageError, "say which one"):
            sinter.pipeline({"a": MLP, "b": DIGITS}, "eye", dims=["N=1"])

    def test_its_folder_is_a_pipeline_again(self):
        with tempfile.TemporaryDirectory() as folder:
            self.both.save(folder)
            again = sinter.Pipeline(folder)
            np.testing.assert_array_equal(again["tell"].run(rows(2)), self.both["tell"].run(rows(2)))
            with self.assertRaisesRegex(sinter.UsageError, "several models: sinter.Pipeline"):
                sinter.load(folder)
            with self.assertRaisesRegex(sinter.UsageError, "only of a pipeline that sinter.pipeline made"):
                again.verify()

    def test_verify_compares_every_layer_of_all(self):
        text = self.both.verify().text
        self.assertIn("eye_tell: ", text)
        self.assertIn("eye_read: ", text)


class Alive(unittest.TestCase):
    """An output that stays in the arena, and a model that reads it there."""

    def setUp(self):
        # The scores of the first are four numbers; the second is a model that takes four, made by hand: protobuf's
        # bytes of y = x + x, opset 17.
        def field(number, data):
            return bytes([number << 3 | 2, len(data)]) + data

        def dim(n):
            return field(1, bytes([8, n]) if isinstance(n, int) else field(2, n))

        def tensor(name):
            shape = field(2, dim(b"N") + dim(4))
            return field(1, name) + field(2, field(1, bytes([8, 1]) + shape))

        node = field(1, b"x") + field(1, b"x") + field(2, b"y") + field(4, b"Add")
        graph = field(1, node) + field(2, b"g") + field(11, tensor(b"x")) + field(12, tensor(b"y"))
        twice = bytes([8, 8]) + field(7, graph) + field(8, bytes([16, 17]))
        self.both = sinter.pipeline(
            {"see": MLP, "tell": twice},
            "eye",
            dims={"see": {"N": "<=8"}, "tell": {"N": "<=8"}},
            alive=["see:scores=tell:x"],
        )

    def test_the_reader_finds_what_the_other_left(self):
        see, tell = self.both["see"], self.both["tell"]
        self.assertEqual(tell.input_names, [])
        with self.assertRaisesRegex(sinter.UsageError, "eye_see, which has not run"):
            tell.run()
        for count in (3, 8, 1):
            scores = see.run(rows(count, count))
            self.assertEqual(scores.shape, (count, 4))
            for _ in range(2):
                np.testing.assert_array_equal(tell.run(), scores + scores)
        kept = scores.copy()
        see.run(rows(5))
        np.testing.assert_array_equal(scores, kept)  # what was given out is the caller's own


if __name__ == "__main__":
    unittest.main()
