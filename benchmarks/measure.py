"""What the benchmarks share: a project folder, the command, CPU and memory of a child."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOLDFAST = [str(Path(sys.executable).with_name("holdfast"))]


@dataclass(frozen=True)
class Spent:
    cpu_s: float
    wall_s: float
    peak_mb: float
    out: str


@contextmanager
def project(files: dict[str, str]) -> Iterator[Path]:
    """A folder with these files, gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        for path, text in files.items():
            (Path(name) / path).write_text(text)
        yield Path(name)


def command(words: list[str], cwd: Path | None = None) -> Spent:
    """Runs a command; its CPU, wall time and peak memory."""
    started = time.perf_counter()
    process = subprocess.Popen(words, cwd=cwd, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)} exited with {process.returncode}:\n{out}")
    return Spent(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024, out)


def best(words: list[str], times: int, cwd: Path | None = None) -> Spent:
    """The run that used the least CPU: the others met other people's work."""
    return min((command(words, cwd) for _ in range(times)), key=lambda spent: spent.cpu_s)


def own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


MISSED: list[str] = []
"""Rows of this run whose figure is beyond its limit."""


def row(name: str, value: str, note: str = "") -> None:
    """Prints one figure."""
    print(f"  {name:<52} {value:>16}   {note}".rstrip())


def limited(name: str, number: float, form: str, *, most: float = math.inf, least: float = 0, note: str = "") -> None:
    """Prints a figure that has a limit, and remembers the row if it is beyond. `form`: `{:.2f} ms`."""
    limit = f"at most {most:g}" if most < math.inf else f"at least {least:g}"
    beyond = not least <= number <= most
    if beyond:
        MISSED.append(name.strip())
    words = [note, f"{limit}{': MISSED' if beyond else ''}"]
    row(name, form.format(number), "; ".join(filter(None, words)))
