"""Services of a kept world: which are opened again, and what is said of those that are not."""

import asyncio

import pytest

from golden_words import Golden
from holdfast.errors import HarnessError, UserError
from holdfast.execute.revisit import ReopenedService, reopen
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Database, Mock
from holdfast.world.kept_world import KeptWorld, get_dump_path
from world_kit import TRIAL, FakeDatabase, FakeMock, rows


class Server(FakeDatabase):
    """A database that can be filled again, or cannot."""

    def __init__(self, broken=""):
        super().__init__(lambda sql: rows([1]))
        self.broken = broken
        self.restored = None
        self.closed = False

    async def dump(self, path):
        """Nothing is written."""
        return ""

    async def restore(self, path):
        if self.broken:
            raise HarnessError(self.broken)
        self.restored = path

    async def close(self):
        self.closed = True


class FakeWorlds:
    """Worlds with one keeper, or without a server."""

    def __init__(self, service=None):
        self.service = service
        self.placed = {}
        self.closed = 0

    async def find_keeper(self, spec):
        if self.service is None:
            raise UserError("none is on this machine", hint="install it")
        return self

    async def provide(self, trial, *, alone):
        return self.service

    async def close(self):
        self.closed += 1

    def replace_keeper(self, spec, keeper):
        self.placed[spec.name] = keeper


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "services").mkdir()
    get_dump_path(tmp_path, "db").write_text("script")
    return tmp_path


def reopened(folder, worlds, spec, **notes):
    told = []
    kept = KeptWorld(TRIAL.id, "/spec", {}, {}, service_notes=notes)
    return asyncio.run(reopen(spec, worlds, TRIAL, folder, kept, told.append)), told


def provided(worlds, name):
    return asyncio.run(worlds.placed[name].provide(TRIAL, alone=True))


def test_a_server_is_filled_and_nothing_more_is_asked_of_it(folder):
    worlds = FakeWorlds(server := Server())
    assert reopened(folder, worlds, server.spec) == (True, [])
    assert server.restored == get_dump_path(folder, "db")
    found = provided(worlds, "db")
    assert isinstance(found, ReopenedService)
    assert not isinstance(found, Database)
    assert found.upstream == server.upstream
    asyncio.run(found.close())
    assert server.closed


def test_what_is_missing_in_one_that_is_there_is_reported(folder, golden: Golden):
    worlds = FakeWorlds(server := Server())
    golden(reopened(folder, worlds, server.spec, db="left out: one", cache="gone"))


def test_a_service_that_nobody_took_is_closed_with_its_keeper(folder):
    worlds = FakeWorlds(server := Server())
    reopened(folder, worlds, server.spec)
    asyncio.run(worlds.placed["db"].close())
    assert (server.closed, worlds.closed) == (True, 1)


def test_one_that_was_not_kept_is_reported_with_its_reason(folder, golden: Golden):
    worlds = FakeWorlds(Server())
    cache = ServiceSpec("cache", "redis")
    golden(reopened(folder, worlds, cache, db="x", cache="it was gone"))
    golden(reopened(folder, worlds, ServiceSpec("odd", "container")))
    assert worlds.placed == {}


def test_one_whose_server_is_gone_or_refuses_is_reported(folder, golden: Golden):
    spec = Server().spec
    golden(reopened(folder, FakeWorlds(), spec))
    worlds = FakeWorlds(server := Server("psql failed:\nno"))
    golden(reopened(folder, worlds, spec))
    assert server.closed


def test_a_mock_stays_a_mock(folder):
    worlds = FakeWorlds(mock := FakeMock())
    assert reopened(folder, worlds, mock.spec) == (True, [])
    assert isinstance(provided(worlds, "smtp"), Mock)
