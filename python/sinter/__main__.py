"""The command ``sinter``, and ``python -m sinter``: becomes the compiler."""

import os
import sys

from .errors import ToolchainError
from .program import executable


def main() -> None:
    """Replaces this process by the compiler, with the same arguments."""
    try:
        path = executable()
        os.execv(path, [path, *sys.argv[1:]])
    except ToolchainError as error:
        sys.exit(f"sinter: {error}")
    except OSError as error:
        sys.exit(f"sinter: {path} can't be started: {error.strerror}")


if __name__ == "__main__":
    main()
