"""A `static://` secret that a rule repeats is in no file of the run and in no report."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cli import HOLDFAST

SPEC = """
version: 1
id: repeated
agent: {type: command, command: "echo hello $TOKEN"}
secrets: [{name: TOKEN, from: "static://sesame-sesame"}]
task: {prompt: go}
invariants:
  silent:
    description: never says sesame-sesame
    check: {type: excludes_pattern, patterns: ["sesame-sesame"]}
"""


def test_it_is_masked_wherever_the_rule_is_shown(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    report = tmp_path / "report.json"
    words = ("run", "-c", "spec.yaml", "--backend", "process", "-o", str(report))
    done = subprocess.run([HOLDFAST, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    files = [report, *(path for path in (tmp_path / ".holdfast").rglob("*") if path.is_file())]
    leaking = [path.name for path in files if b"sesame-sesame" in path.read_bytes()]
    assert (leaking, "sesame-sesame" in done.stdout) == ([], False)
