"""A compiled model: its bundle in a folder, run here where this machine executes the target's code."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
import weakref
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import dtypes, program, tensor_file
from .comparison import Comparison, compare_with_onnxruntime
from .errors import UsageError
from .library import Library, Memory, fitting, report_in, save_bundle
from .runnable import Runnable, with_labels
from .targets import runs_here

Inputs = Union[Mapping[str, Any], Sequence[Any], None]


def compile(
    model: Any,
    target: str = "host",
    dims: Union[None, Mapping[str, Any], Iterable[str]] = None,
    *,
    output: Optional[program.Path] = None,
    **options: Any,
) -> "Model":
    """Compiles an ONNX model.

    Args:
        model: the path of an .onnx file, its bytes, or an ``onnx.ModelProto``.
        target: the processor, one of ``sinter.targets()``; "host" is this machine.
        dims: free extents: ``{"N": 4}`` fixes one, ``{"N": "<=8"}`` or ``{"N": (1, 8)}`` bounds it; a third number
            of the tuple is the step. Or the command line's own words, ``["N<=8"]``.
        output: the folder for the bundle; without it, one that goes with the model (``Model.save`` keeps it).
        options: the options of ``sinter compile`` with ``_`` for ``-``: ``threads=4``, ``fp16=True``,
            ``max_ram="8M"``, ``only=["scores"]``, ``weights="file"``, ``const={"size": 64}``,
            ``state=["hn=h0"]``, ``state_init={"h0": array}``,
            ``pre=["image: u8 bgr 640x480 scale=1/255"]`` (the input is a frame), ``post=["scores: topk=5"]``.

    Raises:
        ModelError: the model is refused; ``problems`` has every reason.
        UsageError: an option is wrong.

    >>> m = sinter.compile("net.onnx", dims={"N": "<=8"})
    >>> scores = m.run(images)
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sinter-"))
    try:
        source = program.source_of(model, folder)
        words = [f"--target={target}"] + program.dim_options(dims) + program.options(with_constants(options, folder))
        place = pathlib.Path(output) if output is not None else folder / "bundle"
        program.call(["compile", source.path, *words, "-o", place], source)
        compiled = Model(place, _source=source, _words=words)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(compiled, shutil.rmtree, str(folder), ignore_errors=True)
    return compiled


def load(folder: program.Path) -> "Model":
    """The model of a bundle that ``sinter compile`` or ``Model.save`` wrote to a folder."""
    return Model(folder)


class Model(Runnable):
    """A compiled model, made by ``sinter.compile`` or ``sinter.load``.

    Attributes:
        path: the folder of the bundle: NAME.h, NAME.cpp, NAME.weights and what they include.
        report: the layers and their memory, as ``sinter inspect --json`` tells them.
        name, target: as compiled.
        input_names, output_names: in the model's order.
    """

    def __init__(
        self,
        folder: program.Path,
        *,
        _source: Optional[program.Source] = None,
        _words: Sequence[str] = (),
    ) -> None:
        self.path = pathlib.Path(folder).absolute()
        self.report = report_in(self.path)
        if "models" in self.report:
            raise UsageError(f"{self.path} holds a bundle of several models: sinter.Pipeline({str(folder)!r})")
        self.name: str = self.report["name"]
        self.target: str = self.report["target"]
        self._set_tensors(self.report.get("inputs", []), self.report.get("outputs", []))
        self._source, self._words = _source, list(_words)
        self._library: Optional[Library] = None

    def __repr__(self) -> str:
        return f"<sinter.Model {self.name} for {self.target}: {self.input_names} -> {self.output_names}>"

    def run(self, *inputs: Any, on: Optional[str] = None) -> Any:
        """Runs the model.

        Arrays in the model's order give an array, or a tuple of arrays where the model has several outputs; a dict by
        names gives a dict by names. Lists and numbers are converted to the input's element type; arrays must have it.
        Outputs that the model declares as text are arrays of ``str``.

        The first run builds the bundle with this machine's C++ compiler. Code for another architecture runs under
        qemu, as ``sinter run`` does; ``on="ssh:HOST"`` runs it on another machine.

        Raises:
            UsageError: an array does not fit its input.
            RunError: the model returned an error.
            ToolchainError: there is no C++ compiler, or no emulator.
        """
        return self._run(inputs, lambda arrays: self.run_list(arrays, on))

    __call__ = run

    def reset(self) -> None:
        """Begins a new stream: the next run of a model with states (``--state``) finds what they begin with.

        Runs here carry the states on; under an emulator or on another machine each run is a stream of its own.
        """
        if runs_here(self.target):
            self._loaded().reset()

    def seed(self, number: int) -> None:
        """Begins the random numbers of a seed: of a model compiled with ``random="state"``.

        Runs that follow differ from each other; the same seed gives the same runs again. UsageError where the code
        doesn't run in this process (`sinter run --seed` begins a program's).
        """
        if not runs_here(self.target):
            raise UsageError(f"seed: code for {self.target} runs as a program of its own, each time from seed 0")
        self._loaded().seed(number)

    def run_list(self, inputs: Sequence[Any], on: Optional[str] = None) -> List[np.ndarray]:
        """The same from a list in the model's order to a list, however many outputs there are."""
        self._check_count(inputs)
        arrays = [fitting(t, value) for t, value in zip(self._inputs, inputs)]
        if on is None and runs_here(self.target):
            results = self._loaded().run(arrays)
        else:
            results = self._run_as_program(arrays, on)
        return [with_labels(t, result) for t, result in zip(self._outputs, results)]

    def build(self) -> pathlib.Path:
        """Builds the bundle's shared library where it isn't there already, and returns its path."""
        return pathlib.Path(program.call(["build", self.path]).strip().splitlines()[-1])

    def bench(
        self,
        repeat: int = 100,
        inputs: Inputs = None,
        on: Optional[str] = None,
        *,
        threads: Optional[Sequence[int]] = None,
        cores: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Times of the whole and of each layer in microseconds, memory, stack and code: what ``sinter bench`` writes.

        Without ``inputs``, on random ones of the greatest extents. ``threads=[1, 2, 4]`` measures the model compiled for
        each (``by_threads``); ``cores`` is "big", "little" or a list like "0,2-3".
        """
        source = self._source_for("bench")
        compiled = [w for w in self._words if threads is None or not w.startswith("--threads=")]
        with tempfile.TemporaryDirectory(prefix="sinter-") as work:
            folder = pathlib.Path(work)
            out = folder / "bench.json"
            words = [f"--repeat={repeat}", f"--json={out}"] + ([f"--on={on}"] if on else [])
            words += [f"--threads={','.join(map(str, threads))}"] if threads is not None else []
            words += [f"--cores={cores}"] if cores is not None else []
            program.call(["bench", source.path, *compiled, *words, *self._input_files(inputs, folder)], source)
            figures: Dict[str, Any] = json.loads(out.read_text())
            return figures

    def verify(
        self,
        against: str = "model",
        inputs: Inputs = None,
        *,
        rtol: float = 1e-3,
        atol: float = 1e-4,
        seed: int = 0,
        on: Optional[str] = None,
        html: Optional[program.Path] = None,
    ) -> Comparison:
        """Compares what the compiled model computes with what it should.

        Args:
            against: "model" compares every layer with a plain evaluation of the ONNX model (``sinter verify``);
                "onnxruntime" compares the outputs with ONNX Runtime's, which must be installed.
            inputs: arrays or a dict of them; without, seeded random ones.
            rtol: tolerance relative to each element.
            atol: tolerance relative to the tensor's greatest element.
            html: a page to write, with each layer's error (against the model).

        Raises:
            Difference: something differs; the text says what.
        """
        if html is not None and against != "model":
            raise UsageError('verify: html is a page of layers, which only against="model" compares')
        if against == "onnxruntime":
            source = self._source_for("verify")
            if any(word.startswith(("--pre=", "--post=")) for word in self._words):
                raise UsageError("verify: ONNX Runtime knows nothing of pre and post; compile the model without")
            given = self._in_order(inputs) if inputs is not None else self.random_inputs(seed)
            arrays = [np.asarray(v, dtypes.of_map(t).array_dtype()) for t, v in zip(self._inputs, given)]
            return compare_with_onnxruntime(
                source.path, self.input_names, self.output_names, arrays, self.run_list(arrays, on), rtol, atol
            )
        if against != "model":
            raise UsageError(f'verify: against is "model" or "onnxruntime", not "{against}"')
        with tempfile.TemporaryDirectory(prefix="sinter-") as work:
            words = [f"--rtol={rtol}", f"--atol={atol}", f"--seed={seed}"] + ([f"--on={on}"] if on else [])
            words += [f"--html={os.fspath(html)}"] if html is not None else []
            text = self._call_on_source("verify", words + self._input_files(inputs, pathlib.Path(work)))
        return Comparison(against="model", text=text.strip())

    def random_inputs(self, seed: int = 0) -> List[np.ndarray]:
        """Seeded random inputs of the greatest extents: floats in [-1, 1), integers 0 or 1, bytes of frames any."""
        random = np.random.default_rng(seed)
        arrays = []
        for t in self._inputs:
            dtype = dtypes.of_map(t).array_dtype()
            shape = [e["max"] if isinstance(e, dict) else e for e in t["shape"]]
            is_integer = dtype.kind in "iub" or "int" in dtype.name
            most = 256 if "frame" in t else 2
            values = random.integers(0, most, shape) if is_integer else random.uniform(-1, 1, shape)
            arrays.append(np.asarray(values).astype(dtype))
        return arrays

    def save(self, folder: program.Path) -> pathlib.Path:
        """Copies the bundle to a folder, which is made where it doesn't exist, and returns its path."""
        return save_bundle(self.path, self.report, folder)

    def _loaded(self) -> Library:
        if self._library is None:
            self._library = Library(Memory(self.build(), self.path, self.report), self.report)
        return self._library

    def _in_order(self, inputs: Inputs) -> Sequence[Any]:
        if isinstance(inputs, Mapping):
            return self._by_name(inputs)
        if isinstance(inputs, (list, tuple)):
            return inputs
        return [inputs]

    def _run_as_program(self, arrays: Sequence[np.ndarray], on: Optional[str]) -> List[np.ndarray]:
        with tempfile.TemporaryDirectory(prefix="sinter-") as work:
            folder = pathlib.Path(work)
            words = ["run", "--bundle", str(self.path)] + ([f"--on={on}"] if on else [])
            words += self._files(arrays, folder)
            outputs = [folder / f"output_{i}.pb" for i in range(len(self._outputs))]
            for name, file in zip(self.output_names, outputs):
                words += ["--out", f"{name}={file}"]
            program.call(words)
            return [tensor_file.read(file) for file in outputs]

    def _files(self, arrays: Sequence[np.ndarray], folder: pathlib.Path) -> List[str]:
        words = []
        for i, (t, array) in enumerate(zip(self._inputs, arrays)):
            file = folder / f"input_{i}.pb"
            tensor_file.write(file, dtypes.of_map(t).from_memory(array), dtypes.of_map(t))
            words += ["--in", f"{t['name']}={file}"]
        return words

    def _input_files(self, inputs: Inputs, folder: pathlib.Path) -> List[str]:
        if inputs is None:
            return []
        return self._files([fitting(t, v) for t, v in zip(self._inputs, self._in_order(inputs))], folder)

    def _source_for(self, what: str) -> program.Source:
        if self._source is None:
            raise UsageError(f"{what}: only of a model that sinter.compile made, not of one that was loaded")
        return self._source

    def _call_on_source(self, command: str, words: Sequence[str]) -> str:
        source = self._source_for(command)
        return program.call([command, source.path, *self._words, *words], source)


def with_constants(options: Dict[str, Any], folder: pathlib.Path) -> Dict[str, Any]:
    """The options with arrays of ``const`` and ``state_init`` as files in ``folder``."""
    named = {key: options[key] for key in ("const", "state_init") if isinstance(options.get(key), Mapping)}
    return {**options, **{key: _values(key, values, folder) for key, values in named.items()}}


def _values(key: str, values: Mapping[str, Any], folder: pathlib.Path) -> List[str]:
    words = []
    for i, (name, value) in enumerate(values.items()):
        if isinstance(value, (str, os.PathLike)):
            words.append(f"{name}={os.fspath(value)}")
        elif hasattr(value, "dtype"):
            file = folder / f"{key}_{i}.pb"
            tensor_file.write(file, np.asarray(value))
            words.append(f"{name}={file}")
        else:
            words.append(f"{name}=" + ",".join(str(v) for v in np.asarray(value).reshape(-1).tolist()))
    return words
