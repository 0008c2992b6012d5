"""The command line: one file a command, each parses, calls one function and shows what it gave."""

from __future__ import annotations

import sys


def main() -> None:
    """The `holdfast` command. The version is told without loading anything."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from holdfast import __version__

        print(f"holdfast {__version__}")
        return
    from holdfast.cli.main import run

    sys.exit(run(sys.argv[1:]))
