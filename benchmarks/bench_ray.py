"""Trials on a Ray cluster of this machine beside the same here: what a trial costs more, and what the driver takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from measure import HOLDFAST, Spent, command, project, row

from holdfast.errors import UserError

FILES = {
    "fast.py": 'def agent(prompt):\n    return "source: " + prompt\n',
    "busy.py": (
        "import time\n\ndef agent(prompt):\n    until = time.process_time() + 0.02\n"
        '    while time.process_time() < until:\n        pass\n    return "source: " + prompt\n'
    ),
    "spec.yaml": """
agent: {type: python, endpoint: "NAME:agent", isolation: HOW}
golden_prompts: PROMPTS
contract: {name: bench, invariants: [{id: r, type: contains, value: source, description: x}]}
chaos_matrix: [{name: calm}]
""",
}

MOST_REPLICAS = 100_000


def main() -> None:
    print("ray: a run with Ray's start taken off, beside the same run on this machine; one worker unless it says more")
    if find_spec("ray") is None:
        raise UserError("Ray is not installed: pip install 'holdfast[ray]'")
    with project({}) as folder, cluster():
        for name, how, count in (("fast", "inline", 20_000), ("fast", "fresh", 1_000)):
            here, there = took(folder, name, how, count), took(folder, name, how, count, "--on", "ray", "-j", "1")
            row(f"{how} trial, here", f"{here * 1e6:.0f} us")
            row(f"{how} trial, on one worker", f"{there * 1e6:.0f} us", f"{there / here:.2f} x")
        one, two = (took(folder, "busy", "fresh", 200, "--on", "ray", "-j", str(n)) for n in (1, 2))
        row("trials of 20 ms of CPU, two workers", f"{one / two:.2f} x", f"of one, on {os.cpu_count()} cores")
        ceiling = took(folder, "fast", "inline", 50_000, "--on", "ray", "-j", "2")
        row("what the driver takes at most", f"{1 / ceiling:.0f}/s")
        count = int(os.environ.get("BENCH_RAY_TRIALS", "100000"))
        spent = ran(folder, "fast", "inline", count, "--on", "ray", "-j", "2")
        row(f"memory of the driver, {count} trials", f"{spent.peak_mb:.0f} MB", "Ray's library is 90 of them")


@contextmanager
def cluster() -> Iterator[None]:
    """A cluster that all runs join: its start is no part of a trial."""
    from holdfast.execute.ray_cluster import connect

    joined = connect("ray", 2, {})
    before = os.environ.get("RAY_ADDRESS")
    os.environ["RAY_ADDRESS"] = joined.ray.get_runtime_context().gcs_address
    try:
        yield
    finally:
        os.environ.pop("RAY_ADDRESS") if before is None else os.environ.update(RAY_ADDRESS=before)
        joined.close()


def took(folder: Path, name: str, how: str, count: int, *args: str) -> float:
    """Seconds a trial, start-up apart."""
    few = min(ran(folder, name, how, 2, *args).wall_s for _ in range(3))
    return max(1e-9, (ran(folder, name, how, count, *args).wall_s - few) / (count - 2))


def ran(folder: Path, name: str, how: str, count: int, *args: str) -> Spent:
    prompts = -(-count // MOST_REPLICAS)
    asked = json.dumps([f"What was revenue of {n}?" for n in range(prompts)])
    for file, text in FILES.items():
        (folder / file).write_text(text.replace("NAME", name).replace("HOW", how).replace("PROMPTS", asked))
    count //= prompts
    words = ["contract", "run", "spec.yaml", "-q", "--no-report", "--no-preflight", "--replicas", str(count), *args]
    return command([*HOLDFAST, *words], folder)


if __name__ == "__main__":
    main()
