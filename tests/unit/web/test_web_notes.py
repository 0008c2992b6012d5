"""Marks and notes of people: kept in one file by several viewers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import UsageError
from holdfast.web.notes import FILE, KeptNote, Notes, NoteText, read_text

WRITER = """
import sys
from pathlib import Path
from holdfast.web.notes import Notes, NoteText
notes = Notes(Path(sys.argv[1]))
for n in range(60):
    notes.save(f"{sys.argv[2]}{n:03d}", NoteText("ok", "x" * 500))
"""


def at_noon(folder: Path) -> Notes:
    return Notes(folder, lambda: "noon")


def test_the_last_of_a_key_counts_and_an_empty_one_removes_it(tmp_path: Path) -> None:
    notes = at_noon(tmp_path)
    notes.save("0001", NoteText("star", "first"))
    notes.save("0002", NoteText("", "second"))
    assert notes.save("0001", NoteText("wrong", "")) == KeptNote("wrong", "", "noon")
    notes.save("0002", NoteText())
    assert at_noon(tmp_path).read_all() == {"0001": KeptNote("wrong", "", "noon")}


def test_another_viewer_sees_it_at_once(tmp_path: Path) -> None:
    one, other = at_noon(tmp_path), at_noon(tmp_path)
    assert other.read_all() == {}
    one.save("0001", NoteText("star"))
    assert set(other.read_all()) == {"0001"}
    other.save("0002", NoteText("todo"))
    assert set(one.read_all()) == {"0001", "0002"}


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in ("1", "2")]
    assert [writer.wait(30) for writer in writers] == [0, 0]
    assert len(Notes(tmp_path).read_all()) == 120


@pytest.mark.parametrize("tail", [b'{"key":"0002","mark":"st', b"\xff\xfe\n", b"[]\n", b'{"key":"0002","mark":"?"}\n'])
def test_what_is_torn_or_of_somebody_else_is_passed_over_and_kept_apart(tmp_path: Path, tail: bytes) -> None:
    at_noon(tmp_path).save("0001", NoteText("star"))
    with open(tmp_path / FILE, "ab") as file:
        file.write(tail)
    notes = at_noon(tmp_path)
    assert set(notes.read_all()) == {"0001"}
    notes.save("0003", NoteText("ok"))
    assert set(at_noon(tmp_path).read_all()) == {"0001", "0003"}


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("mine\n")
    (tmp_path / FILE).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        at_noon(tmp_path).save("0001", NoteText("ok"))
    assert target.read_text() == "mine\n"


def test_half_a_character_is_not_a_note() -> None:
    with pytest.raises(UsageError, match="not a note"):
        read_text(json.dumps({"note": "a\ud800b"}).encode())


def test_a_note_that_is_too_long_is_refused() -> None:
    assert len(read_text(json.dumps({"note": "x" * 10_000}).encode()).note) == 10_000
    with pytest.raises(UsageError, match="10,001 characters"):
        read_text(json.dumps({"note": "x" * 10_001}).encode())
