"""Kept worlds: what is written, what is left out, and when they go."""

import asyncio
import os

import pytest

from golden_words import Golden
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.world import ServiceSpec
from holdfast.secrets import hidden
from holdfast.world import kept_world as keeping
from holdfast.world.kept_world import (
    ABOUT,
    KeptWorld,
    WorldKeeper,
    clear_kept_worlds,
    get_dump_path,
    list_kept_worlds,
    read_kept_world,
    remove_secrets,
)
from refused import refused
from world_kit import FakeDatabase, FakeMock, FolderSandbox, request, rows

SECRET = "sesame-sesame"


def kept(tmp_path, *services, workspace=None, name="abc", secrets=(SECRET,), logs=(), values=()):
    folder = tmp_path / "kept"
    sandbox = None if workspace is None else FolderSandbox(workspace)
    about = KeptWorld(name, "/spec", {"HOME": "/workspace"}, {"/agent": "/somewhere"})
    keep = WorldKeeper(folder, lambda text: text.replace(SECRET, "[masked]"), values=values)
    asyncio.run(keep.keep(about, sandbox, {one.spec.name: one for one in services}, logs, secrets))
    return folder / name


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("hello")
    return folder


def test_it_can_be_read_again(tmp_path, workspace):
    folder = kept(tmp_path, workspace=workspace)
    assert read_kept_world(folder) == KeptWorld("abc", "/spec", {"HOME": "/workspace"}, {"/agent": "/somewhere"})
    assert (folder / "workspace" / "sub" / "a.txt").read_text() == "hello"


def test_it_takes_the_place_of_the_one_before(tmp_path, workspace):
    kept(tmp_path, workspace=workspace)
    (workspace / "sub" / "a.txt").unlink()
    assert [*(kept(tmp_path, workspace=workspace) / "workspace" / "sub").iterdir()] == []


def test_what_is_not_a_kept_world_is_refused(tmp_path):
    with refused("kept-world-invalid"):
        read_kept_world(tmp_path)


def test_secrets_are_taken_out_of_files_names_and_links(tmp_path, workspace):
    (workspace / f"{SECRET}.bin").write_bytes(b"\0" + SECRET.encode() + b"\xff" + SECRET.encode())
    (workspace / f"in-{SECRET}").mkdir()
    (workspace / f"in-{SECRET}" / "x").write_text("x")
    (workspace / "link").symlink_to(f"/{SECRET}")
    log = tmp_path / "audit.jsonl"
    log.write_text(SECRET)
    folder = kept(tmp_path, workspace=workspace, logs=[log, tmp_path / "missing.jsonl"])
    assert (folder / "workspace" / "[masked].bin").read_bytes() == b"\0[masked]\xff[masked]"
    assert (folder / "workspace" / "in-[masked]" / "x").read_text() == "x"
    assert not (folder / "workspace" / "link").is_symlink()
    assert (folder / "audit.jsonl").read_text() == "[masked]"
    assert not any(SECRET in str(path) for path in folder.rglob("*"))


def test_a_large_file_with_a_secret_is_left_out(tmp_path, workspace, monkeypatch, golden: Golden):
    monkeypatch.setattr(hidden, "REWRITTEN", 100)
    (workspace / "large").write_text("x" * 200 + SECRET)
    folder = kept(tmp_path, workspace=workspace)
    assert not (folder / "workspace" / "large").exists()
    golden(read_kept_world(folder).notes)


def test_a_workspace_that_is_too_large_is_not_copied(tmp_path, workspace, monkeypatch, golden: Golden):
    monkeypatch.setattr(keeping, "MOST_BYTES", 3)
    folder = kept(tmp_path, workspace=workspace)
    assert not (folder / "workspace").exists()
    golden(read_kept_world(folder).notes[0])


def test_pipes_are_not_copied(tmp_path, workspace):
    os.mkfifo(workspace / "pipe")
    assert not (kept(tmp_path, workspace=workspace) / "workspace" / "pipe").exists()


def test_what_services_held(tmp_path, golden: Golden):
    tables = rows(["public", 'odd"name'], columns=("table_schema", "table_name"))
    database = FakeDatabase(
        lambda sql: tables if "information_schema" in sql else rows([1, SECRET], columns=("a", "b"))
    )
    folder = kept(tmp_path, database, FakeMock(request(body=SECRET)))
    assert database.asked[1] == 'SELECT * FROM "public"."odd""name"'
    assert '"rows":[[1,"[masked]"]]' in (folder / "services" / "db.json").read_text()
    assert '"body":"[masked]"' in (folder / "services" / "smtp.json").read_text()
    golden(read_kept_world(folder).notes)


def test_a_database_that_cannot_be_read_is_reported(tmp_path, golden: Golden):
    folder = kept(tmp_path, FakeDatabase(lambda sql: QueryFailed("it is gone")))
    golden(read_kept_world(folder).service_notes)


def test_variables_with_a_secret_in_them_are_left_out():
    environ = {"A": "x", "B": f"postgres://u:{SECRET}@db", "TOKEN": SECRET}
    assert remove_secrets(environ, {"TOKEN": SECRET}) == {"A": "x"}
    assert remove_secrets(environ, {}) == environ


def test_old_ones_go(tmp_path):
    old, new = kept(tmp_path, name="old"), kept(tmp_path, name="new")
    os.utime(old / ABOUT, (1000, 1000))
    os.utime(new / ABOUT, (1900, 1900))
    (tmp_path / "kept" / "something").mkdir()
    assert list_kept_worlds(tmp_path / "kept") == [old, new]
    assert clear_kept_worlds(tmp_path / "kept", 500.0, 2000.0) == [old]
    assert list_kept_worlds(tmp_path / "kept") == [new]
    assert clear_kept_worlds(tmp_path / "nowhere", 0.0, 2000.0) == []


class FakeCache:
    """A server whose dump is what it is given."""

    def __init__(self, held, kind="redis"):
        self.spec = ServiceSpec("cache", kind)
        self.upstream = "/run/cache"
        self.variables = {}
        self.notes = ()
        self.missing = ""
        self._held = held

    async def dump(self, path):
        if isinstance(self._held, Exception):
            raise self._held
        path.write_bytes(self._held)
        return self.missing

    async def restore(self, path):
        """Nothing is read."""

    async def close(self):
        """Nothing is open."""


def test_what_a_server_held_is_dumped_without_secrets(tmp_path, workspace):
    folder = kept(tmp_path, FakeCache(b"\x0d" + SECRET.encode()), workspace=workspace)
    assert get_dump_path(folder, "cache").read_bytes() == b"\x0d[masked]*****"
    assert oct(get_dump_path(folder, "cache").stat().st_mode & 0o077) == "0o0"
    assert (read_kept_world(folder).notes, read_kept_world(folder).service_notes) == ((), {})


def test_a_dump_that_fails_is_reported_and_leaves_no_file(tmp_path, workspace, golden: Golden):
    folder = kept(tmp_path, FakeCache(HarnessError("redis-cli failed:\nno\nanswer")), workspace=workspace)
    golden(read_kept_world(folder).service_notes)
    assert not get_dump_path(folder, "cache").exists()


def test_a_dump_with_a_secret_that_cannot_be_masked_is_not_kept(tmp_path, workspace):
    masked = FakeCache(b"c2VzYW1l")
    keep = WorldKeeper(tmp_path / "kept", lambda text: text.replace("c2VzYW1l", "[masked]"))
    about = KeptWorld("abc", "/spec", {}, {})
    asyncio.run(keep.keep(about, FolderSandbox(workspace), {"cache": masked}, [], [SECRET]))
    assert list(read_kept_world(tmp_path / "kept" / "abc").service_notes) == ["cache"]
    assert not get_dump_path(tmp_path / "kept" / "abc", "cache").exists()


def test_a_service_that_held_nothing_is_kept_as_such(tmp_path, workspace):
    folder = kept(tmp_path, FakeCache(b""), workspace=workspace)
    assert get_dump_path(folder, "cache").read_bytes() == b""
    assert (read_kept_world(folder).notes, read_kept_world(folder).service_notes) == ((), {})


def test_what_a_dump_leaves_out_is_reported(tmp_path, workspace, golden: Golden):
    cache = FakeCache(b"most")
    cache.missing = "left out: the rest"
    folder = kept(tmp_path, cache, workspace=workspace)
    assert get_dump_path(folder, "cache").read_bytes() == b"most"
    golden(read_kept_world(folder).service_notes)


def test_values_of_references_are_hidden_as_secrets_are(tmp_path, workspace):
    (workspace / "large").write_bytes(b"x" * 1_200_000 + b"by-reference")
    folder = kept(tmp_path, FakeCache(b"\x0cby-reference"), workspace=workspace, values=["by-reference"])
    assert (folder / "workspace" / "large").read_bytes().endswith(b"x[masked]")
    assert get_dump_path(folder, "cache").read_bytes() == b"\x0c[masked]****"


def test_rows_with_bytes_that_are_not_text_show_no_secret(tmp_path):
    tables = rows(["public", "t"], columns=("table_schema", "table_name"))
    held = "\\xff" + SECRET.encode().hex()
    database = FakeDatabase(lambda sql: tables if "information_schema" in sql else rows([held], columns=("raw",)))
    folder = kept(tmp_path, database)
    assert SECRET.encode().hex() not in (folder / "services" / "db.json").read_text()
