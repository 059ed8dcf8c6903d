"""Element types: their names in a bundle's map, as NumPy has them, and as ONNX numbers them."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional

import numpy as np


class ElementType(NamedTuple):
    """How one element type is kept in memory, and what arrays of it are."""

    name: str
    onnx: int
    memory: np.dtype  # one element as the compiled model takes it
    bits: int  # of one in a TensorProto
    extended: Optional[str] = None  # the type's name in ml_dtypes, where NumPy has none

    def array_dtype(self) -> np.dtype:
        """The dtype of arrays: NumPy's own, ml_dtypes' where it is installed, else that of the bits."""
        if self.extended is None:
            return self.memory
        try:
            import ml_dtypes
        except ImportError:
            return self.memory
        dtype: np.dtype = np.dtype(getattr(ml_dtypes, self.extended))
        return dtype

    def is_sub_byte_integer(self) -> bool:
        """4- and 2-bit integers, which a compiled model takes one a byte."""
        return self.bits < 8 and self.name != "float4e2m1"

    def to_memory(self, array: np.ndarray) -> np.ndarray:
        """An array of ``array_dtype()`` as the compiled model takes it."""
        if array.dtype == self.memory:
            return array
        return array.astype(self.memory) if self.is_sub_byte_integer() else array.view(self.memory)

    def from_memory(self, array: np.ndarray) -> np.ndarray:
        """What the compiled model wrote, as an array of ``array_dtype()``."""
        dtype = self.array_dtype()
        if dtype == self.memory:
            return array
        return array.astype(dtype) if self.is_sub_byte_integer() else array.view(dtype)

    def takes(self, dtype: np.dtype) -> bool:
        """Whether arrays of ``dtype`` are this type's, or its bits."""
        return dtype in (self.memory, self.array_dtype())


def _plain(name: str, onnx: int) -> ElementType:
    dtype = np.dtype(name)
    return ElementType(name, onnx, dtype, 8 * dtype.itemsize)


_ALL = [
    _plain("float32", 1),
    _plain("uint8", 2),
    _plain("int8", 3),
    _plain("uint16", 4),
    _plain("int16", 5),
    _plain("int32", 6),
    _plain("int64", 7),
    _plain("bool", 9),
    _plain("float16", 10),
    _plain("float64", 11),
    _plain("uint32", 12),
    _plain("uint64", 13),
    ElementType("bfloat16", 16, np.dtype("uint16"), 16, "bfloat16"),
    ElementType("float8e4m3fn", 17, np.dtype("uint8"), 8, "float8_e4m3fn"),
    ElementType("float8e4m3fnuz", 18, np.dtype("uint8"), 8, "float8_e4m3fnuz"),
    ElementType("float8e5m2", 19, np.dtype("uint8"), 8, "float8_e5m2"),
    ElementType("float8e5m2fnuz", 20, np.dtype("uint8"), 8, "float8_e5m2fnuz"),
    ElementType("uint4", 21, np.dtype("uint8"), 4, "uint4"),
    ElementType("int4", 22, np.dtype("int8"), 4, "int4"),
    ElementType("float4e2m1", 23, np.dtype("uint8"), 4, "float4_e2m1fn"),
    ElementType("float8e8m0", 24, np.dtype("uint8"), 8, "float8_e8m0fnu"),
    ElementType("uint2", 25, np.dtype("uint8"), 2, "uint2"),
    ElementType("int2", 26, np.dtype("int8"), 2, "int2"),
]
BY_NAME: Dict[str, ElementType] = {t.name: t for t in _ALL}
BY_NUMBER: Dict[int, ElementType] = {t.onnx: t for t in _ALL}


def of_array(array: np.ndarray) -> ElementType:
    """The element type of an array; TypeError where there is none."""
    for t in _ALL:
        if array.dtype == t.array_dtype():
            return t
    raise TypeError(f"arrays of {array.dtype} are no tensors")


def of_map(tensor: Any) -> ElementType:
    """The element type of an input or output of a bundle's map."""
    return BY_NAME[tensor["dtype"]]
