"""What can be refused is refused before anything runs, and nothing is made or lost by the way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from files1 import PYTHON, RULES, SPEC, project, tell

LEAVES_A_TRACE = "import pathlib\npathlib.Path('ran').touch()\ndef answer(prompt): return 'source'\n"
MODEL = "chaos_matrix: [{name: calm}, {name: limit, llm_faults: [{mode: rate_limit}]}]\n"


def never_ran(folder: Path) -> bool:
    return not (folder / "ran").exists() and not (folder / ".holdfast" / "runs").exists()


@pytest.mark.parametrize("content", ["notes of mine\n", "{}\n", "no line end", "[1, 2]\n\n"])
def test_record_onto_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: str) -> None:
    project(tmp_path, PYTHON + RULES + MODEL, LEAVES_A_TRACE)
    (tmp_path / "notes.txt").write_text(content)
    told = tell(tmp_path, "contract", "run", "--record", "notes.txt")
    assert (told.code, never_ran(tmp_path)) == (4, True)
    assert "[recording-unusable]" in told.err
    assert (tmp_path / "notes.txt").read_text() == content


@pytest.mark.parametrize("option", ["--record", "--otlp"])
def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path: Path, option: str) -> None:
    project(tmp_path, PYTHON + RULES + MODEL, LEAVES_A_TRACE)
    told = tell(tmp_path, "contract", "run", option, "nowhere/deep/x.jsonl")
    assert (told.code, never_ran(tmp_path)) == (4, True)
    assert f"{option} nowhere/deep/x.jsonl: no such folder: nowhere/deep" in told.err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("option", ["--record", "--otlp"])
def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path, option: str) -> None:
    project(tmp_path, PYTHON + RULES + MODEL, LEAVES_A_TRACE)
    told = tell(tmp_path, "contract", "run", option, ".")
    assert (told.code, never_ran(tmp_path), "[file-unusable]" in told.err) == (4, True, True)


@pytest.mark.parametrize("value", ['""', "None"])
def test_an_empty_answer_is_told_as_one(tmp_path: Path, value: str) -> None:
    project(tmp_path, SPEC, f"def answer(prompt): return {value}\n")
    shown = tell(tmp_path, "contract", "run").out
    words = "answered   (nothing: the answer is empty)" if value == '""' else "ended      no_answer: the agent returned"
    assert words in shown
    assert "(answered)" not in shown


def test_verify_tells_an_empty_answer(tmp_path: Path) -> None:
    project(tmp_path, SPEC, "def answer(prompt): return ''\n")
    (answer, *_) = json.loads(tell(tmp_path, "verify", "--json").out)["agent"]["findings"]
    assert (answer["route"], answer["outcome"]) == ("answer", "unproven")


def test_clean_removes_what_a_killed_run_left_and_a_run_does_so_too(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    left = temporary / f"holdfast-planes-{_gone()}-abc"
    for args in (("clean",), ("contract", "run")):
        left.mkdir()
        (left / ".lock").touch()
        told = _told_with(tmp_path, temporary, *args)
        assert told.code == 0
        assert not left.exists()
        assert ("removed" in told.out) == (args == ("clean",))
    assert "nothing was left" in _told_with(tmp_path, temporary, "clean").out


def _told_with(folder: Path, temporary: Path, *args: str):  # type: ignore[no-untyped-def]
    import tempfile
    from unittest.mock import patch

    with patch.object(tempfile, "tempdir", str(temporary)):
        return tell(folder, *args)


def _gone() -> int:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
