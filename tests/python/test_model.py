"""sinter.compile and what a Model does, on models that the repository has: no onnx is needed."""

import os
import pathlib
import shutil
import tempfile
import threading
import unittest
import warnings

import numpy as np

import sinter

MLP = pathlib.Path(os.environ["SINTER_SOURCE_DIR"]) / "generated" / "models" / "mlp.onnx"


def rows(count, seed=1):
    return np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32)


class Compiled(unittest.TestCase):
    """One model, compiled and built once for all."""

    @classmethod
    def setUpClass(cls):
        cls.model = sinter.compile(MLP, dims={"N": "<=8"})

    def test_arrays_give_an_array_and_names_give_names(self):
        x = rows(3)
        y = self.model.run(x)
        self.assertEqual((y.dtype, y.shape), (np.float32, (3, 4)))
        named = self.model.run({"features": x})
        self.assertEqual(list(named), ["scores"])
        np.testing.assert_array_equal(named["scores"], y)
        np.testing.assert_array_equal(self.model(x), y)

    def test_each_row_is_computed_alone(self):
        x = rows(8)
        np.testing.assert_allclose(
            self.model.run(x), np.concatenate([self.model.run(x[i : i + 1]) for i in range(8)]), rtol=1e-5, atol=1e-6
        )

    def test_lists_become_the_inputs_type_and_views_become_contiguous(self):
        x = rows(4)
        np.testing.assert_array_equal(self.model.run(x.tolist()), self.model.run(x))
        twice = np.repeat(x, 2, axis=1)
        np.testing.assert_array_equal(self.model.run(twice[:, ::2]), self.model.run(x))
        np.testing.assert_array_equal(self.model.run(x.astype(">f4")), self.model.run(x))

    def test_what_does_not_fit_is_told(self):
        for value, said in (
            (rows(9), "it was given float32[9,16]: axis 0 is 9"),
            (rows(2).astype(np.float64), "takes float32[N (1..8),16], it was given float64[2,16]"),
            (rows(2)[0], "float32[16]: 1 axes"),
        ):
            with self.assertRaises(sinter.UsageError) as caught:
                self.model.run(value)
            self.assertIn(said, str(caught.exception))
        for inputs in ((), (rows(1), rows(1))):
            with self.assertRaisesRegex(sinter.UsageError, "takes 1 inputs"):
                self.model.run(*inputs)
        with self.assertRaisesRegex(sinter.UsageError, "no input 'image'; the inputs are \\['features'\\]"):
            self.model.run({"image": rows(1)})
        with self.assertRaisesRegex(sinter.UsageError, "nothing for the input 'features'"):
            self.model.run({})

    def test_many_threads_at_once(self):
        x, want, wrong = rows(8), self.model.run(rows(8)), []

        def work():
            for _ in range(20):
                if not np.array_equal(self.model.run(x), want):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_report_and_bench(self):
        self.assertEqual([t["name"] for t in self.model.report["inputs"]], ["features"])
        self.assertGreater(len(self.model.report["layers"]), 0)
        figures = self.model.bench(repeat=3)
        self.assertGreater(figures["median_us"], 0)
        self.assertEqual(len(figures["layers"]), len(self.model.report["layers"]))
        with self.assertRaisesRegex(sinter.UsageError, "against is"):
            self.model.verify(against="hearsay")

    def test_bench_of_several_numbers_of_threads(self):
        m = sinter.compile(MLP, dims={"N": 4}, threads=3)
        self.assertEqual(m.bench(repeat=1)["threads"], 3)
        figures = m.bench(repeat=1, threads=[1, 2])
        self.assertEqual([t["threads"] for t in figures["by_threads"]], [1, 2])
        with self.assertRaisesRegex(sinter.UsageError, "there is no core 4001"):
            m.bench(repeat=1, cores="4001")

    def test_verify_draws_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            try:
                self.model.verify(inputs=rows(3), html=page)
            except sinter.ModelError as error:  # a compiler without the libraries that draw
                self.assertIn("libjs-d3", str(error))
            else:
                self.assertIn('"verified"', page.read_text())
        with self.assertRaisesRegex(sinter.UsageError, "html is a page of layers"):
            self.model.verify(against="onnxruntime", html="page.html")

    def test_verify(self):
        self.assertIn("layers compared", str(self.model.verify(inputs=rows(3))))
        with self.assertRaises(sinter.Difference) as caught:
            self.model.verify(rtol=0, atol=1e-12)
        self.assertEqual(caught.exception.exit_code, 1)

    def test_against_onnxruntime(self):
        try:
            import onnxruntime  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(sinter.UsageError, "needs the package onnxruntime"):
                self.model.verify(against="onnxruntime")
            return
        comparison = self.model.verify(against="onnxruntime", inputs=rows(5))
        self.assertLess(comparison.outputs[0].relative, 1e-5)
        with self.assertRaisesRegex(sinter.Difference, "DIFFERS scores"):
            self.model.verify(against="onnxruntime", rtol=0, atol=0)

    def test_saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            place = self.model.save(pathlib.Path(folder) / "net")
            self.assertTrue((place / "mlp.h").exists())
            loaded = sinter.load(place)
            np.testing.assert_array_equal(loaded.run(rows(2)), self.model.run(rows(2)))
            with self.assertRaisesRegex(sinter.UsageError, "only of a model that sinter.compile made"):
                loaded.bench()
        with tempfile.TemporaryDirectory() as empty, self.assertRaisesRegex(sinter.UsageError, "holds no bundle"):
            sinter.load(empty)


class Compiling(unittest.TestCase):
    def test_dims_are_spelled_in_many_ways(self):
        for dims, low, high in (
            ({"N": 4}, 4, 4),
            ({"N": "<=4"}, 1, 4),
            ({"N": (2, 4)}, 2, 4),
            ({"N": range(2, 5)}, 2, 4),
            ({"N": "2..4"}, 2, 4),
            (["N<=4"], 1, 4),
            ("N=4", 4, 4),
        ):
            extent = sinter.compile(MLP, dims=dims).report["inputs"][0]["shape"][0]
            got = (extent["min"], extent["max"]) if isinstance(extent, dict) else (extent, extent)
            self.assertEqual(got, (low, high), dims)

    def test_bytes_are_a_model(self):
        with tempfile.TemporaryDirectory() as folder:
            model = sinter.compile(MLP.read_bytes(), dims={"N": 2}, output=pathlib.Path(folder) / "net", name="tiny")
            self.assertEqual((model.name, model.path), ("tiny", pathlib.Path(folder) / "net"))
            self.assertTrue((pathlib.Path(folder) / "net" / "tiny.cpp").exists())

    def test_weights_in_a_file_threads_and_trace(self):
        want = sinter.compile(MLP, dims={"N": 2}).run(rows(2))
        for options in ({"weights": "file", "threads": 2}, {"trace": True}):
            np.testing.assert_array_equal(sinter.compile(MLP, dims={"N": 2}, **options).run(rows(2)), want, str(options))

    def test_seeds_of_random_numbers(self):
        # y = RandomNormalLike(x), float32[4].
        noise = bytes.fromhex(
            "080812003a3f0a180a0178120179221052616e646f6d4e6f726d616c4c696b651201675a0f0a0178120a0a0808011204"
            "0a020804620f0a0179120a0a08080112040a02080442040a001011"
        )
        model, x = sinter.compile(noise, random="state"), np.zeros(4, np.float32)
        first = [model.run(x) for _ in range(3)]
        self.assertEqual(len({run.tobytes() for run in first}), 3)
        for number, again in ((0, True), (1, False), (2**64 - 1, False), (0, True)):
            model.seed(number)
            for run in first:
                self.assertEqual(np.array_equal(model.run(x), run), again, number)
        with self.assertRaises(sinter.UsageError):
            sinter.compile(noise).seed(1)
        other = sinter.compile(noise, random="state", target="aarch64")
        if not next(t for t in sinter.targets() if t.name == other.target).runs_here:
            with self.assertRaises(sinter.UsageError):
                other.seed(1)

    def test_what_states_begin_with(self):
        # y = x + h, n = -y of float32[2]; h has the initializer 3, 4.
        net = bytes.fromhex(
            "080812003a770a0e0a01780a016812017922034164640a0b0a017912016e22034e65671201672a11080210014201684a"
            "0800004040000080405a0f0a0178120a0a08080112040a0208025a0f0a0168120a0a08080112040a020802620f0a0179"
            "120a0a08080112040a020802620f0a016e120a0a08080112040a02080242040a001011"
        )
        x = np.ones(2, np.float32)
        for options, first in (({}, [4, 5]), ({"state_init": {"h": 7}}, [8, 8]), ({"state_init": {"h": x}}, [2, 2])):
            model = sinter.compile(net, state=["n=h"], **options)
            for _ in range(2):
                model.reset()
                np.testing.assert_array_equal(model.run(x), first, str(options))
                np.testing.assert_array_equal(model.run(x), x - first)
        self.assertEqual(sinter.compile(net).input_names, ["x"])

    def test_another_architecture(self):
        other = "aarch64" if not next(t for t in sinter.targets() if t.name == "aarch64").runs_here else "avx2"
        model = sinter.compile(MLP, target=other, dims={"N": "<=3"})
        try:
            y = model.run(rows(2))
        except sinter.ToolchainError as error:
            self.skipTest(str(error))
        np.testing.assert_allclose(y, sinter.compile(MLP, dims={"N": 2}).run(rows(2)), rtol=1e-4, atol=1e-5)

    def test_refusals_are_the_command_lines(self):
        with self.assertRaises(sinter.ModelError) as caught:
            sinter.compile(MLP)
        error = caught.exception
        self.assertEqual((error.exit_code, error.options), (3, ["--dim"]))
        self.assertEqual(str(error), f"{MLP}: {error.problems[0]}")
        self.assertTrue(error.problems[0].startswith('the dim "N" (input "features" axis 0) is free'))
        for model, said in ((b"no model", "model.onnx: not an ONNX model"), ("nowhere.onnx", "does not exist")):
            with self.assertRaisesRegex(sinter.ModelError, said):
                sinter.compile(model)
        with self.assertRaisesRegex(sinter.UsageError, 'there is no option "--thread"; did you mean "--threads"'):
            sinter.compile(MLP, dims={"N": 1}, thread=2)
        with self.assertRaisesRegex(sinter.UsageError, "--target"):
            sinter.compile(MLP, target="cortex-a7", dims={"N": 1})
        with self.assertRaises(TypeError):
            sinter.compile(17)

    def test_no_cxx_compiler(self):
        model = sinter.compile(MLP, dims={"N": 1})
        before = {name: os.environ.get(name) for name in ("PATH", "CXX")}
        os.environ.pop("CXX", None)
        os.environ["PATH"] = "/nowhere"
        try:
            with self.assertRaisesRegex(sinter.ToolchainError, "no C\\+\\+ compiler: set CXX, or install g\\+\\+"):
                model.run(rows(1))
        finally:
            for name, value in before.items():
                if value is not None:
                    os.environ[name] = value
        self.assertEqual(model.run(rows(1)).shape, (1, 4))

    def test_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sinter.compile(MLP, target="cortex-a72", dims={"N": 1}, fp16=True)
        self.assertEqual([w.category for w in caught], [sinter.ModelWarning])
        self.assertIn("--fp16", str(caught[0].message))

    def test_quantized(self):
        samples = [rows(1, seed) for seed in range(6)]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "mlp_int8.onnx"
            quantized = sinter.quantize(MLP, file, data=({"features": s} for s in samples), dims={"N": 1})
            self.assertEqual(file.read_bytes(), quantized.model)
        self.assertIn("outputs", quantized.report)
        self.assertNotIn("model=", repr(quantized))
        x = samples[0]
        exact = sinter.compile(MLP, dims={"N": 1}).run(x)
        np.testing.assert_allclose(
            sinter.compile(quantized.model, dims={"N": 1}).run(x), exact, atol=0.1 * np.abs(exact).max()
        )

    def test_targets_and_version(self):
        names = [t.name for t in sinter.targets()]
        self.assertIn("cortex-a72", names)
        self.assertRegex(sinter.version, r"^\d+\.\d+\.\d+$")
        self.assertTrue(next(t for t in sinter.targets() if t.name == "scalar").runs_here)


class Command(unittest.TestCase):
    def test_it_is_the_compiler(self):
        import subprocess
        import sys

        done = subprocess.run([sys.executable, "-m", "sinter", "--version"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, f"sinter {sinter.version}"))

    def test_without_a_compiler_it_says_so(self):
        import subprocess
        import sys

        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "sinter"
            shutil.copytree(pathlib.Path(sinter.__file__).parent, package, ignore=shutil.ignore_patterns("bin", "__*__"))
            for name in ("__init__.py", "__main__.py"):
                shutil.copy(pathlib.Path(sinter.__file__).parent / name, package / name)
            environment = {"PATH": "/nowhere", "PYTHONPATH": folder}
            done = subprocess.run([sys.executable, "-m", "sinter"], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sinter: no sinter: ", done.stderr)


class Frames(unittest.TestCase):
    """A camera's frame in, a mask out."""

    def test_a_frame_is_an_array_and_the_mask_has_its_pixels(self):
        model = MLP.parents[2] / "examples" / "segmentation" / "segmentation.onnx"
        frame = np.random.default_rng(3).integers(0, 256, (96, 128, 3), np.uint8)
        words = "image: u8 bgr 128x96 stride=400 resize=letterbox scale=1/255"
        m = sinter.compile(model, pre=[words], post=["mask: u8 threshold=0.5 resize=input"])
        mask = m.run(frame)
        self.assertEqual((mask.dtype, mask.shape), (np.uint8, (96, 128)))
        # The same by hand: the frame is in the middle of the model's 128 x 128 pixels.
        image = np.zeros((1, 3, 128, 128), np.float32)
        image[0, :, 16:112] = np.moveaxis(frame[:, :, ::-1], 2, 0) / np.float32(255)
        probability = sinter.compile(model).run(image)[0, 0, 16:112]
        sure = np.abs(probability - 0.5) > 1e-3
        np.testing.assert_array_equal(mask[sure], (probability > 0.5)[sure])
        rows = np.zeros((96, 400), np.uint8)
        rows[:, :384] = frame.reshape(96, 384)
        np.testing.assert_array_equal(m.run(rows), mask)
        self.assertEqual(m.random_inputs()[0].shape, (96, 400))
        with self.assertRaises(sinter.UsageError):
            m.verify(against="onnxruntime")

    def test_words_that_are_wrong_are_told(self):
        with self.assertRaises(sinter.UsageError) as caught:
            sinter.compile(MLP, dims={"N": 1}, pre=["features: u8 rgbb 4x4"])
        self.assertIn('did you mean "rgb"?', str(caught.exception))


if __name__ == "__main__":
    unittest.main()
