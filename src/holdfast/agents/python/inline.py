"""A Python agent in Holdfast's own process: fast, for agents that are trusted not to hang or crash."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import threading
from asyncio import _set_running_loop
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.agents.conversation import RESET_S, Dialogue, converse
from holdfast.agents.python.answers import settle
from holdfast.agents.python.inline_folder import InlineFolder, Output
from holdfast.agents.python.loaded import (
    AgentInput,
    AskFunction,
    CallableAgent,
    ResetFunction,
    describe_import_error,
    load,
    prepare,
)
from holdfast.agents.python.turns import build_raised_turn, clear_environment, set_environment, take_turn
from holdfast.errors import HarnessError
from holdfast.model.observation import Answer, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.planes.describe import format_exception
from holdfast.planes.injection.weather import Weather
from holdfast.planes.install import InstalledHooks
from holdfast.planes.open_call import activate_weather
from holdfast.planes.traced_call import CallTrace

if TYPE_CHECKING:
    from holdfast.protocols.trial import TrialContext
    from holdfast.protocols.world import World

_ENDED = b"error: the agent ended Holdfast's own process (isolation: inline); use isolation: fresh\n"
_HARNESS = 3
"""The exit code of a run that ended with a harness error."""
_RAISED = (Exception, SystemExit)
"""What an agent may raise in this process; anything else is meant for Holdfast."""


class Guard:
    """Reports `os._exit` and never treats it as success; delivers signals even while the agent blocks."""

    def __init__(self) -> None:
        self._asking = False
        self._pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._exit: Callable[[int], NoReturn] = os._exit
        os._exit = self._on_exit
        self._handlers: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self._handlers = {n: signal.signal(n, self._on_signal) for n in (signal.SIGINT, signal.SIGTERM)}

    def guard_call(self, ask: AskFunction) -> AskFunction:
        """Wrap a call so that a signal ends it even while it blocks.

        A plain agent may run its own event loop: it must not see that Holdfast's loop calls it.
        """
        loop = self._loop

        def call_guarded(prompt: str) -> Any:
            # asyncio.run refuses to start inside a running loop, and an agent may use it. The flag lets Ctrl-C
            # interrupt the call.
            self._asking = True
            _set_running_loop(None)
            try:
                return ask(prompt)
            finally:
                _set_running_loop(loop)
                self._asking = False

        return call_guarded

    def close(self) -> None:
        """Restore the process to its original state."""
        os._exit = self._exit  # type: ignore[assignment]  # it was read from there
        for number, before in self._handlers.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # While the agent's code runs, the event loop cannot run: only an exception in this thread stops it. Otherwise
        # the loop cancels the work in order.
        if self._asking:
            raise KeyboardInterrupt
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _on_exit(self, status: int) -> NoReturn:
        if os.getpid() != self._pid:  # a process that the agent forked may end in any way
            self._exit(status)
        os.write(2, _ENDED)
        self._exit(_HARNESS)


class InlineAgent:
    """An agent that Holdfast calls as a function. It cannot be stopped when it hangs, and its crash ends Holdfast."""

    def __init__(
        self, agent: AgentSpec, loaded: CallableAgent, installed: InstalledHooks, place: InlineFolder, guard: Guard
    ) -> None:
        ask = loaded.ask if loaded.is_async else guard.guard_call(loaded.ask)
        self._loaded = replace(loaded, ask=ask)
        self._guard = guard
        self._timeout_ms = agent.timeout_ms
        self._folder = place
        self._env = agent.env
        self._output = Output()
        self.installed = installed

    @classmethod
    async def open(cls, agent: AgentSpec, root: Path, scenarios: tuple[Scenario, ...]) -> InlineAgent:
        """Import the agent here, with the spec's folder first on the path and as working directory."""
        prepare(scenarios)
        place, guard = InlineFolder(root, agent.env), Guard()
        try:
            with place:
                loaded, installed = load(agent, scenarios)
            place.check()
        except (Exception, SystemExit) as broken:
            place.close()
            guard.close()
            raise describe_import_error(broken, str(root), agent).to_error() from broken
        return cls(agent, loaded, installed, place, guard)

    async def run(self, task: Task, world: World) -> Answer:
        if self._loaded.reset is not None:
            await self._call_reset(self._loaded.reset)
        context = world.context
        trial, output = context.trial, self._output
        weather: Weather | None = None
        if self.installed.tools or self.installed.llm:
            weather = Weather(trial, context.injector.add_fault, context.injector.amend_fault, context.injector.add_use)
        broke: list[HarnessError] = []
        notes: list[str] = []
        if self._env:  # another agent of this process may have its own
            os.environ.update(self._env)
        set_environment(trial)
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = output
        try:
            with self._folder:
                if weather is None:
                    turns = await self._converse(task, context, notes)
                else:
                    attack = trial.task.attack or not trial.scenario.calm
                    watch = CallTrace(
                        perf_counter() - context.sink.now(), lambda _, e: context.sink.add(e), attack=attack
                    )
                    with activate_weather(weather, broke.append, watch):
                        turns = await self._converse(task, context, notes)
        finally:
            sys.stdout, sys.stderr = before
            printed, cut = output.collect()
        counters = (weather.calls, weather.concurrent, weather.unmatched) if weather is not None else ()
        answer = Answer(turns, printed, (*notes, *cut), *counters)
        if broke:
            raise HarnessError(str(broke[0]), code=broke[0].code or "bug", answer=answer)
        return answer

    async def _converse(self, task: Task, context: TrialContext, notes: list[str]) -> tuple[Turn, ...]:
        """Ask turn by turn, until all are asked or one ends badly."""
        calm, loaded = context.trial.scenario.calm, self._loaded

        async def run_turn(text: str, dialogue: Dialogue | None) -> Turn:
            prompt = text if calm else context.injector.rewrite_turn(text)
            agent_input = prompt if dialogue is None else dialogue.build_input(prompt)
            if loaded.is_async:
                turn, noted = await self._await_turn(prompt, agent_input)
            else:
                turn, noted = await take_turn(prompt, loaded, settle, _drop, _RAISED, agent_input=agent_input)
            if noted:
                notes.extend(noted)
            return self._mark_overdue(turn) if turn.latency_ms > self._timeout_ms else turn

        return await converse(task, context, run_turn, notes, messages=loaded.takes_messages, once=loaded.each_once)

    async def _await_turn(self, prompt: str, agent_input: AgentInput) -> tuple[Turn, tuple[str, ...]]:
        """Run a turn, which can be cancelled at its limit whenever the agent awaits something."""
        started = perf_counter()
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                return await take_turn(prompt, self._loaded, settle, _drop, _RAISED, agent_input=agent_input)
        except TimeoutError:
            detail = f"no answer within {self._timeout_ms} ms"
            return Turn(prompt, None, float(self._timeout_ms), "timeout", detail), ()
        except asyncio.CancelledError as raised:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # Holdfast itself is interrupted
            return build_raised_turn(prompt, started, raised), ()

    def _mark_overdue(self, turn: Turn) -> Turn:
        if turn.ending == "timeout":
            return turn
        detail = f"answered after {turn.latency_ms:.0f} ms, over the timeout of {self._timeout_ms} ms"
        return Turn(turn.asked, None, turn.latency_ms, "timeout", detail)

    async def _call_reset(self, reset: ResetFunction) -> None:
        """Reset the agent; raise HarnessError if it cannot."""
        try:
            with self._folder:
                result = reset()
                if inspect.isawaitable(result):
                    async with asyncio.timeout(RESET_S):
                        await result
        except TimeoutError:
            raise HarnessError(f"reset did not finish within {RESET_S:g} s", code="reset-failed") from None
        except (Exception, SystemExit) as broken:
            raise HarnessError(f"reset failed: {format_exception(broken)}", code="reset-failed") from broken

    async def close(self) -> None:
        self.installed.remove()
        clear_environment()
        self._folder.close()
        self._guard.close()


def _drop(text: str) -> None:
    """Ignore parts of an answer: an inline agent that hangs cannot be reported anyway."""
