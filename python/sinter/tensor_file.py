"""Tensors as files for the command line: ONNX's TensorProto, in as much of protobuf's format as that takes.

Written here because the package needs NumPy only, and because .npy has no bfloat16 and no 4-bit integers.
"""

from __future__ import annotations

import os
from typing import List, Optional, Tuple, Union

import numpy as np

from . import dtypes

_DIMS, _TYPE, _RAW = 1, 2, 9  # fields of TensorProto


def write(
    path: Union[str, "os.PathLike[str]"], array: np.ndarray, kind: Optional[dtypes.ElementType] = None
) -> None:
    """Writes an array as a TensorProto, of another element type than its dtype's where it has that one's bits."""
    kind = kind or dtypes.of_array(array)
    raw = _packed(kind.to_memory(np.asarray(array, order="C")).reshape(-1), kind.bits)
    head = b"".join(_field(_DIMS, 0) + _varint(d) for d in array.shape) + _field(_TYPE, 0) + _varint(kind.onnx)
    with open(path, "wb") as file:
        file.write(head + _field(_RAW, 2) + _varint(len(raw)))
        file.write(raw)


def read(path: Union[str, "os.PathLike[str]"]) -> np.ndarray:
    """Reads a TensorProto whose contents are raw_data, as the compiled models' programs write them."""
    with open(path, "rb") as file:
        data = file.read()
    dims: List[int] = []
    number, raw, at = 0, b"", 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == 0:
            value, at = _read_varint(data, at)
            if key >> 3 == _DIMS:
                dims.append(value)
            elif key >> 3 == _TYPE:
                number = value
            continue
        if key & 7 != 2:
            raise ValueError(f"{path} is no TensorProto")
        size, at = _read_varint(data, at)
        if key >> 3 == _RAW:
            raw = data[at : at + size]
        elif key >> 3 == _DIMS:
            end, dims = at + size, []
            while at < end:
                value, at = _read_varint(data, at)
                dims.append(value)
            continue
        at += size
    kind = dtypes.BY_NUMBER[number]
    flat = _unpacked(raw, kind, int(np.prod(dims, dtype=np.int64)))
    return kind.from_memory(flat).reshape(dims)


def _packed(flat: np.ndarray, bits: int) -> bytes:
    if bits >= 8:
        return flat.tobytes()
    each = 8 // bits
    codes = np.zeros(-(-flat.size // each) * each, np.uint8)
    codes[: flat.size] = flat.view(np.uint8) & ((1 << bits) - 1)
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(bits)
    joined: np.ndarray = np.bitwise_or.reduce(codes.reshape(-1, each) << shifts, axis=1)
    return joined.astype(np.uint8).tobytes()


def _unpacked(raw: bytes, kind: dtypes.ElementType, count: int) -> np.ndarray:
    if kind.bits >= 8:
        return np.frombuffer(raw, kind.memory, count).copy()
    each = 8 // kind.bits
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(kind.bits)
    codes = (np.frombuffer(raw, np.uint8)[:, None] >> shifts).reshape(-1)[:count] & np.uint8((1 << kind.bits) - 1)
    if kind.memory == np.int8:  # the sign goes up
        up = np.uint8(8 - kind.bits)
        return (codes << up).view(np.int8) >> np.int8(8 - kind.bits)
    return codes


def _field(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
