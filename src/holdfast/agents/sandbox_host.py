"""The program that holds a Python agent in a sandbox: it imports it, performs one trial, and ends.

Its line to Holdfast is its standard input, a socket. What the agent prints goes to standard output and error.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

from holdfast.agents.host_protocol import HostSetup, Ready, lifted, read_frame, tell
from holdfast.agents.loaded import load, prepare
from holdfast.agents.unusable import unusable
from holdfast.agents.work import Held, perform_work, settle_streams
from holdfast.model.codec import decoder


def main() -> None:
    """Imports the agent, says so, and performs the one trial that is asked for."""
    line = lifted(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    setup = decoder(HostSetup).decode(read_frame(line))
    began = perf_counter()
    try:
        prepare(setup.scenarios)
        sys.path.insert(0, setup.root)
        agent, reset, done = load(setup.agent, setup.scenarios)
    except BaseException as broken:
        sys.path[:] = [place for place in sys.path if place != setup.root]  # what explains it is ours
        tell(line, unusable(broken, setup.root))
        return
    settle_streams()
    tell(line, Ready(tuple(done.tools), tuple(done.llm), 1, (perf_counter() - began) * 1000))
    perform_work(line, Held(agent, reset, {s.name: s for s in setup.scenarios}))
    settle_streams()
