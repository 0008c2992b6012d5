"""Real database servers, and a TCP plane in front of one, for tests of what services and transactions meet."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from glob import glob
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pymysql
import pytest

from free_port import free_port
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.tcp.plane import TcpPlane
from holdfast.planes.tcp.transactions import TrialService
from planes_kit import FakeContext

T = TypeVar("T")


def place(service: str, mode: str, **keys: Any) -> Injection:
    """A service fault; keys of a schedule go to its schedule."""
    schedule = {key: keys.pop(key) for key in list(keys) if key in Schedule.__struct_fields__}
    return Injection("service", service, mode, keys, Schedule(**schedule))


class Carried:
    """A plane at work: where a client connects to, and the trial behind it."""

    def __init__(self, plane: TcpPlane, context: FakeContext, port: int) -> None:
        self.plane = plane
        self.context = context
        self.port = port
        self.writes: list[str] = []

    @property
    def met(self) -> list[tuple[str, int, str]]:
        return [(entry.mode, entry.call, entry.effect) for entry in self.context.ledger]


@asynccontextmanager
async def carried(
    upstream: tuple[str, int] | str, kind: Any, *injections: Injection, service: str = "db", **more: Any
) -> AsyncIterator[Carried]:
    """A plane in front of `upstream`, closed afterwards."""
    context = FakeContext(injections)
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    plane = await TcpPlane(TrialService(upstream, service, kind, context, **more)).listen(sock)
    try:
        yield Carried(plane, context, port)
    finally:
        await plane.close()
        assert not (left := [task for task in asyncio.all_tasks() if _ours(task)]), left


def _ours(task: asyncio.Task[Any]) -> bool:
    coroutine: Any = task.get_coro()
    return not task.done() and "/planes/tcp/" in coroutine.cr_code.co_filename


def through(
    upstream: tuple[str, int] | str,
    kind: Any,
    injections: Sequence[Injection],
    client: Callable[[int], T],
    **more: Any,
) -> tuple[T, Carried]:
    """Runs a client, a plain function of the port, in a thread beside the plane."""

    async def run() -> tuple[T, Carried]:
        async with carried(upstream, kind, *injections, **more) as one:
            result = await asyncio.wait_for(asyncio.to_thread(client, one.port), 30)
        return result, one

    return asyncio.run(run())


def wait_for(true: Callable[[], bool], seconds: float = 15.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def serving(answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> Any:
    """A server of the test's own, as an async context manager that gives its address."""

    @asynccontextmanager
    async def served() -> AsyncIterator[tuple[str, int]]:
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await answer(reader, writer)
            except OSError:
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(one, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()
        finally:
            server.close()
            await server.wait_closed()

    return served()


# -- servers ------------------------------------------------------------------------------------
def _lacking(what: str) -> None:
    pytest.skip(f"{what} is not installed")


def _account(name: str) -> dict[str, Any]:
    """Who a server runs as: an unprivileged user where we are root."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        found = pwd.getpwnam("nobody")
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


@contextmanager
def _folder(account: dict[str, Any]) -> Iterator[Path]:
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="holdfast-test-", dir=base))
    if account:
        os.chown(folder, account["user"], account["group"])
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Postgres:
    """A server of its own; a database per test."""

    kind = "postgres"

    def __init__(self, port: int) -> None:
        self.port = port
        self.upstream = ("127.0.0.1", port)

    def connect(self, port: int | None = None, **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(host="127.0.0.1", port=port or self.port, user="postgres", dbname="postgres", **more)

    def sql(self, *texts: str) -> list[Any]:
        """Statements past the plane; the rows of the last."""
        with self.connect(autocommit=True) as connection:
            for text in texts:
                cursor = connection.execute(text)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []


@contextmanager
def postgres() -> Iterator[Postgres]:
    found = sorted(glob("/usr/lib/postgresql/*/bin/postgres")) or [shutil.which("postgres") or ""]
    if not found[-1]:
        _lacking("PostgreSQL")
    bin = Path(found[-1]).parent
    account = _account("postgres")
    with _folder(account) as folder:
        made = [bin / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N"]
        subprocess.run(made, check=True, capture_output=True, cwd="/", **account)
        port = free_port()
        settings = ("fsync=off", "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}")
        words = [bin / "postgres", "-D", folder / "data", "-p", str(port), *(w for s in settings for w in ("-c", s))]
        with _running(words, account, folder):
            server = Postgres(port)
            wait_for(lambda: _answers(lambda: server.connect().close()))
            yield server


class Mysql:
    """A server of its own; a database per test."""

    kind = "mysql"

    def __init__(self, port: int) -> None:
        self.port = port
        self.upstream = ("127.0.0.1", port)

    def connect(self, port: int | None = None, **more: Any) -> Any:
        given = {"host": "127.0.0.1", "user": "root", "database": "shop", **more}
        return pymysql.connect(port=port or self.port, **given)

    def sql(self, *texts: str, database: str | None = "shop") -> list[Any]:
        """Statements past the plane; the rows of the last."""
        connection = self.connect(autocommit=True, database=database)
        try:
            with connection.cursor() as cursor:
                for text in texts:
                    cursor.execute(text)
                return list(cursor.fetchall())
        finally:
            connection.close()


@contextmanager
def mysql() -> Iterator[Mysql]:
    # An ordinary user of Debian has no sbin on PATH.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    server_file, install = shutil.which("mariadbd", path=path), shutil.which("mariadb-install-db", path=path)
    if server_file is None or install is None:
        _lacking("MariaDB")
    account = _account("mysql")
    with _folder(account) as folder:
        data = f"--datadir={folder}/data"
        subprocess.run(
            [install, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, capture_output=True, cwd="/", **account,
        )  # fmt: skip
        port = free_port()
        words = [
            server_file, "--no-defaults", data, f"--port={port}", "--bind-address=127.0.0.1",
            f"--socket={folder}/sock", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0",
        ]  # fmt: skip
        with _running(words, account, folder):
            server = Mysql(port)
            wait_for(lambda: _answers(lambda: server.connect(database=None).close()))
            server.sql("CREATE DATABASE shop", database=None)
            yield server


@contextmanager
def redis() -> Iterator[tuple[str, int]]:
    server_file = shutil.which("redis-server")
    if server_file is None:
        _lacking("Redis")
    account = _account("redis")
    port = free_port()
    with _folder(account) as folder:
        words = [server_file, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        with _running(words, account, folder):
            wait_for(lambda: _answers(lambda: socket.create_connection(("127.0.0.1", port)).close()))
            yield ("127.0.0.1", port)


# -- a table of accounts, and what a client does to it through the plane --------------------------------
def with_account(server: Any) -> Any:
    """The server with one account of 100."""
    server.sql("DROP TABLE IF EXISTS account", "CREATE TABLE account (id int PRIMARY KEY, sum int)")
    server.sql("INSERT INTO account VALUES (1, 100)")
    return server


def run(db: Any, client: Callable[[int], Any], *injections: Injection, **more: Any) -> Any:
    """What the client returns, and the trial it ran in."""
    return through(db.upstream, db.kind, injections, client, **more)


def rows(db: Any) -> list[Any]:
    return list(db.sql("SELECT id, sum FROM account ORDER BY id"))


@contextmanager
def _running(words: Sequence[Any], account: dict[str, Any], folder: Path) -> Iterator[None]:
    log = (folder / "log").open("wb")
    process = subprocess.Popen([str(w) for w in words], stdout=log, stderr=log, cwd="/", **account)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _answers(connect: Callable[[], Any]) -> bool:
    try:
        connect()
    except (OSError, psycopg.OperationalError, pymysql.err.OperationalError):
        return False
    return True
