"""Real servers for tests: kept by a keeper in one event loop for a whole module."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast.errors import UserError
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, ServiceSpec
from holdfast.protocols.service import ServiceKeeper
from holdfast.world.services import open_keeper

TRIAL = Trial("0", "contract", Scenario("calm"), Task(("?",)))
T = TypeVar("T")


class Bay:
    """A keeper and the loop that it lives in."""

    def __init__(self, runner: asyncio.Runner, keeper: ServiceKeeper) -> None:
        self._runner = runner
        self.keeper = keeper

    def with_server(self, scene: Callable[[Any], Awaitable[T]]) -> T:
        """Runs a scene with a fresh server, which is gone afterwards."""

        async def play() -> T:
            service = await self.keeper.provide(TRIAL, alone=True)
            try:
                return await scene(service)
            finally:
                await service.close()

        return self._runner.run(play())


def on_a_server(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test whose first argument is a fresh server of the file's fixture `sea`."""
    _, *others = inspect.signature(test).parameters.values()

    def run_test(sea: Bay, **given: Any) -> None:
        sea.with_server(lambda server: test(server, **given))

    run_test.__name__, run_test.__doc__, run_test.__module__ = test.__name__, test.__doc__, test.__module__
    sea = inspect.Parameter("sea", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run_test.__signature__ = inspect.Signature([sea, *others])  # type: ignore[attr-defined]
    return run_test


@contextmanager
def bay(spec: ServiceSpec, folder: Path) -> Iterator[Bay]:
    """Opens the keeper of a service; skips where the machine has no such server."""
    with asyncio.Runner() as runner:
        try:
            keeper = runner.run(open_keeper(spec, folder))
        except UserError as missing:
            if "installed on this machine" not in str(missing):
                raise
            pytest.skip(str(missing))
        try:
            yield Bay(runner, keeper)
        finally:
            runner.run(keeper.close())


def told(events: list[AuditEvent]) -> list[tuple[str, str, int | None]]:
    return sorted((e.details["table"], e.details["op"], e.details["rows"]) for e in events)
