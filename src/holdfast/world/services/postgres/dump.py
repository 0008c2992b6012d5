"""The dump of a PostgreSQL server, with its roles, databases, sequences, extensions and rows, as a script.

Running the script replaces the content of another server, except for the privileges of its roles.
"""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.sqltext.lexer import quote_name
from holdfast.world.services.settings import OWN_ACCOUNT

if TYPE_CHECKING:
    from psycopg import AsyncConnection

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
