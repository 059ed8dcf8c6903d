"""The compiler as a program: where it is, how it is called, and how its endings become exceptions."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import warnings
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from .errors import BY_EXIT_CODE, CompilerBug, ModelWarning, ToolchainError

Path = Union[str, "os.PathLike[str]"]


def executable() -> str:
    """The path of the compiler: ``$SINTER``, the one in this package, or the one in ``PATH``."""
    given = os.environ.get("SINTER")
    if given:
        return given
    inside = pathlib.Path(__file__).parent / "bin" / "sinter"
    if inside.exists():
        return str(inside)
    for folder in os.get_exec_path():
        found = shutil.which("sinter", path=folder)
        if found and _is_elf(found):  # and not this package's own command, which would call itself
            return found
    raise ToolchainError("no sinter: this package was installed without its compiler; set SINTER, or install the wheel")


class Source(NamedTuple):
    """A model as the compiler gets it: a file, and what messages call it."""

    path: str
    shown: str


def call(arguments: Sequence[Path], source: Union[None, Source, Sequence[Source]] = None) -> str:
    """Runs ``sinter`` with these arguments, on one model or several, and returns what it prints.

    Raises the exception of the exit code; warnings become ``ModelWarning``.
    """
    command = [executable()] + [os.fspath(a) for a in arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ToolchainError(f"{command[0]} can't be started: {error.strerror}") from None
    said = done.stderr
    sources = [source] if isinstance(source, Source) else list(source or [])
    for one in sources:
        said = said.replace(one.path, one.shown)
    subject = sources[0].shown if len(sources) == 1 else ""
    if done.returncode == 0:
        for line in said.splitlines():
            if line.strip():
                warnings.warn(line, ModelWarning, stacklevel=4)
        return done.stdout
    if done.returncode not in BY_EXIT_CODE:
        raise CompilerBug(f"sinter ended with {done.returncode}\n{said or done.stdout}")
    # verify tells what it found on standard output
    text = said.strip() or done.stdout.strip()
    if done.returncode == 1:
        text = (done.stdout.strip() + "\n" + said.strip()).strip()
    raise BY_EXIT_CODE[done.returncode](text, subject)


def options(given: Mapping[str, Any]) -> List[str]:
    """Keyword arguments as the command line's options: ``max_ram="8M"`` is ``--max-ram=8M``.

    True gives the option alone, None and False leave it out, a list gives it once for each of its elements.
    """
    words: List[str] = []
    for key, value in given.items():
        option = "--" + key.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            words.append(option if one is True else f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return words


def dim_options(dims: Union[None, Mapping[str, Any], Iterable[str]]) -> List[str]:
    """``{"N": "<=8", "H": 224, "W": (64, 640, 32)}``, or the command line's own spelling in a list, as options."""
    if dims is None:
        return []
    if isinstance(dims, str):
        dims = [dims]
    if not isinstance(dims, Mapping):
        return [f"--dim={d}" for d in dims]
    return [f"--dim={name}{_dim_value(value)}" for name, value in dims.items()]


def _dim_value(value: Any) -> str:
    if isinstance(value, str):
        return value if value.lstrip().startswith(("<=", "=")) else "=" + value
    if isinstance(value, range):
        value = (value.start, value[-1], value.step)
    if isinstance(value, (tuple, list)):
        low, high = value[0], value[1]
        return f"={low}..{high}" + (f":{value[2]}" if len(value) > 2 and value[2] != 1 else "")
    return f"={int(value)}"


def _is_elf(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def cmake_dir() -> str:
    """The folder for ``-Dsinter_DIR=``, with which ``find_package(sinter)`` gives ``sinter_add_model``."""
    folder = pathlib.Path(executable()).parent.parent / "lib" / "cmake" / "sinter"
    if not (folder / "sinterConfig.cmake").exists():
        raise ToolchainError(f"{executable()} is not installed: there is no {folder}")
    return str(folder)


def version_of() -> str:
    """The compiler's version."""
    return call(["--version"]).split()[-1]


def source_of(model: Any, folder: pathlib.Path) -> Source:
    """A model given as a path, as bytes or as an ``onnx.ModelProto``, the latter as a file in ``folder``."""
    if isinstance(model, (str, os.PathLike)):
        return Source(os.fspath(model), os.fspath(model))
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    path = folder / "model.onnx"
    path.write_bytes(model)
    return Source(str(path), path.name)
