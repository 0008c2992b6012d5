"""The page's template is compiled once, and a folder that cannot be written changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from holdfast.report.compiled_template import CompiledTemplate


@pytest.fixture(autouse=True)
def writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def rendered(folder: Path, source: str) -> str:
    environment = Environment(loader=DictLoader({"page": source}), bytecode_cache=CompiledTemplate(folder))
    return environment.get_template("page").render(n=3)


def test_the_second_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "__pycache__"
    assert rendered(folder, "{{ n }} cells") == "3 cells"
    assert len(list(folder.iterdir())) == 1

    def compiled(*given: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Environment, "compile", compiled)
    assert rendered(folder, "{{ n }} cells") == "3 cells"


def test_another_source_is_compiled_anew(tmp_path: Path) -> None:
    folder = tmp_path / "__pycache__"
    rendered(folder, "{{ n }} cells")
    assert rendered(folder, "{{ n }} trials") == "3 trials"
    assert rendered(folder, "{{ n }} trials") == "3 trials"


@pytest.mark.parametrize("size", [0, 5, 25, 60, 150])
def test_what_is_torn_is_compiled_anew(tmp_path: Path, size: int) -> None:
    folder = tmp_path / "__pycache__"
    rendered(folder, "{{ n }} cells")
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:size])
    assert rendered(folder, "{{ n }} cells") == "3 cells"


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert rendered(tmp_path / "file" / "__pycache__", "{{ n }} cells") == "3 cells"


def test_nothing_is_written_where_python_writes_no_byte_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(tmp_path, "{{ n }} cells") == "3 cells"
    assert not list(tmp_path.iterdir())
