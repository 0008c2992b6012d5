"""What Holdfast costs, counted: bytes and system calls a cell. No clock is read.

Calls and modules are not counted: they depend on how the code is arranged. Speed is measured in `benchmarks/`.

`kept.json` has the numbers for each minor version of Python, on the pinned requirements. More than 3 % above one of
them fails. `UPDATE_COUNTS=1 pytest tests/counts` writes them again; a higher one needs its reason in the commit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KEPT = HERE / "kept.json"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SLACK = 1.03
FEW, MANY = 200, 1200
"""Cells of two runs: what they differ by is a cell's own."""

AGENT = 'def agent(prompt):\n    return "source: " + prompt\n'
HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
RUN = ("contract", "run", "--no-report", "-q")


def spec(cells: int) -> str:
    rules = "\n".join(f"    - {{id: r{n}, type: contains, value: source, description: x}}" for n in range(cells // 20))
    scenarios = "\n".join(f"  - {{name: s{n}}}" for n in range(20))
    return (
        'agent: {type: python, endpoint: "fast:agent", isolation: inline}\n'
        'golden_prompts: ["What was revenue?"]\n'
        f"contract:\n  name: counted\n  invariants:\n{rules}\nchaos_matrix:\n{scenarios}\n"
    )


def project(folder: Path, cells: int) -> Path:
    where = folder / str(cells)
    where.mkdir()
    (where / "fast.py").write_text(AGENT)
    (where / "holdfast.yaml").write_text(spec(cells))
    return where


def bytes_a_cell(folder: Path) -> float:
    sizes = []
    for cells in (FEW, MANY):
        where = project(folder, cells)
        subprocess.run([HOLDFAST, *RUN], cwd=where, check=True, capture_output=True)
        sizes.append(sum(file.stat().st_size for file in (where / ".holdfast/runs").rglob("*") if file.is_file()))
    return (sizes[1] - sizes[0]) / (MANY - FEW)


def system_calls_a_cell(folder: Path) -> float:
    if shutil.which("strace") is None:
        pytest.skip("strace is missing: tests/setup.sh installs it")
    made = []
    for cells in (FEW, MANY):
        where = project(folder, cells)
        out = where / "strace"
        command = ["strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", str(out), HOLDFAST]
        subprocess.run([*command, *RUN], cwd=where, check=True, capture_output=True)
        made.append(int(out.read_text().splitlines()[-1].split()[0]))
    return (made[1] - made[0]) / (MANY - FEW)


COUNTS: dict[str, Callable[[Path], float]] = {
    "bytes a cell": bytes_a_cell,
    "system calls a cell": system_calls_a_cell,
}


@pytest.mark.parametrize("what", COUNTS)
def test_it_costs_no_more_than_it_did(what: str, tmp_path: Path) -> None:
    found = round(COUNTS[what](tmp_path), 2)
    kept = json.loads(KEPT.read_text())
    if "UPDATE_COUNTS" in os.environ:
        kept.setdefault(VERSION, {})[what] = found
        KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
        return
    if VERSION not in kept:
        pytest.skip(f"kept.json has no numbers for Python {VERSION}: UPDATE_COUNTS=1 writes them")
    most = kept[VERSION][what] * SLACK
    why = f"{what}: {found}, and {kept[VERSION][what]} is kept. Find what was added, or raise it with the reason"
    assert found <= most, why
