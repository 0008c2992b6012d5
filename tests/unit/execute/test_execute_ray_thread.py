"""Calls to Ray that may never come back."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast.errors import UserError
from holdfast.execute import ray_cluster
from holdfast.execute.ray_cluster import RayThread


def test_all_calls_are_of_one_thread_that_lives_on() -> None:
    """A cluster of our own dies with the thread that started it."""

    async def go() -> set[int]:
        thread = RayThread()
        return {await thread.run(threading.get_ident, "it was not told") for _ in range(3)}

    (ident,) = asyncio.run(go())
    assert ident in {one.ident for one in threading.enumerate()}
    assert ident != threading.get_ident()


def test_what_never_returns_is_reported_and_what_it_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "ANSWER_S", 0.05)
    forever = threading.Event()
    with pytest.raises(UserError) as raised:
        asyncio.run(RayThread().run(forever.wait, "the cluster was not joined"))
    assert raised.value.code == "cluster-unavailable"
    forever.set()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(RayThread().run(lambda: 1 // 0, "x"))
