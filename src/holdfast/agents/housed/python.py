"""A Python agent inside a sandbox: a new interpreter for every trial."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from time import perf_counter

import msgspec

from holdfast.agents.host_protocol import HostSetup, MessageFrames, Ready, Unusable, framed
from holdfast.agents.hosted_trial import HostedTrial
from holdfast.agents.housed.command import start_inside
from holdfast.agents.housed.placing import MountedAgent
from holdfast.agents.startable import BEGIN
from holdfast.agents.time_limit import left_s, patience_ms
from holdfast.agents.trial_pipes import TrialPipes
from holdfast.agents.turns import TrialRequest
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.codec import encode
from holdfast.model.observation import Answer
from holdfast.model.spec import Scenario, Task
from holdfast.model.trial import Trial
from holdfast.processes.limits import GRACE_S
from holdfast.protocols import Started, TrialContext

_news: msgspec.json.Decoder[Ready | Unusable] = msgspec.json.Decoder(Ready | Unusable)
_PROGRAM = "from holdfast.agents.housed.inside import main; main()"
IMPORT_S = 120.0


class HousedPython:
    """Imports the agent in its trial's sandbox and asks it there."""

    def __init__(self, seen: MountedAgent, scenarios: tuple[Scenario, ...]) -> None:
        self._seen = seen
        self._scenarios = scenarios
        self._timeout_ms = seen.agent.timeout_ms

    async def run(self, task: Task, context: TrialContext) -> Answer:
        house = context.house
        if house is None:
            raise HarnessError("this agent runs in a sandbox, and there is none")
        hosted = HostedTrial(asyncio.get_running_loop(), context)
        hosted.watch = house.heard
        hosted.asked.append(context.ask(task.turns[0]))
        ends = TrialPipes(asyncio.get_running_loop(), hosted)
        line, output = ends.theirs
        argv = [sys.executable, "-P", "-c", _PROGRAM]
        env = {"PYTHONHASHSEED": "0", **BEGIN, **house.environ}
        try:
            program = await start_inside(house.sandbox, argv, env, (line, output, output))
        except BaseException:
            ends.close()
            raise
        try:
            setup = HostSetup(self._seen.agent, self._seen.folder(house.sandbox), self._scenarios, "place")
            limit_s = await self._perform(program, hosted, ends, task.turns, context, setup)
        finally:
            await program.end(0.0)
            hosted.finish(program.status)
            ends.drain()
            ends.close()
        hosted.notes.extend(program.notes)
        return hosted.answer(limit_s)

    async def reset(self, trial: Trial) -> None:
        """The reset function runs in the agent's own process, before it is asked."""

    async def close(self) -> None:
        """Its world closes what it has started."""

    async def _perform(
        self,
        program: Started,
        hosted: HostedTrial,
        ends: TrialPipes,
        turns: Sequence[str],
        context: TrialContext,
        setup: HostSetup,
    ) -> float:
        """How long the last turn might take."""
        watching = asyncio.create_task(_watch(program, hosted))
        try:
            if not await self._introduced(ends, setup, left_s(context)):
                hosted.late = True
                return 0.0
            ends.listen()
            began = perf_counter() - context.now()
            await ends.say(framed(encode(TrialRequest(context.trial, hosted.asked[0], len(turns), began))))
            limit_s = await self._turns(hosted, ends, turns, context)
            if not hosted.late:
                await hosted.wait(lambda: hosted.exited, GRACE_S)
            return limit_s
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    async def _introduced(self, ends: TrialPipes, setup: HostSetup, limit_s: float) -> bool:
        """Tells the program what to hold and waits until it does; False if the trial's time is over before."""
        ends.listen_to_output()
        await ends.say(framed(encode(setup)))
        got: list[bytes] = []
        frames = MessageFrames(got.append)
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

    async def _turns(self, hosted: HostedTrial, ends: TrialPipes, turns: Sequence[str], context: TrialContext) -> float:
        """Asks turn after turn; one that takes too long ends it. How long the last one might take."""
        limit_s = patience_ms(self._timeout_ms, context) / 1000
        while not hosted.broke:
            if not await hosted.wait(lambda: hosted.all_said, limit_s):
                hosted.late = True
                break
            if hosted.exited or hosted.done or hosted.turns[-1].ending != "answered" or len(hosted.asked) == len(turns):
                break
            limit_s = patience_ms(self._timeout_ms, context) / 1000
            hosted.asked.append(context.ask(turns[len(hosted.asked)]))
            await ends.say(framed(encode(hosted.asked[-1])))
        return limit_s


async def _watch(program: Started, hosted: HostedTrial) -> None:
    while not await program.within(60.0):
        pass
    hosted.finish(program.status)
