"""The contract format, scoring, output and advanced: every key decides something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from files1 import (
    SPEC,
    project,
    tell,
)

# -- scoring, output, advanced --------------------------------------------------------------------


@pytest.mark.parametrize(("output", "file"), [
    ("{format: html}", "reports/holdfast-0001.html"),
    ("{format: json, path: out}", "out/holdfast-0001.json"),
    ("{format: json, path: out, filename_template: 'run-{run}'}", "out/run-0001.json"),
    ("{format: junit}", "reports/holdfast-0001.xml"),
    ("{format: markdown, filename_template: 'run-{run}.md'}", "reports/run-0001.md"),
])  # fmt: skip
def test_output_writes_the_report_it_asks_for(tmp_path: Path, output: str, file: str) -> None:
    project(tmp_path, SPEC + f"output: {output}\n")
    assert tell(tmp_path, "contract", "run").code == 0
    text = (tmp_path / file).read_text()
    if file.endswith("json"):
        assert json.loads(text)["score"] == 100.0
    else:
        begins = {"html": "<!doctype html>", "xml": "<?xml version='1.0' encoding='utf-8'?>\n<testsuites", "md": "## "}
        assert text.startswith(begins[file.rpartition(".")[2]])


def test_output_terminal_writes_no_file_and_no_output_section_writes_none(tmp_path: Path) -> None:
    for more in ("output: {format: terminal}\n", ""):
        project(tmp_path, SPEC + more)
        assert tell(tmp_path, "contract", "run").code == 0
    assert not (tmp_path / "reports").exists()


def test_output_in_another_folder_lies_beside_the_spec(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    project(tmp_path / "sub", SPEC + "output: {format: json}\n")
    assert tell(tmp_path, "contract", "run", "-c", "sub/holdfast.yaml").code == 0
    assert (tmp_path / "sub/reports/holdfast-0001.json").exists()
