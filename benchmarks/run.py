"""Runs the named benchmarks, or all of them, and lists the limits that were missed.

A benchmark whose program is not installed is skipped with a message. A missed limit does not fail the command: how fast
the machine is decides it as much as the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from holdfast.errors import HoldfastError

sys.path.insert(0, str(Path(__file__).parent))
from measure import MISSED  # after the path

ALL = [
    "startup",
    "inline",
    "large",
    "fresh",
    "command",
    "http",
    "gateway",
    "page",
    "view",
    "sandbox",
    "services",
    "tcp",
    "world",
    "ray",
    "hunt",
]


def main(names: list[str]) -> None:
    unknown = set(names) - set(ALL)
    if unknown:
        raise SystemExit(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    failed = [name for name in names or ALL if not ran(name, import_module(f"bench_{name}").main)]
    print(f"limits missed: {', '.join(MISSED) or 'none'}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def ran(name: str, benchmark: Callable[[], None]) -> bool:
    """Whether it ran or was skipped because a program is missing; False if one of its commands failed."""
    try:
        benchmark()
    except HoldfastError as missing:
        print(f"{name}: skipped: {missing}")
    except SystemExit as broken:
        print(f"{name}: failed: {broken}")
        return False
    finally:
        print(flush=True)
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
