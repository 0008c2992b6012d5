"""Cells of an in-process agent, each with its durable record, beside a bare loop that stores nothing."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from measure import HOLDFAST, best, command, limited, project, row

AGENT = 'def agent(prompt):\n    return "source: " + prompt\n'


def spec(rules: int, scenarios: int) -> str:
    lines = [
        'agent: {type: python, endpoint: "fast:agent", isolation: inline}',
        'golden_prompts: ["What was revenue?"]',
    ]
    lines += ["contract:", "  name: bench", "  invariants:"]
    lines += [f"    - {{id: r{i}, type: contains, value: source, description: x}}" for i in range(rules)]
    lines += ["chaos_matrix:", *(f"  - {{name: s{j}}}" for j in range(scenarios))]
    return "\n".join(lines) + "\n"


COUNT = """
import sys
from holdfast.cli import main
made = 0
def count(frame, event, argument):
    global made
    made += event in ("call", "c_call")
sys.argv = ["holdfast", "contract", "run", "--no-report", "-q", "-c", "bench.yaml"]
sys.setprofile(count)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print(made)
"""


def calls(cells: int) -> int:
    """Functions called for so many cells, Python's and C's: a number that a busy machine does not change."""
    with project({"fast.py": AGENT, "bench.yaml": spec(20, cells // 20), "count.py": COUNT}) as folder:
        (folder / ".count").mkdir()
        counting = Path(folder / "count.py").rename(folder / ".count" / "count.py")  # not beside the agent
        return int(command([sys.executable, str(counting)], folder).out.split()[-1])


def bare(cells: int) -> float:
    """The same questions and the same comparison, nothing kept."""
    space: dict[str, object] = {}
    exec(AGENT, space)
    agent, passed = space["agent"], 0
    started = time.process_time()
    for _ in range(cells):
        passed += "source" in agent("What was revenue?").lower()  # type: ignore[operator]
    assert passed == cells
    return time.process_time() - started


def main() -> None:
    print("inline: the complete command, CPU seconds")
    run = [*HOLDFAST, "contract", "run", "--no-report", "-q", "-c", "bench.yaml"]
    files = {"fast.py": AGENT, "bench.yaml": spec(1, 1)}
    with project(files) as folder:
        start = best(run, 3, folder).cpu_s
    row("1 cell (start-up, spec, summary)", f"{start:.2f}")
    row("function calls per cell", f"{(calls(2000) - calls(1000)) / 1000:.0f}")
    for rules, scenarios in ((100, 100), (1000, 100)):
        cells = rules * scenarios
        with project({**files, "bench.yaml": spec(rules, scenarios)}) as folder:
            spent = best(run, 3, folder)
        each = (spent.cpu_s - start) / cells * 1e6
        limited(f"{cells} cells", spent.cpu_s, "{:.2f}", most=3.5)
        limited("  per cell, without start-up", each, "{:.1f} µs", most=30)
        limited("  peak memory", spent.peak_mb, "{:.0f} MB", most=100)
        row(
            "  compared with the bare loop",
            f"{spent.cpu_s / bare(cells):.0f} x",
            f"bare {bare(cells):.3f} s, stores nothing",
        )
