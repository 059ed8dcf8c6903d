"""``sinter.quantize``: a float model becomes one of 8 or 4 bits."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

import numpy as np

from . import program, tensor_file

Samples = Union[str, "os.PathLike[str]", Iterable[Any], None]


@dataclasses.dataclass
class Quantized:
    """A quantised model and what it costs.

    ``sinter.compile`` takes ``model`` as it is; ``report`` is what ``sinter quantize --report`` writes.
    """

    model: bytes = dataclasses.field(repr=False)
    report: Dict[str, Any]

    def save(self, path: program.Path) -> None:
        """Writes the model to a file."""
        pathlib.Path(path).write_bytes(self.model)


def quantize(
    model: Any,
    output: Optional[program.Path] = None,
    *,
    data: Samples = None,
    dims: Union[None, Mapping[str, Any], Iterable[str]] = None,
    **options: Any,
) -> Quantized:
    """Makes a float32 model one that computes with bytes, or (``weights_only=8`` or 4) one whose weights have fewer bits.

    Args:
        model: the path of an .onnx file, its bytes, or an ``onnx.ModelProto``.
        output: the file to write; without it the model is only returned.
        data: some dozens of samples: a folder as ``sinter quantize`` takes it, or an iterable of them, each an array,
            a list of arrays in the model's order, or a dict by names (in the model's order).
        options: the options of ``sinter quantize`` with ``_`` for ``-``: ``max_loss=35``, ``image="scale=1/255"``,
            ``keep_f32=["head"]``.
    """
    with tempfile.TemporaryDirectory(prefix="sinter-") as work:
        folder = pathlib.Path(work)
        source = program.source_of(model, folder)
        target = pathlib.Path(output) if output is not None else folder / "quantized.onnx"
        report = folder / "report.json"
        words = program.dim_options(dims) + program.options(options) + [f"--report={report}"]
        if data is not None:
            words.append(f"--data={_samples_in(data, folder / 'samples')}")
        program.call(["quantize", source.path, *words, "-o", target], source)
        return Quantized(target.read_bytes(), json.loads(report.read_text()) if report.exists() else {})


def _samples_in(data: Any, folder: pathlib.Path) -> str:
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    folder.mkdir()
    for i, sample in enumerate(data):
        arrays: List[Any] = [sample]
        if isinstance(sample, Mapping):
            arrays = list(sample.values())
        elif isinstance(sample, (list, tuple)):
            arrays = list(sample)
        if len(arrays) == 1:
            tensor_file.write(folder / f"{i:05}.pb", np.asarray(arrays[0]))
            continue
        (folder / f"{i:05}").mkdir()
        for k, array in enumerate(arrays):
            tensor_file.write(folder / f"{i:05}" / f"input_{k}.pb", np.asarray(array))
    return str(folder)
