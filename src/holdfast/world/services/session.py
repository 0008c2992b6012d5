"""A database whose every question goes through one session: what all SQL services have in common."""

from __future__ import annotations

from holdfast.protocols import Rows
from holdfast.world.services.mysql_session import MySqlSession
from holdfast.world.services.pg_session import PgSession


class Session:
    """The part of a Database that its session does."""

    _own_session: PgSession | MySqlSession

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        return await self._own_session.query(sql, timeout_s=timeout_s, keep=keep)

    async def execute(self, sql: str) -> None:
        await self._own_session.execute(sql)

    async def prepare(self, sql: str) -> None:
        await self._own_session.prepare(sql)
