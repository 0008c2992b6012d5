"""An agent behind a gateway: whatever fails, nothing of it stays open."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.http.agent import HttpAgent
from holdfast.execute.open_site import count_slots, open_site
from holdfast.execute.site import Site
from holdfast.folders import HOME
from holdfast.model.spec import AgentSpec, Spec
from holdfast.planes.handover import Standby, load_address
from holdfast.planes.site_planes import SitePlanes

AGENT = AgentSpec(type="http", endpoint="http://127.0.0.1:9/", gateway=True)


class Broken(Exception):
    """What fails in a test."""


def opened(folder: Path, monkeypatch: pytest.MonkeyPatch, *, closing: bool) -> list[Path]:
    """Opens the agent and, if it gets there, closes it, each of which fails; the folders of its planes."""
    folders: list[Path] = []
    open_planes = SitePlanes.__init__

    def noted(self: SitePlanes, *args: object) -> None:
        open_planes(self, *args)  # type: ignore[arg-type]
        folders.append(self.folder)

    close = HttpAgent.close

    async def broken(*self: HttpAgent, **_: object) -> None:
        if closing:
            await close(*self)
        raise Broken

    monkeypatch.setenv(HOME, str(folder))
    monkeypatch.setattr(SitePlanes, "__init__", noted)
    monkeypatch.setattr(HttpAgent, "close" if closing else "open", broken)

    async def one() -> Site:
        return await open_site(Spec(path="holdfast.yaml", agent=AGENT), environ={})

    async def main() -> None:
        with pytest.raises(Broken):  # noqa: PT012
            site = await one()
            await site.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with standing_by(folder) as port:
        asyncio.run(main())
        time.sleep(0.1)
        assert _status(port) == 503, "the gateway has its socket back"
    return folders


@contextmanager
def standing_by(folder: Path) -> Iterator[int]:
    """A gateway in a loop of its own, as it is in its own process; its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    standby = Standby(folder, load_address(folder))
    try:
        asyncio.run_coroutine_threadsafe(standby.open(), loop).result(5)
        yield load_address(folder).port
    finally:
        asyncio.run_coroutine_threadsafe(standby.close(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _status(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(b"GET /x/y HTTP/1.1\r\nconnection: close\r\n\r\n")
        return int(client.recv(100).split()[1])


def test_an_agent_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder,) = opened(tmp_path, monkeypatch, closing=False)
    assert not folder.exists()


def test_an_agent_that_fails_to_close_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder,) = opened(tmp_path, monkeypatch, closing=True)
    assert not folder.exists()


# How many trials run at once.


CORES = os.cpu_count() or 1
STARTED: dict[str, Any] = {"type": "http", "endpoint": "http://h:{port}/", "command": "x"}
COMMAND: dict[str, Any] = {"type": "command", "command": "x"}


def test_trials_overlap_unless_they_share_an_agent_or_what_is_reset() -> None:
    for agent, asked, at_once in [
        (COMMAND, None, CORES),
        (COMMAND, 16, 16),
        ({"type": "http", "endpoint": "http://h/"}, None, 10),
        ({"type": "http", "endpoint": "http://h/", "reset_endpoint": "/r"}, 16, 1),
        ({"type": "http", "endpoint": "http://h/", "gateway": True}, 16, 1),
        (STARTED, 16, 16),
        ({**STARTED, "reset_endpoint": "/reset"}, 16, 16),
        ({**STARTED, "reset_endpoint": "http://h:{port}/reset"}, 16, 16),
        ({**STARTED, "reset_endpoint": "http://h:9/reset"}, 16, 1),
        ({**STARTED, "reset_function": "m:f"}, 16, 1),
        ({**COMMAND, "reset_function": "m:f"}, 16, 1),
        ({**COMMAND, "reset_endpoint": "http://h/reset"}, 16, 1),
        ({"type": "python", "endpoint": "m:f", "reset_function": "m:g"}, 16, 16),
        ({"type": "python", "endpoint": "m:f", "isolation": "inline"}, 16, 1),
    ]:
        assert count_slots(Spec(path="holdfast.yaml", agent=AgentSpec(**agent)), asked) == at_once, (
            agent,
            asked,
            at_once,
        )
        if asked is not None:  # the key of the file says the same as the option, which overrides it
            spec = Spec(path="holdfast.yaml", agent=AgentSpec(**agent), concurrency=asked)
            assert (count_slots(spec, None), count_slots(spec, 3)) == (at_once, min(3, at_once)), agent


@pytest.mark.parametrize("asked", [0, -1])
def test_fewer_than_one_is_our_own_mistake_and_never_passed_on(asked: int) -> None:
    with pytest.raises(AssertionError):
        count_slots(Spec(path="holdfast.yaml", agent=AgentSpec(**COMMAND)), asked)
