"""MariaDB or MySQL: a server of its own for every trial, from a prepared data directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import HarnessError, NoServer, UserError
from holdfast.model.world import AuditEvent, ServiceSpec
from holdfast.protocols import Rows
from holdfast.world.services.confinement import unconfined
from holdfast.world.services.endings import Endings
from holdfast.world.services.mysql_audit import AUDITED, MyCounters, MyLog, my_events
from holdfast.world.services.mysql_dump import MyDump
from holdfast.world.services.mysql_session import MySqlSession, said
from holdfast.world.services.passwords import native
from holdfast.world.services.prepared import PreparedData, RunAsUser, prepared
from holdfast.world.services.programs import Programs
from holdfast.world.services.server import Launch, Server, start
from holdfast.world.services.server_program import ServerProgram, candidates, choose, note, version
from holdfast.world.services.settings import OURS, MysqlSettings, mysql_settings, url
from holdfast.world.services.socket_folder import SocketFolder, sweep
from holdfast.world.services.spares import SpareKeeper
from holdfast.world.services.user import User, reachable, server_user
from holdfast.world.services.wait_for import wait_for

PLACES = ("/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin", "/opt/homebrew/opt/*/bin")
_SHARED = (
    "--no-defaults",
    "--innodb-log-file-size=4M",
    "--innodb-data-file-path=ibdata1:2M:autoextend",
    "--innodb-autoextend-increment=1",
    "--innodb-buffer-pool-size=32M",
)
_INSTALL = {True: ("--innodb-undo-tablespaces=0",), False: ()}
SERVER = (
    "--skip-networking",
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-fast-shutdown=2",
    "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-buffer-pool-load-at-startup=0",
    "--general-log=1",
    "--log-output=FILE",
    "--general-log-file=/dev/stderr",
    "--default-time-zone=+00:00",
)
"""Quick, forgetful, and its statements logged to us. Nothing listens on the network."""
_ONLY = {
    True: ("--userstat=1", "--innodb-undo-tablespaces=0", "--innodb-temp-data-file-path=ibtmp1:1M:autoextend"),
    False: ("--skip-log-bin", "--performance-schema=1", "--mysqlx=0", "--mysql-native-password=ON"),
}
"""What MariaDB and MySQL each have alone."""
POWERS = {
    True: "SUPER, SHUTDOWN, FILE",
    False: "SUPER, SHUTDOWN, FILE, SYSTEM_VARIABLES_ADMIN, SESSION_VARIABLES_ADMIN",
}
"""What root loses when the agent starts: it could turn the audit off, or have the server read files of this machine."""
_EMPTY = "performance_schema"
"""A folder that every MariaDB has, and that holds no file of anybody's: MariaDB cannot be told that there is none."""
_DATABASES = """SELECT schema_name FROM information_schema.schemata
WHERE schema_name NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1"""


class Mysql:
    """One trial's MariaDB or MySQL."""

    def __init__(
        self,
        spec: ServiceSpec,
        settings: MysqlSettings,
        server: Server,
        log: MyLog,
        own_session: MySqlSession,
        counters: MyCounters,
        dump: MyDump,
        endings: Endings,
        notes: tuple[str, ...],
    ) -> None:
        self.spec = spec
        self.upstream: tuple[str, int] | str = str(server.socket_folder / "mysql.sock")
        self.notes = notes
        self._settings = settings
        self._server = server
        self._log = log
        self._own_session = own_session
        self._counters = counters
        self._dump = dump
        self._endings = endings

    @property
    def alive(self) -> bool:
        return self._server.alive

    @property
    def variables(self) -> Mapping[str, str]:
        return {"URL": url("mysql", *self._settings.account, self._settings.database)}

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        return await self._own_session.query(sql, timeout_s=timeout_s, keep=keep)

    async def execute(self, sql: str) -> None:
        """As root, so that what a fixture defines is root's."""
        await self._own_session.execute(sql, user="root", password=self._settings.root_password)

    async def prepare(self, sql: str) -> None:
        await self._own_session.prepare(sql)

    async def mark(self) -> None:
        """Writes count from here, and root can no longer stop the log or the server."""
        await asyncio.to_thread(self._restrict)
        await asyncio.to_thread(self._counters.mark)
        self._log_now()
        self._log.tally.clear()

    async def writes(self) -> list[AuditEvent]:
        counters = await asyncio.to_thread(self._counters.since)
        self._log_now()
        return my_events(self.spec.name, self._log, counters)

    async def dump(self, path: Path) -> str:
        databases = await asyncio.to_thread(self._databases)
        await asyncio.to_thread(self._perform, no_passwords(self._settings, mariadb=self._dump.mariadb))
        await self._dump.write(self._server.socket_folder, path, databases)
        return ""

    async def restore(self, path: Path) -> None:
        """All but the passwords of the spec's accounts is as it was written."""
        databases = await asyncio.to_thread(self._databases)
        await asyncio.to_thread(self._perform, [f"DROP DATABASE {quoted(name)}" for name in databases])
        with (
            _ours(),
            self._own_session.session(database=None) as session,
            session.cursor() as cursor,
            _no_events(cursor),
        ):
            await self._dump.read(self._server.socket_folder, path, self._settings.root_password)
            for line in _account(OURS, "localhost", self._dump.password, mariadb=self._dump.mariadb):
                cursor.execute(line)
            await asyncio.to_thread(self._restrict)

    async def close(self) -> None:
        self._server.end()
        self._endings.begin(self._server.close())

    def _databases(self) -> list[str]:
        with _ours(), self._own_session.session(database=None) as session, session.cursor() as cursor:
            cursor.execute(_DATABASES)
            return [name for (name,) in cursor.fetchall()]

    def _perform(self, statements: Iterable[str]) -> None:
        with _ours(), self._own_session.session(database=None) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def _restrict(self) -> None:
        with self._own_session.session(database=None) as session, session.cursor() as cursor:
            powers = POWERS["MariaDB" in session.get_server_info()]
            for host in ("%", "localhost"):
                cursor.execute(f"REVOKE {powers} ON *.* FROM 'root'@'{host}'")

    def _log_now(self) -> None:
        self._server.log.drain()
        self._log.flush()


@contextmanager
def _ours() -> Iterator[None]:
    """What the server refuses here is no failure of an agent's."""
    import pymysql

    try:
        yield
    except pymysql.Error as refused:
        raise HarnessError(said(refused)) from refused


@contextmanager
def _no_events(cursor: Any) -> Iterator[None]:
    """MySQL begins an event as soon as it is there: one of root's would run while root still has all powers."""
    cursor.execute("SELECT @@GLOBAL.event_scheduler")
    ((before,),) = cursor.fetchall()
    if before != "ON":
        yield
        return
    cursor.execute("SET GLOBAL event_scheduler = OFF")
    yield
    cursor.execute("SET GLOBAL event_scheduler = ON")


async def open_mysql(spec: ServiceSpec, folder: Path) -> SpareKeeper[Mysql]:
    """Keeps fresh servers ready for trials; UserError if the machine has neither MariaDB nor MySQL."""
    settings = mysql_settings(spec)
    user = server_user("mysql")
    found = _server(spec.image, user)
    mariadb = _is_mariadb(found)
    data = await prepared(
        "mysql", [found.version, _SHARED, _INSTALL[mariadb]], user, found.prefix, MysqlTemplate(found.program, mariadb)
    )
    sweep()
    home = SocketFolder(folder, user)
    audited = f"service {spec.name}: {AUDITED}"
    notes = (*note(spec.image, spec.name, found.version), *settings.notes, audited, *unconfined(spec.name, user))
    launch = _launch(spec, found, settings, data, user)
    dump = MyDump(Programs(user, found.prefix), found.program, data.password, mariadb)

    endings = Endings()

    async def fresh() -> Mysql:
        return await _start(spec, settings, home, launch, data, dump, endings, notes)

    return SpareKeeper(fresh, home.close, endings)


async def _start(
    spec: ServiceSpec,
    settings: MysqlSettings,
    home: SocketFolder,
    launch: Launch,
    data: PreparedData,
    dump: MyDump,
    endings: Endings,
    notes: tuple[str, ...],
) -> Mysql:
    log = MyLog(settings.database)
    server = await start(launch, home, log.line)
    try:
        user, password = settings.account
        socket = str(server.socket_folder / "mysql.sock")
        address = {"MYSQL_HOST": "localhost", "MYSQL_UNIX_PORT": socket, "MYSQL_PWD": password, "MYSQL_USER": user}
        await wait_for(spec, address, launch.user)
    except BaseException:
        await server.close()
        raise
    login: dict[str, str | bool | None] = {"unix_socket": socket, "user": OURS, "password": data.password}
    login |= {"database": settings.database or None, "ssl_disabled": True}
    own_session = MySqlSession(spec.name, login, log.opened)
    counters = MyCounters(own_session, settings.database)
    return Mysql(spec, settings, server, log, own_session, counters, dump, endings, notes)


def _launch(
    spec: ServiceSpec, found: ServerProgram, settings: MysqlSettings, data: PreparedData, user: User | None
) -> Launch:
    mariadb = _is_mariadb(found)

    def argv(sockets: str, files: str) -> list[str]:
        places = [f"--datadir={files}", f"--socket={sockets}/mysql.sock", f"--pid-file={files}/server.pid"]
        places.append("--secure-file-priv=" + (f"{files}/{_EMPTY}" if mariadb else "NULL"))
        first = f"--init-file={sockets}/accounts.sql"
        return [str(found.program), *_SHARED, *SERVER, *_ONLY[mariadb], *places, first]

    files = {"accounts.sql": accounts(settings, data.password, mariadb=mariadb)}
    return Launch(
        spec.name, argv, b"ready for connections", user, data.archive, files, settings.server, (found.prefix,)
    )


def accounts(settings: MysqlSettings, password: str, *, mariadb: bool) -> str:
    """One statement a line: our own account, root, and the user of one database. Passwords only as hashes."""
    everyone = {("root", "localhost"): settings.root_password, ("root", "%"): settings.root_password}
    lines = (
        ["DELETE FROM mysql.global_priv WHERE User='root' AND Host<>'localhost'", "FLUSH PRIVILEGES"] if mariadb else []
    )
    for (name, host), secret in {(OURS, "localhost"): password, **everyone}.items():
        lines += _account(name, host, secret, mariadb=mariadb)
        lines.append(f"GRANT ALL PRIVILEGES ON *.* TO {text(name)}@{text(host)} WITH GRANT OPTION")
    if settings.database:
        lines.append(f"CREATE DATABASE IF NOT EXISTS {quoted(settings.database)}")
    if settings.user:
        lines += _account(settings.user, "%", settings.password, mariadb=mariadb)
    if settings.user and settings.database:
        pattern = settings.database.replace("_", "\\_").replace("%", "\\%")
        lines.append(f"GRANT ALL PRIVILEGES ON {quoted(pattern)}.* TO {text(settings.user)}@'%'")
    return "".join(f"{line};\n" for line in lines)


def _account(name: str, host: str, password: str, *, mariadb: bool) -> list[str]:
    """An account with that password, whether or not it was there."""
    who = f"{text(name)}@{text(host)}"
    how = f"IDENTIFIED VIA mysql_native_password USING '{native(password)}'"
    if not mariadb:
        how = f"IDENTIFIED WITH mysql_native_password AS '{native(password)}'"
    return [f"CREATE USER IF NOT EXISTS {who} {how}", f"ALTER USER {who} {how}"]


def no_passwords(settings: MysqlSettings, *, mariadb: bool) -> list[str]:
    """Takes them from the accounts of the spec that are left: not even their hashes are to be found in a file."""
    how = "VIA mysql_native_password USING ''" if mariadb else "WITH mysql_native_password AS ''"
    named = [("root", "localhost"), ("root", "%"), *([(settings.user, "%")] if settings.user else [])]
    return [f"ALTER USER IF EXISTS {text(name)}@{text(host)} IDENTIFIED {how}" for name, host in named]


def text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class MysqlTemplate:
    """Makes the data directory that all servers start from."""

    def __init__(self, program: Path, mariadb: bool) -> None:
        self._program = program
        self._mariadb = mariadb

    def __call__(self, data: Path, password: str, run: RunAsUser) -> None:
        if not self._mariadb:
            run([str(self._program), *_SHARED, f"--datadir={data}", "--initialize-insecure"])
            return
        install = _installer(self._program)
        plain = ["--auth-root-authentication-method=normal", "--skip-test-db", "--force"]  # looks no host up
        run([str(install), *_SHARED, *_INSTALL[True], f"--datadir={data}", *plain])


def _installer(program: Path) -> Path:
    near = [program.parent, program.parent.parent / "bin", program.parent.parent / "scripts"]
    for path in (folder / name for folder in near for name in ("mariadb-install-db", "mysql_install_db")):
        if os.access(path, os.X_OK):
            return path
    raise UserError(f"{program} has no mariadb-install-db beside it", hint="apt-get install mariadb-server")


def _server(image: str | None, user: User | None) -> ServerProgram:
    paths = candidates(["mysqld", "mariadbd"], PLACES, ())
    found = [ServerProgram(path, _named(said)) for path in paths if reachable(path, user) and (said := version(path))]
    if not found:
        raise NoServer(
            "a mysql service needs MariaDB or MySQL, and none is on this machine",
            hint="apt-get install mariadb-server (no wheel bundles one), or use --backend docker",
        )
    wanted = [one for one in found if _is_mariadb(one) == ("mariadb" in (image or ""))]
    return choose(wanted or found, image)


def _named(said: str) -> str:
    """`mariadbd  Ver 10.11.6-MariaDB-… for …` as `MariaDB 10.11.6`."""
    number = said.partition("Ver ")[2].partition(" ")[0]
    return f"{'MariaDB' if 'MariaDB' in said else 'MySQL'} {number.partition('-')[0]}"


def _is_mariadb(found: ServerProgram) -> bool:
    return found.version.startswith("MariaDB")
