"""The command line: one file per command. Each parses its options, calls one function and shows the result."""

from __future__ import annotations

import gc
import sys

_OBJECTS = 200_000
"""New objects before Python looks for cycles. Objects of imported modules stay anyway; scanning them took 15 ms."""


def main() -> None:
    """Run the `holdfast` command. `--version` is answered without loading anything else."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from holdfast.version import __version__

        print(f"holdfast {__version__}")
        return
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    from holdfast.cli.main import run

    code = run(sys.argv[1:])
    gc.freeze()  # the process ends: looking for cycles in all that is loaded took 30 ms
    sys.exit(code)
