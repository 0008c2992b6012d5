"""Kept replies: small private files, believed only if they were there before."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast.judge import consult
from holdfast.judge.consult import AdviceCache
from holdfast.protocols.check import Advice

KEY = "ab" * 16
SAID = Advice("text", "m", ("note",))


def later(folder: Path) -> AdviceCache:
    time.sleep(0.02)  # a file's time is as coarse as the kernel's tick
    return AdviceCache(folder)


def test_what_is_put_is_got_now_and_later(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    cache = AdviceCache(folder)
    assert cache.get(KEY) is None
    cache.put(KEY, SAID)
    assert cache.get(KEY) == SAID
    assert later(folder).get(KEY) == SAID
    assert [file.name for file in folder.iterdir()] == [f"{KEY}.json"]
    assert (folder.stat().st_mode & 0o777, (folder / f"{KEY}.json").stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_others_put_there_meanwhile_is_not_believed(tmp_path: Path) -> None:
    cache = AdviceCache(tmp_path)
    file = tmp_path / f"{KEY}.json"
    time.sleep(0.02)
    file.write_text('{"text": "planted"}')
    os.utime(file, (0, 0))
    assert cache.get(KEY) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"model": "m"}', b"\xff", b'{"text": "' + b"x" * 70_000 + b'"}']
)
def test_a_file_that_is_not_a_reply_is_asked_for_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{KEY}.json").write_bytes(content)
    cache = later(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, SAID)
    assert later(tmp_path).get(KEY) == SAID


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_not_a_file_is_passed_over_at_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / f"{KEY}.json"
    if kind == "link":
        (tmp_path / "target").write_text('{"text": "planted"}')
        place.symlink_to("target")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    assert later(tmp_path).get(KEY) is None


def test_a_folder_that_cannot_be_written_costs_only_the_keeping(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = AdviceCache(tmp_path / "file" / "cache")
    cache.put(KEY, SAID)
    assert cache.get(KEY) == SAID


def test_a_large_reply_is_not_stored(tmp_path: Path) -> None:
    AdviceCache(tmp_path / "c").put(KEY, Advice("x" * 100_000))
    assert not (tmp_path / "c").exists()


def test_the_oldest_make_room_and_half_written_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consult, "FILES_KEPT", 20)
    for n in range(30):
        file = tmp_path / f"{n:032x}.json"
        file.write_text('{"text": "old"}')
        os.utime(file, (n, n))
    (tmp_path / "torn.1-1.new").write_text("{")
    os.utime(tmp_path / "torn.1-1.new", (0, 0))
    AdviceCache(tmp_path).put(KEY, SAID)
    left = sorted(file.name for file in tmp_path.iterdir())
    assert len(left) == 17
    assert f"{KEY}.json" in left
    assert f"{29:032x}.json" in left
    assert "torn.1-1.new" not in left


@pytest.mark.parametrize(("there", "left"), [(18, 19), (19, 17)])
def test_room_is_made_once_nine_tenths_are_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: int, left: int
) -> None:
    monkeypatch.setattr(consult, "FILES_KEPT", 20)
    for n in range(there):
        (tmp_path / f"{n:032x}.json").write_text('{"text": "old"}')
    AdviceCache(tmp_path).put(KEY, SAID)
    assert len(list(tmp_path.iterdir())) == left
