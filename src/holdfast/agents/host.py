"""The program that holds a Python agent: it imports it once and performs trials.

Started by `agents/process.py` with a control socket. A trial comes as eight bytes, its ticket,
with the descriptors of its own line and output pipe. In fork mode every trial is a new child of
this process, which has imported the agent already; in place mode the trial runs here, one after
the other.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from time import perf_counter
from typing import NamedTuple, NoReturn

from holdfast.agents.leftovers import children_of_this, die_with_parent, end_orphans, keep_orphans, kill_group
from holdfast.agents.loading import Loaded, Reset, load, prepare
from holdfast.agents.performance import Broke, Request, perform
from holdfast.agents.unusable import unusable
from holdfast.agents.wire import Exited, Ready, Refused, Setup, Started, Wire, lifted, read_frame, tell
from holdfast.model.codec import decoder
from holdfast.model.spec import Scenario

_requests = decoder(Request)  # made before any child, so that none has to
_CALM = Scenario(name="")


class Held(NamedTuple):
    """The agent in this process."""

    agent: Loaded
    reset: Reset | None
    scenarios: dict[str, Scenario]


class Work(NamedTuple):
    """A trial to run: its ticket, its line and its output pipe."""

    ticket: int
    line: int
    output: int


def main() -> None:
    """Runs until the control socket closes."""
    control = socket.socket(fileno=lifted(int(sys.argv[1])))
    del sys.argv[1:]
    die_with_parent()
    keep_orphans()
    setup = decoder(Setup).decode(read_frame(control.fileno()))
    try:
        prepare(setup.scenarios)
        sys.path.insert(0, setup.root)
        ready, held = _load(setup)
    except BaseException as broken:
        sys.path[:] = [place for place in sys.path if place != setup.root]  # what explains it is ours
        tell(control.fileno(), unusable(broken, setup.root))
        return
    _settle_streams()
    tell(control.fileno(), ready)
    gc.collect()
    gc.freeze()  # children share these pages; a collection there would copy them
    (_fork_loop if setup.mode == "fork" else _place_loop)(control, held)


def _load(setup: Setup) -> tuple[Ready, Held]:
    started = perf_counter()
    agent, reset, done = load(setup.agent, setup.scenarios)
    if agent.is_async:
        import asyncio  # noqa: F401  # once here, not in every child
    ready = Ready(tuple(done.tools), tuple(done.llm), _threads(), (perf_counter() - started) * 1000)
    return ready, Held(agent, reset, {s.name: s for s in setup.scenarios})


def _place_loop(control: socket.socket, held: Held) -> None:
    nowhere = lifted(os.open(os.devnull, os.O_WRONLY))
    while (work := _next(control)) is not None:
        tell(control.fileno(), Started(work.ticket, os.getpid()))
        line = lifted(work.line)
        _redirect(work.output)
        os.close(work.output)
        _perform(line, held)
        _settle_streams()
        _redirect(nowhere)
        os.close(line)
        tell(control.fileno(), Exited(work.ticket, 0))


def _fork_loop(control: socket.socket, held: Held) -> None:
    children: dict[int, int] = {}
    spared = children_of_this()  # what the agent's import started serves every trial
    wake = os.pipe()
    os.set_blocking(wake[1], False)
    signal.set_wakeup_fd(wake[1], warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    die_with_parent(0)  # from here on we see our parent's end ourselves, and can tidy up
    while True:
        readable, _, _ = select.select([control.fileno(), wake[0]], [], [])
        if wake[0] in readable:
            os.read(wake[0], 4096)
            _reap(control, children, spared)
        if control.fileno() in readable:
            work = _next(control)
            if work is None:
                break
            _fork(control, wake, work, held, children)
    for pid in children:
        kill_group(pid, signal.SIGKILL)
    end_orphans(set())


def _fork(control: socket.socket, wake: tuple[int, int], work: Work, held: Held, children: dict[int, int]) -> None:
    try:
        pid = os.fork()
    except OSError as broken:
        tell(control.fileno(), Refused(work.ticket, str(broken)))
    else:
        if pid == 0:
            _child((control.fileno(), *wake), work, held)
        children[pid] = work.ticket
        tell(control.fileno(), Started(work.ticket, pid))
    os.close(work.line)
    os.close(work.output)


def _child(close: tuple[int, ...], work: Work, held: Held) -> NoReturn:
    """The trial's own process."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for fd in close:
            os.close(fd)
        os.setsid()
        die_with_parent()
        keep_orphans()  # what the agent starts stays below it, also when daemonised
        _redirect(work.output)
        os.close(work.output)
        _perform(lifted(work.line), held)
        _settle_streams()
        code = 0
    finally:
        os._exit(code)


def _perform(line: int, held: Held) -> None:
    request = _requests.decode(read_frame(line))
    wire = Wire(line)
    try:
        perform(request, held.scenarios.get(request.trial.scenario, _CALM), held.agent, held.reset, wire)
    except Exception as ours:  # the agent's own exceptions have become turns by now
        wire.send(Broke(f"{type(ours).__name__}: {ours}"))


def _reap(control: socket.socket, children: dict[int, int], spared: set[int]) -> None:
    """Tells of every child that ended, once all that it left behind has ended too."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        ticket = children.pop(pid, None)
        if ticket is not None:
            kill_group(pid, signal.SIGKILL)
            end_orphans(spared | children.keys())
            tell(control.fileno(), Exited(ticket, status))


def _next(control: socket.socket) -> Work | None:
    """The next trial to run; None when it is over."""
    data, fds, _, _ = socket.recv_fds(control, 8, 2)
    return Work(int.from_bytes(data, "big"), fds[0], fds[1]) if data else None


def _redirect(output: int) -> None:
    """What the agent prints goes to the trial's pipe."""
    os.dup2(output, 1)
    os.dup2(output, 2)


def _settle_streams() -> None:
    """Nothing printed so far may come out in a later trial; lines come out at once, for a crash loses the rest."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        except (OSError, ValueError, AttributeError):
            continue  # the agent closed it, or put something else in its place


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        import threading

        return threading.active_count()


if __name__ == "__main__":
    main()
