"""A trial of a command: CPU time of Holdfast and of all that it starts, beside starting the command alone."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
from pathlib import Path

from measure import limited, project, row

from holdfast.execute.open_site import open_site
from holdfast.execute.trial import run_trial
from holdfast.plan import build_plan
from holdfast.spec import load

SPEC = """
agent: {type: command, binary: /bin/echo, args: ["source: {prompt}"]}
golden_prompts: ["What was revenue?"]
contract: {name: bench, invariants: [{id: r, type: contains, value: source, description: x}]}
"""
FILES = {
    "alone.yaml": SPEC + "chaos_matrix: [{name: calm}]\n",
    "address.yaml": SPEC + "chaos_matrix: [{name: calm}, {name: busy, llm_faults: [{mode: rate_limit}]}]\n",
}
FEW, MANY = 20, 220
"""Trials on two sites: what they differ by is a trial's own."""


async def trials(path: Path, count: int) -> None:
    spec, _ = load(path, environ=os.environ)
    trial = build_plan(spec).trials[0]
    site = await open_site(spec, environ=os.environ)
    try:
        for _ in range(count):
            seen = await run_trial(site, trial)
            assert seen.turns[0].text, seen
    finally:
        await site.close()


def spent_s() -> tuple[float, float]:
    """By this process, and by those that it started and that have ended."""
    ours, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ours.ru_utime + ours.ru_stime, theirs.ru_utime + theirs.ru_stime


def measured(path: Path, count: int) -> tuple[float, float]:
    before = spent_s()
    asyncio.run(trials(path, count))
    after = spent_s()
    return after[0] - before[0], after[1] - before[1]


def a_trial(path: Path, rounds: int) -> tuple[float, float]:
    """CPU seconds of one trial: in this process, and in the launch host and below."""
    measured(path, 1)  # the first one imports
    here = below = float("inf")
    for _ in range(rounds):
        few, many = measured(path, FEW), measured(path, MANY)
        here = min(here, (many[0] - few[0]) / (MANY - FEW))
        below = min(below, (many[1] - few[1]) / (MANY - FEW))
    return here, below


def bare(count: int) -> float:
    before = spent_s()
    for _ in range(count):
        subprocess.run(["/bin/echo", "source"], stdout=subprocess.DEVNULL, check=True)
    after = spent_s()
    return (sum(after) - sum(before)) / count


def main() -> None:
    print("command: CPU time of one trial of /bin/echo, one at a time, best of 5 rounds")
    alone = bare(200)
    row("subprocess.run of it, bare", f"{alone * 1000:.2f} ms")
    with project(FILES) as folder:
        for name, what in (("alone", "a trial"), ("address", "a trial with an address")):
            here, below = a_trial(folder / f"{name}.yaml", 5)
            row(f"{what}, in Holdfast", f"{here * 1000:.2f} ms")
            row(f"{what}, in the launch host and below", f"{below * 1000:.2f} ms")
            both = here + below
            limited(f"{what}, both", both * 1000, "{:.2f} ms", most=2.2, note=f"{both / alone:.1f} x bare")
