"""Runs one trial of a Python agent inside its process: resets it, asks each turn, reports as it goes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Coroutine
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from holdfast.agents.conversation import make_dialogue
from holdfast.agents.other_canaries import find_other_canaries
from holdfast.agents.python import host_protocol as protocol
from holdfast.agents.python.answers import (
    ANSWER_LIMIT,
    READ_LIMIT,
    NoText,
    Take,
    needs_loop,
    settle,
    settle_plain,
    to_text,
)
from holdfast.agents.python.loaded import AgentInput, CallableAgent, ResetFunction
from holdfast.model.observation import Turn
from holdfast.model.shorten import shorten
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.planes.describe import format_exception
from holdfast.planes.injection.faulted_call import drive
from holdfast.planes.injection.weather import Weather
from holdfast.planes.open_call import activate_weather
from holdfast.planes.traced_call import CallTrace
from holdfast.processes.startable import build_trial_variables

if TYPE_CHECKING:
    from asyncio import Runner


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_OURS = tuple([os.path.join(_PACKAGE, part) + os.sep for part in ("agents", "faults", "planes")])
"""Folders of Holdfast's code between the agent and its functions."""


Settle: TypeAlias = Callable[[Any, Take], Awaitable[Any]]


_environment: dict[str, str] = {}
"""The variables that the last trial set in this process."""


def set_environment(trial: Trial) -> None:
    """Set the variables of this trial and remove those of the last one; write only the differences."""
    global _environment
    wanted = build_trial_variables(trial)
    for name in _environment:
        if name not in wanted:
            os.environ.pop(name, None)
    for name, text in wanted.items() - _environment.items():
        os.environ[name] = text
    _environment = wanted


def clear_environment() -> None:
    """Remove the variables."""
    while _environment:
        os.environ.pop(_environment.popitem()[0], None)


def perform(request: protocol.TrialRequest, agent: CallableAgent, line: protocol.ReportLine) -> None:
    """Run the trial and send its events as they happen."""
    set_environment(request.trial)
    if agent.reset is not None and not request.restarted and not _run_reset(agent.reset, line):
        return
    weather = Weather(
        request.trial,
        lambda fault: line.send(protocol.Fault(fault)),
        lambda fault: line.send(protocol.Fault(fault, amends=True)),
        lambda use: line.send(protocol.RecordingUsed(use)),
    )
    reporter = _CallReporter(line, pauses=request.trial.scenario.waits_for_writes)
    attack = request.trial.task.attack or bool(request.trial.scenario.injections)
    watch = CallTrace(request.began, reporter.report, early=True, attack=attack)
    with activate_weather(
        weather, lambda broken: line.send(protocol.HarnessFailure(str(broken), broken.code or "bug")), watch
    ):
        loop = _LazyLoop()
        try:
            if agent.is_async:
                loop.run(_converse(request, agent, line, weather, settle, reporter))
            else:
                drive(_converse(request, agent, line, weather, loop.settle, reporter))
        finally:
            loop.close()


class _CallReporter:
    """Reports calls: the start of a call immediately, its end with the next message, to save writes."""

    def __init__(self, line: protocol.ReportLine, *, pauses: bool) -> None:
        """`pauses`: wait after each write until Holdfast has handled it, because a fault may kill the agent there."""
        self._line = line
        self._pauses = pauses
        self._pid = os.getpid()
        self._ended: list[protocol.FunctionCall] = []
        self._lock = Lock()

    def report(self, number: int, event: TraceEvent) -> None:
        """Record a call that started or ended."""
        pid = os.getpid()
        call = protocol.FunctionCall(pid, number, event)
        if pid != self._pid:  # a process that the agent forked: nothing will be sent for it later
            self._line.send(protocol.FunctionCalls((call,)))
            return
        with self._lock:
            self._ended.append(call)
            if event.phase == "unfinished":
                self._send()
            elif self._pauses and event.write:
                self._send()
                self._line.wait_until_settled()

    def flush(self) -> None:
        """Send all calls that have ended."""
        with self._lock:
            if self._ended:
                self._send()

    def _send(self) -> None:
        calls, self._ended = tuple(self._ended), []
        self._line.send(protocol.FunctionCalls(calls))


class _LazyLoop:
    """An event loop for all turns, made when first needed: a plain function usually needs none."""

    def __init__(self) -> None:
        self._runner: Runner | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        if self._runner is None:
            from asyncio import Runner

            self._runner = Runner()
        return self._runner.run(coroutine)

    async def settle(self, value: Any, take: Take) -> Any:
        """Return the settled value; blocks the calling process, as the agent's own call would."""
        if not needs_loop(value):
            return settle_plain(value, take)
        return self.run(settle(value, take))

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()


def _run_reset(reset: ResetFunction, line: protocol.ReportLine) -> bool:
    try:
        result = reset()
        if inspect.isawaitable(result):
            import asyncio

            asyncio.run(settle(result, lambda _: None))
    except BaseException as broken:
        line.send(protocol.HarnessFailure(f"reset failed: {format_exception(broken)}", "reset-failed"))
        return False
    return True


async def _converse(
    request: protocol.TrialRequest,
    agent: CallableAgent,
    line: protocol.ReportLine,
    weather: Weather,
    settle: Settle,
    reporter: _CallReporter,
) -> None:
    """Ask turn by turn, until all are asked or one ends badly."""
    prompt: str | None = request.prompt
    context, earlier = request.trial.task.context, request.earlier
    dialogue = make_dialogue(context, earlier, messages=agent.takes_messages, once=agent.each_once)
    if dialogue is not None and dialogue.note:
        line.send(protocol.Note(dialogue.note))
    n = 0
    while prompt is not None:
        n += 1
        line.send(protocol.TurnBegun())
        agent_input = prompt if dialogue is None else dialogue.build_input(prompt)
        turn, notes = await take_turn(
            prompt, agent, settle, lambda text: line.send(protocol.Piece(text)), agent_input=agent_input
        )
        reporter.flush()
        line.send(protocol.TurnEnded(turn, notes))
        if turn.ending != "answered" or n == request.turns:
            break
        if dialogue is not None:
            dialogue.add_turn(turn)
        prompt = line.receive_turn()
    line.send(protocol.TurnsDone(weather.calls, weather.concurrent, weather.unmatched))


async def take_turn(
    prompt: str,
    agent: CallableAgent,
    settle: Settle,
    take: Take,
    caught: Any = BaseException,
    *,
    agent_input: AgentInput | None = None,
) -> tuple[Turn, tuple[str, ...]]:
    """Run one turn of an agent; return it with a note if its answer was cut. An exception is its result.

    `agent_input` is the agent's input if it is more than the question.
    """
    agent_input = prompt if agent_input is None else agent_input
    pieces: list[str] = []

    def keep(text: str) -> None:
        pieces.append(text)
        take(text)

    started = perf_counter()
    try:
        value = returned = agent.ask(agent_input)
        if type(value) is not str:
            returned = await settle(value, keep)
            value = to_text(returned, agent_input if type(agent_input) is str else prompt)
    except NoText as odd:
        return Turn(prompt, None, (perf_counter() - started) * 1000, "unreadable", str(odd)), ()
    except caught as raised:
        return build_raised_turn(prompt, started, raised, "".join(pieces)), ()
    latency_ms = (perf_counter() - started) * 1000
    if value is None:
        why = (
            "the agent returned None" if returned is None else "the returned value has no AI message that answers this"
        )
        return Turn(prompt, None, latency_ms, "no_answer", why), ()
    turn, notes = _build_answered_turn(prompt, latency_ms, value)
    if canaries := find_other_canaries((returned,), (prompt, agent_input)):
        turn = replace(turn, canaries=canaries)
    return turn, notes


def _build_answered_turn(prompt: str, latency_ms: float, text: str) -> tuple[Turn, tuple[str, ...]]:
    if len(text) > ANSWER_LIMIT:
        size = f"more than {READ_LIMIT}" if len(text) > READ_LIMIT else str(len(text))
        note = f"answer of {size} characters cut to {ANSWER_LIMIT}"
        return Turn(prompt, text[:ANSWER_LIMIT], latency_ms, cut=True), (note,)
    return Turn(prompt, text, latency_ms), ()


def build_raised_turn(prompt: str, started: float, raised: BaseException, partial: str = "") -> Turn:
    """Return the turn of an agent that raised, also by SystemExit. Its answer so far counts."""
    latency_ms = (perf_counter() - started) * 1000
    text = partial[:ANSWER_LIMIT] if partial else None
    other_count = 0
    # The text of a group only says how many exceptions it contains, so the first one inside is shown.
    while isinstance(raised, BaseExceptionGroup):
        other_count += len(raised.exceptions) - 1
        raised = raised.exceptions[0]
    detail = (
        shorten(format_exception(raised), 2000)
        + (f" (and {other_count} more)" if other_count else "")
        + _find_place(raised)
    )
    return Turn(prompt, text, latency_ms, "raised", detail, cut=len(partial) > ANSWER_LIMIT)


def _find_place(raised: BaseException) -> str:
    """Return the last line of the agent's own code in the traceback; a fault is raised in Holdfast's code."""
    place, trace = "", raised.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_OURS):
            place = f" ({os.path.basename(file)}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place
