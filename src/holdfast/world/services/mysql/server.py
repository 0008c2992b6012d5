"""MariaDB or MySQL: a separate server for every trial, started from a prepared data directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.errors import NoServer, ServiceFailed, UserError
from holdfast.model.world import ServiceSpec
from holdfast.sqltext.lexer import quote_name
from holdfast.world.services.confinement import User, find_server_user
from holdfast.world.services.mysql.audit import AUDITED, MyCounters, MyLog
from holdfast.world.services.mysql.session import MySqlSession, format_server_error
from holdfast.world.services.prepared import RunAsUser, prepare_data
from holdfast.world.services.programs import ServerProgram, choose, list_servers, refuse_unconfined
from holdfast.world.services.server import Server, ServerSetup, set_up, start
from holdfast.world.services.settings import OWN_ACCOUNT, MysqlSettings, hash_native, read_mysql_settings
from holdfast.world.services.spares import SpareKeeper
from holdfast.world.services.sql_service import SqlServerOfTrial

PLACES = ("/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin", "/opt/homebrew/opt/*/bin")
_SHARED = (
    "--no-defaults",
    "--innodb-log-file-size=4M",
    "--innodb-data-file-path=ibdata1:2M:autoextend",
    "--innodb-autoextend-increment=1",
    "--innodb-buffer-pool-size=32M",
)
_SOCKET = "mysql.sock"
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
"""Fast, not durable, with statements logged for the audit. It does not listen on the network."""
_ONLY = {
    True: ("--userstat=1", "--innodb-undo-tablespaces=0", "--innodb-temp-data-file-path=ibtmp1:1M:autoextend"),
    False: ("--skip-log-bin", "--performance-schema=1", "--mysqlx=0", "--mysql-native-password=ON"),
}
"""Options that only MariaDB or only MySQL has."""
POWERS = {
    True: "SUPER, SHUTDOWN, FILE",
    False: "SUPER, SHUTDOWN, FILE, SYSTEM_VARIABLES_ADMIN, SESSION_VARIABLES_ADMIN",
}
"""Privileges that root loses when the agent starts.

With them the agent could turn off the audit or read files of this machine.
"""
_EMPTY = "performance_schema"
"""A folder that every MariaDB has and that contains no files: MariaDB requires one."""
_DATABASES = """SELECT schema_name FROM information_schema.schemata
WHERE schema_name NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1"""


class Mysql(SqlServerOfTrial):
    """One trial's MariaDB or MySQL."""

    _own_session: MySqlSession

    def __init__(
        self, setup: ServerSetup, settings: MysqlSettings, server: Server, log: MyLog, own_session: MySqlSession
    ) -> None:
        super().__init__(setup, server, _SOCKET, settings.url)
        self.use(own_session, MyCounters(own_session, settings.database))
        self._log = log
        self._settings = settings
        self._mariadb = _is_mariadb(setup.program)

    async def execute(self, sql: str) -> None:
        """Execute fixtures as root, so that root owns what they define."""
        await self._own_session.execute(sql, user="root", password=self._settings.root_password)

    async def mark(self) -> None:
        """Take the snapshot that writes count from, and keep root from stopping the log or the server."""
        await asyncio.to_thread(self._restrict)
        await self._counters.mark()
        self._read_tally().clear()

    async def dump(self, path: Path) -> str:
        """Write the script; it includes accounts only from MariaDB, because MySQL's program cannot write them."""
        databases = await asyncio.to_thread(self._list_databases)
        await asyncio.to_thread(self._perform, write_password_removal(self._settings, mariadb=self._mariadb))
        writers, login = ("mariadb-dump", "mysqldump"), (OWN_ACCOUNT, self._setup.password)
        if databases:
            complete = ["--single-transaction", "--routines", "--events", "--triggers", "--databases", "--", *databases]
            await self._run_client(writers, complete, login, to=path)
        if self._mariadb:
            await self._run_client(writers, ["--system=users", "--insert-ignore"], login, to=path)
        return ""

    async def restore(self, path: Path) -> None:
        """Restore everything except the passwords of the spec's accounts."""
        refuse_unconfined(self._setup.user)
        databases = await asyncio.to_thread(self._list_databases)
        await asyncio.to_thread(self._perform, [f"DROP DATABASE {quote_name(name, 'mysql')}" for name in databases])
        with (
            _convert_errors(),
            self._own_session.open_session(database=None) as session,
            session.cursor() as cursor,
            _pause_events(cursor),
        ):
            # The script replaces the accounts, also Holdfast's own: this session was opened before, stays valid, and
            # sets the password again. Only then does root lose the privileges that the script needed.
            # It runs as root, because Holdfast's own account may not grant what root has from the start.
            root = ("root", self._settings.root_password)
            await self._run_client(("mariadb", "mysql"), ["--binary-mode"], root, source=path)
            for line in _write_account(OWN_ACCOUNT, "localhost", self._setup.password, mariadb=self._mariadb):
                cursor.execute(line)
            await asyncio.to_thread(self._restrict)

    async def _run_client(
        self,
        names: tuple[str, str],
        options: Sequence[str],
        account: tuple[str, str],
        *,
        source: Path | None = None,
        to: Path | None = None,
    ) -> None:
        """Run a client program, which has another name in MariaDB and MySQL; `account` is a name and a password."""
        login = ["--no-defaults", f"--socket={self._sockets}/{_SOCKET}", f"--user={account[0]}"]
        options = [*login, "--default-character-set=utf8mb4", *options]
        await self._run_program(
            names if self._mariadb else names[1:], options, {"MYSQL_PWD": account[1]}, source=source, to=to
        )

    def _list_databases(self) -> list[str]:
        return [name for (name,) in self._perform([_DATABASES])]

    def _perform(self, statements: Iterable[str]) -> Sequence[tuple[Any, ...]]:
        """Execute the statements; return the rows of the last one."""
        with _convert_errors(), self._own_session.open_session(database=None) as session, session.cursor() as cursor:
            rows: Sequence[tuple[Any, ...]] = ()
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall()
            return rows

    def _restrict(self) -> None:
        with self._own_session.open_session(database=None) as session, session.cursor() as cursor:
            powers = POWERS["MariaDB" in session.get_server_info()]
            for host in ("%", "localhost"):
                cursor.execute(f"REVOKE {powers} ON *.* FROM 'root'@'{host}'")


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn errors of the server into HarnessError: they are not the agent's failure."""
    import pymysql

    try:
        yield
    except pymysql.Error as refused:
        raise ServiceFailed(format_server_error(refused)) from refused


@contextmanager
def _pause_events(cursor: Any) -> Iterator[None]:
    """Turn the event scheduler off: MySQL would run root's events while root still has all privileges."""
    cursor.execute("SELECT @@GLOBAL.event_scheduler")
    ((before,),) = cursor.fetchall()
    if before != "ON":
        yield
        return
    cursor.execute("SET GLOBAL event_scheduler = OFF")
    yield
    cursor.execute("SET GLOBAL event_scheduler = ON")


async def open_mysql(spec: ServiceSpec) -> SpareKeeper[Mysql]:
    """Keep fresh servers ready for trials; raise UserError if the machine has neither MariaDB nor MySQL."""
    settings = read_mysql_settings(spec)
    user = find_server_user("mysql")
    program = _find_server(spec.image, user)
    mariadb = _is_mariadb(program)
    inputs = [program.version, _SHARED, _INSTALL[mariadb]]
    data = await asyncio.to_thread(
        prepare_data, "mysql", inputs, user, program.prefix, partial(fill_data, program.program, mariadb)
    )

    def build_argv(sockets: str, files: str) -> list[str]:
        places = [f"--datadir={files}", f"--socket={sockets}/{_SOCKET}", f"--pid-file={files}/server.pid"]
        places.append("--secure-file-priv=" + (f"{files}/{_EMPTY}" if mariadb else "NULL"))
        first = f"--init-file={sockets}/accounts.sql"
        return [str(program.program), *_SHARED, *SERVER, *_ONLY[mariadb], *places, first]

    def build_address(sockets: str) -> dict[str, str]:
        name, password = settings.account
        login = {"MYSQL_PWD": password, "MYSQL_USER": name}
        return {"MYSQL_HOST": "localhost", "MYSQL_UNIX_PORT": f"{sockets}/{_SOCKET}", **login}

    ready, notes = b"ready for connections", (*settings.notes, f"service {spec.name}: {AUDITED}")
    options: dict[str, Any] = {"archive": data.archive, "password": data.password, "env": settings.server}
    options["files"] = {"accounts.sql": write_accounts(settings, data.password, mariadb=mariadb)}
    setup = set_up(spec, program, user, build_argv, ready, build_address, notes, **options)
    return SpareKeeper(partial(_start, setup, settings), setup.close)


async def _start(setup: ServerSetup, settings: MysqlSettings) -> Mysql:
    log = MyLog(settings.database)
    server = await start(setup, log.add_line)
    login: dict[str, Any] = {
        "unix_socket": str(server.socket_folder / _SOCKET),
        "user": OWN_ACCOUNT,
        "password": setup.password,
    }
    login |= {"database": settings.database or None, "ssl_disabled": True}
    return Mysql(setup, settings, server, log, MySqlSession(setup.spec.name, login, log.add_own_session))


def write_accounts(settings: MysqlSettings, password: str, *, mariadb: bool) -> str:
    """Return the statements, one per line, that create Holdfast's account, root, and the user of one database.

    Passwords appear only as hashes.
    """
    everyone = {("root", "localhost"): settings.root_password, ("root", "%"): settings.root_password}
    lines = (
        ["DELETE FROM mysql.global_priv WHERE User='root' AND Host<>'localhost'", "FLUSH PRIVILEGES"] if mariadb else []
    )
    for (name, host), secret in {(OWN_ACCOUNT, "localhost"): password, **everyone}.items():
        lines += _write_account(name, host, secret, mariadb=mariadb)
        lines.append(f"GRANT ALL PRIVILEGES ON *.* TO {quote_text(name)}@{quote_text(host)} WITH GRANT OPTION")
    if settings.database:
        lines.append(f"CREATE DATABASE IF NOT EXISTS {quote_name(settings.database, 'mysql')}")
    if settings.user:
        lines += _write_account(settings.user, "%", settings.password, mariadb=mariadb)
    if settings.user and settings.database:
        pattern = settings.database.replace("_", "\\_").replace("%", "\\%")
        lines.append(f"GRANT ALL PRIVILEGES ON {quote_name(pattern, 'mysql')}.* TO {quote_text(settings.user)}@'%'")
    return "".join(f"{line};\n" for line in lines)


def _write_account(name: str, host: str, password: str, *, mariadb: bool) -> list[str]:
    """Create or change an account with that password."""
    account = f"{quote_text(name)}@{quote_text(host)}"
    login = f"IDENTIFIED VIA mysql_native_password USING '{hash_native(password)}'"
    if not mariadb:
        login = f"IDENTIFIED WITH mysql_native_password AS '{hash_native(password)}'"
    return [f"CREATE USER IF NOT EXISTS {account} {login}", f"ALTER USER {account} {login}"]


def write_password_removal(settings: MysqlSettings, *, mariadb: bool) -> list[str]:
    """Remove passwords from the accounts of the spec, so that no file contains even their hashes."""
    login = "VIA mysql_native_password USING ''" if mariadb else "WITH mysql_native_password AS ''"
    accounts = [("root", "localhost"), ("root", "%"), *([(settings.user, "%")] if settings.user else [])]
    return [f"ALTER USER IF EXISTS {quote_text(name)}@{quote_text(host)} IDENTIFIED {login}" for name, host in accounts]


def quote_text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def fill_data(program: Path, mariadb: bool, data: Path, password: str, run: RunAsUser) -> None:
    """Make the data directory from which all servers start."""
    if not mariadb:
        run([str(program), *_SHARED, f"--datadir={data}", "--initialize-insecure"], "")
        return
    plain = ["--auth-root-authentication-method=normal", "--skip-test-db", "--force"]  # does not resolve host names
    run([str(_find_installer(program)), *_SHARED, *_INSTALL[True], f"--datadir={data}", *plain], "")


def _find_installer(program: Path) -> Path:
    near = [program.parent, program.parent.parent / "bin", program.parent.parent / "scripts"]
    for path in (folder / name for folder in near for name in ("mariadb-install-db", "mysql_install_db")):
        if os.access(path, os.X_OK):
            return path
    raise UserError(
        f"{program} has no mariadb-install-db next to it",
        code="service-unavailable",
        hint="apt-get install mariadb-server",
    )


def _find_server(image: str | None, user: User | None) -> ServerProgram:
    servers = list_servers(user, ["mysqld", "mariadbd"], _describe, PLACES)
    if not servers:
        raise NoServer(
            "a mysql service needs MariaDB or MySQL, but neither is installed on this machine",
            hint="apt-get install mariadb-server (no wheel bundles one), or use --backend docker",
        )
    wanted = [server for server in servers if _is_mariadb(server) == ("mariadb" in (image or ""))]
    return choose(wanted or servers, image)


def _describe(text: str) -> str:
    """Return `MariaDB 10.11.6` for `mariadbd  Ver 10.11.6-MariaDB-… for …`."""
    number = text.partition("Ver ")[2].partition(" ")[0]
    return f"{'MariaDB' if 'MariaDB' in text else 'MySQL'} {number.partition('-')[0]}"


def _is_mariadb(server: ServerProgram) -> bool:
    return server.version.startswith("MariaDB")
