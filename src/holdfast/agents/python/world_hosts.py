"""Runs a Python agent in the worlds of its trials: a new interpreter for each."""

from __future__ import annotations

import asyncio
import sys
from time import perf_counter

from holdfast.agents.python import host_protocol as protocol
from holdfast.agents.python.host_protocol import HostSetup, TrialRequest, Unusable, add_length, read_first_message
from holdfast.agents.python.hosted_trial import HostedTrial, TrialPipes
from holdfast.agents.time_limit import compute_turn_limit_ms, time_left_s
from holdfast.errors import AgentUnavailable
from holdfast.model.codec import encode
from holdfast.model.observation import Answer
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.leftovers import GRACE_S
from holdfast.processes.program import cancel_and_wait
from holdfast.processes.startable import BEGIN
from holdfast.protocols.sandbox import Started
from holdfast.protocols.world import World

_PROGRAM = "from holdfast.agents.python.host import main_in_sandbox; main_in_sandbox()"


class WorldHosts:
    """Imports the agent in the world of each trial and asks it there."""

    def __init__(self, agent: AgentSpec, scenarios: tuple[Scenario, ...]) -> None:
        self._agent = agent
        self._scenarios = scenarios
        self._timeout_ms = agent.timeout_ms

    async def run(self, task: Task, world: World) -> Answer:
        place = await world.place()
        hosted = HostedTrial(asyncio.get_running_loop(), world.context)
        hosted.printed.watch = world.on_output
        hosted.asked.append(world.context.injector.rewrite_turn(task.turns[0]))
        ends = TrialPipes(asyncio.get_running_loop(), hosted)
        line, output = ends.child_ends
        argv = [sys.executable, "-P", "-c", _PROGRAM]
        env = {"PYTHONHASHSEED": "0", **BEGIN, **place.environ}
        try:
            program = await place.start(argv, env, (line, output, output))
        except BaseException:
            ends.close()
            raise
        try:
            setup = HostSetup(self._agent, place.folder, self._scenarios, "place")
            limit_s = await self._perform(program, hosted, ends, task, world, setup)
        except AgentUnavailable as gone:
            if gone.code == "agent-import-failed":  # a module that lies next to the spec may not be in the sandbox
                gone.hint = "; ".join(filter(None, (gone.hint, place.own_files)))
            raise
        finally:
            await program.end(0.0)
            hosted.finish(program.status, program.out_of_memory)
            ends.drain()
            ends.close()
        hosted.notes.extend(program.notes)
        return hosted.build_answer(limit_s)

    async def close(self) -> None:
        """Do nothing: every process ended with its trial."""

    async def _perform(
        self,
        program: Started,
        hosted: HostedTrial,
        ends: TrialPipes,
        task: Task,
        world: World,
        setup: HostSetup,
    ) -> float:
        """Run the trial; return the time limit of the last turn."""
        watching = asyncio.create_task(_watch(program, hosted))
        try:
            if not await self._set_up_host(program, hosted, ends, setup, time_left_s(world)):
                hosted.late = not hosted.out_of_memory
                return 0.0
            ends.listen()
            began = perf_counter() - world.context.sink.now()
            request = TrialRequest(world.trial, hosted.asked[0], task.max_turns, began)
            await ends.send(add_length(encode(request)))
            limit_s = await self._run_turns(hosted, ends, task, world)
            if not hosted.late:
                await hosted.wait(lambda: hosted.exited, GRACE_S)
            return limit_s
        finally:
            await cancel_and_wait(watching)

    async def _set_up_host(
        self, program: Started, hosted: HostedTrial, ends: TrialPipes, setup: HostSetup, limit_s: float
    ) -> bool:
        """Send the program its setup and wait until the agent is imported.

        False if it runs out of time or memory first.
        """
        ends.close_child_ends()
        await ends.send(add_length(encode(setup)))
        try:
            async with asyncio.timeout(min(protocol.IMPORT_S, limit_s)):
                news = await read_first_message(ends.receive)
                if news is None:
                    await _check_memory(program, hosted)
                    return False
        except TimeoutError:
            if limit_s < protocol.IMPORT_S:
                return False
            raise protocol.make_import_error(
                f"the agent's import did not finish within {protocol.IMPORT_S:g} s"
            ) from None
        if isinstance(news, Unusable):
            raise news.to_error()
        return True

    async def _run_turns(self, hosted: HostedTrial, ends: TrialPipes, task: Task, world: World) -> float:
        """Ask turn after turn until one takes too long; return the time limit of the last turn."""
        limit_s = compute_turn_limit_ms(self._timeout_ms, world) / 1000
        while not hosted.broke:
            if not await hosted.wait_for_turns(limit_s):
                hosted.late = True
                break
            if len(hosted.asked) == task.max_turns or not await hosted.send_next_turn(task, ends.send):
                break
            limit_s = compute_turn_limit_ms(self._timeout_ms, world) / 1000
        return limit_s


async def _check_memory(program: Started, hosted: HostedTrial) -> None:
    """Raise AgentUnavailable for a program that died early, unless it exceeded its memory limit."""
    await program.wait_for_end(GRACE_S)
    if not program.out_of_memory:
        raise protocol.make_import_error(protocol.IMPORT_DIED)
    hosted.finish(program.status, program.out_of_memory)


async def _watch(program: Started, hosted: HostedTrial) -> None:
    while not await program.wait_for_end(60.0):
        pass
    hosted.finish(program.status, program.out_of_memory)
