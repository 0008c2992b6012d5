"""A trial as a host takes it up: eight bytes, its ticket, with the descriptors of its line and output pipe."""

from __future__ import annotations

import os
import socket
import sys
from typing import NamedTuple

from holdfast.agents.host_protocol import TrialSocket, framed, read_frame
from holdfast.agents.loaded import Loaded, ResetFunction
from holdfast.agents.turns import Broke, Message, TrialRequest, perform
from holdfast.model.codec import decoder, encode
from holdfast.model.scenario import CALM, Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes import open_call, traced_call  # noqa: F401  # `perform` needs them: loaded before any child
from holdfast.planes.describe import said
from holdfast.planes.injection import weather  # noqa: F401

_read_request = decoder(TrialRequest).decode  # made before any child, so that none has to


class Held(NamedTuple):
    """The agent in this process."""

    agent: Loaded
    reset: ResetFunction | None
    scenarios: dict[str, Scenario]


class Work(NamedTuple):
    """A trial to run: its ticket, its line and its output pipe."""

    ticket: int
    line: int
    output: int


def next_work(control: socket.socket) -> Work | None:
    """Waits for the next trial to run; None when it is over."""
    data, fds, _, _ = socket.recv_fds(control, 8, 2)
    return Work(int.from_bytes(data, "big"), fds[0], fds[1]) if data else None


def perform_work(line: int, held: Held) -> None:
    """Runs the trial that is asked for on this line."""
    request = _read_request(read_frame(line))
    wire = TrialSocket(line)
    try:
        perform(request, held.scenarios.get(request.trial.scenario, CALM), held.agent, held.reset, wire)
    except Exception as ours:  # the agent's own exceptions have become turns by now
        wire.send(Broke(said(ours)))


def redirect(output: int) -> None:
    """What the agent prints goes to the trial's pipe."""
    os.dup2(output, 1)
    os.dup2(output, 2)


def settle_streams() -> None:
    """Nothing printed so far may come out in a later trial; lines come out at once, for a crash loses the rest."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIO need not have it
        except (OSError, ValueError, AttributeError):
            continue  # the agent closed it, or put something else in its place


class _Silent:
    """A line to nobody."""

    def send(self, message: Message) -> None:
        framed(encode(message))

    def hear(self) -> str | None:
        return None


async def _echo(prompt: str) -> str:
    return prompt


_ECHO = {False: Loaded(str, is_async=False), True: Loaded(_echo, is_async=True)}
_REHEARSAL = encode(TrialRequest(Trial("0" * 12, "control", "", Task(("",))), ""))


def rehearse(*, is_async: bool) -> None:
    """Goes through a trial of nothing: the memory that a trial writes to is this process's own by then."""
    perform(_read_request(_REHEARSAL), CALM, _ECHO[is_async], None, _Silent())
