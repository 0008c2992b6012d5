"""Our end of a host: starts it, hands it trials, gathers what comes back, and ends what hangs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TypeAlias

import msgspec

from holdfast.agents.conventions import RESET_S
from holdfast.agents.ends import Ends
from holdfast.agents.performance import Request
from holdfast.agents.show import Show
from holdfast.agents.wire import Exited, Frames, Ready, Refused, Setup, Started, Unusable, framed
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.codec import encode
from holdfast.model.observation import Answer
from holdfast.processes.leftovers import end_marked, kill_group, survived
from holdfast.processes.limits import GRACE_S
from holdfast.processes.reading import read_now
from holdfast.protocols import Trip

START_S = 60.0
"""For a forked process to begin: long, since on a busy machine slowness is ours and not the agent's."""
IMPORT_S = 120.0
"""For the agent's import: models may be loaded there, but a run must not wait for ever."""
HOST_DIED = "the agent's host process died"
MARK = "HOLDFAST_HOST"
"""In the environment of a host and all below it, so that what it leaves behind can be found."""
HASHING = {"PYTHONHASHSEED": "0"}
"""Unless the user sets another: the order of a set must not decide what a call looks like, and so its luck."""

Begun: TypeAlias = Callable[[int], None]

_notices: msgspec.json.Decoder[Started | Exited | Refused] = msgspec.json.Decoder(Started | Exited | Refused)
_news: msgspec.json.Decoder[Ready | Unusable] = msgspec.json.Decoder(Ready | Unusable)


class Host:
    """A host process and the trials it runs."""

    def __init__(
        self, process: subprocess.Popen[bytes], control: socket.socket, ready: Ready, setup: Setup, mark: str
    ) -> None:
        self.process = process
        self.ready = ready
        self._control = control
        self._forks = setup.mode == "fork"
        self.alone = False
        """It runs one trial only: if it dies, it is that trial's doing."""
        self._has_reset = setup.agent.reset_function is not None
        self._timeout_s = setup.agent.timeout_ms / 1000
        self._mark = mark
        self._loop = asyncio.get_running_loop()
        self._shows: dict[int, Show] = {}
        self._tickets = 0
        self._tickets_by_pid: dict[int, int] = {}
        self._begun: dict[int, Begun] = {}
        self._frames = Frames(self._notice)
        self._loop.add_reader(control.fileno(), self._read_control)

    @classmethod
    async def start(cls, setup: Setup, environ: Mapping[str, str]) -> Host:
        """Starts the interpreter and waits until the agent is imported."""
        ours, theirs = socket.socketpair()
        mark = os.urandom(8).hex()
        try:
            process = _spawn(theirs.fileno(), setup.root, {**HASHING, **environ, MARK: mark})
        except OSError as broken:
            ours.close()
            raise AgentUnavailable(f"no process could be started for the agent: {broken}") from broken
        finally:
            theirs.close()
        ours.setblocking(False)
        try:
            news = await _introduce(ours, setup)
        except BaseException:
            ours.close()
            _end(process, mark)
            raise
        if isinstance(news, Unusable):
            ours.close()
            _end(process, mark)
            raise AgentUnavailable(news.message, hint=news.hint, body=news.trace, config=True, key=news.key)
        return cls(process, ours, news, setup, mark)

    async def show(self, trip: Trip, turns: Sequence[str], begun: Begun | None = None) -> Answer:
        """Runs one trial to its end, which may be ours to make. `begun` is told its process as soon as it is known."""
        show = Show(self._loop, trip)
        show.asked.append(trip.ask(turns[0]))
        ends = Ends(self._loop, show)
        self._tickets += 1
        self._shows[self._tickets] = show
        if begun is not None:
            self._begun[self._tickets] = begun
        try:
            began = perf_counter() - trip.now()
            rest = ends.send_some(framed(encode(Request(trip.trial, show.asked[0], len(turns), began))))
            await self._hand_over(self._tickets, ends)
            ends.listen()
            if rest:
                await ends.say(rest)
            await self._watch(show, ends, turns, trip.ask)
            ends.drain()
        finally:
            if not show.exited:  # we were interrupted
                show.abandoned = True
                kill_group(show.pid, signal.SIGKILL)
            ends.close()
        return show.answer(self._timeout_s)

    async def _hand_over(self, ticket: int, ends: Ends) -> None:
        while True:
            try:
                socket.send_fds(self._control, [ticket.to_bytes(8, "big")], ends.theirs)
            except BlockingIOError:  # very many trials at once
                await asyncio.sleep(0.001)
            except OSError as broken:
                del self._shows[ticket]
                raise HarnessError(f"the agent's host process is gone: {broken}") from broken
            else:
                return

    async def _watch(self, show: Show, ends: Ends, turns: Sequence[str], ask: Callable[[str], str]) -> None:
        """Waits for the end, turn by turn; a turn that takes too long is ended."""
        await self._await_begin(show)
        while not show.broke:
            in_time = await show.wait(lambda: show.all_said, self._timeout_s) or await self._on_its_way(show, ends)
            if not in_time:
                show.late = True
                await self._stop(show)
                return
            if show.exited or show.done or show.turns[-1].ending != "answered" or len(show.asked) == len(turns):
                break
            show.asked.append(ask(turns[len(show.asked)]))
            await ends.say(framed(encode(show.asked[-1])))
        if not await show.wait(lambda: show.exited, GRACE_S if show.all_said else self._timeout_s):
            show.notes.append("its process did not end by itself after its answer, and was ended")
            await self._stop(show)

    async def _on_its_way(self, show: Show, ends: Ends) -> bool:
        """Whether an answer that was given in time is still coming in: it may be we who were busy."""
        show.limit_ms = self._timeout_s * 1000
        ends.drain()
        if not show.all_said and len(show.frames):
            await show.wait(lambda: show.all_said or show.late, GRACE_S)
        return show.all_said and not show.late

    async def _await_begin(self, show: Show) -> None:
        limit_s = RESET_S if self._has_reset else START_S
        if await show.wait(lambda: show.begun > 0 or bool(show.broke), limit_s):
            return
        await self._stop(show)
        what = "reset did not finish" if self._has_reset else "the agent's process did not begin"
        raise HarnessError(f"{what} within {limit_s:g} s")

    async def _stop(self, show: Show) -> None:
        """SIGTERM to the trial's group, a grace, SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            kill_group(show.pid, number)
            if await show.wait(lambda: show.exited, GRACE_S):
                return
        raise HarnessError("the agent's process could not be ended")

    def _read_control(self) -> None:
        data = read_now(self._control.fileno())
        if data:
            self._frames.feed(data)
        elif data is not None:
            self._lost()

    def _notice(self, data: bytes) -> None:
        try:
            notice = _notices.decode(data)
        except msgspec.DecodeError:  # the agent has tampered with the process that holds it
            self._lost()
            return
        if isinstance(notice, Started):
            self._started(notice)
            return
        ticket = notice.ticket if isinstance(notice, Refused) else self._tickets_by_pid.pop(notice.pid, 0)
        show = self._shows.pop(ticket, None)
        if show is None:
            return  # a child that died before its trial
        if isinstance(notice, Refused):
            show.fail(f"no process could be made for the trial: {notice.why}")
        if isinstance(notice, Exited):
            show.notes.extend(survived(notice.left))
        show.finish(notice.status if isinstance(notice, Exited) else None)

    def _started(self, notice: Started) -> None:
        show = self._shows.get(notice.ticket)
        begun = self._begun.pop(notice.ticket, None)
        if begun is not None:
            begun(notice.pid)
        self._tickets_by_pid[notice.pid] = notice.ticket
        if show is None or show.abandoned:
            kill_group(notice.pid, signal.SIGKILL)
        else:
            show.pid = notice.pid

    def _lost(self) -> None:
        """The host is gone. In place mode it was the agent itself; else any trial, or none, may have ended it."""
        self._loop.remove_reader(self._control.fileno())
        if self.process.poll() is None:
            kill_group(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        for show in self._shows.values():
            if self._forks and not self.alone and not show.exited:
                show.fail(HOST_DIED)
            show.finish(-code if code < 0 else code << 8)
        self._shows.clear()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def idle(self) -> bool:
        """Alive, and no trial is under way in it."""
        return self.alive and not self._shows

    def close(self) -> None:
        """Ends the host and all that it runs."""
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if self._forks:  # it tidies up when its control closes
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE_S)
        _end(self.process, self._mark)


def _spawn(control: int, root: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # our own program; starting it takes 1 ms
        [sys.executable, "-P", "-c", "from holdfast.agents.host import main; main()", str(control)],
        pass_fds=[control],
        cwd=root,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


async def _introduce(ours: socket.socket, setup: Setup) -> Ready | Unusable:
    """Tells the host what to hold and waits until it does."""
    hint = f"import it yourself: python -c 'import {setup.agent.endpoint.partition(':')[0]}'"
    loop = asyncio.get_running_loop()
    got: list[bytes] = []
    frames = Frames(got.append)
    try:
        async with asyncio.timeout(IMPORT_S):
            await loop.sock_sendall(ours, framed(encode(setup)))
            while not got:
                data = await loop.sock_recv(ours, 1 << 16)
                if not data:
                    raise AgentUnavailable("the agent's process died while it imported the agent", hint=hint)
                frames.feed(data)
    except TimeoutError:
        raise AgentUnavailable(f"the agent's import did not finish within {IMPORT_S:g} s", hint=hint) from None
    except OSError as broken:
        raise AgentUnavailable(f"the agent's process died while it started: {broken}", hint=hint) from broken
    return _news.decode(got[0])


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Ends a host; what it could not tidy up itself is found by its mark."""
    tidy = process.poll() == 0
    if process.poll() is None:
        kill_group(process.pid, signal.SIGKILL)
    process.wait()
    if not tidy:
        end_marked(MARK, mark)
