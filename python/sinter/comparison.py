"""What a compiled model computed against what it should."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Sequence

import numpy as np

from .errors import Difference, UsageError


@dataclasses.dataclass
class OutputError:
    """How far one output is off."""

    name: str
    max_error: float  #: the greatest difference of two elements
    relative: float  #: that, of the output's greatest element


@dataclasses.dataclass
class Comparison:
    """The result of ``Model.verify``: all was within the tolerances, else ``Difference`` is raised."""

    against: str
    text: str
    outputs: List[OutputError] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return self.text


def compare_with_onnxruntime(
    path: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    inputs: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
    rtol: float,
    atol: float,
) -> Comparison:
    """Runs the model at ``path`` with ONNX Runtime and compares. Raises Difference where an output is further off."""
    try:
        import onnxruntime
    except ImportError:
        raise UsageError('verify: against="onnxruntime" needs the package onnxruntime') from None
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3  # errors: what it thinks of the model isn't asked
    session = onnxruntime.InferenceSession(path, quiet, providers=["CPUExecutionProvider"])
    feeds: Dict[str, Any] = dict(zip(input_names, inputs))
    references = session.run(list(output_names), feeds)
    rows = [_error(n, got, want) for n, got, want in zip(output_names, results, references)]
    bad = [n for n, got, want in zip(output_names, results, references) if not _agrees(got, want, rtol, atol)]
    lines = [f"{r.name}: off by {r.max_error:.3g} at most, {r.relative:.3g} of its greatest element" for r in rows]
    text = "\n".join(f"{'DIFFERS ' if r.name in bad else ''}{line}" for r, line in zip(rows, lines))
    if bad:
        raise Difference(f"against ONNX Runtime {onnxruntime.__version__}:\n{text}")
    return Comparison("onnxruntime", text, rows)


def _numbers(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


def _error(name: str, got: np.ndarray, want: Any) -> OutputError:
    if np.asarray(want).dtype.kind in "OSU" or np.shape(got) != np.shape(want) or np.size(want) == 0:
        return OutputError(name, 0.0 if _agrees(got, want, 0, 0) else float("inf"), 0.0)
    a, b = _numbers(got), _numbers(want)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    off = float(np.max(np.where(same, 0, np.abs(a - b))))
    finite = np.abs(b[np.isfinite(b)])
    greatest = float(finite.max()) if finite.size else 0.0
    return OutputError(name, off, off / greatest if greatest else off)


def _agrees(got: np.ndarray, want: Any, rtol: float, atol: float) -> bool:
    want = np.asarray(want)
    if np.shape(got) != want.shape:
        return False
    if want.dtype.kind in "OSU":
        return bool(np.all(np.asarray(got, str) == want.astype(str)))
    if want.dtype.kind in "iub":
        return bool(np.array_equal(got, want))
    a, b = _numbers(got), _numbers(want)
    finite = np.abs(b[np.isfinite(b)])
    floor = atol * (float(finite.max()) if finite.size else 0.0)
    return bool(np.allclose(a, b, rtol=rtol, atol=floor, equal_nan=True))
