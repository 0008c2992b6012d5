"""A session of ours that stays open between two uses which follow soon: opening one is most of what a short use costs.

Whoever uses it finds it as good as new. It is closed when nobody has used it for a moment: a session keeps others from
dropping, renaming and copying its database, which the server tries again for five seconds.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import AsyncConnection

IDLE_S = 0.25
"""How long it waits for its next use."""
FLUSHES = 150_000
"""From this version on a session can be told to hand in its row counts; before, it does when it ends."""
_SETTINGS = "SELECT EXISTS (SELECT FROM pg_catalog.pg_db_role_setting)"


class KeptSession:
    """Opens a session when one is needed. End it after use."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncConnection[Any]]]) -> None:
        self._connect = connect
        self._session: AsyncConnection[Any] | None = None
        self._changed = False
        """Its settings may not be those of a new one."""
        self._patient = True
        """Nobody else can be there yet."""
        self._closing: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def use(self, *, changes: bool = False) -> AsyncIterator[AsyncConnection[Any]]:
        """A session for one purpose; with `changes` it may be left in any state. Whatever fails ends it."""
        session = await self._ready()
        try:
            yield session
        except BaseException:
            await session.close()
            raise
        if session.info.server_version < FLUSHES:
            await session.close()
            return
        self._session, self._changed = session, changes
        if not self._patient:
            self.wait()

    def wait(self, idle_s: float | None = None) -> None:
        """From now on its next use must follow soon."""
        self._hold()
        self._patient = False
        self._closing = asyncio.get_running_loop().call_later(IDLE_S if idle_s is None else idle_s, self.end)

    def end(self) -> None:
        """The next use has a session that logs in anew."""
        self._hold()
        session, self._session = self._session, None
        if session is not None:
            session.pgconn.finish()

    async def _ready(self) -> AsyncConnection[Any]:
        self._hold()
        session, self._session = self._session, None
        if session is not None:
            if await _as_new(session, changed=self._changed):
                return session
            await session.close()
        return await self._connect()

    def _hold(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None


async def _as_new(session: AsyncConnection[Any], *, changed: bool) -> bool:
    """Makes it so; False where the server has ended it, or a login would find settings that it does not have."""
    from psycopg import Error

    if select.select([session.fileno()], [], [], 0)[0]:  # what a server says unasked is that it ends
        return False
    if not changed:
        return True
    with suppress(Error):
        await session.rollback()
        await session.execute("DISCARD ALL")
        return await (await session.execute(_SETTINGS)).fetchone() == (False,)
    return False
