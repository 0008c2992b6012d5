"""Logs of Inspect AI: a real one of its mock model, and archives that are none, too large, or too new."""

from __future__ import annotations

import builtins
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from error_code import has_code
from golden_words import Golden
from holdfast.errors import UserError
from holdfast.replay import documents
from holdfast.replay.documents import read_archive
from holdfast.replay.formats import import_file

REAL = Path(__file__).with_name("shop.eval")
"""Written by Inspect AI 0.3.285: two samples, one tool, which fails in the second."""
HEAD = {"version": 2, "status": "success", "eval": {"task": "desk", "model": "mockllm/model"}}


def sample(id: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": id, "epoch": 1, "input": "Where is order 7?", "messages": [], "events": [], **more}


def packed(path: Path, *samples: dict[str, Any], head: Any = HEAD, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(head))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_real_log_becomes_a_session_for_each_sample() -> None:
    found = import_file(REAL, None)
    first, second = found.sessions
    assert (first.id, first.name, first.source) == ("shop-anvils", "shop", "inspect")
    assert first.turns == ("How many anvils are left?",)
    assert [(one.tool, one.response, one.status) for one in first.responses] == [("stock", '"12 left"', 200)]
    assert first.expected_failure == ""
    assert second.turns == ("Hello", "How many rockets are left?")
    assert [one.status for one in second.responses] == [0]
    assert second.expected_failure.startswith("includes: I: ")


def test_json_and_archive_say_the_same(tmp_path: Path) -> None:
    samples = [value["samples"][0] for _, value in read_archive(REAL)]  # type: ignore[misc]
    log = tmp_path / "log.json"
    log.write_text(json.dumps({**HEAD, "eval": {"task": "shop"}, "samples": samples}))
    assert import_file(log, "inspect").sessions == import_file(REAL, None).sessions


def test_epochs_attachments_and_errors(tmp_path: Path) -> None:
    long = sample(input="attachment://abc", attachments={"abc": "A long question?"}, error={"message": "it broke"})
    found = import_file(packed(tmp_path / "a.eval", long, sample(epoch=2)), None)
    assert [one.id for one in found.sessions] == ["desk-1", "desk-1-epoch-2"]
    assert found.sessions[0].turns == ("A long question?",)
    assert found.sessions[0].expected_failure == "it broke"


def test_a_sample_without_input_is_left_out_by_name(tmp_path: Path) -> None:
    found = import_file(packed(tmp_path / "a.eval", sample(input="", id="mute"), sample()), None)
    assert [one.id for one in found.sessions] == ["desk-1"]
    assert [(one.name, "no input" in one.why) for one in found.left_out] == [("desk-mute", True)]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ({**HEAD, "version": 3}, "a log of format 3, and 2 is the latest that is known"),
        ({"version": 2}, "its format is unknown"),
        ([], "not a JSON object"),
    ],
)
def test_a_log_that_cannot_be_read_says_why(tmp_path: Path, head: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        import_file(packed(tmp_path / "a.eval", sample(), head=head), None)


def test_an_archive_that_is_not_a_log_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
        archive.writestr("../../etc/passwd", "x")
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        import_file(tmp_path / "a.eval", None)
    (tmp_path / "b.eval").write_bytes(b"PK\x03\x04" + b"x" * 100)
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        import_file(tmp_path / "b.eval", None)


def test_names_that_climb_are_not_read(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.eval", sample(), **{"samples/../../evil.json": "{}", "/samples/x.json": "{}"})
    assert [one.id for one in import_file(path, None).sessions] == ["desk-1"]
    assert [one.name for one in tmp_path.iterdir()] == ["a.eval"]
    assert [one.name for one in import_file(path, None).left_out] == ["samples/../../evil.json"]


def test_an_id_with_a_slash_is_a_sample_like_others(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.eval", sample("django/1"), sample("flask/deep/2"))
    assert len(list(read_archive(path))) == 2
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        list(read_archive(packed(tmp_path / "b.eval")))


def test_a_bomb_is_left_out_before_it_goes_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(documents, "LARGEST_SAMPLE", 100_000)
    bomb = sample(id="bomb", input="0" * 1_000_000)
    found = import_file(packed(tmp_path / "a.eval", bomb, sample()), None)
    assert [one.id for one in found.sessions] == ["desk-1"]
    golden(found.left_out[0].why)
    monkeypatch.setattr(documents, "LARGEST_ARCHIVE", 500_000)
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        import_file(tmp_path / "a.eval", None)


def test_without_a_reader_of_zstd_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def lacking(name: str, *rest: Any) -> Any:
        if name in ("zstandard", "compression"):
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(UserError, check=has_code("file-unusable")) as refused:
        list(read_archive(REAL))
    assert "inspect log dump" in refused.value.hint
