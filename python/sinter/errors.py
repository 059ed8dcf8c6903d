"""What the compiler says when it gives up, as exceptions: one class for each of its exit codes.

The text is the command line's own. A program that only wants to know whether something of sinter's went wrong catches
``SinterError``.
"""

from __future__ import annotations

import re
from typing import Dict, List, Type


class SinterError(Exception):
    """The base of all errors of this package.

    Attributes:
        exit_code: what ``sinter`` ends with for an error of this kind.
        problems: the messages one by one, without the model's name in front.
        options: the command line's options that the messages name, as ``["--dim"]``: what may help.
    """

    exit_code: int = 5

    def __init__(self, text: str, subject: str = "") -> None:
        super().__init__(text)
        lines = [line for line in text.splitlines() if line.strip()]
        self.problems: List[str] = [_without(line, subject) for line in lines]
        self.options: List[str] = list(dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text)))


class Difference(SinterError):
    """A compiled model computes something else than it should (exit code 1)."""

    exit_code = 1


class UsageError(SinterError):
    """An argument, or data that it names, is wrong (exit code 2)."""

    exit_code = 2


class ModelError(SinterError):
    """The model is refused: ``problems`` has every reason, with the node and the option that helps (exit code 3)."""

    exit_code = 3


class ToolchainError(SinterError):
    """The C++ compiler, or an emulator, is missing or failed (exit code 4)."""

    exit_code = 4


class CompilerBug(SinterError):
    """A mistake of sinter's own (exit code 5)."""

    exit_code = 5


class RunError(SinterError):
    """The compiled model returned an error (exit code 6); ``code`` is what NAME_run returned, where it was called here."""

    exit_code = 6

    def __init__(self, text: str, subject: str = "", code: int = 0) -> None:
        super().__init__(text, subject)
        self.code = code


class ModelWarning(UserWarning):
    """What the compiler warns of while it compiles a model all the same."""


BY_EXIT_CODE: Dict[int, Type[SinterError]] = {
    kind.exit_code: kind for kind in (Difference, UsageError, ModelError, ToolchainError, CompilerBug, RunError)
}


def _without(line: str, subject: str) -> str:
    for front in (subject + ": ", "sinter: "):
        if len(front) > 2 and line.startswith(front):
            return line[len(front) :]
    return line
