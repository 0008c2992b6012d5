"""A database whose every question goes through one door: what all SQL services have in common."""

from __future__ import annotations

from holdfast.protocols import Rows
from holdfast.world.services.my_door import MyDoor
from holdfast.world.services.pg_door import PgDoor


class ThroughDoor:
    """The part of a Database that its door does."""

    _door: PgDoor | MyDoor

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        return await self._door.query(sql, timeout_s=timeout_s, keep=keep)

    async def execute(self, sql: str) -> None:
        await self._door.execute(sql)

    async def prepare(self, sql: str) -> None:
        await self._door.prepare(sql)
