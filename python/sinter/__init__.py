"""sinter compiles an ONNX model into C++ that runs that model and no other.

>>> import sinter
>>> m = sinter.compile("net.onnx", target="host", dims={"N": "<=8"})
>>> scores = m.run(images)
>>> m.verify(against="onnxruntime")

The package carries the compiler, which is the command ``sinter`` too. To run a model, it needs a C++ compiler on this
machine; to compile one for a board, it needs none.
"""

from __future__ import annotations

from typing import Any

from .comparison import Comparison, OutputError
from .errors import (
    CompilerBug,
    Difference,
    ModelError,
    ModelWarning,
    RunError,
    SinterError,
    ToolchainError,
    UsageError,
)
from .model import Model, compile, load
from .pipeline import Part, Pipeline, pipeline
from .program import cmake_dir, executable
from .quantizing import Quantized, quantize
from .targets import Target, targets

__all__ = [
    "Comparison",
    "CompilerBug",
    "Difference",
    "Model",
    "ModelError",
    "ModelWarning",
    "OutputError",
    "Part",
    "Pipeline",
    "Quantized",
    "RunError",
    "SinterError",
    "Target",
    "ToolchainError",
    "UsageError",
    "cmake_dir",
    "compile",
    "executable",
    "load",
    "pipeline",
    "quantize",
    "targets",
    "version",
]

version: str


def __getattr__(name: str) -> Any:
    # The version is the compiler's, asked only by who wants it; the backend needs the package onnx.
    if name in ("version", "__version__"):
        from .program import version_of

        return version_of()
    if name == "backend":
        import importlib

        return importlib.import_module(".backend", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
