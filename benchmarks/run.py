"""Runs the benchmarks named, or all of them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
ALL = [
    "startup",
    "inline",
    "large",
    "fresh",
    "command",
    "http",
    "gateway",
    "page",
    "sandbox",
    "services",
    "tcp",
    "world",
]


def main(names: list[str]) -> None:
    unknown = set(names) - set(ALL)
    if unknown:
        raise SystemExit(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    for name in names or ALL:
        import_module(f"bench_{name}").main()
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
