"""Cells of an in-process agent, each with its durable record, beside a bare loop that stores nothing."""

from __future__ import annotations

import time

from measure import HOLDFAST, best, project, row

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
    print("inline: whole command, CPU seconds")
    run = [*HOLDFAST, "contract", "run", "--no-report", "-q", "-c", "bench.yaml"]
    files = {"fast.py": AGENT, "bench.yaml": spec(1, 1)}
    with project(files) as folder:
        start = best(run, 3, folder).cpu_s
    row("1 cell (start-up, spec, summary)", f"{start:.2f}")
    for rules, scenarios in ((100, 100), (1000, 100)):
        cells = rules * scenarios
        with project({**files, "bench.yaml": spec(rules, scenarios)}) as folder:
            spent = best(run, 3, folder)
        each = (spent.cpu_s - start) / cells * 1e6
        row(f"{cells} cells", f"{spent.cpu_s:.2f}", "target 4.5" if cells == 100_000 else "")
        row("  a cell, start-up apart", f"{each:.1f} us", "target 40, stretch 20")
        row("  peak memory", f"{spent.peak_mb:.0f} MB", "target 100")
        row("  beside the bare loop", f"{spent.cpu_s / bare(cells):.0f} x", f"bare {bare(cells):.3f} s, stores nothing")
