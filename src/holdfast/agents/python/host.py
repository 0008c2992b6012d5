"""The program that holds a Python agent: it imports it once and performs trials.

Started by `agents/python/python_host.py` with a control socket. In fork mode every trial is a new child of
this process, which has imported the agent already; in place mode the trial runs here, one after
the other.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from time import perf_counter

from holdfast.agents.python.host_protocol import ChildExited, ChildStarted, HostSetup, Ready, lifted, read_frame, tell
from holdfast.agents.python.loaded import load, prepare, unusable
from holdfast.agents.python.zygote import Held, Zygote, next_work, perform_work, redirect, settle_streams
from holdfast.model.codec import decoder
from holdfast.processes.leftovers import die_with_parent, keep_orphans


def main() -> None:
    """Runs until the control socket closes."""
    control = socket.socket(fileno=lifted(int(sys.argv[1])))
    del sys.argv[1:]
    die_with_parent()
    keep_orphans()
    setup = decoder(HostSetup).decode(read_frame(control.fileno()))
    held = _introduce(control.fileno(), setup)
    if held is None:
        return
    gc.collect()
    gc.freeze()  # children share these pages; a collection there would copy them
    if setup.mode == "fork":
        Zygote(control, held).run()
    else:
        _place_loop(control, held)


def main_in_sandbox() -> None:
    """The program of one trial: its line to Holdfast is its standard input, a socket."""
    line = lifted(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    held = _introduce(line, decoder(HostSetup).decode(read_frame(line)))
    if held is not None:
        perform_work(line, held)
        settle_streams()


def _introduce(line: int, setup: HostSetup) -> Held | None:
    """Imports the agent, and says so or why it cannot be used."""
    try:
        prepare(setup.scenarios)
        sys.path.insert(0, setup.root)
        started = perf_counter()
        agent, reset, done = load(setup.agent, setup.scenarios)
        if agent.is_async:
            import asyncio  # noqa: F401  # once here, not in every child
        ready = Ready(tuple(done.tools), tuple(done.llm), _threads(), (perf_counter() - started) * 1000)
    except BaseException as broken:
        sys.path[:] = [place for place in sys.path if place != setup.root]  # what explains it is ours
        tell(line, unusable(broken, setup.root))
        return None
    settle_streams()
    tell(line, ready)
    return Held(agent, reset)


def _place_loop(control: socket.socket, held: Held) -> None:
    nowhere = lifted(os.open(os.devnull, os.O_WRONLY))
    while (work := next_work(control)) is not None:
        tell(control.fileno(), ChildStarted(work.ticket, os.getpid()))
        line = lifted(work.line)
        redirect(work.output)
        os.close(work.output)
        perform_work(line, held)
        settle_streams()
        redirect(nowhere)
        os.close(line)
        tell(control.fileno(), ChildExited(os.getpid(), 0))


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        import threading

        return threading.active_count()


if __name__ == "__main__":
    main()
