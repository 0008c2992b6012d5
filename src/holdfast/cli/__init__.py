"""The command line: one file a command, each parses, calls one function and shows what it gave."""

from __future__ import annotations

import gc
import sys

_OBJECTS = 200_000
"""New objects before Python looks for cycles among them. What modules make stays: looking through it took 15 ms."""


def main() -> None:
    """The `holdfast` command. The version is told without loading anything."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from holdfast.version import __version__

        print(f"holdfast {__version__}")
        return
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    from holdfast.cli.main import run

    code = run(sys.argv[1:])
    gc.freeze()  # the process ends: looking for cycles in all that is loaded took 30 ms
    sys.exit(code)
