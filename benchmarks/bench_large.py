"""Large runs: memory of running, taking up, judging anew and looking at them must not grow with their cells.

`python benchmarks/bench_large.py --cells 1000000` measures another size.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench_inline import AGENT, spec
from measure import HOLDFAST, Spent, command, limited, project, row

SIZES = (100_000, 200_000)
RULES = 1000
MOST_MB = 200


def measure(cells: int) -> dict[str, Spent]:
    """The run, then what is done with it when it is stored; at last half of it is cut off and run again."""
    run = [*HOLDFAST, "contract", "run", "--no-report", "-q"]
    with project({"fast.py": AGENT, "holdfast.yaml": spec(RULES, cells // RULES)}) as folder:
        spent = {"run": command(run, folder)}
        spent["report"] = command([*HOLDFAST, "report", "1"], folder)
        spent["judge"] = command([*HOLDFAST, "judge", "1", "-q"], folder)
        _leave(folder / ".holdfast" / "runs" / "0001")
        spent["resume"] = command([*run, "--resume", "1"], folder)
    return spent


def _leave(run: Path) -> None:
    """Makes it a run that was killed in the middle."""
    (run / "ended.json").unlink()
    for name in ("observations-0.jsonl", "verdicts-1.jsonl"):
        with open(run / name, "r+b") as file:
            file.seek(file.seek(0, 2) // 2)
            file.readline()
            file.truncate(file.tell())


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
