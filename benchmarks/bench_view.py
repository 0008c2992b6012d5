"""The viewer: from the command to the list of 10,000 runs, and to all of a run of 10,000 and of 100,000 cells."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench_inline import AGENT, spec
from measure import HOLDFAST, command, limited, project, row

RUNS = 10_000


class Viewing:
    """A viewer that runs, and when it was started."""

    def __init__(self, folder: Path) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen([*HOLDFAST, "view", "--json"], cwd=folder, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = str(json.loads(self.process.stdout.readline())["url"])

    def ask(self, path: str) -> tuple[float, bytes]:
        """Seconds to all of an answer, packed as a browser gets it."""
        began = time.perf_counter()
        request = urllib.request.Request(f"{self.url}api/{path}", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request) as reply:
            return time.perf_counter() - began, reply.read()

    def cpu_s(self) -> float:
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def viewing(folder: Path) -> Iterator[Viewing]:
    viewer = Viewing(folder)
    try:
        yield viewer
    finally:
        viewer.process.terminate()  # SIGINT is ignored below a shell that started us in the background
        viewer.process.wait(20)


def copies(run: Path, count: int) -> None:
    """So many runs like this one."""
    files = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    about = json.loads(files["run.json"])
    for number in range(2, count + 1):
        folder = run.with_name(f"{number:04d}")
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        (folder / "run.json").write_text(json.dumps({**about, "id": folder.name}))


def many_runs() -> None:
    with project({"fast.py": AGENT, "holdfast.yaml": spec(2, 2)}) as folder:
        command([*HOLDFAST, "contract", "run", "--no-report", "-q"], folder)
        copies(folder / ".holdfast" / "runs" / "0001", RUNS)
        with viewing(folder) as viewer:
            began, left = time.perf_counter(), None
            first, _ = viewer.ask("runs")
            while left != 0:
                time.sleep(0.5)
                left = json.loads(_unpacked(viewer.ask("runs?limit=0")[1]))["indexing"]
            limited(f"{RUNS:,} runs without an index: a first list", first, "{:.2f} s", most=1)
            row("  all of them", f"{time.perf_counter() - began:.1f} s, {viewer.cpu_s():.1f} s CPU")
        with viewing(folder) as viewer:
            viewer.ask("runs")
            waited = time.perf_counter() - viewer.began
            limited(f"{RUNS:,} runs, from the command to the list", waited, "{:.2f} s", most=1)
            row("  CPU of all that", f"{viewer.cpu_s():.2f} s")
            row("  another page of the list", f"{viewer.ask('runs?offset=5000')[0] * 1000:.0f} ms")


def cells(rules: int, scenarios: int, most_s: float) -> None:
    with project({"fast.py": AGENT, "holdfast.yaml": spec(rules, scenarios)}) as folder:
        command([*HOLDFAST, "contract", "run", "--no-report", "-q"], folder)
        with viewing(folder) as viewer:
            viewer.ask("runs")
            before = viewer.cpu_s()
            run, _ = viewer.ask("runs/0001")
            matrix, data = viewer.ask("runs/0001/matrix")
            limited(f"a run of {rules * scenarios:,} cells: all of it", run + matrix, "{:.2f} s", most=most_s)
            row("  CPU of that", f"{viewer.cpu_s() - before:.2f} s")
            row("  the matrix alone, once it is read", f"{viewer.ask('runs/0001/matrix')[0] * 1000:.0f} ms")
            row("  its size, packed", f"{len(data) / 1000:.0f} kB")
            row("  a cell with its trials", f"{viewer.ask('runs/0001/cell?rule=r0&column=s0')[0] * 1000:.0f} ms")


def _unpacked(data: bytes) -> bytes:
    import gzip

    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def main() -> None:
    print("view: the viewer's server")
    many_runs()
    cells(100, 100, 1)
    cells(1000, 100, 5)


if __name__ == "__main__":
    main()
