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
from holdfast.agents.patience import left_s, patience_ms
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
        self._timeout_ms = seen.agent.timeout_ms

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
            limit_s = await self._perform(program, show, ends, task.turns, trip, setup)
        finally:
            await program.end(0.0)
            show.finish(program.status)
            ends.drain()
            ends.close()
        show.notes.extend(program.notes)
        return show.answer(limit_s)

    async def reset(self, trial: Trial) -> None:
        """The reset function runs in the agent's own process, before it is asked."""

    async def close(self) -> None:
        """Its world closes what it has started."""

    async def _perform(
        self, program: Started, show: Show, ends: Ends, turns: Sequence[str], trip: Trip, setup: Setup
    ) -> float:
        """How long the last turn might take."""
        watching = asyncio.create_task(_watch(program, show))
        try:
            if not await self._introduced(ends, setup, left_s(trip)):
                show.late = True
                return 0.0
            ends.listen()
            began = perf_counter() - trip.now()
            await ends.say(framed(encode(Request(trip.trial, show.asked[0], len(turns), began))))
            limit_s = await self._turns(show, ends, turns, trip)
            if not show.late:
                await show.wait(lambda: show.exited, GRACE_S)
            return limit_s
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    async def _introduced(self, ends: Ends, setup: Setup, limit_s: float) -> bool:
        """Tells the program what to hold and waits until it does; False if the trial's time is over before."""
        ends.listen_to_output()
        await ends.say(framed(encode(setup)))
        got: list[bytes] = []
        frames = Frames(got.append)
        try:
            async with asyncio.timeout(min(IMPORT_S, limit_s)):
                while not got:
                    data = await ends.heard()
                    if not data:
                        raise AgentUnavailable("the agent's process died while it imported the agent")
                    frames.feed(data)
        except TimeoutError:
            if limit_s < IMPORT_S:
                return False
            raise AgentUnavailable(f"the agent's import did not finish within {IMPORT_S:g} s") from None
        news = _news.decode(got[0])
        if isinstance(news, Unusable):
            raise AgentUnavailable(news.message, hint=news.hint, body=news.trace, config=True, key=news.key)
        return True

    async def _turns(self, show: Show, ends: Ends, turns: Sequence[str], trip: Trip) -> float:
        """Asks turn after turn; one that takes too long ends it. How long the last one might take."""
        limit_s = patience_ms(self._timeout_ms, trip) / 1000
        while not show.broke:
            if not await show.wait(lambda: show.all_said, limit_s):
                show.late = True
                break
            if show.exited or show.done or show.turns[-1].ending != "answered" or len(show.asked) == len(turns):
                break
            limit_s = patience_ms(self._timeout_ms, trip) / 1000
            show.asked.append(trip.ask(turns[len(show.asked)]))
            await ends.say(framed(encode(show.asked[-1])))
        return limit_s


async def _watch(program: Started, show: Show) -> None:
    while not await program.within(60.0):
        pass
    show.finish(program.status)
