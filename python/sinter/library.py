"""Compiled models in this process: their bundle's shared library, called by ctypes.

The structs of NAME.h are made from NAME.map: for each tensor a pointer, and its extents where some are free. Runs may
come from several threads at once: each takes an arena of its own, and Python's lock is open meanwhile. Those of a model
with states come one after the other: a Library is one stream of runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import pathlib
import shutil
import threading
import weakref
from typing import Any, Collection, Dict, Iterator, List, Optional, Sequence, Tuple, Type

import numpy as np

from . import dtypes
from .errors import RunError, UsageError
from .program import Path

_TRACE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
    ctypes.c_void_p, ctypes.c_int64,
)  # fmt: skip


def aligned(size: int) -> np.ndarray:
    """Bytes at an address that 64 divides; at least one."""
    room = np.empty(max(size, 1) + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + max(size, 1)]


def is_dynamic(tensor: Dict[str, Any]) -> bool:
    """Whether an extent of a map's tensor is free: the struct then has its extents."""
    return any(isinstance(extent, dict) for extent in tensor["shape"])


def _struct(tensors: Sequence[Dict[str, Any]], without: Collection[str] = ()) -> Type[ctypes.Structure]:
    fields: List[Any] = []
    for t in tensors:
        if t["name"] not in without:
            fields.append((t["member"], ctypes.c_void_p))
        if is_dynamic(t):
            fields.append((t["member"] + "_dims", ctypes.c_int64 * len(t["shape"])))
    return type("Tensors", (ctypes.Structure,), {"_fields_": fields or [("unused", ctypes.c_int)]})


def report_in(folder: pathlib.Path) -> Dict[str, Any]:
    """NAME.map of the bundle in a folder."""
    maps = sorted(folder.glob("*.map"))
    if len(maps) != 1:
        raise UsageError(f"{folder} holds {'more than one' if maps else 'no'} bundle")
    report: Dict[str, Any] = json.loads(maps[0].read_text(encoding="utf-8", errors="replace"))
    return report


def save_bundle(bundle: pathlib.Path, report: Dict[str, Any], folder: Path) -> pathlib.Path:
    """Copies a bundle's files to a folder, which is made where it doesn't exist, and returns its path."""
    place = pathlib.Path(folder)
    for file in report["files"]:
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bundle / file, place / file)
    return place


class Memory:
    """A bundle's shared library and what its models have in common: weights, threads, arenas.

    Where tensors outlive a run (``lasting`` in the map), there is one arena, and models run one after the other.
    """

    def __init__(self, path: pathlib.Path, folder: pathlib.Path, report: Dict[str, Any]) -> None:
        self.library = ctypes.CDLL(str(path))
        self.weights = _weights(folder, report) if report["weights"] == "file" else None
        self.pool = self._start_pool(report["threads"]) if report["threads"] > 1 else None
        self.trace = _TRACE(lambda *_: None) if report["trace"] else None
        self.lasting: List[Dict[str, Any]] = report.get("lasting", [])
        self.shapes: Dict[Tuple[str, str], List[int]] = {}  # of what lies in the arena, by model and output
        self._arena_bytes: int = report["arena_bytes"]
        self._lock = threading.Lock()
        self._turn: Any = threading.Lock() if self.lasting else contextlib.nullcontext()
        self._arenas: List[np.ndarray] = []  # those that no run has now

    @contextlib.contextmanager
    def arena(self) -> Iterator[np.ndarray]:
        """An arena that no other run has meanwhile."""
        with self._turn:
            with self._lock:
                arena = self._arenas.pop() if self._arenas else aligned(self._arena_bytes)
            try:
                yield arena
            finally:
                with self._lock:
                    self._arenas.append(arena)

    def _start_pool(self, threads: int) -> int:
        start, stop = self.library.sinter_start_pool, self.library.sinter_stop_pool
        start.restype, start.argtypes = ctypes.c_void_p, [ctypes.c_int]
        stop.restype, stop.argtypes = None, [ctypes.c_void_p]
        pool: int = start(threads)
        weakref.finalize(self, stop, pool)
        return pool


class Library:
    """The functions of one model of a bundle."""

    def __init__(self, memory: Memory, report: Dict[str, Any]) -> None:
        self._memory = memory
        self._name = name = report["name"]
        # What lies in the arena: outputs that last, and the outputs of others by the inputs that read them.
        self._kept = {t["output"] for t in memory.lasting if t["model"] == name}
        self._read = {
            r["input"]: (t["model"], t["output"]) for t in memory.lasting for r in t["read_as"] if r["model"] == name
        }
        every: List[Dict[str, Any]] = report.get("inputs", [])
        self.inputs = [t for t in every if t["name"] not in self._read]
        self.outputs: List[Dict[str, Any]] = report.get("outputs", [])
        self._found = [t for t in every if t["name"] in self._read]
        self._run = getattr(memory.library, name + "_run")
        self._run.restype = ctypes.c_int
        self._error = getattr(memory.library, name + "_error")
        self._error.restype, self._error.argtypes = ctypes.c_char_p, [ctypes.c_int]
        self._in_type, self._out_type = _struct(every, self._read), _struct(self.outputs)
        self._state = aligned(report["state_bytes"]) if "state_bytes" in report else None
        self._stream: Any = threading.Lock() if self._state is not None else contextlib.nullcontext()
        self.reset()

    def reset(self) -> None:
        """Begins a stream: the next run finds the states' first values, zeros where they have none of their own."""
        if self._state is not None:
            function = getattr(self._memory.library, self._name + "_reset")
            function.restype, function.argtypes = None, [ctypes.c_void_p]
            with self._stream:
                function(self._state.ctypes.data)

    def seed(self, number: int) -> None:
        """Begins the random numbers of a seed."""
        function = getattr(self._memory.library, self._name + "_seed", None)
        if function is None:
            raise UsageError('seed: the model isn\'t compiled with random="state", or nothing in it is random')
        function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_uint64]
        with self._stream:
            function(self._state.ctypes.data, number)

    def run(self, arrays: Sequence[np.ndarray]) -> List[np.ndarray]:
        """Runs the model on arrays that fit it: one for each input, contiguous, in the model's own element types."""
        inputs, outputs = self._in_type(), self._out_type()
        for t, array in zip(self.inputs, arrays):
            setattr(inputs, t["member"], array.ctypes.data)
            if is_dynamic(t):
                getattr(inputs, t["member"] + "_dims")[:] = array.shape
        buffers = [aligned(0 if t["name"] in self._kept else t["bytes"]) for t in self.outputs]
        for t, buffer in zip(self.outputs, buffers):
            setattr(outputs, t["member"], buffer.ctypes.data)
        with self._memory.arena() as arena:
            self._find(inputs)
            with self._stream:
                code = self._run(*self._arguments(inputs, outputs, arena))
            if code != 0:
                raise self._run_error(code, arrays)
            results = [self._result(t, outputs, buffer) for t, buffer in zip(self.outputs, buffers)]
            for t, result in zip(self.outputs, results):
                if t["name"] in self._kept:
                    self._memory.shapes[self._name, t["name"]] = list(result.shape)
        return results

    def _arguments(self, inputs: Any, outputs: Any, arena: np.ndarray) -> List[Any]:
        memory = self._memory
        arguments: List[Any] = [ctypes.byref(inputs), ctypes.byref(outputs), ctypes.c_void_p(arena.ctypes.data)]
        if self._state is not None:
            arguments.append(ctypes.c_void_p(self._state.ctypes.data))
        if memory.weights is not None:
            arguments.append(ctypes.c_void_p(memory.weights.ctypes.data))
        if memory.pool is not None:
            arguments.append(ctypes.c_void_p(memory.pool))
        if memory.trace is not None:
            arguments += [memory.trace, None]
        return arguments

    def _find(self, inputs: Any) -> None:
        # What other models have left for this one.
        for t in self._found:
            model, output = self._read[t["name"]]
            shape = self._memory.shapes.get((model, output))
            if shape is None:
                raise UsageError(f'{self._name} reads the output "{output}" of {model}, which has not run')
            if is_dynamic(t):
                getattr(inputs, t["member"] + "_dims")[:] = shape

    def _result(self, tensor: Dict[str, Any], outputs: Any, buffer: np.ndarray) -> np.ndarray:
        kind = dtypes.of_map(tensor)
        shape = list(getattr(outputs, tensor["member"] + "_dims")) if is_dynamic(tensor) else tensor["shape"]
        size = int(np.prod(shape, dtype=np.int64)) * kind.memory.itemsize
        if tensor["name"] in self._kept:
            place = getattr(outputs, tensor["member"])  # in the arena
            used = np.frombuffer((ctypes.c_ubyte * size).from_address(place), np.uint8).copy()
        else:
            used = buffer[:size]
            if 2 * size < buffer.size:  # what was set aside for the greatest extents goes
                used = used.copy()
        return kind.from_memory(used.view(kind.memory)).reshape(shape)

    def _run_error(self, code: int, arrays: Sequence[np.ndarray]) -> RunError:
        text = f"{self._name}: error {code}: {self._error(code).decode()}"
        if code == 3:  # NAME_E_DIM
            for t, array in zip(self.inputs, arrays):
                shape = ",".join(map(str, array.shape))
                text += f"\n{self._name}: the input {t['name']} was given [{shape}]"
        return RunError(text, self._name, code)


def _weights(folder: pathlib.Path, report: Dict[str, Any]) -> np.ndarray:
    if report["weights_bytes"] == 0:
        return aligned(0)
    return np.memmap(folder / (report["name"] + ".weights"), np.uint8, "r")


def fitting(tensor: Dict[str, Any], value: Any) -> np.ndarray:
    """An argument as an array that the compiled model takes for this input.

    Lists and numbers get the input's element type; arrays must have it. UsageError where it does not fit.
    """
    kind = dtypes.of_map(tensor)
    if not hasattr(value, "dtype"):
        value = np.asarray(value, kind.array_dtype())
    array = np.asarray(value)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    if "frame" in tensor:
        array = _rows_of_frame(tensor, array)
    problem = _misfit(tensor, kind, array)
    if problem is not None:
        shape = ",".join(map(str, array.shape))
        raise UsageError(
            f'the input "{tensor["name"]}" takes {kind.name}{_shape_text(tensor)}, '
            f"it was given {array.dtype}[{shape}]{problem}"
        )
    return np.require(kind.to_memory(array), requirements=["C", "A"])


def _rows_of_frame(tensor: Dict[str, Any], array: np.ndarray) -> np.ndarray:
    # A camera's frame (--pre) as arrays have it, [height, width, channels] or, of one byte a pixel, [rows, width].
    rows, width, size = tensor["frame"]["array"]
    stride = tensor["shape"][1]
    shapes = [(rows, width, size), (rows, width * size)]
    if array.dtype != np.uint8 or array.shape not in shapes or array.shape == (rows, stride):
        return array
    frame = np.zeros((rows, stride), np.uint8)
    frame[:, : width * size] = array.reshape(rows, width * size)
    return frame


def _misfit(tensor: Dict[str, Any], kind: dtypes.ElementType, array: np.ndarray) -> Optional[str]:
    if not kind.takes(array.dtype):
        return ""
    if array.ndim != len(tensor["shape"]):
        return f": {array.ndim} axes"
    for axis, (extent, given) in enumerate(zip(tensor["shape"], array.shape)):
        low, high = (max(extent["min"], 0), extent["max"]) if isinstance(extent, dict) else (extent, extent)
        if not low <= given <= high:
            return f": axis {axis} is {given}"
    return None


def _shape_text(tensor: Dict[str, Any]) -> str:
    return "[" + ",".join(
        f"{e['expr']} ({max(e['min'], 0)}..{e['max']})" if isinstance(e, dict) else str(e) for e in tensor["shape"]
    ) + "]"
