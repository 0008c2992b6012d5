"""Large runs: the memory of running, resuming, judging again and viewing them must not grow with their cells.

`python benchmarks/bench_large.py --cells 1000000` measures another size.
"""

from __future__ import annotations

import sys

from bench_inline import AGENT, spec
from measure import HOLDFAST, Spent, command, limited, project, row

SIZES = (100_000, 200_000)
RULES = 1000
MOST_MB = 200


def measure(cells: int) -> dict[str, Spent]:
    """The run, then what is done with it when it is stored; then a run that a budget ended half-way is resumed."""
    run = [*HOLDFAST, "contract", "run", "--no-report", "-q"]
    with project({"fast.py": AGENT, "holdfast.yaml": spec(RULES, cells // RULES)}) as folder:
        spent = {"run": command(run, folder)}
        spent["report"] = command([*HOLDFAST, "report", "1"], folder)
        spent["judge"] = command([*HOLDFAST, "judge", "1", "-q"], folder)
        command([*run, "--max-trials", str(cells // 2)], folder)
        spent["resume"] = command([*run, "--resume", "2", "--max-trials", str(cells)], folder)
    return spent


def main(sizes: tuple[int, ...] = SIZES) -> None:
    print("large: whole commands of an in-process agent")
    before: dict[str, Spent] = {}
    for cells in sizes:
        found = measure(cells)
        for name, spent in found.items():
            row(f"{cells} cells, {name}", f"{spent.cpu_s:.1f} s CPU")
            limited("  peak memory", spent.peak_mb, "{:.0f} MB", most=MOST_MB)
            if name in before:
                more = (spent.peak_mb - before[name].peak_mb) * 1e6 / (cells - sizes[0])
                row("  for each million cells more", f"{more:.0f} MB")
        before = before or found


if __name__ == "__main__":
    words = sys.argv[1:]
    if words and words[0] != "--cells":
        raise SystemExit("usage: bench_large.py [--cells N]...")
    main(tuple(map(int, words[1:])) or SIZES)
