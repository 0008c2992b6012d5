"""One thing that fails to close keeps no other open."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.processes.all_ended import all_ended


def test_every_close_runs_and_the_first_failure_is_told() -> None:
    ended = []

    async def close(name: str, failure: Exception | None = None) -> str:
        await asyncio.sleep(0)
        ended.append(name)
        if failure is not None:
            raise failure
        return name

    async def go() -> None:
        with pytest.raises(OSError, match="first"):
            await all_ended([close("a", OSError("first")), close("b", ValueError("second")), close("c")])
        assert await all_ended([close("d"), close("e")]) == ["d", "e"]

    asyncio.run(go())
    assert ended == ["a", "b", "c", "d", "e"]
