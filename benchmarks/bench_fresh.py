"""A trial in a fresh process, beside starting an interpreter for each."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from measure import limited, project, row

from holdfast.execute.open_site import open_site
from holdfast.execute.trial import run_trial
from holdfast.plan import build_plan
from holdfast.spec import load

FILES = {
    "fast.py": 'def agent(prompt):\n    return "source: " + prompt\n',
    "bench.yaml": """
agent: {type: python, endpoint: "fast:agent"}
golden_prompts: ["What was revenue?"]
contract: {name: bench, invariants: [{id: r, type: contains, value: source, description: x}]}
chaos_matrix: [{name: calm}]
""",
}


async def trials(folder: Path, count: int, rounds: int) -> float:
    spec, _ = load(folder / "bench.yaml", environ=os.environ)
    trial = build_plan(spec).trials[0]
    site = await open_site(spec, environ=os.environ)
    best = float("inf")
    try:
        for _ in range(rounds):
            started = time.perf_counter()
            for _ in range(count):
                seen = await run_trial(site, trial)
                assert seen.turns[0].text, seen
            best = min(best, (time.perf_counter() - started) / count)
    finally:
        await site.close()
    return best


def interpreters(folder: Path, count: int) -> float:
    code = "import fast; print(fast.agent('What was revenue?'))"
    started = time.perf_counter()
    for _ in range(count):
        subprocess.run([sys.executable, "-c", code], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) / count


def main() -> None:
    print("fresh: wall time of one trial, one at a time, best of 5 rounds")
    with project(FILES) as folder:
        ours = asyncio.run(trials(folder, 100, 5))
        bare = interpreters(folder, 10)
    row("a new interpreter each, bare", f"{bare * 1000:.1f} ms")
    limited("a trial in a fresh process", ours * 1000, "{:.2f} ms", most=2.5, note=f"{ours / bare:.2f} x bare")
