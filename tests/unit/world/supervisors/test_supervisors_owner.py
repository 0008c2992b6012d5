"""Whose a container is."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from pathlib import Path

import pytest

from holdfast.world.supervisors import container_owner as owner
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.connection import SupervisorConnection

PARTS = ("host", "boot", "space", "pid", "began")


def other(**parts: str) -> str:
    found = dict(zip(PARTS, owner.identify_owner().split("/"), strict=True))
    return "/".join({**found, **parts}.values())


def ended() -> str:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return str(process.pid)


def test_we_are_not_gone() -> None:
    assert not owner.is_gone(owner.identify_owner())
    assert owner.identify_owner() == other()


def test_a_process_that_ended_is_gone_also_if_its_number_is_used_again() -> None:
    assert owner.is_gone(other(pid=ended()))
    assert owner.is_gone(other(began="1"))


def test_what_ran_before_the_machine_was_started_is_gone() -> None:
    assert owner.is_gone(other(boot="another", space="another"))


@pytest.mark.parametrize("parts", [{"host": "another"}, {"space": "pid:[1]"}, {"pid": "x"}])
def test_what_we_cannot_know_of_is_left_alone(parts: dict[str, str]) -> None:
    assert not owner.is_gone(other(**{"pid": ended(), **parts}))


@pytest.mark.parametrize("named", ["", "17", "a/b", "a/b/c/d/e/f"])
def test_what_is_not_an_owner_is_left_alone(named: str) -> None:
    assert not owner.is_gone(named)


def test_without_a_client_nothing_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert owner.sweep() == []


def test_what_the_engine_will_not_remove_is_not_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = tmp_path / "docker"
    lines = f"a {other(pid=ended())}\nb {owner.identify_owner()}\nc {other(pid=ended())}"
    client.write_text(f'#!/bin/sh\nif [ "$1" = ps ]; then echo "{lines}"; else [ "$4" != c ]; fi\n')
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert owner.sweep() == ["a"]


# Our end of the line to a supervisor: whoever is told to stop while a reply arrives stops.


async def test_a_cancellation_next_to_the_reply_is_not_lost_and_leaves_no_descriptor() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line = SupervisorConnection(ours, notice=lambda _: None, lost=lambda: None)
    asking = asyncio.ensure_future(line.ask(wire.CONNECT, 80))
    await asyncio.sleep(0)
    read, write = os.pipe()
    open_before = len(os.listdir("/proc/self/fd"))
    wire.send(theirs, wire.DONE, 1, fds=[write])
    line.listen()  # the reply is there ...
    asking.cancel()  # ... and nobody has read it
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert len(os.listdir("/proc/self/fd")) == open_before
    for fd in (read, write):
        os.close(fd)
    theirs.close()
    await line.close()
