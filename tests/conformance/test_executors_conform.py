"""What every executor promises, tried on the local one; on Ray: tests/integration/test_ray.py."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from holdfast.execute.local import LocalExecutor, Observed
from holdfast.execute.open_site import open_site
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial
from holdfast.protocols.executor import Executor
from holdfast.testing import ContractChecks, executors
from holdfast.testing.executors import CHECKS, check_executor


@asynccontextmanager
async def opened(spec: Spec) -> AsyncIterator[Executor]:
    executor = LocalExecutor(await open_site(spec, environ=os.environ, concurrency=3))
    try:
        yield executor
    finally:
        await executor.close()


@pytest.mark.parametrize("check", CHECKS)
def test_the_local_executor_keeps_its_promises(check: str, tmp_path: Path) -> None:
    asyncio.run(CHECKS[check](opened, tmp_path))


class Broken(LocalExecutor):
    """Breaks one promise; which, a test says."""

    breaks = ""

    def use_one_slot(self) -> None:
        if self.breaks != "check_one_at_a_time":
            super().use_one_slot()

    async def execute(self, trials: Iterable[Trial], **told: Any) -> AsyncGenerator[Observed, None]:  # type: ignore[override]
        if self.breaks == "check_lazy_feed":
            trials = list(islice(trials, 10_000))
        for name in ("store", "on_fault"):
            if self.breaks == BREAKS.get(name):
                told.pop(name, None)
        async for trial, seen in super().execute(trials, **told):
            yield trial, seen
            if self.breaks == "check_each_trial_once":
                yield trial, seen


BREAKS = {
    "store": "check_stored_is_returned",
    "on_fault": "check_callbacks",
    "ahead": "check_lazy_feed",
    "twice": "check_each_trial_once",
    "beside": "check_one_at_a_time",
}


def test_an_executor_that_breaks_a_promise_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def broken(spec: Spec) -> AsyncIterator[Executor]:
        executor = Broken(await open_site(spec, environ=os.environ, concurrency=3))
        executor.breaks = Path(spec.path).parent.name
        try:
            yield executor
        finally:
            await executor.close()

    monkeypatch.setattr(executors, "CHECKS", ContractChecks({name: CHECKS[name] for name in BREAKS.values()}))
    failures = asyncio.run(check_executor(broken, tmp_path))
    assert set(failures) == set(BREAKS.values())
