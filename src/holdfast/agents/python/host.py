"""The process that holds a Python agent: it imports the agent once and runs trials.

`agents/python/python_host.py` starts it with a control socket. In fork mode every trial is a new child of this process,
the zygote, which has already imported the agent. One child is always ready: it waits for a trial, runs it and exits. A
fork takes as long as a quick trial, so the next child is forked while the last one still runs. In place mode the trials
run here, one after the other.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from time import perf_counter
from typing import NamedTuple

from holdfast.agents.python import host_protocol as protocol
from holdfast.agents.python.host_protocol import TrialRequest, move_high, read_frame, send_message
from holdfast.agents.python.loaded import CallableAgent, describe_import_error, load, prepare
from holdfast.agents.python.turns import perform
from holdfast.model.codec import create_decoder
from holdfast.planes import open_call, traced_call  # noqa: F401  # `perform` needs them: loaded before any child
from holdfast.planes.describe import format_exception
from holdfast.planes.injection import weather  # noqa: F401
from holdfast.processes.leftovers import die_with_parent, end_orphans, keep_orphans, kill_group, list_children
from holdfast.processes.spares import SpareChild

_read_request = create_decoder(TrialRequest).decode  # created before any child, which then need not do it


class TrialOrder(NamedTuple):
    """A trial to run: its ticket, its line and its output pipe."""

    ticket: int
    line: int
    output: int


def receive_order(control: socket.socket) -> TrialOrder | None:
    """Wait for the next trial to run; None when it is over."""
    data, fds, _, _ = socket.recv_fds(control, 8, 2)
    return TrialOrder(int.from_bytes(data, "big"), fds[0], fds[1]) if data else None


def perform_work(line: int, agent: CallableAgent) -> None:
    """Run the trial that arrives on this line."""
    request = _read_request(read_frame(line))
    wire = protocol.TrialSocket(line)
    try:
        perform(request, agent, wire)
    except Exception as ours:  # the agent's own exceptions have become turns by now
        wire.send(protocol.HarnessFailure(format_exception(ours)))


def redirect(output: int) -> None:
    """Send the agent's output to the trial's pipe."""
    os.dup2(output, 1)
    os.dup2(output, 2)


def settle_streams() -> None:
    """Keep earlier output out of later trials; lines are flushed immediately, because a crash loses the rest."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIO need not have it
        except (OSError, ValueError, AttributeError):
            continue  # the agent closed or replaced it


class Zygote(SpareChild):
    """The process that has imported the agent; each trial runs in a child of it."""

    pause_ms = 0

    def __init__(self, control: socket.socket, agent: CallableAgent) -> None:
        super().__init__(control)
        self._agent = agent
        self._import_children = list_children()
        """Processes that the agent's import started: they serve every trial, so they outlive each of them."""

    def run(self) -> None:
        # The kernel would kill this process together with its parent. From here on it sees its parent's end itself, on
        # the control socket, and ends the trials and whatever they left before it ends.
        die_with_parent(0)
        super().run()

    def on_child_ended(self, pid: int, ticket: int, status: int) -> None:
        """Report the end of a child once everything it left behind has ended, too."""
        kill_group(pid, signal.SIGKILL)
        # A child is a subreaper: when it ends, the daemons below it become children of this process. A child that is
        # neither a trial's process nor was started by the agent's import is what this trial has left behind.
        survivors = end_orphans(self._import_children | set(self.tickets))
        send_message(self.control.fileno(), protocol.ChildExited(pid, status, len(survivors)))

    def on_fork_refused(self) -> None:
        """Reject the next trial, if one arrives soon."""
        if select.select([self.control], [], [], 0.05)[0] and (work := receive_order(self.control)) is not None:
            send_message(
                self.control.fileno(), protocol.ForkRefused(work.ticket, "the machine allows no more processes")
            )
            os.close(work.line)
            os.close(work.output)

    def prepare(self) -> None:
        # Its own session makes a trial one process group, which can be killed as a whole.
        os.setsid()

    def serve(self) -> None:
        # The child was forked before its trial was known, so the fork costs the trial no time. It shares the imported
        # modules with the zygote; the kernel copies only the pages that it writes to. All waiting children read the
        # same socket, and the kernel gives each order to one of them. The child reports its pid before any code of the
        # agent runs: from then on Holdfast knows which process a connection belongs to.
        work = receive_order(self.control)
        if work is not None:
            send_message(self.control.fileno(), protocol.ChildStarted(work.ticket, os.getpid()))
            self.report_order(work.ticket)
            self.leave()  # the agent must not find another trial's line
            redirect(work.output)
            os.close(work.output)
            perform_work(move_high(work.line), self._agent)
            settle_streams()


def main() -> None:
    """Run until the control socket closes."""
    control = socket.socket(fileno=move_high(int(sys.argv[1])))
    del sys.argv[1:]
    die_with_parent()
    keep_orphans()
    setup = create_decoder(protocol.HostSetup).decode(read_frame(control.fileno()))
    agent = _import_agent(control.fileno(), setup)
    if agent is None:
        return
    # Clean up once before the first fork. freeze() then exempts everything imported so far from collection.
    gc.collect()
    gc.freeze()  # children share these pages; a garbage collection would copy them
    if setup.mode == "fork":
        Zygote(control, agent).run()
    else:
        _run_in_place(control, agent)


def main_in_sandbox() -> None:
    """Run one trial in a sandbox; its line to Holdfast is its standard input, a socket."""
    # Standard input was the only descriptor that a sandbox passes on. It is moved out of the agent's way and replaced,
    # because an agent may read its input, and would take Holdfast's messages for it.
    line = move_high(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    agent = _import_agent(line, create_decoder(protocol.HostSetup).decode(read_frame(line)))
    if agent is not None:
        perform_work(line, agent)
        settle_streams()


def _import_agent(line: int, setup: protocol.HostSetup) -> CallableAgent | None:
    """Import the agent, and report success or why it cannot be used."""
    try:
        prepare(setup.scenarios)
        sys.path.insert(0, setup.root)
        started = perf_counter()
        agent, done = load(setup.agent, setup.scenarios)
        if agent.is_async:
            import asyncio  # noqa: F401  # once here, not in every child
        ready = protocol.Ready(tuple(done.tools), tuple(done.llm), _count_threads(), (perf_counter() - started) * 1000)
    except BaseException as broken:
        sys.path[:] = [place for place in sys.path if place != setup.root]  # Holdfast explains it
        send_message(line, describe_import_error(broken, setup.root, setup.agent))
        return None
    settle_streams()
    send_message(line, ready)
    return agent


def _run_in_place(control: socket.socket, agent: CallableAgent) -> None:
    nowhere = move_high(os.open(os.devnull, os.O_WRONLY))
    while (work := receive_order(control)) is not None:
        send_message(control.fileno(), protocol.ChildStarted(work.ticket, os.getpid()))
        line = move_high(work.line)
        redirect(work.output)
        os.close(work.output)
        perform_work(line, agent)
        settle_streams()
        # A thread that the agent left may print later: that output belongs to no trial.
        redirect(nowhere)
        os.close(line)
        send_message(control.fileno(), protocol.ChildExited(os.getpid(), 0))


def _count_threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        import threading

        return threading.active_count()


if __name__ == "__main__":
    main()
