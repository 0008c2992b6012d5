"""A sandbox opened, used for one trivial command and closed, beside a plain process: the two take turns."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from measure import limited, row

from holdfast.protocols.sandbox import SandboxBackend, SandboxSpec
from holdfast.world.sandbox.bubblewrap import Bubblewrap
from holdfast.world.sandbox.process import ProcessBackend

ENV = {"PATH": "/usr/bin:/bin"}
TIMES = 60
PAUSE_S = 0.02
"""Between two: a trial does more than open and close, and the next sandbox is prepared meanwhile."""
MANY = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"


async def once(backend: SandboxBackend) -> None:
    sandbox = await backend.open(SandboxSpec("bench"))
    ran = await sandbox.run(["true"], ENV)
    await sandbox.close()
    assert ran.exit_code == 0, ran


async def plain() -> None:
    subprocess.run(["true"], env=ENV, stdout=subprocess.PIPE, check=True)  # noqa: ASYNC221  # what is compared


async def in_turns(*works: Callable[[], Awaitable[None]]) -> list[list[float]]:
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(TIMES):
        for times, work in zip(taken, works, strict=True):
            began = time.perf_counter()
            await work()
            times.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(PAUSE_S)
    return taken


async def audited(backend: SandboxBackend) -> tuple[float, float]:
    """A hundred commands by one shell, unheard and heard: the best of ten."""
    best = [float("inf")] * 2
    for n, heard in enumerate((None, lambda _: lambda _: None)):
        sandbox = await backend.open(SandboxSpec("bench", commands=heard))
        for _ in range(10):
            best[n] = min(best[n], (await sandbox.run(["sh", "-c", MANY], ENV)).duration_ms)
        await sandbox.close()
    return best[0], best[1]


async def measure(folder: Path) -> None:
    jails, bare = await Bubblewrap.open_backend(folder), await ProcessBackend.open_backend(folder)
    try:
        alone, jailed, kept = await in_turns(plain, lambda: once(jails), lambda: once(bare))
        base = median(alone)
        row("a plain process", f"{base:.1f} ms")
        for name, times in (("in a bubblewrap sandbox", jailed), ("by the process backend", kept)):
            note = f"{median(times):.1f} ms, best {min(times):.1f}"
            limited(f"{name} adds", median(times) - base, "{:.1f} ms", most=10, note=note)
        unheard, heard = await audited(jails)
        row("100 commands in it", f"{unheard:.0f} ms")
        row("... each of them recorded", f"{heard:.0f} ms", f"{heard / unheard:.2f} x")
    finally:
        await jails.close()
        await bare.close()


def main() -> None:
    print(f"sandbox: opened, `true` run in it, closed; median of {TIMES}")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder)))
