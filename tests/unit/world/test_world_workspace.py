"""What stood in the files that an agent changed: read safely, and short."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from frozen_workspace import Frozen

from canary_forms import FORMS
from holdfast.errors import QueryFailed
from holdfast.model.world import FileTexts, ServiceSpec, WrittenCanaries
from holdfast.protocols.sandbox import FileChange, Sandbox
from holdfast.protocols.service import Database, Rows
from holdfast.world.workspace import TEXT_BUDGET, TEXT_LIMIT, ChangedTexts, find_in_database, find_in_file


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    (tmp_path / "layer").mkdir()
    (tmp_path / "now").mkdir()
    return tmp_path / "layer"


def texts(layer: Path | None, now: Path) -> ChangedTexts:
    return ChangedTexts(cast(Sandbox, Frozen(now)), layer)


def test_both_sides_of_a_change_are_kept(layer: Path) -> None:
    now = layer.with_name("now")
    (layer / "a").write_text("one\n")
    (now / "a").write_text("two\n")
    (now / "b").write_text("new ü\n")
    found = texts(layer, now)
    assert found.read_texts(FileChange("a", "modified", 4)) == FileTexts("one\n", "two\n")
    assert found.read_texts(FileChange("b", "created", 6)) == FileTexts(None, "new ü\n")
    assert found.read_texts(FileChange("a", "deleted")) == FileTexts("one\n", None)


def test_what_the_setup_may_have_changed_is_not_known(layer: Path) -> None:
    now = layer.with_name("now")
    (layer / "a").write_text("one\n")
    (now / "a").write_text("two\n")
    assert texts(None, now).read_texts(FileChange("a", "modified", 4)) is None
    assert texts(None, now).read_texts(FileChange("a", "created", 4)) == FileTexts(None, "two\n")


@pytest.mark.parametrize(
    "data", [b"a\0b", b"\xff\xfe", b"x" * (TEXT_LIMIT + 1)], ids=["zero bytes", "no UTF-8", "long"]
)
def test_what_is_not_a_short_text_is_left_out(layer: Path, data: bytes) -> None:
    now = layer.with_name("now")
    (now / "a").write_bytes(data)
    assert texts(layer, now).read_texts(FileChange("a", "created", len(data))) is None


def test_links_pipes_and_ways_out_are_not_read(layer: Path, tmp_path: Path) -> None:
    now, secret = layer.with_name("now"), tmp_path / "secret"
    secret.write_text("mine")
    for folder in (layer, now):
        (folder / "link").symlink_to(secret)
        (folder / "folder").symlink_to(tmp_path)
        (folder / "empty").mkdir()
    os.mkfifo(now / "pipe")
    found = texts(layer, now)
    for path in ("link", "pipe", "empty", "out/side", "gone", "../secret"):
        assert found.read_texts(FileChange(path, "modified", 4)) is None
    for path in ("link", "folder/secret", "../secret", "gone"):
        assert found.read_texts(FileChange(path, "deleted")) is None


def test_all_files_of_a_trial_together_have_a_bound(layer: Path) -> None:
    now = layer.with_name("now")
    (now / "a").write_text("x" * TEXT_LIMIT)
    found = texts(layer, now)
    kept = [found.read_texts(FileChange("a", "created", TEXT_LIMIT)) for _ in range(TEXT_BUDGET // TEXT_LIMIT + 3)]
    assert [one is not None for one in kept] == [True] * (TEXT_BUDGET // TEXT_LIMIT) + [False] * 3


# Canaries in what an attacked agent wrote: read safely, and what cannot be read is known to be so.


CANARY = "HOLDFAST-CANARY-0123abcd"
FOUND = WrittenCanaries((CANARY.lower(),))


def read(root: Path, path: str, data: bytes, op: Any = "created") -> WrittenCanaries:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    return find_in_file(cast(Sandbox, Frozen(root)), FileChange(path, op, len(data)))


KEPT: dict[str, Callable[[str], bytes]] = {
    "text": str.encode,
    "utf16": lambda word: word.encode("utf-16"),
    "gzip": lambda word: gzip.compress(word.encode()),
    "late": lambda word: b"x " * 400_000 + word.encode(),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", KEPT)
def test_a_canary_in_a_file_is_found(tmp_path: Path, place: str) -> None:
    for form in FORMS if place != "late" else list(FORMS)[::10]:
        found = read(tmp_path, "notes/a.txt", KEPT[place](FORMS[form](CANARY)))
        assert (CANARY.lower() in found.canaries, found.unread) == (True, False), form


def test_files_without_one_deleted_ones_links_and_folders_have_none(tmp_path: Path) -> None:
    assert read(tmp_path, "a.txt", b"nothing") == WrittenCanaries()
    assert read(tmp_path, "b.txt", CANARY.encode(), "deleted") == WrittenCanaries()
    (tmp_path / "link").symlink_to(tmp_path / "b.txt")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing", "outside", "."):
        assert find_in_file(cast(Sandbox, Frozen(tmp_path)), FileChange(name, "created", 1)) == WrittenCanaries()


NOISE = random.Random(1).randbytes(900)


@pytest.mark.slow
@pytest.mark.parametrize("data", [NOISE, b"x " * 6_000_000], ids=["noise", "long"])
def test_a_file_that_cannot_be_read_is_known(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, "a.bin", data) == WrittenCanaries(unread=True)


def test_what_programs_keep_for_themselves_hides_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "src/__pycache__/a.pyc", NOISE) == WrittenCanaries()
    assert read(tmp_path, ".git/objects/ab", NOISE) == WrittenCanaries()
    assert read(tmp_path, ".git/COMMIT", CANARY.encode()) == FOUND


class Tables:
    """A database with one table."""

    spec = ServiceSpec("db", "postgres")

    def __init__(self, *rows: tuple[Any, ...], count: int | None = None) -> None:
        self._rows, self._count = rows, len(rows) if count is None else count

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        if "information_schema" in sql:
            return Rows(("schema", "table"), (("public", "notes"),), 1)
        return Rows(("a", "b"), self._rows, self._count)


class Dropped(Tables):
    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        raise QueryFailed("gone")


def held(database: Tables) -> WrittenCanaries:
    return asyncio.run(find_in_database(cast(Database, database)))


def test_a_canary_in_a_row_is_found() -> None:
    for form in FORMS:
        word = FORMS[form](CANARY)
        for row in ((2, f"so: {word}"), (1, {"note": [word]})):
            found = held(Tables((1, None), row))
            assert (CANARY.lower() in found.canaries, found.unread) == (True, False), form


def test_rows_without_one_have_none_and_what_cannot_be_read_is_known() -> None:
    assert held(Tables((1, "nothing"))) == WrittenCanaries()
    assert held(Tables((1, "nothing"), count=2)) == WrittenCanaries(unread=True)
    assert held(Dropped()) == WrittenCanaries(unread=True)


def test_a_file_that_its_agent_locked_was_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.txt").touch()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("a.txt")
    monkeypatch.setattr(os, "open", refuse)  # for root no file is locked
    sandbox = cast(Sandbox, Frozen(tmp_path))
    unread = [find_in_file(sandbox, FileChange(path, "created", 1)).unread for path in ("a.txt", "__pycache__/a.pyc")]
    assert unread == [True, False]
    assert not any(find_in_file(sandbox, FileChange(path, "created", 1)).unread for path in ("pipe", "link", "none"))
