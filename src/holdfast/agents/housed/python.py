"""A Python agent inside a sandbox: a new interpreter for every trial."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from time import perf_counter

import msgspec

from holdfast.agents.ends import Ends
from holdfast.agents.housed.command import start_inside
from holdfast.agents.housed.placing import Placed
from holdfast.agents.performance import Request
from holdfast.agents.show import Show
from holdfast.agents.startable import BEGIN
from holdfast.agents.wire import Frames, Ready, Setup, Unusable, framed
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.codec import encode
from holdfast.model.observation import Answer
from holdfast.model.spec import Scenario, Task
from holdfast.model.trial import Trial
from holdfast.processes.limits import GRACE_S
from holdfast.protocols import Started, Trip

_news: msgspec.json.Decoder[Ready | Unusable] = msgspec.json.Decoder(Ready | Unusable)
_PROGRAM = "from holdfast.agents.housed.inside import main; main()"
IMPORT_S = 120.0


class HousedPython:
    """Imports the agent in its trial's sandbox and asks it there."""

    def __init__(self, seen: Placed, scenarios: tuple[Scenario, ...]) -> None:
        self._seen = seen
        self._scenarios = scenarios
        self._timeout_s = seen.agent.timeout_ms / 1000

    async def run(self, task: Task, trip: Trip) -> Answer:
        house = trip.house
        if house is None:
            raise HarnessError("this agent runs in a sandbox, and there is none")
        show = Show(asyncio.get_running_loop(), trip)
        show.watch = house.heard
        show.asked.append(trip.ask(task.turns[0]))
        ends = Ends(asyncio.get_running_loop(), show)
        line, output = ends.theirs
        argv = [sys.executable, "-P", "-c", _PROGRAM]
        env = {"PYTHONHASHSEED": "0", **BEGIN, **house.environ}
        try:
            program = await start_inside(house.sandbox, argv, env, (line, output, output))
        except BaseException:
            ends.close()
            raise
        try:
            setup = Setup(self._seen.agent, self._seen.folder(house.sandbox), self._scenarios, "place")
            await self._perform(program, show, ends, task.turns, trip, setup)
        finally:
            await program.end(0.0)
            show.finish(program.status)
            ends.drain()
            ends.close()
        show.notes.extend(program.notes)
        return show.answer(self._timeout_s)

    async def reset(self, trial: Trial) -> None:
        """The reset function runs in the agent's own process, before it is asked."""

    async def close(self) -> None:
        """Its world closes what it has started."""

    async def _perform(
        self, program: Started, show: Show, ends: Ends, turns: Sequence[str], trip: Trip, setup: Setup
    ) -> None:
        watching = asyncio.create_task(_watch(program, show))
        try:
            await self._introduced(ends, setup)
            ends.listen()
            began = perf_counter() - trip.now()
            await ends.say(framed(encode(Request(trip.trial, show.asked[0], len(turns), began))))
            await self._turns(show, ends, turns, trip)
            if not show.late:
                await show.wait(lambda: show.exited, GRACE_S)
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    async def _introduced(self, ends: Ends, setup: Setup) -> None:
        """Tells the program what to hold and waits until it does."""
        ends.listen_to_output()
        await ends.say(framed(encode(setup)))
        got: list[bytes] = []
        frames = Frames(got.append)
        try:
            async with asyncio.timeout(IMPORT_S):
                while not got:
                    data = await ends.heard()
                    if not data:
                        raise AgentUnavailable("the agent's process died while it imported the agent")
                    frames.feed(data)
        except TimeoutError:
            raise AgentUnavailable(f"the agent's import did not finish within {IMPORT_S:g} s") from None
        news = _news.decode(got[0])
        if isinstance(news, Unusable):
            raise AgentUnavailable(news.message, hint=news.hint, body=news.trace, config=True)

    async def _turns(self, show: Show, ends: Ends, turns: Sequence[str], trip: Trip) -> None:
        """Asks turn after turn; one that takes too long ends it."""
        while not show.broke:
            if not await show.wait(lambda: show.all_said, self._timeout_s):
                show.late = True
                return
            if show.exited or show.done or show.turns[-1].ending != "answered" or len(show.asked) == len(turns):
                return
            show.asked.append(trip.ask(turns[len(show.asked)]))
            await ends.say(framed(encode(show.asked[-1])))


async def _watch(program: Started, show: Show) -> None:
    while not await program.within(60.0):
        pass
    show.finish(program.status)
