"""The processors that code can be generated for."""

from __future__ import annotations

import functools
import json
import pathlib
import tempfile
from typing import List, NamedTuple, Tuple

from . import program


class Target(NamedTuple):
    """A row of ``sinter targets``."""

    name: str  #: as ``target=`` takes it
    what: str
    boards: str
    aarch64: bool
    dot_products: bool  #: one instruction sums four products of bytes
    byte_matrices: bool  #: products of matrices of bytes (i8mm)
    float16: bool  #: ``fp16=True`` computes in halves
    tile_matrices: bool  #: products of tiles of bfloat16 (AMX)
    runs_here: bool  #: this machine executes its code


def targets() -> List[Target]:
    """The processors that code can be generated for, from special to general."""
    return list(_table(program.executable())[1])


def host() -> str:
    """What "host" means on this machine."""
    return _table(program.executable())[0]


@functools.lru_cache(maxsize=None)
def _table(_executable: str) -> Tuple[str, Tuple[Target, ...]]:
    with tempfile.TemporaryDirectory(prefix="sinter-") as work:
        file = pathlib.Path(work) / "targets.json"
        program.call(["targets", "--json", file])
        table = json.loads(file.read_text())
    return table["host"], tuple(Target(**row) for row in table["targets"])


def runs_here(target: str) -> bool:
    """Whether this machine executes the code of a target."""
    return any(t.name == target and t.runs_here for t in targets())
