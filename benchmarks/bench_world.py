"""A whole world around a trivial command: time beside the agent's own, memory over many trials, and what is left."""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
from pathlib import Path
from statistics import median

from measure import limited, row

from holdfast.execute.local import LocalExecutor
from holdfast.execute.open_site import open_site
from holdfast.execute.resolved_spec import WorldOptions
from holdfast.model.observation import Observation
from holdfast.plan import build_plan
from holdfast.processes.leftovers import list_children
from holdfast.spec import load

TRIALS = 200
SPEC = """
version: 1
id: bench
task: {prompt: "Do nothing."}
agent: {type: command, command: "true"}
services:
  - {name: db, image: "postgres:16", env: {POSTGRES_PASSWORD: benchmark}}
fixtures:
  - {type: sql, service: db, sql: "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1);"}
invariants:
  kept: {description: "The row is there", check: {type: sql, service: db, query: "SELECT count(*) FROM t", equals: 1}}
chaos_matrix: [{name: calm}]
parallelism: {replicas: %d}
"""


def memory_mb() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 1e6


async def run(path: Path, slots: int) -> tuple[list[Observation], float, float]:
    """Every trial, and this process's memory after the first quarter and at the end."""
    spec, _ = load(path, environ=os.environ)
    site = await open_site(spec, environ=os.environ, concurrency=slots, world=WorldOptions())
    seen: list[Observation] = []
    early = 0.0
    try:
        async for _, one in LocalExecutor(site).execute(build_plan(spec).trials):
            seen.append(one)
            early = memory_mb() if len(seen) == len(build_plan(spec).trials) // 4 else early
    finally:
        await site.close()
    return seen, early, memory_mb()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.yaml"
        path.write_text(SPEC % 20)
        alone, _, _ = asyncio.run(run(path, 1))
        spent = [one.duration_ms - sum(turn.latency_ms for turn in one.turns) for one in alone[1:]]
        limited("world time of a trial with a fresh PostgreSQL", median(spent), "{:.0f} ms", most=90)
        path.write_text(SPEC % TRIALS)
        seen, early, late = asyncio.run(run(path, 2))
        broken = [one.error for one in seen if one.error]
        row(
            f"memory after a quarter and after all of {TRIALS} trials",
            f"{early:.0f} and {late:.0f} MB",
            "the same",
        )
        row("trials with a harness error", f"{len(broken)} {broken[0] if broken else ''}".strip(), "0")
        row("processes left", str(len(list_children())), "0")
