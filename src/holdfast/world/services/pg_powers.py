"""What the roles of a PostgreSQL server may do: read, and given back. A script that restores it may run other words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.world.services.pg_session import quoted
from holdfast.world.services.settings import OURS

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_POWERS = ("SUPERUSER", "INHERIT", "CREATEROLE", "CREATEDB", "LOGIN", "REPLICATION", "BYPASSRLS")
_ROLES = """SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls
FROM pg_catalog.pg_roles WHERE rolname <> %s AND NOT pg_catalog.starts_with(rolname, 'pg_') ORDER BY rolname"""
_MEMBERS = """SELECT of.rolname, who.rolname, giver.rolname FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles of ON of.oid = roleid JOIN pg_catalog.pg_roles who ON who.oid = member
JOIN pg_catalog.pg_roles giver ON giver.oid = grantor ORDER BY 1, 2, 3"""
_NONE = (False,) * len(_POWERS)


@dataclass(frozen=True)
class Powers:
    """The powers of every role but ours, and who belongs to which: role, member, and who granted it."""

    roles: dict[str, tuple[bool, ...]]
    members: tuple[tuple[str, str, str], ...]


async def powers(session: AsyncConnection[Any]) -> Powers:
    """As they are now."""
    roles = await (await session.execute(_ROLES, [OURS])).fetchall()
    members = await (await session.execute(_MEMBERS)).fetchall()
    return Powers({name: tuple(has) for name, *has in roles}, tuple(members))


async def give_back(session: AsyncConnection[Any], before: Powers) -> None:
    """Whoever has more than before, or other powers, has those again; a role that is new has none."""
    now = await powers(session)
    for role, member, giver in now.members:
        if (role, member) not in {granted[:2] for granted in before.members}:
            await session.execute(f"REVOKE {quoted(role)} FROM {quoted(member)} GRANTED BY {quoted(giver)} CASCADE")
    for name, has in now.roles.items():
        had = before.roles.get(name, _NONE)
        if has != had:
            words = (word if power else f"NO{word}" for word, power in zip(_POWERS, had, strict=True))
            await session.execute(f"ALTER ROLE {quoted(name)} {' '.join(words)}")
