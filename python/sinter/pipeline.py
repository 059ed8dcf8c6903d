"""Several models that are one program: one arena, equal weights once, tensors that stay between their runs."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import weakref
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import program
from .comparison import Comparison
from .errors import UsageError
from .library import Library, Memory, fitting, report_in, save_bundle
from .model import with_constants
from .runnable import Runnable, with_labels
from .targets import runs_here

Models = Union[Mapping[str, Any], Sequence[program.Path]]


def pipeline(
    models: Models,
    name: str,
    target: str = "host",
    dims: Union[None, Mapping[str, Any], Iterable[str]] = None,
    *,
    alive: Sequence[str] = (),
    output: Optional[program.Path] = None,
    **options: Any,
) -> "Pipeline":
    """Compiles several models into one bundle (docs/pipelines.md).

    Args:
        models: in the order in which they run: a dict of names and models, each as ``sinter.compile`` takes it, or
            a list of paths, whose names are those of the files.
        name: the bundle's, which all names in C begin with.
        target: the processor, one of ``sinter.targets()``.
        dims: the free extents of each model, ``{"read": {"N": "<=8"}}``; or the command line's words,
            ``["read:N<=8"]``.
        alive: outputs that stay while others run, ``"see:features"``, and who reads them, ``"see:features=tell:x"``.
        output: the folder for the bundle; without it, one that goes with the pipeline.
        options: those of ``sinter compile``; what speaks of one model's names is a dict by models
            (``only={"read": ["scores"]}``) or has the model in front (``only=["read:scores"]``).

    Raises:
        ModelError: a model is refused; ``problems`` has every reason of all.
        UsageError: an option is wrong.

    >>> eye = sinter.pipeline({"find": "find.onnx", "read": "read.onnx"}, "eye", dims={"read": {"N": "<=8"}})
    >>> boxes, scores = eye["find"].run(frame)
    >>> text = eye["read"].run(crops)
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sinter-"))
    try:
        sources, arguments = _sources(models, folder)
        words = [f"--name={name}", f"--target={target}"] + _dims(dims) + [f"--alive={a}" for a in alive]
        words += program.options(_by_model(options, folder))
        place = pathlib.Path(output) if output is not None else folder / "bundle"
        program.call(["compile", *arguments, *words, "-o", place], sources)
        compiled = Pipeline(place, _sources=sources, _words=[*arguments, *words])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(compiled, shutil.rmtree, str(folder), ignore_errors=True)
    return compiled


class Part(Runnable):
    """One model of a pipeline: ``pipeline["read"]``.

    Attributes:
        name: in C, with the pipeline's in front.
        input_names: what a run takes, without what it finds in the arena.
        output_names: in the model's order.
    """

    def __init__(self, pipeline: "Pipeline", report: Dict[str, Any]) -> None:
        self._pipeline, self._report = pipeline, report
        self.name = report["name"]
        read = {r["input"] for t in pipeline.report.get("lasting", []) for r in t["read_as"] if r["model"] == self.name}
        self._set_tensors([t for t in report.get("inputs", []) if t["name"] not in read], report.get("outputs", []))
        self._library: Optional[Library] = None

    def __repr__(self) -> str:
        return f"<sinter.Part {self.name}: {self.input_names} -> {self.output_names}>"

    def run(self, *inputs: Any) -> Any:
        """Runs the model, as ``Model.run``. Outputs that stay in the arena are copied from there."""
        return self._run(inputs, self.run_list)

    __call__ = run

    def run_list(self, inputs: Sequence[Any]) -> List[np.ndarray]:
        """The same from a list in the model's order to a list, however many outputs there are."""
        self._check_count(inputs)
        arrays = [fitting(t, value) for t, value in zip(self._inputs, inputs)]
        return [with_labels(t, r) for t, r in zip(self._outputs, self._loaded().run(arrays))]

    def reset(self) -> None:
        """Begins a new stream: the next run of a model with states finds what they begin with."""
        self._loaded().reset()

    def seed(self, number: int) -> None:
        """Begins the random numbers of a seed: of models compiled with ``random="state"``."""
        self._loaded().seed(number)

    def _loaded(self) -> Library:
        if self._library is None:
            self._library = Library(self._pipeline._shared(), self._report)
        return self._library


class Pipeline:
    """Several compiled models, made by ``sinter.pipeline``, or of a folder that ``sinter compile`` wrote.

    A mapping of names to models. The first run of any builds the bundle with this machine's C++ compiler.

    Attributes:
        path: the folder of the bundle.
        report: what the models are and their memory: NAME.map.
        name, target: as compiled.
    """

    def __init__(
        self, folder: program.Path, *, _sources: Sequence[program.Source] = (), _words: Sequence[str] = ()
    ) -> None:
        self.path = pathlib.Path(folder).absolute()
        self.report = report_in(self.path)
        if "models" not in self.report:
            raise UsageError(f"{self.path} holds a bundle of one model: sinter.load({str(folder)!r})")
        self.name: str = self.report["name"]
        self.target: str = self.report["target"]
        self._sources, self._words = list(_sources), list(_words)
        self._parts = {m["name"][len(self.name) + 1 :]: Part(self, m) for m in self.report["models"]}
        self._memory: Optional[Memory] = None

    def __repr__(self) -> str:
        return f"<sinter.Pipeline {self.name} for {self.target}: {list(self._parts)}>"

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def verify(self, *, rtol: float = 1e-3, atol: float = 1e-4, seed: int = 0) -> Comparison:
        """Compares every layer of every model with a plain evaluation (``sinter verify``).

        Raises:
            Difference: something differs; the text says what.
        """
        if not self._words:
            raise UsageError("verify: only of a pipeline that sinter.pipeline made, not of one that was loaded")
        words = [f"--rtol={rtol}", f"--atol={atol}", f"--seed={seed}"]
        text = program.call(["verify", *self._words, *words], self._sources)
        return Comparison(against="model", text=text.strip())

    def build(self) -> pathlib.Path:
        """Builds the bundle's shared library where it isn't there already, and returns its path."""
        return pathlib.Path(program.call(["build", self.path]).strip().splitlines()[-1])

    def save(self, folder: program.Path) -> pathlib.Path:
        """Copies the bundle to a folder, which is made where it doesn't exist, and returns its path."""
        return save_bundle(self.path, self.report, folder)

    def _shared(self) -> Memory:
        if self._memory is None:
            if not runs_here(self.target):
                raise UsageError(f"{self.name} is for {self.target}, whose code this machine doesn't execute")
            self._memory = Memory(self.build(), self.path, self.report)
        return self._memory


def _sources(models: Models, folder: pathlib.Path) -> Tuple[List[program.Source], List[str]]:
    if isinstance(models, (str, bytes)):
        raise TypeError("models are a dict of names and models, or a list of paths")
    sources, arguments = [], []
    for name, model in models.items() if isinstance(models, Mapping) else [("", m) for m in models]:
        if not name:
            source = program.Source(os.fspath(model), os.fspath(model))
        else:
            (folder / name).mkdir(parents=True)
            source = program.source_of(model, folder / name)
            if not isinstance(model, (str, os.PathLike)):
                source = source._replace(shown=name)
        sources.append(source)
        arguments.append(f"{name}={source.path}" if name else source.path)
    if len(sources) < 2:
        raise UsageError("a pipeline is of two models or more; sinter.compile takes one")
    return sources, arguments


def _dims(dims: Union[None, Mapping[str, Any], Iterable[str]]) -> List[str]:
    if not isinstance(dims, Mapping):
        return program.dim_options(dims)
    words = []
    for model, own in dims.items():
        words += [word.replace("--dim=", f"--dim={model}:", 1) for word in program.dim_options(own)]
    return words


def _by_model(options: Dict[str, Any], folder: pathlib.Path) -> Dict[str, Any]:
    """Options that are dicts by models as lists with the model in front."""
    words: Dict[str, Any] = {}
    for option, value in options.items():
        if not isinstance(value, Mapping):
            words[option] = value
            continue
        words[option] = []
        for model, own in value.items():
            if option == "const":
                (folder / f"const_{model}").mkdir()
                own = with_constants({"const": own}, folder / f"const_{model}")["const"]
            words[option] += [f"{model}:{word}" for word in (own if isinstance(own, (list, tuple)) else [own])]
    return words
