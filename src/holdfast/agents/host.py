"""The program that holds a Python agent: it imports it once and performs trials.

Started by `agents/python_host.py` with a control socket. In fork mode every trial is a new child of
this process, which has imported the agent already; in place mode the trial runs here, one after
the other.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from time import perf_counter

from holdfast.agents.host_protocol import ChildExited, ChildStarted, HostSetup, Ready, lifted, read_frame, tell
from holdfast.agents.loaded import load, prepare
from holdfast.agents.unusable import unusable
from holdfast.agents.work import Held, next_work, perform_work, redirect, settle_streams
from holdfast.agents.zygote import Zygote
from holdfast.model.codec import decoder
from holdfast.processes.leftovers import die_with_parent, keep_orphans


def main() -> None:
    """Runs until the control socket closes."""
    control = socket.socket(fileno=lifted(int(sys.argv[1])))
    del sys.argv[1:]
    die_with_parent()
    keep_orphans()
    setup = decoder(HostSetup).decode(read_frame(control.fileno()))
    try:
        prepare(setup.scenarios)
        sys.path.insert(0, setup.root)
        ready, held = _load(setup)
    except BaseException as broken:
        sys.path[:] = [place for place in sys.path if place != setup.root]  # what explains it is ours
        tell(control.fileno(), unusable(broken, setup.root))
        return
    settle_streams()
    tell(control.fileno(), ready)
    gc.collect()
    gc.freeze()  # children share these pages; a collection there would copy them
    if setup.mode == "fork":
        Zygote(control, held).run()
    else:
        _place_loop(control, held)


def _load(setup: HostSetup) -> tuple[Ready, Held]:
    started = perf_counter()
    agent, reset, done = load(setup.agent, setup.scenarios)
    if agent.is_async:
        import holdfast.agents.event_loop  # noqa: F401  # once here, not in every child
    ready = Ready(tuple(done.tools), tuple(done.llm), _threads(), (perf_counter() - started) * 1000)
    return ready, Held(agent, reset, {s.name: s for s in setup.scenarios})


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
