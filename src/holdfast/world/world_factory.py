"""Opens a boxed world for each trial."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from holdfast.errors import HarnessError, UserError
from holdfast.protocols.trial import TrialContext
from holdfast.world.boxed_world import BoxedWorld
from holdfast.world.site_worlds import SiteWorlds


class WorldFactory:
    """Opens worlds that share what a site keeps; closes that with itself."""

    def __init__(self, shared: SiteWorlds) -> None:
        self.shared = shared
        self._numbers = count(1)

    async def close(self) -> None:
        await self.shared.close()

    @asynccontextmanager
    async def open(self, context: TrialContext) -> AsyncIterator[BoxedWorld]:
        """A world for the trial, gone when this closes."""
        trial = context.trial
        folder = self.shared.folder / f"{trial.id}-{next(self._numbers)}"
        world = BoxedWorld(self.shared, self.shared.settings.fill(trial), folder, context)
        try:
            await _in_time(world)
            yield world
        except asyncio.CancelledError:
            raise
        except BaseException:
            await self._keep(world)
            raise
        else:
            await self._keep(world)
        finally:
            await world.close()

    async def _keep(self, world: BoxedWorld) -> None:
        if self.shared.settings.keeping is not None and world.worth_a_look:
            await world.keep(self.shared.settings.keeping)


async def _in_time(world: BoxedWorld) -> None:
    """Opens it, within the time that the trial has."""
    limit_ms = world.spec.resources.timeout_ms
    try:
        async with asyncio.timeout(None if limit_ms is None else limit_ms / 1000) as limit:
            try:
                await world.open()
            except UserError as refused:
                raise HarnessError(f"{refused}. {refused.hint}" if refused.hint else str(refused)) from refused
    except TimeoutError:
        if not limit.expired():
            raise
        held_up = f": {world.doing} was under way" if world.doing else ""
        why = f"the world was not ready within the trial's {limit_ms} ms (resources.timeout){held_up}"
        raise HarnessError(why) from None
