"""Folders, spares, programs, users, URLs and commands around a server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.errors import HarnessError, UserError
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.world.services import open_keeper, redis
from holdfast.world.services import programs as waiting
from holdfast.world.services.confinement import User, is_readable
from holdfast.world.services.drivers import External, ExternalSql
from holdfast.world.services.mysql import server as mysql
from holdfast.world.services.mysql.server import write_accounts
from holdfast.world.services.postgres import server as postgres
from holdfast.world.services.programs import ServerProgram, choose, list_candidates
from holdfast.world.services.server import SocketFolder
from holdfast.world.services.settings import read_mysql_settings
from holdfast.world.services.spares import SpareKeeper
from refused import refused

TRIAL = Trial("0", "contract", Scenario("calm"), Task(("?",)))


# -- folders ------------------------------------------------------------------------------------
def test_a_socket_fits_below_a_home() -> None:
    found = SocketFolder(None)
    try:
        assert len(str(found.make_socket_folder() / ".s.PGSQL.5432")) < 100
        assert found.make_socket_folder() != found.make_socket_folder()
    finally:
        found.close()
    assert not found.path.exists()


def test_a_folder_is_reachable_only_if_all_above_it_are(tmp_path: Path) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    for folder in (*inside.parents[:-1], inside):
        if os.geteuid() == folder.stat().st_uid and folder.is_relative_to(tmp_path):
            folder.chmod(0o755)
    stranger = User(54321, 54321)
    before = is_readable(tmp_path, stranger)
    assert is_readable(inside, stranger) is before
    (tmp_path / "a").chmod(0o700)
    assert not is_readable(inside, stranger)


# -- spares -------------------------------------------------------------------------------------
class Fake:
    def __init__(self) -> None:
        self.alive = True
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class ProbePlace:
    def __init__(self) -> None:
        self.made: list[Fake] = []
        self.done = False

    async def start(self) -> Fake:
        await asyncio.sleep(0)
        self.made.append(Fake())
        return self.made[-1]

    def keeper(self) -> SpareKeeper[Fake]:
        return SpareKeeper(self.start, self.end)

    async def end(self) -> None:
        self.done = True


async def test_every_trial_gets_a_server_of_its_own_and_the_next_is_started() -> None:
    probe_site = ProbePlace()
    keeper = probe_site.keeper()
    first, second = await keeper.provide(TRIAL, alone=True), await keeper.provide(TRIAL, alone=False)
    assert first is not second
    await asyncio.sleep(0.01)
    await keeper.close()
    assert [fake.closed for fake in probe_site.made] == [False, False, True, True]
    assert probe_site.done


async def test_a_spare_that_died_while_it_waited_is_not_given_out() -> None:
    probe_site = ProbePlace()
    keeper = probe_site.keeper()
    await asyncio.sleep(0.01)
    probe_site.made[0].alive = False
    given = await keeper.provide(TRIAL, alone=True)
    assert given.alive
    assert probe_site.made[0].closed
    await keeper.close()


async def test_a_start_that_fails_fails_its_trial_and_the_next_is_tried_again() -> None:
    tries = []

    async def start() -> Fake:
        tries.append(1)
        if len(tries) == 1:
            raise HarnessError("no")
        return Fake()

    keeper = SpareKeeper(start, ProbePlace().end)
    with pytest.raises(HarnessError):
        await keeper.provide(TRIAL, alone=True)
    assert (await keeper.provide(TRIAL, alone=True)).alive
    await keeper.close()


# -- programs -----------------------------------------------------------------------------------
def test_the_version_that_the_image_asks_for_is_preferred() -> None:
    found = [ServerProgram(Path("/a"), "PostgreSQL 17.1"), ServerProgram(Path("/b"), "PostgreSQL 16.4")]
    assert choose(found, "postgres:16-alpine") is found[1]
    assert choose(found, "postgres:15") is found[0]
    assert choose(found, None) is found[0]


def test_newer_programs_of_the_usual_places_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for number in ("9", "15", "16"):
        (tmp_path / number / "bin").mkdir(parents=True)
        program = tmp_path / number / "bin" / "server"
        program.write_text("")
        program.chmod(0o755 if number != "16" else 0o644)
    found = list(list_candidates(["server"], [f"{tmp_path}/*/bin"], [("no_such_module", "bin")]))
    assert found == [tmp_path / "15/bin/server", tmp_path / "9/bin/server"]


@pytest.mark.parametrize(("kind", "module"), [("postgres", postgres), ("mysql", mysql), ("redis", redis)])
def test_a_missing_server_is_reported_with_the_line_that_installs_it(
    kind: str, module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(module, "PLACES", ())
    spec = ServiceSpec("db", kind)  # type: ignore[arg-type]
    with refused("service-unavailable") as told:
        asyncio.run(open_keeper(spec, tmp_path))
    assert "apt-get install" in told.value.hint


def test_an_image_without_a_local_server_asks_for_docker(tmp_path: Path) -> None:
    with refused("service-unavailable") as told:
        asyncio.run(open_keeper(ServiceSpec("bus", "container", "kafka:3"), tmp_path))
    assert "--backend docker" in told.value.hint


def test_accounts_of_mariadb_hold_no_password_in_clear() -> None:
    spec = ServiceSpec("db", "mysql", env={"MYSQL_ROOT_PASSWORD": "r'oot", "MYSQL_DATABASE": "my_db",
                                           "MYSQL_USER": "a'b", "MYSQL_PASSWORD": "hush"})  # fmt: skip
    written = write_accounts(read_mysql_settings(spec), "ours", mariadb=True)
    assert "hush" not in written
    assert "ours" not in written
    assert "r'oot" not in written
    assert "GRANT ALL PRIVILEGES ON `my\\_db`.* TO 'a''b'@'%';" in written


# -- external -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("url", "kind", "upstream", "shown"),
    [
        ("postgresql://u:p@h.example:5433/d?x={1}", ExternalSql, ("h.example", 5433),
         "postgresql://u:p@db:1/d?x={1}"),
        ("mysql+pymysql://u@h/d", ExternalSql, ("h", 3306), "mysql+pymysql://u@db:1/d"),
        ("https://api.example/v1", External, ("api.example", 443), "https://db:1/v1"),
    ],
)  # fmt: skip
async def test_an_external_service_is_its_url(
    url: str, kind: type, upstream: tuple[str, int], shown: str, tmp_path: Path
) -> None:
    keeper = await open_keeper(ServiceSpec("db", "external", settings={"url": url}), tmp_path)
    service = await keeper.provide(TRIAL, alone=True)
    assert type(service) is kind
    assert service.upstream == upstream
    assert service.variables["URL"].format(host="db", port=1) == shown
    assert "trials" in service.notes[0]


@pytest.mark.parametrize("url", ["postgresql:///d", "strange://h/x", "http://h:99999/"])
def test_a_url_that_leads_nowhere_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="its url"):
        asyncio.run(open_keeper(ServiceSpec("db", "external", settings={"url": url}), tmp_path))


# -- wait_for -----------------------------------------------------------------------------------
def waited(command: str, limit_s: float, monkeypatch: pytest.MonkeyPatch, **address: str) -> None:
    monkeypatch.setattr(waiting, "WAIT_S", limit_s)
    asyncio.run(waiting.wait_for(ServiceSpec("db", "postgres", wait_for=command), address, None))


@pytest.mark.parametrize(
    "command", ["pg_isready", "pg_isready -U app -h db", "redis-cli -h cache ping", "mysqladmin ping -h localhost"]
)
def test_a_command_that_asks_what_we_know_is_not_run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    waited(command, 0.2, monkeypatch)


def test_another_command_runs_until_it_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = tmp_path / "tried"
    waited(f'echo x >> {tried}; [ "$PGHOST" = here ] && [ $(wc -l < {tried}) -ge 3 ]', 10, monkeypatch, PGHOST="here")
    assert tried.read_text().count("x") == 3


def test_a_command_that_never_succeeds_is_an_error_with_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HarnessError, match="not there yet"):
        waited("echo not there yet; exit 1", 0.3, monkeypatch)
    with refused("service-failed"):
        waited("pg_isready; sleep 60", 0.3, monkeypatch)
